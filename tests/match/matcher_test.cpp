// SPDX-License-Identifier: BSD-3-Clause
// The rules of match/tagline.h one by one, on every structure and instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "match/operations.hpp"
#include "match/structures.hpp"
#include "match/tagline.h"
#include "tests/support/all_matchers.hpp"
#include "tests/support/effort.hpp"

namespace tagline::test {
namespace {

void* cookie(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

class Matcher : public testing::TestWithParam<Variant> {
 protected:
  tagline_status post(tagline_envelope envelope, std::uintptr_t receive) {
    return tagline_post_receive(matcher(), envelope, cookie(receive), &out_, &handle_);
  }
  tagline_status arrive(tagline_envelope envelope, std::uintptr_t message) {
    return tagline_arrive(matcher(), envelope, cookie(message), &out_);
  }
  std::uintptr_t out() const { return reinterpret_cast<std::uintptr_t>(out_); }
  tagline_matcher* matcher() { return matcher_.get(); }
  tagline_statistics statistics() {
    tagline_statistics all;
    tagline_get_statistics(matcher(), &all);
    return all;
  }

  MatcherPointer matcher_ = make_matcher(GetParam().options());
  void* out_ = nullptr;
  tagline_handle handle_ = 0;
};

TEST_P(Matcher, UsesWhatItWasAskedFor) {
  EXPECT_EQ(tagline_matcher_queue(matcher()), GetParam().queue);
  EXPECT_EQ(tagline_matcher_isa(matcher()), GetParam().isa);
}

TEST_P(Matcher, OlderOfTwoEqualReceivesGetsTheMessage) {
  post({1, 2, 3}, 10);
  post({1, 2, 3}, 11);
  EXPECT_EQ(arrive({1, 2, 3}, 20), TAGLINE_MATCHED);
  EXPECT_EQ(out(), 10u);
  EXPECT_EQ(arrive({1, 2, 3}, 21), TAGLINE_MATCHED);
  EXPECT_EQ(out(), 11u);
}

TEST_P(Matcher, WildcardLosesToOlderExactReceive) {
  post({1, 2, 3}, 10);
  post({1, TAGLINE_ANY_SOURCE, TAGLINE_ANY_TAG}, 11);
  arrive({1, 2, 3}, 20);
  EXPECT_EQ(out(), 10u);
}

TEST_P(Matcher, ExactReceiveLosesToOlderWildcard) {
  post({1, TAGLINE_ANY_SOURCE, 3}, 10);
  post({1, 2, 3}, 11);
  arrive({1, 2, 3}, 20);
  EXPECT_EQ(out(), 10u);
}

TEST_P(Matcher, WildcardReceiveTakesTheFirstMessageToArrive) {
  arrive({1, 5, 7}, 20);
  arrive({1, 2, 3}, 21);
  EXPECT_EQ(post({1, TAGLINE_ANY_SOURCE, TAGLINE_ANY_TAG}, 10), TAGLINE_MATCHED);
  EXPECT_EQ(out(), 20u);
}

TEST_P(Matcher, AnyTagDoesNotSeeNegativeTags) {
  post({1, TAGLINE_ANY_SOURCE, TAGLINE_ANY_TAG}, 10);
  EXPECT_EQ(arrive({1, 0, -12}, 20), TAGLINE_QUEUED);
  EXPECT_EQ(post({1, 0, TAGLINE_ANY_TAG}, 11), TAGLINE_QUEUED);
  EXPECT_EQ(post({1, 0, -12}, 12), TAGLINE_MATCHED);
  EXPECT_EQ(out(), 20u);
  EXPECT_EQ(arrive({1, 0, 0}, 21), TAGLINE_MATCHED);
  EXPECT_EQ(out(), 10u);
}

TEST_P(Matcher, AnySourceMatchesNegativeTagsExactly) {
  post({1, TAGLINE_ANY_SOURCE, -12}, 10);
  EXPECT_EQ(arrive({1, 3, -13}, 20), TAGLINE_QUEUED);
  EXPECT_EQ(arrive({1, 3, -12}, 21), TAGLINE_MATCHED);
}

TEST_P(Matcher, ComparesAllBits) {
  post({1, 0x01000002, 0x40000003}, 10);
  EXPECT_EQ(arrive({1, 2, 0x40000003}, 20), TAGLINE_QUEUED);
  EXPECT_EQ(arrive({1, 0x01000002, 3}, 21), TAGLINE_QUEUED);
  EXPECT_EQ(arrive({1 | std::uint64_t{1} << 32, 0x01000002, 0x40000003}, 22), TAGLINE_QUEUED);
  EXPECT_EQ(arrive({1, 0x01000002, 0x40000003}, 23), TAGLINE_MATCHED);
}

TEST_P(Matcher, ExtremeTagsAndSources) {
  for (const std::int32_t tag : {INT32_MIN + 1, -1, 0, INT32_MAX}) {
    for (const std::int32_t source : {0, INT32_MAX}) {
      post({UINT64_MAX, source, tag}, 10);
      EXPECT_EQ(arrive({UINT64_MAX, source, tag}, 20), TAGLINE_MATCHED);
      EXPECT_EQ(out(), 10u);
    }
  }
}

TEST_P(Matcher, ContextsDoNotMeet) {
  post({1, TAGLINE_ANY_SOURCE, TAGLINE_ANY_TAG}, 10);
  EXPECT_EQ(arrive({2, 0, 0}, 20), TAGLINE_QUEUED);
  EXPECT_EQ(arrive({1, 0, 0}, 21), TAGLINE_MATCHED);
}

TEST_P(Matcher, ProbeLooksAndClaimTakes) {
  arrive({1, 4, 9}, 20);
  tagline_envelope found{};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(tagline_probe(matcher(), {1, TAGLINE_ANY_SOURCE, 9}, &out_, &found), TAGLINE_MATCHED);
    EXPECT_EQ(out(), 20u);
    EXPECT_EQ(found.source, 4);
  }
  EXPECT_EQ(tagline_claim(matcher(), {1, 4, TAGLINE_ANY_TAG}, &out_, &found), TAGLINE_MATCHED);
  EXPECT_EQ(found.tag, 9);
  EXPECT_EQ(tagline_probe(matcher(), {1, 4, 9}, &out_, nullptr), TAGLINE_NOT_FOUND);
}

TEST_P(Matcher, CancelNeedsEnvelopeAndCookie) {
  post({1, 2, 3}, 10);
  EXPECT_EQ(tagline_cancel_receive(matcher(), {1, 2, 3}, cookie(11)), TAGLINE_NOT_FOUND);
  EXPECT_EQ(tagline_cancel_receive(matcher(), {1, 2, TAGLINE_ANY_TAG}, cookie(10)),
            TAGLINE_NOT_FOUND);
  EXPECT_EQ(tagline_cancel_receive(matcher(), {1, 2, 3}, cookie(10)), TAGLINE_OK);
  EXPECT_EQ(arrive({1, 2, 3}, 20), TAGLINE_QUEUED);
}

TEST_P(Matcher, HandleOfAMatchedReceiveIsNotFound) {
  post({1, 2, 3}, 10);
  const tagline_handle handle = handle_;
  arrive({1, 2, 3}, 20);
  post({1, 2, 3}, 10);
  EXPECT_NE(handle_, handle);
  EXPECT_EQ(tagline_cancel_handle(matcher(), 1, handle), TAGLINE_NOT_FOUND);
  EXPECT_EQ(tagline_cancel_handle(matcher(), 1, handle_), TAGLINE_OK);
  EXPECT_EQ(tagline_cancel_handle(matcher(), 1, handle_), TAGLINE_NOT_FOUND);
}

TEST_P(Matcher, DropSourceKeepsAnySource) {
  post({1, 2, 3}, 10);
  post({1, TAGLINE_ANY_SOURCE, 3}, 11);
  arrive({1, 2, 4}, 20);
  std::vector<std::uintptr_t> dropped;
  const auto note = [](void* user, tagline_side, tagline_envelope, void* entry) {
    static_cast<std::vector<std::uintptr_t>*>(user)->push_back(
        reinterpret_cast<std::uintptr_t>(entry));
  };
  EXPECT_EQ(tagline_drop_source(matcher(), 1, 2, note, &dropped), 2u);
  EXPECT_EQ(dropped, (std::vector<std::uintptr_t>{10, 20}));
  EXPECT_EQ(arrive({1, 2, 3}, 21), TAGLINE_MATCHED);
  EXPECT_EQ(out(), 11u);
}

TEST_P(Matcher, DroppedContextCanBeUsedAgain) {
  for (int round = 0; round < 3; ++round) {
    post({7, 2, 3}, 10);
    arrive({7, 2, 4}, 20);
    post({8, 2, 3}, 12);
    EXPECT_EQ(tagline_drop_context(matcher(), 7, nullptr, nullptr), 2u);
    EXPECT_EQ(arrive({7, 2, 3}, 21), TAGLINE_QUEUED);
    EXPECT_EQ(tagline_drop_context(matcher(), 7, nullptr, nullptr), 1u);
    EXPECT_EQ(arrive({8, 2, 3}, 22), TAGLINE_MATCHED);
  }
}

TEST_P(Matcher, CountsWhatItDoes) {
  for (int i = 0; i < 100; ++i) post({1, 0, i}, 1);
  for (int i = 99; i >= 0; --i) arrive({1, 0, i}, 2);
  arrive({1, 0, 5}, 2);
  tagline_probe(matcher(), {1, 0, 5}, &out_, nullptr);
  post({1, 0, 6}, 1);
  const tagline_statistics all = statistics();
  EXPECT_EQ(all.posted.length, 1u);
  EXPECT_EQ(all.posted.matches, 100u);
  // Of several parts the high water marks add up, and each part is searched or not.
  const bool in_parts = is_threaded(GetParam().queue);
  EXPECT_GE(all.posted.high_water, 100u);
  EXPECT_GE(all.posted.searches, 100u);
  if (!in_parts) {
    EXPECT_EQ(all.posted.high_water, 100u);
    EXPECT_EQ(all.posted.searches, 100u);
    EXPECT_EQ(all.unexpected.searches, 2u);
    EXPECT_GT(all.pool_bytes, 0u);
  }
  // How deep a search has to look is the structure's affair, except in a list.
  EXPECT_GE(all.posted.search_depth_max, GetParam().queue == "linear" ? 100u : 1u);
  EXPECT_GE(all.posted.search_depth_sum, GetParam().queue == "linear" ? 5050u : 100u);
  EXPECT_EQ(all.unexpected.length, 1u);
  EXPECT_EQ(all.unexpected.matches, 0u);
  if (GetParam().queue.find("fuzzy") == std::string::npos) {
    EXPECT_EQ(all.posted.false_positives, 0u);
    EXPECT_EQ(all.unexpected.false_positives, 0u);
  }
}

// Searches in vain, then matches from the newest on; entries of another context are passed by.
tagline_side_statistics count_of_posted(const char* queue, int entries) {
  const MatcherPointer matcher = make_matcher({queue, nullptr, 0, 0, 0, nullptr, 0, 0});
  void* out = nullptr;
  tagline_post_receive(matcher.get(), {2, 0, 0}, nullptr, &out, nullptr);
  for (int i = 0; i < entries; ++i) {
    tagline_post_receive(matcher.get(), {1, 0, i}, nullptr, &out, nullptr);
  }
  for (int i = 0; i < 200; ++i) tagline_match_message(matcher.get(), {1, 1, i}, &out);
  tagline_match_message(matcher.get(), {3, 1, 0}, &out);
  // Behind what has been searched by now.
  tagline_post_receive(matcher.get(), {1, 0, entries}, nullptr, &out, nullptr);
  tagline_match_message(matcher.get(), {1, 1, 0}, &out);
  for (int i = entries; i >= 0; --i) {
    EXPECT_EQ(tagline_match_message(matcher.get(), {1, 0, i}, &out), TAGLINE_MATCHED);
  }
  tagline_statistics all;
  tagline_get_statistics(matcher.get(), &all);
  return all.posted;
}

TEST(TailQueues, CountAsOneListDoes) {
  for (const int entries : {1, 3, 4, 7, 20, 70}) {
    const tagline_side_statistics list = count_of_posted("linear", entries);
    // From 64 entries on they are read by several threads at once; bins divide them.
    for (const char* queue : {"tail:linear", "tail@mcs:linear", "binned:linear"}) {
      if (entries > 50 && queue == std::string("binned:linear")) continue;
      const tagline_side_statistics parts = count_of_posted(queue, entries);
      EXPECT_EQ(parts.searches, list.searches) << queue << ", " << entries;
      EXPECT_EQ(parts.matches, list.matches) << queue << ", " << entries;
      EXPECT_EQ(parts.search_depth_sum, list.search_depth_sum) << queue << ", " << entries;
      // Of a search that goes through two parts, the deeper one.
      EXPECT_GE(parts.search_depth_max, list.search_depth_max - 1) << queue << ", " << entries;
      EXPECT_LE(parts.search_depth_max, list.search_depth_max) << queue << ", " << entries;
      EXPECT_EQ(parts.length, list.length) << queue << ", " << entries;
    }
  }
}

// What waits in an inbox while others only read the queue.
TEST(TailQueues, TakeOverWhatHasBecomeMuchWhileTheyWereRead) {
  const auto bytes_behind = [](int misses) {
    const MatcherPointer matcher = make_matcher({"tail:linear", nullptr, 0, 0, 0, nullptr, 0, 0});
    void* out = nullptr;
    const auto post = [&](int begin, int end) {
      for (int i = begin; i < end; ++i) {
        tagline_post_receive(matcher.get(), {1, 0, i}, nullptr, &out, nullptr);
      }
    };
    post(0, 100);
    for (int i = 0; i < misses; ++i) tagline_match_message(matcher.get(), {1, 1, i}, &out);
    post(100, 1000);
    for (int i = 0; i < 2; ++i) tagline_match_message(matcher.get(), {1, 1, i}, &out);
    tagline_statistics all;
    tagline_get_statistics(matcher.get(), &all);
    return all.pool_bytes;
  };
  EXPECT_EQ(bytes_behind(100), bytes_behind(1)) << "among readers as alone";
}

TEST(AdaptiveMatcher, MakesNoIndexOfThreeEntriesThatWait) {
  const MatcherPointer matcher = make_matcher({"adaptive", nullptr, 0, 0, 0, nullptr, 0, 0});
  void* out = nullptr;
  for (int i = 0; i < 3; ++i) {
    tagline_post_receive(matcher.get(), {1, 0, i}, nullptr, &out, nullptr);
  }
  for (int i = 0; i < 1000; ++i) tagline_match_message(matcher.get(), {1, 1, i}, &out);
  tagline_statistics all;
  tagline_get_statistics(matcher.get(), &all);
  EXPECT_EQ(all.pool_bytes, 0u);
  EXPECT_EQ(all.posted.search_depth_sum, 3000u);
}

// Overtaking spares the look at what is older, but for the one or two that were looked at first.
TEST(AdaptiveMatcher, CountsWhatItHasLookedAt) {
  const auto depth_behind = [](int older, unsigned hints) {
    const MatcherPointer matcher = make_matcher({"adaptive", nullptr, 0, 0, 0, nullptr, 0, 0});
    tagline_set_hints(matcher.get(), 1, hints);
    void* out = nullptr;
    for (int i = 0; i <= older; ++i) {
      tagline_post_receive(matcher.get(), {1, 0, i}, nullptr, &out, nullptr);
    }
    EXPECT_EQ(tagline_match_message(matcher.get(), {1, 0, older}, &out), TAGLINE_MATCHED);
    tagline_statistics all;
    tagline_get_statistics(matcher.get(), &all);
    EXPECT_EQ(all.posted.search_depth_max, all.posted.search_depth_sum);
    return all.posted.search_depth_sum;
  };
  for (const int older : {0, 1, 2, 3, 10}) {
    const auto all = static_cast<std::uint64_t>(older) + 1;
    EXPECT_EQ(depth_behind(older, 0), all) << older;
    EXPECT_EQ(depth_behind(older, TAGLINE_ALLOW_OVERTAKING), older <= 2 ? all : 1) << older;
  }
}

// Or it would be called as what it is not.
TEST_P(Matcher, SaysThatItIsTheDefaultsIfItIs) {
  const bool is_default = dynamic_cast<QueueMatcher<AdaptiveQueue>*>(matcher()) != nullptr;
  EXPECT_EQ(matcher()->is_default, is_default);
  EXPECT_EQ(is_default, GetParam().queue == "adaptive");
}

TEST_P(Matcher, TakesNoMemoryOnceWarm) {
  const int entries = std::max(effort(5000), 1500);  // no multiple of 7
  const auto fill_and_drain = [&] {
    for (int i = 0; i < entries; ++i) post({1, 0, i}, 1);
    for (int i = 0; i < entries; ++i) arrive({1, 0, i * 7 % entries}, 2);
    for (int i = 0; i < entries; ++i) arrive({1, 0, i}, 2);
    for (int i = entries - 1; i >= 0; --i) post({1, 0, i}, 1);
  };
  // Each shard becomes warm by itself. What was never searched has no index in the first round.
  const int cold_rounds = GetParam().queue.starts_with("sharded") ? 16 : 2;
  std::uint64_t warm = 0;
  for (int round = 0; round < cold_rounds; ++round) {
    fill_and_drain();
    warm = std::max(warm, statistics().pool_bytes);
  }
  for (int round = 0; round < effort(3); ++round) fill_and_drain();
  EXPECT_LE(statistics().pool_bytes, warm);
}

TEST_P(Matcher, ErasingKeepsMemoryInProportion) {
  // One entry of each 100 stays: what remains must not hold on to the rest.
  constexpr int kRounds = effort(20);
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 10000; ++i) post({1, 0, i}, 1);
    for (int i = 0; i < 10000; ++i) {
      if (i % 100 != 0) arrive({1, 0, i}, 2);
    }
  }
  EXPECT_EQ(statistics().posted.length, 100u * kRounds);
  EXPECT_LT(statistics().pool_bytes, (is_threaded(GetParam().queue) ? 8u : 4u) << 20);
}

