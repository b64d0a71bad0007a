// SPDX-License-Identifier: BSD-3-Clause
#include "queues/message_log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace tagline {
namespace {

constexpr MatchKey kKeys[] = {{key_bits(1, 5), kSourceMask | kTagMask},
                              {key_bits(0, 5), kTagMask},
                              {key_bits(2, 0), kSourceMask | kTagSign},
                              {0, kTagSign}};

// A log and the deque it should equal, on one instruction set.
class Twin {
 public:
  explicit Twin(unsigned isa = 0, std::size_t limit_bytes = 0)
      : kernels(*simd::available_kernels(isa)), memory(limit_bytes) {}
  ~Twin() { log.clear(pool); }

  bool push(std::int32_t source, std::int32_t tag) {
    const bool has_room = log.has_room(pool);
    if (!log.reserve(pool)) return false;
    EXPECT_TRUE(log.has_room(pool) || !has_room);
    log.push(pool, {key_bits(source, tag), next});
    expected.push_back({key_bits(source, tag), next++});
    return true;
  }
  void pop() {
    EXPECT_EQ(log.front().sequence, expected.front().sequence);
    EXPECT_EQ(log.front().value, expected.front().value);
    log.pop(pool);
    expected.pop_front();
  }
  // Of the messages that meet the key, the first whose number is not below least.
  void find(const MatchKey& key, std::uint64_t least) const {
    const auto hit = std::find_if(expected.begin(), expected.end(), [&](const IndexItem& item) {
      return keys_meet(key, {item.value, kSourceMask | kTagMask}) && item.sequence >= least;
    });
    std::size_t passed = 100;
    IndexItem found = {0, 0};
    const bool is_there = log.find(kernels, key, passed, [&](const IndexItem& item) {
      EXPECT_TRUE(keys_meet(key, {item.value, kSourceMask | kTagMask}));
      if (item.sequence < least) return false;
      found = item;
      return true;
    });
    ASSERT_EQ(is_there, hit != expected.end());
    EXPECT_EQ(passed - 100, static_cast<std::size_t>(hit - expected.begin()) + is_there);
    if (!is_there) return;
    EXPECT_EQ(found.sequence, hit->sequence);
    EXPECT_EQ(found.value, hit->value);
  }
  void expect_ahead() const {
    if (expected.empty()) return;
    for (const std::size_t ahead : {0u, 1u, 16u, 62u}) {
      EXPECT_EQ(log.bits_ahead(ahead), ahead < expected.size() ? expected[ahead].value : 0);
    }
  }

  const simd::Kernels& kernels;
  NodeMemory memory;
  NodePool pool{memory, MessageLog::kBlockBytes};
  MessageLog log;
  std::deque<IndexItem> expected;
  std::uint64_t next = 1;
};

TEST(MessageLog, FindsAtEveryFillOfItsBlocks) {
  Twin twin;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(twin.push(i % 3, i % 7));
    for (const MatchKey& key : kKeys) ASSERT_NO_FATAL_FAILURE(twin.find(key, 0));
    twin.find(kKeys[3], twin.next);
    twin.expect_ahead();
  }
  while (!twin.expected.empty()) {
    for (const MatchKey& key : kKeys) ASSERT_NO_FATAL_FAILURE(twin.find(key, 0));
    twin.expect_ahead();
    twin.pop();
  }
  EXPECT_TRUE(twin.log.empty());
  ASSERT_TRUE(twin.push(1, 5));  // and begins anew
  twin.find(kKeys[0], 0);
}

TEST(MessageLog, FollowsADequeThroughRandomCalls) {
  for (unsigned isa = 0; simd::available_kernels(isa) != nullptr; ++isa) {
    for (std::uint32_t seed = 1; seed <= 8; ++seed) {
      std::mt19937 random(seed);
      Twin twin(isa, seed % 4 == 0 ? 8192 : 0);
      for (int call = 0; call < 6000; ++call) {
        if (random() % 100 < (call / 1500 % 2 == 0 ? 70u : 40u)) {
          twin.push(static_cast<std::int32_t>(random() % 40),
                    static_cast<std::int32_t>(random() % 40) - 8);
        } else if (!twin.expected.empty()) {
          twin.pop();
        }
        EXPECT_EQ(twin.log.empty(), twin.expected.empty());
        const std::size_t size = twin.expected.size();
        const std::uint64_t some = size == 0 ? 0 : twin.expected[random() % size].sequence;
        ASSERT_NO_FATAL_FAILURE(twin.find(kKeys[random() % 4], random() % 2 == 0 ? some : 0));
        if (call % 11 == 0) twin.expect_ahead();
      }
    }
  }
}

TEST(MessageLog, ClearGivesEveryBlockBack) {
  Twin twin;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(twin.push(i, i));
    twin.log.clear(twin.pool);
    twin.expected.clear();
    EXPECT_TRUE(twin.log.empty());
  }
  const std::size_t used = twin.memory.used_bytes();
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(twin.push(i, i));
  EXPECT_EQ(twin.memory.used_bytes(), used);
}

}  // namespace
}  // namespace tagline
