// SPDX-License-Identifier: BSD-3-Clause
//
// Runs depth.cpp under every configuration, turn by turn, and reports.
#include <cstdio>

#include "benchmarks.hpp"
#include "depth_report.hpp"
#include "library_section.hpp"

namespace bench {
namespace {

struct Settings {
  int rounds = 0;  // 0: by --quick
  std::vector<std::string> pmls;
  DepthAxes axes;
  std::string queue_on;
};

int run_depth(const Context& context, const Settings& settings) {
  const std::string program = (context.programs / "depth").string();
  const std::string depths = context.quick ? "0,64,1024,16384" : "0,1,4,16,64,256,1024,4096,16384";
  const std::vector<std::string> deep{program,          "--no-bandwidth",
                                      "--depths",       depths,
                                      "--cases",        join(settings.axes.cases),
                                      "--caches",       join(settings.axes.caches),
                                      "--budget-ms",    context.quick ? "10" : "30",
                                      "--queue-on",     settings.queue_on,
                                      "--cold-samples", context.quick ? "5" : "9"};
  // Depth 0 decides by a few percent, and a process keeps the luck of its memory
  // layout: many short jobs tell more than a long one.
  const std::vector<std::string> shallow{program,   "--depths",    "0",
                                         "--cases", "posted",      "--caches",
                                         "hot",     "--budget-ms", context.quick ? "10" : "30"};
  const int shallow_jobs = 3;
  const int library_jobs = 5;
  const Comparison::Seconds limit{context.quick ? 40 : 90};

  watch_for_interrupts();
  Comparison comparison(context, settings.pmls);
  LibrarySection library;
  std::string library_reason;
  Rounds rounds(settings.rounds, context.quick ? 3 : 7,
                Comparison::Seconds(context.quick ? 42 : 340));
  while (rounds.next()) {
    const std::string where = rounds.label();
    for (int i = 0; i < shallow_jobs; ++i) {
      comparison.take_turn(shallow, where + ", depth 0", limit);
    }
    comparison.take_turn(deep, where, limit);
    progress(where + ", the library alone");
    for (int i = 0; i < library_jobs && library_reason.empty() && !interrupted(); ++i) {
      library_reason = library.take_turn(context.programs);
    }
  }
  end_progress();
  if (interrupted()) {
    std::fprintf(stderr, "bench: interrupted, nothing written\n");
    return 130;
  }

  bool failed = !comparison.finish();
  if (!library_reason.empty()) {
    std::fprintf(stderr, "bench: the library alone is left out: %s\n", library_reason.c_str());
    library = {};
    failed = true;
  }
  const Record common = environment("depth", context.commit);
  std::vector<Record> records = comparison.records(common, [&](Record& record, const Key& key) {
    const bool both = settings.queue_on == "both" && key.cache == "hot" && key.which != "random";
    record["queue_on"] = both ? "both" : "receiver";
    record["rounds"] = rounds.taken();
  });
  library.add_records(common, records);
  if (records.empty()) {
    std::fprintf(stderr, "bench: no configuration ran, nothing written\n");
    return 1;
  }
  print_depth_tables(comparison, settings.axes);
  if (!library.empty()) std::printf("%s", library.tables().c_str());
  write_records(context.output, "depth", records);
  failed =
      !write_plot(context.output / "depth.svg", depth_plot(comparison, settings.axes)) || failed;
  std::printf("%zu records in %s/depth.json and depth.csv, plot in depth.svg\n", records.size(),
              context.output.c_str());
  return failed ? 1 : 0;
}

}  // namespace

void add_depth(CLI::App& app, Context& context) {
  static Settings settings{0,
                           {"ob1", "ucx", "tagline"},
                           {{"posted", "unexpected", "any_source", "random"}, {"hot", "cold"}},
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
  command->add_option("--cases", settings.axes.cases, "what lies ahead of the match")
      ->delimiter(',')
      ->check(CLI::IsMember({"posted", "unexpected", "any_source", "any_tag", "mixed", "random"}))
      ->capture_default_str();
  command->add_option("--caches", settings.axes.caches, "hot, or swept before each message")
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
