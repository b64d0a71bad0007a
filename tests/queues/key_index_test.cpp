// SPDX-License-Identifier: BSD-3-Clause
// What receives with wildcards find messages by: views that are built by and by, the log they are
// built from, and items that left by another way.
#include "queues/key_index.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/effort.hpp"
#include "tests/support/index_twin.hpp"

namespace tagline::test {
namespace {

TEST(KeyIndex, TagWildcardsPassNegativeTags) {
  Twin posted(QueueSide::posted);
  ASSERT_TRUE(posted.push(kAnySource, kAnyTag));
  ASSERT_TRUE(posted.push(3, kAnyTag));
  ASSERT_TRUE(posted.push(kAnySource, -7));
  posted.look(3, -8);
  posted.take(3, -7);
  posted.take(3, 7);
  EXPECT_EQ(posted.index.keys(), 1u);

  Twin unexpected(QueueSide::unexpected);
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(unexpected.push(i % 5, -1 - i % 50));
  for (int i = 0; i < 60; ++i) {
    unexpected.look(kAnySource, kAnyTag);
    unexpected.look(i % 5, kAnyTag);
    unexpected.look(kAnySource, -1 - i % 50);
  }
  ASSERT_TRUE(unexpected.push(4, 9));
  unexpected.take(4, kAnyTag);
}

TEST(KeyIndex, SearchesAloneEndWhatAViewHasBegunToMove) {
  for (int messages = 2; messages < 400; messages += 7) {
    Twin twin(QueueSide::unexpected);
    ASSERT_TRUE(twin.push(1, 0));
    for (int i = 0; i < 50; ++i) twin.look(kAnySource, 1000);
    for (int tag = 1; tag < messages; ++tag) ASSERT_TRUE(twin.push(1, tag));
    for (int i = 0; i < 200; ++i) twin.look(kAnySource, 1000);
    EXPECT_TRUE(twin.index.look_listed(key_bits(kAnySource, 0))) << messages;
  }
}

// Searches in vain pay for a view; soon they look at nothing.
TEST(KeyIndex, SearchesOfAnyClassBecomeShort) {
  Twin twin(QueueSide::unexpected);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(twin.push(i % 50, i / 50));
  EXPECT_GT(twin.look(kAnySource, 1000), 4000u);
  for (int i = 0; i < 100; ++i) {
    twin.look(kAnySource, 1000);
    twin.look(77, kAnyTag);
  }
  EXPECT_LE(twin.look(kAnySource, 1000), 2u);
  EXPECT_LE(twin.look(77, kAnyTag), 2u);
  // Whatever comes now is seen through the finished views as well.
  ASSERT_TRUE(twin.push(77, 1000));
  ASSERT_TRUE(twin.push(78, 1000));
  EXPECT_LE(twin.take(kAnySource, 1000), 2u);
  EXPECT_LE(twin.look(78, kAnyTag), 2u);
  EXPECT_LE(twin.take(kAnySource, 1000), 3u);
  EXPECT_LE(twin.look(78, kAnyTag), 3u);
}

// Among many a message is put into table and log at one look; a wildcard finds it by either.
TEST(KeyIndex, MessagesLoggedAtHandAreFound) {
  constexpr int kMessages = 12000;
  Twin twin(QueueSide::unexpected, ~std::uint64_t{0} - kMessages / 2);
  // Every other one is put in at one look: the oldest of each tag is one of these.
  for (int i = 1; i <= kMessages; ++i) ASSERT_TRUE(twin.push(i % 50, i / 50));
  EXPECT_GT(twin.logged_at_hand, 2000u);
  for (int i = 0; i < 200; ++i) {
    twin.take(kAnySource, (i * 7) % (kMessages / 50));
    twin.take(i % 50, kMessages / 50 - 1 - i / 50);
    ASSERT_FALSE(testing::Test::HasFailure()) << i;
  }
}

// Whoever has filled and emptied a long queue without wildcards is taken to do so again, up to a
// length: then messages are not logged, and the first search with a wildcard logs what is there.
TEST(KeyIndex, MessagesAreLoggedInVainOnce) {
  constexpr int kMessages = 12000;
  Twin twin(QueueSide::unexpected, ~std::uint64_t{0} - kMessages);
  const auto logged_as_filled = [&] {
    const unsigned before = twin.logged_at_hand;
    for (int i = 0; i < kMessages; ++i) EXPECT_TRUE(twin.push(i % 50, i / 50));
    return twin.logged_at_hand - before;
  };
  const auto drain = [&] {
    for (int i = kMessages - 1; i >= 0; --i) twin.take(i % 50, i / 50);
    ASSERT_TRUE(twin.index.empty());
  };
  EXPECT_GT(logged_as_filled(), 2000u);
  drain();
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(logged_as_filled(), 0u);
    twin.index.set_hints({});  // says nothing new
    EXPECT_TRUE(twin.index.lists_once(key_of(1, 1)));
    if (round < 2) drain();
  }
  for (int i = 0; i < 100; ++i) {
    twin.look(kAnySource, 100 + i);
    twin.look(i % 50, kAnyTag);
  }
  drain();
  twin.push(1, 1);  // the empty queue has forgotten that no wildcards came
  twin.take(1, 1);
  for (int round = 0; round < 2; ++round) {
    twin.take(kAnySource, 7000);
    logged_as_filled();
    twin.take(kAnySource, 70);
    twin.take(7, kAnyTag);
    twin.push(0, 70);
    twin.push(7, 0);
    drain();
  }
}

// What is there is logged in the order it came, also where others have come between them, as in
// other contexts.
TEST(KeyIndex, MessagesThatAreFarApartAreLoggedInOrder) {
  constexpr int kMessages = 4200;
  for (const std::uint64_t apart : {1, 2, 3, 1000}) {
    Twin twin(QueueSide::unexpected, ~std::uint64_t{0} - kMessages * apart / 2);
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(twin.push(i % 50, i / 50));
      twin.next += apart - 1;
      if (twin.next == 0) ++twin.next;
    }
    for (int i = 0; i < 300; ++i) {
      twin.take(kAnySource, i % 84);
      twin.take(i % 50, kAnyTag);
      twin.take(kAnySource, kAnyTag);
      ASSERT_FALSE(testing::Test::HasFailure()) << apart << ", " << i;
    }
  }
}

