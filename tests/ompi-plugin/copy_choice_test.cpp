// SPDX-License-Identifier: BSD-3-Clause
#include "ompi-plugin/copy_choice.hpp"

#include <gtest/gtest.h>

namespace {

using tagline::pml::CopyChoice;
using tagline::pml::CopyWay;

constexpr std::size_t kBytes = 100000;

// Messages of one size, whose copies take as long as the test says.
class Traffic {
 public:
  Traffic(CopyChoice& choice, std::size_t bytes) : choice_(choice), bytes_(bytes) {}

  // Returns how many of so many messages were shared.
  int run(int messages, std::uint64_t read_ns, std::uint64_t share_ns) {
    int shared = 0;
    for (int i = 0; i < messages; ++i) {
      const CopyWay way = choice_.choose(bytes_);
      shared += way == CopyWay::kShare;
      choice_.note(way, bytes_, way == CopyWay::kShare ? share_ns : read_ns);
    }
    return shared;
  }

 private:
  CopyChoice& choice_;
  std::size_t bytes_;
};

TEST(CopyChoice, TriesBothWaysFirst) {
  CopyChoice choice;
  EXPECT_EQ(choice.choose(kBytes), CopyWay::kRead);
  choice.note(CopyWay::kRead, kBytes, 1000);
  EXPECT_EQ(choice.choose(kBytes), CopyWay::kShare);
  choice.note(CopyWay::kShare, kBytes, 500);
  EXPECT_EQ(choice.choose(kBytes), CopyWay::kShare);
}

TEST(CopyChoice, TakesTheFasterWayAndTriesTheOtherMoreAndMoreSeldom) {
  CopyChoice choice;
  Traffic traffic(choice, kBytes);
  EXPECT_LE(traffic.run(1000, 1000, 5000), 10);  // 1, and after 4, 8, ... 512 messages
  EXPECT_LE(traffic.run(10000, 1000, 5000), 5);
  EXPECT_GE(traffic.run(100000, 1000, 5000), 20) << "it has to notice when that changes";
  CopyChoice other;
  EXPECT_GE(Traffic(other, kBytes).run(1000, 5000, 1000), 990);
}

TEST(CopyChoice, FollowsAChangeOfTheWayItTakes) {
  CopyChoice choice;
  Traffic traffic(choice, kBytes);
  traffic.run(20000, 1000, 500);
  EXPECT_LE(traffic.run(1000, 1000, 5000), 50);
}

TEST(CopyChoice, FollowsAChangeOfTheOtherWay) {
  CopyChoice choice;
  Traffic traffic(choice, kBytes);
  traffic.run(20000, 1000, 5000);
  traffic.run(4200, 1000, 200);  // until the next trial and some more
  EXPECT_GE(traffic.run(1000, 1000, 200), 900);
}

TEST(CopyChoice, SharesOnlyWhereItIsWorthIt) {
  CopyChoice choice;
  EXPECT_LE(Traffic(choice, kBytes).run(1000, 1000, 950), 20);
}

TEST(CopyChoice, AnInterruptedMessageDoesNotDecide) {
  CopyChoice choice;
  Traffic traffic(choice, kBytes);
  traffic.run(100, 1000, 500);
  choice.note(CopyWay::kShare, kBytes, 50'000'000);
  EXPECT_GE(traffic.run(100, 1000, 500), 90);
}

TEST(CopyChoice, SizesAreJudgedByThemselves) {
  CopyChoice choice;
  Traffic small(choice, 40000);
  Traffic large(choice, 4000000);
  small.run(100, 1000, 2000);
  large.run(100, 2000, 1000);
  EXPECT_LE(small.run(100, 1000, 2000), 5);
  EXPECT_GE(large.run(100, 2000, 1000), 95);
}

}  // namespace
