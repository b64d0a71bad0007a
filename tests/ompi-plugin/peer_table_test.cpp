// SPDX-License-Identifier: BSD-3-Clause
// Every rank has a peer of its own, which stays where it is, at 16 bytes, whoever looks meanwhile.
#include "ompi-plugin/peer_table.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/support/effort.hpp"
#include "tests/support/resident_memory.hpp"

namespace tagline::pml {
namespace {

using test::effort;

constexpr std::int32_t kMillion = 1000000;
// About the sizes where the table, and the hash, are others.
constexpr std::int32_t kRanks[] = {1, 2, 16, 17, 64, 1000, 65535, 65536, 100000, kMillion};

struct Pattern {
  std::string name;
  std::vector<std::int32_t> ranks;  // all different
};

std::vector<Pattern> patterns(std::int32_t ranks, std::int32_t most) {
  std::vector<Pattern> all;
  for (const std::int32_t distance : {1, 2, 3, 32, 33, 1024, 4096}) {
    Pattern& each = all.emplace_back("distance " + std::to_string(distance));
    for (std::int64_t rank = 0; rank < ranks && std::ssize(each.ranks) < most; rank += distance) {
      each.ranks.push_back(static_cast<std::int32_t>(rank));
    }
  }
  std::mt19937 random(1);
  std::uniform_int_distribution<std::int32_t> any(0, ranks - 1);
  std::set<std::int32_t> chosen;
  for (std::int32_t i = 0; i < most; ++i) chosen.insert(any(random));
  Pattern& scattered = all.emplace_back("random");
  scattered.ranks.assign(chosen.begin(), chosen.end());
  std::shuffle(scattered.ranks.begin(), scattered.ranks.end(), random);
  Pattern& doubling = all.emplace_back("doubling distances");
  for (std::int64_t distance = 1; distance < ranks; distance *= 2) {
    doubling.ranks.push_back(static_cast<std::int32_t>(distance));
  }
  return all;
}

// Contacts in random order, most of them with ranks that have been there before.
void play(std::int32_t ranks, const std::vector<std::int32_t>& pattern, bool threads) {
  PeerTable table;
  ASSERT_TRUE(table.resize(ranks, threads));
  struct Known {
    Peer* peer;
    std::uint32_t sent = 0;
  };
  std::unordered_map<std::int32_t, Known> model;
  std::set<const Peer*> addresses;
  std::mt19937 random(2);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    for (const std::size_t at : {i, i, random() % (i + 1), random() % (i + 1)}) {
      const std::int32_t rank = pattern[at];
      Peer* const peer = table.find(rank);
      ASSERT_NE(peer, nullptr);
      const auto [known, is_new] = model.try_emplace(rank, Known{peer});
      if (is_new) {
        ASSERT_TRUE(addresses.insert(peer).second) << "rank " << rank << " has another's";
      }
      ASSERT_EQ(peer, known->second.peer) << "rank " << rank;
      ASSERT_EQ(peer->sent++, known->second.sent++) << "rank " << rank;
      ASSERT_EQ(peer->arrived--, 0 - (known->second.sent - 1));
    }
  }
}

TEST(PeerTable, HasOnePeerForEachRankWhereItWas) {
  for (const bool threads : {false, true}) {
    for (const std::int32_t ranks : kRanks) {
      for (const Pattern& pattern : patterns(ranks, effort(5000))) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks, " + pattern.name);
        play(ranks, pattern.ranks, threads);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(PeerTable, GrowsBeyondOneList) {
  // Both so many that further lists are full as well, and few.
  for (const std::int32_t peers : {70000, 1200000}) {
    const std::int32_t ranks = 1500000;
    const std::int32_t contacts = effort(100) == 100 ? peers : 70000;
    PeerTable table;
    ASSERT_TRUE(table.resize(ranks, false));
    const std::int32_t distance = ranks / contacts;
    std::vector<Peer*> found;
    for (std::int32_t i = 0; i < contacts; ++i) {
      found.push_back(table.find(i * distance));
      ASSERT_NE(found.back(), nullptr);
      ASSERT_EQ(found.back()->sent, 0u) << "of another rank";
      found.back()->sent = static_cast<std::uint32_t>(i + 1);
    }
    for (std::int32_t i = 0; i < contacts; ++i) {
      ASSERT_EQ(table.find(i * distance), found[static_cast<std::size_t>(i)]);
    }
  }
}

void count_bytes_of_every_pattern() {
  // The allocator counts small blocks that are free one by one, unless it merges them.
  mallopt(M_MXFAST, 0);
  constexpr std::size_t kBytes = 16;
  constexpr std::size_t kOpen = 128;  // what was taken last has room for more
  // By a thread of its own, which has a heap of its own: in a used one a block may be what is left
  // of a larger one, and longer than asked for.
  const auto count = [&](std::int32_t ranks, const Pattern& pattern) {
    const std::vector<char> first(1);  // makes the heap
    PeerTable table;
    ASSERT_TRUE(table.resize(ranks, true));
    const std::size_t before = mallinfo2().uordblks;
    std::size_t peers = 0;
    for (const std::int32_t rank : pattern.ranks) {
      ASSERT_NE(table.find(rank), nullptr);
      // Asking takes a while; most is taken for one peer in 64.
      if (++peers > 300 && peers % 64 != 1) continue;
      const std::size_t bytes = mallinfo2().uordblks - before;
      ASSERT_LE(bytes, kBytes * peers + kOpen)
          << peers << " peers, " << ranks << " ranks, " << pattern.name;
    }
  };
  for (const std::int32_t ranks : kRanks) {
    for (const Pattern& pattern : patterns(ranks, 5000)) {
      std::thread([&] { count(ranks, pattern); }).join();
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(PeerTable, TakesSixteenBytesPerPeerInEveryPattern) {
  if (!test::kResidentBytesTell) GTEST_SKIP() << "a sanitizer's allocator has other books";
  // In a process of its own: a thread may get a heap that threads of other tests have used.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        count_bytes_of_every_pattern();
        std::exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

// Threads meet ranks for the first time in different orders, others come back to them meanwhile.
TEST(PeerTable, GivesAllThreadsTheSamePeers) {
  constexpr int kThreads = 4;
  const int rounds = effort(40);
  for (const std::int32_t ranks : {16, 17, 3000, kMillion}) {
    for (int round = 0; round < rounds; ++round) {
      const std::int32_t peers = std::min<std::int32_t>(ranks, 600);
      PeerTable table;
      ASSERT_TRUE(table.resize(ranks, true));
      std::vector<std::vector<Peer*>> found(kThreads);
      std::atomic<int> ready{0};
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          std::vector<std::int32_t> order(static_cast<std::size_t>(peers));
          std::iota(order.begin(), order.end(), 0);
          std::mt19937 random(static_cast<unsigned>(round * kThreads + t / 2));
          if (t % 2 == 0) std::shuffle(order.begin(), order.end(), random);
          found[t].resize(order.size());
          ++ready;
          while (ready.load() < kThreads) sched_yield();
          for (std::size_t i = 0; i < order.size(); ++i) {
            for (const std::size_t at : {i, random() % (i + 1)}) {
              const std::int32_t rank = order[at] * (ranks / peers);
              Peer* const peer = table.find(rank);
              std::atomic_ref(peer->sent).fetch_add(1, std::memory_order_relaxed);
              Peer*& seen = found[t][static_cast<std::size_t>(order[at])];
              if (seen == nullptr) seen = peer;
              if (seen != peer) {
                ADD_FAILURE() << "rank " << rank << " has moved";
                return;
              }
            }
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      std::uint64_t sent = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(peers); ++i) {
        for (int t = 1; t < kThreads; ++t) ASSERT_EQ(found[t][i], found[0][i]);
        sent += found[0][i]->sent;
      }
      ASSERT_EQ(sent, std::uint64_t{2} * kThreads * static_cast<std::uint64_t>(peers));
    }
  }
}

}  // namespace
}  // namespace tagline::pml
