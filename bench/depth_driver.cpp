// SPDX-License-Identifier: BSD-3-Clause
//
// Runs depth.cpp under every configuration, turn by turn, and reports. A turn is
// one job per configuration; ratios are taken within a turn, so that whatever
// slows the machine for a while slows both sides of a ratio.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "benchmarks.hpp"
#include "library_section.hpp"
#include "mpirun.hpp"
#include "report.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::seconds;

struct Settings {
  int rounds = 0;  // 0: by --quick
  std::vector<std::string> pmls;
  std::vector<std::string> cases;
  std::vector<std::string> caches;
  std::string queue_on;
};

struct Key {
  std::string measure;
  std::string which;
  std::string cache;
  int depth;
  int message_bytes;
  auto operator<=>(const Key&) const = default;
};

// All samples of a point, by turn, so that ratios can be paired.
using Turns = std::map<int, std::vector<double>>;
using Results = std::map<Key, Turns>;

struct Runner {
  Configuration configuration;
  Results results;
  std::string library;  // as the MPI library calls itself
  std::size_t sweep_bytes = 0;
  std::string reason;  // why it was given up, if it was
};

constexpr const char* kBaseline = "ob1";

std::vector<double> all_samples(const Turns& rounds) {
  std::vector<double> all;
  for (const auto& [turn, samples] : rounds) all.insert(all.end(), samples.begin(), samples.end());
  return all;
}

// How much better `ours` is than `base` (> 1: better), one ratio per common turn.
std::optional<Spread> ratio(const Key& key, const Turns& base, const Turns& ours) {
  std::vector<double> ratios;
  for (const auto& [turn, samples] : ours) {
    const auto other = base.find(turn);
    if (other == base.end()) continue;
    const double b = spread_of(other->second).median;
    const double o = spread_of(samples).median;
    ratios.push_back(key.measure == "bandwidth" ? o / b : b / o);
  }
  if (ratios.empty()) return std::nullopt;
  return spread_of(ratios);
}

// Returns what the line was about.
std::string take_line(const std::string& line, int turn, Runner& runner) {
  const Record point = Record::parse(line, nullptr, false);
  if (!point.is_object() || !point.contains("measure")) return "";  // somebody else's words
  if (point["measure"] == "setup") {
    runner.library = point["library"];
    runner.sweep_bytes = point["sweep_bytes"];
    return "";
  }
  const Key key{point["measure"], point["case"], point["cache"], point["depth"],
                point["message_bytes"]};
  const char* const field = key.measure == "bandwidth" ? "samples_mib_per_s" : "samples_us";
  const auto samples = point[field].get<std::vector<double>>();
  if (!samples.empty()) runner.results[key][turn] = samples;
  return key.which + " " + key.cache + " " + std::to_string(key.depth);
}

const char* time_pattern(double us) { return us < 10 ? "%.3f" : us < 100 ? "%.2f" : "%.1f"; }

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

std::string title_of(const std::string& which, const std::string& cache) {
  static const std::map<std::string, std::string> kTitles{
      {"posted", "posted receives ahead"},
      {"unexpected", "unexpected messages ahead"},
      {"any_source", "ANY_SOURCE receives ahead"},
      {"random", "random order"}};
  return kTitles.at(which) + ", " + (cache == "hot" ? "hot" : "caches swept");
}

// ---- reports -----------------------------------------------------------

