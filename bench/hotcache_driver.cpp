// SPDX-License-Identifier: BSD-3-Clause
//
// Runs hotcache.cpp a few times and puts together what it found while the two units
// shared a cache, apart from what it found while they did not.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "benchmarks.hpp"
#include "mpirun.hpp"
#include "report.hpp"

namespace bench {
namespace {

struct Settings {
  int turns = 0;  // 0: by --quick
  long sleep_ns = 0;
  bool always = false;
};

// A line takes 25 to 60 ns from one core to another through a cache that they share,
// and over 100 ns otherwise.
constexpr double kSharedNs = 70;

constexpr std::size_t kRoundsToJudge = 30;

constexpr const char* kAxes[] = {"measure", "structure", "isa",          "side",    "depth",
                                 "nodes",   "evicted",   "region_lines", "sleep_ns"};

// Rounds of a point of the program while the units were together, or while they were apart.
struct Result {
  Record point;
  bool is_shared = false;
  std::vector<double> without, with, ratios, line_ns;
};

class Results {
 public:
  void add(const Record& point) {
    const auto values = [&](const char* name) { return point[name].get<std::vector<double>>(); };
    const auto without = values("without_ns"), with = values("with_ns");
    const auto without_line = values("without_line_ns"), with_line = values("with_line_ns");
    for (std::size_t i = 0; i < std::min(without.size(), with.size()); ++i) {
      const double line_ns = std::max(without_line[i], with_line[i]);
      Result& result = of(point, line_ns < kSharedNs);
      result.line_ns.push_back(line_ns);
      result.without.push_back(without[i]);
      result.with.push_back(with[i]);
      result.ratios.push_back(without[i] / with[i]);
    }
  }
  const std::vector<Result>& all() const { return results_; }

 private:
  Result& of(const Record& point, bool is_shared) {
    std::string key;
    for (const char* const axis : kAxes) key += point.value(axis, Record()).dump() + "/";
    const auto [place, is_new] = index_.try_emplace({key, is_shared}, results_.size());
    if (is_new) results_.push_back({point, is_shared, {}, {}, {}, {}});
    return results_[place->second];
  }

