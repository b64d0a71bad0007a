// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iomanip>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

namespace fs = std::filesystem;

// Readers never see half a file: it is written beside and renamed.
void replace_file(const fs::path& file, const std::string& text) {
  const fs::path draft = file.string() + ".new";
  std::ofstream out(draft, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + draft.string());
  fs::rename(draft, file);
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

std::string time_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string csv_cell(const Record& record, const std::string& field) {
  const auto found = record.find(field);
  if (found == record.end() || found->is_null()) return "";
  if (!found->is_string()) return found->dump();
  const std::string text = *found;
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

// Whole numbers in full: the default of streams turns a million into 1e+06.
std::string tick(double x) {
  constexpr double kMi = 1 << 20;
  if (x >= kMi && x == kMi * std::floor(x / kMi)) return format("%.0fMi", x / kMi);
  return format(x == std::floor(x) ? "%.0f" : "%g", x);
}

}  // namespace

Spread spread_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const auto above = std::min(below + 1, samples.size() - 1);
    return std::lerp(samples[below], samples[above], place - static_cast<double>(below));
  };
  return {at(0.5), at(0.1), at(0.9), samples.size()};
}

void set_spread(Record& record, const std::string& prefix, const Spread& spread) {
  // Four digits carry all that a measurement knows and keep the files readable.
  const auto rounded = [](double value) {
    return std::strtod(format("%.4g", value).c_str(), nullptr);
  };
  record[prefix + "_median"] = rounded(spread.median);
  record[prefix + "_p10"] = rounded(spread.low);
  record[prefix + "_p90"] = rounded(spread.high);
}

Record environment(const std::string& benchmark, const std::string& commit) {
  utsname system{};
  uname(&system);
  Record record;
  record["benchmark"] = benchmark;
  record["commit"] = commit;
  record["time_utc"] = time_utc();
  record["cpu_model"] = cpu_model();
  record["cpus"] = std::thread::hardware_concurrency();
  record["kernel"] = system.release;
  return record;
}

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string spread_cell(const Spread& spread, const char* pattern) {
  return format(pattern, spread.median) + " (" + format(pattern, spread.low) + " .. " +
         format(pattern, spread.high) + ")";
}

std::string Table::text() const {
  std::vector<std::size_t> width(header_.size(), 0);
  const auto measure = [&](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size() && i < width.size(); ++i) {
      width[i] = std::max(width[i], cells[i].size());
    }
  };
  measure(header_);
  for (const auto& row : rows_) measure(row);

  std::ostringstream out;
  out << title_ << '\n';
  const auto print = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size() && i < width.size(); ++i) {
      line += std::string(width[i] - cells[i].size() + (i == 0 ? 2 : 3), ' ') + cells[i];
    }
    out << line << '\n';
  };
  print(header_);
  for (const auto& row : rows_) print(row);
  return out.str();
}

std::string goal_table(const std::string& title, const std::vector<Goal>& goals) {
  constexpr std::size_t kMetWidth = 14;
  std::size_t width = 0;
  for (const Goal& goal : goals) width = std::max(width, goal.goal.size());
  std::ostringstream text;
  text << title << '\n' << std::left;
  for (const Goal& goal : goals) {
    text << "  " << std::setw(static_cast<int>(width + 2)) << goal.goal << std::setw(kMetWidth)
         << goal.met << goal.measured << '\n';
  }
  return text.str();
}

void Floor::note(const std::string& where, const Spread& value) {
  if (value.median < least_) ++missed_;
  if (points_++ > 0 && value.median >= worst_.median) return;
  worst_ = value;
  where_ = where;
}

Goal Floor::goal() const {
  if (points_ == 0) return {goal_, "", "not measured"};
  std::string measured =
      "worst of " + std::to_string(points_) + " " + spread_cell(worst_, "%.2f") + ", " + where_;
  if (missed_ > 1) measured += "; missed at " + std::to_string(missed_);
  return {goal_, measured, missed_ == 0 ? "yes" : "no"};
}

std::string json_text(const std::vector<Record>& records) {
  std::string json = "[\n";
  for (std::size_t i = 0; i < records.size(); ++i) {
    json += records[i].dump() + (i + 1 < records.size() ? ",\n" : "\n");
  }
  return json + "]\n";
}