// In vain as well where the queue never empties.
TEST(KeyIndex, MessagesThatComeAndGoAreLoggedInVainOnce) {
  constexpr int kMessages = 6000;
  Twin twin(QueueSide::unexpected, ~std::uint64_t{0} - kMessages);
  int last = 0;
  int first = 0;
  const auto go_on = [&](int messages) {
    for (int i = 0; i < messages; ++i, ++first, ++last) {
      twin.take(first % 50, first);
      ASSERT_TRUE(twin.push(last % 50, last));
    }
  };
  for (; last < kMessages; ++last) ASSERT_TRUE(twin.push(last % 50, last));
  EXPECT_FALSE(twin.index.lists_once(key_of(1, 1)));
  go_on(3 * kMessages);
  EXPECT_TRUE(twin.index.lists_once(key_of(1, 1)));
  // Kept where some ask for it.
  twin.take(kAnySource, first++);
  for (int round = 0; round < 4; ++round) {
    go_on(kMessages);
    EXPECT_FALSE(twin.index.lists_once(key_of(1, 1)));
  }
  for (int i = 0; i < 300; ++i) {
    twin.take(kAnySource, first + 2000 + i);
    twin.take((first + i) % 50, kAnyTag);
    ASSERT_TRUE(twin.push(3, last++));
  }
}

