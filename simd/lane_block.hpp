// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tagline::simd {

inline constexpr int kColumnLanes = 16;  // int32 lanes of one 64-byte line
inline constexpr int kGroupLanes = 64;   // lanes that one mask covers
inline constexpr int kGroups = 4;
inline constexpr int kLanes = kGroups * kGroupLanes;
using LaneMask = std::uint64_t;  // bit i: lane i of a group

// What a wildcard needs, as masks beside the columns.
struct LaneGroup {
  LaneMask live;          // lane holds an entry
  LaneMask any_source;    // lane insists on no source
  LaneMask any_tag;       // lane insists on no tag, only on tag >= 0
  LaneMask negative_tag;  // lane's tag is negative, so no tag wildcard may take it
};

// Up to 256 entries of one queue as kernels see them: a column of sources and one
// of tags, in four groups.
//
//   line 0       link, counts and the masks of the first group
//   line 1-2     masks of the other groups
//   line 3-18    source   16 lanes a line
//   line 19-34   tag      16 lanes a line
//
// So few entries are found with three lines, and of many the columns are long
// enough that following a link costs nothing beside comparing them.
//
// Invariant: lanes fill upwards and blocks are linked oldest first, so the
// lowest hit of the first block with a hit is the oldest entry that fits.
struct alignas(64) LaneBlock {
  LaneBlock* newer;
  std::uint32_t first;  // live lanes lie in [first, used); first is live if any is
  std::uint32_t used;   // lanes handed out
  std::uint32_t count;  // live lanes
  LaneGroup group[kGroups];
  alignas(64) std::int32_t source[kLanes];
  alignas(64) std::int32_t tag[kLanes];
};
static_assert(offsetof(LaneBlock, group) + sizeof(LaneGroup) <= 64,
              "the first group's masks share the line of the link");

// A lane block with a short fingerprint of each lane's source and tag beside it.
// A wildcard lane has the fingerprint of what it does insist on.
template <class Word>
struct FingerprintBlock : LaneBlock {
  alignas(64) Word fingerprint[kLanes];
};

// What a search looks for: source in the lower and tag in the upper half of the
// bits, of which it insists on those in the mask. That is all of them, none of the
// source (any source), or of the tag only the sign, to be clear (any tag).
struct LaneKey {
  std::uint64_t bits;
  std::uint64_t mask;
};

// The same for fingerprints. Such a key has no wildcards: half a key has no fingerprint.
template <class Word>
struct FingerprintKey {
  LaneKey key;
  Word both;         // of source and tag: what an exact lane has
  Word source_only;  // what a lane with any tag has
  Word tag_only;     // what a lane with any source has
};

inline constexpr int kNoLane = -1;

// Where the oldest fitting entry lies: a lane of the block behind `older`, or of
// the first block searched. Two registers; lane is kNoLane if there is none.
struct LaneHit {
  LaneBlock* older = nullptr;
  int lane = kNoLane;
};

// What a search adds up.
struct LaneCounts {
  std::uint64_t lanes = 0;            // searched
  std::uint64_t false_positives = 0;  // equal fingerprints of unequal keys
};

}  // namespace tagline::simd
