// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>

namespace bench {
namespace {

template <class Value>
CLI::Option* add_number(CLI::App& app, const std::string& flag, Value& value, auto least, auto most,
                        const std::string& help) {
  return app.add_option(flag, value, help)->check(CLI::Range(least, most))->capture_default_str();
}

}  // namespace

Options::Options(const std::string& name, const std::string& about)
    : app_(std::make_unique<CLI::App>(about, name)), group_("Options") {}
Options::~Options() = default;

void Options::choice(const std::string& flag, std::string& value,
                     const std::vector<std::string>& known, const std::string& help) {
  app_->add_option(flag, value, help)
      ->check(CLI::IsMember(known))
      ->capture_default_str()
      ->group(group_);
}

void Options::choices(const std::string& flag, std::vector<std::string>& values,
                      const std::vector<std::string>& known, const std::string& help) {
  app_->add_option(flag, values, help)
      ->delimiter(',')
      ->check(CLI::IsMember(known))
      ->capture_default_str()
      ->group(group_);
}

void Options::number(const std::string& flag, int& value, int least, int most,
                     const std::string& help) {
  add_number(*app_, flag, value, least, most, help)->group(group_);
}
void Options::number(const std::string& flag, std::uint64_t& value, std::uint64_t least,
                     std::uint64_t most, const std::string& help) {
  add_number(*app_, flag, value, least, most, help)->group(group_);
}
void Options::number(const std::string& flag, double& value, double least, double most,
                     const std::string& help) {
  add_number(*app_, flag, value, least, most, help)->group(group_);
}

void Options::numbers(const std::string& flag, std::vector<int>& values, int least, int most,
                      const std::string& help) {
  add_number(*app_, flag, values, least, most, help)->delimiter(',')->group(group_);
}
void Options::numbers(const std::string& flag, std::vector<std::uint64_t>& values,
                      std::uint64_t least, std::uint64_t most, const std::string& help) {
  add_number(*app_, flag, values, least, most, help)->delimiter(',')->group(group_);
}

void Options::text(const std::string& flag, std::string& value, const std::string& help) {
  app_->add_option(flag, value, help)->capture_default_str()->group(group_);
}

void Options::list(const std::string& flag, std::vector<std::string>& values,
                   const std::string& help) {
  app_->add_option(flag, values, help)->delimiter(',')->group(group_);
}

void Options::texts(const std::string& flag, std::vector<std::string>& values,
                    const std::string& help) {
  app_->add_option(flag, values, help)->group(group_);
}

void Options::yes(const std::string& flag, bool& value, const std::string& help) {
  app_->add_flag(flag, value, help)->group(group_);
}

void Options::group(const std::string& title) { group_ = title; }

std::optional<int> Options::parse(int argc, char** argv) try {
  app_->parse(argc, argv);
  return std::nullopt;
} catch (const CLI::ParseError& error) {
  return app_->exit(error);
}

}  // namespace bench
