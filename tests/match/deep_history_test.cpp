// SPDX-License-Identifier: BSD-3-Clause
// Queues of a million entries, compared call by call with an ordered map that is
// itself compared with `linear` where that one can still take part.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/support/all_matchers.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/history.hpp"
#include "tests/support/ordered_oracle.hpp"
#include "tests/support/players.hpp"

namespace tagline::test {
namespace {

using Kind = Operation::Kind;

TEST(OrderedOracle, FollowsLinearOnShortHistories) {
  for (std::uint32_t seed = 1; seed <= static_cast<std::uint32_t>(effort(60)); ++seed) {
    const double wildcards[] = {0.0, 0.02, 0.3, 1.0};
    const Mix mix = {.seed = seed,
                     .operations = 3000,
                     .contexts = 3,
                     .sources = seed % 2 == 0 ? 3 : 24,
                     .tags = seed % 3 == 0 ? 4 : 48,
                     .wildcards = wildcards[seed % 4],
                     .posted_bias = seed % 5 < 2 ? 0.4 : 0.6};
    const auto history = random_history(mix);
    OrderedOracle oracle;
    Library linear({"linear", nullptr, 0, 0, 0, nullptr, 0, 0});
    for (std::size_t i = 0; i < history.size(); ++i) {
      const Outcome expected = linear.play(history[i]);
      const Outcome actual = oracle.play(history[i]);
      ASSERT_TRUE(expected == actual)
          << "seed " << seed << " " << describe(history, i, expected, actual);
    }
    for (std::uint64_t context = 0; context < 3; ++context) {
      EXPECT_EQ(linear.remains(context), oracle.remains(context)) << "seed " << seed;
    }
    for (const tagline_side side : {TAGLINE_POSTED, TAGLINE_UNEXPECTED}) {
      EXPECT_EQ(linear.counts(side), oracle.counts(side)) << "seed " << seed;
    }
  }
}

// The shape of a queue that fills up and drains.
struct Deep {
  const char* name;
  tagline_side side;
  int wildcards;  // per cent of the receives
  int sources;
  int tags;
  enum class Order { first, reverse, random } order;
  int entries = 1 << 20;
  std::uint64_t first_handle = 0;
  friend void PrintTo(const Deep& deep, std::ostream* out) { *out << deep.name; }
};

// One history at a time goes to several matchers and the oracle.
class DeepPlay {
 public:
  DeepPlay(const Deep& deep, const std::vector<std::string>& queues)
      : deep_(deep), random_(static_cast<std::uint32_t>(deep.entries + deep.wildcards)) {
    for (const std::string& queue : queues) {
      const tagline_options options = {queue.c_str(), nullptr, 0, deep.first_handle, 0, nullptr, 0, 0};
      names_.push_back(queue);
      libraries_.push_back(std::make_unique<Library>(options));
    }
  }

  // False once something differed.
  bool play(const Operation& operation) {
    const Outcome expected = oracle_.play(operation);
    for (std::size_t i = 0; i < libraries_.size(); ++i) {
      const Outcome actual = libraries_[i]->play(operation);
      if (expected == actual) continue;
      ADD_FAILURE() << names_[i] << " after " << calls_ << " calls "
                    << describe({operation}, 0, expected, actual);
      return false;
    }
    ++calls_;
    return true;
  }

