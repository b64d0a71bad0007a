// SPDX-License-Identifier: BSD-3-Clause
//
// What a compute phase does to the caches: a buffer that is written from end to end.
#pragma once

#include <cstddef>
#include <vector>

namespace suite {

class CacheSweep {
 public:
  explicit CacheSweep(std::size_t bytes) : memory_(bytes) {}
  void operator()() {
    volatile char* const line = memory_.data();
    for (std::size_t i = 0; i < memory_.size(); i += 64) line[i] = line[i] + 1;
  }

 private:
  std::vector<char> memory_;
};

}  // namespace suite
