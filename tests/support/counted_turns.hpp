// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "match/matcher.hpp"
#include "match/turns.hpp"

namespace tagline::test {

// Counts what a matcher does for threads that share it.
struct CountedTurns : NoTurns {
  void end() noexcept { ++ended; }
  void number_message(SideCounts&) noexcept { ++numbered; }
  int ended = 0;
  int numbered = 0;
};

}  // namespace tagline::test
