// SPDX-License-Identifier: BSD-3-Clause
// The heater: what it touches, when it rests, and that memory given back is touched
// no more (under AddressSanitizer its touch is a load, which then is reported).
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/comparator.hpp"
#include "match/control_lines.hpp"
#include "match/operations.hpp"
#include "match/tagline.h"
#include "tests/support/all_matchers.hpp"
#include "tests/support/effort.hpp"

namespace {
std::atomic<bool> refuses_binding{false};
}

// In front of the system's, for the library's calls too.
extern "C" int pthread_setaffinity_np(pthread_t thread, std::size_t bytes,
                                      const cpu_set_t* set) noexcept {
  if (refuses_binding) return EPERM;
  using Bind = int (*)(pthread_t, std::size_t, const cpu_set_t*);
  static const auto bind = reinterpret_cast<Bind>(dlsym(RTLD_NEXT, "pthread_setaffinity_np"));
  return bind(thread, bytes, set);
}

namespace tagline::test {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kLine = 64;

struct DestroyHeater {
  void operator()(tagline_heater* heater) const { tagline_heater_destroy(heater); }
};
using HeaterPointer = std::unique_ptr<tagline_heater, DestroyHeater>;

tagline_heater_options busy_options() {
  tagline_heater_options options = TAGLINE_HEATER_OPTIONS_DEFAULT;
  options.sleep_ns = 1;
  options.always = 1;
  return options;
}

tagline_status try_heater(const tagline_heater_options& options) {
  tagline_heater* heater = nullptr;
  const tagline_status status = tagline_heater_create(&options, &heater);
  EXPECT_EQ(heater != nullptr, status == TAGLINE_OK);
  tagline_heater_destroy(heater);
  return status;
}

bool says(const char* words) {
  return std::string(tagline_error_message()).find(words) != std::string::npos;
}

tagline_heater_statistics statistics_of(const HeaterPointer& heater) {
  tagline_heater_statistics statistics;
  tagline_heater_get_statistics(heater.get(), &statistics);
  return statistics;
}

// The machine may be busy, but not for ever.
template <class Condition>
bool soon(Condition condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

// Two more passes have begun, so at least one has run from start to end.
bool a_pass_goes_by(const HeaterPointer& heater) {
  const auto before = statistics_of(heater).passes;
  return soon([&] { return statistics_of(heater).passes >= before + 2; });
}

// Tests with a heater want a machine on which there can be one.
class HotCache : public testing::Test {
 protected:
  void SetUp() override {
    heater_ = make(busy_options());
    if (heater_ == nullptr) GTEST_SKIP() << tagline_error_message();
  }
  static HeaterPointer make(const tagline_heater_options& options) {
    tagline_heater* heater = nullptr;
    const tagline_status status = tagline_heater_create(&options, &heater);
    EXPECT_TRUE(status == TAGLINE_OK || status == TAGLINE_UNAVAILABLE) << tagline_error_message();
    return HeaterPointer(heater);
  }
  HeaterPointer heater_;
};

TEST(HotCacheOptions, OutsideTheirDomainAreRefused) {
  tagline_heater_options options = TAGLINE_HEATER_OPTIONS_DEFAULT;
  options.sleep_ns = 1000000001;
  EXPECT_EQ(try_heater(options), TAGLINE_INVALID);
  EXPECT_TRUE(says("sleep_ns")) << tagline_error_message();
  options = TAGLINE_HEATER_OPTIONS_DEFAULT;
  options.idle_ns = UINT64_MAX;
  EXPECT_EQ(try_heater(options), TAGLINE_INVALID);
  EXPECT_EQ(tagline_heater_create(&options, nullptr), TAGLINE_INVALID);
  EXPECT_EQ(tagline_heater_register(nullptr, &options, 1), TAGLINE_INVALID);
  EXPECT_EQ(tagline_heater_attach(nullptr, nullptr), TAGLINE_INVALID);
}

TEST_F(HotCache, BadListOfUnitsIsRefused) {
  tagline_heater_options options = TAGLINE_HEATER_OPTIONS_DEFAULT;
  options.used_units = "one, two";
  EXPECT_EQ(try_heater(options), TAGLINE_INVALID);
  EXPECT_TRUE(says("used_units")) << tagline_error_message();
}

TEST(HotCacheUnit, NoneFreeMeansNoHeaterAndAReason) {
  tagline_heater_options options = TAGLINE_HEATER_OPTIONS_DEFAULT;
  options.used_units = "0-100000";
  EXPECT_EQ(try_heater(options), TAGLINE_UNAVAILABLE);
  EXPECT_TRUE(says("shares a cache") || says("without hwloc")) << tagline_error_message();
}

TEST(HotCacheUnit, OneThatDoesNotExistMeansNoHeaterAndAReason) {
  tagline_heater_options options = TAGLINE_HEATER_OPTIONS_DEFAULT;
  options.processing_unit = 100000;
  EXPECT_EQ(try_heater(options), TAGLINE_UNAVAILABLE);
  EXPECT_TRUE(says("100000") || says("without hwloc")) << tagline_error_message();
}

TEST_F(HotCache, NoPermissionToBindMeansNoHeaterAndAReason) {
  refuses_binding = true;
  EXPECT_EQ(try_heater(busy_options()), TAGLINE_UNAVAILABLE);
  refuses_binding = false;
  EXPECT_TRUE(says("does not let a thread be bound")) << tagline_error_message();
  EXPECT_EQ(try_heater(busy_options()), TAGLINE_OK) << tagline_error_message();
}

TEST_F(HotCache, RunsBesideTheThreadThatMatches) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t mine;
  CPU_ZERO(&mine);
  const int here = sched_getcpu();
  CPU_SET(static_cast<unsigned>(here), &mine);
  ASSERT_EQ(sched_setaffinity(0, sizeof mine, &mine), 0);
  const HeaterPointer beside = make(busy_options());
  tagline_heater_options named = busy_options();
  named.processing_unit = here;
  const tagline_status on_mine = try_heater(named);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(on_mine, TAGLINE_UNAVAILABLE);  // it would only be in the way
  ASSERT_NE(beside, nullptr) << tagline_error_message();
  EXPECT_NE(statistics_of(beside).processing_unit, here);
  EXPECT_GE(statistics_of(beside).shared_cache, 1);

  // The same one by its name.
  tagline_heater_options options = busy_options();
  options.processing_unit = statistics_of(beside).processing_unit;
  const HeaterPointer by_name = make(options);
  if (by_name != nullptr) {  // else this thread has moved there meanwhile
    EXPECT_EQ(statistics_of(by_name).processing_unit, options.processing_unit);
  }
}

TEST_F(HotCache, TouchesEveryLineOfARegionInEveryPass) {
  alignas(kLine) static std::byte memory[100 * kLine];
  // From within a line to within another: 100 lines.
  ASSERT_EQ(tagline_heater_register(heater_.get(), memory + 60, sizeof memory - 100), TAGLINE_OK);
  EXPECT_EQ(statistics_of(heater_).regions, 1u);
  EXPECT_EQ(statistics_of(heater_).region_lines, 100u);
  ASSERT_TRUE(a_pass_goes_by(heater_));
  // Counts are read while the heater counts: at rest they must agree.
  tagline_heater_pause(heater_.get());
  std::this_thread::sleep_for(milliseconds(20));
  const auto first = statistics_of(heater_);
  EXPECT_EQ(first.is_paused, 1);
  EXPECT_GE(first.lines_touched, 100u);
  tagline_heater_resume(heater_.get());
  ASSERT_TRUE(
      soon([&] { return statistics_of(heater_).lines_touched >= first.lines_touched + 300; }));
  EXPECT_EQ(tagline_heater_register(heater_.get(), memory + 60, 1), TAGLINE_INVALID);
  EXPECT_EQ(tagline_heater_deregister(heater_.get(), memory + 60), TAGLINE_OK);
  EXPECT_EQ(tagline_heater_deregister(heater_.get(), memory + 60), TAGLINE_NOT_FOUND);
  const auto gone = statistics_of(heater_).lines_touched;
  ASSERT_TRUE(a_pass_goes_by(heater_));
  EXPECT_LE(statistics_of(heater_).lines_touched, gone + 200);
  EXPECT_EQ(statistics_of(heater_).regions, 0u);
}

TEST_F(HotCache, RefusesRegionsOfNothing) {
  EXPECT_EQ(tagline_heater_register(heater_.get(), nullptr, 64), TAGLINE_INVALID);
  EXPECT_EQ(tagline_heater_register(heater_.get(), this, 0), TAGLINE_INVALID);
}

TEST_F(HotCache, KeepsToItsLimitOfLines) {
  alignas(kLine) static std::byte memory[100 * kLine];
  tagline_heater_options options = busy_options();
  options.max_lines = 7;
  const HeaterPointer heater = make(options);
  ASSERT_NE(heater, nullptr) << tagline_error_message();
  ASSERT_EQ(tagline_heater_register(heater.get(), memory, 5 * kLine), TAGLINE_OK);
  ASSERT_EQ(tagline_heater_register(heater.get(), memory + 5 * kLine, 50 * kLine), TAGLINE_OK);
  const auto before = statistics_of(heater);
  ASSERT_TRUE(soon([&] { return statistics_of(heater).passes >= before.passes + 10; }));
  const auto after = statistics_of(heater);
  // One pass may be counted by one number and not yet by the other.
  EXPECT_LE(after.lines_touched - before.lines_touched, (after.passes - before.passes + 1) * 7);
  EXPECT_GE(after.lines_touched - before.lines_touched, (after.passes - before.passes - 2) * 7);
}

TEST_F(HotCache, PausedItDoesNothingUntilResumed) {
  tagline_heater_pause(heater_.get());
  std::this_thread::sleep_for(milliseconds(20));
  const auto before = statistics_of(heater_).passes;
  tagline_heater_wake(heater_.get());  // ends only a pause of its own
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(statistics_of(heater_).passes, before);
  tagline_heater_resume(heater_.get());
  EXPECT_TRUE(a_pass_goes_by(heater_));
  EXPECT_EQ(statistics_of(heater_).is_paused, 0);
}

TEST_F(HotCache, PausesItselfWithoutCommunicationAndWakes) {
  tagline_heater_options options = busy_options();
  options.idle_ns = 2000000;
  const HeaterPointer heater = make(options);
  ASSERT_NE(heater, nullptr) << tagline_error_message();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(soon([&] { return statistics_of(heater).is_paused == 1; }));
    const auto before = statistics_of(heater).passes;
    std::this_thread::sleep_for(milliseconds(2));
    EXPECT_EQ(statistics_of(heater).passes, before);
    tagline_heater_wake(heater.get());
    ASSERT_TRUE(soon([&] { return statistics_of(heater).passes > before; }));
  }
}

