// SPDX-License-Identifier: BSD-3-Clause
// What a report says about a history whose answers are known.
#include "tools/study.hpp"

#include <gtest/gtest.h>

namespace tagline::tools {
namespace {

TEST(BitUse, FindsTheSmallestWindowThatTellsValuesApart) {
  BitUse one;
  one.add({{1234, 5}});
  EXPECT_EQ(one.minimum, 0);
  EXPECT_EQ(one.used_bits, 11);
  EXPECT_EQ(one.overlap[0], 0.0);

  // 10000 and 100000 differ in the fifth bit first; so do 100000 and 110000.
  BitUse three;
  three.add({{0x10, 1}, {0x20, 1}, {0x30, 2}});
  EXPECT_EQ(three.most_values, 3u);
  EXPECT_EQ(three.minimum, 6);
  EXPECT_EQ(three.used_bits, 6);
  // Of 16 pairs 1 + 1 + 4 are equal. With five bits 0x10 looks like 0x30.
  EXPECT_DOUBLE_EQ(three.overlap[4], 10.0 / 16);
  EXPECT_DOUBLE_EQ(three.overlap[5], 4.0 / 16);
  EXPECT_DOUBLE_EQ(three.overlap[6], 0.0);

  // The worst rank counts.
  three.add({{1, 1}, {2, 1}});
  EXPECT_EQ(three.minimum, 6);
  EXPECT_DOUBLE_EQ(three.overlap[4], 10.0 / 16);
}

Operation operation(Operation::Kind kind, std::int32_t source, std::int32_t tag, std::int64_t ns) {
  return {kind, 0, source, tag, ns, 100, 0};
}

TEST(Study, CountsLengthsDepthsPeersAndWildcards) {
  using Kind = Operation::Kind;
  History history;
  history.operations = {
      operation(Kind::arrive, 3, 1, 0),                   // waits
      operation(Kind::arrive, 3, 2, 10),                  // waits
      operation(Kind::post, 3, 2, 20),                    // second entry
      operation(Kind::post, TAGLINE_ANY_SOURCE, 7, 30),   // looks at one, waits
      operation(Kind::post, 5, TAGLINE_ANY_TAG, 40),      // looks at one, waits
      operation(Kind::arrive, 5, 8, 99),                  // second receive
  };
  Study study(100);
  study.add(history);
  EXPECT_EQ(study.posts, 3u);
  EXPECT_EQ(study.any_source, 1u);
  EXPECT_EQ(study.any_tag, 1u);
  EXPECT_EQ(study.unexpected.lengths, (std::vector<std::uint64_t>{0, 2, 1}));
  EXPECT_EQ(study.posted.lengths, (std::vector<std::uint64_t>{0, 2, 1}));
  EXPECT_EQ(study.unexpected.depths, (std::vector<std::uint64_t>{0, 2, 1}));
  EXPECT_EQ(study.posted.depths, (std::vector<std::uint64_t>{0, 0, 1}));
  EXPECT_EQ(study.peers.at(3).messages, 2u);
  EXPECT_EQ(study.peers.at(3).unexpected, 2u);
  EXPECT_EQ(study.peers.at(3).bytes, 200u);
  EXPECT_EQ(study.peers.at(5).unexpected, 0u);
  EXPECT_EQ(study.most_waiting_bytes, 200u);
  EXPECT_EQ(study.over_time.front().unexpected, 1u);
  EXPECT_EQ(study.over_time[20].unexpected, 1u);
  EXPECT_EQ(study.over_time[Study::kBins - 2].arrivals, 1u);
  EXPECT_EQ(study.sources.most_values, 2u);
}

}  // namespace
}  // namespace tagline::tools
