// SPDX-License-Identifier: BSD-3-Clause
// What a long queue leaves behind once it has emptied.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "match/tagline.h"
#include "tests/support/all_matchers.hpp"
#include "tests/support/resident_memory.hpp"

namespace tagline::test {
namespace {

constexpr int kEntries = effort(1000000);
constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Load {
  const char* queue;
  tagline_side side;
  bool equal_keys;  // else every entry has a tag of its own
};
void PrintTo(const Load& load, std::ostream* out) { *out << load.queue; }

class Drained : public testing::TestWithParam<Load> {
 protected:
  Drained() {
    const tagline_options options = {GetParam().queue, nullptr, 0, 0, 0, nullptr, 0, 0};
    matcher_ = make_matcher(options);
  }

  // An entry for this side's queue, or its partner.
  void append(int tag) {
    void* out;
    const tagline_status status =
        GetParam().side == TAGLINE_POSTED
            ? tagline_post_receive(matcher_.get(), {1, 0, tag}, nullptr, &out, nullptr)
            : tagline_arrive(matcher_.get(), {1, 0, tag}, nullptr, &out);
    ASSERT_EQ(status, TAGLINE_QUEUED);
  }
  void match(int tag) {
    void* out;
    const tagline_status status =
        GetParam().side == TAGLINE_POSTED
            ? tagline_arrive(matcher_.get(), {1, 0, tag}, nullptr, &out)
            : tagline_post_receive(matcher_.get(), {1, 0, tag}, nullptr, &out, nullptr);
    ASSERT_EQ(status, TAGLINE_MATCHED);
  }

  void fill() {
    for (int i = 0; i < kEntries; ++i) append(tag(i));
    // One deep search, so that a structure with an index has one.
    append(kEntries);
    match(kEntries);
  }
  void drain() {
    for (int i = 0; i < kEntries; ++i) match(tag(i));
  }
  void shallow_traffic(int messages) {
    for (int i = 0; i < messages; i += 3) {
      for (int tag = 0; tag < 3; ++tag) append(tag);
      for (int tag = 0; tag < 3; ++tag) match(tag);
    }
  }
  static int tag(int i) { return GetParam().equal_keys ? 5 : i; }

  std::uint64_t pool_bytes() const {
    tagline_statistics all;
    tagline_get_statistics(matcher_.get(), &all);
    return all.pool_bytes;
  }

