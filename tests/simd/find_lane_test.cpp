// SPDX-License-Identifier: BSD-3-Clause
// Every kernel against the one-lane-at-a-time definition of a hit.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "simd/kernels.hpp"

namespace tagline::simd {
namespace {

LaneHit find_lane_by_lane(LaneBlock* oldest, const LaneQuery& query) {
  std::uint32_t passed = 0;
  for (LaneBlock* block = oldest; block != nullptr; block = block->newer, ++passed) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto set = [lane](LaneMask mask) { return (mask >> lane & 1) != 0; };
      const bool source =
          block->source[lane] == query.source || set(block->any_source) || set(query.any_source);
      const bool tag = block->tag[lane] == query.tag ||
                       (set(block->any_tag) && set(query.user_tag)) ||
                       (set(query.any_tag) && set(block->user_tag));
      if (set(block->live) && source && tag) return {block, lane, passed};
    }
  }
  return {nullptr, 0, passed};
}

TEST(FindLane, EveryKernelAgreesWithTheDefinition) {
  std::mt19937_64 random(1);
  constexpr int kBlocks = 3;
  const auto blocks = std::make_unique<LaneBlock[]>(kBlocks);
  for (int round = 0; round < 20000; ++round) {
    const auto sparse = [&] { return random() & random() & random(); };
    const bool wildcards = round % 2 == 0;
    for (int b = 0; b < kBlocks; ++b) {
      LaneBlock& block = blocks[b];
      block.newer = b + 1 < kBlocks ? &blocks[b + 1] : nullptr;
      block.used = static_cast<std::uint32_t>(random() % (kLanes + 1));
      const LaneMask handed_out =
          block.used == kLanes ? ~LaneMask{0} : (LaneMask{1} << block.used) - 1;
      block.live = (round % 3 == 0 ? sparse() : random()) & handed_out;
      block.any_source = wildcards ? sparse() & handed_out : 0;
      block.any_tag = wildcards ? sparse() & handed_out : 0;
      block.user_tag = 0;
      for (int lane = 0; lane < kLanes; ++lane) {
        block.source[lane] = static_cast<int>(random() % 12);
        block.tag[lane] = static_cast<int>(random() % 12) - 2;
        block.user_tag |= LaneMask{block.tag[lane] >= 0} << lane;
      }
    }
    const auto all_if = [](bool yes) { return yes ? ~LaneMask{0} : LaneMask{0}; };
    const int tag = static_cast<int>(random() % 12) - 2;
    const LaneQuery query = {static_cast<int>(random() % 12), tag, all_if(random() % 8 == 0),
                             all_if(random() % 8 == 0), all_if(tag >= 0)};
    const LaneHit expected = find_lane_by_lane(&blocks[0], query);
    for (unsigned i = 0; available_kernels(i) != nullptr; ++i) {
      const LaneHit hit = available_kernels(i)->find_lane(&blocks[0], query);
      ASSERT_EQ(hit.block, expected.block) << available_kernels(i)->isa << ", round " << round;
      if (hit.block != nullptr) {
        ASSERT_EQ(hit.lane, expected.lane) << available_kernels(i)->isa << ", round " << round;
      }
      ASSERT_EQ(hit.blocks_passed, expected.blocks_passed) << available_kernels(i)->isa;
    }
  }
}

TEST(FindLane, EmptyListHasNoHit) {
  for (unsigned i = 0; available_kernels(i) != nullptr; ++i) {
    EXPECT_EQ(available_kernels(i)->find_lane(nullptr, {}).block, nullptr);
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
