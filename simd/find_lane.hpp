// SPDX-License-Identifier: BSD-3-Clause
// The one body of the lane search, instantiated once per instruction set by the
// translation units beside it. Included by nothing else: code in here is
// compiled with that instruction set's flags.
#pragma once

#include <type_traits>
#include <xsimd/xsimd.hpp>

#include "simd/kernels.hpp"

namespace tagline::simd {

struct ScalarArch {};  // plain loops: any processor, and the reference for the others

// A comparison as a bit mask, lane 0 lowest. xsimd 8 has no portable form of it,
// so the translation unit of each instruction set defines its own, for words of
// 8, 16 and 32 bits.
template <class Arch, class Word>
std::uint64_t lane_bits(const xsimd::batch_bool<Word, Arch>& lanes) noexcept;

// Bit i of the result: lane i of a column's part of that many lanes equals value.
template <class Arch, int lanes, class Word>
[[gnu::always_inline]] inline LaneMask equal_lanes(const Word* column, Word value) noexcept {
  LaneMask mask = 0;
  if constexpr (std::is_same_v<Arch, ScalarArch>) {
    for (int lane = 0; lane < lanes; ++lane) {
      mask |= LaneMask{column[lane] == value} << lane;
    }
  } else {
    using Signed = std::make_signed_t<Word>;
    using Batch = xsimd::batch<Signed, Arch>;
    const auto* words = reinterpret_cast<const Signed*>(column);
    const Batch wanted(static_cast<Signed>(value));
#pragma GCC unroll 16
    for (int lane = 0; lane < lanes; lane += static_cast<int>(Batch::size)) {
      mask |= lane_bits<Arch, Signed>(Batch::load_aligned(words + lane) == wanted) << lane;
    }
  }
  return mask;
}

// The lowest hit of the first group that has any, from `oldest` on along `newer`.
// hits.operator()<lanes>(block, g): the hits among that many lanes of group g.
template <int few_lanes, class Hits>
[[gnu::always_inline]] inline LaneHit first_hit(LaneBlock* oldest, std::uint64_t& searched,
                                                Hits hits) noexcept {
  LaneBlock* older = nullptr;
  std::uint64_t passed = 0;
  for (LaneBlock* block = oldest; block != nullptr; older = block, block = block->newer) {
    const int first = static_cast<int>(block->first);
    const int end = static_cast<int>(block->used);
    for (int g = first / kGroupLanes; g * kGroupLanes < end; ++g) {
      // A short queue is worth a short comparison.
      const LaneMask found = end - g * kGroupLanes <= few_lanes
                                 ? hits.template operator()<few_lanes>(*block, g)
                                 : hits.template operator()<kGroupLanes>(*block, g);
      if (found != 0) {
        const int lane = g * kGroupLanes + std::countr_zero(found);
        searched += passed + static_cast<unsigned>(lane - first) + 1;
        return {older, lane};
      }
    }
    passed += static_cast<unsigned>(end - first);
  }
  searched += passed;
  return {};
}

template <class Arch>
LaneHit find_lane(LaneBlock* oldest, const LaneQuery& query, LaneCounts& counts) noexcept {
  return first_hit<kColumnLanes>(
      oldest, counts.lanes, [&query]<int lanes>(const LaneBlock& block, int g) {
        const LaneGroup& group = block.group[g];
        const int lane = g * kGroupLanes;
        return group.live &
               (equal_lanes<Arch, lanes>(block.source + lane, query.source) |
                source_is_open(group, query)) &
               (equal_lanes<Arch, lanes>(block.tag + lane, query.tag) | tag_is_open(group, query));
      });
}

}  // namespace tagline::simd
