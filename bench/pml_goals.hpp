// SPDX-License-Identifier: BSD-3-Clause
//
// What the Open MPI component is meant to reach, and whether a run reached it.
#pragma once

#include <vector>

#include "comparison.hpp"

namespace bench {

// streams and tcp: stream.cpp over vader and tcp; queues: depth.cpp; programs: whole
// applications. Each may be empty: its goals are then not measured.
std::vector<Goal> judge_pml(const Comparison& streams, const Comparison& queues,
                            const Comparison& programs, const Comparison& tcp);

}  // namespace bench
