// SPDX-License-Identifier: BSD-3-Clause
#include "tools/tune.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tools/structures.hpp"
#include "tools/uses.hpp"

namespace tagline::tools {
namespace {

// Scores of one kind: the default's, then those of "vector".
ProfileRun run_with(ProfileScore score, const std::string& version = "1.0.0") {
  ProfileRun run{"2026-11-21T17:40:00Z", "low", 5, version, {}, {}};
  run.scores.push_back({"single/any/few", "adaptive", "avx2", 1, 1, 1, 1, 20});
  score.kind = "single/any/few";
  score.queue = "vector";
  score.isa = "avx2";
  run.scores.push_back(score);
  return run;
}

std::string chosen(const std::vector<ProfileRun>& runs) {
  const MachineProfile machine{"here", runs, {}};
  const std::vector<Advice> advice = advise(machine, "1.0.0");
  EXPECT_EQ(advice.size(), 1u);
  EXPECT_EQ(advice[0].score.kind, "single/any/few");
  EXPECT_EQ(advice[0].is_default, advice[0].score.queue == "adaptive");
  return advice[0].score.queue;
}

ProfileScore score(double median, double high, double worst, unsigned rounds = 20) {
  return {"", "", "", median, median - 0.05, high, worst, rounds};
}

TEST(Advice, WantsAGainThatIsWorthwhileSteadyAndNowhereALoss) {
  EXPECT_EQ(chosen({run_with(score(0.8, 0.9, 1.2))}), "vector");
  EXPECT_EQ(chosen({run_with(score(0.98, 0.99, 1.0))}), "adaptive");
  EXPECT_EQ(chosen({run_with(score(0.8, 1.01, 1.2))}), "adaptive");
  EXPECT_EQ(chosen({run_with(score(0.8, 0.9, 1.6))}), "adaptive");
}

TEST(Advice, WantsEveryRunToAgree) {
  const ProfileRun good = run_with(score(0.8, 0.9, 1.2));
  EXPECT_EQ(chosen({good, good}), "vector");
  EXPECT_EQ(chosen({good, run_with(score(0.9, 1.1, 1.2))}), "adaptive");
  EXPECT_EQ(chosen({good, run_with(score(0.9, 0.95, 1.7))}), "adaptive");
  // By rounds: 0.8 in 20 of them, 0.99 in a thousand.
  EXPECT_EQ(chosen({good, run_with(score(0.99, 0.995, 1.2, 1000))}), "adaptive");
}

TEST(Advice, IsAboutThisVersion) {
  const ProfileRun other = run_with(score(0.5, 0.6, 1), "0.9.0");
  EXPECT_EQ(chosen({other, run_with(score(1.1, 1.2, 2))}), "adaptive");
  EXPECT_TRUE(advise({"here", {other}, {}}, "1.0.0").empty());
}

// A walk through sixteen thousand receives takes microseconds, a look into an index none, once
// practice has brought them there; the machine may take its processor away meanwhile, but not ten
// times.
TEST(Measuring, TellsWalksFromIndexes) {
  const std::string isa = tagline_isa_name(0);
  const Work work = {Work::posted, 16384};
  const double walk = measure("linear", isa, work, 0.001);
  double index = walk;
  for (int i = 0; i < 10; ++i) index = std::min(index, measure("adaptive", isa, work, 0.001));
  EXPECT_GT(walk, 2 * index);
}

TEST(Measuring, WorksWithEveryMatcher) {
  const std::string isa = tagline_isa_name(0);
  for (const std::string& queue : structure_names()) {
    for (const Work::Kind kind : {Work::posted, Work::unexpected, Work::drained, Work::wildcards}) {
      EXPECT_GT(measure(queue, isa, Work{kind, 40}, 0.0001), 0) << queue;
    }
  }
  for (const std::string& queue : threaded_names()) {
    EXPECT_GT(measure(queue, isa, ThreadedWork{2, 40, 8, 5}, 0.0005), 0) << queue;
    EXPECT_GT(measure(queue, isa, ThreadedWork{2, 0, 0, 0}, 0.0005), 0) << queue;
  }
}

}  // namespace
}  // namespace tagline::tools
