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

INSTANTIATE_TEST_SUITE_P(Every, Locks,
                         testing::Values(LockKind::spin, LockKind::patient, LockKind::mcs,
                                         LockKind::ticket, LockKind::mutex),
                         [](const auto& kind) {
                           return std::string(kLockNames[static_cast<int>(kind.param)]);
                         });

TEST(WordLock, GivesUpAfterSoManyLooks) {
  PatientLock lock;
  lock.lock();
  EXPECT_FALSE(lock.try_later(3));
  lock.unlock();
  EXPECT_FALSE(lock.try_later(0));
  EXPECT_TRUE(lock.try_later(1));
  EXPECT_TRUE(lock.is_held());
  lock.unlock();
}

using LockOfShard = Shard<int>;

void leave(std::atomic<bool>* inside) { inside->store(false, std::memory_order_release); }

// The favoured thread's way in where it is open, the lock otherwise.
template <class Use>
void with(LockOfShard& shard, Use use) {
  if (std::atomic<bool>* const inside = shard.enter()) {
    use();
    leave(inside);
    return;
  }
  shard.lock.lock();
  if (shard.lock.favour() != 0) shard.remember_favour();
  use();
  shard.lock.unlock();
}
void take_once(LockOfShard& shard) {
  with(shard, [] {});
}
// As a thread that has had the lock to itself for long.
void take_for_long(LockOfShard& shard) {
  for (int looks = 0; looks < 2; ++looks) {
    with(shard, [&] { shard.lock.consider_this_thread(true); });
  }
  take_once(shard);
}
bool is_favoured(LockOfShard& shard) {
  std::atomic<bool>* const inside = shard.enter();
  if (inside != nullptr) leave(inside);
  return inside != nullptr;
}

// As whoever closes does.
void wait_until_free(LockOfShard& shard) {
  if (!shard.lock.wait_for_holder()) return;
  barrier_in_all_threads();
  shard.lock.wait_for_favoured();
}

TEST(BiasedLock, IsTheFirstThreadsUntilAnotherComes) {
  if (!allow_barriers()) GTEST_SKIP() << "no membarrier(2) here";
  LockOfShard shard;
  std::atomic<bool> first_inside{false};
  shard.lock.allow_bias(first_inside);
  EXPECT_FALSE(is_favoured(shard)) << "nobody has taken it";
  take_once(shard);
  ASSERT_TRUE(is_favoured(shard));
  ASSERT_TRUE(shard.enter_first(first_inside)) << "the short way";
  leave(&first_inside);
  wait_until_free(shard);
  ASSERT_TRUE(is_favoured(shard)) << "its own looks leave it as it is";
  std::thread([&] {
    EXPECT_FALSE(is_favoured(shard));
    take_once(shard);
    EXPECT_FALSE(is_favoured(shard));
  }).join();
  EXPECT_FALSE(shard.enter_first(first_inside));
  EXPECT_FALSE(first_inside.load());
  EXPECT_FALSE(is_favoured(shard));
  take_once(shard);
  EXPECT_FALSE(is_favoured(shard)) << "once does not bring it back";
}

TEST(BiasedLock, FavoursAnotherThreadLaterAFewTimes) {
  if (!allow_barriers()) GTEST_SKIP() << "no membarrier(2) here";
  LockOfShard shard;
  shard.lock.allow_bias();
  take_once(shard);
  unsigned favours = 1, favours_of_other = 0;
  // Always another thread than the last one: this one and one that lives as long.
  std::atomic<int> turn{0};
  std::thread other([&] {
    for (int round = 0; round < 8; ++round) {
      while (turn.load() != 2 * round) sched_yield();
      take_for_long(shard);
      favours_of_other += is_favoured(shard);
      turn.store(2 * round + 1);
    }
  });
  for (int round = 0; round < 8; ++round) {
    while (turn.load() != 2 * round + 1) sched_yield();
    EXPECT_FALSE(is_favoured(shard));
    take_for_long(shard);
    favours += is_favoured(shard);
    turn.store(2 * round + 2);
  }
  other.join();
  EXPECT_EQ(favours, BiasedLock::kFavours / 2);
  EXPECT_EQ(favours_of_other, 8u) << "it was last";
  EXPECT_FALSE(is_favoured(shard));
}

