// SPDX-License-Identifier: BSD-3-Clause
// The one body of the fingerprint search, for every word width and instruction
// set. Included by the translation units of the instruction sets and nothing else.
#pragma once

#include "simd/find_lane.hpp"

namespace tagline::simd {

// Lanes whose fingerprint says that they may meet the key.
template <class Arch, int lanes, class Word>
[[gnu::always_inline]] inline LaneMask fingerprint_candidates(
    const FingerprintBlock<Word>& block, int g, const FingerprintKey<Word>& key) noexcept {
  const LaneGroup& group = block.group[g];
  const Word* column = block.fingerprint + g * kGroupLanes;
  const LaneMask wildcards = group.any_source | group.any_tag;
  // Most groups that a search passes have no candidate.
  if (wildcards == 0 && !has_equal_lane<Arch, lanes>(column, key.both)) return 0;
  LaneMask candidates = equal_lanes<Arch, lanes>(column, key.both);
  if (wildcards != 0) {
    // Each kind of lane is compared with what it would have.
    candidates &= ~wildcards;
    candidates |=
        equal_lanes<Arch, lanes>(column, key.tag_only) & group.any_source & ~group.any_tag;
    if (static_cast<std::int64_t>(key.key.bits) >= 0) {  // no tag wildcard takes a negative tag
      candidates |=
          (equal_lanes<Arch, lanes>(column, key.source_only) | group.any_source) & group.any_tag;
    }
  }
  return candidates & group.live;
}

// Fingerprints propose, the key columns decide.
template <class Arch, class Word>
[[gnu::flatten]] LaneHit find_fingerprint(FingerprintBlock<Word>* oldest,
                                          const FingerprintKey<Word>& key,
                                          LaneCounts& counts) noexcept {
  // One line of fingerprints.
  constexpr int kFewLanes = 64 / sizeof(Word);
  return first_hit<kFewLanes>(
      oldest, counts.lanes, [&]<int lanes>(const LaneBlock& lane_block, int g) {
        const auto& block = static_cast<const FingerprintBlock<Word>&>(lane_block);
        LaneMask candidates = fingerprint_candidates<Arch, lanes>(block, g, key);
        if (candidates == 0) return candidates;
        const LaneQuery query(key.key);
        const LaneGroup& group = block.group[g];
        const LaneMask open_source = query.open_source(group);
        const LaneMask open_tag = query.open_tag(group);
        for (; candidates != 0; candidates &= candidates - 1, ++counts.false_positives) {
          const int bit = std::countr_zero(candidates);
          const int lane = g * kGroupLanes + bit;
          if ((block.source[lane] == query.source || (open_source >> bit & 1) != 0) &&
              (block.tag[lane] == query.tag || (open_tag >> bit & 1) != 0)) {
            break;
          }
        }
        return candidates;
      });
}

}  // namespace tagline::simd