TEST_F(HotCache, GoesOnAsLongAsThereIsCommunication) {
  tagline_heater_options options = busy_options();
  options.idle_ns = 400000000;
  const HeaterPointer heater = make(options);
  ASSERT_NE(heater, nullptr) << tagline_error_message();
  const auto end = std::chrono::steady_clock::now() + milliseconds(900);
  while (std::chrono::steady_clock::now() < end) {
    tagline_heater_wake(heater.get());
    std::this_thread::yield();
    ASSERT_EQ(statistics_of(heater).is_paused, 0);
  }
}

TEST_F(HotCache, NoRegionIsTouchedOnceItIsGone) {
  // Small and large ones, mapped and unmapped, while the heater is in full swing.
  std::mt19937 random(1);
  for (int i = 0; i < effort(10000); ++i) {
    const std::size_t lines = 1 + random() % 512;
    std::byte* const block = new std::byte[lines * kLine]();
    ASSERT_EQ(tagline_heater_register(heater_.get(), block, lines * kLine), TAGLINE_OK);
    if (i % 4 == 0) std::this_thread::yield();
    ASSERT_EQ(tagline_heater_deregister(heater_.get(), block), TAGLINE_OK);
    delete[] block;
  }
  for (int i = 0; i < effort(1000); ++i) {
    constexpr std::size_t kBytes = std::size_t{1} << 20;
    void* const block =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(block, MAP_FAILED);
    ASSERT_EQ(tagline_heater_register(heater_.get(), block, kBytes), TAGLINE_OK);
    if (i % 4 == 0) std::this_thread::yield();
    ASSERT_EQ(tagline_heater_deregister(heater_.get(), block), TAGLINE_OK);
    ASSERT_EQ(munmap(block, kBytes), 0);
  }
  EXPECT_EQ(statistics_of(heater_).regions, 0u);
}

