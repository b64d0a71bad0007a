// SPDX-License-Identifier: BSD-3-Clause
//
// depth.cpp under two MPICHs, as it is and with tagline in it, in jobs that alternate.
#include <cstdio>

#include "benchmarks.hpp"
#include "depth_report.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;

struct Settings {
  int rounds = 0;    // 0: by --quick
  fs::path mpich;    // folder of the installations `unmodified` and `tagline`
  fs::path program;  // depth.cpp, built with either
};

constexpr int kDeep = 1024;
constexpr int kDeepest = 16384;

Key point(const std::string& which, int depth) { return {"latency", which, "hot", depth, 1}; }

// Time behind `depth` entries, in times of that behind none.
std::optional<Spread> growth(const Runner& runner, const std::string& which, int depth) {
  const auto shallow = runner.results.find(point(which, 0));
  const auto deep = runner.results.find(point(which, depth));
  if (shallow == runner.results.end() || deep == runner.results.end()) return std::nullopt;
  return ratio(deep->first, deep->second, shallow->second);
}

std::vector<Goal> judge(const Comparison& comparison) {
  std::vector<Goal> goals;
  const auto at_most = [&](const std::string& goal, const std::optional<Spread>& value,
                           double limit) {
    goals.push_back(
        value ? Goal{goal, spread_cell(*value, "%.3f"), value->median <= limit ? "yes" : "no"}
              : Goal{goal, "", "not measured"});
  };
  const Runner* const base = comparison.base();
  const Runner* const ours = comparison.find("tagline");
  if (base == nullptr || ours == nullptr) return goals;
  for (const std::string which : {"posted", "unexpected"}) {
    const Key key = point(which, 0);
    std::optional<Spread> slowdown;
    if (base->results.contains(key) && ours->results.contains(key)) {
      slowdown = ratio(key, ours->results.at(key), base->results.at(key));
    }
    at_most(which + ", depth 0: at most 1.03 times the unmodified build", slowdown, 1.03);
  }
  for (const std::string which : {"posted", "unexpected", "any_source"}) {
    at_most(which + ", depth 1024: at most 1.1 times depth 0", growth(*ours, which, kDeep), 1.1);
    at_most(which + ", depth 16384: at most 1.3 times depth 0", growth(*ours, which, kDeepest),
            1.3);
  }
  return goals;
}

int run_mpich(const Context& context, const Settings& settings) {
  const DepthAxes axes{{"posted", "unexpected", "any_source", "random"}, {"hot"}};
  const std::string program = settings.program.string();
  const std::vector<std::string> deep{
      program,       "--no-bandwidth",
      "--depths",    context.quick ? "0,64,1024,16384" : "0,1,4,16,64,256,1000,1024,4096,16384",
      "--cases",     join(axes.cases),
      "--caches",    "hot",
      "--budget-ms", context.quick ? "10" : "30"};
  // Many short jobs, as for Open MPI: depth 0 decides by a few percent.
  const std::vector<std::string> shallow{
      program,       "--no-bandwidth",           "--depths", "0",
      "--cases",     "posted,unexpected",        "--caches", "hot",
      "--budget-ms", context.quick ? "10" : "30"};
  const int shallow_jobs = 3;
  // Three seconds where nothing else runs. A round decides whether there is another one, so the
  // first may take its time.
  const Comparison::Seconds limit{240};

  watch_for_interrupts();
  Comparison comparison({mpich("unmodified", settings.mpich / "unmodified"),
                         mpich("tagline", settings.mpich / "tagline")},
                        "unmodified");
  Rounds rounds(settings.rounds, context.quick ? 3 : 9,
                Comparison::Seconds(context.quick ? 42 : 240));
  while (rounds.next()) {
    for (int i = 0; i < shallow_jobs; ++i) {
      comparison.take_turn(shallow, rounds.label() + ", depth 0", limit);
    }
    comparison.take_turn(deep, rounds.label(), limit);
  }
  end_progress();
  if (interrupted()) {
    std::fprintf(stderr, "bench: interrupted, nothing written\n");
    return 130;
  }
  bool failed = !comparison.finish();
  const std::vector<Record> records =
      comparison.records(environment("mpich", context.commit), [&](Record& record, const Key&) {
        record["device"] = "ch4:ofi, shared memory";
        record["rounds"] = rounds.taken();
      });
  if (records.empty()) {
    std::fprintf(stderr, "bench: no configuration ran, nothing written\n");
    return 1;
  }
  print_depth_tables(comparison, axes);
  std::printf("%s", goal_table("Goals", judge(comparison)).c_str());
  write_records(context.output, "mpich", records);
  failed = !write_plot(context.output / "mpich.svg", depth_plot(comparison, axes)) || failed;
  std::printf("%zu records in %s/mpich.json and mpich.csv, plot in mpich.svg\n", records.size(),
              context.output.c_str());
  return failed ? 1 : 0;
}

}  // namespace

void add_mpich(CLI::App& app, Context& context) {
  static Settings settings;
  CLI::App* const command = app.add_subcommand(
      "mpich", "1-byte messages behind deep queues: MPICH as it is and with tagline, interleaved");
  command->footer("Both are built first (tools/mpich.sh), which takes some minutes once.");
  command->add_option("--rounds", settings.rounds, "rounds of jobs")->check(CLI::Range(1, 1000));
  command->add_option("--mpich", settings.mpich, "folder of the installations")->required();
  command->add_option("--program", settings.program, "depth.cpp, built with MPICH")->required();
  command->callback([&context] { context.exit_code = run_mpich(context, settings); });
}

}  // namespace bench