// What leaves by exact receives is found gone in lists by searches: by none many of a long queue.
TEST(KeyIndex, SearchesFindFewThatHaveGone) {
  constexpr int kMessages = 30000;
  constexpr int kLeft = 100;
  Twin twin(QueueSide::unexpected);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(twin.push(i % 2, i));
  for (int i = 0; i < 50; ++i) twin.look(5, kAnyTag);
  for (int i = 0; i < 100; ++i) twin.take(i % 2, i);
  for (int i = 0; i < kMessages; ++i) ASSERT_TRUE(twin.push(i % 2, i));
  ASSERT_TRUE(twin.index.has_views());
  for (int i = 0; i < kMessages - kLeft; ++i) twin.take(i % 2, i);
  EXPECT_LE(twin.look(0, kAnyTag), 2048u);
  EXPECT_LE(twin.look(0, kAnyTag), 1u);
  EXPECT_LE(twin.look(1, kAnyTag), 2048u);
}

// Where there was no log, because no wildcards were to come, the first search makes one however
// many messages wait.
TEST(KeyIndex, APromiseLeavesReceivesWithWildcardsWhereTheyAre) {
  Twin twin(QueueSide::posted);
  ASSERT_TRUE(twin.push(kAnySource, 6));
  ASSERT_TRUE(twin.push(1, kAnyTag));
  ASSERT_TRUE(twin.push(1, 6));
  twin.index.set_hints({.wildcards = false});
  for (int i = 0; i < 3; ++i) {
    twin.look(2, 6);
    twin.take(1, 6);
  }
  EXPECT_TRUE(twin.index.empty());
}

TEST(KeyIndex, SearchesBecomeShortWhereAPromiseIsWithdrawn) {
  constexpr int kMessages = 20000;
  Twin twin(QueueSide::unexpected, ~std::uint64_t{0} - kMessages / 2);
  twin.index.set_hints({.wildcards = false});
  for (int i = 0; i < kMessages; ++i) ASSERT_TRUE(twin.push(i % 50, i / 50));
  twin.look(kAnySource, 1000);
  twin.index.set_hints({});
  for (int i = 0; i < 300; ++i) {
    twin.take(kAnySource, 1000);
    twin.take(77, kAnyTag);
    twin.take(kAnySource, i);
    ASSERT_TRUE(twin.push(i % 50, i));
  }
  EXPECT_LE(twin.look(kAnySource, 1000), 2u);
  EXPECT_LE(twin.look(77, kAnyTag), 2u);
  for (int i = 0; i < 200; ++i) EXPECT_LE(twin.take(kAnySource, 300 + i), 2u);
}

