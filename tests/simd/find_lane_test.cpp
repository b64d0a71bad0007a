// SPDX-License-Identifier: BSD-3-Clause
// Every kernel against the one-lane-at-a-time definition of a hit.
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "simd/kernels.hpp"

namespace tagline::simd {
namespace {

constexpr int kBlocks = 3;

// A list of blocks with random entries, holes and wildcards in one of several shapes.
template <class Block>
void fill(Block* blocks, std::mt19937_64& random, int round) {
  const auto sparse = [&] { return random() & random() & random(); };
  const bool wildcards = round % 2 == 0;
  const int most = round % 5 == 0 ? 20 : kLanes;
  for (int b = 0; b < kBlocks; ++b) {
    Block& block = blocks[b];
    block.newer = b + 1 < kBlocks ? &blocks[b + 1] : nullptr;
    block.used = static_cast<std::uint32_t>(random() % static_cast<unsigned>(most + 1));
    block.first = block.used;
    for (int g = 0; g < kGroups; ++g) {
      const int handed_out = static_cast<int>(block.used) - g * kGroupLanes;
      const LaneMask lanes = handed_out <= 0            ? 0
                             : handed_out < kGroupLanes ? (LaneMask{1} << handed_out) - 1
                                                        : ~LaneMask{0};
      LaneGroup& group = block.group[g];
      group.live = (round % 3 == 0 ? sparse() : random()) & lanes;
      group.any_source = wildcards ? sparse() & lanes : 0;
      group.any_tag = wildcards ? sparse() & lanes : 0;
      group.negative_tag = 0;
      if (group.live != 0 && block.first == block.used) {
        block.first = static_cast<unsigned>(g * kGroupLanes + std::countr_zero(group.live));
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      block.source[lane] = static_cast<int>(random() % 40);
      block.tag[lane] = static_cast<int>(random() % 40) - 5;
      block.group[lane / kGroupLanes].negative_tag |= LaneMask{block.tag[lane] < 0}
                                                      << lane % kGroupLanes;
    }
  }
}

bool has(LaneMask mask, int lane) { return (mask >> lane % kGroupLanes & 1) != 0; }

bool meets(const LaneBlock& block, int lane, const LaneQuery& query) {
  const LaneGroup& group = block.group[lane / kGroupLanes];
  const bool source = block.source[lane] == query.source || has(group.any_source, lane) ||
                      has(query.any_source, lane);
  const bool tag = block.tag[lane] == query.tag ||
                   (has(group.any_tag, lane) && has(query.user_tag, lane)) ||
                   (has(query.any_tag, lane) && !has(group.negative_tag, lane));
  return has(group.live, lane) && source && tag;
}

// The first lane that the condition holds for, looked at one by one.
template <class Condition>
LaneHit first_lane(LaneBlock* oldest, std::uint64_t& searched, Condition condition) {
  LaneBlock* older = nullptr;
  for (LaneBlock* block = oldest; block != nullptr; older = block, block = block->newer) {
    for (unsigned lane = block->first; lane < block->used; ++lane) {
      ++searched;
      if (condition(*block, static_cast<int>(lane))) return {older, static_cast<int>(lane)};
    }
  }
  return {};
}

LaneMask all_if(bool yes) { return yes ? ~LaneMask{0} : LaneMask{0}; }

TEST(FindLane, EveryKernelAgreesWithTheDefinition) {
  std::mt19937_64 random(1);
  const auto blocks = std::make_unique<LaneBlock[]>(kBlocks);
  for (int round = 0; round < 10000; ++round) {
    fill(blocks.get(), random, round);
    const int tag = static_cast<int>(random() % 40) - 5;
    const LaneQuery query = {static_cast<int>(random() % 40), tag, all_if(random() % 8 == 0),
                             all_if(random() % 8 == 0), all_if(tag >= 0)};
    std::uint64_t searched = 0;
    const LaneHit expected =
        first_lane(&blocks[0], searched,
                   [&](const LaneBlock& block, int lane) { return meets(block, lane, query); });
    for (unsigned i = 0; available_kernels(i) != nullptr; ++i) {
      LaneCounts counts;
      const LaneHit hit = available_kernels(i)->find_lane(&blocks[0], query, counts);
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
