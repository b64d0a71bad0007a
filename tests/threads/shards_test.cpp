// SPDX-License-Identifier: BSD-3-Clause
// Who has a shard to itself (match/shards.hpp).
#include "match/shards.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "match/tagline.h"
#include "queues/linear.hpp"
#include "simd/kernels.hpp"

namespace tagline {
namespace {

using Parts = Shards<LinearQueue>;
constexpr MatchEnvelope kEnvelope = {0, 1, 2};

void post_by_the_lock(Parts& parts) {
  void* message = nullptr;
  parts.visit(
      kEnvelope,
      [&](Parts::Shard& shard) {
        if (!parts.ready(shard)) return TAGLINE_NO_MEMORY;
        parts.number_receive(shard);
        return shard.core->post_receive(kEnvelope, &message, &message, nullptr);
      },
      [] { return TAGLINE_OK; });
}
void look_at_all(Parts& parts) {
  parts.with_whole([&] { parts.statistics(); });
}

bool enters_alone(Parts& parts) {
  if (!parts.enter_alone()) return false;
  parts.core_alone().turns().end();
  return true;
}

// Whether so many posts are enough to be alone again.
bool is_alone_after(Parts& parts, int posts) {
  for (; posts > 0; --posts) post_by_the_lock(parts);
  return enters_alone(parts);
}

TEST(Shards, OneShardFavoursItsFirstThreadAgainThatHasItToItself) {
  if (!allow_barriers()) GTEST_SKIP() << "the system has no membarrier()";
  Parts parts({}, *simd::available_kernels(0), TAGLINE_OPTIONS_DEFAULT, 1);
  post_by_the_lock(parts);
  EXPECT_TRUE(enters_alone(parts));
  look_at_all(parts);
  EXPECT_TRUE(enters_alone(parts)) << "nobody else has come";

  for (int times = 0; times < 10; ++times) {
    std::thread([&] { look_at_all(parts); }).join();
    EXPECT_FALSE(enters_alone(parts));
    EXPECT_FALSE(is_alone_after(parts, 1024)) << "not looked at for long enough";
    EXPECT_TRUE(is_alone_after(parts, 2 * 1024));
  }
}

TEST(Shards, OneShardThatOthersComeToIsNobodysAgain) {
  if (!allow_barriers()) GTEST_SKIP() << "the system has no membarrier()";
  Parts parts({}, *simd::available_kernels(0), TAGLINE_OPTIONS_DEFAULT, 1);
  post_by_the_lock(parts);
  for (int times = 0; times < 10; ++times) {
    std::thread([&] { times % 2 == 0 ? post_by_the_lock(parts) : look_at_all(parts); }).join();
    EXPECT_FALSE(is_alone_after(parts, 900));
  }
  std::thread([&] {
    EXPECT_FALSE(is_alone_after(parts, 10 * 1024)) << "not the first one";
  }).join();
  EXPECT_TRUE(is_alone_after(parts, 3 * 1024));
}

// As a call of the matcher that finds the lock free and has nothing to do.
bool goes_through_by_the_lock(Parts& parts) {
  const Parts::Place place = parts.find_open(kEnvelope);
  if (place.shard == nullptr || !place.shard->lock.try_lock()) return false;
  if (!parts.enter_by_lock(place)) return false;
  place.shard->core->turns().end();
  return true;
}

TEST(Shards, TurnByTheLockGivesItBack) {
  Parts parts({}, *simd::available_kernels(0), TAGLINE_OPTIONS_DEFAULT, 2);
  EXPECT_FALSE(goes_through_by_the_lock(parts)) << "nothing has come here yet";
  post_by_the_lock(parts);
  std::thread([&] { post_by_the_lock(parts); }).join();
  for (int times = 0; times < 3; ++times) EXPECT_TRUE(goes_through_by_the_lock(parts));
  parts.with_whole([&] { EXPECT_FALSE(goes_through_by_the_lock(parts)) << "the gate is shut"; });
  EXPECT_TRUE(goes_through_by_the_lock(parts));
}

// It may be another's, who is about to see that the gate is shut.
TEST(Shards, TurnWithTheGateShutLeavesTheLockAlone) {
  Parts parts({}, *simd::available_kernels(0), TAGLINE_OPTIONS_DEFAULT, 2);
  post_by_the_lock(parts);
  std::thread([&] { post_by_the_lock(parts); }).join();
  ASSERT_TRUE(goes_through_by_the_lock(parts));
  parts.with_whole([&] {
    Parts::Shard& shard = parts.shard_of(kEnvelope);
    ASSERT_TRUE(shard.lock.try_lock());
    shard.core->turns().end();
    EXPECT_FALSE(shard.lock.try_lock());
    shard.lock.unlock();
  });
}

TEST(Shards, AnotherThreadThatHasOneOfManyToItselfIsFavoured) {
  if (!allow_barriers()) GTEST_SKIP() << "the system has no membarrier()";
  Parts parts({}, *simd::available_kernels(0), TAGLINE_OPTIONS_DEFAULT, 2);
  post_by_the_lock(parts);
  std::thread([&] {
    post_by_the_lock(parts);
    EXPECT_TRUE(goes_through_by_the_lock(parts));
    Parts::Shard* shard = nullptr;
    for (int posts = 0; posts < 3 * 1024 && shard == nullptr; ++posts) {
      post_by_the_lock(parts);
      parts.enter_favoured(
          kEnvelope,
          [&](Parts::Shard& entered) {
            shard = &entered;
            return TAGLINE_OK;
          },
          [] { return TAGLINE_NOT_FOUND; });
    }
    ASSERT_NE(shard, nullptr);
    EXPECT_TRUE(shard->lock.inside().load());
    shard->core->turns().end();
    EXPECT_FALSE(shard->lock.inside().load()) << "or whoever comes next would wait for good";
  }).join();
}

}  // namespace
}  // namespace tagline
