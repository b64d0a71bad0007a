// SPDX-License-Identifier: BSD-3-Clause
// Every lock excludes, and hands over what its owners wrote (ThreadSanitizer looks too).
#include "match/locks.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "match/shard.hpp"
#include "tests/support/effort.hpp"

namespace tagline::test {
namespace {

class Locks : public testing::TestWithParam<LockKind> {};

TEST_P(Locks, ExcludeMoreThreadsThanCores) {
  const int rounds = effort(20000);
  constexpr int kThreads = 5;
  Lock lock(GetParam());
  int plain = 0;  // not atomic: the lock is what protects it
  int tried = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        LockNode node;
        if (i % 4 == 0 && lock.try_lock(node)) {
          ++plain;
          ++tried;
          lock.unlock(node);
        } else {
          const LockGuard guard(lock);
          ++plain;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(plain, kThreads * rounds);
  EXPECT_GT(tried, 0);
}

TEST_P(Locks, AreNotTakenTwice) {
  Lock lock(GetParam());
  LockNode owner;
  lock.lock(owner);
  bool taken = true;
  std::thread([&] {
    LockNode other;
    taken = lock.try_lock(other);
  }).join();
  EXPECT_FALSE(taken);
  lock.unlock(owner);
  ASSERT_TRUE(lock.try_lock(owner));
  lock.unlock(owner);
}

INSTANTIATE_TEST_SUITE_P(
    Every, Locks, testing::Values(LockKind::spin, LockKind::mcs, LockKind::ticket, LockKind::mutex),
    [](const auto& kind) { return std::string(kLockNames[static_cast<int>(kind.param)]); });

using LockOfShard = Shard<int>;

// The first thread's way in where it is open, the lock otherwise.
template <class Use>
void with(LockOfShard& shard, Use use) {
  if (shard.enter_first()) {
    use();
    shard.lock.leave_first();
    return;
  }
  shard.lock.lock();
  if (shard.lock.is_owners()) shard.remember_first();
  use();
  shard.lock.unlock();
}
void take_once(LockOfShard& shard) {
  with(shard, [] {});
}

TEST(BiasedLock, IsTheFirstThreadsUntilAnotherComes) {
  if (!allow_barriers()) GTEST_SKIP() << "no membarrier(2) here";
  LockOfShard shard;
  shard.lock.allow_bias();
  EXPECT_FALSE(shard.enter_first()) << "nobody has taken it";
  take_once(shard);
  ASSERT_TRUE(shard.enter_first());
  shard.lock.leave_first();
  shard.lock.wait_until_free();
  ASSERT_TRUE(shard.enter_first()) << "its own looks leave it as it is";
  shard.lock.leave_first();
  std::thread([&] {
    EXPECT_FALSE(shard.enter_first());
    take_once(shard);
    EXPECT_FALSE(shard.enter_first());
  }).join();
  EXPECT_FALSE(shard.enter_first());
  take_once(shard);
  EXPECT_FALSE(shard.enter_first()) << "for good";
}

TEST(BiasedLock, IsASpinLockWithoutABias) {
  LockOfShard shard;
  take_once(shard);
  EXPECT_FALSE(shard.enter_first());
  EXPECT_TRUE(shard.lock.lock()) << "it was free";
  shard.lock.unlock();
}

TEST(BiasedLock, OthersWaitForTheFirstThreadToLeave) {
  if (!allow_barriers()) GTEST_SKIP() << "no membarrier(2) here";
  for (const bool closes : {false, true}) {
    LockOfShard shard;
    shard.lock.allow_bias();
    take_once(shard);
    ASSERT_TRUE(shard.enter_first());
    std::atomic<bool> is_in{false};
    std::thread other([&] {
      if (closes) {
        shard.lock.wait_until_free();
      } else {
        shard.lock.lock();
      }
      is_in.store(true);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(is_in.load());
    shard.lock.leave_first();
    other.join();
    EXPECT_TRUE(is_in.load());
  }
}

// The end of a bias is one moment in the life of a lock: many locks.
TEST(BiasedLock, ExcludesWhenTheSecondAndTheThirdThreadCome) {
  const int locks = effort(300);
  for (int i = 0; i < locks; ++i) {
    LockOfShard shard;
    shard.lock.allow_bias();
    int plain = 0;  // not atomic: the lock is what protects it
    constexpr int kRounds = 200;
    std::atomic<bool> first_was_in{false};
    const auto count = [&] { ++plain; };
    std::thread first([&] {
      for (int round = 0; round < kRounds; ++round) {
        with(shard, count);
        first_was_in.store(true, std::memory_order_relaxed);
      }
    });
    std::vector<std::thread> others;
    for (int t = 0; t < 2; ++t) {
      others.emplace_back([&] {
        while (!first_was_in.load(std::memory_order_relaxed)) sched_yield();
        for (int round = 0; round < kRounds; ++round) with(shard, count);
      });
    }
    first.join();
    for (std::thread& thread : others) thread.join();
    ASSERT_EQ(plain, 3 * kRounds);
  }
}

}  // namespace
}  // namespace tagline::test
