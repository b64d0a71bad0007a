// SPDX-License-Identifier: BSD-3-Clause
#include "queues/fifo.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace tagline {
namespace {

class FifoTest : public testing::Test {
 protected:
  ~FifoTest() override { fifo_.clear(pool_); }

  void push(std::uint64_t sequence) {
    ASSERT_TRUE(pool_.has_node() || pool_.grow());
    fifo_.push(pool_, {sequence * 10, sequence});
    expected_.push_back(sequence);
  }
  void pop() {
    const IndexItem item = fifo_.pop(pool_);
    EXPECT_EQ(item.sequence, expected_.front());
    EXPECT_EQ(item.value, expected_.front() * 10);
    expected_.pop_front();
  }
  void erase(std::uint64_t sequence) {
    const auto found = std::find(expected_.begin(), expected_.end(), sequence);
    EXPECT_EQ(fifo_.erase_if(pool_, [&](const IndexItem& i) { return i.sequence == sequence; }),
              found != expected_.end());
    if (found != expected_.end()) expected_.erase(found);
  }
  void expect_all() const {
    ASSERT_EQ(fifo_.empty(), expected_.empty());
    if (!expected_.empty()) {
      EXPECT_EQ(fifo_.front().sequence, expected_.front());
    }
    std::deque<std::uint64_t> all;
    fifo_.for_each([&](const IndexItem& item) {
      all.push_back(item.sequence);
      return true;
    });
    EXPECT_EQ(all, expected_);
  }

  NodeMemory memory_{0};
  NodePool pool_{memory_, Fifo::kNodeBytes};
  Fifo fifo_;
  std::deque<std::uint64_t> expected_;
};

TEST_F(FifoTest, KeepsOrderAcrossNodes) {
  for (std::uint64_t i = 1; i <= 20; ++i) push(i);
  expect_all();
  while (!expected_.empty()) pop();
  expect_all();
}

TEST_F(FifoTest, AnyItemOfAnyFillCanBeErased) {
  for (std::uint64_t filled = 1; filled <= 10; ++filled) {
    for (std::uint64_t popped = 0; popped < filled; ++popped) {
      for (std::uint64_t erased = 1; erased <= filled + 1; ++erased) {
        for (std::uint64_t i = 1; i <= filled; ++i) push(i);
        for (std::uint64_t i = 0; i < popped; ++i) pop();
        erase(erased);
        expect_all();
        push(100);
        push(101);
        expect_all();
        fifo_.clear(pool_);
        expected_.clear();
      }
    }
  }
}

TEST_F(FifoTest, ClearGivesEveryNodeBack) {
  for (const std::uint64_t items : {1u, 3u, 4u, 300u}) {
    for (std::uint64_t i = 1; i <= items; ++i) push(i);
    const std::size_t used = memory_.used_bytes();
    fifo_.clear(pool_);
    expected_.clear();
    expect_all();
    std::size_t free_nodes = 0;
    for (std::vector<void*> taken; pool_.has_node(); ++free_nodes) taken.push_back(pool_.take());
    EXPECT_GE(3 * free_nodes, items);
    EXPECT_EQ(memory_.used_bytes(), used);
  }
}

TEST_F(FifoTest, OldestOfSeveralThatFitIsErased) {
  for (std::uint64_t i = 1; i <= 9; ++i) push(i);
  EXPECT_TRUE(fifo_.erase_if(pool_, [](const IndexItem& item) { return item.sequence % 4 == 0; }));
  expected_.erase(expected_.begin() + 3);
  expect_all();
}

TEST_F(FifoTest, VisitEndsWhenToldTo) {
  for (std::uint64_t i = 1; i <= 9; ++i) push(i);
  int visited = 0;
  fifo_.for_each([&](const IndexItem& item) {
    ++visited;
    return item.sequence < 5;
  });
  EXPECT_EQ(visited, 5);
}

TEST_F(FifoTest, EveryNodeGoesBackToThePool) {
  for (int round = 0; round < 100; ++round) {
    for (std::uint64_t i = 1; i <= 30; ++i) push(i);
    for (std::uint64_t i = 30; i > 10; i -= 2) erase(i);
    while (!expected_.empty()) pop();
  }
  EXPECT_LE(memory_.used_bytes(), 8192u);
}

TEST_F(FifoTest, MarkStaysWhateverBecomesOfTheItems) {
  EXPECT_TRUE(fifo_.is_bare());
  push(1);
  EXPECT_FALSE(fifo_.is_bare());
  EXPECT_FALSE(fifo_.is_marked());
  fifo_.mark();
  for (std::uint64_t i = 2; i <= 12; ++i) push(i);
  pop();
  erase(6);
  expect_all();
  Fifo elsewhere;
  elsewhere.take_over(fifo_);
  EXPECT_FALSE(elsewhere.is_marked());
  fifo_ = {};
  fifo_.mark();
  fifo_.take_over(elsewhere);
  EXPECT_TRUE(fifo_.is_marked());
  expect_all();
  while (!expected_.empty()) pop();
  EXPECT_TRUE(fifo_.empty());
  EXPECT_TRUE(fifo_.is_marked());
  push(20);
  fifo_.clear(pool_);
  expected_.clear();
  EXPECT_TRUE(fifo_.is_marked());
  EXPECT_FALSE(fifo_.is_bare());
}

TEST_F(FifoTest, FollowsADequeThroughRandomCalls) {
  std::mt19937 random(1);
  for (std::uint64_t next = 1; next < 20000;) {
    // Long stretches of growing and of shrinking.
    if (random() % 100 < (next / 500 % 2 == 0 ? 60u : 40u)) {
      push(next++);
    } else if (!expected_.empty()) {
      if (random() % 3 == 0) {
        erase(expected_[random() % expected_.size()]);
      } else {
        pop();
      }
    } else {
      push(next++);
    }
    if (next % 16 == 0) expect_all();
  }
}

}  // namespace
}  // namespace tagline
