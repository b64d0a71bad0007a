// SPDX-License-Identifier: BSD-3-Clause
// Every lock excludes, and hands over what its owners wrote (ThreadSanitizer looks too).
#include "match/locks.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

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

}  // namespace
}  // namespace tagline::test
