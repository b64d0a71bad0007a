// SPDX-License-Identifier: BSD-3-Clause
// Queues that are deep and short by turns, in order and not, compared call by call with the
// ordered oracle: what a structure keeps of one time meets what it does at another.
#include <gtest/gtest.h>

#include <algorithm>
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

class Tides {
 public:
  Tides(const std::string& queue, std::uint32_t seed)
      : random_(seed),
        posted_(seed % 2 == 0),
        wildcards_(std::vector{0, 0, 2, 60}[seed / 2 % 4]),
        sources_(1 + below(4)),
        library_({queue.c_str(), nullptr, 0, 0, 0, nullptr, 0, 0}) {}

  void run() {
    for (int tide = 0; tide < 12; ++tide) {
      const int entries[] = {200 + below(800), 1 + below(12), 9 + below(60), 60 + below(80),
                             1 + below(300)};
      const int depth = entries[below(5)];
      const int tags = below(3) == 0 ? 1 + below(8) : 4 * depth;
      for (int rounds = 1 + below(depth < 100 ? 20 : 2); rounds > 0; --rounds) {
        ASSERT_NO_FATAL_FAILURE(fill_and_drain(depth, tags));
      }
      if (below(6) == 0) {
        ASSERT_NO_FATAL_FAILURE(play({Kind::drop_context, {0, 0, 0}, 0}));
      }
    }
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  tagline_envelope wild(tagline_envelope envelope) {
    if (below(100) >= wildcards_) return envelope;
    const int kind = below(3);
    if (kind != 1) envelope.source = TAGLINE_ANY_SOURCE;
    if (kind != 0) envelope.tag = TAGLINE_ANY_TAG;
    return envelope;
  }

  void play(const Operation& operation) {
    const Outcome expected = oracle_.play(operation);
    const Outcome actual = library_.play(operation);
    ASSERT_TRUE(expected == actual)
        << "after " << calls_ << " calls " << describe({operation}, 0, expected, actual);
    ++calls_;
  }

  void fill_and_drain(int depth, int tags) {
    std::vector<Operation> filled;
    for (int i = 0; i < depth; ++i) {
      const tagline_envelope envelope = {0, below(sources_), below(2) == 0 ? i : below(tags)};
      const Kind kind = posted_ ? Kind::post_receive : Kind::arrive;
      filled.push_back({kind, posted_ ? wild(envelope) : envelope, next_cookie_++});
      ASSERT_NO_FATAL_FAILURE(play(filled.back()));
    }
    switch (below(4)) {
      case 0:
        break;
      case 1:
        std::shuffle(filled.begin(), filled.end(), random_);
        break;
      case 2:
        std::reverse(filled.begin(), filled.end());
        break;
      case 3:  // nearly in order
        for (std::size_t i = 1; i < filled.size(); ++i) {
          if (below(8) == 0) std::swap(filled[i], filled[static_cast<std::size_t>(below(depth))]);
        }
    }
    // Now and then a few stay.
    filled.resize(filled.size() -
                  static_cast<std::size_t>(below(4) == 0 ? std::min(depth, below(9)) : 0));
    for (const Operation& entry : filled) {
      if (below(50) == 0) {
        ASSERT_NO_FATAL_FAILURE(interfere(entry));
      }
      tagline_envelope partner = entry.envelope;
      if (posted_ && partner.source == TAGLINE_ANY_SOURCE) partner.source = below(sources_);
      if (posted_ && partner.tag == TAGLINE_ANY_TAG) partner.tag = below(tags);
      const Kind kind = posted_ ? Kind::arrive : Kind::post_receive;
      ASSERT_NO_FATAL_FAILURE(play({kind, posted_ ? partner : wild(partner), next_cookie_++}));
    }
  }

  void interfere(Operation entry) {
    entry.kind = !posted_        ? Kind::probe
                 : below(2) == 0 ? Kind::cancel_receive
                                 : Kind::cancel_handle;
    if (!posted_) entry.envelope = wild(entry.envelope);
    play(entry);
  }

  std::mt19937 random_;
  const bool posted_;
  const int wildcards_;  // per cent of the receives
  const int sources_;
  Library library_;
  OrderedOracle oracle_;
  std::uintptr_t next_cookie_ = 1;
  std::size_t calls_ = 0;
};

class ChangingDepth : public testing::TestWithParam<std::string> {};

TEST_P(ChangingDepth, FollowsTheOracle) {
  for (int seed = 1; seed <= effort(80); ++seed) {
    ASSERT_NO_FATAL_FAILURE(Tides(GetParam(), static_cast<std::uint32_t>(seed)).run())
        << "seed " << seed;
  }
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  return Variant{info.param, "best"}.name();
}

INSTANTIATE_TEST_SUITE_P(Every, ChangingDepth, testing::ValuesIn(all_queues()), name_of);

}  // namespace
}  // namespace tagline::test
