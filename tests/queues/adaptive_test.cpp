// SPDX-License-Identifier: BSD-3-Clause
// When the adaptive queue uses its index, and that moving there costs nothing else.
#include "queues/adaptive.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "tests/support/reference_queue.hpp"

namespace tagline::test {
namespace {

class Adaptive : public testing::Test {
 protected:
  explicit Adaptive(QueueSide side = QueueSide::posted) : queue_(resources_, {}, side) {}

  void append(int tag) {
    ASSERT_TRUE(queue_.has_room() || queue_.make_room());
    queue_.append({key_of(0, tag), nullptr, next_++});
  }
  bool append_at_hand(int tag) {
    const bool done = queue_.append_at_hand<QueueSide::posted>({key_of(0, tag), nullptr, next_});
    next_ += done;
    return done;
  }
  std::uint64_t take(int tag) {
    std::uint64_t depth = 0;
    const auto hit = queue_.find(key_of(0, tag), depth);
    EXPECT_TRUE(hit) << tag;
    if (!hit) return 0;
    EXPECT_EQ(key_tag(queue_.at(hit).key), tag);
    queue_.erase(hit);
    return depth;
  }
  std::uint64_t search_in_vain() {
    std::uint64_t depth = 0;
    EXPECT_FALSE(queue_.find(key_of(0, 1 << 30), depth));
    return depth;
  }

  // As a message does: find() and erase() in one.
  std::uint64_t take_now(int tag) {
    std::uint64_t depth = 0;
    void* cookie = nullptr;
    const auto count = [&](std::uint64_t entries, bool) { depth = entries; };
    EXPECT_TRUE(queue_.take(key_of(0, tag), &cookie, count)) << tag;
    return depth;
  }
  void drain_at_random(int entries) {
    std::vector<int> order(static_cast<std::size_t>(entries));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (int tag = 0; tag < entries; ++tag) append(tag);
    for (const int tag : order) take_now(tag);
  }
  void drain_in_order(int entries) {
    for (int tag = 0; tag < entries; ++tag) append(tag);
    for (int tag = 0; tag < entries; ++tag) take_now(tag);
  }
  // Leaves the queue as it was: empty, and last matched not in order.
  bool is_indexed_from_the_first_on() {
    EXPECT_TRUE(queue_.empty());
    append(0);
    append(1);
    const bool indexed = queue_.is_indexed();
    take_now(1);
    take_now(0);
    return indexed;
  }

  void be_indexed() {
    while (search_in_vain() > 1) {
    }
  }

  // For a while, searched deeply; then empty.
  void be_deep() {
    for (int tag = 0; tag < 500; ++tag) append(tag);
    for (int i = 0; i < 40; ++i) search_in_vain();
    for (int tag = 499; tag >= 0; --tag) take(tag);
  }

  // Entries that are matched in random order and come again.
  void go_round(int entries, int matches) {
    for (int i = 0; i < matches; ++i) {
      const int tag = static_cast<int>(random_() % static_cast<unsigned>(entries));
      take(tag);
      append(tag);
    }
  }

