// SPDX-License-Identifier: BSD-3-Clause
#include "sweep.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOurMpich = "mpich-tagline";

struct Target {
  Configuration configuration;
  fs::path programs;
};

std::string text_of(const Record& record, const std::string& field) {
  const auto found = record.find(field);
  if (found == record.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string text_of(const Record& record, const std::vector<std::string>& fields) {
  std::string text;
  for (const std::string& field : fields) {
    const std::string value = text_of(record, field);
    if (value.empty()) continue;
    text += (text.empty() ? "" : ", ") + (record[field].is_string() ? value : value + " " + field);
  }
  return text;
}

// NAME=FOLDER=COMMAND with {} for the number of ranks; options of the launcher follow it.
Target parse_launch(const std::string& text) {
  const auto first = text.find('=');
  const auto second = first == std::string::npos ? first : text.find('=', first + 1);
  const auto ranks = second == std::string::npos ? second : text.find("{}", second);
  if (ranks == std::string::npos) {
    throw std::runtime_error(
        "--launch wants NAME=FOLDER=COMMAND, the folder with the suite built by that MPI and "
        "the command with {} for the number of ranks: "
        "\"mine=build-mine=/opt/mpi/bin/mpirun -n {}\"; it is: " +
        text);
  }
  Target target;
  target.configuration.name = text.substr(0, first);
  target.programs = text.substr(first + 1, second - first - 1);
  target.configuration.launchers = {text.substr(second + 1)};
  target.configuration.mpi.clear();
  return target;
}

// tagline:QUEUE is tagline with that queue structure.
Target target_of(const std::string& name, const Sweep& sweep, const fs::path& mpichs,
                 const Context& context) {
  Target target;
  if (name == "ob1") {
    target.configuration = ob1("vader");
  } else if (name == "ucx") {
    target.configuration = ucx();
  } else if (name == "oshmem") {
    target.configuration = oshmem();
  } else if (name.rfind("tagline", 0) == 0) {
    target.configuration = tagline(context.components, "vader");
    std::vector<std::string>& arguments = target.configuration.arguments;
    arguments.insert(arguments.end(), sweep.tagline_options.begin(), sweep.tagline_options.end());
    if (name != "tagline") {
      arguments.insert(arguments.end(), {"--mca", "pml_tagline_queue", name.substr(8)});
      target.configuration.name = name;
    }
  } else if (name == kOurMpich) {
    // Programs that were linked with the distribution's MPICH, whose binary interface ours has.
    const fs::path prefix = mpichs / "tagline";
    if (mpichs.empty() || !fs::exists(prefix / "lib/libmpich.so.12")) {
      throw std::runtime_error(name + " is not built here: tools/mpich.sh tagline does it");
    }
    target.configuration = mpich(name, prefix);
  } else {
    target.configuration = mpich();
  }
  target.programs = context.programs / "suite" / target.configuration.mpi;
  return target;
}

std::vector<std::string> command_of(const Target& target, const Job& job) {
  std::vector<std::string> command;
  if (target.configuration.mpi.empty()) {
    command.emplace_back("/usr/bin/env");  // finds the launcher in PATH
    std::string words = target.configuration.launchers.front();
    words.replace(words.find("{}"), 2, std::to_string(job.ranks));
    for (std::size_t at = 0; at < words.size();) {
      const std::size_t end = std::min(words.find(' ', at), words.size());
      if (end > at) command.push_back(words.substr(at, end - at));
      at = end + 1;
    }
    return command;
  }
  command = mpirun_command(target.configuration, job.ranks);
  if (target.configuration.mpi == "openmpi") {
    // Ranks have threads: bound to one core each they would all share it.
    command.insert(command.end(), {"--bind-to", "none"});
  }
  return command;
}

// Jobs that wait for CPUs are not taken for ones that hang.
std::chrono::seconds time_limit(const SweepSettings& settings) {
  double waiting = 0;
  const double cpus = std::max(std::thread::hardware_concurrency(), 1u);
  if (getloadavg(&waiting, 1) != 1) waiting = cpus;
  return std::chrono::seconds(std::lround(settings.limit * std::clamp(waiting / cpus, 1.0, 10.0)));
}

// What became of a job, in the words of the tables.
std::string outcome_of(const JobResult& job) {
  const auto says = [&](const char* words) { return job.errors.find(words) != std::string::npos; };
  if (job.ok) return "ok";
  if (says("wrong data:")) return "wrong data";
  if (job.timed_out) return "hang";
  if (says("Assertion") || says("assertion")) return "assertion";
  if (job.exit_code > 128 || says("on signal") || says("KILLED BY SIGNAL")) return "crash";
  if (job.exit_code == 2) return "not run";
  return "error";
}

// "put, fence, 2 threads, 8 bytes" reads better than an option list.
std::string label_of(const Job& job) {
  std::string text;
  for (const auto& [field, value] : job.parameters.items()) {
    text += (text.empty() ? "" : ", ") +
            (value.is_string() ? value.get<std::string>() : value.dump() + " " + field);
  }
  return text.empty() ? job.program : text;
}

std::string number(double value) { return format(value >= 1e6 ? "%.4g" : "%.4g", value); }

// One table per panel: rows by x and the fields of the series, a column per MPI.
std::string table_text(const View& view, const std::vector<Record>& records,
                       const std::vector<std::string>& mpis) {
  std::vector<std::string> panels;
  std::set<std::string> measured;
  std::map<std::string, std::vector<std::vector<std::string>>> rows;  // panel -> keys
  std::map<std::vector<std::string>, std::map<std::string, std::string>> cells;
  for (const Record& record : records) {
    // A failure belongs to every panel that it names and that shows something.
    const std::string panel = text_of(record, view.panel);
    if (record.contains(view.y)) {
      measured.insert(panel);
    } else if (record.value("outcome", "") == "ok") {
      continue;
    }
    if (std::find(panels.begin(), panels.end(), panel) == panels.end()) panels.push_back(panel);
    std::vector<std::string> key{text_of(record, view.x)};
    for (const std::string& field : view.series) key.push_back(text_of(record, field));
    auto& known = rows[panel];
    if (std::find(known.begin(), known.end(), key) == known.end()) known.push_back(key);
    std::vector<std::string> whole{panel};
    whole.insert(whole.end(), key.begin(), key.end());
    std::string cell = record.value("outcome", "ok");
    if (cell == "ok") {
      cell = number(record[view.y].get<double>());
      const bool sure = record.value("stopped_by", "confidence") == "confidence";
      cell += sure ? " " : "~";
    }
    cells[whole][record.value("mpi", "")] = cell;
  }
  std::string text;
  for (const std::string& panel : panels) {
    if (!measured.contains(panel)) continue;
    Table table(view.title + (panel.empty() ? "" : ": " + panel) + " (" + view.y_label + ")");
    std::vector<std::string> header = view.series;
    header.push_back(view.x);
    header.insert(header.end(), mpis.begin(), mpis.end());
    table.header(header);
    for (const auto& key : rows[panel]) {
      std::vector<std::string> row(key.begin() + 1, key.end());
      row.push_back(key[0]);
      std::vector<std::string> whole{panel};
      whole.insert(whole.end(), key.begin(), key.end());
      for (const std::string& mpi : mpis) row.push_back(cells[whole][mpi]);
      table.row(row);
    }
    text += table.text() + "\n";
  }
  return text;
}

Plot plot_of(const View& view, const std::vector<Record>& records) {
  Plot plot;
  plot.title = view.title;
  plot.x_label = view.x_label;
  plot.y_label = view.y_label;
  for (const Record& record : records) {
    if (!record.contains(view.y) || !record.contains(view.x)) continue;
    const std::string title = text_of(record, view.panel);
    const std::string name = text_of(record, std::vector<std::string>{"mpi"}) +
                             (view.series.empty() ? "" : " " + text_of(record, view.series));
    auto panel = std::find_if(plot.panels.begin(), plot.panels.end(),
                              [&](const Panel& known) { return known.title == title; });
    if (panel == plot.panels.end()) panel = plot.panels.insert(panel, Panel{title, {}});
    auto series = std::find_if(panel->series.begin(), panel->series.end(),
                               [&](const Series& known) { return known.name == name; });
    if (series == panel->series.end()) series = panel->series.insert(series, Series{name, {}});
    const double x = record[view.x].get<double>();
    const double y = record[view.y].get<double>();
    if (y <= 0) continue;
    // The confidence interval of the time, as a part of it, is that of a rate as well.
    const double time = record.value("time_us", 0.0);
    const auto ci = record.find("time_us_ci95");
    const double part =
        time > 0 && ci != record.end() && ci->is_number() ? ci->get<double>() / time : 0;
    series->points.push_back({x, y, y * std::max(1 - part, 0.1), y * (1 + part)});
  }
  for (Panel& panel : plot.panels) {
    for (Series& series : panel.series) {
      std::sort(series.points.begin(), series.points.end(),
                [](const Point& a, const Point& b) { return a.x < b.x; });
    }
  }
  plot.columns = std::min<std::size_t>(4, plot.panels.size());
  return plot;
}

std::string failure_table(const std::vector<Record>& failures, const std::vector<Job>& jobs) {
  if (failures.empty()) return "";
  std::vector<std::string> fields{"mpi"};
  for (const Job& job : jobs) {
    for (const auto& [field, value] : job.parameters.items()) {
      if (std::find(fields.begin(), fields.end(), field) == fields.end()) fields.push_back(field);
    }
  }
  fields.push_back("outcome");
  Table table("Points without a result");
  table.header(fields);
  std::string reasons;
  std::set<std::string> told;
  for (const Record& failure : failures) {
    std::vector<std::string> row;
    for (const std::string& field : fields) row.push_back(text_of(failure, field));
    table.row(row);
    const std::string reason = text_of(failure, "mpi") + ", " + text_of(failure, "outcome") + ": " +
                               text_of(failure, "reason");
    if (told.insert(reason).second) reasons += "  " + reason + "\n";
  }
  return table.text() + reasons + "\n";
}

}  // namespace

SweepResult run_sweep(const Sweep& sweep, const SweepSettings& settings, const Context& context) {
  const Effort effort = context.quick   ? Effort::quick
                        : settings.full ? Effort::full
                                        : Effort::standard;
  const double seconds = settings.seconds > 0         ? settings.seconds
                         : effort == Effort::quick    ? 0.1
                         : effort == Effort::standard ? 0.3
                                                      : 2;
  std::vector<std::string> names = settings.mpis.empty() ? sweep.mpis : settings.mpis;
  const bool has_mpich = std::find(names.begin(), names.end(), "mpich") != names.end();
  if (settings.mpis.empty() && has_mpich && !settings.mpich.empty()) names.push_back(kOurMpich);
  std::vector<Target> targets;
  for (const std::string& name : names)
    targets.push_back(target_of(name, sweep, settings.mpich, context));
  for (const std::string& launch : settings.launches) targets.push_back(parse_launch(launch));

  std::vector<Job> jobs = sweep.jobs(effort);
  std::erase_if(jobs, [&](const Job& job) {
    const std::string label = label_of(job);
    return std::any_of(settings.only.begin(), settings.only.end(), [&](const std::string& word) {
      return label.find(word) == std::string::npos;
    });
  });
  if (jobs.empty()) throw std::runtime_error("no point of " + sweep.name + " fits --only");

  SweepResult result;
  std::vector<std::string> mpis;
  for (auto target = targets.begin(); target != targets.end();) {
    if (fs::exists(target->programs / jobs.front().program)) {
      mpis.push_back((target++)->configuration.name);
      continue;
    }
    std::fprintf(stderr, "bench: %s is left out: no %s in %s (is that MPI installed?)\n",
                 target->configuration.name.c_str(), jobs.front().program.c_str(),
                 target->programs.c_str());
    target = targets.erase(target);
  }
  if (targets.empty()) throw std::runtime_error("no MPI to run " + sweep.name + " with");

  watch_for_interrupts();
  std::size_t begun = 0;
  for (const Job& job : jobs) {
    ++begun;
    for (const Target& target : targets) {
      if (interrupted()) break;
      progress(sweep.name + " " + std::to_string(begun) + "/" + std::to_string(jobs.size()) + ", " +
               target.configuration.name + ", " + label_of(job));
      std::vector<std::string> command = command_of(target, job);
      command.push_back((target.programs / job.program).string());
      command.insert(command.end(), job.arguments.begin(), job.arguments.end());
      for (const std::string& word : {std::string("--json"), std::string("-"),
                                      std::string("--seconds"), format("%g", seconds)}) {
        command.push_back(word);
      }
      if (settings.verify) command.emplace_back("--verify");
      std::vector<Record> got;
      const JobResult end = run_job(command, time_limit(settings), [&](const std::string& line) {
        Record record = Record::parse(line, nullptr, false);
        if (record.is_object()) got.push_back(std::move(record));
      });
      if (interrupted()) break;
      for (Record& record : got) {
        record["commit"] = context.commit;
        record["mpi"] = target.configuration.name;
        record["outcome"] = "ok";
        result.records.push_back(std::move(record));
      }
      if (end.ok && !got.empty()) continue;
      Record failure = environment(sweep.name, context.commit);
      failure.update(job.parameters);
      failure["ranks"] = job.ranks;
      failure["mpi"] = target.configuration.name;
      failure["outcome"] = end.ok ? "error" : outcome_of(end);
      failure["reason"] = end.ok ? "no record" : end.reason;
      result.records.push_back(failure);
      result.failures.push_back(std::move(failure));
    }
  }
  end_progress();
  result.interrupted = interrupted();
  if (result.interrupted) {
    std::fprintf(stderr, "bench: interrupted, nothing written\n");
    return result;
  }

  if (sweep.derive) sweep.derive(result.records);
  write_records(context.output, sweep.name, result.records);
  for (const View& view : sweep.views) {
    const std::vector<Record> shown = view.select ? view.select(result.records) : result.records;
    result.tables += table_text(view, shown, mpis);
    if (!view.plotted) continue;
    const Plot plot = plot_of(view, shown);
    if (plot.panels.empty()) continue;
    const fs::path file =
        context.output / (sweep.name + "-" + std::to_string(result.plots.size() + 1) + ".svg");
    if (write_plot(file, plot)) result.plots.push_back(file);
  }
  for (const std::string& field : sweep.told) {
    std::set<std::string> values;
    for (const Record& record : result.records) {
      const std::string value = text_of(record, field);
      if (!value.empty() && values.insert(value).second) {
        result.tables += field + ": " + value + "\n";
      }
    }
  }
  result.tables += failure_table(result.failures, jobs);
  std::printf("%s", result.tables.c_str());
  std::printf(
      "~: ended by a limit before the confidence asked for\n"
      "%zu records in %s/%s.json and .csv, %zu points without a result\n",
      result.records.size() - result.failures.size(), context.output.c_str(), sweep.name.c_str(),
      result.failures.size());
  std::fflush(stdout);  // before the progress of what follows
  return result;
}

void add_sweep_options(CLI::App& command, SweepSettings& settings) {
  command
      .add_option("--mpi", settings.mpis,
                  "configurations: ob1, tagline, ucx, mpich, oshmem; tagline:QUEUE for a "
                  "structure; mpich-tagline for an MPICH with tagline, taken by itself where "
                  "tools/mpich.sh has built it")
      ->delimiter(',')
      ->check(CLI::IsMember({"ob1", "tagline", "ucx", "mpich", "oshmem", kOurMpich}) |
              CLI::Validator(
                  [](std::string& name) {
                    return name.rfind("tagline:", 0) == 0 ? "" : "not a known configuration";
                  },
                  "tagline:QUEUE"));
  command.add_option("--launch", settings.launches,
                     "another MPI: NAME=FOLDER=COMMAND, the folder with the suite built by it, "
                     "the command with {} for the ranks");
  command
      .add_option("--mpich", settings.mpich, "folder of the MPICHs that tools/mpich.sh has built")
      ->check(CLI::ExistingDirectory);
  command.add_option("--only", settings.only, "points whose name has all these words")
      ->delimiter(',');
  command.add_flag("--full", settings.full, "all points, and longer");
  command.add_flag("--verify", settings.verify, "compare all data received");
  command.add_flag("--strict", settings.strict, "fail if a point has no result");
  command.add_option("--seconds", settings.seconds, "time limit of a point")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--limit", settings.limit,
                  "time limit of a job, seconds: beyond it hangs; up to 10 times as long where "
                  "there is more to do than CPUs")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
}

}  // namespace bench
