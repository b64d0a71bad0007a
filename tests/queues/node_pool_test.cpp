// SPDX-License-Identifier: BSD-3-Clause
#include "queues/node_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

namespace tagline {
namespace {

std::vector<void*> take_all(NodePool& pool, std::size_t most) {
  std::vector<void*> nodes;
  while (nodes.size() < most && (pool.has_node() || pool.grow())) nodes.push_back(pool.take());
  return nodes;
}

TEST(NodePool, NodesAreAlignedDistinctAndWritable) {
  NodeMemory memory(0);
  NodePool pool(memory, 100);
  const auto nodes = take_all(pool, 5000);
  ASSERT_EQ(nodes.size(), 5000u);
  EXPECT_EQ(std::set<void*>(nodes.begin(), nodes.end()).size(), nodes.size());
  for (void* node : nodes) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(node) % kCacheLine, 0u);
    std::memset(node, 0xab, 100);
  }
}

TEST(NodePool, ReleasedNodeIsTheNextTaken) {
  NodeMemory memory(0);
  NodePool pool(memory, 64);
  const auto nodes = take_all(pool, 10);
  pool.release(nodes[3]);
  pool.release(nodes[7]);
  EXPECT_EQ(pool.take(), nodes[7]);
  EXPECT_EQ(pool.take(), nodes[3]);
}

TEST(NodePool, NeverExceedsItsLimit) {
  for (const std::size_t limit : {1u, 63u, 64u, 128u, 5000u, 100000u, 3000000u}) {
    NodeMemory memory(limit);
    NodePool pool(memory, 1600);
    const auto nodes = take_all(pool, 100000);
    EXPECT_LE(memory.used_bytes(), limit);
    EXPECT_TRUE(limit < 2000 || nodes.size() * 1600 * 2 >= limit);
    EXPECT_FALSE(pool.grow());
  }
}

TEST(NodePool, NodeLargerThanTheFirstChunk) {
  NodeMemory memory(0);
  NodePool pool(memory, 1 << 21);
  EXPECT_EQ(take_all(pool, 3).size(), 3u);
}

TEST(NodePool, ReusesWhatWasReleased) {
  NodeMemory memory(0);
  NodePool pool(memory, 64);
  auto nodes = take_all(pool, 1000);
  const std::size_t reserved = memory.used_bytes();
  for (void* node : nodes) pool.release(node);
  take_all(pool, 1000);
  EXPECT_EQ(memory.used_bytes(), reserved);
}

TEST(NodePool, GivesEverythingBackWhenItDies) {
  NodeMemory memory(0);
  {
    NodePool pool(memory, 64);
    take_all(pool, 100000);
  }
  EXPECT_EQ(memory.used_bytes(), 0u);
}

}  // namespace
}  // namespace tagline
