// SPDX-License-Identifier: BSD-3-Clause
//
// Options of a program, as CLI11 understands them. A small face, so that the many
// programs that have options do not each compile the library that parses them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace bench {

// Every option keeps the value it has as its default, and --help tells it. Lists are separated by
// commas.
class Options {
 public:
  Options(const std::string& name, const std::string& about);
  ~Options();

  void choice(const std::string& flag, std::string& value, const std::vector<std::string>& known,
              const std::string& help);
  void choices(const std::string& flag, std::vector<std::string>& values,
               const std::vector<std::string>& known, const std::string& help);
  void number(const std::string& flag, int& value, int least, int most, const std::string& help);
  void number(const std::string& flag, std::uint64_t& value, std::uint64_t least,
              std::uint64_t most, const std::string& help);
  void number(const std::string& flag, double& value, double least, double most,
              const std::string& help);
  void numbers(const std::string& flag, std::vector<int>& values, int least, int most,
               const std::string& help);
  void numbers(const std::string& flag, std::vector<std::uint64_t>& values, std::uint64_t least,
               std::uint64_t most, const std::string& help);
  void text(const std::string& flag, std::string& value, const std::string& help);
  void list(const std::string& flag, std::vector<std::string>& values, const std::string& help);
  // Each in a word of its own, or behind a flag of its own.
  void texts(const std::string& flag, std::vector<std::string>& values, const std::string& help);
  void yes(const std::string& flag, bool& value, const std::string& help);
  void group(const std::string& title);  // of the options that follow

  // The exit status of a program that is to end: --help is all that was wanted, or something was
  // not understood. Both have been told.
  std::optional<int> parse(int argc, char** argv);

  CLI::App& app() { return *app_; }

 private:
  std::unique_ptr<CLI::App> app_;
  std::string group_;
};

}  // namespace bench