// A view asked for while another one is being built waits for the next pass.
TEST(KeyIndex, ViewsMayBeginInTheMiddleOfAPass) {
  for (int late = 1; late < 40; ++late) {
    Twin twin(QueueSide::unexpected, ~std::uint64_t{0} - 1000);
    for (int i = 0; i < 2000; ++i) ASSERT_TRUE(twin.push(i % 20, i / 20));
    for (int call = 0; call < 80; ++call) {
      twin.take(kAnySource, call % 2 == 0 ? 50 : 200);
      if (call >= late) twin.take(call % 20, kAnyTag);
      if (call >= late + 3) twin.look(kAnySource, kAnyTag);
      twin.take(call % 20, call % 90);
      ASSERT_TRUE(twin.push(call % 20, 200 + call % 2));
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << late;
  }
}

TEST(KeyIndex, ItemsThatLeftByAnotherWayAreForgotten) {
  Twin twin(QueueSide::unexpected);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(twin.push(i, i));
  for (int i = 0; i < 50; ++i) {
    twin.look(kAnySource, 5000);
    twin.look(5000, kAnyTag);
    twin.look(kAnySource, kAnyTag);
  }
  const std::size_t before = twin.resources.memory.used_bytes();
  for (int i = 0; i < 200000; ++i) {
    ASSERT_TRUE(twin.push(7, i));
    twin.take(7, i);
  }
  // Of 200000 messages matched exactly, neither views nor log keep many.
  EXPECT_LT(twin.resources.memory.used_bytes(), before + 512 * 1024);
  twin.take(kAnySource, kAnyTag);
  twin.take(7, kAnyTag);
  twin.look(7, kAnyTag);
}

// A view that nobody asks loses what is gone as messages come, and is there when asked again.
TEST(KeyIndex, ViewsThatAreSeldomAskedStay) {
  std::mt19937 random(1);
  Twin twin(QueueSide::unexpected);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(twin.push(i, 5));
  for (int i = 0; i < 50; ++i) twin.look(kAnySource, 6);
  for (int i = 100; i < 20000; ++i) {
    ASSERT_TRUE(twin.push(i, 5));
    twin.take(key_source(twin.reference.entries[random() % twin.reference.size()].key), 5);
  }
  twin.look(kAnySource, 5);
  EXPECT_EQ(twin.look(kAnySource, 6), 1u);
}

// Where messages go in any order, some of the oldest stay in their lists for long, and many that
// are gone behind these: the lists are kept nevertheless.
TEST(KeyIndex, ViewsOfAQueueThatNeverEmptiesStay) {
  std::mt19937 random(1);
  Twin twin(QueueSide::unexpected);
  const auto random_key = [&] { return static_cast<std::int32_t>(random() % 32); };
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(twin.push(random_key(), random_key()));
  for (int i = 0; i < 100; ++i) {
    twin.look(kAnySource, 5000);
    twin.look(5000, kAnyTag);
  }
  for (int i = 0; i < 40000; ++i) {
    ASSERT_TRUE(twin.push(random_key(), random_key()));
    const MatchKey key = twin.reference.entries[random() % twin.reference.size()].key;
    twin.take(key_source(key), key_tag(key));
    if (i % 100 == 0) {
      EXPECT_EQ(twin.look(kAnySource, 5000), 1u);
      EXPECT_EQ(twin.look(5000, kAnyTag), 1u);
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << i;
  }
  EXPECT_LT(twin.resources.memory.used_bytes(), std::size_t{512} << 10);
}

// Who searches with wildcards once does so again: the views are there when the queue has
// been empty, with nothing of what was in it.
TEST(KeyIndex, ViewsOutliveAnEmptyQueue) {
  std::mt19937 random(1);
  Twin twin(QueueSide::unexpected, ~std::uint64_t{0} - 9000);
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < 3000; ++i) ASSERT_TRUE(twin.push(i % 60, round % 3 * 20 + i / 60));
    std::uint64_t depth = 0;
    while (twin.reference.size() > 0) {
      const MatchKey key = twin.reference.entries[random() % twin.reference.size()].key;
      const auto kind = random() % 3;
      depth +=
          twin.take(kind == 1 ? kAnySource : key_source(key), kind == 2 ? kAnyTag : key_tag(key));
      ASSERT_FALSE(testing::Test::HasFailure()) << "round " << round;
    }
    if (round > 1) {
      EXPECT_LE(depth, 3000u * 2) << "round " << round;
    }
  }
  EXPECT_GT(twin.taken_from_lists, 4000u);  // of 24000 in all, every other one of two thirds
  EXPECT_GT(twin.listed_at_hand, 8000u);    // every other one, but for the first two rounds
}

// What lists had when the queue was empty does not stand before what comes then.
TEST(KeyIndex, ListsBeginAnewWithTheirFirstMessage) {
  constexpr int kSources = 5;
  Twin twin(QueueSide::unexpected, ~std::uint64_t{0} - 2000);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(twin.push(i % kSources, i));
  for (int i = 0; i < 50; ++i) twin.look(9, kAnyTag);
  for (int i = 0; i < 100; ++i) twin.take(i % kSources, i);
  const std::size_t before = twin.resources.memory.used_bytes();
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(twin.push(i % kSources, i));
    for (int source = 0; source < kSources; ++source)
      EXPECT_TRUE(twin.index.look_listed(key_bits(source, kAnyTag))) << round;
    twin.take(round % kSources, kAnyTag);
    while (!twin.reference.empty()) {
      const MatchKey key = twin.reference.entries.back().key;
      twin.take(key_source(key), key_tag(key));
    }
  }
  EXPECT_LE(twin.resources.memory.used_bytes(), before + 64 * 1024);
}

