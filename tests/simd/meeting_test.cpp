// SPDX-License-Identifier: BSD-3-Clause
// Every kernel against the comparison of one key with one key.
#include <gtest/gtest.h>

#include <random>

#include "queues/match_key.hpp"
#include "simd/kernels.hpp"

namespace tagline::simd {
namespace {

TEST(Meeting, EveryKernelAgreesWithTheDefinition) {
  std::mt19937_64 random(1);
  alignas(64) PackedKey keys[64];
  bool only_exact = false;
  const auto any_key = [&] {
    const auto tag = static_cast<std::int32_t>(random() % 5) - 1;
    PackedKey key = key_bits(static_cast<std::int32_t>(random() % 4), tag);
    if (!only_exact && random() % 4 == 0) key = (key & kTagMask) | kOpenSource;
    if (!only_exact && random() % 4 == 0) key = (key & kSourceMask) | kOpenTag;
    return key;
  };
  for (int round = 0; round < 20000; ++round) {
    const std::size_t count = std::size_t{8} << random() % 4;
    only_exact = false;
    const MatchKey query = unpacked(any_key());
    only_exact = round % 2 == 0;
    std::uint64_t expected = 0;
    bool are_exact = true;
    for (std::size_t i = 0; i < 64; ++i) {
      keys[i] = any_key();
      const MatchKey key = unpacked(keys[i]);
      are_exact = are_exact && is_exact(keys[i]);
      ASSERT_EQ(is_exact(keys[i]), key.mask == (kSourceMask | kTagMask));
      ASSERT_EQ(packed(key), keys[i]);
      ASSERT_EQ(keys_meet(keys[i], query), keys_meet(key, query));
      // What lies beyond the count must not show.
      if (i < count && keys_meet(key, query)) expected |= std::uint64_t{1} << i;
    }
    for (unsigned i = 0; available_kernels(i) != nullptr; ++i) {
      const Kernels& kernels = *available_kernels(i);
      ASSERT_EQ(kernels.meeting(keys, count, query.bits, query.mask), expected)
          << kernels.isa << ", round " << round << ", " << count << " keys";
      if (!are_exact) continue;
      ASSERT_EQ(kernels.meeting_exact(keys, count, query.bits, query.mask), expected)
          << kernels.isa << ", round " << round << ", " << count << " keys";
    }
  }
}

}  // namespace
}  // namespace tagline::simd
