// SPDX-License-Identifier: BSD-3-Clause
//
// Runs engine.cpp (time) and engine_lines.cpp (cache lines touched), puts both
// into records, and compares them with what the engine is meant to reach.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "benchmarks.hpp"
#include "engine_goals.hpp"
#include "mpirun.hpp"
#include "report.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;

struct Settings {
  std::string subset;  // empty: by --quick
  std::string filter;
};

constexpr const char* kAxes[] = {
    "structure", "variant",          "isa",   "side",     "depth", "order", "keys",
    "holes",     "wildcard_percent", "cache", "operation"};

double rounded(double value) { return std::strtod(format("%.4g", value).c_str(), nullptr); }

// A point without the cache state, on which the lines that a match touches do not
// depend.
std::string lines_key(const Record& point) {
  std::string key;
  for (const char* const axis : kAxes) {
    if (axis != std::string("cache")) key += point[axis].dump() + "/";
  }
  return key;
}

Record to_record(const Record& common, const Record& point) {
  Record record = common;
  for (const char* const axis : kAxes) record[axis] = point[axis];
  record["benchmark"] = point["benchmark"];
  record["run"] = 0;
  const auto samples = point["samples_ns"].get<std::vector<double>>();
  record["ns_per_match"] = rounded(spread_of(samples).median);
  record["ns_low"] = rounded(*std::min_element(samples.begin(), samples.end()));
  record["ns_high"] = rounded(*std::max_element(samples.begin(), samples.end()));
  record["ns_max"] = point.contains("ns_max") ? Record(rounded(point["ns_max"])) : Record();
  record["lines_per_match"] = Record();
  record["bytes_per_entry"] =
      point.contains("bytes_per_entry") ? Record(rounded(point["bytes_per_entry"])) : Record();
  record["rounds"] = samples.size();
  record["relative_to_linear_at_depth_0"] = Record();
  record["relative_to_cold_depth_0"] = Record();
  if (point.contains("unit_ns")) {
    const auto unit = point["unit_ns"].get<std::vector<double>>();
    if (point["cache"] == "cold") {
      record["relative_to_cold_depth_0"] =
          rounded(spread_of(samples).median / spread_of(unit).median);
    } else {
      record["relative_to_linear_at_depth_0"] = rounded(ratio_by_rounds(samples, unit));
    }
  }
  record[kRoundsField] = samples;
  return record;
}

std::string time_cell(double ns) { return format(ns < 100 ? "%.1f" : "%.0f", ns); }

struct PanelAxes {
  const char* title;
  const char* side;
  const char* order;
  int wildcard_percent;
  const char* cache;
};
constexpr PanelAxes kPanels[] = {
    {"posted, behind the whole queue", "posted", "last", 0, "hot"},
    {"posted, drained in order", "posted", "first", 0, "hot"},
    {"posted, drained at random", "posted", "random", 0, "hot"},
    {"posted, a few at random, once 1024", "posted", "random_once_deep", 0, "hot"},
    {"posted, 10 % wildcards, at random", "posted", "random", 10, "hot"},
    {"unexpected, behind the whole queue", "unexpected", "last", 0, "hot"},
    {"unexpected, drained in order", "unexpected", "first", 0, "hot"},
    {"unexpected, drained at random", "unexpected", "random", 0, "hot"},
    {"unexpected, a few at random, once 1024", "unexpected", "random_once_deep", 0, "hot"},
    {"unexpected, 10 % wildcards, at random", "unexpected", "random", 10, "hot"},
};

