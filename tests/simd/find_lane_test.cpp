// SPDX-License-Identifier: BSD-3-Clause
// Every kernel against the one-lane-at-a-time definition of a hit.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "tests/simd/random_blocks.hpp"

namespace tagline::simd {
namespace {

TEST(FindLane, EveryKernelAgreesWithTheDefinition) {
  std::mt19937_64 random(1);
  const auto blocks = std::make_unique<LaneBlock[]>(kBlocks);
  for (int round = 0; round < 10000; ++round) {
    fill(blocks.get(), random, round);
    const LaneKey key =
        lane_key(static_cast<int>(random() % 40), static_cast<int>(random() % 40) - 5,
                 random() % 8 == 0, random() % 8 == 0);
    std::uint64_t searched = 0;
    const LaneHit expected =
        first_lane(&blocks[0], searched,
                   [&](const LaneBlock& block, int lane) { return meets(block, lane, key); });
    for (unsigned i = 0; available_kernels(i) != nullptr; ++i) {
      LaneCounts counts;
      const LaneHit hit = available_kernels(i)->find_lane(&blocks[0], key, counts);
      ASSERT_EQ(hit.lane, expected.lane) << available_kernels(i)->isa << ", round " << round;
      ASSERT_EQ(hit.older, expected.older) << available_kernels(i)->isa << ", round " << round;
      ASSERT_EQ(counts.lanes, searched) << available_kernels(i)->isa << ", round " << round;
    }
  }
}

TEST(FindLane, EmptyListHasNoHit) {
  for (unsigned i = 0; available_kernels(i) != nullptr; ++i) {
    LaneCounts counts;
    EXPECT_EQ(available_kernels(i)->find_lane(nullptr, {}, counts).lane, kNoLane);
    EXPECT_EQ(counts.lanes, 0u);
  }
}

TEST(Kernels, ScalarIsAlwaysThereAndLast) {
  unsigned last = 0;
  while (available_kernels(last + 1) != nullptr) ++last;
  EXPECT_STREQ(available_kernels(last)->isa, "scalar");
}

TEST(Kernels, WideSetsAreOfferedWhereTheProcessorHasThem) {
#if defined(__x86_64__)
  std::string offered;
  for (unsigned i = 0; available_kernels(i) != nullptr; ++i) {
    offered += std::string(available_kernels(i)->isa) + " ";
  }
  EXPECT_NE(offered.find("sse2"), std::string::npos);
  EXPECT_EQ(offered.find("avx2") != std::string::npos, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(offered.find("avx512bw") != std::string::npos, __builtin_cpu_supports("avx512bw") != 0);
#else
  GTEST_SKIP() << "x86-64 only";
#endif
}

}  // namespace
}  // namespace tagline::simd