TEST_P(Matcher, OvertakingMatchesEachReceiveOnceWithWhatItAsksFor) {
  ASSERT_EQ(tagline_set_hints(matcher(), 1, TAGLINE_ALLOW_OVERTAKING), TAGLINE_OK);
  constexpr int kReceives = 3000;
  const auto envelope = [](int i) { return tagline_envelope{1, i % 3, i % 50}; };
  for (int i = 0; i < kReceives; ++i) {
    ASSERT_EQ(post(envelope(i), static_cast<std::uintptr_t>(i) + 1), TAGLINE_QUEUED);
  }
  std::vector<bool> matched(kReceives);
  for (int i = kReceives - 1; i >= 0; --i) {
    ASSERT_EQ(arrive(envelope(i), 5), TAGLINE_MATCHED) << i;
    const auto which = static_cast<int>(reinterpret_cast<std::uintptr_t>(out_)) - 1;
    ASSERT_FALSE(matched[static_cast<std::size_t>(which)]);
    matched[static_cast<std::size_t>(which)] = true;
    ASSERT_EQ(which % 3, i % 3);
    ASSERT_EQ(which % 50, i % 50);
  }
  EXPECT_EQ(statistics().posted.length, 0u);
}

TEST_P(Matcher, BrokenPromiseOfNoWildcardsStillMatchesTheOldest) {
  constexpr unsigned kNoWildcards = TAGLINE_NO_ANY_SOURCE | TAGLINE_NO_ANY_TAG;
  for (const unsigned later : {kNoWildcards, 0u}) {
    ASSERT_EQ(tagline_set_hints(matcher(), 1, kNoWildcards), TAGLINE_OK);
    for (int i = 0; i < 500; ++i) ASSERT_EQ(arrive({1, 0, i}, 10u + i), TAGLINE_QUEUED);
    for (int i = 499; i > 200; --i) ASSERT_EQ(post({1, 0, i}, 5), TAGLINE_MATCHED);
    ASSERT_EQ(tagline_set_hints(matcher(), 1, later), TAGLINE_OK);
    for (int i = 0; i <= 200; ++i) {
      ASSERT_EQ(post({1, TAGLINE_ANY_SOURCE, TAGLINE_ANY_TAG}, 5), TAGLINE_MATCHED);
      ASSERT_EQ(out_, cookie(10u + i));
    }
  }
}

