// SPDX-License-Identifier: BSD-3-Clause
// When a short queue, or one that had an index, uses an index from the first entry on, and when it
// does not.
#include "queues/index_decision.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/support/adaptive_queue.hpp"

namespace tagline::test {
namespace {

TEST_F(Adaptive, IndexThatEmptiedIsUsedFromTheFirstEntryOn) {
  be_deep();
  EXPECT_FALSE(queue_.is_indexed());
  for (int tag = 0; tag < 3; ++tag) append(tag);
  EXPECT_TRUE(queue_.is_indexed());
  EXPECT_EQ(take(1), 1u);
  EXPECT_EQ(take(0), 1u);
}

TEST_F(Adaptive, ShortQueueIsIndexedFromTheFirstEntryOnWhereItIsDrainedInRandomOrder) {
  for (const int entries : {4, 8, 24, 60}) {
    for (int i = 0; i < 2000; i += entries) drain_at_random(entries);
    EXPECT_TRUE(is_indexed_from_the_first_on()) << entries;
    // Of four the newest is the last by chance a few times in a row, but hardly eight times.
    for (int i = 0; i < 7; ++i) drain_in_order(entries);
    EXPECT_TRUE(is_indexed_from_the_first_on()) << entries;
    for (int i = 0; i < 8; ++i) drain_in_order(entries);
    EXPECT_FALSE(is_indexed_from_the_first_on()) << entries;
  }
}

// Also of entries that a matcher passes to the index at hand: the first of these is not the newest.
TEST_F(Adaptive, IndexThatIsFilledAtHandIsForgottenOnlyWhereItIsDrainedInOrder) {
  constexpr int kEntries = 100;
  const auto fill = [&] {
    append(0);
    ASSERT_TRUE(queue_.begin_index_at_hand<QueueSide::posted>());
    for (int tag = 1; tag < kEntries; ++tag) {
      if (!append_at_hand(tag)) append(tag);  // where the table has to grow
    }
    ASSERT_TRUE(queue_.is_indexed());
  };
  be_deep();
  fill();
  for (int tag = kEntries - 1; tag >= 0; --tag) EXPECT_EQ(take_now(tag), 1u);
  ASSERT_TRUE(is_indexed_from_the_first_on());
  for (int i = 0; i < 2; ++i) {
    fill();
    for (int tag = 0; tag < kEntries; ++tag) EXPECT_EQ(take_now(tag), 1u);
  }
  EXPECT_FALSE(is_indexed_from_the_first_on());
}

TEST_F(Adaptive, ShortQueueIsSoonIndexedAgainWhereMatchesNoLongerComeInOrder) {
  for (const int entries : {4, 8, 24, 60}) {
    for (int i = 0; i < 2000; i += entries) drain_at_random(entries);
    for (int i = 0; i < 1000; i += entries) drain_in_order(entries);
    EXPECT_FALSE(is_indexed_from_the_first_on()) << entries;
    for (int i = 0; i < 240; i += entries) drain_at_random(entries);
    EXPECT_TRUE(is_indexed_from_the_first_on()) << entries;
  }
}

TEST_F(Adaptive, ShortQueueIsNotIndexedWhereNearlyAllMatchesComeInOrder) {
  for (int i = 0; i < 100; ++i) {
    drain_at_random(8);
    for (int round = 0; round < 8; ++round) drain_in_order(8);
  }
  EXPECT_FALSE(is_indexed_from_the_first_on());
}

// Up to about 16 receives all are compared as fast as an index asks for wildcards, too.
TEST_F(Adaptive, ShortQueueThatIsDrainedAtRandomBesideWildcardsIsIndexedWhereItHasMoreThanAFew) {
  for (const int entries : {8, 60}) {
    for (int i = 0; i < 100; ++i) {
      queue_.append({key_of(kAnySource, 1 << 20), nullptr, next_++});
      drain_at_random(entries);
      EXPECT_EQ(take_now(1 << 20), 1u);
    }
    EXPECT_EQ(is_indexed_from_the_first_on(), entries == 60) << entries;
  }
}

TEST_F(Adaptive, ShortQueueIsNotIndexedWhereItIsDrainedAtRandomBesideSearchesWithWildcards) {
  for (int i = 0; i < 100; ++i) {
    std::uint64_t depth = 0;
    append(0);
    append(1);
    EXPECT_TRUE(queue_.find(key_of(kAnySource, 0), depth));
    take_now(0);
    take_now(1);
    drain_at_random(8);
  }
  EXPECT_FALSE(is_indexed_from_the_first_on());
}

TEST_F(Adaptive, QueueThatWasDeepIndexesMoreThanAFewAsTheyCome) {
  be_deep();
  for (int tag = 0; tag < 30; ++tag) append(tag);
  EXPECT_EQ(take(20), 1u);
  EXPECT_EQ(take(3), 1u);
  EXPECT_EQ(take(19), 1u);
}

// What is few now is compared at once, however long the queue was.
TEST_F(Adaptive, ShortQueueIsSearchedAsOneThatWasNeverDeep) {
  for (int tag = 0; tag < 2000; ++tag) append(tag);
  for (int tag = 0; tag < 2000; ++tag) {
    void* cookie = nullptr;
    ASSERT_TRUE(queue_.take(key_of(0, tag), &cookie, [](std::uint64_t, bool) {}));
  }
  EXPECT_FALSE(queue_.is_one_group()) << "in order nothing is compared that could be many";
  for (int tag = 0; tag < 8; ++tag) append(tag);
  for (int tag = 6; tag >= 0; --tag) take(tag);
  EXPECT_TRUE(queue_.is_one_group());
  for (int tag = 8; tag < 2000; ++tag) append(tag);
  for (int tag = 7; tag < 2000; ++tag) EXPECT_EQ(take(tag), 1u);
  be_deep();
  EXPECT_TRUE(queue_.is_one_group());
}

TEST_F(Adaptive, ShortQueueIsIndexedWhereItNeverEmptiesAndMatchesLeaveHoles) {
  for (const int entries : {4, 8, 24, 60}) {
    for (int tag = 0; tag < entries; ++tag) append(tag);
    go_round(entries, 400);
    EXPECT_TRUE(queue_.is_indexed()) << entries;
    for (int i = 0; i < 100; ++i) {
      EXPECT_LE(take(i % entries), 2u);
      append(i % entries);
    }
    for (int tag = 0; tag < entries; ++tag) take(tag);
    ASSERT_TRUE(queue_.empty());
  }
}

TEST_F(Adaptive, ShortQueueIsNotIndexedWhereMatchesComeInOrder) {
  for (int tag = 0; tag < 24; ++tag) append(tag);
  for (int i = 0; i < 1000; ++i) {
    take(i % 24);
    append(i % 24);
  }
  EXPECT_FALSE(queue_.is_indexed());
}

TEST_F(Adaptive, ShortQueueWithAWildcardIsIndexedWhereItHasMoreThanAFew) {
  for (const int entries : {8, 24}) {
    queue_.append({key_of(kAnySource, 1 << 20), nullptr, next_++});
    for (int tag = 0; tag < entries; ++tag) append(tag);
    go_round(entries, 100);  // few enough that searches pass next to nothing in vain
    EXPECT_EQ(queue_.is_indexed(), entries == 24) << entries;
    for (int tag = 0; tag < entries; ++tag) take(tag);
    EXPECT_EQ(take_now(1 << 20), 1u);
    ASSERT_TRUE(queue_.empty());
  }
}

TEST_F(Adaptive, ShortQueueIsNotIndexedWhereSearchesHaveWildcards) {
  for (int tag = 0; tag < 24; ++tag) append(tag);
  for (int i = 0; i < 200; ++i) {
    go_round(24, 4);
    std::uint64_t depth = 0;
    EXPECT_TRUE(queue_.find(key_of(kAnySource, 7), depth));
  }
  EXPECT_FALSE(queue_.is_indexed());
}

// Where messages come and go beside receives with wildcards, an index would have to list them all.
TEST_F(AdaptiveMessages, AFewReturnToTheWindowWhereReceivesWithWildcardsComeLate) {
  for (const int entries : {4, 24, 40}) {
    for (int tag = 0; tag < entries; ++tag) append(tag);
    go_round(entries, 400);
    EXPECT_TRUE(queue_.is_indexed()) << entries;
    const auto search_among_rounds = [&] {
      for (int i = 0; i < 500; ++i) {
        go_round(entries, 3);
        std::uint64_t depth = 0;
        const auto hit = queue_.find(key_of(kAnySource, i % entries), depth);
        ASSERT_TRUE(hit);
        EXPECT_EQ(key_tag(queue_.at(hit).key), i % entries);
      }
    };
    search_among_rounds();
    EXPECT_FALSE(queue_.is_indexed()) << entries;
    go_round(entries, 4 * 64 + 200);  // the first windows without wildcards are not enough
    EXPECT_TRUE(queue_.is_indexed()) << entries;
    search_among_rounds();
    EXPECT_FALSE(queue_.is_indexed()) << entries;
    for (int tag = 0; tag < entries; ++tag) take(tag);
    ASSERT_TRUE(queue_.empty());
  }
}

// Whichever leaves, the newest among them.
TEST_F(AdaptiveMessages, AFewAreNotMovedToAndFro) {
  for (int tag = 0; tag < 24; ++tag) append(tag);
  go_round(24, 400);
  ASSERT_TRUE(queue_.is_indexed());
  std::vector<int> there(24);
  std::iota(there.begin(), there.end(), 0);
  int moves = 0;
  bool was_indexed = true;
  for (int i = 24; i < 6000; ++i) {
    int& tag = there[random_() % there.size()];
    take(tag);
    append(tag = i);
    std::uint64_t depth = 0;
    if (i % 30 == 0) {
      EXPECT_FALSE(queue_.find(key_of(kAnySource, 1 << 20), depth));
    }
    moves += queue_.is_indexed() != was_indexed;
    was_indexed = queue_.is_indexed();
  }
  EXPECT_LE(moves, 5);
  EXPECT_FALSE(was_indexed);
}

// Nor where such receives are rare, or where few wait only now and then.
TEST_F(AdaptiveMessages, IndexStaysWhereItPays) {
  const auto search = [&] {
    std::uint64_t depth = 0;
    EXPECT_FALSE(queue_.find(key_of(kAnySource, 1 << 20), depth));
    EXPECT_FALSE(queue_.find(key_of(5, kAnyTag), depth));
  };
  for (int tag = 0; tag < 200; ++tag) append(tag);
  for (int i = 0; i < 40; ++i) search();
  for (int i = 0; i < 40; ++i) {
    search();
    go_round(200, 500);
    // At first it may go: so many searches, and hardly a message.
    if (i > 1) {
      ASSERT_TRUE(queue_.is_indexed()) << i;
    }
  }
  for (int tag = 200; tag < 600; ++tag) append(tag);
  for (int i = 0; i < 20; ++i) {
    for (int tag = 599; tag >= 20; --tag) take(tag);
    for (int tag = 20; tag < 600; ++tag) {
      if (tag % 8 == 0) search();
      append(tag);
    }
    ASSERT_TRUE(queue_.is_indexed()) << i;
  }
}

// Beside receives with wildcards 30 messages are compared, not listed, unless there were many of
// late.
TEST_F(AdaptiveMessages, OfManyAFewAreListedAsTheyComeAndOfFewNone) {
  const auto fill_and_empty = [&](int entries) {
    for (int tag = 0; tag < entries; ++tag) append(tag);
    const bool indexed = queue_.is_indexed();
    std::uint64_t depth = 0;
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(queue_.find(key_of(kAnySource, 1 << 20), depth));
    for (int tag = entries - 1; tag >= 0; --tag) take(tag);
    return indexed;
  };
  for (int i = 0; i < 10; ++i) fill_and_empty(200);
  EXPECT_TRUE(fill_and_empty(30));
  for (int i = 0; i < 100; ++i) fill_and_empty(80);
  EXPECT_FALSE(fill_and_empty(30));
  for (int i = 0; i < 10; ++i) fill_and_empty(200);
  EXPECT_TRUE(fill_and_empty(30));
}

}  // namespace
}  // namespace tagline::test
