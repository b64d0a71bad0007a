// SPDX-License-Identifier: BSD-3-Clause
// A turn that is not ended keeps all other threads out for good; one that is ended twice lets
// two in.
#include "match/turns.hpp"

#include <gtest/gtest.h>

#include "match/structures.hpp"
#include "simd/kernels.hpp"
#include "tests/support/all_matchers.hpp"
#include "tests/support/counted_turns.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/history.hpp"

namespace tagline::test {
namespace {

// Plays a call and counts, by halves each half.
class Player {
 public:
  Player(tagline_matcher& matcher, CountedTurns& turns) : matcher_(matcher), turns_(turns) {}

  // What the calls of a message came to, each of which has to end its turn once, and to number
  // what waits; other calls have to leave the turn as it is.
  void play(const Operation& operation) {
    using Kind = Operation::Kind;
    const tagline_envelope envelope = operation.envelope;
    void* const own = reinterpret_cast<void*>(operation.cookie);
    void* met = nullptr;
    tagline_envelope found;
    switch (operation.kind) {
      case Kind::post_receive:
        expect_one(false, [&] {
          return tagline_post_receive(&matcher_, envelope, own, &met,
                                      operation.cookie % 2 == 0 ? &handle_ : nullptr);
        });
        break;
      case Kind::arrive:
        expect_one(true, [&] { return tagline_arrive(&matcher_, envelope, own, &met); });
        break;
      case Kind::claim_then_append:
        if (expect_one(false, [&] { return tagline_claim(&matcher_, envelope, &met, nullptr); }) ==
            TAGLINE_NOT_FOUND) {
          expect_one(false,
                     [&] { return tagline_append_receive(&matcher_, envelope, own, nullptr); });
        }
        break;
      case Kind::match_then_append:
        if (expect_one(true, [&] { return tagline_match_message(&matcher_, envelope, &met); }) ==
            TAGLINE_NOT_FOUND) {
          expect_one(true, [&] { return tagline_append_message(&matcher_, envelope, own); });
        }
        break;
      case Kind::claim:
        expect_one(false, [&] { return tagline_claim(&matcher_, envelope, &met, &found); });
        break;
      case Kind::probe:
        expect_none([&] { return tagline_probe(&matcher_, envelope, &met, &found); });
        break;
      case Kind::append_receive:
        expect_one(false,
                   [&] { return tagline_append_receive(&matcher_, envelope, own, nullptr); });
        break;
      case Kind::append_message:
        expect_one(true, [&] { return tagline_append_message(&matcher_, envelope, own); });
        break;
      case Kind::inspect:
        expect_none([&] { return tagline_inspect(&matcher_, envelope, ignore, nullptr); });
        break;
      case Kind::statistics: {
        tagline_statistics all;
        expect_none([&] { tagline_get_statistics(&matcher_, &all); });
        break;
      }
      case Kind::cancel_receive:
        expect_none([&] { return tagline_cancel_receive(&matcher_, envelope, own); });
        break;
      case Kind::cancel_handle:
        expect_none([&] { return tagline_cancel_handle(&matcher_, envelope.context_id, handle_); });
        break;
      case Kind::set_hints:
        expect_none([&] {
          return tagline_set_hints(&matcher_, envelope.context_id,
                                   static_cast<unsigned>(envelope.tag));
        });
        break;
      case Kind::drop_context:
        expect_none(
            [&] { return tagline_drop_context(&matcher_, envelope.context_id, nullptr, nullptr); });
        break;
      case Kind::drop_source:
        expect_none([&] {
          return tagline_drop_source(&matcher_, envelope.context_id, envelope.source, nullptr,
                                     nullptr);
        });
        break;
    }
  }

 private:
  static void ignore(void*, tagline_side, tagline_envelope, void*) {}

  template <class Call>
  tagline_status expect_one(bool of_message, Call call) {
    turns_ = {};
    const tagline_status status = call();
    EXPECT_EQ(turns_.ended, 1) << "came to " << status;
    EXPECT_EQ(turns_.numbered, of_message && status == TAGLINE_QUEUED) << "came to " << status;
    return status;
  }
  template <class Call>
  void expect_none(Call call) {
    turns_ = {};
    call();
    EXPECT_EQ(turns_.ended + turns_.numbered, 0);
  }

