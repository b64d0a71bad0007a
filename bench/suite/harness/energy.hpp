// SPDX-License-Identifier: BSD-3-Clause
//
// Energy from the kernel's powercap counters (RAPL: packages, and memory where it is
// counted apart), where this machine has them and we may read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace suite {

class EnergyMeter {
 public:
  explicit EnergyMeter(bool reads);  // starts at zero
  bool available() const { return !counters_.empty(); }
  double joules() const;  // since the start; negative: not available

  // Why there is none, or the names of the counters.
  static std::string description();

 private:
  struct Counter {
    std::string file;
    std::uint64_t start;  // microjoules
    std::uint64_t wraps_at;
  };
  std::vector<Counter> counters_;
};

}  // namespace suite