  void run() {
    const bool posted = deep_.side == TAGLINE_POSTED;
    // Fill one side; every now and then a look, which may move entries about.
    for (int i = 0; i < deep_.entries; ++i) {
      const tagline_envelope envelope = posted ? wild(message()) : message();
      filled_.push_back({posted ? Kind::post_receive : Kind::arrive, envelope, next_cookie_++});
      ASSERT_TRUE(play(filled_.back()));
      if (i % 5000 == 4999) {
        ASSERT_TRUE(play({Kind::probe, wild(message()), 0}));
      }
    }
    if (posted) {
      ASSERT_NO_FATAL_FAILURE(cancel_ends_and_middle());
    } else {
      ASSERT_NO_FATAL_FAILURE(ask_for_every_kind());
    }
    ASSERT_NO_FATAL_FAILURE(drain(deep_.entries / 2));
    // A few sources fail while the queue is deep, the rest drains around the holes.
    for (int source = 0; source < std::min(3, deep_.sources / 4); ++source) {
      ASSERT_TRUE(play({Kind::drop_source, {0, source, 0}, 0}));
    }
    ASSERT_NO_FATAL_FAILURE(drain(deep_.entries));
    for (std::size_t i = 0; i < libraries_.size(); ++i) {
      EXPECT_EQ(libraries_[i]->remains(0), oracle_.remains(0)) << names_[i];
      for (const tagline_side side : {TAGLINE_POSTED, TAGLINE_UNEXPECTED}) {
        EXPECT_EQ(libraries_[i]->counts(side), oracle_.counts(side)) << names_[i];
      }
    }
    ASSERT_TRUE(play({Kind::drop_context, {0, 0, 0}, 0}));
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  tagline_envelope message() {
    // One tag in sixteen is the host's own traffic, which tag wildcards must pass by.
    const int tag = below(deep_.tags);
    return {0, below(deep_.sources), tag % 16 == 15 ? -tag : tag};
  }
  tagline_envelope wild(tagline_envelope envelope) {
    if (below(100) >= deep_.wildcards) return envelope;
    const int kind = below(100);  // mostly any source: what programs use
    if (kind < 80) envelope.source = TAGLINE_ANY_SOURCE;
    if (kind >= 60) envelope.tag = TAGLINE_ANY_TAG;
    return envelope;
  }

  void cancel_ends_and_middle() {
    const std::size_t last = filled_.size() - 1;
    for (const std::size_t which : {std::size_t{0}, std::size_t{1}, last / 3, last / 2, last - 1,
                                    last, last, std::size_t{0}}) {
      Operation operation = filled_[which];
      operation.kind = which % 2 == 0 ? Kind::cancel_handle : Kind::cancel_receive;
      ASSERT_TRUE(play(operation));
      operation.kind = which % 2 == 0 ? Kind::cancel_receive : Kind::cancel_handle;
      ASSERT_TRUE(play(operation)) << "a second cancel finds nothing";
    }
  }

  // The first question of its kind among a million messages, and then some more.
  void ask_for_every_kind() {
    for (int round = 0; round < 40; ++round) {
      tagline_envelope envelope = message();
      if ((round & 1) != 0) envelope.source = TAGLINE_ANY_SOURCE;
      if ((round & 2) != 0) envelope.tag = TAGLINE_ANY_TAG;
      ASSERT_TRUE(play({round % 3 == 0 ? Kind::claim : Kind::probe, envelope, 0}));
      // Nobody sends this: the whole queue is searched in vain.
      const std::int32_t source = (round & 2) != 0 ? deep_.sources : TAGLINE_ANY_SOURCE;
      const std::int32_t tag = (round & 2) != 0 ? TAGLINE_ANY_TAG : deep_.tags;
      ASSERT_TRUE(play({Kind::probe, {0, source, tag}, 0}));
    }
  }

  // Partners for up to so many of the entries still to be drained.
  void drain(int most) {
    if (order_.empty()) {
      order_.resize(filled_.size());
      std::iota(order_.begin(), order_.end(), std::size_t{0});
      if (deep_.order == Deep::Order::reverse) std::reverse(order_.begin(), order_.end());
      if (deep_.order == Deep::Order::random) std::shuffle(order_.begin(), order_.end(), random_);
    }
    for (; most > 0 && drained_ < order_.size(); --most, ++drained_) {
      tagline_envelope envelope = filled_[order_[drained_]].envelope;
      if (deep_.side == TAGLINE_POSTED) {
        if (envelope.source == TAGLINE_ANY_SOURCE) envelope.source = below(deep_.sources);
        if (envelope.tag == TAGLINE_ANY_TAG) envelope.tag = below(deep_.tags);
        ASSERT_TRUE(play({Kind::arrive, envelope, next_cookie_++}));
      } else {
        ASSERT_TRUE(play({Kind::post_receive, wild(envelope), next_cookie_++}));
      }
      if (most % 64 == 0) {  // the other side of the queue goes on growing
        const Kind kind = deep_.side == TAGLINE_POSTED ? Kind::post_receive : Kind::arrive;
        const tagline_envelope fresh = deep_.side == TAGLINE_POSTED ? wild(message()) : message();
        ASSERT_TRUE(play({kind, fresh, next_cookie_++}));
      }
    }
  }

  const Deep deep_;
  std::mt19937 random_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Library>> libraries_;
  OrderedOracle oracle_;
  std::vector<Operation> filled_;
  std::vector<std::size_t> order_;
  std::size_t drained_ = 0;
  std::uintptr_t next_cookie_ = 1;
  std::size_t calls_ = 0;
};

class DeepHistory : public testing::TestWithParam<Deep> {};

TEST_P(DeepHistory, AMillionEntriesByIndex) {
  Deep deep = GetParam();
  deep.entries = effort(deep.entries);
  DeepPlay(deep, {"adaptive", "indexed"}).run();
}

TEST_P(DeepHistory, ThousandsOfEntriesByEveryStructure) {
  Deep deep = GetParam();
  deep.entries = effort(3000);
  deep.tags = std::min(deep.tags, deep.entries);
  std::vector<std::string> queues;
  for (const Variant& variant : all_variants()) {
    if (variant.isa == tagline_isa_name(0)) queues.push_back(variant.queue);
  }
  DeepPlay(deep, queues).run();
}

constexpr Deep kDeep[] = {
    {"PostedExactReverse", TAGLINE_POSTED, 0, 1, 1 << 20, Deep::Order::reverse, 1 << 18},
    {"PostedExactRandomAcrossTheWrap", TAGLINE_POSTED, 0, 1024, 1024, Deep::Order::random, 1 << 20,
     ~std::uint64_t{0} - 1500},
    {"PostedFewWildcards", TAGLINE_POSTED, 1, 512, 2048, Deep::Order::random},
    {"PostedSomeWildcards", TAGLINE_POSTED, 10, 1 << 20, 4, Deep::Order::random, 1 << 19},
    {"PostedAllWildcards", TAGLINE_POSTED, 100, 256, 4096, Deep::Order::random, 1 << 18},
    {"UnexpectedExactFirst", TAGLINE_UNEXPECTED, 0, 1024, 1024, Deep::Order::first, 1 << 19},
    {"UnexpectedFewWildcards", TAGLINE_UNEXPECTED, 1, 1, 1 << 20, Deep::Order::random},
    {"UnexpectedSomeWildcards", TAGLINE_UNEXPECTED, 10, 2048, 512, Deep::Order::reverse, 1 << 19},
    {"UnexpectedAllWildcards", TAGLINE_UNEXPECTED, 100, 256, 4096, Deep::Order::random},
    {"UnexpectedEqualKeys", TAGLINE_UNEXPECTED, 10, 1, 1, Deep::Order::first, 1 << 19},
};

INSTANTIATE_TEST_SUITE_P(Shape, DeepHistory, testing::ValuesIn(kDeep),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tagline::test
