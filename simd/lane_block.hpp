// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tagline::simd {

inline constexpr int kColumnLanes = 16;  // lanes of one column: one 64-byte line of int32
inline constexpr int kColumns = 4;       // columns of one block
inline constexpr int kLanes = kColumns * kColumnLanes;
using LaneMask = std::uint64_t;  // bit i: lane i
static_assert(kLanes == 64, "a LaneMask covers one block");

// Up to 64 entries of one queue as kernels see them: four columns of 16 lanes
// for sources, four for tags, and what a wildcard needs as masks beside them.
//
//   line 0     links and masks
//   line 1-4   source   16 lanes a line
//   line 5-8   tag      16 lanes a line
//
// Invariant: lanes fill upwards and blocks are linked oldest first, so the
// lowest set bit of the first block with a hit is the oldest entry that fits.
struct alignas(64) LaneBlock {
  LaneBlock* newer;
  LaneBlock* older;
  LaneMask live;        // lane holds an entry
  LaneMask any_source;  // lane insists on no source
  LaneMask any_tag;     // lane insists on no tag, only on tag >= 0
  LaneMask user_tag;    // lane's tag is >= 0, so a tag wildcard may take it
  std::uint32_t used;   // lanes handed out, 0..64; live ones lie below
  std::uint32_t count;  // live lanes
  alignas(64) std::int32_t source[kLanes];
  alignas(64) std::int32_t tag[kLanes];
};
static_assert(offsetof(LaneBlock, source) == 64, "links and masks are one line");

// What a search looks for. Masks are all or nothing: they hold for every lane.
struct LaneQuery {
  std::int32_t source;
  std::int32_t tag;
  LaneMask any_source;
  LaneMask any_tag;
  LaneMask user_tag;
};

// Where the oldest fitting entry lies; block is nullptr if there is none.
struct LaneHit {
  LaneBlock* block;
  int lane;
  std::uint32_t blocks_passed;  // whole blocks searched in vain
};

// Lanes of a block that meet the query by wildcards alone, for either half.
inline LaneMask source_is_open(const LaneBlock& block, const LaneQuery& query) noexcept {
  return block.any_source | query.any_source;
}
inline LaneMask tag_is_open(const LaneBlock& block, const LaneQuery& query) noexcept {
  return (block.any_tag & query.user_tag) | (query.any_tag & block.user_tag);
}

}  // namespace tagline::simd
