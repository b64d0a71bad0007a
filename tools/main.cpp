// SPDX-License-Identifier: BSD-3-Clause
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "commands.hpp"
#include "match/tagline.h"

int main(int argc, char** argv) {
  using namespace tagline::tools;
  Context context;
  const std::filesystem::path root =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  // As built, else as installed.
  context.libraries = root / "lib" / "tagline";
  if (!std::filesystem::exists(context.libraries)) {
    context.libraries = root / TAGLINE_LIBDIR / "tagline";
  }
  context.components = context.libraries.parent_path() / "openmpi";

  CLI::App app{
      "tagline: does matching hurt my MPI program, and what would help?\n"
      "\n"
      "  tagline record -o run1 -- mpirun -n 4 ./app     what did it post, send and receive?\n"
      "  tagline replay run1                             what would another structure cost?\n"
      "  tagline report run1 -o run1.html                all that on one page, with charts\n"
      "  tagline simulate halo3d --ranks 262144          how long do lists become at scale?\n"
      "  tagline tune                                    what is best on this machine?\n"};
  app.name("tagline");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("tagline ") + tagline_version());
  app.footer(
      "Exit status: 0 done, 1 failed (a sentence says why), 2 wrong usage; of record that of what\n"
      "it starts, of tune 130 if it was interrupted.\n"
      "`tagline COMMAND --help` has examples.");
  add_record(app, context);
  add_replay(app, context);
  add_report(app, context);
  add_simulate(app, context);
  add_tune(app, context);
  add_info(app, context);
  add_completion(app, context);
  if (argc > 1 && argv[1][0] != '-') {
    if (const std::string sentence = unknown_command(app, argv[1]); !sentence.empty()) {
      std::fprintf(stderr, "tagline: %s\n", sentence.c_str());
      return 2;
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    end_progress();
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    end_progress();
    std::fprintf(stderr, "tagline: %s\n", error.what());
    return 1;
  }
  return context.exit_code;
}