TEST_P(Matcher, FullPoolIsReportedAndLosesNothing) {
  tagline_options options = GetParam().options();
  options.pool_bytes = 65536;  // two of the largest nodes
  const MatcherPointer small = make_matcher(options);
  tagline_status status = TAGLINE_QUEUED;
  int posted = 0;
  for (; posted < 100000; ++posted) {
    status = tagline_post_receive(small.get(), {1, 0, posted}, cookie(1), &out_, nullptr);
    if (status != TAGLINE_QUEUED) break;
  }
  ASSERT_EQ(status, TAGLINE_NO_MEMORY);
  EXPECT_GE(posted, 16);
  EXPECT_STRNE(tagline_error_message(), "");
  // Messages that match need no node, and make room for others.
  for (int i = posted - 1; i >= 0; --i) {
    ASSERT_EQ(tagline_arrive(small.get(), {1, 0, i}, cookie(2), &out_), TAGLINE_MATCHED) << i;
  }
  EXPECT_EQ(tagline_arrive(small.get(), {1, 0, 1}, cookie(2), &out_), TAGLINE_QUEUED);
}

TEST_P(Matcher, BadArgumentsChangeNothing) {
  void* untouched = cookie(99);
  out_ = untouched;
  tagline_envelope found{};
  EXPECT_EQ(post({1, -1, 0}, 10), TAGLINE_INVALID);
  EXPECT_EQ(arrive({1, -1, 0}, 20), TAGLINE_INVALID);
  EXPECT_EQ(arrive({1, TAGLINE_ANY_SOURCE, 0}, 20), TAGLINE_INVALID);
  EXPECT_EQ(arrive({1, 0, TAGLINE_ANY_TAG}, 20), TAGLINE_INVALID);
  EXPECT_EQ(tagline_post_receive(nullptr, {1, 0, 0}, nullptr, &out_, nullptr), TAGLINE_INVALID);
  EXPECT_EQ(tagline_post_receive(matcher(), {1, 0, 0}, nullptr, nullptr, nullptr), TAGLINE_INVALID);
  EXPECT_EQ(tagline_arrive(nullptr, {1, 0, 0}, nullptr, &out_), TAGLINE_INVALID);
  EXPECT_EQ(tagline_arrive(matcher(), {1, 0, 0}, nullptr, nullptr), TAGLINE_INVALID);
  EXPECT_EQ(tagline_claim(matcher(), {1, -5, 0}, &out_, &found), TAGLINE_INVALID);
  EXPECT_EQ(tagline_set_hints(matcher(), 1, 8), TAGLINE_INVALID);
  EXPECT_EQ(tagline_set_hints(nullptr, 1, 0), TAGLINE_INVALID);
  EXPECT_EQ(tagline_probe(matcher(), {1, 0, 0}, nullptr, &found), TAGLINE_INVALID);
  EXPECT_EQ(tagline_append_receive(matcher(), {1, -2, 0}, nullptr, nullptr), TAGLINE_INVALID);
  EXPECT_EQ(tagline_append_message(matcher(), {1, 0, TAGLINE_ANY_TAG}, nullptr), TAGLINE_INVALID);
  EXPECT_EQ(tagline_match_message(matcher(), {1, -1, 0}, &out_), TAGLINE_INVALID);
  EXPECT_EQ(tagline_cancel_receive(nullptr, {1, 0, 0}, nullptr), TAGLINE_INVALID);
  EXPECT_EQ(tagline_cancel_handle(nullptr, 1, 1), TAGLINE_INVALID);
  EXPECT_EQ(tagline_drop_context(nullptr, 1, nullptr, nullptr), 0u);
  EXPECT_EQ(out_, untouched);
  EXPECT_EQ(statistics().posted.length + statistics().unexpected.length, 0u);
}

