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
// so the translation unit of each instruction set defines its own.
template <class Arch>
std::uint32_t lane_bits(const xsimd::batch_bool<std::int32_t, Arch>& lanes) noexcept;

// Bit i of the result: lane i of a column equals value.
template <class Arch>
inline std::uint32_t equal_lanes(const std::int32_t* column, std::int32_t value) noexcept {
  if constexpr (std::is_same_v<Arch, ScalarArch>) {
    std::uint32_t mask = 0;
    for (int lane = 0; lane < kColumnLanes; ++lane) {
      mask |= std::uint32_t{column[lane] == value} << lane;
    }
    return mask;
  } else {
    using Batch = xsimd::batch<std::int32_t, Arch>;
    std::uint32_t mask = 0;
    for (int lane = 0; lane < kColumnLanes; lane += static_cast<int>(Batch::size)) {
      const auto equal = Batch::load_aligned(column + lane) == Batch(value);
      mask |= lane_bits<Arch>(equal) << lane;
    }
    return mask;
  }
}

template <class Arch>
LaneHit find_lane(LaneBlock* oldest, const LaneQuery& query) noexcept {
  std::uint32_t passed = 0;
  for (LaneBlock* block = oldest; block != nullptr; block = block->newer, ++passed) {
    // The next block's lines are asked for while this one is compared: a link
    // is followed at the cost of a comparison, not of a cache miss.
    const auto* next = reinterpret_cast<const char*>(block->newer);
    const LaneMask live = block->live;
    const LaneMask open_source = source_is_open(*block, query);
    const LaneMask open_tag = tag_is_open(*block, query);
    const int end = static_cast<int>(block->used);
    // Columns below the oldest live lane hold nothing any more.
    int first = std::countr_zero(live) / kColumnLanes * kColumnLanes;
    for (; first < end; first += kColumnLanes) {
      if (next != nullptr) {
        __builtin_prefetch(next + sizeof(std::int32_t) * first);
        __builtin_prefetch(next + offsetof(LaneBlock, tag) + sizeof(std::int32_t) * first);
      }
      const auto hits = static_cast<std::uint16_t>(
          (live >> first) &
          (equal_lanes<Arch>(block->source + first, query.source) | (open_source >> first)) &
          (equal_lanes<Arch>(block->tag + first, query.tag) | (open_tag >> first)));
      if (hits != 0) return {block, first + std::countr_zero(hits), passed};
    }
  }
  return {nullptr, 0, passed};
}

}  // namespace tagline::simd
