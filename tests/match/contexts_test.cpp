// SPDX-License-Identifier: BSD-3-Clause
// Which context was used last, and what is known of its queues.
#include "match/contexts.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "queues/adaptive.hpp"
#include "simd/kernels.hpp"
#include "tests/support/reference_queue.hpp"

namespace tagline::test {
namespace {

class LastContext : public testing::Test {
 protected:
  using Queue = AdaptiveQueue;
  using Context = Contexts<Queue>::Context;

  Context* make(std::uint64_t id) {
    Context* const made = contexts_.find_or_make(id);
    EXPECT_NE(made, nullptr);
    return made;
  }
  // Makes an index of the queue that is as large as a second-level cache.
  void make_large(Queue& queue) {
    constexpr int kMany = 12000;
    for (int tag = 0; tag < kMany; ++tag) append(queue, tag);
    std::uint64_t depth = 0;
    while (!queue.is_indexed() || !queue.tells() || !queue.tells_none()) {
      append(queue, kMany + static_cast<int>(next_));
      EXPECT_FALSE(queue.find(key_of(0, 1 << 30), depth));
    }
    EXPECT_TRUE(queue.slot_hint(/*small=*/false));
  }
  void append(Queue& queue, int tag) { append_key(queue, key_of(0, tag)); }
  void append_key(Queue& queue, const MatchKey& key) {
    ASSERT_TRUE(queue.has_room() || queue.make_room());
    queue.append({key, nullptr, next_++});
  }
  static void drain(Queue& queue) {
    queue.remove_if([](const QueueEntry&) { return true; }, [](const QueueEntry&) {});
  }
  // Calls come close together, or this time has passed between two entries, which count for both
  // sides.
  void look_after(std::chrono::nanoseconds between = {}) {
    now_ += between * 2 * static_cast<std::int64_t>(next_ - looked_);
    looked_ = next_;
    contexts_.save_memory(next_, next_ - 1, next_ - 1, now_);
  }
  // As a matcher asks, of this id, in a call that begins with this side.
  Context* small_of(std::uint64_t id, QueueSide side = QueueSide::posted) const {
    return contexts_.is_last(id) && !contexts_.asks(side) ? contexts_.last(1, side) : nullptr;
  }
  Context* last_of(std::uint64_t id, QueueSide side = QueueSide::posted) const {
    return contexts_.is_last(id) ? contexts_.last(1, side) : nullptr;
  }