TEST_P(Matcher, DestroyedWithEntriesLeft) {
  for (int i = 0; i < 1000; ++i) post({static_cast<std::uint64_t>(i % 3), 0, i}, 1);
  for (int i = 0; i < 1000; ++i) arrive({4, 0, i}, 1);
  matcher_.reset();
}

INSTANTIATE_TEST_SUITE_P(Every, Matcher, testing::ValuesIn(all_variants()), variant_name);
INSTANTIATE_TEST_SUITE_P(Threaded, Matcher, testing::ValuesIn(threaded_variants()), variant_name);

// ---- Choosing --------------------------------------------------------------

class Environment : public testing::Test {
 protected:
  void TearDown() override {
    unsetenv("TAGLINE_QUEUE");
    unsetenv("TAGLINE_ISA");
  }
  tagline_status create(const char* queue, const char* isa) {
    const tagline_options options = {queue, isa, 0, 0, 0, nullptr, 0, 0};
    tagline_matcher* matcher = nullptr;
    const tagline_status status = tagline_create(&options, &matcher);
    matcher_.reset(matcher);
    return status;
  }
  MatcherPointer matcher_;
};

TEST_F(Environment, OverridesTheOptions) {
  setenv("TAGLINE_QUEUE", "linear", 1);
  setenv("TAGLINE_ISA", "scalar", 1);
  ASSERT_EQ(create("vector", nullptr), TAGLINE_OK);
  EXPECT_STREQ(tagline_matcher_queue(matcher_.get()), "linear");
  EXPECT_STREQ(tagline_matcher_isa(matcher_.get()), "scalar");
}

