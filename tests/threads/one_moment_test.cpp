// SPDX-License-Identifier: BSD-3-Clause
// Calls that concern the whole matcher take effect at one moment, as seen from other threads.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "match/tagline.h"

namespace {

struct Destroy {
  void operator()(tagline_matcher* matcher) const { tagline_destroy(matcher); }
};
using Matcher = std::unique_ptr<tagline_matcher, Destroy>;

Matcher make(const char* queue) {
  tagline_options options = TAGLINE_OPTIONS_DEFAULT;
  options.queue = queue;
  options.threads = 1;
  tagline_matcher* matcher = nullptr;
  EXPECT_EQ(tagline_create(&options, &matcher), TAGLINE_OK) << tagline_error_message();
  return Matcher(matcher);
}

class OneMoment : public testing::TestWithParam<const char*> {
 protected:
  // here() and there() at once, in two threads, so many times; begin() before, end() behind each.
  // Now one is a little earlier, now the other.
  template <class Begin, class Here, class There, class End>
  void race(int times, Begin begin, Here here, There there, End end) {
    std::atomic<int> turn{0};
    std::atomic<int> done{0};
    std::thread other([&] {
      for (int i = 1; i <= times; ++i) {
        while (turn.load() < i) std::this_thread::yield();
        pause(i % 89);
        there();
        done.store(i);
      }
    });
    for (int i = 1; i <= times; ++i) {
      begin();
      turn.store(i);
      pause(i % 97);
      here();
      while (done.load() < i) std::this_thread::yield();
      end();
    }
    other.join();
  }

 private:
  static void pause(int turns) {
    for (std::atomic<int> left = turns; left > 0; --left) {
    }
  }
};

// A message that comes before its receive is dropped matches it, one that comes later stays.
TEST_P(OneMoment, DropsBothQueuesOfAContext) {
  const Matcher matcher = make(GetParam());
  constexpr tagline_envelope kEnvelope = {7, 1, 2};
  void* receive = nullptr;
  void* message = nullptr;
  tagline_status arrived = TAGLINE_OK;
  std::size_t dropped = 0;
  race(
      20000,
      [&] {
        ASSERT_EQ(tagline_post_receive(matcher.get(), kEnvelope, &receive, &message, nullptr),
                  TAGLINE_QUEUED);
      },
      [&] { dropped = tagline_drop_context(matcher.get(), 7, nullptr, nullptr); },
      [&] { arrived = tagline_arrive(matcher.get(), kEnvelope, &message, &receive); },
      [&] {
        ASSERT_EQ(dropped, arrived == TAGLINE_MATCHED ? 0 : 1);
        const std::size_t left = tagline_drop_context(matcher.get(), 7, nullptr, nullptr);
        ASSERT_EQ(left, arrived == TAGLINE_MATCHED ? 0 : 1);
      });
}

TEST_P(OneMoment, AttachesOneHeater) {
  const Matcher matcher = make(GetParam());
  tagline_heater* heater = nullptr;
  tagline_heater_options options = TAGLINE_HEATER_OPTIONS_DEFAULT;
  if (tagline_heater_create(&options, &heater) != TAGLINE_OK) {
    GTEST_SKIP() << tagline_error_message();
  }
  tagline_status here = TAGLINE_OK;
  tagline_status there = TAGLINE_OK;
  race(
      500, [] {}, [&] { here = tagline_heater_attach(heater, matcher.get()); },
      [&] { there = tagline_heater_attach(heater, matcher.get()); },
      [&] {
        EXPECT_NE(here == TAGLINE_OK, there == TAGLINE_OK);
        EXPECT_EQ(tagline_heater_detach(heater, matcher.get()), TAGLINE_OK);
      });
  tagline_heater_destroy(heater);
}

INSTANTIATE_TEST_SUITE_P(Every, OneMoment,
                         testing::Values("sharded:adaptive", "sharded@64:linear", "tail:linear",
                                         "binned:linear", "locked:linear"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == ':' || c == '@' ? '_' : c;
                           return name;
                         });

}  // namespace
