// SPDX-License-Identifier: BSD-3-Clause
// What is particular to the source queue: bins, and the order across them.
#include "queues/source.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tagline {
namespace {

class Source : public testing::Test {
 protected:
  static constexpr MatchKey exact(int source, int tag) {
    return {key_bits(source, tag), kSourceMask | kTagMask};
  }
  static constexpr MatchKey any_source(int tag) { return {key_bits(0, tag), kTagMask}; }

  void append(const MatchKey& key) {
    ASSERT_TRUE(queue_.has_room() || queue_.make_room());
    queue_.append({key, nullptr, next_++});
  }
  std::uint64_t find(const MatchKey& key) {
    depth_ = 0;
    const auto hit = queue_.find(key, depth_);
    return hit ? queue_.at(hit).sequence : 0;
  }

  QueueResources resources_{*simd::available_kernels(0), 0, SourceQueue::node_bytes({})};
  SourceQueue queue_{resources_, {}, QueueSide::posted};
  std::uint64_t next_ = 1;
  std::uint64_t depth_ = 0;
};

TEST_F(Source, SearchLooksAtItsOwnSourceOnly) {
  for (int i = 0; i < 1000; ++i) append(exact(i % 10, i));
  EXPECT_EQ(find(exact(3, 993)), 994u);
  EXPECT_EQ(depth_, 100u);
  EXPECT_EQ(find(exact(77, 993)), 0u);
  EXPECT_EQ(depth_, 0u);
}

TEST_F(Source, WildcardListIsMergedByAge) {
  append(exact(1, 7));
  append(any_source(7));
  append(exact(1, 7));
  append(any_source(8));
  append(exact(1, 8));
  EXPECT_EQ(find(exact(1, 7)), 1u);
  EXPECT_EQ(depth_, 1u);
  EXPECT_EQ(find(exact(2, 7)), 2u);
  EXPECT_EQ(find(exact(1, 8)), 4u);
  EXPECT_EQ(depth_, 4u);  // nothing behind the hit
  EXPECT_EQ(find(exact(1, 9)), 0u);
  EXPECT_EQ(depth_, 5u);
}

TEST_F(Source, AnySourceTakesTheOldestOfAllBins) {
  for (int i = 0; i < 100; ++i) append(exact(99 - i, i % 50));
  EXPECT_EQ(find(any_source(49)), 50u);
  EXPECT_EQ(find({0, kTagSign}), 1u);
}

TEST_F(Source, OrderHoldsAcrossTheWrapOfSequenceNumbers) {
  next_ = std::numeric_limits<std::uint64_t>::max();
  append(any_source(7));
  next_ = 1;  // 0 names no entry
  append(exact(1, 7));
  EXPECT_EQ(find(exact(1, 7)), std::numeric_limits<std::uint64_t>::max());
}

TEST_F(Source, TableGrowsWithTheSourcesSeen) {
  EXPECT_EQ(resources_.memory.used_bytes(), 0u);
  for (int source = 0; source < 20000; ++source) append(exact(source * 4096, source));
  for (int source = 0; source < 20000; ++source) {
    ASSERT_EQ(find(exact(source * 4096, source)), static_cast<unsigned>(source) + 1);
    ASSERT_EQ(depth_, 1u);
  }
}

TEST_F(Source, DrainedBinsAreUsedAgain) {
  std::size_t warm = 0;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 1000; ++i) append(exact(i % 100, i));
    EXPECT_EQ(queue_.remove_if([](const QueueEntry&) { return true; }, [](const QueueEntry&) {}),
              1000u);
    EXPECT_TRUE(queue_.empty());
    if (round == 0) warm = resources_.memory.used_bytes();
    EXPECT_EQ(resources_.memory.used_bytes(), warm);
  }
}

TEST_F(Source, FailedGrowthChangesNothing) {
  QueueResources small(*simd::available_kernels(0), 20000, SourceQueue::node_bytes({}));
  SourceQueue queue(small, {}, QueueSide::posted);
  int appended = 0;
  while (queue.has_room() || queue.make_room()) {
    queue.append({exact(appended, 1), nullptr, static_cast<unsigned>(appended) + 1});
    ++appended;
  }
  EXPECT_GT(appended, 50);
  EXPECT_FALSE(queue.make_room());
  int left = 0;
  queue.for_each([&](const QueueEntry& entry) { EXPECT_EQ(key_source(entry.key), left++); });
  EXPECT_EQ(left, appended);
}

}  // namespace
}  // namespace tagline