TEST_F(Environment, LeavesThreadsServedAsTheOptionSays) {
  setenv("TAGLINE_QUEUE", "linear", 1);
  ASSERT_EQ(create("locked@mcs:vector", nullptr), TAGLINE_OK);
  EXPECT_STREQ(tagline_matcher_queue(matcher_.get()), "locked@mcs:linear");
  ASSERT_EQ(create("tail", nullptr), TAGLINE_OK);
  EXPECT_STREQ(tagline_matcher_queue(matcher_.get()), "tail:linear");
  EXPECT_EQ(create("tail@ticked:vector", nullptr), TAGLINE_INVALID);
  EXPECT_NE(std::string(tagline_error_message()).find("structure: TAGLINE_QUEUE"),
            std::string::npos)
      << tagline_error_message();
  setenv("TAGLINE_QUEUE", "locked@mcs:linear", 1);
  ASSERT_EQ(create("tail:vector", nullptr), TAGLINE_OK);
  EXPECT_STREQ(tagline_matcher_queue(matcher_.get()), "locked@mcs:linear");
}

TEST_F(Environment, DefaultsToTheBest) {
  ASSERT_EQ(create(nullptr, nullptr), TAGLINE_OK);
  EXPECT_STREQ(tagline_matcher_queue(matcher_.get()), tagline_queue_name(0));
  EXPECT_STREQ(tagline_matcher_isa(matcher_.get()), tagline_isa_name(0));
}

