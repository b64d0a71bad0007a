// SPDX-License-Identifier: BSD-3-Clause
// The one body of the lane search, instantiated once per instruction set by the
// translation units beside it. Included by nothing else: code in here is
// compiled with that instruction set's flags.
#pragma once

#include <type_traits>
#include <xsimd/xsimd.hpp>

#include "simd/kernels.hpp"

namespace tagline::simd {

// A key in the form that lanes are compared with. Masks are all or nothing: they
// hold for every lane.
struct LaneQuery {
  [[gnu::always_inline]] explicit LaneQuery(const LaneKey& key) noexcept
      : source(static_cast<std::int32_t>(key.bits)),
        tag(static_cast<std::int32_t>(key.bits >> 32)),
        any_source(all_if(static_cast<std::uint32_t>(key.mask) == 0)),
        any_tag(all_if(key.mask >> 32 == 0x80000000u)),
        user_tag(all_if(tag >= 0)) {}

  // Lanes of a group that meet the key by wildcards alone, for either half.
  LaneMask open_source(const LaneGroup& group) const noexcept {
    return group.any_source | any_source;
  }
  LaneMask open_tag(const LaneGroup& group) const noexcept {
    return (group.any_tag & user_tag) | (any_tag & ~group.negative_tag);
  }

  const std::int32_t source;
  const std::int32_t tag;
  const LaneMask any_source;
  const LaneMask any_tag;
  const LaneMask user_tag;

 private:
  static LaneMask all_if(bool yes) noexcept { return yes ? ~LaneMask{0} : LaneMask{0}; }
};

struct ScalarArch {};  // plain loops: any processor, and the reference for the others

// Comparisons as a bit mask, lane 0 of the first register lowest. xsimd 8 has no portable
// form of it, so the translation unit of each instruction set defines its own, for words of
// 8, 16, 32 and 64 bits: of one register, and of kJoinedRegisters.
template <class Arch, class Word, int registers>
std::uint64_t lane_bits(const xsimd::batch_bool<Word, Arch> (&lanes)[registers]) noexcept;
// Where to narrow the comparisons of some registers to one takes less than to join their bits.
template <class Arch, class Word>
inline constexpr int kJoinedRegisters = 1;

// The same of any number of lanes. compare(lane): the register of comparisons that begins there.
template <class Arch, class Word, int lanes, class Compare>
[[gnu::always_inline]] inline LaneMask compared_lanes(Compare compare) noexcept {
  using Comparison = xsimd::batch_bool<Word, Arch>;
  constexpr int kStep = static_cast<int>(Comparison::size);
  constexpr int kJoined =
      kJoinedRegisters<Arch, Word> * kStep <= lanes ? kJoinedRegisters<Arch, Word> : 1;
  LaneMask mask = 0;
#pragma GCC unroll 32
  for (int lane = 0; lane < lanes; lane += kJoined * kStep) {
    Comparison comparisons[kJoined];
#pragma GCC unroll 8
    for (int i = 0; i < kJoined; ++i) comparisons[i] = compare(lane + i * kStep);
    mask |= lane_bits<Arch, Word>(comparisons) << lane;
  }
  return mask;
}

// One compared register of a column: all lanes that are equal to one value.
template <class Arch, class Word>
[[gnu::always_inline]] inline auto equal_register(const Word* column, Word value) noexcept {
  using Signed = std::make_signed_t<Word>;
  using Batch = xsimd::batch<Signed, Arch>;
  return Batch::load_aligned(reinterpret_cast<const Signed*>(column)) ==
         Batch(static_cast<Signed>(value));
}

// Bit i of the result: lane i of a column's part of that many lanes equals value.
template <class Arch, int lanes, class Word>
[[gnu::always_inline]] inline LaneMask equal_lanes(const Word* column, Word value) noexcept {
  if constexpr (std::is_same_v<Arch, ScalarArch>) {
    LaneMask mask = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      mask |= LaneMask{column[lane] == value} << lane;
    }
    return mask;
  } else {
    return compared_lanes<Arch, std::make_signed_t<Word>, lanes>(
        [=](int lane) { return equal_register<Arch>(column + lane, value); });
  }
}

// Whether any of these does: far less than to tell which.
template <class Arch, int lanes, class Word>
[[gnu::always_inline]] inline bool has_equal_lane(const Word* column, Word value) noexcept {
  if constexpr (std::is_same_v<Arch, ScalarArch>) {
    return equal_lanes<Arch, lanes>(column, value) != 0;
  } else {
    constexpr int kStep = xsimd::batch<std::make_signed_t<Word>, Arch>::size;
    auto equal = equal_register<Arch>(column, value);
#pragma GCC unroll 16
    for (int lane = kStep; lane < lanes; lane += kStep) {
      equal = equal | equal_register<Arch>(column + lane, value);
    }
    return xsimd::any(equal);
  }
}

// The same for lanes where both of two columns are equal to a value each: the
// comparisons meet before they become bits, which costs more than comparing.
template <class Arch, int lanes>
[[gnu::always_inline]] inline LaneMask equal_pairs(const std::int32_t* first,
                                                   std::int32_t first_value,
                                                   const std::int32_t* second,
                                                   std::int32_t second_value) noexcept {
  if constexpr (std::is_same_v<Arch, ScalarArch>) {
    return equal_lanes<Arch, lanes>(first, first_value) &
           equal_lanes<Arch, lanes>(second, second_value);
  } else {
    return compared_lanes<Arch, std::int32_t, lanes>([=](int lane) {
      return equal_register<Arch>(first + lane, first_value) &
             equal_register<Arch>(second + lane, second_value);
    });
  }
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
    for (int g = static_cast<int>(block->first / kGroupLanes); g * kGroupLanes < end; ++g) {
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
[[gnu::flatten]] LaneHit find_lane(LaneBlock* oldest, LaneKey key, LaneCounts& counts) noexcept {
  const LaneQuery query(key);
  return first_hit<kColumnLanes>(
      oldest, counts.lanes, [&query]<int lanes>(const LaneBlock& block, int g) {
        const LaneGroup& group = block.group[g];
        const std::int32_t* source = block.source + g * kGroupLanes;
        const std::int32_t* tag = block.tag + g * kGroupLanes;
        const LaneMask open_source = query.open_source(group);
        const LaneMask open_tag = query.open_tag(group);
        if ((open_source | open_tag) == 0) {
          return equal_pairs<Arch, lanes>(source, query.source, tag, query.tag) & group.live;
        }
        return (equal_lanes<Arch, lanes>(source, query.source) | open_source) &
               (equal_lanes<Arch, lanes>(tag, query.tag) | open_tag) & group.live;
      });
}

}  // namespace tagline::simd