// Variants stay in the tables: more than a dozen lines cannot be told apart.
Plot plot_of(const std::vector<Record>& records, const std::string& best_isa) {
  Plot plot{"Append + match in the queue structures of tagline, beside others",
            "entries",
            "ns per append + match",
            4,
            {}};
  for (const PanelAxes& axes : kPanels) {
    Panel panel{axes.title, {}};
    std::map<std::string, std::map<double, Point>> lines;
    std::vector<std::string> order;
    for (const Record& record : records) {
      const bool wanted = record["side"] == axes.side && record["order"] == axes.order &&
                          record["wildcard_percent"] == axes.wildcard_percent &&
                          record["cache"] == axes.cache && record["keys"] == "one_source" &&
                          record["holes"] == "dense" && record["operation"] == "post_and_match" &&
                          record["variant"] == "" &&
                          (record["isa"] == best_isa || record["isa"] == "");
      if (!wanted) continue;
      const std::string name = record["structure"];
      if (lines.find(name) == lines.end()) order.push_back(name);
      const double depth = record["depth"];
      lines[name][depth] = {depth, record["ns_per_match"], record["ns_low"], record["ns_high"]};
    }
    for (const std::string& name : order) {
      Series series{name, {}};
      for (const auto& [depth, point] : lines[name]) series.points.push_back(point);
      panel.series.push_back(std::move(series));
    }
    if (!panel.series.empty()) plot.panels.push_back(std::move(panel));
  }
  return plot;
}

// ns over the depths, a column per structure.
std::string depth_table(const std::vector<Record>& records, const std::string& best_isa,
                        const PanelAxes& axes) {
  std::vector<std::string> names;
  std::map<std::size_t, std::map<std::string, double>> cells;
  for (const Record& record : records) {
    const bool wanted = record["side"] == axes.side && record["order"] == axes.order &&
                        record["wildcard_percent"] == axes.wildcard_percent &&
                        record["cache"] == axes.cache && record["keys"] == "one_source" &&
                        record["holes"] == "dense" && record["operation"] == "post_and_match" &&
                        (record["isa"] == best_isa || record["isa"] == "");
    if (!wanted) continue;
    std::string name = record["structure"];
    if (record["variant"] != "") name += ":" + record["variant"].get<std::string>();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    cells[record["depth"]][name] = record["ns_per_match"];
  }
  if (cells.empty()) return "";
  Table table(std::string("ns per append + match, ") + axes.title +
              (axes.cache == std::string("cold") ? ", cold caches" : ""));
  std::vector<std::string> header{"depth"};
  header.insert(header.end(), names.begin(), names.end());
  table.header(header);
  for (const auto& [depth, row] : cells) {
    std::vector<std::string> text{std::to_string(depth)};
    for (const std::string& name : names) {
      const auto found = row.find(name);
      text.push_back(found == row.end() ? "-" : time_cell(found->second));
    }
    table.row(text);
  }
  return table.text() + "\n";
}

// What is not append + match, behind the whole queue.
std::string operations_table(const std::vector<Record>& records) {
  std::vector<std::string> names;
  std::map<std::pair<std::string, std::size_t>, std::map<std::string, double>> cells;
  for (const Record& record : records) {
    if (record["operation"] == "post_and_match") continue;
    std::string name = record["structure"];
    if (record["variant"] != "") name += ":" + record["variant"].get<std::string>();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    cells[{record["operation"], record["depth"]}][name] = record["ns_per_match"];
  }
  if (cells.empty()) return "";
  Table table("ns per probe, per post + cancel and per post + cancel by handle");
  std::vector<std::string> header{"operation", "depth"};
  header.insert(header.end(), names.begin(), names.end());
  table.header(header);
  for (const auto& [place, row] : cells) {
    std::vector<std::string> text{place.first, std::to_string(place.second)};
    for (const std::string& name : names) {
      const auto found = row.find(name);
      text.push_back(found == row.end() ? "-" : time_cell(found->second));
    }
    table.row(text);
  }
  return table.text() + "\n";
}

