// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "benchmarks.hpp"
#include "mpirun.hpp"

namespace bench {

void progress(const std::string& text) {
  if (isatty(STDERR_FILENO)) {
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
  } else {
    // A log keeps every line: one per job is enough, those within a job have a colon.
    if (text.find(':') == std::string::npos) std::fprintf(stderr, "%s\n", text.c_str());
  }
  std::fflush(stderr);
}

void end_progress() {
  if (isatty(STDERR_FILENO)) std::fputs("\r\033[K", stderr);
}

}  // namespace bench

int main(int argc, char** argv) {
  bench::Context context;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  context.programs = self.parent_path();
  context.components = self.parent_path().parent_path() / "lib" / "openmpi";

  CLI::App app{"Benchmarks of tagline beside the matching of other MPI engines"};
  app.name("./run bench");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_flag("--quick", context.quick, "a rough answer within 45 s");
  app.add_option("--output", context.output, "folder for NAME.json, NAME.csv and NAME.svg")
      ->take_last()
      ->capture_default_str();
  app.add_option("--components", context.components, "folder of mca_pml_tagline.so")
      ->take_last()
      ->capture_default_str();
  app.add_option("--commit", context.commit, "goes into every record")
      ->take_last()
      ->capture_default_str();
  bench::add_depth(app, context);
  bench::add_depth_sweep(app, context);
  bench::add_engine(app, context);
  bench::add_mpich(app, context);
  bench::add_hotcache(app, context);
  bench::add_memory(app, context);
  bench::add_pml(app, context);
  bench::add_suite(app, context);
  bench::add_threads(app, context);
  bench::add_mt_rate(app, context);
  const auto list = [&app](std::FILE* to) {
    std::fputs("Known benchmarks:\n", to);
    for (const CLI::App* known : app.get_subcommands({})) {
      std::fprintf(to, "  %-14s %s\n", known->get_name().c_str(), known->get_description().c_str());
    }
  };
  const std::string name = argc > 1 ? argv[1] : "";
  const auto known = app.get_subcommands({});
  const bool unknown = std::none_of(known.begin(), known.end(), [&](const CLI::App* benchmark) {
    return benchmark->get_name() == name;
  });
  if (unknown && !name.empty() && name[0] != '-') {
    std::fprintf(stderr, "bench: there is no benchmark %s\n", name.c_str());
    list(stderr);
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError&) {
    list(stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    bench::end_progress();
    std::fprintf(stderr, "bench: %s\n", error.what());
    return 1;
  }
  return context.exit_code;
}
