// SPDX-License-Identifier: BSD-3-Clause
// What is particular to the array queue: how many entries share a line, and that
// holes do not keep nodes alive.
#include "queues/array.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tagline {
namespace {

class Array : public testing::TestWithParam<int> {
 protected:
  static constexpr MatchKey key(int tag) { return {key_bits(0, tag), kSourceMask | kTagMask}; }

  ArrayParameters parameters() const { return {GetParam()}; }
  std::size_t nodes_bytes() const { return ArrayQueue::node_bytes(parameters()); }

  static void append(ArrayQueue& queue, const MatchKey& key, std::uint64_t sequence) {
    ASSERT_TRUE(queue.has_room() || queue.make_room());
    queue.append({key, nullptr, sequence});
  }
  static bool erase(ArrayQueue& queue, const MatchKey& key) {
    std::uint64_t depth = 0;
    const auto hit = queue.find(key, depth);
    if (hit) queue.erase(hit);
    return static_cast<bool>(hit);
  }
  static std::vector<int> tags(const ArrayQueue& queue) {
    std::vector<int> all;
    queue.for_each([&](const QueueEntry& entry) { all.push_back(key_tag(entry.key)); });
    return all;
  }
  // Nodes that the pool can still hand out without asking for memory.
  std::size_t spare_nodes() {
    std::vector<void*> taken;
    while (resources_.pool.has_node()) taken.push_back(resources_.pool.take());
    for (void* node : taken) resources_.pool.release(node);
    return taken.size();
  }
  std::size_t lanes_of_line_nodes(QueueSide side) {
    return static_cast<std::size_t>(ArrayNode::Shape(parameters(), side).count);
  }

  QueueResources resources_{*simd::available_kernels(0), 0, ArrayQueue::node_bytes(parameters())};
  ArrayQueue posted_{resources_, parameters(), QueueSide::posted};
  ArrayQueue unexpected_{resources_, parameters(), QueueSide::unexpected};
};

TEST_P(Array, NodesHoldWhatFitsTheirLines) {
  EXPECT_EQ(nodes_bytes() % kCacheLine, 0u);
  EXPECT_EQ(lanes_of_line_nodes(QueueSide::posted), static_cast<std::size_t>(GetParam()));
  EXPECT_GE(lanes_of_line_nodes(QueueSide::unexpected), static_cast<std::size_t>(GetParam()));
  if (GetParam() == 2) {
    EXPECT_EQ(nodes_bytes(), kCacheLine);
    EXPECT_EQ(lanes_of_line_nodes(QueueSide::unexpected), 3u);
  }
  // A full node of messages ends within the node: its last byte survives the next one's first.
  for (int tag = 0; tag < 10000; ++tag) append(unexpected_, key(tag), 1);
  for (int tag = 0; tag < 10000; ++tag) append(posted_, key(tag), static_cast<unsigned>(tag) + 1);
  for (int tag = 9999; tag >= 0; --tag) {
    ASSERT_TRUE(erase(unexpected_, key(tag)));
    ASSERT_TRUE(erase(posted_, key(tag)));
  }
}

TEST_P(Array, HolesDoNotKeepNodes) {
  constexpr int kEntries = 8192;
  for (int tag = 0; tag < kEntries; ++tag)
    append(posted_, key(tag), static_cast<unsigned>(tag) + 1);
  const std::size_t before = spare_nodes();
  std::vector<int> expected;
  for (int tag = 0; tag < kEntries; ++tag) {
    if (tag % 8 == 3) {
      expected.push_back(tag);
    } else {
      ASSERT_TRUE(erase(posted_, key(tag)));
    }
  }
  EXPECT_EQ(tags(posted_), expected);
  // An eighth is left. Neighbours hold more than half a node between them, so at
  // least half of the nodes have gone back to the pool.
  const std::size_t nodes = static_cast<std::size_t>(kEntries / GetParam());
  EXPECT_GE(spare_nodes() - before, nodes / 2 - 1);
  const std::size_t reserved = resources_.memory.used_bytes();
  for (int tag = 0; tag < kEntries / 4; ++tag) append(posted_, key(tag), 1);
  EXPECT_EQ(resources_.memory.used_bytes(), reserved);
}

TEST_P(Array, HoleIsNoHitForAnyQuery) {
  for (int tag = 0; tag < 100; ++tag) append(unexpected_, key(tag), 1);
  for (int tag = 0; tag < 100; tag += 2) ASSERT_TRUE(erase(unexpected_, key(tag)));
  const MatchKey any = {0, kTagSign};
  for (int tag = 1; tag < 100; tag += 2) {
    std::uint64_t depth = 0;
    const auto hit = unexpected_.find(any, depth);
    ASSERT_TRUE(hit);
    EXPECT_EQ(key_tag(unexpected_.at(hit).key), tag);
    unexpected_.erase(hit);
  }
  EXPECT_TRUE(unexpected_.empty());
}

TEST_P(Array, ReceiveKeepsItsWildcardsAndSequenceWhenMoved) {
  const MatchKey kinds[] = {key(5),
                            {key_bits(0, 5) & kTagMask, kTagMask},
                            {key_bits(3, 0), kSourceMask | kTagSign},
                            {0, kTagSign}};
  for (unsigned i = 0; i < 4000; ++i) append(posted_, kinds[i % 4], i + 1);
  posted_.remove_if([](const QueueEntry& entry) { return entry.sequence % 3 != 0; },
                    [](const QueueEntry&) {});
  std::uint64_t last = 0;
  posted_.for_each([&](const QueueEntry& entry) {
    EXPECT_EQ(entry.key, kinds[(entry.sequence - 1) % 4]);
    EXPECT_EQ(entry.sequence, last + 3);
    last = entry.sequence;
  });
  EXPECT_EQ(last, 3999u);
  EXPECT_TRUE(posted_.find_sequence(2997));
  EXPECT_FALSE(posted_.find_sequence(2998));
}

TEST_P(Array, OneEntryTakesNoNode) {
  for (int tag = 0; tag < 100; ++tag) {
    append(posted_, key(tag), 1);
    ASSERT_TRUE(erase(posted_, key(tag)));
  }
  EXPECT_EQ(resources_.memory.used_bytes(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Receives, Array, testing::Values(2, 4, 8, 64, 1024),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace tagline
