// SPDX-License-Identifier: BSD-3-Clause
// What a user can see of the queues while a program runs and when it ends: MPI_T performance
// variables, Open MPI's dump of a communicator, and a report of what was left over.
#pragma once

#include <chrono>

#include "communicator.hpp"
#include "compat.h"
#include "plugin.hpp"

namespace tagline::pml {

// Registers every variable twice: bound to a communicator, and as a total of the process.
void register_variables();

// Communicators come and go; the totals go on counting what they did.
void observe(CommunicatorState& state);
// Reports what is left in the queues if that was asked for. Nothing was taken out of them yet.
void stop_observing(CommunicatorState& state);
// At the end, for communicators that are never freed because receives still refer to them.
void report_leftovers();

extern "C" int tagline_dump(ompi_communicator_t* comm, int verbose);

// Adds the time from here to its end to the communicator's for searches of that side, if the user
// asked for match times.
class MatchTimer {
 public:
  MatchTimer(CommunicatorState& state, tagline_side side)
      : total_(plugin.parameters.match_time ? &state.match_nanoseconds[side] : nullptr) {
    if (total_ != nullptr) [[unlikely]]
      start_ = std::chrono::steady_clock::now();
  }
  ~MatchTimer() {
    if (total_ != nullptr) [[unlikely]] {
      const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - start_;
      // relaxed: a number to read, nothing follows from it.
      total_->fetch_add(static_cast<std::uint64_t>(time.count()), std::memory_order_relaxed);
    }
  }
  MatchTimer(const MatchTimer&) = delete;
  MatchTimer& operator=(const MatchTimer&) = delete;

 private:
  std::atomic<std::uint64_t>* total_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace tagline::pml