  tagline_matcher& matcher_;
  CountedTurns& turns_;
  tagline_handle handle_ = 0;
};

class Turns : public testing::TestWithParam<const char*> {
 protected:
  // pool_bytes: 0, or a limit that some calls fail at.
  void expect_ends(const Mix& mix, std::size_t pool_bytes) {
    with_structure(GetParam(), "", [&]<class Queue>(const typename Queue::Parameters& parameters) {
      QueueMatcher<Queue, CountedTurns> matcher(parameters, *simd::available_kernels(0), pool_bytes,
                                                0);
      Player player(matcher, matcher.turns());
      for (const Operation& operation : random_history(mix)) {
        player.play(operation);
        if (testing::Test::HasFailure()) {
          ADD_FAILURE() << "kind " << static_cast<int>(operation.kind) << ", seed " << mix.seed
                        << ", pool_bytes " << pool_bytes;
          return;
        }
      }
    });
  }
};

TEST_P(Turns, EndOnceInEveryCallOfAMessage) {
  for (std::uint32_t seed = 1; seed <= static_cast<std::uint32_t>(effort(20)); ++seed) {
    expect_ends({.seed = seed, .sources = 4 * static_cast<int>(seed), .tags = 8}, 0);
    expect_ends({.seed = seed, .sources = 20, .tags = 20, .wildcards = 0.02, .posted_bias = 0.7},
                0);
    expect_ends({.seed = seed, .sources = 20, .tags = 20, .wildcards = 0.05, .posted_bias = 0.3},
                0);
  }
}

// Then memory is looked after now and then.
TEST_P(Turns, EndOnceWhereMuchIsHeld) {
  for (const double posted_bias : {0.85, 0.15}) {
    expect_ends({.seed = 1,
                 .operations = 12000,
                 .sources = 64,
                 .tags = 64,
                 .wildcards = 0,
                 .posted_bias = posted_bias,
                 .rare = 0},
                0);
  }
}

TEST_P(Turns, EndWhereThereIsNoMemory) {
  for (std::size_t limit = 1; limit < 100000; limit += (64 + limit / 12) * 100 / effort(100)) {
    expect_ends({.seed = static_cast<std::uint32_t>(limit),
                 .operations = 1000,
                 .sources = 20,
                 .tags = 20,
                 .wildcards = 0.05,
                 .posted_bias = limit % 2 == 0 ? 0.3 : 0.7},
                limit);
  }
}

// However seldom the matcher has something to look after itself.
TEST_P(Turns, AreLookedAtAsOftenAsTheyAsk) {
  with_structure(GetParam(), "", [&]<class Queue>(const typename Queue::Parameters& parameters) {
    QueueMatcher<Queue, TurnsAtShard> matcher(parameters, *simd::available_kernels(0), 0, 0);
    int looks = 0;
    matcher.turns().look_with([](void* counted) noexcept { ++*static_cast<int*>(counted); },
                              &looks);
    void* met = nullptr;
    for (int tag = 0; tag < 32; ++tag)
      tagline_post_receive(&matcher, {1, 0, tag}, this, &met, nullptr);
    const int before = looks;
    constexpr int kTimes = 10;
    for (std::uint64_t i = 0; i < kTimes * TurnsAtShard::kAppendsBetweenLooks; ++i) {
      tagline_post_receive(&matcher, {1, 0, 32}, this, &met, nullptr);
      ASSERT_EQ(tagline_arrive(&matcher, {1, 0, 32}, this, &met), TAGLINE_MATCHED);
    }
    // The first may have been planned by what is looked after else.
    EXPECT_GE(looks - before, kTimes - 2);
    EXPECT_LE(looks - before, kTimes);
  });
}

INSTANTIATE_TEST_SUITE_P(Every, Turns, testing::ValuesIn(kStructures),
                         [](const auto& structure) { return std::string(structure.param); });

}  // namespace
}  // namespace tagline::test