// ---- Passes that would gain nothing ------------------------------------------------

TEST(ControlLines, AreLostOnceTheyComeFromMemory) {
#ifdef __x86_64__
  ControlLines control;
  control.use();
  for (std::size_t i = 0; i < ControlLines::kLines; ++i) {
    __builtin_ia32_clflush(control.begin() + i * ControlLines::kStride);
  }
  EXPECT_TRUE(control.are_lost());
#else
  GTEST_SKIP() << "nothing takes lines out of the caches here";
#endif
}

TEST(ControlLines, AreThereRightAfterTheyWereUsed) {
  ControlLines control;
  EXPECT_TRUE(soon([&] {
    control.use();
    return !control.are_lost();
  }));
}

TEST_F(HotCache, LeavesOutPassesWhileQueuesAreInUse) {
  tagline_heater_options options = busy_options();
  options.always = 0;
  const HeaterPointer heater = make(options);
  ASSERT_NE(heater, nullptr) << tagline_error_message();
  if (statistics_of(heater).shared_cache < 3) GTEST_SKIP() << "they share a cache further in";
  alignas(kLine) static std::byte memory[100 * kLine];
  ASSERT_EQ(tagline_heater_register(heater.get(), memory, sizeof memory), TAGLINE_OK);
  const auto before = statistics_of(heater);
  ASSERT_TRUE(soon([&] {
    tagline_heater_wake(heater.get());
    return statistics_of(heater).passes_left_out >= before.passes_left_out + 10;
  }));
  tagline_heater_pause(heater.get());
  std::this_thread::sleep_for(milliseconds(20));
  const auto after = statistics_of(heater);
  // What was not left out has touched all; one pass may have been under way at first, and the pause
  // may have cut one short.
  const auto passes =
      (after.passes - before.passes) - (after.passes_left_out - before.passes_left_out);
  EXPECT_LE(after.lines_touched - before.lines_touched, (passes + 1) * 100);
  EXPECT_GE(after.lines_touched - before.lines_touched + 100, passes * 100);
}