std::string csv_text(const std::vector<Record>& records) {
  std::vector<std::string> fields;
  std::set<std::string> seen;
  for (const Record& record : records) {
    for (const auto& [field, value] : record.items()) {
      if (seen.insert(field).second) fields.push_back(field);
    }
  }
  std::string csv;
  const auto line = [&](const auto& cell) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i != 0) csv += ',';
      csv += cell(fields[i]);
    }
    csv += '\n';
  };
  line([](const std::string& field) { return field; });
  for (const Record& record : records) {
    line([&](const std::string& field) { return csv_cell(record, field); });
  }
  return csv;
}

void write_records(const fs::path& directory, const std::string& name,
                   const std::vector<Record>& records) {
  fs::create_directories(directory);
  replace_file(directory / (name + ".json"), json_text(records));
  replace_file(directory / (name + ".csv"), csv_text(records));
}

namespace {

// Colours that stay apart for colour-blind readers and in print.
constexpr const char* kColours[] = {"#d55e00", "#0072b2", "#009e73", "#cc79a7",
                                    "#e69f00", "#56b4e9", "#555555", "#8c564b",
                                    "#7a5fd0", "#8fae00", "#c0c0c0", "#000000"};

std::string colour_of(std::size_t series) {
  return std::string("rgb '") + kColours[series % std::size(kColours)] + "'";
}

// Where the colours begin again, lines are dashed.
std::string line_of(std::size_t series) {
  return "dt " + std::to_string(series / std::size(kColours) + 1) + " lc " + colour_of(series);
}

// A text of gnuplot's.
std::string in_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

bool write_plot(const fs::path& file, const Plot& plot) {
  constexpr double kPanelWidth = 340;
  constexpr double kPanelHeight = 300;
  constexpr double kTitleHeight = 48;
  constexpr double kLegendHeight = 22;

  std::vector<std::string> names;
  std::set<double> xs;
  double lowest = HUGE_VAL;
  double highest = -HUGE_VAL;
  for (const Panel& panel : plot.panels) {
    for (const Series& series : panel.series) {
      if (std::find(names.begin(), names.end(), series.name) == names.end()) {
        names.push_back(series.name);
      }
      for (const Point& point : series.points) {
        xs.insert(point.x);
        lowest = std::min(lowest, point.y);
        highest = std::max(highest, point.y);
      }
    }
  }
  if (xs.empty()) {
    std::fprintf(stderr, "bench: nothing to plot in %s\n", file.c_str());
    return false;
  }
  // A logarithmic axis has no zero: it stands a little to the left of the smallest x.
  const auto first = xs.upper_bound(0);
  const double zero_at = first == xs.end() ? 0.5 : *first / 4;
  const auto place = [&](double x) { return x > 0 ? x : zero_at; };

  const std::size_t columns = std::min(plot.columns, plot.panels.size());
  const std::size_t rows = (plot.panels.size() + columns - 1) / columns;
  const std::string title = plot.title + " (" + plot.y_label + ")";
  const double width = std::max(kPanelWidth * static_cast<double>(columns),
                                20 + 9 * static_cast<double>(title.size()));

  // The legend stands above all panels, in as many rows as its names need.
  std::vector<std::pair<double, double>> legend;  // left and top of each, in pixels
  double left_of_next = 8;
  double top_of_row = kTitleHeight;
  for (const std::string& name : names) {
    const double needed = 60 + 8 * static_cast<double>(name.size());
    if (left_of_next > 8 && left_of_next + needed > width) {
      left_of_next = 8;
      top_of_row += kLegendHeight;
    }
    legend.emplace_back(left_of_next, top_of_row);
    left_of_next += needed;
  }
  const double head = top_of_row + kLegendHeight;
  const double height = kPanelHeight * static_cast<double>(rows) + head;

  // Only powers of ten have labels: one of them is wanted.
  const double decade = std::pow(10, std::floor(std::log10(highest * 1.7)));
  const double low = std::min(lowest / 1.5, decade);

  std::ostringstream script;
  script << "set terminal svg size " << width << ',' << height
         << " dynamic noenhanced font 'sans-serif,13' background '#ffffff'\n"
         << "set output '" << file.string() << ".new'\n"
         << "set logscale xy\nset format y '%g'\n"
         << "set grid xtics ytics mxtics lc '#dddddd' lw 0.5, lc '#eeeeee' lw 0.3\n"
         << "set border 3 lc '#555555'\nset tics nomirror font ',11'\nset key off\n"
         << "set xrange [" << place(*xs.begin()) / 1.6 << ':' << place(*xs.rbegin()) * 1.6 << "]\n"
         << "set yrange [" << low << ':' << highest * 1.7 << "]\n"
         << "set xtics rotate by -45 (";
  // More labels than fit would cover each other: every second one, or third.
  constexpr std::size_t kMostLabels = 12;
  const std::size_t step = (xs.size() + kMostLabels - 1) / kMostLabels;
  std::size_t count = 0;
  for (const double x : xs) {
    script << (count == 0 ? "" : ",") << '"' << (count % step == 0 ? tick(x) : "") << "\" "
           << place(x);
    ++count;
  }
  script << ")\n";

  // Colours mean the same in all panels.
  script << "set label 1 " << in_quotes(title) << " at screen 0.012, screen " << 1 - 22 / height
         << " font ',16'\n";
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double x = legend[i].first / width;
    const double y = 1 - legend[i].second / height;
    script << "set arrow " << i + 1 << " from screen " << x << ",screen " << y << " to screen "
           << x + 28 / width << ",screen " << y << " nohead lw 3 " << line_of(i) << '\n'
           << "set label " << i + 2 << ' ' << in_quotes(names[i]) << " at screen " << x + 34 / width
           << ",screen " << y << " font ',13'\n";
  }