// Lists that are not used again do not keep what they had for long.
TEST(KeyIndex, ListsOfOneRoundEachAreForgotten) {
  Twin twin(QueueSide::unexpected);
  const auto round = [&](int source) {
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(twin.push(source, i));
    for (int i = 0; i < 30; ++i) twin.look(1000, kAnyTag);
    while (!twin.reference.empty()) twin.take(source, key_tag(twin.reference.entries.back().key));
  };
  for (int source = 0; source < 3; ++source) round(source);
  EXPECT_TRUE(twin.index.has_views());
  const std::size_t before = twin.resources.memory.used_bytes();
  for (int source = 3; source < 100; ++source) round(source);
  EXPECT_LE(twin.resources.memory.used_bytes(), before + 64 * 1024);
}

void churn(Twin& twin, bool posted, std::uint32_t seed, int sources, int tags, int calls) {
  std::mt19937 random(seed);
  const auto below = [&](int bound) { return static_cast<int>(random() % unsigned(bound)); };
  const auto source = [&](bool receive) {
    return receive && below(4) == 0 ? kAnySource : below(sources);
  };
  const auto tag = [&](bool receive) {
    return receive && below(4) == 0 ? kAnyTag : below(tags) - tags / 8;
  };
  for (int call = 0; call < calls; ++call) {
    if (below(100) < (call / 1500 % 2 == 0 ? 65 : 35)) {
      twin.push(source(posted), tag(posted));
    } else if (below(3) == 0) {
      twin.look(source(!posted), tag(!posted));
    } else {
      twin.take(source(!posted), tag(!posted));
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << "call " << call << " of seed " << seed;
  }
}

TEST(KeyIndex, FollowsAVectorThroughRandomCalls) {
  for (const bool posted : {true, false}) {
    for (std::uint32_t seed = 1; seed <= static_cast<std::uint32_t>(effort(30)); ++seed) {
      Twin twin(posted ? QueueSide::posted : QueueSide::unexpected, ~std::uint64_t{0} - 700);
      const int sources = seed % 3 == 0 ? 1 : 30;
      const int tags = seed % 2 == 0 ? 6 : 60;
      ASSERT_NO_FATAL_FAILURE(churn(twin, posted, seed, sources, tags, 6000));
    }
  }
}

TEST(KeyIndex, EveryLimitOfMemoryIsSurvived) {
  for (const bool posted : {true, false}) {
    for (std::size_t limit = 1; limit < 300000; limit += (200 + limit / 20) * 100 / effort(100)) {
      Twin twin(posted ? QueueSide::posted : QueueSide::unexpected, 1, limit);
      ASSERT_NO_FATAL_FAILURE(churn(twin, posted, static_cast<std::uint32_t>(limit), 20, 40, 2500))
          << "limit " << limit;
      ASSERT_LE(twin.resources.memory.used_bytes(), limit);
    }
  }
}

// A log of messages that are gone, where a wildcard had been searched for, takes no room from
// new ones.
TEST(KeyIndex, LogGivesWayToMessages) {
  const std::size_t step = 400000 / static_cast<std::size_t>(std::max(effort(24), 5));
  for (std::size_t limit = 100000; limit < 500000; limit += step) {
    Twin twin(QueueSide::unexpected, 1, limit);
    const auto fill = [&] {
      int pushed = 0;
      while (twin.push(1, pushed % 4)) ++pushed;
      return pushed;
    };
    ASSERT_TRUE(twin.push(7, 7));  // stays
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(twin.push(1, 0));
    for (int i = 0; i < 3; ++i) twin.look(kAnySource, 99);
    const int first = fill();
    while (twin.index.messages() > 1) {
      const int tag = key_tag(twin.reference.entries[1].key);
      ASSERT_NO_FATAL_FAILURE(twin.take(1, tag));
    }
    EXPECT_GE(fill(), first * 9 / 10) << "limit " << limit;
    ASSERT_NO_FATAL_FAILURE(twin.take(kAnySource, 7));
    ASSERT_NO_FATAL_FAILURE(twin.take(kAnySource, 3));
  }
}

}  // namespace
}  // namespace tagline::test