// ---- Code ------------------------------------------------------------------------

[[gnu::noinline]] const void* calling_function() {
  return _Unwind_FindEnclosingFunction(__builtin_return_address(0));
}

// Each of the six operations of every message notes where its code begins.
struct OperationsThatTell final : bench::Comparator {
  OperationsThatTell() : Comparator("") {}
  tagline_status here(std::size_t i, const void* code) noexcept {
    begins[i] = code;
    return TAGLINE_OK;
  }
  tagline_status post_receive(Envelope, void*, void**, tagline_handle*) noexcept override {
    return here(0, calling_function());
  }
  tagline_status arrive(Envelope, void*, void**) noexcept override {
    return here(1, calling_function());
  }
  tagline_status claim(Envelope, void**, Envelope*) noexcept override {
    return here(2, calling_function());
  }
  tagline_status append_receive(Envelope, void*, tagline_handle*) noexcept override {
    return here(3, calling_function());
  }
  tagline_status match_message(Envelope, void**) noexcept override {
    return here(4, calling_function());
  }
  tagline_status append_message(Envelope, void*) noexcept override {
    return here(5, calling_function());
  }
  tagline_statistics statistics() const noexcept override { return {}; }

  std::array<const void*, 6> begins{};
};

struct CodeObserver final : MemoryObserver {
  void in_use(const void*, std::size_t) noexcept override {}
  void out_of_use(const void*) noexcept override {}
  void code_in_use(const void* begin, std::size_t) noexcept override { begins.push_back(begin); }
  std::vector<const void*> begins;
};

TEST(HotCacheCode, IsThatOfTheSixOperations) {
  OperationsThatTell matcher;
  void* out = nullptr;
  tagline_post_receive(&matcher, {1, 0, 0}, nullptr, &out, nullptr);
  tagline_arrive(&matcher, {1, 0, 0}, nullptr, &out);
  tagline_claim(&matcher, {1, 0, 0}, &out, nullptr);
  tagline_append_receive(&matcher, {1, 0, 0}, nullptr, nullptr);
  tagline_match_message(&matcher, {1, 0, 0}, &out);
  tagline_append_message(&matcher, {1, 0, 0}, nullptr);
  CodeObserver observer;
  matcher.tell_of_code(observer);
  for (const void* const begin : matcher.begins) {
    ASSERT_NE(begin, nullptr);
    EXPECT_EQ(std::ranges::count(observer.begins, begin), 1);
  }
  EXPECT_EQ(observer.begins.size(), 7u);  // and the table
}

