// SPDX-License-Identifier: BSD-3-Clause
// Classes of entries, each in a table.
#include "queues/class_tables.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "queues/key_index.hpp"
#include "tests/support/index_twin.hpp"

namespace tagline::test {
namespace {

TEST(ClassTables, OldestOfAllClassesWins) {
  constexpr std::int32_t kKinds[][2] = {
      {1, 5}, {kAnySource, 5}, {1, kAnyTag}, {kAnySource, kAnyTag}};
  // Every order of the four kinds of receive.
  int order[] = {0, 1, 2, 3};
  do {
    Twin twin(QueueSide::posted, ~std::uint64_t{0} - 2);
    for (const int kind : order) ASSERT_TRUE(twin.push(kKinds[kind][0], kKinds[kind][1]));
    twin.look(1, 6);
    twin.look(2, 5);
    twin.look(1, -5);
    for (int i = 0; i < 4; ++i) EXPECT_LE(twin.take(1, 5), 4u);
    EXPECT_TRUE(twin.index.empty());
  } while (std::next_permutation(std::begin(order), std::end(order)));
}

TEST(ClassTables, WildcardsThatAreGoneAreForgotten) {
  Twin twin(QueueSide::posted);
  ASSERT_TRUE(twin.push(1, 5));
  ASSERT_TRUE(twin.push(kAnySource, 6));
  ASSERT_TRUE(twin.push(1, kAnyTag));
  for (int i = 0; i < 2; ++i) {  // once there, then gone
    for (const std::int32_t tag : {6, 7}) twin.take(1, tag);
    for (const std::int32_t tag : {5, 6}) twin.look(9, tag);
  }
}

// Or a queue that is as long as when its table began to grow would be searched between two tables
// as long as it stays so.
TEST(ClassTables, SearchesAloneEndWhatATableHasBegunToMove) {
  for (const std::int32_t source : {1, kAnySource}) {
    for (const bool at_once : {false, true}) {
      Twin twin(QueueSide::posted);
      for (int tag = 0; tag < 1000; ++tag) ASSERT_TRUE(twin.push(1, tag));
      int tag = 1000;
      do {
        ASSERT_TRUE(twin.push(source, tag++));
      } while (twin.index.tells_among<QueueSide::posted>());
      const MatchKey nobodys = key_of(1, tag);
      void* cookie = nullptr;
      for (int i = 0; i < 600; ++i) {
        std::uint64_t depth = 0;
        if (at_once) {
          twin.index.take(nobodys, &cookie);
        } else {
          twin.index.find(nobodys, depth);
        }
      }
      EXPECT_TRUE(twin.index.tells_among<QueueSide::posted>()) << source << ", " << at_once;
      for (int i = 0; i < tag; ++i) twin.take(1, i);
    }
  }
}

// There is no number of entries at which each has to wait outside until another has left.
TEST(ClassTables, EntriesThatComeAgainGoThereAtOnceHoweverManyThereAre) {
  constexpr int kRounds = 2000;
  std::minstd_rand random;
  for (int entries = 1; entries <= 200; ++entries) {
    QueueResources resources(*simd::available_kernels(0), 0, Fifo::kNodeBytes);
    KeyIndex index(resources, QueueSide::posted);
    std::uint64_t next = 1;
    const auto entry_of = [&](int tag) { return QueueEntry{key_of(0, tag), nullptr, next++}; };
    for (int tag = 0; tag < entries; ++tag) ASSERT_TRUE(index.push(entry_of(tag)));
    QueueEntry waits = entry_of(entries);
    int waited = 0;
    for (int round = 0; round < kRounds; ++round) {
      const int tag = static_cast<int>(random() % static_cast<unsigned>(entries + 1));
      void* cookie = nullptr;
      const Glance glance = index.take(key_of(0, tag), &cookie);
      if (waits.sequence != 0 && glance == Glance::taken) {
        ASSERT_TRUE(index.push_at_hand<QueueSide::posted>(waits) || index.push(waits));
        waits = {};
      }
      const QueueEntry entry = entry_of(tag);
      if (glance != Glance::taken || index.push_at_hand<QueueSide::posted>(entry) ||
          index.push_at_once(entry))
        continue;
      index.make_room();
      waits = entry;
      ++waited;
    }
    EXPECT_LT(waited, kRounds / 16) << entries;
  }
}

TEST(ClassTables, EqualReceiveIsFoundAmongItsLikes) {
  Twin twin(QueueSide::posted);
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(twin.push(i % 2 == 0 ? 1 : kAnySource, i % 4 < 2 ? 2 : kAnyTag));
  }
  for (const QueueEntry& entry : twin.reference.entries) {
    const auto same = [&](const QueueEntry& other) { return other.cookie == entry.cookie; };
    const KeyIndex::Hit hit = twin.index.find_equal(entry.key, same);
    ASSERT_TRUE(hit);
    EXPECT_EQ(twin.index.at(hit).sequence, entry.sequence);
    MatchKey other = entry.key;
    other.bits ^= std::uint64_t{4} << (key_any_tag(entry.key) ? 0 : 32);
    EXPECT_FALSE(key_any_source(entry.key) && key_any_tag(entry.key)
                     ? KeyIndex::Hit()
                     : twin.index.find_equal(other, same));
  }
}

TEST(ClassTables, VisitsEveryEntryOnce) {
  Twin twin(QueueSide::posted);
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(twin.push(i % 3 == 0 ? kAnySource : i % 7, i % 5 == 0 ? kAnyTag : i % 11));
  }
  std::vector<QueueEntry> all;
  twin.index.for_each([&](const QueueEntry& entry) { all.push_back(entry); });
  std::sort(all.begin(), all.end(),
            [](const QueueEntry& a, const QueueEntry& b) { return a.sequence < b.sequence; });
  ASSERT_EQ(all.size(), twin.reference.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].sequence, twin.reference.entries[i].sequence);
    EXPECT_EQ(all[i].cookie, twin.reference.entries[i].cookie);
    EXPECT_EQ(all[i].key, twin.reference.entries[i].key);
  }
}

}  // namespace
}  // namespace tagline::test