std::vector<Record> make_records(const std::vector<Runner>& runners, const Record& common,
                                 const Settings& settings, int rounds) {
  std::vector<Record> records;
  const Runner* base = nullptr;
  for (const Runner& runner : runners) {
    if (runner.configuration.name == kBaseline) base = &runner;
  }
  for (const Runner& runner : runners) {
    for (const auto& [key, samples] : runner.results) {
      Record record = common;
      record["mpi_library"] = runner.library;
      record["pml"] = runner.configuration.name;
      record["mca_arguments"] = [&] {
        std::string text;
        for (const std::string& word : runner.configuration.arguments) {
          // A folder of this machine says nothing elsewhere.
          if (word.find('/') != std::string::npos) continue;
          text += (text.empty() ? "" : " ") + word;
        }
        return text;
      }();
      record["ranks"] = 2;
      record["measure"] = key.measure;
      record["case"] = key.which;
      record["cache"] = key.cache;
      const bool both = settings.queue_on == "both" && key.cache == "hot" && key.which != "random";
      record["queue_on"] = both ? "both" : "receiver";
      if (key.cache == "cold") record["cache_sweep_bytes"] = runner.sweep_bytes;
      record["depth_entries"] = key.depth;
      record["message_bytes"] = key.message_bytes;
      const Spread all = spread_of(all_samples(samples));
      record["rounds"] = rounds;
      record["jobs"] = samples.size();
      record["samples"] = all.samples;
      set_spread(record, key.measure == "bandwidth" ? "bandwidth_mib_per_s" : "latency_us", all);
      if (base != nullptr && base->results.contains(key)) {
        if (const auto paired = ratio(key, base->results.at(key), samples)) {
          set_spread(record, "speedup_vs_ob1", *paired);
        }
      }
      records.push_back(std::move(record));
    }
  }
  return records;
}

std::vector<std::string> table_header(const std::vector<Runner>& runners, const std::string& first,
                                      const std::string& unit) {
  std::vector<std::string> header{first};
  for (const Runner& runner : runners) {
    if (!runner.results.empty()) header.push_back(runner.configuration.name + " " + unit);
  }
  for (const Runner& runner : runners) {
    if (runner.results.empty() || runner.configuration.name == kBaseline) continue;
    header.push_back(runner.configuration.name + " vs ob1");
  }
  return header;
}

std::vector<std::string> table_row(const std::vector<Runner>& runners, const std::string& first,
                                   const Key& key) {
  std::vector<std::string> row{first};
  const Turns* base = nullptr;
  for (const Runner& runner : runners) {
    if (runner.results.empty()) continue;
    const auto found = runner.results.find(key);
    if (found == runner.results.end()) {
      row.emplace_back("-");
      continue;
    }
    const Spread all = spread_of(all_samples(found->second));
    row.push_back(spread_cell(all, key.measure == "bandwidth" ? "%.0f" : time_pattern(all.median)));
    if (runner.configuration.name == kBaseline) base = &found->second;
  }
  for (const Runner& runner : runners) {
    if (runner.results.empty() || runner.configuration.name == kBaseline) continue;
    const auto found = runner.results.find(key);
    std::optional<Spread> paired;
    if (base != nullptr && found != runner.results.end()) {
      paired = ratio(key, *base, found->second);
    }
    row.push_back(paired ? spread_cell(*paired, "%.2f") + "x" : "-");
  }
  return row;
}

std::set<Key> all_keys(const std::vector<Runner>& runners) {
  std::set<Key> keys;
  for (const Runner& runner : runners) {
    for (const auto& [key, samples] : runner.results) keys.insert(key);
  }
  return keys;
}

void print_tables(const std::vector<Runner>& runners, const Settings& settings) {
  const std::set<Key> keys = all_keys(runners);
  std::printf(
      "\nMedian (10th .. 90th percentile). \"vs ob1\": time of ob1 / time, or bandwidth / "
      "bandwidth\n"
      "of ob1, paired by turn: above 1 is better than ob1.\n\n");

  Table base("Depth 0: half a round trip of 1 byte, and a stream of 1 MiB messages");
  base.header(table_header(runners, "measure", ""));
  for (const Key& key : keys) {
    if (key.depth != 0 || key.which != "posted" || key.cache != "hot") continue;
    base.row(table_row(
        runners, key.measure == "bandwidth" ? "1 MiB bandwidth, MiB/s" : "1 B latency, us", key));
  }
  std::printf("%s\n", base.text().c_str());

  for (const std::string& cache : settings.caches) {
    for (const std::string& which : settings.cases) {
      Table table(title_of(which, cache) + (which == "random" && cache == "hot"
                                                ? ": us per message"
                                                : ": half a round trip of 1 byte, us"));
      table.header(table_header(runners, which == "random" ? "receives" : "depth", "us"));
      bool any = false;
      for (const Key& key : keys) {
        if (key.measure != "latency" || key.which != which || key.cache != cache) continue;
        table.row(table_row(runners, std::to_string(key.depth), key));
        any = true;
      }
      if (any) std::printf("%s\n", table.text().c_str());
    }
  }
}

