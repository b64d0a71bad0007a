// SPDX-License-Identifier: BSD-3-Clause
// Lists of blocks for kernels to search, and what a hit is by definition.
#pragma once

#include <bit>
#include <cstdint>
#include <random>

#include "simd/kernels.hpp"

namespace tagline::simd {

inline constexpr int kBlocks = 3;

// A list of blocks with random entries, holes and wildcards in one of several shapes.
template <class Block>
void fill(Block* blocks, std::mt19937_64& random, int round) {
  const auto sparse = [&] { return random() & random() & random(); };
  const bool wildcards = round % 2 == 0;
  const int most = round % 5 == 0 ? 20 : kLanes;
  for (int b = 0; b < kBlocks; ++b) {
    Block& block = blocks[b];
    block.newer = b + 1 < kBlocks ? &blocks[b + 1] : nullptr;
    block.used = static_cast<std::uint32_t>(random() % static_cast<unsigned>(most + 1));
    block.first = block.used;
    for (int g = 0; g < kGroups; ++g) {
      const int handed_out = static_cast<int>(block.used) - g * kGroupLanes;
      const LaneMask lanes = handed_out <= 0            ? 0
                             : handed_out < kGroupLanes ? (LaneMask{1} << handed_out) - 1
                                                        : ~LaneMask{0};
      LaneGroup& group = block.group[g];
      group.live = (round % 3 == 0 ? sparse() : random()) & lanes;
      group.any_source = wildcards ? sparse() & lanes : 0;
      group.any_tag = wildcards ? sparse() & lanes : 0;
      group.negative_tag = 0;
      if (group.live != 0 && block.first == block.used) {
        block.first = static_cast<unsigned>(g * kGroupLanes + std::countr_zero(group.live));
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      // What a lane does not insist on is zero.
      LaneGroup& group = block.group[lane / kGroupLanes];
      const LaneMask bit = LaneMask{1} << lane % kGroupLanes;
      block.source[lane] = (group.any_source & bit) != 0 ? 0 : static_cast<int>(random() % 40);
      block.tag[lane] = (group.any_tag & bit) != 0 ? 0 : static_cast<int>(random() % 40) - 5;
      if (block.tag[lane] < 0) group.negative_tag |= bit;
    }
  }
}

inline bool has(LaneMask mask, int lane) { return (mask >> lane % kGroupLanes & 1) != 0; }

inline bool meets(const LaneBlock& block, int lane, const LaneKey& key) {
  const LaneGroup& group = block.group[lane / kGroupLanes];
  const std::uint64_t bits = static_cast<std::uint64_t>(static_cast<std::uint32_t>(block.tag[lane]))
                                 << 32 |
                             static_cast<std::uint32_t>(block.source[lane]);
  const std::uint64_t mask =
      (has(group.any_source, lane) ? 0 : 0xffffffffu) |
      (has(group.any_tag, lane) ? std::uint64_t{1} << 63 : std::uint64_t{0xffffffffu} << 32);
  return has(group.live, lane) && ((bits ^ key.bits) & mask & key.mask) == 0;
}

// A key with or without wildcards.
inline LaneKey lane_key(int source, int tag, bool any_source, bool any_tag) {
  LaneKey key = {0, 0};
  if (!any_source) {
    key.bits = static_cast<std::uint32_t>(source);
    key.mask = 0xffffffffu;
  }
  if (any_tag) {
    key.mask |= std::uint64_t{1} << 63;
  } else {
    key.bits |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(tag)) << 32;
    key.mask |= std::uint64_t{0xffffffffu} << 32;
  }
  return key;
}

// The first lane that the condition holds for, looked at one by one.
template <class Condition>
LaneHit first_lane(LaneBlock* oldest, std::uint64_t& searched, Condition condition) {
  LaneBlock* older = nullptr;
  for (LaneBlock* block = oldest; block != nullptr; older = block, block = block->newer) {
    for (unsigned lane = block->first; lane < block->used; ++lane) {
      ++searched;
      if (condition(*block, static_cast<int>(lane))) return {older, static_cast<int>(lane)};
    }
  }
  return {};
}

}  // namespace tagline::simd