// ---- Matchers --------------------------------------------------------------------

class HeatedMatcher : public HotCache, public testing::WithParamInterface<std::string> {
 protected:
  MatcherPointer matcher() const {
    return make_matcher({GetParam().c_str(), nullptr, 0, 0, 0, nullptr, 0, 0});
  }
};

// Posts receives with tags of their own and matches them in random order, the newest
// `keep` not at all.
void churn(tagline_matcher* matcher, int entries, int keep, unsigned seed) {
  std::vector<int> tags(static_cast<std::size_t>(entries));
  for (int i = 0; i < entries; ++i) tags[static_cast<std::size_t>(i)] = i;
  void* out = nullptr;
  for (int& tag : tags) {
    ASSERT_EQ(tagline_post_receive(matcher, {3, 1, tag}, &tag, &out, nullptr), TAGLINE_QUEUED);
  }
  std::vector<int*> order;
  for (int i = 0; i < entries - keep; ++i) order.push_back(&tags[static_cast<std::size_t>(i)]);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  for (int* const tag : order) {
    ASSERT_EQ(tagline_arrive(matcher, {3, 1, *tag}, nullptr, &out), TAGLINE_MATCHED);
    ASSERT_EQ(out, tag);
  }
}

// Deep enough that no structure keeps the memory.
constexpr int kDeep = 20000;

std::size_t lines_of(tagline_matcher* matcher) {
  tagline_statistics statistics;
  tagline_get_statistics(matcher, &statistics);
  return statistics.pool_bytes / kLine;
}

TEST_P(HeatedMatcher, ItsMemoryIsARegionAsLongAsItIsItsOwn) {
  const MatcherPointer late = matcher();
  {
    const MatcherPointer empty = matcher();
    ASSERT_EQ(tagline_heater_attach(heater_.get(), empty.get()), TAGLINE_OK);
    const auto lines_of_empty = statistics_of(heater_).region_lines;
    churn(late.get(), 300, 200, 1);
    ASSERT_EQ(tagline_heater_attach(heater_.get(), late.get()), TAGLINE_OK);
    EXPECT_EQ(tagline_heater_attach(heater_.get(), late.get()), TAGLINE_INVALID);
    // The code is there already: this is what was queued before.
    EXPECT_GE(statistics_of(heater_).region_lines, lines_of_empty + 200 * sizeof(void*) / kLine);
  }
  // Of what the move left behind some may still wait to be given back.
  const auto lines_of_late = statistics_of(heater_).region_lines;

  MatcherPointer early = matcher();
  ASSERT_EQ(tagline_heater_attach(heater_.get(), early.get()), TAGLINE_OK);
  churn(early.get(), 3000, 1000, 2);
  EXPECT_GE(statistics_of(heater_).region_lines, lines_of_late + lines_of(early.get()));
  early.reset();
  EXPECT_EQ(statistics_of(heater_).region_lines, lines_of_late);

  // What was queued before is there, in order.
  void* out = nullptr;
  int left = 0;
  while (tagline_arrive(late.get(), {3, 1, 100 + left}, nullptr, &out) == TAGLINE_MATCHED) ++left;
  EXPECT_EQ(left, 200);
  ASSERT_EQ(tagline_heater_detach(heater_.get(), late.get()), TAGLINE_OK);
  EXPECT_EQ(tagline_heater_detach(heater_.get(), late.get()), TAGLINE_NOT_FOUND);
  EXPECT_EQ(statistics_of(heater_).regions, 0u);
  churn(late.get(), 100, 0, 3);
  EXPECT_EQ(statistics_of(heater_).regions, 0u);
  ASSERT_EQ(tagline_heater_attach(heater_.get(), late.get()), TAGLINE_OK);
}

