// SPDX-License-Identifier: BSD-3-Clause
// Every fingerprint kernel against its definition, lane by lane.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>

#include "tests/simd/random_blocks.hpp"

namespace tagline::simd {
namespace {

template <class Word>
class FindFingerprint : public testing::Test {
 protected:
  // Few different values, so that there are false positives; the upper bits of
  // the word take part.
  static Word of_source(int source) { return static_cast<Word>((source % 16) * 0x11111111u); }
  static Word of_tag(int tag) {
    return static_cast<Word>(static_cast<unsigned>(tag) % 8 * 0x30c0e0f1u);
  }

  static auto kernel(const Kernels& kernels) {
    if constexpr (sizeof(Word) == 1) {
      return kernels.find_fingerprint8;
    } else if constexpr (sizeof(Word) == 2) {
      return kernels.find_fingerprint16;
    } else {
      return kernels.find_fingerprint32;
    }
  }
};
using Words = testing::Types<std::uint8_t, std::uint16_t, std::uint32_t>;
TYPED_TEST_SUITE(FindFingerprint, Words);

TYPED_TEST(FindFingerprint, EveryKernelAgreesWithTheDefinition) {
  using Word = TypeParam;
  std::mt19937_64 random(1);
  const auto blocks = std::make_unique<FingerprintBlock<Word>[]>(kBlocks);
  std::uint64_t all_false_positives = 0;
  for (int round = 0; round < 6000; ++round) {
    fill(blocks.get(), random, round);
    for (int b = 0; b < kBlocks; ++b) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const LaneGroup& group = blocks[b].group[lane / kGroupLanes];
        const Word source = this->of_source(blocks[b].source[lane]);
        const Word tag = this->of_tag(blocks[b].tag[lane]);
        blocks[b].fingerprint[lane] = static_cast<Word>((has(group.any_source, lane) ? 0 : source) ^
                                                        (has(group.any_tag, lane) ? 0 : tag));
      }
    }
    const int source = static_cast<int>(random() % 40);
    const int tag = static_cast<int>(random() % 40) - 5;
    const FingerprintKey<Word> key = {
        lane_key(source, tag, false, false),
        static_cast<Word>(this->of_source(source) ^ this->of_tag(tag)), this->of_source(source),
        this->of_tag(tag)};

    std::uint64_t searched = 0;
    std::uint64_t false_positives = 0;
    const LaneHit expected =
        first_lane(&blocks[0], searched, [&](const LaneBlock& lanes, int lane) {
          if (meets(lanes, lane, key.key)) return true;
          const auto& block = static_cast<const FingerprintBlock<Word>&>(lanes);
          const LaneGroup& group = block.group[lane / kGroupLanes];
          const bool any_source = has(group.any_source, lane);
          const bool any_tag = has(group.any_tag, lane);
          const Word wanted =
              static_cast<Word>((any_source ? 0 : key.source_only) ^ (any_tag ? 0 : key.tag_only));
          false_positives +=
              has(group.live, lane) && (!any_tag || tag >= 0) && block.fingerprint[lane] == wanted;
          return false;
        });
    for (unsigned i = 0; available_kernels(i) != nullptr; ++i) {
      LaneCounts counts;
      const LaneHit hit = this->kernel(*available_kernels(i))(&blocks[0], key, counts);
      ASSERT_EQ(hit.lane, expected.lane) << available_kernels(i)->isa << ", round " << round;
      ASSERT_EQ(hit.older, expected.older) << available_kernels(i)->isa << ", round " << round;
      ASSERT_EQ(counts.lanes, searched) << available_kernels(i)->isa << ", round " << round;
      ASSERT_EQ(counts.false_positives, false_positives)
          << available_kernels(i)->isa << ", round " << round;
    }
    all_false_positives += false_positives;
  }
  EXPECT_GT(all_false_positives, 1000u);
}

}  // namespace
}  // namespace tagline::simd