// Bytes per entry at some depths and per empty matcher, a row per structure.
std::string memory_table(const std::vector<Record>& records, const std::vector<Record>& memory) {
  constexpr std::size_t kDepths[] = {1, 8, 128, 1024, 16384, 65536, 1048576};
  Table table(
      "Memory: bytes of a matcher that has seen one entry and holds none; node memory per posted "
      "receive, in bytes");
  std::vector<std::string> header{"structure", "new", "empty"};
  for (const std::size_t depth : kDepths) header.push_back("of " + std::to_string(depth));
  table.header(header);
  for (const Record& point : memory) {
    std::string name = point["structure"];
    if (point["variant"] != "") name += ":" + point["variant"].get<std::string>();
    std::vector<std::string> row{name, point["bytes_per_new_matcher"].dump(),
                                 point["bytes_per_empty_matcher"].dump()};
    for (const std::size_t depth : kDepths) {
      std::string cell = "-";
      for (const Record& record : records) {
        const bool wanted = record["structure"] == point["structure"] &&
                            record["variant"] == point["variant"] && record["depth"] == depth &&
                            record["side"] == "posted" && record["order"] == "last" &&
                            record["keys"] == "one_source" && record["cache"] == "hot" &&
                            record["wildcard_percent"] == 0 && record["holes"] == "dense" &&
                            !record["bytes_per_entry"].is_null();
        if (wanted) cell = format("%.0f", record["bytes_per_entry"]);
      }
      row.push_back(cell);
    }
    table.row(row);
  }
  return table.text() + "\n";
}

// A goal is missed if the median of so many runs does, of what the first one missed.
constexpr int kRuns = 5;

class EngineRun {
 public:
  EngineRun(const Context& context, std::string subset)
      : programs_(context.programs),
        subset_(std::move(subset)),
        limit_(subset_ == "quick"  ? 5
               : subset_ == "full" ? 240
                                   : 40),
        common_(environment("engine", context.commit)) {}

  // Of all benchmarks whose names the filter finds; their records. Those that would take too long
  // are noted. What is measured again (number > 0) gets more rounds.
  JobResult time(const std::string& filter, int number, std::vector<Record>& records) {
    const std::string what = "engine, " + subset_ +
                             (number == 0 ? "" : ", again " + std::to_string(number)) + ": point ";
    const auto take = [&](const Record& point) {
      if (point.contains("progress")) {
        progress(what + point["progress"].get<std::string>());
      } else if (point.contains("left_out")) {
        if (number == 0) ++left_out;
      } else {
        records.push_back(to_record(common_, point));
        records.back()["run"] = number;
      }
    };
    const JobResult result = job("engine", filter, take, /*thorough=*/number > 0);
    end_progress();
    return result;
  }
  JobResult count_lines(const std::string& filter,
                        const std::function<void(const Record&)>& on_point) {
    progress("engine, " + subset_ + ": counting cache lines");
    const JobResult result = job("engine_lines", filter, on_point);
    end_progress();
    return result;
  }

  std::size_t left_out = 0;

 private:
  JobResult job(const char* program, const std::string& filter,
                const std::function<void(const Record&)>& on_point, bool thorough = false) {
    std::vector<std::string> command{(programs_ / program).string(), "--subset", subset_};
    if (thorough) command.push_back("--thorough");
    if (!filter.empty()) command.insert(command.end(), {"--filter", filter});
    return run_job(command, limit_,
                   [&](const std::string& line) { on_point(Record::parse(line)); });
  }

  const fs::path programs_;
  const std::string subset_;
  const std::chrono::minutes limit_;
  const Record common_;
};

std::vector<EngineRow> rows_of(const std::vector<Record>& records) {
  std::vector<EngineRow> rows;
  for (const Record& record : records) rows.push_back(engine_row(record));
  return rows;
}

// What is in doubt after the first run is measured again; all gets these records, too.
Verdict judge_all(EngineRun& engine, const std::vector<Record>& records,
                  const std::string& best_isa, std::vector<Record>& all) {
  std::vector<std::vector<EngineRow>> runs{rows_of(records)};
  const Verdict first = judge(runs, best_isa);
  std::string names;
  for (const std::string& name : first.in_doubt) names += (names.empty() ? "" : "|") + name;
  for (int number = 1; !names.empty() && number < kRuns; ++number) {
    std::vector<Record> some;
    if (!engine.time("^(" + names + ")$", number, some).ok) break;
    runs.push_back(rows_of(some));
    all.insert(all.end(), some.begin(), some.end());
  }
  return judge(runs, best_isa);
}

