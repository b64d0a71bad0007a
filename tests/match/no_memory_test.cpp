// SPDX-License-Identifier: BSD-3-Clause
// Memory that runs out at any point: in the pool, whose limit is swept, and in
// the system, whose allocations fail one after the other.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <new>

#include "match/structures.hpp"
#include "simd/kernels.hpp"
#include "tests/support/all_matchers.hpp"
#include "tests/support/counted_turns.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/players.hpp"

namespace {

// While armed, this many allocations succeed and the next one fails.
thread_local bool armed = false;
thread_local unsigned allocations_left = 0;
unsigned fault_period = 1;
unsigned fault_turn = 0;
unsigned faults = 0;

bool allocation_fails() {
  if (!armed || allocations_left-- > 0) return false;
  armed = false;
  ++faults;
  return true;
}

// Calls take turns: the first allocation fails in one, the second in the next.
void arm() {
  allocations_left = fault_turn++ % fault_period;
  armed = true;
}
void disarm() { armed = false; }

}  // namespace

// The library's C++ allocations end here, and so do the test's own. GCC sees only
// one of each pair where it inlines them.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t bytes) {
  void* block = allocation_fails() ? nullptr : std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocation_fails() ? nullptr : std::malloc(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t align) {
  const auto alignment = static_cast<std::size_t>(align);
  void* block =
      allocation_fails()
          ? nullptr
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new(std::size_t bytes, std::align_val_t align, const std::nothrow_t&) noexcept {
  const auto alignment = static_cast<std::size_t>(align);
  return allocation_fails()
             ? nullptr
             : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }

namespace tagline::test {
namespace {

class NoMemory : public testing::TestWithParam<std::string> {};

TEST_P(NoMemory, EveryPoolLimitWorksOrSaysSo) {
  for (std::size_t limit = 1; limit < 300000; limit += (64 + limit / 12) * 100 / effort(100)) {
    const bool unexpected = limit % 2 == 0;
    const Mix mix = {.seed = static_cast<std::uint32_t>(limit),
                     .operations = 1500,
                     .contexts = 2,
                     .sources = 20,
                     .tags = 20,
                     .wildcards = 0.05,
                     .posted_bias = unexpected ? 0.3 : 0.7,
                     .rare = 0.1};
    tagline_options options = {GetParam().c_str(), nullptr, limit, 0, 0, nullptr, 0, 0};
    ASSERT_EQ(first_difference(random_history(mix), options, mix.contexts), "")
        << GetParam() << " with pool_bytes " << limit;
  }
}

TEST_P(NoMemory, EveryFailingAllocationOfTheSystemIsSurvived) {
  const unsigned faults_before = faults;
  for (std::uint32_t seed = 1; seed <= static_cast<std::uint32_t>(effort(40)); ++seed) {
    fault_period = seed % 3 + 1;
    const Mix mix = {.seed = seed,
                     .operations = 1500,
                     .contexts = 6,
                     .sources = 20,
                     .tags = 20,
                     .wildcards = 0.05,
                     .posted_bias = seed % 2 == 0 ? 0.3 : 0.7,
                     .rare = 0.2};
    tagline_options options = {GetParam().c_str(), nullptr, 0, 0, 0, nullptr, 0, 0};
    ASSERT_EQ(first_difference(random_history(mix), options, mix.contexts, {arm, disarm}), "")
        << GetParam() << " with seed " << seed;
  }
  EXPECT_GT(faults, faults_before) << "no allocation was made to fail";
}

TEST_P(NoMemory, ContextThatCouldNotBeMadeIsNone) {
  const MatcherPointer matcher =
      make_matcher({GetParam().c_str(), nullptr, 0, 0, 0, nullptr, 0, 0});
  fault_period = std::numeric_limits<unsigned>::max();
  for (fault_turn = 0; fault_turn < 3;) {
    void* out = nullptr;
    tagline_handle handle = 0;
    arm();
    const tagline_status status =
        tagline_post_receive(matcher.get(), {7, 0, 0}, nullptr, &out, &handle);
    const bool failed = !armed;
    disarm();
    if (!failed) break;
    ASSERT_EQ(status, TAGLINE_NO_MEMORY);
    ASSERT_EQ(handle, 0u);
    int visited = 0;
    tagline_for_each(
        matcher.get(),
        [](void* user, tagline_side, tagline_envelope, void*) { ++*static_cast<int*>(user); },
        &visited);
    EXPECT_EQ(visited, 0);
    EXPECT_EQ(tagline_drop_context(matcher.get(), 7, nullptr, nullptr), 0u);
    EXPECT_EQ(tagline_cancel_receive(matcher.get(), {7, 0, 0}, nullptr), TAGLINE_NOT_FOUND);
  }
}

// Another thread would wait for it.
TEST(NoMemoryForAContext, EndsTheTurn) {
  QueueMatcher<LinearQueue, CountedTurns> matcher({}, *simd::available_kernels(0), 0, 0);
  fault_period = std::numeric_limits<unsigned>::max();
  void* out = nullptr;
  for (const bool posts : {false, true}) {
    for (fault_turn = 0; fault_turn < 2;) {
      matcher.turns() = {};
      arm();
      const tagline_status status = posts ? matcher.post_receive({7, 0, 0}, nullptr, &out, nullptr)
                                          : matcher.arrive({7, 0, 0}, nullptr, &out);
      disarm();
      ASSERT_EQ(status, TAGLINE_NO_MEMORY);
      EXPECT_EQ(matcher.turns().ended, 1);
    }
  }
}

TEST_P(NoMemory, MatcherItselfIsRefusedWithoutMemory) {
  tagline_options options = {GetParam().c_str(), nullptr, 0, 0, 0, nullptr, 0, 0};
  fault_period = std::numeric_limits<unsigned>::max();
  for (fault_turn = 0; fault_turn < 100;) {
    tagline_matcher* matcher = nullptr;
    arm();
    const tagline_status status = tagline_create(&options, &matcher);
    const bool failed = !armed;
    disarm();
    if (!failed) {
      ASSERT_EQ(status, TAGLINE_OK);
      tagline_destroy(matcher);
      return;
    }
    ASSERT_EQ(status, TAGLINE_NO_MEMORY);
    ASSERT_EQ(matcher, nullptr);
  }
  FAIL() << "a hundred allocations for an empty matcher";
}

std::string queue_name(const testing::TestParamInfo<std::string>& info) {
  return Variant{info.param, "any"}.name();
}
INSTANTIATE_TEST_SUITE_P(Every, NoMemory, testing::ValuesIn(all_queues()), queue_name);

}  // namespace
}  // namespace tagline::test
