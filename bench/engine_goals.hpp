// SPDX-License-Identifier: BSD-3-Clause
//
// What the engine is meant to reach, and whether a run reached it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report.hpp"

namespace bench {

// A record of the engine benchmark, with what goals ask for.
struct EngineRow {
  std::string structure, variant, isa, side, order, keys, holes, cache, operation;
  std::size_t depth = 0;
  int wildcard_percent = 0;
  // Of the quietest round: what else runs on the machine only ever adds, so ratios
  // of hot times are taken between these.
  double ns_low = 0;
  double ns = 0;                         // per append + match
  std::optional<double> relative_to_l0;  // L0: `linear` on an empty queue, same run
  std::optional<double> ns_max;
  std::optional<double> lines;      // of queue memory, per match
  std::optional<double> all_lines;  // and of the matcher itself

  std::string queue() const { return variant.empty() ? structure : structure + ":" + variant; }
};

EngineRow engine_row(const Record& record);

// rows: of one run; those of other instruction sets than best_isa do not count.
std::vector<Goal> judge(const std::vector<EngineRow>& rows, const std::string& best_isa);

}  // namespace bench
