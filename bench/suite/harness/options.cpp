// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>

namespace suite {

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
  app_->add_option(flag, value, help)
      ->check(CLI::Range(least, most))
      ->capture_default_str()
      ->group(group_);
}

void Options::number(const std::string& flag, double& value, double least, double most,
                     const std::string& help) {
  app_->add_option(flag, value, help)
      ->check(CLI::Range(least, most))
      ->capture_default_str()
      ->group(group_);
}

void Options::numbers(const std::string& flag, std::vector<std::uint64_t>& values,
                      std::uint64_t least, std::uint64_t most, const std::string& help) {
  app_->add_option(flag, values, help)
      ->delimiter(',')
      ->check(CLI::Range(least, most))
      ->capture_default_str()
      ->group(group_);
}

void Options::text(const std::string& flag, std::string& value, const std::string& help) {
  app_->add_option(flag, value, help)->capture_default_str()->group(group_);
}

void Options::texts(const std::string& flag, std::vector<std::string>& values,
                    const std::string& help) {
  app_->add_option(flag, values, help)->group(group_);
}

void Options::yes(const std::string& flag, bool& value, const std::string& help) {
  app_->add_flag(flag, value, help)->group(group_);
}

void Options::group(const std::string& title) { group_ = title; }

}  // namespace suite