  MatcherPointer matcher_;
};

TEST_P(Drained, ReturnsItsMemoryToTheSystem) {
  const std::size_t before = resident_bytes();
  fill();
  const std::size_t full = resident_bytes();
  EXPECT_GT(pool_bytes(), 15u * kEntries);
  drain();
  shallow_traffic(100000);
  EXPECT_LT(pool_bytes(), kMiB);
  if (kResidentBytesTell) {
    EXPECT_GT(full, before + 15 * kMiB);
    EXPECT_LT(resident_bytes(), before + 4 * kMiB);
  }
  RecordProperty("resident_bytes_full", static_cast<int>(full - before));
  RecordProperty("resident_bytes_drained", static_cast<int>(resident_bytes() - before));

  // What came back serves again.
  fill();
  drain();
}

// Where the memory was taken by the searches, not by the appends.
TEST_P(Drained, ReturnsWhatTheSearchesOfADrainTook) {
  constexpr int kFew = 8000;
  for (int i = 0; i < kFew; ++i) append(i);
  for (int i = 0; i < kFew; ++i) match(i * 4999 % kFew);
  shallow_traffic(30000);
  EXPECT_LT(pool_bytes(), kMiB / 2);
}

TEST_P(Drained, KeepsItsMemoryWhenItFillsAgain) {
  std::uint64_t warm = 0;
  for (int round = 0; round < 4; ++round) {
    fill();
    drain();
    // A queue may use its memory in another way once it knows how it is searched.
    if (round == 1) warm = pool_bytes();
    if (round > 1) {
      EXPECT_EQ(pool_bytes(), warm);
    }
    shallow_traffic(100);
  }
}

// Receives that wait meanwhile keep their order, their handles and their contexts.
TEST_P(Drained, EntriesThatStayMoveAlong) {
  void* out;
  std::vector<tagline_handle> handles;
  const auto cookie = [](int number) { return reinterpret_cast<void*>(std::uintptr_t(number)); };
  for (int i = 0; i < 20; ++i) {
    const tagline_envelope wildcard = {i % 2 == 0 ? 1u : 2u, TAGLINE_ANY_SOURCE,
                                       kEntries + 10 + i % 3};
    ASSERT_EQ(
        tagline_post_receive(matcher_.get(), wildcard, cookie(i), &out, &handles.emplace_back()),
        TAGLINE_QUEUED);
    ASSERT_EQ(tagline_arrive(matcher_.get(), {3, i, 1}, cookie(100 + i), &out), TAGLINE_QUEUED);
  }
  fill();
  drain();
  const std::uint64_t held = pool_bytes();
  shallow_traffic(100000);
  EXPECT_LT(pool_bytes(), held / 8);

  tagline_statistics all;
  tagline_get_statistics(matcher_.get(), &all);
  EXPECT_EQ(all.posted.length, 20u);
  EXPECT_EQ(all.unexpected.length, 20u);
  EXPECT_GE(std::max(all.posted.high_water, all.unexpected.high_water), kEntries + 1u);
  EXPECT_EQ(tagline_cancel_handle(matcher_.get(), 1, handles[0]), TAGLINE_OK);
  EXPECT_EQ(tagline_cancel_handle(matcher_.get(), 2, handles[3]), TAGLINE_OK);
  for (int i = 0; i < 20; ++i) {
    if (i == 0 || i == 3) continue;
    const tagline_envelope message = {i % 2 == 0 ? 1u : 2u, 7, kEntries + 10 + i % 3};
    ASSERT_EQ(tagline_arrive(matcher_.get(), message, nullptr, &out), TAGLINE_MATCHED);
    EXPECT_EQ(out, cookie(i));
  }
  for (int i = 0; i < 20; ++i) {
    const tagline_envelope any = {3, TAGLINE_ANY_SOURCE, TAGLINE_ANY_TAG};
    ASSERT_EQ(tagline_post_receive(matcher_.get(), any, nullptr, &out, nullptr), TAGLINE_MATCHED);
    EXPECT_EQ(out, cookie(100 + i));
  }
}

// So do hundreds and thousands of receives that always wait.
TEST_P(Drained, ManyEntriesThatStayMoveAlong) {
  void* out;
  const auto cookie = [](int number) { return reinterpret_cast<void*>(std::uintptr_t(number)); };
  for (const int waiting : {300, 3000}) {
    for (int i = 0; i < waiting; ++i) {
      ASSERT_EQ(tagline_post_receive(matcher_.get(), {2, i % 100, 7}, cookie(i + 1), &out, nullptr),
                TAGLINE_QUEUED);
    }
    fill();
    drain();
    shallow_traffic(30000);
    EXPECT_LT(pool_bytes(), kMiB + 4096u * static_cast<unsigned>(waiting)) << waiting;
    for (int i = 0; i < waiting; ++i) {
      ASSERT_EQ(tagline_arrive(matcher_.get(), {2, i % 100, 7}, nullptr, &out), TAGLINE_MATCHED);
      ASSERT_EQ(out, cookie(i + 1));
    }
  }
}

// The sequence numbers that move and pause are counted by wrap within the test.
TEST(Memory, IsReturnedAcrossTheWrapOfHandles) {
  for (const char* queue : {"linear", "adaptive"}) {
    const tagline_options options = {queue, nullptr, 0, std::uint64_t(0) - 105000,
                                     0,     nullptr, 0, 0};
    const MatcherPointer matcher = make_matcher(options);
    void* out;
    for (int i = 0; i < 100000; ++i) {
      tagline_post_receive(matcher.get(), {1, 0, 5}, nullptr, &out, nullptr);
    }
    for (int i = 0; i < 100000; ++i) tagline_arrive(matcher.get(), {1, 0, 5}, nullptr, &out);
    tagline_statistics all;
    for (int i = 0; i < 30000; ++i) {
      tagline_post_receive(matcher.get(), {1, 0, 5}, nullptr, &out, nullptr);
      ASSERT_EQ(tagline_arrive(matcher.get(), {1, 0, 5}, nullptr, &out), TAGLINE_MATCHED);
    }
    tagline_get_statistics(matcher.get(), &all);
    EXPECT_EQ(all.posted.matches, 130000u);
    EXPECT_EQ(all.posted.length, 0u);
    EXPECT_LT(all.pool_bytes, std::uint64_t{1} << 20);
  }
}

TEST(Memory, WithALimitIsReturnedAndServesAgain) {
  const tagline_options options = {"linear", nullptr, 4 << 20, 0, 0, nullptr, 0, 0};
  const MatcherPointer matcher = make_matcher(options);
  void* out;
  for (int round = 0; round < 3; ++round) {
    int posted = 0;
    while (tagline_post_receive(matcher.get(), {1, 0, 5}, nullptr, &out, nullptr) ==
           TAGLINE_QUEUED) {
      ++posted;
    }
    EXPECT_GT(posted, 60000);
    for (int i = 0; i < posted; ++i) {
      ASSERT_EQ(tagline_arrive(matcher.get(), {1, 0, 5}, nullptr, &out), TAGLINE_MATCHED);
    }
    for (int i = 0; i < 20000 * round; ++i) {
      tagline_post_receive(matcher.get(), {1, 0, 5}, nullptr, &out, nullptr);
      ASSERT_EQ(tagline_arrive(matcher.get(), {1, 0, 5}, nullptr, &out), TAGLINE_MATCHED);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Every, Drained,
    testing::Values(Load{"source", TAGLINE_POSTED, true}, Load{"linear", TAGLINE_POSTED, true},
                    Load{"linear", TAGLINE_UNEXPECTED, true}, Load{"vector", TAGLINE_POSTED, true},
                    Load{"array:64", TAGLINE_POSTED, true}, Load{"fuzzy", TAGLINE_UNEXPECTED, true},
                    Load{"adaptive", TAGLINE_POSTED, false},
                    Load{"adaptive", TAGLINE_UNEXPECTED, false},
                    Load{"adaptive", TAGLINE_UNEXPECTED, true},
                    Load{"indexed", TAGLINE_POSTED, false},
                    Load{"indexed", TAGLINE_UNEXPECTED, false}),
    [](const auto& info) {
      std::string name = info.param.queue;
      name.erase(std::remove(name.begin(), name.end(), ':'), name.end());
      return name + (info.param.side == TAGLINE_POSTED ? "Posted" : "Unexpected") +
             (info.param.equal_keys ? "EqualKeys" : "");
    });

TEST(Memory, TellsWhatAllMatchersHold) {
  tagline_memory_use before;
  tagline_memory(&before);
  const MatcherPointer a = make_matcher({"linear", nullptr, 0, 0, 0, nullptr, 0, 0});
  const MatcherPointer b = make_matcher({"vector", nullptr, 0, 0, 0, nullptr, 0, 0});
  std::uint64_t held = 0;
  for (tagline_matcher* matcher : {a.get(), b.get()}) {
    void* out;
    for (int i = 0; i < 1000; ++i) tagline_arrive(matcher, {1, 0, i}, nullptr, &out);
    tagline_statistics all;
    tagline_get_statistics(matcher, &all);
    held += all.pool_bytes;
  }
  tagline_memory_use use;
  tagline_memory(&use);
  EXPECT_EQ(use.held_bytes, before.held_bytes + held);
  EXPECT_TRUE(std::string(use.allocator) == "jemalloc" || std::string(use.allocator) == "system");
  if (use.mapped_bytes != 0) {
    EXPECT_GE(use.mapped_bytes, use.held_bytes);
  }
  tagline_memory(nullptr);
}

}  // namespace
}  // namespace tagline::test
