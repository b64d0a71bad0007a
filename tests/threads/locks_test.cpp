// SPDX-License-Identifier: BSD-3-Clause
// Every lock excludes, and hands over what its owners wrote (ThreadSanitizer looks too).
#include "match/locks.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "match/biased_lock.hpp"
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

// The first thread's way in where it is open, the lock otherwise.
template <class Use>
void with(BiasedLock& lock, Use use) {
  if (lock.enter_first()) {
    use();
    lock.leave_first();
  } else {
    lock.lock();
    use();
    lock.unlock();
  }
}

TEST(BiasedLock, IsTheFirstThreadsUntilAnotherComes) {
  if (!allow_barriers()) GTEST_SKIP() << "no membarrier(2) here";
  BiasedLock lock;
  lock.allow_bias();
  EXPECT_FALSE(lock.enter_first()) << "nobody has taken it";
  lock.lock();
  lock.unlock();
  ASSERT_TRUE(lock.enter_first());
  lock.leave_first();
  lock.wait_until_free();
  ASSERT_TRUE(lock.enter_first()) << "its own looks leave it as it is";
  lock.leave_first();
  std::thread([&] {
    EXPECT_FALSE(lock.enter_first());
    lock.lock();
    lock.unlock();
  }).join();
  EXPECT_FALSE(lock.enter_first());
  lock.lock();
  lock.unlock();
  EXPECT_FALSE(lock.enter_first()) << "for good";
}

TEST(BiasedLock, IsASpinLockWithoutABias) {
  BiasedLock lock;
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.enter_first());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_FALSE(lock.enter_first());
}

TEST(BiasedLock, OthersWaitForTheFirstThreadToLeave) {
  if (!allow_barriers()) GTEST_SKIP() << "no membarrier(2) here";
  for (const bool closes : {false, true}) {
    BiasedLock lock;
    lock.allow_bias();
    lock.lock();
    lock.unlock();
    ASSERT_TRUE(lock.enter_first());
    std::atomic<bool> is_in{false};
    std::thread other([&] {
      closes ? lock.wait_until_free() : lock.lock();
      is_in.store(true);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(is_in.load());
    lock.leave_first();
    other.join();
    EXPECT_TRUE(is_in.load());
  }
}

// The end of a bias is one moment in the life of a lock: many locks.
TEST(BiasedLock, ExcludesWhenTheSecondAndTheThirdThreadCome) {
  const int locks = effort(300);
  for (int i = 0; i < locks; ++i) {
    BiasedLock lock;
    lock.allow_bias();
    int plain = 0;  // not atomic: the lock is what protects it
    constexpr int kRounds = 200;
    std::atomic<bool> first_was_in{false};
    const auto count = [&] { ++plain; };
    std::thread first([&] {
      for (int round = 0; round < kRounds; ++round) {
        with(lock, count);
        first_was_in.store(true, std::memory_order_relaxed);
      }
    });
    std::vector<std::thread> others;
    for (int t = 0; t < 2; ++t) {
      others.emplace_back([&] {
        while (!first_was_in.load(std::memory_order_relaxed)) sched_yield();
        for (int round = 0; round < kRounds; ++round) with(lock, count);
      });
    }
    first.join();
    for (std::thread& thread : others) thread.join();
    ASSERT_EQ(plain, 3 * kRounds);
  }
}

}  // namespace
}  // namespace tagline::test
