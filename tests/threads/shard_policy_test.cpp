// SPDX-License-Identifier: BSD-3-Clause
// When there should be other shards (match/shard_policy.hpp), without shards.
#include "match/shard_policy.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>

namespace tagline {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct NoCore {};

constexpr MatchEnvelope kForTag = {0, kAnySource, 1};
constexpr MatchEnvelope kForSource = {0, 1, kAnyTag};
constexpr MatchEnvelope kForAll = {0, kAnySource, kAnyTag};

// Calls of another thread than the last one, each with another key; the envelope instead in
// every one of so many, if not 0. Whether the shard is found crowded, and after how many.
int calls_until_crowded(ShardPolicy& policy, int most, int every = 0,
                        std::initializer_list<MatchEnvelope> wild = {}) {
  Shard<NoCore> shard;
  shard.since = ShardPolicy::Clock::now();
  auto next_wild = wild.begin();
  for (int i = 1; i <= most; ++i) {
    shard.thread = 0;
    MatchEnvelope envelope = {0, 1, i};
    if (every != 0 && i % every == 0) {
      envelope = *next_wild;
      if (++next_wild == wild.end()) next_wild = wild.begin();
    }
    if (policy.is_crowded(shard, envelope, true)) return i;
  }
  return 0;
}

TEST(ShardPolicy, FindsAShardCrowdedThatThreadsTakeTurnsAt) {
  ShardPolicy policy;
  // Or 2048 and so on, if the system takes the processor away for long.
  const int calls = calls_until_crowded(policy, 100000);
  EXPECT_GT(calls, 0);
  EXPECT_EQ(calls % 1024, 0);
  EXPECT_EQ(policy.split(), Split::by_key);
  Shard<NoCore> alone;
  for (int i = 0; i < 10000; ++i) {
    EXPECT_FALSE(policy.is_crowded(alone, {0, 1, i}, true)) << "always the same thread";
  }
  Shard<NoCore> same;
  for (int i = 0; i < 10000; ++i) {
    same.thread = 0;
    EXPECT_FALSE(policy.is_crowded(same, {0, 1, 1}, true)) << "nothing to split";
  }
}

TEST(ShardPolicy, IsNotSoonAgainOfAMindThatWasWrong) {
  ShardPolicy policy;
  policy.lose_patience();
  EXPECT_EQ(calls_until_crowded(policy, 1000000), 64 * 1024);
}

TEST(ShardPolicy, SplitsByWhatWildcardsName) {
  ShardPolicy policy;
  ASSERT_NE(calls_until_crowded(policy, 10000, 100, {kForTag}), 0);
  EXPECT_EQ(policy.split(), Split::by_tag);
  ASSERT_NE(calls_until_crowded(policy, 10000, 2, {kForSource}), 0);
  EXPECT_EQ(policy.split(), Split::by_source);
  ASSERT_NE(calls_until_crowded(policy, 10000, 10, {kForTag, kForSource}), 0);
  EXPECT_EQ(policy.split(), Split::not_at_all);
  ASSERT_NE(calls_until_crowded(policy, 10000, 10, {kForAll}), 0);
  EXPECT_EQ(policy.split(), Split::not_at_all);
  ASSERT_NE(calls_until_crowded(policy, 10000), 0);
  EXPECT_EQ(policy.split(), Split::by_key) << "of those since";
}

TEST(ShardPolicy, SplitsByKeyWhereWildcardsAreRare) {
  ShardPolicy policy;
  policy.lose_patience();
  ASSERT_NE(calls_until_crowded(policy, 1000000, 1000, {kForTag, kForAll}), 0);
  EXPECT_EQ(policy.split(), Split::by_key);
}

// Searches of all shards that have taken that long each, the review before long ago or not.
ShardPolicy::Review review(ShardPolicy& policy, int searches, ShardPolicy::Clock::duration each,
                           ShardPolicy::Clock::duration ago, MatchEnvelope a, MatchEnvelope b) {
  policy.begin(ShardPolicy::Clock::now() - ago);
  for (int i = 0; i < searches; ++i) {
    policy.note_search(i % 2 == 0 ? a : b, ShardPolicy::Clock::now() - each);
  }
  EXPECT_TRUE(policy.is_due());
  return policy.review();
}

TEST(ShardPolicy, CountsWhatSearchesCostOthers) {
  ShardPolicy policy;
  // 16 ms in 20: however few they are.
  const auto often = review(policy, 16, milliseconds(1), milliseconds(20), kForTag, kForTag);
  EXPECT_TRUE(often.is_shut_mostly);
  EXPECT_EQ(often.split, Split::by_tag);
  const auto seldom = review(policy, 16, milliseconds(1), seconds(1), kForTag, kForTag);
  EXPECT_FALSE(seldom.is_shut_mostly);
  const auto both = review(policy, 16, milliseconds(1), milliseconds(20), kForTag, kForSource);
  EXPECT_TRUE(both.is_shut_mostly);
  EXPECT_EQ(both.split, Split::not_at_all);
  EXPECT_FALSE(policy.is_due()) << "from here on anew";
  for (int i = 0; i < 15; ++i) {
    policy.note_search(kForTag, ShardPolicy::Clock::now() - milliseconds(1));
  }
  EXPECT_FALSE(policy.is_due()) << "too few to tell";
}

TEST(ShardPolicy, AClosingThatLastsIsDue) {
  ShardPolicy policy;
  policy.note_closing();
  for (int i = 0; i < 4096; ++i) policy.note_call_in_closing();
  EXPECT_TRUE(policy.is_due());
  EXPECT_TRUE(policy.review().is_shut_mostly);
}

TEST(ShardPolicy, MovesMoreEntriesTheMoreTheyHaveCost) {
  ShardPolicy policy;
  policy.begin();
  EXPECT_EQ(policy.worth_moving(), 65536u);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 16; ++i) {
      policy.note_search(kForTag, ShardPolicy::Clock::now() - milliseconds(10));
    }
    EXPECT_TRUE(policy.review().is_shut_mostly);
  }
  // 320 ms at 200 ns each, and what the test itself takes.
  EXPECT_GE(policy.worth_moving(), 1600000u);
  EXPECT_LT(policy.worth_moving(), 2400000u);
  policy.begin();
  EXPECT_EQ(policy.worth_moving(), 65536u);
}

}  // namespace
}  // namespace tagline