  std::map<std::pair<std::string, bool>, std::size_t> index_;
  std::vector<Result> results_;
};

Record to_record(const Record& common, const Record& machine, const Result& result) {
  Record record = common;
  for (const auto& [name, value] : machine.items()) record[name] = value;
  for (const char* const axis : kAxes) record[axis] = result.point.value(axis, Record());
  record["units_share_a_cache"] = result.is_shared;
  record["core_to_core_ns"] = spread_of(result.line_ns).median;
  record["rounds"] = result.ratios.size();
  set_spread(record, "without_heater_ns", spread_of(result.without));
  set_spread(record, "with_heater_ns", spread_of(result.with));
  set_spread(record, "speedup", spread_of(result.ratios));
  return record;
}

struct Section {
  const char* title;
  const char* measure;
  const char* evicted;
  const char* nodes;
};
constexpr Section kSections[] = {
    {"after a phase that evicts L1, L2 and L3, nodes in order", "cold_match", "l1_l2_l3",
     "in_order"},
    {"after a phase that evicts L1, L2 and L3, nodes scattered", "cold_match", "l1_l2_l3",
     "scattered"},
    {"after a phase that evicts L1 and L2, nodes in order", "cold_match", "l1_l2", "in_order"},
    {"after a phase that evicts L1 and L2, nodes scattered", "cold_match", "l1_l2", "scattered"},
    {"hot, append + match", "hot_pair", "none", "in_order"},
};

bool belongs(const Result& result, const Section& section, bool is_shared, const char* side) {
  const Record& point = result.point;
  return result.is_shared == is_shared && point["measure"] == section.measure &&
         point["side"] == side && point["evicted"] == section.evicted &&
         point["nodes"] == section.nodes;
}

// ns without a heater and how many times faster with one, a column per structure.
std::string match_table(const Results& results, const Section& section, bool is_shared,
                        const char* side) {
  std::vector<std::string> structures;
  std::map<int, std::map<std::string, const Result*>> rows;
  for (const Result& result : results.all()) {
    if (!belongs(result, section, is_shared, side)) continue;
    const std::string structure = result.point["structure"];
    if (std::find(structures.begin(), structures.end(), structure) == structures.end()) {
      structures.push_back(structure);
    }
    rows[result.point["depth"]][structure] = &result;
  }
  if (rows.empty()) return "";
  Table table(std::string(side) + ", " + section.title +
              ": ns without heater, times faster with it");
  std::vector<std::string> header{"depth"};
  header.insert(header.end(), structures.begin(), structures.end());
  table.header(header);
  for (const auto& [depth, cells] : rows) {
    std::vector<std::string> row{std::to_string(depth)};
    for (const std::string& structure : structures) {
      const auto found = cells.find(structure);
      if (found == cells.end()) {
        row.push_back("-");
        continue;
      }
      const double ns = spread_of(found->second->without).median;
      row.push_back(format(ns < 100 ? "%.1f  " : "%.0f  ", ns) +
                    spread_cell(spread_of(found->second->ratios), "%.2f"));
    }
    table.row(row);
  }
  return table.text() + "\n";
}

std::string neighbour_table(const Results& results) {
  Table table(
      "A thread that computes on the heater's own unit: its time with the heater / without it");
  table.header({"sleep ns", "lines", "units share a cache", "time / time without"});
  for (const Result& result : results.all()) {
    if (result.point["measure"] != "neighbour_compute") continue;
    std::vector<double> slower;
    for (const double ratio : result.ratios) slower.push_back(1 / ratio);
    table.row({result.point["sleep_ns"].dump(), result.point["region_lines"].dump(),
               result.is_shared ? "yes" : "no", spread_cell(spread_of(slower), "%.3f")});
  }
  return table.text() + "\n";
}

// The range of medians of a structure's cold matches at depths 64 to 1024.
std::string verdicts(const Results& results, bool is_shared) {
  std::map<std::string, std::vector<double>> deep, all;
  std::vector<std::string> structures;
  for (const Result& result : results.all()) {
    if (result.is_shared != is_shared || result.point["measure"] != "cold_match" ||
        result.point["evicted"] != "l1_l2_l3") {
      continue;
    }
    const std::string structure = result.point["structure"];
    if (all[structure].empty()) structures.push_back(structure);
    const double median = spread_of(result.ratios).median;
    all[structure].push_back(median);
    const int depth = result.point["depth"];
    if (depth >= 64 && depth <= 1024) deep[structure].push_back(median);
  }
  if (structures.empty()) return "";
  Table table("Times faster with a heater, all caches evicted, medians of the points above");
  table.header({"structure", "depth 64-1024: least", "middle", "most", "any depth: least"});
  for (const std::string& structure : structures) {
    const std::vector<double>& some = deep[structure].empty() ? all[structure] : deep[structure];
    const auto [least, most] = std::minmax_element(some.begin(), some.end());
    table.row({structure, format("%.2f", *least), format("%.2f", spread_of(some).median),
               format("%.2f", *most),
               format("%.2f", *std::min_element(all[structure].begin(), all[structure].end()))});
  }
  return table.text() + "\n";
}

// A goal over many points, beside that of their medians, which scatter to both sides of 1 where
// nothing differs: at none are more rounds below the least ratio than chance explains. A sign test,
// for a guest of the machine may make single rounds anything.
class NotBelow {
 public:
  NotBelow(std::string goal, double least) : goal_(std::move(goal)), least_(least) {}
  void note(const std::string& where, const std::vector<double>& ratios) {
    const double rounds = static_cast<double>(ratios.size());
    const auto below =
        std::count_if(ratios.begin(), ratios.end(), [&](double ratio) { return ratio < least_; });
    const double deviations = (2 * static_cast<double>(below) - rounds) / std::sqrt(rounds);
    if (deviations > kLimit) ++missed_;
    if (points_++ > 0 && deviations <= worst_) return;
    worst_ = deviations;
    worst_text_ = std::to_string(below) + " of " + std::to_string(ratios.size()) + " rounds (" +
                  format("%.1f deviations), median ", deviations) +
                  format("%.2f, ", spread_of(ratios).median) + where;
  }
  Goal goal() const {
    if (points_ == 0) return {goal_, "", "not measured"};
    std::string measured = "worst of " + std::to_string(points_) + ": " + worst_text_;
    if (missed_ > 1) measured += "; missed at " + std::to_string(missed_);
    return {goal_, measured, missed_ == 0 ? "yes" : "no"};
  }

