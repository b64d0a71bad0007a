// SPDX-License-Identifier: BSD-3-Clause
// Random histories, replayed on every structure and instruction set against a
// model of MPI's rules that shares no code with the library.
#include "tests/support/history.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/all_matchers.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/players.hpp"

namespace tagline::test {
namespace {

std::uint32_t seeds(int full) { return static_cast<std::uint32_t>(effort(full)); }

class History : public testing::TestWithParam<Variant> {
 protected:
  // hints: of every context, until the history itself sets others.
  void expect_follows_model(const Mix& mix, std::uint64_t first_handle = 0, int hints = 0) {
    auto history = random_history(mix);
    for (int context = 0; hints != 0 && context < mix.contexts; ++context) {
      history.insert(
          history.begin(),
          {Operation::Kind::set_hints, {static_cast<std::uint64_t>(context), 0, hints}, 0});
    }
    tagline_options options = GetParam().options();
    options.first_handle = first_handle;
    EXPECT_EQ(first_difference(history, options, mix.contexts), "")
        << GetParam().name() << " with seed " << mix.seed;
  }
};

TEST_P(History, ShortQueues) {
  for (std::uint32_t seed = 1; seed <= seeds(60); ++seed) expect_follows_model({.seed = seed});
}

TEST_P(History, EqualKeys) {
  for (std::uint32_t seed = 1; seed <= seeds(20); ++seed) {
    expect_follows_model({.seed = seed, .contexts = 1, .sources = 1, .tags = 1});
  }
}

TEST_P(History, DeepPostedQueue) {
  for (std::uint32_t seed = 1; seed <= seeds(6); ++seed) {
    expect_follows_model({.seed = seed,
                          .operations = 6000,
                          .sources = 32,
                          .tags = 64,
                          .wildcards = 0.01,
                          .posted_bias = 0.65,
                          .rare = 0.05});
  }
}

TEST_P(History, DeepUnexpectedQueue) {
  for (std::uint32_t seed = 1; seed <= seeds(6); ++seed) {
    expect_follows_model({.seed = seed,
                          .operations = 6000,
                          .sources = 32,
                          .tags = 64,
                          .wildcards = 0.05,
                          .posted_bias = 0.35,
                          .rare = 0.05});
  }
}

TEST_P(History, MostlyWildcards) {
  for (std::uint32_t seed = 1; seed <= seeds(10); ++seed) {
    expect_follows_model({.seed = seed,
                          .operations = 4000,
                          .contexts = 3,
                          .sources = 8,
                          .tags = 8,
                          .wildcards = 0.8,
                          .posted_bias = 0.55});
  }
}

TEST_P(History, ManyCancelsAndDrops) {
  for (std::uint32_t seed = 1; seed <= seeds(10); ++seed) {
    expect_follows_model({.seed = seed,
                          .operations = 4000,
                          .contexts = 4,
                          .sources = 6,
                          .tags = 12,
                          .wildcards = 0.1,
                          .posted_bias = 0.7,
                          .rare = 0.5});
  }
}

TEST_P(History, HandlesAcrossTheWrap) {
  for (std::uint32_t seed = 1; seed <= seeds(5); ++seed) {
    expect_follows_model({.seed = seed, .sources = 8, .tags = 32, .posted_bias = 0.6, .rare = 0.3},
                         std::numeric_limits<std::uint64_t>::max() - 300);
  }
}

// Then any entry that fits will do, and only such a one.
TEST_P(History, WhereMessagesMayOvertake) {
  for (std::uint32_t seed = 1; seed <= seeds(10); ++seed) {
    for (const double posted_bias : {0.35, 0.5, 0.65}) {
      const Mix mix = {.seed = seed,
                       .operations = 3000,
                       .sources = seed % 3 == 0 ? 32 : 3,
                       .tags = seed % 3 == 1 ? 64 : 5,
                       .wildcards = 0.1,
                       .posted_bias = posted_bias,
                       .rare = 0.05};
      expect_follows_model(mix, 0, TAGLINE_ALLOW_OVERTAKING);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, History, testing::ValuesIn(all_variants()), variant_name);
INSTANTIATE_TEST_SUITE_P(Threaded, History, testing::ValuesIn(threaded_variants()), variant_name);

}  // namespace
}  // namespace tagline::test