void run(const Context& context, const Settings& settings, int& exit_code) {
  watch_for_interrupts();
  EngineRun engine(context, !settings.subset.empty() ? settings.subset
                            : context.quick          ? "quick"
                                                     : "standard");
  std::vector<Record> records;
  const JobResult timed = engine.time(settings.filter, 0, records);
  if (!timed.ok) {
    std::fprintf(stderr, "bench: engine: %s\n", timed.reason.c_str());
    exit_code = 1;
  }
  if (records.empty()) {
    if (timed.ok) std::fprintf(stderr, "bench: no benchmark has a name like that\n");
    exit_code = 1;
    return;
  }
  std::string best_isa;  // comes first
  for (const Record& record : records) {
    if (best_isa.empty()) best_isa = record["isa"];
  }

  std::map<std::string, Record> lines;
  std::vector<Record> memory;
  if (timed.ok) {
    const JobResult counted = engine.count_lines(settings.filter, [&](const Record& point) {
      if (point.contains("memory")) {
        memory.push_back(point);
      } else {
        lines[lines_key(point)] = point;
      }
    });
    if (!counted.ok) {
      std::fprintf(stderr, "bench: cache lines are left out: %s\n", counted.reason.c_str());
    }
  }
  for (Record& record : records) {
    const auto found = lines.find(lines_key(record));
    if (found == lines.end()) continue;
    record["lines_per_match"] = found->second["lines_per_match"];
    record["matcher_lines_per_match"] = found->second["matcher_lines_per_match"];
  }

  for (Record& record : records) {
    for (const Record& point : memory) {
      if (record["structure"] != point["structure"] || record["variant"] != point["variant"]) {
        continue;
      }
      record["bytes_per_empty_matcher"] = point["bytes_per_empty_matcher"];
    }
  }
  std::vector<Record> all = records;
  const Verdict verdict = judge_all(engine, records, best_isa, all);
  for (Record& record : all) record.erase(kRoundsField);
  write_records(context.output, "engine", all);
  const bool plotted = write_plot(context.output / "engine.svg", plot_of(records, best_isa));

  for (const PanelAxes& axes : kPanels) {
    std::printf("%s", depth_table(records, best_isa, axes).c_str());
  }
  for (const char* const side : {"posted", "unexpected"}) {
    const PanelAxes cold{side, side, "last", 0, "cold"};
    std::printf("%s", depth_table(records, best_isa, cold).c_str());
  }
  std::printf("%s", operations_table(records).c_str());
  if (!memory.empty()) std::printf("%s", memory_table(records, memory).c_str());
  std::printf("%s\n", goal_table("What the engine is meant to reach (L0: linear on an empty queue, "
                                 "same run; what missed at first is measured four times more, and "
                                 "the medians count)",
                                 verdict.goals)
                          .c_str());
  if (engine.left_out > 0) {
    std::printf("%zu benchmarks are left out because they would take too long.\n", engine.left_out);
  }
  std::printf("%s/engine.json, .csv, .svg\n", context.output.c_str());
  if (!plotted) exit_code = 1;
}

}  // namespace

void add_engine(CLI::App& app, Context& context) {
  const auto settings = std::make_shared<Settings>();
  CLI::App* const engine = app.add_subcommand(
      "engine", "the matcher alone: every queue structure over depth, order, keys, wildcards");
  engine->add_option("--subset", settings->subset, "quick, standard or full")
      ->check(CLI::IsMember({"quick", "standard", "full"}));
  engine->add_option("--filter", settings->filter, "regular expression on benchmark names");
  engine->callback([&context, settings] { run(context, *settings, context.exit_code); });
}

}  // namespace bench
