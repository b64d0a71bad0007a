// SPDX-License-Identifier: BSD-3-Clause
// Readers see nothing change (ThreadSanitizer looks too), and whoever changes waits for them.
#include "match/readers.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "match/locks.hpp"
#include "tests/support/effort.hpp"

namespace tagline::test {
namespace {

using Reader = Readers::Reader;

TEST(Readers, AreLetInByTheOwnerOfTheLockOnly) {
  Readers readers;
  EXPECT_FALSE(Reader(&readers));
  EXPECT_FALSE(readers.close()) << "nobody was let in";
  readers.open();
  EXPECT_TRUE(Reader(&readers));
  EXPECT_TRUE(readers.close());
  EXPECT_FALSE(Reader(&readers));
  EXPECT_FALSE(Reader(nullptr));
}

TEST(Readers, MayAskToClose) {
  Readers readers;
  readers.ask_to_close();
  EXPECT_FALSE(readers.close()) << "they were never let in";
  readers.open();
  {
    const Reader reader(&readers);
    readers.ask_to_close();
    EXPECT_TRUE(reader) << "it may go on";
    EXPECT_FALSE(Reader(&readers));
  }
  EXPECT_TRUE(readers.close()) << "some may have been inside";
}

TEST(Readers, AreWaitedFor) {
  Readers readers;
  readers.open();
  Reader reader(&readers);
  ASSERT_TRUE(reader);
  std::atomic<bool> closed{false};
  std::thread owner([&] {
    readers.close();
    closed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(closed);
  reader.leave();
  owner.join();
  EXPECT_TRUE(closed);
}

TEST(Readers, HaveSixteenPlaces) {
  Readers readers;
  readers.open();
  std::vector<std::unique_ptr<Reader>> inside;
  for (int i = 0; i < 16; ++i) {
    inside.push_back(std::make_unique<Reader>(&readers));
    EXPECT_TRUE(*inside.back()) << i;
  }
  EXPECT_FALSE(Reader(&readers));
  inside.pop_back();
  EXPECT_TRUE(Reader(&readers));
}

TEST(Readers, SeeNothingChange) {
  const int rounds = effort(20000);
  constexpr int kThreads = 4;
  Readers readers;
  Lock lock(LockKind::spin);
  int first = 0;  // not atomic, and always equal
  int second = 0;
  std::atomic<int> read{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        if (const Reader reader(&readers); reader) {
          EXPECT_EQ(first, second);
          read.fetch_add(1, std::memory_order_relaxed);
          continue;
        }
        const LockGuard guard(lock);
        readers.close();
        ++first;
        ++second;
        if (i % 4 == 0) readers.open();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(first, second);
  EXPECT_EQ(read + first, kThreads * rounds);
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace tagline::test
