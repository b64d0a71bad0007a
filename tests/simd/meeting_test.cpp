// SPDX-License-Identifier: BSD-3-Clause
// Every kernel against the comparison of one key with one key.
#include <gtest/gtest.h>

#include <random>

#include "queues/match_key.hpp"
#include "simd/kernels.hpp"

namespace tagline::simd {
namespace {

TEST(Meeting, EveryKernelAgreesWithTheDefinition) {
  constexpr std::uint64_t kMasks[] = {kSourceMask | kTagMask, kTagMask, kSourceMask | kTagSign,
                                      kTagSign};
  std::mt19937_64 random(1);
  alignas(64) std::uint64_t bits[64];
  alignas(64) std::uint64_t mask[64];
  const auto any_key = [&] {
    const auto tag = static_cast<std::int32_t>(random() % 5) - 1;
    const std::uint64_t insists = kMasks[random() % 8 < 5 ? 0 : random() % 4];
    return MatchKey{key_bits(static_cast<std::int32_t>(random() % 4), tag) & insists, insists};
  };
  for (int round = 0; round < 20000; ++round) {
    const std::size_t count = std::size_t{8} << random() % 4;
    const MatchKey query = any_key();
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      const MatchKey key = any_key();
      bits[i] = key.bits;
      mask[i] = key.mask;
      // What lies beyond the count must not show.
      if (i < count && keys_meet(key, query)) expected |= std::uint64_t{1} << i;
    }
    for (unsigned i = 0; available_kernels(i) != nullptr; ++i) {
      ASSERT_EQ(available_kernels(i)->meeting(bits, mask, count, query.bits, query.mask), expected)
          << available_kernels(i)->isa << ", round " << round << ", " << count << " keys";
    }
  }
}

}  // namespace
}  // namespace tagline::simd
