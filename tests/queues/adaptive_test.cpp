// SPDX-License-Identifier: BSD-3-Clause
// When the adaptive queue uses its index, and that moving there costs nothing else.
#include "queues/adaptive.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/adaptive_queue.hpp"

namespace tagline::test {
namespace {

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
  EXPECT_TRUE(queue_.slot_hint(/*small=*/false));
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
