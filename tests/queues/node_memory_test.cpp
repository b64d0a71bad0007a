// SPDX-License-Identifier: BSD-3-Clause
#include "queues/node_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/resident_memory.hpp"

namespace tagline {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Around every size at which an allocator does something else.
const std::vector<std::size_t> kSizes = {1,     63,    64,     65,         1000,    4095,    4096,
                                         14000, 65536, 262143, 256 * 1024, 1000000, 8 * kMiB};

TEST(NodeMemory, BlocksAreAlignedAndWritable) {
  NodeMemory memory(0);
  std::vector<void*> blocks;
  for (const std::size_t bytes : kSizes) {
    void* block = memory.allocate(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % kCacheLine, 0u) << bytes;
    std::memset(block, 0xab, bytes);
    blocks.push_back(block);
  }
  for (std::size_t i = 0; i < kSizes.size(); ++i) memory.release(blocks[i], kSizes[i]);
}

TEST(NodeMemory, ZeroedBlocksAreZeroEvenIfTakenBefore) {
  NodeMemory memory(0);
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t bytes : kSizes) {
      auto* block = static_cast<unsigned char*>(memory.allocate_zeroed(bytes));
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(std::all_of(block, block + bytes, [](unsigned char c) { return c == 0; }));
      std::memset(block, 0xcd, bytes);
      memory.release(block, bytes);
    }
  }
}

TEST(NodeMemory, CountsWhatIsHeld) {
  NodeMemory memory(0);
  const std::size_t others = NodeMemory::total_used_bytes();
  void* small = memory.allocate(100);
  void* large = memory.allocate_zeroed(3 * kMiB);
  EXPECT_EQ(memory.used_bytes(), 3 * kMiB + 100);
  EXPECT_EQ(NodeMemory::total_used_bytes(), others + 3 * kMiB + 100);
  memory.release(small, 100);
  EXPECT_EQ(memory.used_bytes(), 3 * kMiB);
  memory.release(large, 3 * kMiB);
  memory.release(nullptr, 1000);
  EXPECT_EQ(memory.used_bytes(), 0u);
  EXPECT_EQ(NodeMemory::total_used_bytes(), others);
}

TEST(NodeMemory, NothingBeyondTheLimit) {
  NodeMemory memory(1000);
  EXPECT_EQ(memory.allocate(1001), nullptr);
  void* most = memory.allocate(900);
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(memory.available_bytes(), 100u);
  EXPECT_EQ(memory.allocate_zeroed(101), nullptr);
  EXPECT_EQ(memory.used_bytes(), 900u);
  void* rest = memory.allocate(100);
  ASSERT_NE(rest, nullptr);
  memory.release(most, 900);
  memory.release(rest, 100);
  EXPECT_EQ(memory.available_bytes(), 1000u);
}

TEST(NodeMemory, OfAReservedBlockCountsWhatIsUsed) {
  MemoryLimit shared(6 * kMiB);
  {
    NodeMemory memory(4 * kMiB, &shared);
    void* block = memory.reserve(64 * kMiB, kMiB);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(memory.used_bytes(), kMiB);
    EXPECT_TRUE(memory.count(2 * kMiB));
    EXPECT_FALSE(memory.count(2 * kMiB));
    EXPECT_EQ(memory.reserve(64 * kMiB, 2 * kMiB), nullptr);
    EXPECT_EQ(memory.used_bytes(), 3 * kMiB);
    EXPECT_EQ(shared.available_bytes(), 3 * kMiB);
    memory.defer_releases(true);
    memory.release(block, 64 * kMiB, 3 * kMiB);
    EXPECT_EQ(memory.deferred_bytes(), 3 * kMiB);
    EXPECT_EQ(memory.used_bytes(), 3 * kMiB);
    memory.return_all();
    EXPECT_EQ(memory.used_bytes(), 0u);
    EXPECT_EQ(memory.deferred_bytes(), 0u);
  }
  EXPECT_EQ(shared.available_bytes(), 6 * kMiB);
}

TEST(NodeMemory, MoreThanThereIsIsRefused) {
  NodeMemory memory(0);
  EXPECT_EQ(memory.allocate(std::size_t{1} << 60), nullptr);
  EXPECT_EQ(memory.allocate_zeroed(std::size_t{1} << 60), nullptr);
  EXPECT_EQ(memory.used_bytes(), 0u);
}

TEST(NodeMemory, LargeZeroedBlocksAreNotTouched) {
  if (!test::kResidentBytesTell) GTEST_SKIP();
  NodeMemory memory(0);
  for (int round = 0; round < 2; ++round) {
    const std::size_t before = test::resident_bytes();
    void* block = memory.allocate_zeroed(256 * kMiB);
    ASSERT_NE(block, nullptr);
    EXPECT_LT(test::resident_bytes(), before + 8 * kMiB);
    memory.release(block, 256 * kMiB);
  }
}

TEST(NodeMemory, ReleasedBlocksGoBackToTheSystem) {
  if (!test::kResidentBytesTell) GTEST_SKIP();
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{20000}, kMiB, 64 * kMiB}) {
    NodeMemory memory(0);
    const std::size_t before = test::resident_bytes();
    std::vector<void*> blocks(64 * kMiB / bytes);
    for (void*& block : blocks) std::memset(block = memory.allocate(bytes), 1, bytes);
    EXPECT_GT(test::resident_bytes(), before + 60 * kMiB);
    for (void* block : blocks) memory.release(block, bytes);
    EXPECT_LT(test::resident_bytes(), before + 4 * kMiB) << bytes;
  }
}