TEST_P(HeatedMatcher, MatchesAndGivesMemoryBackWhileTheHeaterTouchesIt) {
  for (unsigned round = 0; round < 2; ++round) {
    const MatcherPointer one = matcher();
    ASSERT_EQ(tagline_heater_attach(heater_.get(), one.get()), TAGLINE_OK);
    churn(one.get(), 2000, 0, round);
    void* out = nullptr;
    for (int i = 0; i < kDeep; ++i) {
      ASSERT_EQ(tagline_post_receive(one.get(), {3, 1, i}, nullptr, &out, nullptr), TAGLINE_QUEUED);
    }
    const auto deep = statistics_of(heater_).region_lines;
    for (int i = 0; i < kDeep; ++i) {
      ASSERT_EQ(tagline_arrive(one.get(), {3, 1, i}, nullptr, &out), TAGLINE_MATCHED);
    }
    // Short for long enough to return what the long queue took.
    for (int i = 0; i < 10000; ++i) {
      ASSERT_EQ(tagline_post_receive(one.get(), {3, 1, 7}, nullptr, &out, nullptr), TAGLINE_QUEUED);
      ASSERT_EQ(tagline_arrive(one.get(), {3, 1, 7}, nullptr, &out), TAGLINE_MATCHED);
    }
    // A part of a matcher that nothing comes to keeps what it has.
    if (!is_threaded(GetParam()) || GetParam().starts_with("locked")) {
      EXPECT_LT(statistics_of(heater_).region_lines, deep / 2);
    }
  }
  EXPECT_EQ(statistics_of(heater_).regions, 0u);
}

TEST_P(HeatedMatcher, ItsCodeIsARegionAsLongAsAnyMatcherRunsIt) {
  const auto attached = [&] {
    MatcherPointer one = matcher();
    EXPECT_EQ(tagline_heater_attach(heater_.get(), one.get()), TAGLINE_OK);
    return one;
  };
  // Six calls, a table and six operations; where these run those of another matcher, its own.
  const bool runs_another = is_threaded(GetParam()) && !GetParam().starts_with("tail") &&
                            !GetParam().starts_with("binned");
  const auto code = runs_another ? 20u : 13u;
  MatcherPointer one = attached();
  const auto alone = statistics_of(heater_).regions;
  EXPECT_GE(alone, code);
  MatcherPointer other = attached();
  // The other has memory of its own; that it has brings no code again.
  const auto both = statistics_of(heater_).regions;
  EXPECT_LE(both, 2 * alone - code);
  one.reset();
  EXPECT_EQ(statistics_of(heater_).regions, alone);
  EXPECT_EQ(tagline_heater_detach(heater_.get(), other.get()), TAGLINE_OK);
  EXPECT_EQ(statistics_of(heater_).regions, 0u);
}

TEST_P(HeatedMatcher, OutlivesItsHeater) {
  const MatcherPointer one = matcher();
  ASSERT_EQ(tagline_heater_attach(heater_.get(), one.get()), TAGLINE_OK);
  churn(one.get(), 500, 100, 1);
  heater_.reset();
  tagline_drop_context(one.get(), 3, nullptr, nullptr);
  churn(one.get(), 5000, 100, 2);
}

std::string name_of_queue(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ':', '_');
  std::replace(name.begin(), name.end(), '@', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Every, HeatedMatcher, testing::ValuesIn(all_queues()), name_of_queue);
INSTANTIATE_TEST_SUITE_P(Threaded, HeatedMatcher, testing::ValuesIn(threaded_queues()),
                         name_of_queue);

TEST_F(HotCache, AttachingWithoutMemoryChangesNothing) {
  tagline_options options = {"linear", nullptr, 64 << 10, 0, 0, nullptr, 0, 0};
  const MatcherPointer one = make_matcher(options);
  churn(one.get(), 700, 700, 1);
  EXPECT_EQ(tagline_heater_attach(heater_.get(), one.get()), TAGLINE_NO_MEMORY);
  EXPECT_EQ(statistics_of(heater_).regions, 0u);
  void* out = nullptr;
  for (int tag = 0; tag < 700; ++tag) {
    ASSERT_EQ(tagline_arrive(one.get(), {3, 1, tag}, nullptr, &out), TAGLINE_MATCHED);
  }
}

TEST_F(HotCache, ServesMatchersOfSeveralThreads) {
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < effort(200); ++round) {
        tagline_matcher* one = nullptr;
        if (tagline_create(nullptr, &one) != TAGLINE_OK ||
            tagline_heater_attach(heater_.get(), one) != TAGLINE_OK) {
          ++failures;
        } else {
          churn(one, 200, 50, i);
        }
        tagline_destroy(one);
        if (round % 16 == 0) tagline_heater_pause(heater_.get());
        if (round % 16 == 8) tagline_heater_resume(heater_.get());
        tagline_heater_wake(heater_.get());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(statistics_of(heater_).regions, 0u);
}

}  // namespace
}  // namespace tagline::test