Plot make_plot(const std::vector<Runner>& runners, const Settings& settings) {
  Plot plot;
  plot.title = "1-byte message whose match lies behind others in the queue";
  plot.x_label = "entries in the queue";
  plot.y_label = "microseconds";
  plot.columns = settings.cases.size();
  for (const std::string& cache : settings.caches) {
    for (const std::string& which : settings.cases) {
      Panel panel{title_of(which, cache), {}};
      for (const Runner& runner : runners) {
        Series series{runner.configuration.name, {}};
        for (const auto& [key, samples] : runner.results) {
          if (key.measure != "latency" || key.which != which || key.cache != cache) continue;
          const Spread all = spread_of(all_samples(samples));
          series.points.push_back({static_cast<double>(key.depth), all.median, all.low, all.high});
        }
        if (!series.points.empty()) panel.series.push_back(std::move(series));
      }
      plot.panels.push_back(std::move(panel));
    }
  }
  return plot;
}

// ---- the run -----------------------------------------------------------

std::vector<Runner> make_runners(const Context& context, const Settings& settings) {
  std::vector<Runner> runners;
  for (const std::string& pml : settings.pmls) {
    Runner runner;
    if (pml == "ob1") runner.configuration = ob1();
    if (pml == "ucx") runner.configuration = ucx();
    if (pml == "tagline") {
      runner.configuration = tagline(context.components);
      if (!std::filesystem::exists(context.components / "mca_pml_tagline.so")) {
        runner.reason =
            "the component is not built: no mca_pml_tagline.so in " + context.components.string();
      }
    }
    runners.push_back(std::move(runner));
  }
  return runners;
}

