// SPDX-License-Identifier: BSD-3-Clause
// The one body of the key search, instantiated once per instruction set by the
// translation units beside it. Included by nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <xsimd/xsimd.hpp>

#include "simd/find_lane.hpp"

namespace tagline::simd {

template <class Arch>
std::size_t find_key(const std::uint64_t* bits, const std::uint64_t* mask, std::size_t count,
                     std::uint64_t query_bits, std::uint64_t query_mask) noexcept {
  std::size_t i = 0;
  if constexpr (!std::is_same_v<Arch, ScalarArch>) {
    using Batch = xsimd::batch<std::uint64_t, Arch>;
    // Four registers are compared before one branch: a search is mostly misses.
    constexpr std::size_t kStep = 4 * Batch::size;
    const Batch wanted_bits(query_bits);
    const Batch wanted_mask(query_mask);
    const auto differs = [&](std::size_t at) {
      return (Batch::load_unaligned(bits + at) ^ wanted_bits) &
             (Batch::load_unaligned(mask + at) & wanted_mask);
    };
    for (; i + kStep <= count; i += kStep) {
      bool hit = false;
      for (std::size_t part = 0; part < kStep; part += Batch::size) {
        hit |= xsimd::any(differs(i + part) == Batch(std::uint64_t{0}));
      }
      if (hit) break;
    }
    for (; i + Batch::size <= count; i += Batch::size) {
      if (xsimd::any(differs(i) == Batch(std::uint64_t{0}))) break;
    }
  }
  for (; i < count; ++i) {
    if (((bits[i] ^ query_bits) & mask[i] & query_mask) == 0) break;
  }
  return i;
}

}  // namespace tagline::simd
