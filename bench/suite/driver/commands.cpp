// SPDX-License-Identifier: BSD-3-Clause
//
// `./run bench NAME` for each benchmark of the suite, and `./run bench all`.
#include <algorithm>
#include <cstdio>

#include "sweep.hpp"

namespace bench {

const std::vector<Sweep>& sweeps() {
  static const std::vector<Sweep> all{rma_mt(),      shmem_mt(),    pingpong(), msgrate(),
                                      tail_queues(), queue_depth(), motifs(),   miniapps(),
                                      structures(),  power()};
  return all;
}

namespace {

// A point that crashes is a result; that nothing at all could be measured is a failure.
int exit_code_of(const SweepResult& result, const SweepSettings& settings) {
  if (result.interrupted) return 130;
  if (settings.strict && !result.failures.empty()) return 1;
  return result.records.size() > result.failures.size() ? 0 : 1;
}

int run_all(const Context& context, const SweepSettings& settings) {
  std::vector<std::pair<const Sweep*, SweepResult>> results;
  int exit_code = 0;
  bool any = false;
  for (const Sweep& sweep : sweeps()) {
    std::printf("\n== %s: %s\n\n", sweep.name.c_str(), sweep.about.c_str());
    try {
      results.emplace_back(&sweep, run_sweep(sweep, settings, context));
    } catch (const std::exception& error) {
      // Not every machine has all of it: the report says so, and the rest goes on.
      std::printf("not measured: %s\n", error.what());
      results.emplace_back(&sweep, SweepResult{});
      results.back().second.tables = std::string("not measured: ") + error.what() + "\n";
      continue;
    }
    any = true;
    exit_code = std::max(exit_code, exit_code_of(results.back().second, settings));
    if (exit_code == 130) return exit_code;
  }
  const std::filesystem::path file = context.output / "report.html";
  write_html(file, context.commit, results);
  std::printf("\nAll of it in one file: %s\n", file.c_str());
  return any ? exit_code : 1;
}

}  // namespace

void add_suite(CLI::App& app, Context& context) {
  static SweepSettings settings;
  for (const Sweep& sweep : sweeps()) {
    CLI::App* const command = app.add_subcommand(sweep.name, sweep.about);
    command->footer("Every benchmark takes --quick and --output too: ./run bench --help");
    add_sweep_options(*command, settings);
    command->callback([&context, &sweep] {
      context.exit_code = exit_code_of(run_sweep(sweep, settings, context), settings);
    });
  }
  CLI::App* const all = app.add_subcommand("all", "the whole suite, and one report in HTML");
  all->footer("Every benchmark takes --quick and --output too: ./run bench --help");
  add_sweep_options(*all, settings);
  all->callback([&context] { context.exit_code = run_all(context, settings); });
  add_agreement(app, context);
}

}  // namespace bench
