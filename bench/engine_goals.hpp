// SPDX-License-Identifier: BSD-3-Clause
//
// What the engine is meant to reach, and whether a run reached it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "report.hpp"

namespace bench {

// A record of the engine benchmark, with what goals ask for.
struct EngineRow {
  std::string benchmark;  // its name
  std::string structure, variant, isa, side, order, keys, holes, cache, operation;
  std::size_t depth = 0;
  int wildcard_percent = 0;
  // Of the quietest round: what else runs on the machine only ever adds, so ratios
  // of hot times are taken between these.
  double ns_low = 0;
  double ns = 0;                         // per append + match
  std::optional<double> relative_to_l0;  // L0: `linear` on an empty queue, same run
  // Medians, of the same structure on an empty queue; where caches are cold.
  std::optional<double> relative_to_cold_empty;
  std::optional<double> ns_max;
  std::optional<double> lines;      // of queue memory, per match
  std::optional<double> all_lines;  // and of the matcher itself

  std::string queue() const { return variant.empty() ? structure : structure + ":" + variant; }
};

EngineRow engine_row(const Record& record);

struct Verdict {
  std::vector<Goal> goals;
  std::set<std::string> in_doubt;  // benchmarks whose times decide what is missed
};
// The first run is of all; the others are of some of its benchmarks, whose medians count then: what
// a run says of a nanosecond depends on where it has its code and data. Rows of other instruction
// sets than best_isa do not count.
Verdict judge(const std::vector<std::vector<EngineRow>>& runs, const std::string& best_isa);

}  // namespace bench