int run_depth(const Context& context, Settings settings) {
  int rounds = settings.rounds > 0 ? settings.rounds : context.quick ? 3 : 7;
  const std::string program = (context.programs / "depth").string();
  const std::string depths = context.quick ? "0,64,1024,16384" : "0,1,4,16,64,256,1024,4096,16384";
  const std::vector<std::string> deep{program,          "--no-bandwidth",
                                      "--depths",       depths,
                                      "--cases",        join(settings.cases),
                                      "--caches",       join(settings.caches),
                                      "--budget-ms",    context.quick ? "10" : "30",
                                      "--queue-on",     settings.queue_on,
                                      "--cold-samples", context.quick ? "5" : "9"};
  // Depth 0 decides by a few percent, and a process keeps the luck of its memory
  // layout: many short jobs tell more than a long one.
  const std::vector<std::string> shallow{program,   "--depths",    "0",
                                         "--cases", "posted",      "--caches",
                                         "hot",     "--budget-ms", context.quick ? "10" : "30"};
  const int shallow_jobs = 3;
  const Seconds total{context.quick ? 42 : 340};
  const Seconds limit{context.quick ? 40 : 90};

  watch_for_interrupts();
  std::vector<Runner> runners = make_runners(context, settings);
  LibrarySection library;
  std::string library_reason;
  int turn = 0;  // one job of every configuration; ratios are paired within it
  const auto take_turn = [&](const std::vector<std::string>& arguments, const std::string& where) {
    for (Runner& runner : runners) {
      if (!runner.reason.empty() || interrupted()) continue;
      const std::string label = where + ", " + runner.configuration.name;
      progress(label);
      std::vector<std::string> command = mpirun_command(runner.configuration, 2);
      command.insert(command.end(), arguments.begin(), arguments.end());
      const JobResult job = run_job(command, limit, [&](const std::string& line) {
        const std::string point = take_line(line, turn, runner);
        if (!point.empty()) progress(label + ": " + point);
      });
      if (!job.ok) runner.reason = job.reason;
    }
    ++turn;
  };
  const Clock::time_point start = Clock::now();
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point round_start = Clock::now();
    const std::string where = "round " + std::to_string(round + 1) + "/" + std::to_string(rounds);
    for (int i = 0; i < shallow_jobs; ++i) take_turn(shallow, where + ", depth 0");
    take_turn(deep, where);
    if (library_reason.empty() && !interrupted()) {
      progress(where + ", the library alone");
      library_reason = library.take_turn(context.programs, round);
    }
    // A slow or busy machine gets fewer rounds, not a longer wait; --rounds is obeyed.
    const Clock::time_point end = Clock::now();
    if (settings.rounds == 0 && round + 1 < rounds && end + (end - round_start) - start > total) {
      end_progress();
      std::fprintf(stderr, "bench: the machine is slow or busy, stopped after round %d of %d\n",
                   round + 1, rounds);
      rounds = round + 1;
    }
  }
  end_progress();
  if (interrupted()) {
    std::fprintf(stderr, "bench: interrupted, nothing written\n");
    return 130;
  }

  bool failed = false;
  for (const Runner& runner : runners) {
    if (runner.reason.empty()) continue;
    std::fprintf(stderr, "bench: pml %s is left out: %s\n", runner.configuration.name.c_str(),
                 runner.reason.c_str());
    // UCX does not run everywhere; what the comparison is about has to.
    failed = failed || runner.configuration.name != "ucx";
  }
  if (!library_reason.empty()) {
    std::fprintf(stderr, "bench: the library alone is left out: %s\n", library_reason.c_str());
    library = {};
    failed = true;
  }
  // A configuration that failed under way has no result that counts.
  std::erase_if(runners, [](const Runner& runner) { return !runner.reason.empty(); });

  const Record common = environment("depth", context.commit);
  std::vector<Record> records = make_records(runners, common, settings, rounds);
  library.add_records(common, records);
  if (records.empty()) {
    std::fprintf(stderr, "bench: no configuration ran, nothing written\n");
    return 1;
  }
  print_tables(runners, settings);
  if (!library.empty()) std::printf("%s", library.tables().c_str());
  write_records(context.output, "depth", records);
  failed = !write_plot(context.output / "depth.svg", make_plot(runners, settings)) || failed;
  std::printf("%zu records in %s/depth.json and depth.csv, plot in depth.svg\n", records.size(),
              context.output.c_str());
  return failed ? 1 : 0;
}

}  // namespace

void add_depth(CLI::App& app, Context& context) {
  static Settings settings{0,
                           {"ob1", "ucx", "tagline"},
                           {"posted", "unexpected", "any_source", "random"},
                           {"hot", "cold"},
                           "receiver"};
  CLI::App* const command = app.add_subcommand(
      "depth", "1-byte messages behind deep queues: ob1, ucx and tagline, interleaved");
  command->footer("Every benchmark takes --quick and --output too: ./run bench --help");
  command->add_option("--rounds", settings.rounds, "jobs per configuration")
      ->check(CLI::Range(1, 1000));
  command->add_option("--pmls", settings.pmls, "configurations")
      ->delimiter(',')
      ->check(CLI::IsMember({"ob1", "ucx", "tagline"}))
      ->capture_default_str();
  command->add_option("--cases", settings.cases, "what lies ahead of the match")
      ->delimiter(',')
      ->check(CLI::IsMember({"posted", "unexpected", "any_source", "random"}))
      ->capture_default_str();
  command->add_option("--caches", settings.caches, "hot, or swept before each message")
      ->delimiter(',')
      ->check(CLI::IsMember({"hot", "cold"}))
      ->capture_default_str();
  command
      ->add_option("--queue-on", settings.queue_on,
                   "receiver: half a round trip holds half a search; both: a whole one (hot)")
      ->check(CLI::IsMember({"receiver", "both"}))
      ->capture_default_str();
  command->callback([&context] { context.exit_code = run_depth(context, settings); });
}

}  // namespace bench