  std::ostringstream data;
  std::ostringstream draw;
  std::size_t block = 0;
  for (std::size_t p = 0; p < plot.panels.size(); ++p) {
    const double left = static_cast<double>(p % columns) * kPanelWidth;
    const double top = head + static_cast<double>(p / columns) * kPanelHeight;
    const auto x_at = [&](double pixel) { return (left + pixel) / width; };
    const auto y_at = [&](double pixel) { return 1 - (top + pixel) / height; };
    draw << "set lmargin at screen " << x_at(62) << "\nset rmargin at screen "
         << x_at(kPanelWidth - 14) << "\nset tmargin at screen " << y_at(28)
         << "\nset bmargin at screen " << y_at(kPanelHeight - 76) << '\n'
         << "set title " << in_quotes(plot.panels[p].title) << " offset 0,-0.5 font ',12'\n"
         << "set xlabel " << in_quotes(plot.x_label) << " offset 0,0.6\n";
    std::string lines;
    for (const Series& series : plot.panels[p].series) {
      if (series.points.empty()) continue;
      const auto number = static_cast<std::size_t>(
          std::find(names.begin(), names.end(), series.name) - names.begin());
      data << "$d" << block << " << EOD\n";
      for (const Point& point : series.points) {
        data << place(point.x) << ' ' << point.y << ' ' << point.low << ' ' << point.high << '\n';
      }
      data << "EOD\n";
      const std::string from = "$d" + std::to_string(block++);
      lines += (lines.empty() ? "" : ", ") + from + " using 1:3:4 with filledcurves fc " +
               colour_of(number) + " fs transparent solid 0.15 noborder, " + from +
               " using 1:2 with linespoints lw 2 pt 7 ps 0.45 " + line_of(number);
    }
    draw << (lines.empty() ? "set multiplot next\n" : "plot " + lines + "\n");
    if (p == 0) {
      // Labels and legend are drawn with the first panel only.
      draw << "unset label\nunset arrow\n";
    }
  }

  FILE* const gnuplot = popen("gnuplot", "w");
  if (gnuplot == nullptr) {
    std::fprintf(stderr, "bench: gnuplot cannot be started, %s is not written\n", file.c_str());
    return false;
  }
  const std::string all =
      data.str() + script.str() + "set multiplot\n" + draw.str() + "unset multiplot\nset output\n";
  std::fwrite(all.data(), 1, all.size(), gnuplot);
  if (pclose(gnuplot) != 0) {
    std::fprintf(stderr, "bench: gnuplot failed (package gnuplot-nox), %s is not written\n",
                 file.c_str());
    return false;
  }
  fs::rename(file.string() + ".new", file);
  return true;
}

}  // namespace bench
