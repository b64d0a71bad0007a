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
  double ns = 0;  // per append + match
  // The same of each round. The structures of a point take turns, and the machine may take twice as
  // long a second later for all that it does: ratios are medians of those of single rounds.
  std::vector<double> rounds;
  std::optional<double> relative_to_l0;  // L0: `linear` on an empty queue, same rounds
  // Medians, of the same structure on an empty queue; where caches are cold.
  std::optional<double> relative_to_cold_empty;
  std::optional<double> ns_max;
  std::optional<double> lines;      // of queue memory, per match
  std::optional<double> all_lines;  // and of the matcher itself

  std::string queue() const { return variant.empty() ? structure : structure + ":" + variant; }
};

// Of a record: the times of all rounds, for ratios; nothing of what is handed over.
constexpr const char* kRoundsField = "samples_ns";
EngineRow engine_row(const Record& record);

// The median of the ratios of those of the same round, as far as both have rounds.
double ratio_by_rounds(const std::vector<double>& times, const std::vector<double>& to);

struct Verdict {
  std::vector<Goal> goals;
  std::set<std::string> in_doubt;  // benchmarks whose times decide what is missed
};
// The first run is of all; the others are of some of its benchmarks, whose medians count then: what
// a run says of a nanosecond depends on where it has its code and data. Rows of other instruction
// sets than best_isa do not count.
Verdict judge(const std::vector<std::vector<EngineRow>>& runs, const std::string& best_isa);

}  // namespace bench