TEST(BiasedLock, FavoursTheThreadAgainThatWasLastAsOftenAsItLikes) {
  if (!allow_barriers()) GTEST_SKIP() << "no membarrier(2) here";
  LockOfShard shard;
  std::atomic<bool> first_inside{false};
  shard.lock.allow_bias(first_inside);
  take_once(shard);
  const auto consider = [&] {
    with(shard, [&] { shard.lock.consider_this_thread(false); });
    take_once(shard);
  };
  std::atomic<int> turn{0};
  constexpr int kRounds = 3 * BiasedLock::kFavours;
  std::thread other([&] {
    for (int round = 0; round < kRounds; ++round) {
      while (turn.load() != 2 * round + 1) sched_yield();
      consider();
      consider();
      EXPECT_FALSE(is_favoured(shard)) << "it would be its first time";
      turn.store(2 * round + 2);
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    const bool is_first = shard.enter_first(first_inside);
    EXPECT_TRUE(is_first);
    if (is_first) leave(&first_inside);
    turn.store(2 * round + 1);
    while (turn.load() != 2 * round + 2) sched_yield();
    EXPECT_FALSE(is_favoured(shard));
    consider();
    EXPECT_FALSE(is_favoured(shard)) << "watched";
    if (round % 2 == 0) {
      std::thread([&] { round % 4 == 0 ? take_once(shard) : wait_until_free(shard); }).join();
      consider();
      EXPECT_FALSE(is_favoured(shard)) << "another has come meanwhile";
    }
    consider();
  }
  other.join();
  take_for_long(shard);
  EXPECT_TRUE(is_favoured(shard));
}

TEST(BiasedLock, IsASpinLockWithoutABias) {
  LockOfShard shard;
  take_for_long(shard);
  EXPECT_FALSE(is_favoured(shard));
  EXPECT_TRUE(shard.lock.lock()) << "it was free";
  shard.lock.unlock();
}

TEST(BiasedLock, OthersWaitForTheFavouredThreadToLeave) {
  if (!allow_barriers()) GTEST_SKIP() << "no membarrier(2) here";
  std::atomic<bool> first_inside{false};
  for (const bool closes : {false, true}) {
    LockOfShard shard;
    shard.lock.allow_bias(first_inside);
    const bool is_first = !closes;
    if (!is_first) std::thread([&] { take_once(shard); }).join();
    take_for_long(shard);
    std::atomic<bool>* const inside = shard.enter();
    ASSERT_NE(inside, nullptr);
    EXPECT_EQ(inside == &first_inside, is_first);
    std::atomic<bool> is_in{false};
    std::thread other([&] {
      if (closes) {
        wait_until_free(shard);
      } else {
        shard.lock.lock();
      }
      is_in.store(true);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(is_in.load());
    leave(inside);
    other.join();
    EXPECT_TRUE(is_in.load());
  }
}

// The end of a favour is a moment in the life of a lock: many locks.
TEST(BiasedLock, ExcludesWhenTheSecondAndTheThirdThreadCome) {
  const int locks = effort(300);
  for (int i = 0; i < locks; ++i) {
    LockOfShard shard;
    shard.lock.allow_bias();
    int plain = 0;  // not atomic: the lock is what protects it
    constexpr int kRounds = 200;
    std::atomic<bool> first_was_in{false};
    // Favours come and go as the rounds do.
    const auto count = [&] {
      if (++plain % 4 == 0) shard.lock.consider_this_thread(plain % 8 == 0);
    };
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
