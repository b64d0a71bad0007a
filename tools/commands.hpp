// SPDX-License-Identifier: BSD-3-Clause
//
// The commands behind `tagline NAME`. Each is one function that adds its subcommand, and one
// line in main.cpp.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tagline::tools {

// What to do about it belongs into the sentence. Ends the command with exit status 1.
using Error = std::runtime_error;

struct Context {
  std::filesystem::path libraries;   // lib/tagline: recorders and helper programs
  std::filesystem::path components;  // lib/openmpi: the component
  int exit_code = 0;
};

void add_info(CLI::App& app, Context& context);
void add_record(CLI::App& app, Context& context);
void add_replay(CLI::App& app, Context& context);
void add_report(CLI::App& app, Context& context);
void add_simulate(CLI::App& app, Context& context);
void add_tune(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);

// Empty if it is a command; else a sentence, with the one that was probably meant.
std::string unknown_command(const CLI::App& app, const std::string& word);

// A line on stderr that replaces itself on a terminal; elsewhere nothing is said.
void progress(const std::string& text);
void progress_bar(const std::string& text, double done);  // 0 to 1
void end_progress();

// Runs a program and hands over its stdout. Throws Error if it cannot or fails.
std::string output_of(const std::vector<std::string>& command);

}  // namespace tagline::tools
