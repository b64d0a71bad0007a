// SPDX-License-Identifier: BSD-3-Clause
//
// The benchmarks behind `./run bench NAME`. Each is one function that adds its
// subcommand, and one line in driver.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

namespace bench {

// What all benchmarks get from the command line.
struct Context {
  bool quick = false;
  std::filesystem::path output = "out";  // NAME.json, NAME.csv, NAME.svg go here
  std::filesystem::path programs;        // built beside the driver
  std::filesystem::path components;      // folder of tagline's Open MPI component
  std::string commit = "unknown";
  int exit_code = 0;
};

// Line on stderr that replaces itself on a terminal.
void progress(const std::string& text);
void end_progress();

void add_depth(CLI::App& app, Context& context);
void add_depth_sweep(CLI::App& app, Context& context);
void add_engine(CLI::App& app, Context& context);
void add_mpich(CLI::App& app, Context& context);
void add_hotcache(CLI::App& app, Context& context);
void add_memory(CLI::App& app, Context& context);
void add_pml(CLI::App& app, Context& context);
void add_suite(CLI::App& app, Context& context);
void add_mt_rate(CLI::App& app, Context& context);
void add_threads(CLI::App& app, Context& context);

}  // namespace bench
