// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "match/tagline.h"
#include "tests/support/history.hpp"
#include "tests/support/players.hpp"

namespace tagline::test {

// A call of one of several threads, and what came of it.
struct Call {
  using Time = std::chrono::steady_clock::time_point;
  Operation operation;
  Time begin;  // it took effect at one moment between these two
  Time end;
  int status = 0;
  std::uintptr_t cookie = 0;
  std::vector<std::uintptr_t> dropped = {};  // by a drop, in any order
  std::uint64_t posted = 0;                  // as statistics told
  std::uint64_t unexpected = 0;
};

// What the threads did, each in its order.
using Round = std::vector<std::vector<Call>>;

// Whether the calls can have been made one after the other, in an order that agrees with
// when they began and ended, on a matcher that follows MPI's rules and had `before` in its
// queues; and then left `after`, each queue in any order. Tries every order. Where messages may
// overtake, what a call took decides. others: receives of other contexts that may come and go
// meanwhile, and are in the lengths that statistics told.
//
// Returns "" or what was observed, for a person to read.
std::string explain(const Model& before, const Round& round, const Outcome& after,
                    std::uint64_t others = 0);

}  // namespace tagline::test