TEST_F(Environment, ThreadsNeedNoName) {
  setenv("TAGLINE_QUEUE", "vector", 1);
  const tagline_options options = {nullptr, nullptr, 0, 0, 1, nullptr, 0, 0};
  tagline_matcher* matcher = nullptr;
  ASSERT_EQ(tagline_create(&options, &matcher), TAGLINE_OK);
  matcher_.reset(matcher);
  EXPECT_STREQ(tagline_matcher_queue(matcher), "sharded:vector");
  setenv("TAGLINE_QUEUE", "tail@mcs", 1);
  ASSERT_EQ(create("linear", nullptr), TAGLINE_OK);
  EXPECT_STREQ(tagline_matcher_queue(matcher_.get()), "tail@mcs");
}

TEST_F(Environment, BadThreadingSaysWhatIsValid) {
  const struct {
    const char* queue;
    const char* says;
  } cases[] = {{"tail@ticked:linear", "spin, patient, mcs, ticket, mutex"},
               {"locked@:nothing", "linear"},
               {"binned:vector", "tail:vector"},
               {"sharded@3:linear", "power of 2"},
               {"sharded@2048", "1024"},
               {"shards:linear", "adaptive"},
               {"tail:array:3", "array"}};
  for (const auto& [queue, says] : cases) {
    EXPECT_EQ(create(queue, nullptr), TAGLINE_INVALID) << queue;
    EXPECT_NE(std::string(tagline_error_message()).find(says), std::string::npos)
        << queue << ": " << tagline_error_message();
  }
}