TEST(NodeMemory, DiscardedPartsGiveTheirMemoryBack) {
  if (!test::kResidentBytesTell) GTEST_SKIP();
  NodeMemory memory(0);
  auto* block = static_cast<unsigned char*>(memory.allocate(64 * kMiB));
  ASSERT_NE(block, nullptr);
  std::memset(block, 1, 64 * kMiB);
  const std::size_t before = test::resident_bytes();
  NodeMemory::discard(block + 100, 32 * kMiB);
  EXPECT_LT(test::resident_bytes(), before - 30 * kMiB);
  EXPECT_EQ(block[99], 1);
  EXPECT_EQ(block[32 * kMiB + 100], 1);
  NodeMemory::discard(block + 40 * kMiB + 1, 4000);  // no whole page
  EXPECT_EQ(block[40 * kMiB + 2000], 1);
  memory.release(block, 64 * kMiB);
}

TEST(NodeMemory, SuppliedPartsKeepWhatTheyHold) {
  NodeMemory memory(0);
  auto* block = static_cast<unsigned char*>(memory.allocate_zeroed(8 * kMiB));
  ASSERT_NE(block, nullptr);
  block[5000] = 7;
  NodeMemory::supply(block + 100, 4 * kMiB);
  NodeMemory::supply(block + 8 * kMiB - 100, 100);  // the end of the block
  EXPECT_EQ(block[5000], 7);
  for (const std::size_t i : {std::size_t{0}, kMiB, 6 * kMiB, 8 * kMiB - 1}) EXPECT_EQ(block[i], 0);
  EXPECT_EQ(memory.used_bytes(), 8 * kMiB);
  memory.release(block, 8 * kMiB);
}

TEST(NodeMemory, DeferredReleasesAreReturnedLittleByLittle) {
  NodeMemory memory(100 * kMiB);
  const std::vector<std::size_t> sizes = {64, 4096, 100000, 20 * kMiB, 3 * kMiB, 5000};
  std::vector<void*> blocks;
  for (const std::size_t bytes : sizes) {
    std::memset(blocks.emplace_back(memory.allocate(bytes)), 1, bytes);
  }
  const std::size_t all = memory.used_bytes();
  memory.defer_releases(true);
  for (std::size_t i = 0; i < sizes.size(); ++i) memory.release(blocks[i], sizes[i]);
  memory.defer_releases(false);
  EXPECT_GT(memory.deferred_bytes(), 23 * kMiB);
  EXPECT_LE(all - memory.used_bytes(), 4096u);
  int steps = 0;
  for (std::size_t before = test::resident_bytes(); memory.return_some(); ++steps) {
    if (test::kResidentBytesTell) {
      EXPECT_LT(before, test::resident_bytes() + 2 * NodeMemory::kReturnedAtOnce);
    }
    before = test::resident_bytes();
  }
  EXPECT_GE(steps, 23);
  EXPECT_EQ(memory.deferred_bytes(), 0u);
  EXPECT_EQ(memory.used_bytes(), 0u);
}

TEST(NodeMemory, DeferredReleasesAreThereWhenTheLimitIsReached) {
  NodeMemory memory(10 * kMiB);
  void* block = memory.allocate(9 * kMiB);
  memory.defer_releases(true);
  memory.release(block, 9 * kMiB);
  memory.defer_releases(false);
  EXPECT_EQ(memory.available_bytes(), kMiB);
  block = memory.allocate(8 * kMiB);
  EXPECT_NE(block, nullptr);
  memory.release(block, 8 * kMiB);
}

TEST(NodeMemory, ThreadsShareTheBackend) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      NodeMemory memory(0);
      for (int round = 0; round < 200; ++round) {
        std::vector<void*> blocks;
        for (const std::size_t bytes : kSizes) {
          if (bytes > kMiB) break;
          std::memset(blocks.emplace_back(memory.allocate_zeroed(bytes)), t, bytes);
        }
        for (std::size_t i = 0; i < blocks.size(); ++i) memory.release(blocks[i], kSizes[i]);
      }
      EXPECT_EQ(memory.used_bytes(), 0u);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(NodeMemory, BackendTellsWhatItHas) {
  NodeMemory memory(0);
  const memory_backend::Use before = memory_backend::use();  // pages of other tests may linger
  void* block = memory.allocate(16 * kMiB);
  ASSERT_NE(block, nullptr);
  std::memset(block, 1, 16 * kMiB);
  const memory_backend::Use use = memory_backend::use();
  if (std::string(use.name) == "jemalloc") {
    EXPECT_GE(use.mapped_bytes, 16 * kMiB);
    EXPECT_GE(use.resident_bytes, 16 * kMiB);
    EXPECT_LT(use.resident_bytes, before.resident_bytes + 16 * kMiB + 8 * kMiB);
  } else {
    EXPECT_STREQ(use.name, "system");
  }
  memory.release(block, 16 * kMiB);
}

}  // namespace
}  // namespace tagline
