// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "queues/adaptive.hpp"
#include "simd/kernels.hpp"
#include "tests/support/reference_queue.hpp"

namespace tagline::test {

// An adaptive queue and what it is asked for, entry by entry: tags of source 0.
class Adaptive : public testing::Test {
 protected:
  explicit Adaptive(QueueSide side = QueueSide::posted) : queue_(resources_, {}, side) {}

  void append(int tag) {
    ASSERT_TRUE(queue_.has_room() || queue_.make_room());
    queue_.append({key_of(0, tag), nullptr, next_++});
  }
  bool append_at_hand(int tag) {
    const bool done = queue_.append_at_hand<QueueSide::posted>({key_of(0, tag), nullptr, next_});
    next_ += done;
    return done;
  }
  std::uint64_t take(int tag) {
    std::uint64_t depth = 0;
    const auto hit = queue_.find(key_of(0, tag), depth);
    EXPECT_TRUE(hit) << tag;
    if (!hit) return 0;
    EXPECT_EQ(key_tag(queue_.at(hit).key), tag);
    queue_.erase(hit);
    return depth;
  }
  std::uint64_t search_in_vain() {
    std::uint64_t depth = 0;
    EXPECT_FALSE(queue_.find(key_of(0, 1 << 30), depth));
    return depth;
  }

  // As a message does: find() and erase() in one.
  std::uint64_t take_now(int tag) {
    std::uint64_t depth = 0;
    void* cookie = nullptr;
    const auto count = [&](std::uint64_t entries, bool) { depth = entries; };
    EXPECT_TRUE(queue_.take(key_of(0, tag), &cookie, count)) << tag;
    return depth;
  }
  void drain_at_random(int entries) {
    std::vector<int> order(static_cast<std::size_t>(entries));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (int tag = 0; tag < entries; ++tag) append(tag);
    for (const int tag : order) take_now(tag);
  }
  void drain_in_order(int entries) {
    for (int tag = 0; tag < entries; ++tag) append(tag);
    for (int tag = 0; tag < entries; ++tag) take_now(tag);
  }
  // Leaves the queue as it was: empty, and last matched not in order.
  bool is_indexed_from_the_first_on() {
    EXPECT_TRUE(queue_.empty());
    append(0);
    append(1);
    const bool indexed = queue_.is_indexed();
    take_now(1);
    take_now(0);
    return indexed;
  }

  void be_indexed() {
    while (search_in_vain() > 1) {
    }
  }

  // For a while, searched deeply; then empty.
  void be_deep() {
    for (int tag = 0; tag < 500; ++tag) append(tag);
    for (int i = 0; i < 40; ++i) search_in_vain();
    for (int tag = 499; tag >= 0; --tag) take(tag);
  }

  // Entries that are matched in random order and come again.
  void go_round(int entries, int matches) {
    for (int i = 0; i < matches; ++i) {
      const int tag = static_cast<int>(random_() % static_cast<unsigned>(entries));
      take(tag);
      append(tag);
    }
  }

  QueueResources resources_{*simd::available_kernels(0), 0, AdaptiveQueue::node_bytes({})};
  AdaptiveQueue queue_;
  std::uint64_t next_ = 1;
  std::minstd_rand random_;
};

class AdaptiveMessages : public Adaptive {
 protected:
  AdaptiveMessages() : Adaptive(QueueSide::unexpected) {}
};

}  // namespace tagline::test
