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

// Of a number of keys that the compiler knows, so that nothing is counted at run time.
template <class Arch, std::size_t count>
[[gnu::always_inline]] inline std::uint64_t meeting(const std::uint64_t* bits,
                                                    const std::uint64_t* mask,
                                                    std::uint64_t query_bits,
                                                    std::uint64_t query_mask) noexcept {
  std::uint64_t result = 0;
  if constexpr (std::is_same_v<Arch, ScalarArch>) {
    for (std::size_t i = 0; i < count; ++i) {
      const bool meets = ((bits[i] ^ query_bits) & mask[i] & query_mask) == 0;
      result |= std::uint64_t{meets} << i;
    }
  } else {
    using Batch = xsimd::batch<std::uint64_t, Arch>;
    const Batch wanted_bits(query_bits);
    const Batch wanted_mask(query_mask);
#pragma GCC unroll 64
    for (std::size_t i = 0; i < count; i += Batch::size) {
      const auto differs = (Batch::load_aligned(bits + i) ^ wanted_bits) &
                           (Batch::load_aligned(mask + i) & wanted_mask);
      result |= lane_bits(differs == Batch(std::uint64_t{0})) << i;
    }
  }
  return result;
}

template <class Arch>
std::uint64_t meeting(const std::uint64_t* bits, const std::uint64_t* mask, std::size_t count,
                      std::uint64_t query_bits, std::uint64_t query_mask) noexcept {
  if (count == 8) return meeting<Arch, 8>(bits, mask, query_bits, query_mask);
  if (count == 16) return meeting<Arch, 16>(bits, mask, query_bits, query_mask);
  if (count == 32) return meeting<Arch, 32>(bits, mask, query_bits, query_mask);
  return meeting<Arch, 64>(bits, mask, query_bits, query_mask);
}

}  // namespace tagline::simd