TEST_F(Environment, UnknownNamesListTheValidOnes) {
  EXPECT_EQ(create("hash", nullptr), TAGLINE_INVALID);
  EXPECT_NE(std::string(tagline_error_message()).find("linear"), std::string::npos)
      << tagline_error_message();
  setenv("TAGLINE_ISA", "mmx", 1);
  EXPECT_EQ(create(nullptr, nullptr), TAGLINE_INVALID);
  EXPECT_NE(std::string(tagline_error_message()).find("scalar"), std::string::npos);
  EXPECT_NE(std::string(tagline_error_message()).find("TAGLINE_ISA"), std::string::npos);
}

TEST_F(Environment, ParameterOfAStructureWithoutOneIsRefused) {
  EXPECT_EQ(create("linear:7", nullptr), TAGLINE_INVALID);
  EXPECT_NE(std::string(tagline_error_message()).find("takes no parameter"), std::string::npos);
}

TEST_F(Environment, BadParametersListTheValidForms) {
  for (const char* queue :
       {"array:0", "array:2", "array:3", "array:6", "array:2048", "array:-4", "array:4x",
        "array:99999999999999999999", "fuzzy:7", "fuzzy:64", "fuzzy:16:", "fuzzy:016",
        "fuzzy:16:tag8", "fuzzy:16:source8:tag8", "fuzzy:16:tag8:source9", "fuzzy:16:tag8:source8:",
        "fuzzy:32:tag:source8", "fuzzy:32:tag-1:source8", "fuzzy:8:tag100:source0"}) {
    EXPECT_EQ(create(queue, nullptr), TAGLINE_INVALID) << queue;
    const std::string message = tagline_error_message();
    EXPECT_NE(message.find(queue), std::string::npos) << message;
    EXPECT_NE(message.find(queue[0] == 'a' ? "array:64" : "fuzzy:32:tag8:source24"),
              std::string::npos)
        << message;
  }
}

TEST_F(Environment, NoPlaceForTheMatcherIsInvalid) {
  EXPECT_EQ(tagline_create(nullptr, nullptr), TAGLINE_INVALID);
}

}  // namespace
}  // namespace tagline::test
