// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "match/matcher.hpp"
#include "match/turns.hpp"

namespace tagline::test {

// Counts what a matcher does for threads that share it.
struct CountedTurns : NoTurns {
  static constexpr bool kNumbersMessages = true;

  void end() noexcept { ++ended; }
  bool numbers_messages() const noexcept { return true; }
  // Every other message finds that there is more to do.
  bool only_numbers(const SideCounts& unexpected) noexcept {
    ++numbered;
    return unexpected.next_sequence % 2 == 0;
  }
  int ended = 0;
  int numbered = 0;
};

}  // namespace tagline::test
