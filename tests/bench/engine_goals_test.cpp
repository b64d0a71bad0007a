// SPDX-License-Identifier: BSD-3-Clause
#include "bench/engine_goals.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace bench {
namespace {

// A match behind eight receives, which takes that long in each round, where L0 takes 10 ns.
EngineRow behind_eight(const std::string& structure, std::vector<double> rounds) {
  EngineRow row;
  row.structure = structure;
  row.benchmark = "behind_eight/" + structure;
  row.isa = "avx2";
  row.side = "posted";
  row.order = "last";
  row.keys = "one_source";
  row.holes = "dense";
  row.cache = "hot";
  row.operation = "post_and_match";
  row.depth = 8;
  row.rounds = std::move(rounds);
  row.ns = row.rounds.front();
  row.relative_to_l0 = row.ns / 10;
  return row;
}

Goal goal(const Verdict& verdict, const std::string& begin) {
  const auto found = std::find_if(verdict.goals.begin(), verdict.goals.end(), [&](const Goal& one) {
    return one.goal.compare(0, begin.size(), begin) == 0;
  });
  return found == verdict.goals.end() ? Goal{"no such goal", "", ""} : *found;
}
constexpr const char* kBest = "adaptive / best other structure, behind the whole queue";

TEST(EngineGoals, RatiosAreOfTheSameRounds) {
  // The machine takes twice as long for a while, in which one of both has fewer rounds.
  EXPECT_DOUBLE_EQ(2, ratio_by_rounds({10, 20, 20, 10, 10}, {5, 10, 10, 5}));
  EXPECT_DOUBLE_EQ(2, ratio_by_rounds({20, 20}, {10, 10, 5, 5, 5}));
  EXPECT_DOUBLE_EQ(1.5, ratio_by_rounds({10, 15, 90}, {10, 10, 10}));
}

TEST(EngineGoals, TheBestOtherStructureOfTheSamePointCounts) {
  EngineRow elsewhere = behind_eight("array", {1, 1, 1});
  elsewhere.depth = 64;
  // What is only compared with, and another instruction set, is none of ours.
  EngineRow other_isa = behind_eight("vector", {1, 1, 1});
  other_isa.isa = "sse2";
  const Verdict verdict =
      judge({{behind_eight("adaptive", {12, 24, 12}), behind_eight("linear", {40, 80, 40}),
              behind_eight("source", {10, 20, 10}), behind_eight("exact_hash", {1, 1, 1}),
              other_isa, elsewhere}},
            "avx2");
  EXPECT_EQ("yes", goal(verdict, kBest).met);
  EXPECT_EQ("1.20x at most (posted, last, depth 8)", goal(verdict, kBest).measured);
  EXPECT_EQ("yes", goal(verdict, "adaptive / L0, behind the whole queue").met);
  EXPECT_TRUE(verdict.in_doubt.empty());
}

TEST(EngineGoals, WhatIsMissedIsInDoubtAndTheMedianOfAllRunsDecides) {
  const std::vector<EngineRow> missed{behind_eight("adaptive", {13}), behind_eight("source", {10})};
  const std::vector<EngineRow> reached{behind_eight("adaptive", {12}),
                                       behind_eight("source", {10})};
  const Verdict first = judge({missed}, "avx2");
  EXPECT_EQ("no", goal(first, kBest).met);
  EXPECT_EQ((std::set<std::string>{"behind_eight/adaptive", "behind_eight/source"}),
            first.in_doubt);
  EXPECT_EQ("yes", goal(judge({missed, reached, reached}, "avx2"), kBest).met);
  EXPECT_EQ("no", goal(judge({missed, missed, reached}, "avx2"), kBest).met);
}

TEST(EngineGoals, WhatWasNotMeasuredIsNotReached) {
  EXPECT_EQ("not measured", goal(judge({{behind_eight("linear", {10})}}, "avx2"), kBest).met);
}

}  // namespace
}  // namespace bench