 private:
  static constexpr double kLimit = 3.72;  // chance alone goes beyond it once in 10000 points

  std::string goal_;
  double least_;
  double worst_ = 0;
  std::string worst_text_;
  std::size_t points_ = 0;
  std::size_t missed_ = 0;
};

std::string where(const Record& point) {
  const std::string structure = point["structure"], side = point["side"], nodes = point["nodes"];
  return structure + ", " + side + ", " + point["depth"].dump() + ", " + nodes;
}

// Only where the units share a cache: a heater can do nothing elsewhere. Of few rounds the median
// says nothing.
std::vector<Goal> judge(const Results& results) {
  std::vector<const Result*> judged;
  for (const Result& result : results.all()) {
    const bool is_match = result.point["measure"] != "neighbour_compute";
    if (is_match && result.is_shared && result.ratios.size() >= kRoundsToJudge) {
      judged.push_back(&result);
    }
  }
  Floor walks("linear behind 64 to 1024 entries, L1, L2 and L3 evicted: at least 1.25", 1.25);
  for (const Result* result : judged) {
    const Record& point = result->point;
    const int depth = point["depth"];
    if (point["structure"] == "linear" && point["evicted"] == "l1_l2_l3" && depth >= 64 &&
        depth <= 1024) {
      walks.note(where(point), spread_of(result->ratios));
    }
  }
  std::vector<Goal> goals{walks.goal()};
  const auto not_below = [&](double least, const char* evicted, const std::string& text) {
    Floor medians(text + format(", medians: at least %g", least), least);
    const std::string limit = format(" not below %g by more than chance", least);
    NotBelow points(text + ", points:" + limit, least);
    // All rounds of a structure show what is too little to be seen at a point.
    NotBelow structures(text + ", structures:" + limit, least);
    std::map<std::string, std::vector<double>> by_structure;
    for (const Result* result : judged) {
      if (result->point["evicted"] != evicted) continue;
      medians.note(where(result->point), spread_of(result->ratios));
      points.note(where(result->point), result->ratios);
      std::vector<double>& all = by_structure[result->point["structure"]];
      all.insert(all.end(), result->ratios.begin(), result->ratios.end());
    }
    for (const auto& [structure, ratios] : by_structure) structures.note(structure, ratios);
    goals.insert(goals.end(), {medians.goal(), points.goal(), structures.goal()});
  };
  not_below(1, "l1_l2_l3", "L1, L2 and L3 evicted");
  not_below(1, "l1_l2", "L1 and L2 evicted");
  not_below(0.95, "none", "queues that are hot already");
  return goals;
}

Plot plot_of(const Results& results, bool is_shared) {
  Plot plot{std::string("A match with cold caches: times faster with a heater") +
                (is_shared ? "" : " (the units share no cache)"),
            "entries ahead of the match",
            "times faster",
            3,
            {}};
  for (const Section& section : kSections) {
    Panel panel{section.title, {}};
    std::map<std::string, Series> lines;
    for (const Result& result : results.all()) {
      if (!belongs(result, section, is_shared, "posted")) continue;
      const std::string structure = result.point["structure"];
      const double depth = result.point["depth"];
      const Spread spread = spread_of(result.ratios);
      lines[structure].name = structure;
      lines[structure].points.push_back({depth, spread.median, spread.low, spread.high});
    }
    for (auto& [name, series] : lines) {
      std::sort(series.points.begin(), series.points.end(),
                [](const Point& a, const Point& b) { return a.x < b.x; });
      panel.series.push_back(std::move(series));
    }
    if (!panel.series.empty()) plot.panels.push_back(std::move(panel));
  }
  return plot;
}

void run(const Context& context, const Settings& settings, int& exit_code) {
  const int turns = settings.turns > 0 ? settings.turns : context.quick ? 1 : 3;
  watch_for_interrupts();
  std::vector<std::string> command{(context.programs / "hotcache").string(), "--sleep-ns",
                                   std::to_string(settings.sleep_ns)};
  if (settings.always) command.push_back("--always");
  if (context.quick) {
    for (const char* const word : {"--posted-only", "--depths", "1,64,1024", "--rounds", "9"}) {
      command.push_back(word);
    }
  }
  Record machine;
  Results results;
  for (int turn = 0; turn < turns && !interrupted(); ++turn) {
    progress("hotcache: turn " + std::to_string(turn + 1) + " of " + std::to_string(turns));
    const JobResult job = run_job(command, std::chrono::minutes(15), [&](const std::string& line) {
      const Record record = Record::parse(line);
      if (record.contains("heater_unit")) {
        machine = record;
      } else {
        results.add(record);
      }
    });
    if (job.ok) continue;
    end_progress();
    std::fprintf(stderr, "bench: hotcache: %s\n", job.reason.c_str());
    exit_code = 1;
    break;
  }
  end_progress();
  if (results.all().empty()) {
    exit_code = 1;
    return;
  }

  Record common = environment("hotcache", context.commit);
  common["always"] = settings.always;
  std::vector<Record> records;
  std::size_t shared = 0;
  for (const Result& result : results.all()) {
    records.push_back(to_record(common, machine, result));
    shared += result.is_shared ? 1 : 0;
  }
  write_records(context.output, "hotcache", records);
  const bool plotted = write_plot(context.output / "hotcache.svg", plot_of(results, shared > 0));

  for (const bool is_shared : {true, false}) {
    const std::size_t points = is_shared ? shared : records.size() - shared;
    if (points == 0) continue;
    std::printf("%zu points, of rounds in which a line went from one unit to the other %s\n\n",
                points,
                is_shared ? "as it does through a cache that they share"
                          : "too slowly for that: the system reports a shared cache, but there is "
                            "none (a virtual machine's units wander), and a heater cannot help");
    for (const Section& section : kSections) {
      for (const char* const side : {"posted", "unexpected"}) {
        std::printf("%s", match_table(results, section, is_shared, side).c_str());
      }
    }
    std::printf("%s", verdicts(results, is_shared).c_str());
  }
  std::printf("%s\n", goal_table("Goals (points of 30 rounds and more; times faster with a heater)",
                                 judge(results))
                          .c_str());
  std::printf("%s", neighbour_table(results).c_str());
  std::printf("%s/hotcache.json, .csv, .svg\n", context.output.c_str());
  if (!plotted) exit_code = 1;
}

}  // namespace

void add_hotcache(CLI::App& app, Context& context) {
  const auto settings = std::make_shared<Settings>();
  CLI::App* const hotcache = app.add_subcommand(
      "hotcache", "matches after a phase that evicts the caches, with and without a heater");
  hotcache->add_option("--turns", settings->turns, "runs of the whole; default 3, or 1 if quick")
      ->check(CLI::Range(1, 100));
  hotcache->add_option("--sleep-ns", settings->sleep_ns, "of the heater between passes")
      ->check(CLI::Range(0L, 1000000000L));
  hotcache->add_flag("--always", settings->always,
                     "the heater leaves no pass out, whether the last level is swept or not");
  hotcache->callback([&context, settings] { run(context, *settings, context.exit_code); });
}

}  // namespace bench