  Contexts<Queue> contexts_{{}, *simd::available_kernels(0), 0, nullptr};
  std::uint64_t next_ = 1;
  std::uint64_t looked_ = 1;
  Contexts<Queue>::Clock::time_point now_{std::chrono::hours(1)};
};

TEST_F(LastContext, IsKnownByItsId) {
  EXPECT_EQ(small_of(0), nullptr);
  EXPECT_EQ(last_of(0), nullptr);
  Context* const first = make(7);
  EXPECT_EQ(contexts_.last_id(), 7u);
  EXPECT_EQ(small_of(7), first);
  EXPECT_EQ(small_of(8), nullptr);
  EXPECT_EQ(last_of(8), nullptr);
  Context* const second = make(8);
  EXPECT_EQ(small_of(8), second);
  EXPECT_EQ(small_of(7), nullptr);
  EXPECT_EQ(contexts_.find(7), first);
  EXPECT_EQ(small_of(7), first);
}

TEST_F(LastContext, WithALargeIndexIsNotSmallOnThatSideUntilThatIsGone) {
  Context* const large = make(7);
  for (const QueueSide side : {QueueSide::posted, QueueSide::unexpected}) {
    const bool is_posted = side == QueueSide::posted;
    const QueueSide other = is_posted ? QueueSide::unexpected : QueueSide::posted;
    Queue& queue = is_posted ? large->posted : large->unexpected;
    make_large(queue);
    EXPECT_EQ(small_of(7, side), large);  // nobody has looked yet
    look_after();
    EXPECT_EQ(small_of(7, side), nullptr);
    EXPECT_EQ(small_of(7, other), large);
    EXPECT_EQ(last_of(7, side), large);
    EXPECT_EQ(last_of(8, side), nullptr);
    EXPECT_EQ(contexts_.find(7), large);
    EXPECT_EQ(contexts_.look_up(7), large);

    drain(queue);
    look_after();
    EXPECT_EQ(small_of(7, side), large);
    EXPECT_EQ(small_of(7, other), large);
  }
}

TEST_F(LastContext, WithTwoLargeIndexesIsSmallOnNeitherSide) {
  Context* const large = make(7);
  make_large(large->posted);
  make_large(large->unexpected);
  look_after();
  for (const QueueSide side : {QueueSide::posted, QueueSide::unexpected}) {
    EXPECT_EQ(small_of(7, side), nullptr);
    EXPECT_EQ(last_of(7, side), large);
  }
  contexts_.erase(7);
  for (const QueueSide side : {QueueSide::posted, QueueSide::unexpected}) {
    EXPECT_EQ(small_of(7, side), nullptr);
    EXPECT_EQ(last_of(7, side), nullptr);
  }
}

// Then the call that brings an entry asks for its slot as well.
TEST_F(LastContext, WithALargeIndexIsSmallOnNeitherSideWhileCallsAreRare) {
  using std::chrono::nanoseconds;
  for (const bool is_posted : {true, false}) {
    Context* const large = make(is_posted ? 7 : 8);
    const QueueSide other = is_posted ? QueueSide::unexpected : QueueSide::posted;
    Queue& queue = is_posted ? large->posted : large->unexpected;
    make_large(queue);
    look_after();
    for (const auto& [between, are_rare] : {std::pair(nanoseconds(100), false),
                                            {nanoseconds(1000), true},
                                            {nanoseconds(100), false}}) {
      for (int tag = 0; tag < 512; ++tag) append(queue, 100000 + tag);
      look_after(between);
      EXPECT_EQ(small_of(large->id, other), are_rare ? nullptr : large) << between.count();
      EXPECT_EQ(last_of(large->id, other), large);
    }
  }
}

// An index of any size, then; a queue that has none has nothing to be asked for.
TEST_F(LastContext, WithASmallIndexIsSmallOnNeitherSideWhileCallsAreRare) {
  using std::chrono::nanoseconds;
  Context* const context = make(7);
  append(context->posted, 1);
  append(context->unexpected, 1);
  look_after();
  const auto is_small = [&] {
    const bool small = small_of(7, QueueSide::posted) != nullptr;
    EXPECT_EQ(small_of(7, QueueSide::unexpected) != nullptr, small);
    return small;
  };
  for (Queue Context::*side : {&Context::posted, &Context::unexpected}) {
    Queue& queue = context->*side;
    for (int tag = 0; tag < 64; ++tag) append(queue, tag);
    look_after(nanoseconds(1000));
    EXPECT_TRUE(is_small());
    std::uint64_t depth = 0;
    while (!queue.is_indexed()) EXPECT_FALSE(queue.find(key_of(0, 1 << 30), depth));
    append(queue, 64);
    look_after(nanoseconds(100));
    EXPECT_TRUE(is_small());
    append(queue, 65);
    look_after(nanoseconds(1000));
    EXPECT_FALSE(is_small());
    EXPECT_EQ(last_of(7), context);
    drain(queue);
    append(queue, 66);
    look_after(nanoseconds(1000));
    EXPECT_TRUE(is_small());
  }
}

TEST_F(LastContext, IsLargeAtOnceWhenItIsUsedAgain) {
  Context* const large = make(7);
  make_large(large->posted);
  Context* const small = make(8);
  EXPECT_EQ(small_of(8), small);
  EXPECT_EQ(contexts_.find(7), large);
  EXPECT_EQ(small_of(7), nullptr);
  EXPECT_EQ(last_of(7), large);
  EXPECT_EQ(contexts_.find(8), small);
  EXPECT_EQ(small_of(8), small);
  EXPECT_EQ(last_of(7), nullptr);
}

// As long as it is large somebody has to look again, also where that is little memory.
TEST_F(LastContext, WithALargeIndexIsLookedAfter) {
  Context* const other = make(8);
  for (int tag = 0; tag < 200000; ++tag) append(other->posted, tag);
  ASSERT_TRUE(contexts_.move_queues());
  while (contexts_.memory().deferred_bytes() > 0) look_after();
  const std::uint64_t to_see_pace = contexts_.appends_between_looks();
  Context* const large = make(7);
  make_large(large->posted);
  EXPECT_EQ(contexts_.appends_between_looks(), to_see_pace);
  look_after();
  EXPECT_LT(contexts_.appends_between_looks(), to_see_pace);
  drain(large->posted);
  look_after();
  EXPECT_EQ(contexts_.appends_between_looks(), to_see_pace);
}

// Before it is so sparse that all queues move.
TEST_F(LastContext, HasAnIndexThatShrinksAsItIsLookedAfter) {
  constexpr int kMany = 60000;
  constexpr int kStay = 100;
  Context* const context = make(7);
  context->set_hints(TAGLINE_NO_ANY_SOURCE | TAGLINE_NO_ANY_TAG);  // the index and no log
  for (Queue Context::*side : {&Context::posted, &Context::unexpected}) {
    Queue& queue = context->*side;
    make_large(queue);
    for (int tag = 0; tag < kMany; ++tag) append(queue, kMany + tag);
    const std::size_t full = contexts_.memory().used_bytes();
    int left = kMany + 12000;
    queue.remove_if([&](const QueueEntry&) { return --left > kStay; }, [](const QueueEntry&) {});
    for (int tag = 0; tag < 2000000; ++tag) {
      void* cookie = nullptr;
      append(queue, tag);
      ASSERT_TRUE(queue.take(key_of(0, tag), &cookie, [](std::uint64_t, bool) {}));
      if (tag % 512 == 0) look_after();
    }
    EXPECT_LT(contexts_.memory().used_bytes(), full / 3);
    drain(queue);
  }
}

// Of what comes, few entries are for a table of theirs, which so takes long to fill.
TEST_F(LastContext, HasAnIndexThatKeepsItsSizeHoweverFewHaveWildcards) {
  constexpr int kMany = 16384;
  Queue& queue = make(7)->posted;
  make_large(queue);
  std::size_t warm = 0;
  for (int round = 0; round < 8; ++round) {
    for (int tag = 0; tag < kMany; ++tag) {
      append_key(queue, key_of(tag % 20 == 0 ? kAnySource : 0, tag));
      if (tag % 512 != 0) continue;
      look_after();
      if (round > 3) {
        EXPECT_EQ(contexts_.memory().used_bytes(), warm) << round << ", " << tag;
      }
    }
    drain(queue);
    warm = contexts_.memory().used_bytes();
  }
}

TEST_F(LastContext, IsForgottenWhenItIsErased) {
  const std::uint64_t to_see_pace = contexts_.appends_between_looks();
  make_large(make(7)->posted);
  look_after();
  contexts_.erase(7);
  EXPECT_EQ(contexts_.appends_between_looks(), to_see_pace);
  EXPECT_EQ(small_of(7), nullptr);
  EXPECT_EQ(last_of(7), nullptr);
  EXPECT_EQ(contexts_.find(7), nullptr);
  Context* const again = make(7);
  EXPECT_EQ(small_of(7), again);
}

}  // namespace
}  // namespace tagline::test
