// SPDX-License-Identifier: BSD-3-Clause
// What is particular to the vector queue: nodes fill up, empty and merge.
#include "queues/vector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace tagline {
namespace {

class Vector : public testing::Test {
 protected:
  static MatchKey key(int tag) { return {key_bits(0, tag), kSourceMask | kTagMask}; }

  void append(int tag) {
    ASSERT_TRUE(queue_.has_room() || queue_.make_room());
    queue_.append({key(tag), nullptr, next_++});
  }
  bool erase(int tag) {
    std::uint64_t depth = 0;
    const auto hit = queue_.find(key(tag), depth);
    if (!hit) return false;
    EXPECT_EQ(queue_.at(hit).key, key(tag));
    queue_.erase(hit);
    return true;
  }
  bool erase_any_source(int tag) {
    std::uint64_t depth = 0;
    const auto hit = queue_.find({key_bits(7, tag), kSourceMask | kTagMask}, depth);
    if (!hit) return false;
    EXPECT_TRUE(key_any_source(queue_.at(hit).key));
    queue_.erase(hit);
    return true;
  }
  std::vector<int> tags() const {
    std::vector<int> all;
    queue_.for_each([&](const QueueEntry& entry) { all.push_back(key_tag(entry.key)); });
    return all;
  }
  std::uint64_t depth_of(int tag) {
    std::uint64_t depth = 0;
    queue_.find(key(tag), depth);
    return depth;
  }

  QueueResources resources_{*simd::available_kernels(0), 0, VectorQueue::node_bytes({})};
  VectorQueue queue_{resources_, {}, QueueSide::posted};
  std::uint64_t next_ = 1;
};

TEST_F(Vector, OneEntryKeptOfEachNodeMergesIntoFewNodes) {
  constexpr int kEntries = 256 * 100;
  for (int tag = 0; tag < kEntries; ++tag) append(tag);
  for (int tag = 0; tag < kEntries; ++tag) {
    ASSERT_TRUE(tag % 64 == 17 || erase(tag));
  }
  // 400 entries are left; but for the newest node 16 lanes of each 23 may be dead.
  EXPECT_LE(depth_of(kEntries - 64 + 17), 400u * 16 / 7 + 256);
  EXPECT_EQ(tags().size(), 400u);
}

TEST_F(Vector, EveryOtherHoleIsClosed) {
  constexpr int kEntries = 256 * 8;
  for (int tag = 0; tag < kEntries; ++tag) append(tag);
  for (int tag = 0; tag < kEntries; tag += 2) ASSERT_TRUE(erase(tag));
  // Nothing but the newest node and the one before it has any.
  EXPECT_LE(depth_of(kEntries - 1), kEntries / 2 + 256u);
  EXPECT_EQ(tags().size(), kEntries / 2u);
}

// Wherever the holes are, a search passes a little more than two lanes for each entry.
TEST_F(Vector, HolesAtRandomCostLittle) {
  std::vector<int> order(256 * 20);
  std::iota(order.begin(), order.end(), 0);
  for (const int tag : order) append(tag);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  while (order.size() > 600) {
    ASSERT_TRUE(erase(order.back()));
    order.pop_back();
    if (order.size() % 100 == 0) {
      EXPECT_LE(depth_of(-1), order.size() * 16 / 7 + 256) << order.size();
    }
  }
}

TEST_F(Vector, HolesOfTheNewestNodeAreRefilled) {
  for (int tag = 0; tag < 256; ++tag) append(tag);
  for (int tag = 0; tag < 256; tag += 2) ASSERT_TRUE(erase(tag));
  const std::size_t reserved = resources_.memory.used_bytes();
  for (int tag = 256; tag < 384; ++tag) append(tag);
  EXPECT_EQ(resources_.memory.used_bytes(), reserved);
  EXPECT_EQ(depth_of(383), 256u);
}

TEST_F(Vector, ReusedLaneForgetsItsWildcard) {
  for (int tag = 0; tag < 256; ++tag) {
    ASSERT_TRUE(queue_.has_room() || queue_.make_room());
    queue_.append({{key_bits(0, tag) & kTagMask, kTagMask}, nullptr, next_++});
  }
  const MatchKey from_seven = {key_bits(7, 300), kSourceMask | kTagMask};
  for (int tag = 0; tag < 256; ++tag) ASSERT_TRUE(erase_any_source(tag));
  for (int tag = 300; tag < 500; ++tag) append(tag);
  std::uint64_t depth = 0;
  EXPECT_FALSE(queue_.find(from_seven, depth));
}

TEST_F(Vector, OneEntryTakesNoNode) {
  for (int tag = 0; tag < 1000; ++tag) {
    append(tag);
    ASSERT_TRUE(erase(tag));
  }
  EXPECT_EQ(resources_.memory.used_bytes(), 0u);
}

TEST_F(Vector, OrderSurvivesEveryMove) {
  std::vector<int> expected;
  for (int tag = 0; tag < 1000; ++tag) append(tag);
  for (int tag = 0; tag < 1000; ++tag) {
    if (tag % 7 == 3 || tag % 11 == 5) {
      expected.push_back(tag);
    } else {
      ASSERT_TRUE(erase(tag));
    }
  }
  EXPECT_EQ(tags(), expected);
}

TEST_F(Vector, SequenceIsFoundAcrossNodes) {
  for (int tag = 0; tag < 300; ++tag) append(tag);
  for (int tag = 0; tag < 300; tag += 3) ASSERT_TRUE(erase(tag));
  for (int tag = 0; tag < 300; ++tag) {
    const auto hit = queue_.find_sequence(static_cast<std::uint64_t>(tag) + 1);
    ASSERT_EQ(static_cast<bool>(hit), tag % 3 != 0) << tag;
    EXPECT_TRUE(!hit || key_tag(queue_.at(hit).key) == tag);
  }
  EXPECT_FALSE(queue_.find_sequence(0));
  EXPECT_FALSE(queue_.find_sequence(301));
}

TEST_F(Vector, EmptyAfterDrainingInAnyOrder) {
  for (int round = 0; round < 3; ++round) {
    for (int tag = 0; tag < 200; ++tag) append(tag);
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(erase(i * 37 % 200));
    EXPECT_TRUE(queue_.empty());
    EXPECT_FALSE(queue_.find_sequence(1));
  }
}

}  // namespace
}  // namespace tagline
