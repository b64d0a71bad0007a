// SPDX-License-Identifier: BSD-3-Clause
// Simulated match lists: what is counted is what a matcher would have.
#include "tools/simulation.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <random>

#include "tools/event_wheel.hpp"
#include "tools/history.hpp"
#include "tools/player.hpp"
#include "tools/structures.hpp"

namespace tagline::tools {
namespace {

namespace fs = std::filesystem;

// Events come out by time whatever the order they were put in, near and far ones alike, and
// those that come in while others go out.
TEST(EventWheel, HandsEventsOutInOrder) {
  EventWheel wheel;
  std::mt19937_64 random(3);
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  std::uint64_t now = 0;
  const auto push = [&](std::uint64_t within) {
    wheel.push({now + random() % within, static_cast<std::uint32_t>(in++), 0, 0});
  };
  for (int i = 0; i < 1000; ++i) push(i % 2 == 0 ? 100 : 10'000'000);
  std::vector<bool> seen(200000);
  Event event = {};
  while (wheel.pop(event)) {
    ASSERT_GE(event.ns, now);
    now = event.ns;
    ASSERT_FALSE(seen[event.rank]);
    seen[event.rank] = true;
    ++out;
    if (in < seen.size() - 2) {
      push(20);
      if (random() % 8 == 0) push(3'000'000);
    }
  }
  EXPECT_EQ(out, in);
  EXPECT_EQ(wheel.size(), 0u);
}

class EveryPattern : public testing::TestWithParam<const char*> {};

// All ranks are traced; their histories, played to a matcher, make the lists that were counted.
TEST_P(EveryPattern, CountsWhatAMatcherWouldHave) {
  char name[] = "/tmp/tagline-simulation-test-XXXXXX";
  const fs::path folder = mkdtemp(name);
  const auto pattern = make_pattern(GetParam(), 64, GetParam() == std::string("sweep3d") ? 1 : 8);
  SimulateOptions options;
  options.folder = folder;
  for (std::uint32_t rank = 0; rank < pattern->ranks; ++rank) options.traced.push_back(rank);
  const Simulated result = simulate(*pattern, options);

  const TraceSet traces(folder);
  ASSERT_EQ(traces.ranks().size(), 64u);
  std::uint64_t arrivals = 0;
  std::uint64_t searched = 0;
  std::vector<std::uint64_t> posted(result.posted.ranks.size() + 1);
  std::vector<std::uint64_t> unexpected(result.unexpected.ranks.size() + 1);
  traces.for_each({}, [&](const History& history) {
    EXPECT_FALSE(history.cut);
    EXPECT_EQ(history.origin, TraceOrigin::simulated);
    const OwnedMatcher matcher = make_matcher("linear");
    arrivals += history.arrivals;
    searched += history.posts;
    play(history, matcher.get());
    tagline_statistics statistics;
    tagline_get_statistics(matcher.get(), &statistics);
    EXPECT_EQ(statistics.posted.length, 0u);
    ++posted.at(statistics.posted.high_water);
    ++unexpected.at(statistics.unexpected.high_water);
  });
  EXPECT_EQ(arrivals, result.messages);
  posted.pop_back();
  unexpected.pop_back();
  EXPECT_EQ(posted, result.posted.ranks);
  EXPECT_EQ(unexpected, result.unexpected.ranks);
  // Each entry came and went, but for messages that nobody asked for any more.
  EXPECT_EQ(result.posted.total() % 2, 0u);
  EXPECT_LE(result.posted.total() + result.unexpected.total(), 2 * result.messages);
  EXPECT_GE(result.posted.total() + result.unexpected.total(), 2 * searched);
  fs::remove_all(folder);
}

TEST_P(EveryPattern, IsTheSameEveryTime) {
  const auto pattern = make_pattern(GetParam(), 60, 1);
  const Simulated once = simulate(*pattern, {});
  const Simulated again = simulate(*pattern, {});
  EXPECT_EQ(once.posted.samples, again.posted.samples);
  EXPECT_EQ(once.unexpected.samples, again.unexpected.samples);
}

INSTANTIATE_TEST_SUITE_P(Patterns, EveryPattern, testing::Values("amr", "sweep3d", "halo3d"));

// The shapes that are known from simulations of the applications.
TEST(Pattern, AdaptiveMeshReachesTheMidHundreds) {
  const Simulated result = simulate(*make_pattern("amr", 4096, 10), {});
  EXPECT_GT(result.posted.longest(), 350u);
  EXPECT_LT(result.posted.longest(), 500u);
  EXPECT_LT(result.posted.percentile(0.5), 150u);
  EXPECT_GT(result.posted.percentile(0.9), 100u);
}

TEST(Pattern, SweepIsShortWithATailIntoTheLowHundreds) {
  const Simulated result = simulate(*make_pattern("sweep3d", 4096, 1), {});
  EXPECT_EQ(result.posted.longest(), 1u);
  EXPECT_LE(result.unexpected.percentile(0.9), 10u);
  EXPECT_GT(result.unexpected.longest(), 100u);
  EXPECT_LT(result.unexpected.longest(), 400u);
}

TEST(Pattern, HaloIsNeverLongerThanItsNeighbours) {
  const Simulated result = simulate(*make_pattern("halo3d", 4096, 5), {});
  EXPECT_EQ(result.posted.longest(), 26u);
  EXPECT_LE(result.unexpected.longest(), 27u);
}

TEST(Pattern, RefusesWhatCannotBe) {
  EXPECT_THROW(make_pattern("amr", 4, 1), std::runtime_error);
  EXPECT_THROW(make_pattern("halo3d", 64, 0), std::runtime_error);
  EXPECT_THROW(make_pattern("sweep3d", 64, 1000), std::runtime_error);
  EXPECT_THROW(make_pattern("ring", 64, 1), std::runtime_error);
  SimulateOptions options;
  options.traced = {64};
  EXPECT_THROW(simulate(*make_pattern("halo3d", 64, 1), options), std::runtime_error);
}

}  // namespace
}  // namespace tagline::tools