  QueueResources resources_{*simd::available_kernels(0), 0, AdaptiveQueue::node_bytes({})};
  AdaptiveQueue queue_;
  std::uint64_t next_ = 1;
  std::minstd_rand random_;
};

class AdaptiveMessages : public Adaptive {
 protected:
  AdaptiveMessages() : Adaptive(QueueSide::unexpected) {}
};

TEST_F(Adaptive, ShortQueueTakesNoMemory) {
  for (int round = 0; round < 1000; ++round) {
    for (int tag = 0; tag < 8; ++tag) append(tag);
    for (int tag = 0; tag < 8; ++tag) take(tag);
  }
  EXPECT_EQ(resources_.memory.used_bytes(), 0u);
}

TEST_F(Adaptive, QueueDrainedInOrderNeedsNoIndex) {
  for (int tag = 0; tag < 2000; ++tag) append(tag);
  const std::size_t used = resources_.memory.used_bytes();
  for (int tag = 0; tag < 2000; ++tag) EXPECT_EQ(take(tag), 1u);
  EXPECT_EQ(resources_.memory.used_bytes(), used);
}

TEST_F(Adaptive, DeepSearchesSoonLookAtNothing) {
  for (int tag = 0; tag < 2000; ++tag) append(tag);
  EXPECT_EQ(search_in_vain(), 2000u);
  for (int i = 0; i < 40; ++i) search_in_vain();
  EXPECT_LE(search_in_vain(), 4u);
  EXPECT_LE(take(1999), 4u);
  EXPECT_LE(take(1000), 4u);
}

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

TEST_F(Adaptive, ShortQueueIsNotIndexedWhereItIsDrainedAtRandomBesideWildcards) {
  for (int i = 0; i < 100; ++i) {
    queue_.append({key_of(kAnySource, 1 << 20), nullptr, next_++});
    drain_at_random(8);
    EXPECT_EQ(take_now(1 << 20), 1u);
  }
  EXPECT_FALSE(is_indexed_from_the_first_on());
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

TEST_F(Adaptive, ShortQueueIsNotIndexedWhereAnEntryHasAWildcard) {
  queue_.append({key_of(kAnySource, 1 << 20), nullptr, next_++});
  for (int tag = 0; tag < 24; ++tag) append(tag);
  go_round(24, 250);
  EXPECT_FALSE(queue_.is_indexed());
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

constexpr int kLargest = static_cast<int>(Window::kLargest);

TEST_F(Adaptive, EntriesBeyondTheLargestWindowAreIndexedUnasked) {
  for (int tag = 0; tag < kLargest + kLargest / 4; ++tag) append(tag);
  EXPECT_LE(search_in_vain(), Window::kLargest);
}

TEST_F(Adaptive, WindowStaysWhereAFewMoreComeThanItHolds) {
  for (int tag = 0; tag < kLargest + 4000; ++tag) append(tag);
  EXPECT_GT(search_in_vain(), Window::kLargest - 100);
}

TEST_F(Adaptive, WindowIsIndexedWhereTheQueueStaysLongerThanThat) {
  int last = 0;
  for (; last < kLargest + 4000; ++last) append(last);
  for (int first = 0; first < 20000; ++first) {
    append(last++);
    EXPECT_EQ(take(first), 1u);
  }
  EXPECT_LT(search_in_vain(), 100u);
}

TEST_F(Adaptive, WindowIsIndexedWhereTheQueueHasBecomeTwiceAsLong) {
  for (int tag = 0; tag < 2 * kLargest + 20000; ++tag) append(tag);
  EXPECT_LT(search_in_vain(), 100u);
}

// However long it has become, and whatever was taken from it on the way.
TEST_F(Adaptive, WindowThatIsOnlyMatchedInOrderGrows) {
  int last = 0;
  int first = 0;
  for (const int length : {40000, 30000, 70000, 60000, 140000, 130000, 600000}) {
    while (last - first < length) append(last++);
    while (last - first > length) EXPECT_EQ(take(first++), 1u);
    EXPECT_FALSE(queue_.is_indexed());
  }
  while (first != last) EXPECT_EQ(take(first++), 1u);
}

// Where its ring begins so far behind that a call would move too much, a few go by way of the
// index, until it has moved on.
TEST_F(Adaptive, WindowThatIsOnlyMatchedInOrderGrowsLater) {
  int last = 0;
  int first = 0;
  const auto go_on = [&](int entries) {
    for (int i = 0; i < entries; ++i) {
      append(last++);
      ASSERT_EQ(take_now(first++), 1u);
    }
  };
  while (last < 70000) append(last++);
  go_on(100000);
  while (!queue_.is_indexed()) append(last++);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(take_now(first++), 1u);
  go_on(3000);
  EXPECT_FALSE(queue_.is_indexed());
  while (!queue_.is_indexed()) append(last++);
  go_on(100000);
  for (int i = 0; i < 100000; ++i) append(last++);
  while (first < last - 200000) EXPECT_EQ(take_now(first++), 1u);
  EXPECT_FALSE(queue_.is_indexed());
  while (first != last) EXPECT_EQ(take_now(first++), 1u);
  EXPECT_TRUE(queue_.empty());
}

// The first search of a long window may look at all of it, the next ones soon do not.
TEST_F(Adaptive, LongWindowIsSoonIndexed) {
  constexpr int kEntries = 1000000;
  for (int tag = 0; tag < kEntries; ++tag) append(tag);
  EXPECT_EQ(search_in_vain(), static_cast<std::uint64_t>(kEntries));
  int searches = 1;
  for (; search_in_vain() > 1; ++searches) {
  }
  EXPECT_LT(searches, 4000);
  for (int tag = 0; tag < kEntries; tag += 997) EXPECT_EQ(take(tag), 1u);
}

// As a matcher appends where there is no room and nothing waits outside the structure.
TEST_F(Adaptive, WhatFollowsAnEntryThatWasNotMatchedGoesStraightToTheIndex) {
  for (int tag = 0; tag < 100; ++tag) append(tag);
  be_indexed();
  while (!queue_.tells() || !queue_.tells_none()) append(100 + static_cast<int>(next_));
  append(1000);
  ASSERT_TRUE(queue_.holds_newest());
  EXPECT_FALSE(queue_.has_room());
  ASSERT_TRUE(queue_.pass_on_at_once());
  EXPECT_FALSE(queue_.holds_newest());
  EXPECT_FALSE(queue_.has_room());

  ASSERT_TRUE(append_at_hand(1001));
  EXPECT_FALSE(queue_.holds_newest());
  EXPECT_FALSE(queue_.waits_here());
  take_now(1000);
  EXPECT_FALSE(queue_.waits_here());
  ASSERT_TRUE(append_at_hand(1002));
  take_now(1002);
  EXPECT_TRUE(queue_.waits_here());  // so the next one had better wait outside
  append(1003);
  EXPECT_TRUE(queue_.holds_newest());
  take_now(1003);
  take_now(1001);
  EXPECT_TRUE(queue_.has_room());
}

// Also where the slots are in no cache near the core: the matcher knows where to ask for them.
TEST_F(Adaptive, EntriesGoStraightToALargeIndexToo) {
  for (int tag = 0; tag < 12000; ++tag) append(tag);
  be_indexed();
  EXPECT_TRUE(queue_.slot_hint());
  while (!queue_.tells() || !queue_.tells_none()) append(20000 + static_cast<int>(next_));
  append(12000);
  ASSERT_TRUE(queue_.pass_on_at_hand<QueueSide::posted>());
  for (int tag = 12001; tag < 12010; ++tag) {
    EXPECT_FALSE(queue_.waits_here());
    ASSERT_TRUE(append_at_hand(tag));
  }
  take_now(12005);
  EXPECT_FALSE(queue_.waits_here());
}

// One look does not tell where a receive with a wildcard goes.
TEST_F(Adaptive, OnlyExactKeysArePassedOnAtHand) {
  be_deep();
  append(1);  // not 0: a wildcard has no bits
  append(2);
  ASSERT_TRUE(queue_.is_indexed());
  ASSERT_TRUE(queue_.pass_on_at_once());
  append(TAGLINE_ANY_TAG);
  EXPECT_FALSE(queue_.pass_on_at_hand<QueueSide::posted>());
  EXPECT_TRUE(queue_.holds_newest());
  take_now(1);
  take_now(2);
  EXPECT_FALSE(queue_.empty());
}

// Whether or not the newest one waits outside then.
TEST_F(Adaptive, NothingGoesStraightToAnIndexThatHasEmptied) {
  for (const bool newest_waits : {false, true}) {
    be_deep();
    for (int tag = 0; tag < 3; ++tag) append(tag);
    ASSERT_TRUE(queue_.is_indexed());
    if (!newest_waits) {
      ASSERT_TRUE(queue_.pass_on_at_once());
    }
    for (int tag = newest_waits ? 1 : 2; tag >= 0; --tag) {
      void* cookie = nullptr;
      const auto found = queue_.look(key_of(0, tag).bits);
      ASSERT_TRUE(found);
      queue_.take_found(found, &cookie);
    }
    EXPECT_FALSE(queue_.is_indexed());
    EXPECT_EQ(queue_.holds_newest(), newest_waits);
    if (newest_waits) take_now(2);
    EXPECT_TRUE(queue_.empty());
    EXPECT_TRUE(queue_.has_room());
  }
}

// Searches alone would leave the newest few hundred outside, and every call ask at two places.
TEST_F(Adaptive, NewEntriesFollowOldOnesThatAreMatchedInNoOrder) {
  constexpr int kEntries = 200000;
  for (int tag = 0; tag < kEntries; ++tag) append(tag);
  for (int i = 0; i < 2 * kEntries; ++i) {
    const int tag = static_cast<int>(random_() % kEntries);
    take_now(tag);
    append(tag);
  }
  ASSERT_TRUE(queue_.is_indexed());
  EXPECT_TRUE(queue_.tells() && queue_.tells_none());
  for (int tag = 0; tag < kEntries; ++tag) take_now(tag);
  EXPECT_TRUE(queue_.empty());
}

// But not where it was searched deeply a few times, and is matched in order.
TEST_F(Adaptive, NewEntriesStayOutsideWhereOldOnesAreMatchedInOrder) {
  constexpr int kEntries = 4000;
  int last = 0;
  while (last < kEntries) append(last++);
  int first = 0;
  std::uint64_t depth = 0;
  while (!queue_.is_indexed()) EXPECT_TRUE(queue_.find(key_of(0, last - 2), depth));
  for (int i = 0; i < 2 * kEntries; ++i) {
    append(last++);
    take_now(first++);
  }
  EXPECT_FALSE(queue_.is_indexed());
}

TEST_F(Adaptive, AmongMoreThanACacheHoldsEntriesAreGathered) {
  const auto gathers = [&](int entries) {
    for (int tag = 0; tag < entries; ++tag) append(tag);
    be_indexed();
    for (int tag = 0; tag < entries; ++tag) take(tag);
    for (int tag = 0; tag < 100; ++tag) append(tag);
    const bool has_room = queue_.has_room();
    // Few matches in between, and all of them is in the index again.
    for (int i = 0; i < 2; ++i) {
      void* cookie = nullptr;
      queue_.take(key_of(0, i), &cookie, [](std::uint64_t, bool) {});
      EXPECT_TRUE(queue_.tells() && queue_.tells_none()) << i;
    }
    for (int tag = 2; tag < 100; ++tag) EXPECT_EQ(take(tag), 1u);
    return has_room;
  };
  EXPECT_FALSE(gathers(100000));
  EXPECT_TRUE(gathers(300000));
}

// A window that was long is a short ring again, also where it gathers.
TEST_F(Adaptive, GatheredEntriesStayWhereTheWindowShrinks) {
  for (int tag = 0; tag < 300000; ++tag) append(tag);
  be_indexed();
  for (int tag = 0; tag < 300000; ++tag) take(tag);
  for (int tag = 0; tag < 1000; ++tag) append(tag);
  for (int i = 0; i < 6; ++i) search_in_vain();
  for (int tag = 1000; tag < 1003; ++tag) append(tag);
  take(1000);
  for (int tag = 1003; tag < 1020; ++tag) append(tag);
  for (int tag = 0; tag < 1000; ++tag) take(tag);
  for (int tag = 1001; tag < 1020; ++tag) take(tag);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(Adaptive, NewEntriesComeAfterIndexedOnes) {
  for (int round = 0; round < 50; ++round) {
    std::vector<std::uint64_t> expected;
    for (int i = 0; i < 100; ++i) append(round);
    search_in_vain();
    append(round);
    queue_.for_each([&](const QueueEntry& entry) { expected.push_back(entry.sequence); });
    ASSERT_TRUE(std::is_sorted(expected.begin(), expected.end()));
    ASSERT_EQ(expected.size(), 101u);
    for (const std::uint64_t sequence : expected) {
      std::uint64_t depth = 0;
      const auto hit = queue_.find(key_of(0, round), depth);
      ASSERT_TRUE(hit);
      ASSERT_EQ(queue_.at(hit).sequence, sequence);
      queue_.erase(hit);
    }
    ASSERT_TRUE(queue_.empty());
  }
}

// The hit of a search that moved entries is still the entry found.
TEST_F(Adaptive, HitOutlivesTheMoveItCaused) {
  for (int place = 0; place < 200; ++place) {
    for (int tag = 0; tag < 200; ++tag) append(tag);
    // Holes first, so that closing them may move what is found.
    for (int tag = 1; tag < 200; tag += 3) {
      if (tag != place) take(tag);
    }
    take(place);
    ASSERT_FALSE(testing::Test::HasFailure()) << place;
    queue_.remove_if([](const QueueEntry&) { return true; }, [](const QueueEntry&) {});
    ASSERT_TRUE(queue_.empty());
  }
}

}  // namespace
}  // namespace tagline::test
