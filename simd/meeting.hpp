// SPDX-License-Identifier: BSD-3-Clause
// The one body of the comparison of keys, instantiated once per instruction set by
// the translation units beside it. Included by nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <xsimd/xsimd.hpp>

#include "simd/find_lane.hpp"

namespace tagline::simd {

// Half a packed key that is a wildcard, in either half.
constexpr std::uint64_t kOpenHalf = 0x80000000u;

// Of a number of keys that the compiler knows, so that nothing is counted at run time. A half meets
// the query if it does not differ, or is open: if the lesser one of both differences is 0.
template <class Arch, bool exact, std::size_t count>
[[gnu::always_inline]] inline std::uint64_t meeting(const std::uint64_t* keys,
                                                    std::uint64_t query_bits,
                                                    std::uint64_t query_mask) noexcept {
  // An open tag meets no negative one: for that, what a tag is compared with to see whether it is
  // open is the negative tag once more, which changes nothing.
  const bool is_negative = query_bits >> 63 != 0;
  const std::uint64_t open = (is_negative ? query_bits >> 32 : kOpenHalf) << 32 | kOpenHalf;
  if constexpr (std::is_same_v<Arch, ScalarArch>) {
    std::uint64_t result = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t differs = (keys[i] ^ query_bits) & query_mask;
      if constexpr (!exact) {
        const std::uint64_t from_open = keys[i] ^ open;
        if (from_open << 32 == 0) differs = differs >> 32 << 32;
        if (from_open >> 32 == 0) differs = differs << 32 >> 32;
      }
      result |= std::uint64_t{differs == 0} << i;
    }
    return result;
  } else {
    using Batch = xsimd::batch<std::uint64_t, Arch>;
    using Halves = xsimd::batch<std::uint32_t, Arch>;
    return compared_lanes<Arch, std::uint64_t, static_cast<int>(count)>([=](int i) {
      const Batch key = Batch::load_aligned(keys + i);
      if constexpr (exact) {
        return (key & Batch(query_mask)) == Batch(query_bits & query_mask);
      } else {
        const Batch differs = (key ^ Batch(query_bits)) & Batch(query_mask);
        const Batch from_open = key ^ Batch(open);
        return xsimd::bitwise_cast<Batch>(xsimd::min(xsimd::bitwise_cast<Halves>(differs),
                                                     xsimd::bitwise_cast<Halves>(from_open))) ==
               Batch(std::uint64_t{0});
      }
    });
  }
}

template <class Arch, bool exact = false>
std::uint64_t meeting(const std::uint64_t* keys, std::size_t count, std::uint64_t query_bits,
                      std::uint64_t query_mask) noexcept {
  if (count == 8) return meeting<Arch, exact, 8>(keys, query_bits, query_mask);
  if (count == 16) return meeting<Arch, exact, 16>(keys, query_bits, query_mask);
  if (count == 32) return meeting<Arch, exact, 32>(keys, query_bits, query_mask);
  return meeting<Arch, exact, 64>(keys, query_bits, query_mask);
}

}  // namespace tagline::simd
