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
  Parts::Core* const core = parts.enter_alone();
  if (core != nullptr) core->turns().end();
  return core != nullptr;
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
  place.shard->lock.unlock();
  return true;
}

TEST(Shards, EntersByTheLockWhereItIsNobodysAndTheGateIsOpen) {
  Parts parts({}, *simd::available_kernels(0), TAGLINE_OPTIONS_DEFAULT, 2);
  EXPECT_FALSE(goes_through_by_the_lock(parts)) << "nothing has come here yet";
  post_by_the_lock(parts);
  std::thread([&] { post_by_the_lock(parts); }).join();
  for (int times = 0; times < 3; ++times) EXPECT_TRUE(goes_through_by_the_lock(parts));
  parts.with_whole([&] { EXPECT_FALSE(goes_through_by_the_lock(parts)) << "the gate is shut"; });
  EXPECT_TRUE(goes_through_by_the_lock(parts));
}

TEST(Shards, AnotherThreadThatHasOneOfManyToItselfIsFavoured) {
  if (!allow_barriers()) GTEST_SKIP() << "the system has no membarrier()";
  Parts parts({}, *simd::available_kernels(0), TAGLINE_OPTIONS_DEFAULT, 2);
  post_by_the_lock(parts);
  std::thread([&] {
    post_by_the_lock(parts);
    EXPECT_TRUE(goes_through_by_the_lock(parts));
    const auto is_favoured = [&] {
      return parts.enter_favoured(
                 kEnvelope, [](Parts::Shard&) { return TAGLINE_OK; },
                 [] { return TAGLINE_NOT_FOUND; }) == TAGLINE_OK;
    };
    bool favoured = false;
    for (int posts = 0; posts < 3 * 1024 && !favoured; ++posts) {
      post_by_the_lock(parts);
      favoured = is_favoured();
    }
    EXPECT_TRUE(favoured);
  }).join();
  post_by_the_lock(parts);  // or whoever comes next waits for good
}

class Store : public ShardStore<LinearQueue> {
 public:
  Store() : ShardStore({}, *simd::available_kernels(0), TAGLINE_OPTIONS_DEFAULT, 1) {}
  using ShardStore::first_core_;
  using ShardStore::redistribute;
};

class Observer final : public MemoryObserver {
 public:
  void in_use(const void*, std::size_t) noexcept override { ++told; }
  void code_in_use(const void*, std::size_t) noexcept override { ++told; }
  void out_of_use(const void*) noexcept override { ++told; }
  int told = 0;
};

TEST(Shards, FirstMatcherForgetsItsObserverOnceThereAreMany) {
  Observer observer;
  {
    Store store;
    void* receive = nullptr;
    store.first_core_.arrive({1, 0, 2}, &store, &receive);
    ASSERT_EQ(store.observe_memory(&observer), TAGLINE_OK);
    ASSERT_TRUE(store.redistribute(4, 0));
    EXPECT_GT(observer.told, 0);
    ASSERT_EQ(store.observe_memory(nullptr), TAGLINE_OK);
    observer.told = 0;
    ASSERT_TRUE(store.redistribute(8, 0));
  }
  EXPECT_EQ(observer.told, 0) << "it may be gone";
}

// It stays, for a thread that may be about to enter it, but what it held does not.
TEST(Shards, FirstMatcherHoldsNothingOnceThereAreMany) {
  const std::size_t others = NodeMemory::total_used_bytes();
  Store store;
  for (int tag = 0; tag < 1000; ++tag) {
    void* receive = nullptr;
    store.first_core_.arrive({1, 0, tag}, &store, &receive);
  }
  ASSERT_TRUE(store.redistribute(4, 0));
  EXPECT_EQ(store.statistics().unexpected.length, 1000);
  EXPECT_EQ(NodeMemory::total_used_bytes() - others, store.statistics().pool_bytes);
  ASSERT_TRUE(store.redistribute(8, 0)) << "and it is given up but once";
  EXPECT_EQ(NodeMemory::total_used_bytes() - others, store.statistics().pool_bytes);
}

}  // namespace
}  // namespace tagline
