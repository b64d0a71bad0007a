// SPDX-License-Identifier: BSD-3-Clause
#include "queues/window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace tagline {
namespace {

constexpr std::uint64_t kAll = kSourceMask | kTagMask;

MatchKey exact(std::int32_t source, std::int32_t tag) { return {key_bits(source, tag), kAll}; }
MatchKey any_source(std::int32_t tag) { return {key_bits(0, tag), kTagMask}; }
MatchKey any_tag(std::int32_t source) { return {key_bits(source, 0), kSourceMask | kTagSign}; }
constexpr MatchKey kAnything = {0, kTagSign};

// A window and the plain vector it should equal, on one instruction set.
class Twin {
 public:
  explicit Twin(unsigned isa = 0, std::size_t limit_bytes = 0)
      : resources(*simd::available_kernels(isa), limit_bytes, kCacheLine) {}

  bool append(const MatchKey& key) {
    if (window.full() && !window.grow()) return false;
    if (key.mask != kAll) window.note_wild();
    append_noted(key);
    return true;
  }
  void append_noted(const MatchKey& key) {
    window.append({packed(key), reinterpret_cast<void*>(next), next});
    expected.push_back({key, reinterpret_cast<void*>(next), next});
    ++next;
  }
  std::size_t expected_find(const MatchKey& key) const {
    const auto hit = std::find_if(expected.begin(), expected.end(), [&](const QueueEntry& entry) {
      return keys_meet(entry.key, key);
    });
    return static_cast<std::size_t>(hit - expected.begin());
  }
  // Finds what the vector finds and takes it out of both.
  void take(const MatchKey& key) {
    const std::size_t which = expected_find(key);
    const std::size_t position = window.find(key);
    ASSERT_EQ(position == Window::kNone, which == expected.size());
    if (position == Window::kNone) return;
    ASSERT_EQ(window.at(position).sequence, expected[which].sequence);
    ASSERT_EQ(window.at(position).cookie, expected[which].cookie);
    ASSERT_EQ(window.at(position).key, expected[which].key);
    const std::size_t next_one = window.find(key, position + 1);
    const auto next_expected =
        std::find_if(expected.begin() + static_cast<std::ptrdiff_t>(which) + 1, expected.end(),
                     [&](const QueueEntry& entry) { return keys_meet(entry.key, key); });
    ASSERT_EQ(next_one == Window::kNone, next_expected == expected.end());
    if (next_one != Window::kNone) {
      ASSERT_EQ(window.at(next_one).sequence, next_expected->sequence);
    }
    void* cookie = nullptr;
    std::uint64_t depth = 0;
    const auto count = [&](std::uint64_t entries, bool) { depth = entries; };
    if (window.take_near(key, &cookie, count) == Glance::taken) {
      EXPECT_EQ(cookie, expected[which].cookie);
      EXPECT_EQ(depth, which + 1);
    } else {
      window.erase(position);
    }
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(which));
  }
  void erase(std::size_t which) {
    const std::uint64_t sequence = expected[which].sequence;
    const std::size_t position =
        window.find_if([&](const QueueEntry& entry) { return entry.sequence == sequence; });
    EXPECT_NE(position, Window::kNone);
    if (position != Window::kNone) window.erase(position);
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(which));
    // More holes than entries would make searches walk over nothing.
    if (!window.is_one_group() && which != 0 && which != expected.size()) {
      EXPECT_LE(window.length(), 2 * expected.size() + 1);
    }
  }
  void expect_all() const {
    ASSERT_EQ(window.empty(), expected.empty());
    std::size_t i = 0;
    window.find_if([&](const QueueEntry& entry) {
      EXPECT_LT(i, expected.size());
      EXPECT_EQ(entry.sequence, expected[i].sequence);
      EXPECT_EQ(entry.key, expected[i].key);
      return ++i > expected.size();
    });
    ASSERT_EQ(i, expected.size());
    if (expected.empty()) return;
    EXPECT_EQ(window.at(window.head()).sequence, expected.front().sequence) << "the head is one";
    EXPECT_LE(window.tail() - window.head(), window.capacity());
  }

  QueueResources resources;
  Window::Slots slots;
  Window window{resources, slots};
  std::vector<QueueEntry> expected;
  std::uint64_t next = 1;
};

TEST(Window, EightEntriesNeedNoMemory) {
  Twin twin(0, 1);
  for (int tag = 0; tag < 8; ++tag) ASSERT_TRUE(twin.append(exact(0, tag)));
  EXPECT_FALSE(twin.append(exact(0, 8)));
  twin.expect_all();
  EXPECT_EQ(twin.resources.memory.used_bytes(), 0u);
}

TEST(Window, HolesMeetNoKey) {
  Twin twin;
  for (int tag = 0; tag < 8; ++tag) ASSERT_TRUE(twin.append(exact(0, tag)));
  for (const std::size_t which : {3u, 3u, 3u}) twin.erase(which);
  for (const MatchKey& key : {exact(0, 3), exact(0, 5), any_source(4), exact(INT32_MAX, -1),
                              exact(INT32_MAX, INT32_MAX), any_source(-1)}) {
    EXPECT_EQ(twin.window.find(key), Window::kNone);
  }
  twin.expect_all();
}

TEST(Window, AnyTagPassesNegativeTags) {
  Twin twin;
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(twin.append(exact(1, -1 - i)));
  ASSERT_TRUE(twin.append(exact(1, 7)));
  EXPECT_EQ(twin.window.find(any_tag(1)), 40u);
  EXPECT_EQ(twin.window.find(kAnything), 40u);
  EXPECT_EQ(twin.window.find(any_tag(2)), Window::kNone);
}

TEST(Window, FrontGoesAndTheHolesBehindItToo) {
  Twin twin;
  for (int tag = 0; tag < 8; ++tag) ASSERT_TRUE(twin.append(exact(0, tag)));
  twin.erase(1);
  twin.erase(1);
  twin.take(exact(0, 0));
  EXPECT_EQ(twin.window.head(), 3u);
  twin.expect_all();
}

TEST(Window, GlanceSeesTheEnds) {
  const auto glance = [](Twin& twin, int tag) {
    void* cookie = nullptr;
    return twin.window.take_near(exact(0, tag), &cookie, [](std::uint64_t, bool) {});
  };
  Twin twin;
  EXPECT_EQ(glance(twin, 0), Glance::none);
  for (int tag = 0; tag < 4; ++tag) ASSERT_TRUE(twin.append(exact(0, tag)));
  EXPECT_EQ(glance(twin, 2), Glance::unknown);
  EXPECT_EQ(glance(twin, 3), Glance::unknown) << "an entry between the ends might be older";
  EXPECT_EQ(glance(twin, 0), Glance::taken);
  EXPECT_EQ(glance(twin, 1), Glance::taken);
  EXPECT_EQ(glance(twin, 7), Glance::none);
  EXPECT_EQ(glance(twin, 3), Glance::taken) << "of two the newer one";
  EXPECT_EQ(glance(twin, 2), Glance::taken);
  EXPECT_TRUE(twin.window.empty());
}

TEST(Window, GlancesOnlyWhereTheLatestMatchesWereTheOldest) {
  Twin twin;
  for (int tag = 0; tag < 5; ++tag) ASSERT_TRUE(twin.append(exact(0, tag)));
  void* cookie = nullptr;
  twin.window.erase_in_group(twin.window.find(exact(0, 3)));  // closes no gap at an end
  EXPECT_EQ(twin.window.take_oldest(exact(0, 0), &cookie), Glance::unknown);
  for (int tag : {4, 0, 1, 2}) twin.window.erase_in_group(twin.window.find(exact(0, tag)));
  ASSERT_TRUE(twin.window.empty());
  // No gap is left, but whoever matched a later one may do so again, for some matches.
  int unknown = 0;
  for (int tag = 0; tag < 20; ++tag) {
    ASSERT_TRUE(twin.append(exact(0, tag)));
    const Glance seen = twin.window.take_oldest(exact(0, tag), &cookie);
    if (seen == Glance::taken) continue;
    ASSERT_EQ(seen, Glance::unknown);
    ++unknown;
    twin.window.erase_in_group(twin.window.find(exact(0, tag)));
  }
  EXPECT_GE(unknown, 4);
  EXPECT_LE(unknown, 12);
}

TEST(Window, FullWindowOfHolesIsClosedUpRatherThanGrown) {
  Twin twin;
  for (int tag = 0; tag < 8; ++tag) ASSERT_TRUE(twin.append(exact(0, tag)));
  for (const std::size_t which : {2u, 3u, 3u}) twin.erase(which);
  ASSERT_TRUE(twin.append(exact(0, 9)));
  EXPECT_EQ(twin.window.capacity(), 8u);
  twin.expect_all();
}

TEST(Window, GrowsWhereverTheRingBegins) {
  for (std::uint64_t start = 0; start < 8; ++start) {
    Twin twin;
    for (std::uint64_t i = 0; i < start; ++i) {
      ASSERT_TRUE(twin.append(exact(0, 0)));
      ASSERT_NO_FATAL_FAILURE(twin.take(exact(0, 0)));
    }
    for (int tag = 0; tag < 30; ++tag) {
      ASSERT_TRUE(twin.append(tag % 3 == 0 ? any_source(tag) : exact(tag, tag)));
      ASSERT_NO_FATAL_FAILURE(twin.expect_all());
    }
  }
}

// There the block is larger than the ring: what came last moves behind the rest.
TEST(Window, LargeOneGrowsInItsBlockWhereverTheRingBegins) {
  constexpr std::ptrdiff_t kSlots = 32768;
  for (const std::ptrdiff_t start : {0, 1, 63, 64, 100, 16384, 32766, 32767}) {
    Twin twin;
    const auto append = [&](std::ptrdiff_t entries) {
      for (std::ptrdiff_t i = 0; i < entries; ++i) {
        ASSERT_TRUE(twin.append(exact(1, static_cast<std::int32_t>(twin.next))));
      }
    };
    ASSERT_NO_FATAL_FAILURE(append(kSlots));
    for (std::ptrdiff_t i = 0; i < start; ++i) twin.window.erase(twin.window.head());
    twin.expected.erase(twin.expected.begin(), twin.expected.begin() + start);
    ASSERT_NO_FATAL_FAILURE(append(start));
    std::vector<std::int32_t> gone;
    for (const std::size_t which : {32760u, 32700u, 18000u, 16384u, 16383u, 130u, 64u, 63u, 1u}) {
      gone.push_back(key_tag(twin.expected[which].key));
      ASSERT_NO_FATAL_FAILURE(twin.erase(which));
    }
    const std::size_t used = twin.resources.memory.used_bytes();
    ASSERT_TRUE(twin.window.full());
    ASSERT_NO_FATAL_FAILURE(append(kSlots - 1));
    EXPECT_EQ(twin.window.capacity(), 2u * kSlots);
    EXPECT_EQ(twin.resources.memory.used_bytes(), 2 * used) << "what is used counts";
    ASSERT_NO_FATAL_FAILURE(twin.expect_all());
    for (const std::int32_t tag : gone) EXPECT_EQ(twin.window.find(exact(1, tag)), Window::kNone);
    for (const std::size_t which : {30000u, 20000u, 10000u, 5u}) {
      ASSERT_NO_FATAL_FAILURE(twin.take(twin.expected[which].key));
    }
    ASSERT_NO_FATAL_FAILURE(twin.expect_all());
  }
}

// What an observer has been told is in use.
class Regions final : public MemoryObserver {
 public:
  void in_use(const void* block, std::size_t bytes) noexcept override { bytes_[block] = bytes; }
  void code_in_use(const void*, std::size_t) noexcept override {}
  void out_of_use(const void* block) noexcept override { bytes_.erase(block); }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& [block, bytes] : bytes_) sum += bytes;
    return sum;
  }

 private:
  std::map<const void*, std::size_t> bytes_;
};

TEST(Window, LargeOneTellsAndCountsWhatItUses) {
  QueueResources resources(*simd::available_kernels(0), 0, kCacheLine);
  Regions regions;
  resources.memory.set_observer(&regions);
  {
    Window::Slots slots;
    Window window(resources, slots);
    for (std::uint64_t i = 1; i <= 200000; ++i) {
      ASSERT_TRUE(!window.full() || window.grow());
      window.append({packed(exact(0, 0)), nullptr, i});
      const std::size_t used = resources.memory.used_bytes();
      ASSERT_LE(used, std::max<std::size_t>(16, i) * 50);
      ASSERT_LE(regions.bytes(), used);
      ASSERT_GE(regions.bytes(), used / 66 * 65);
    }
  }
  EXPECT_EQ(regions.bytes(), 0u);
  EXPECT_EQ(resources.memory.used_bytes(), 0u);
}

TEST(Window, LargeOneGrowsAsFarAsTheMemoryGoes) {
  for (const std::size_t slots : {16384u, 32768u, 65536u}) {
    Twin twin(0, slots * 37);
    std::size_t entries = 0;
    while (entries < 2 * slots && twin.append(exact(1, static_cast<std::int32_t>(entries)))) {
      ++entries;
    }
    EXPECT_EQ(entries, slots);
    ASSERT_NO_FATAL_FAILURE(twin.expect_all());
  }
}

TEST(Window, ThatWasLongIsShortAgainAndGrowsAgain) {
  for (const std::size_t left : {0u, 1u, 3u}) {
    Twin twin;
    std::size_t used = 0;
    for (int round = 0; round < 3; ++round) {
      for (int tag = 0; tag < 300; ++tag) ASSERT_TRUE(twin.append(exact(0, tag)));
      if (round > 0) {
        EXPECT_EQ(twin.resources.memory.used_bytes(), used) << "it had room for them";
      }
      used = twin.resources.memory.used_bytes();
      // Every second one first: holes everywhere.
      for (std::size_t which = 298; which > 8; which -= 2) twin.erase(which);
      while (twin.expected.size() > left) twin.erase(twin.expected.size() / 2);
      ASSERT_TRUE(twin.window.is_mostly_past());
      twin.window.shrink();
      EXPECT_EQ(twin.window.capacity(), 8u);
      ASSERT_NO_FATAL_FAILURE(twin.expect_all());
      for (int tag = 0; tag < 300; ++tag) {
        ASSERT_NO_FATAL_FAILURE(twin.take(exact(0, tag)));
      }
      // Holes of a short ring while it grows.
      for (int tag = 0; tag < 70; ++tag) {
        ASSERT_TRUE(twin.append(exact(1, tag)));
        if (tag % 16 == 5) {
          twin.erase(twin.expected.size() / 2);
        }
        ASSERT_NO_FATAL_FAILURE(twin.expect_all());
      }
    }
  }
}

TEST(Window, ThatHasShrunkHasRoom) {
  for (const std::size_t left : {8u, 7u}) {
    Twin twin;
    for (int tag = 0; tag < 300; ++tag) ASSERT_TRUE(twin.append(exact(0, tag)));
    while (twin.expected.size() > left) twin.erase(0);
    ASSERT_EQ(twin.window.is_mostly_past(), left < 8);
    if (twin.window.is_mostly_past()) twin.window.shrink();
    EXPECT_FALSE(twin.window.full());
    ASSERT_NO_FATAL_FAILURE(twin.expect_all());
  }
}

// More than one group marks its holes by other bits than one group does.
TEST(Window, OneGroupWithHolesGrowsInItsBlockWhereverTheRingBegins) {
  for (const std::size_t start : {0u, 1u, 5u, 31u, 40u, 63u}) {
    for (const std::size_t hole : {1u, 7u, 30u, 62u}) {
      Twin twin;
      const auto append = [&](std::size_t entries) {
        for (std::size_t i = 0; i < entries; ++i) {
          ASSERT_TRUE(twin.append(exact(1, static_cast<std::int32_t>(twin.next))));
        }
      };
      ASSERT_NO_FATAL_FAILURE(append(300));
      while (!twin.expected.empty()) ASSERT_NO_FATAL_FAILURE(twin.erase(0));
      twin.window.shrink();
      ASSERT_NO_FATAL_FAILURE(append(64));
      for (std::size_t i = 0; i < start; ++i) ASSERT_NO_FATAL_FAILURE(twin.erase(0));
      ASSERT_NO_FATAL_FAILURE(append(start));
      ASSERT_EQ(twin.window.capacity(), 64u);
      const MatchKey gone[] = {twin.expected[hole].key, twin.expected[20].key};
      ASSERT_NO_FATAL_FAILURE(twin.erase(hole));
      ASSERT_NO_FATAL_FAILURE(twin.erase(20 - (hole < 20)));
      const std::size_t used = twin.resources.memory.used_bytes();
      ASSERT_NO_FATAL_FAILURE(append(30));
      EXPECT_EQ(twin.window.capacity(), 128u);
      EXPECT_EQ(twin.resources.memory.used_bytes(), used) << "it had room for them";
      ASSERT_NO_FATAL_FAILURE(twin.expect_all());
      for (const MatchKey& key : gone) EXPECT_EQ(twin.window.find(key), Window::kNone);
      for (const std::size_t which : {80u, 50u, 20u, 5u}) {
        ASSERT_NO_FATAL_FAILURE(twin.take(twin.expected[which].key));
      }
      ASSERT_NO_FATAL_FAILURE(twin.expect_all());
    }
  }
}

// To close up a window for one hole costs as much for each entry as to grow it costs once.
TEST(Window, ThatWasLongGrowsRatherThanBeClosedUpForEachEntry) {
  for (const std::size_t steady : {7u, 8u, 15u, 31u, 32u, 33u, 63u, 64u}) {
    Twin twin;
    for (int tag = 0; tag < 300; ++tag) ASSERT_TRUE(twin.append(exact(0, tag)));
    while (!twin.expected.empty()) twin.erase(0);
    twin.window.shrink();
    std::mt19937 random(1);
    std::size_t closed_up = 0;
    for (int call = 0; call < 2000; ++call) {
      if (twin.expected.size() == steady) twin.erase(random() % steady);
      const bool was_full = twin.window.full();
      const std::size_t capacity = twin.window.capacity();
      ASSERT_TRUE(twin.append(exact(0, call)));
      closed_up += was_full && twin.window.capacity() == capacity;
    }
    EXPECT_LT(closed_up, 2000u / steady * 8) << steady;
    ASSERT_NO_FATAL_FAILURE(twin.expect_all());
  }
}

// Its owner keeps the newest entry for itself, until another one comes.
TEST(Window, ANotedWildcardMayComeAfterTheWindowHasGrownOrShrunk) {
  for (const std::size_t left : {0u, 1u, 3u}) {
    for (const bool shrinks : {false, true}) {
      Twin twin;
      for (int tag = 0; tag < 300; ++tag) ASSERT_TRUE(twin.append(exact(0, tag)));
      while (twin.expected.size() > left + 4) twin.erase(twin.expected.size() / 2);
      EXPECT_FALSE(twin.window.holds_wild());
      twin.window.note_wild();
      while (twin.expected.size() > left) twin.erase(twin.expected.size() - 1);
      if (shrinks) twin.window.shrink();
      ASSERT_TRUE(twin.window.grow());
      twin.append_noted(any_source(7));
      EXPECT_TRUE(twin.window.holds_wild());
      ASSERT_NO_FATAL_FAILURE(twin.take(exact(5, 7)));
      ASSERT_NO_FATAL_FAILURE(twin.expect_all());
    }
  }
}

TEST(Window, FollowsAVectorThroughRandomCalls) {
  for (unsigned isa = 0; simd::available_kernels(isa) != nullptr; ++isa) {
    for (std::uint32_t seed = 1; seed <= 12; ++seed) {
      std::mt19937 random(seed);
      const auto below = [&](int bound) { return static_cast<int>(random() % unsigned(bound)); };
      // Few keys and many; with little memory now and then.
      const int keys = seed % 3 == 0 ? 3 : 60;
      Twin twin(isa, seed % 4 == 0 ? 4096 : 0);
      bool without_wildcards = false;
      const auto any_key = [&]() -> MatchKey {
        const int tag = below(keys) - keys / 5;
        const int kind = without_wildcards ? 3 : below(12);
        return kind == 0   ? any_source(tag)
               : kind == 1 ? any_tag(below(3))
               : kind == 2 ? kAnything
                           : exact(below(3), tag);
      };
      for (int call = 0; call < 4000; ++call) {
        without_wildcards = call / 150 % 3 != 0;  // till the last ones have left
        constexpr int kAppends[] = {60, 45, 10};
        if (below(100) < kAppends[call / 700 % 3]) {
          twin.append(any_key());
        } else if (!twin.expected.empty() && below(4) == 0) {
          const std::size_t size = twin.expected.size();
          const std::size_t which[] = {0, size - 1, size / 2, random() % size};
          ASSERT_NO_FATAL_FAILURE(twin.erase(which[below(4)]));
        } else {
          ASSERT_NO_FATAL_FAILURE(twin.take(exact(below(3), below(keys) - keys / 5)));
        }
        if (twin.window.is_mostly_past()) twin.window.shrink();
        if (call % 7 == 0) {
          ASSERT_NO_FATAL_FAILURE(twin.expect_all());
        }
      }
    }
  }
}

TEST(Window, GivesItsMemoryBack) {
  QueueResources resources(*simd::available_kernels(0), 0, kCacheLine);
  {
    Window::Slots slots;
    Window window(resources, slots);
    for (std::uint64_t i = 1; i < 1000; ++i) {
      ASSERT_TRUE(!window.full() || window.grow());
      window.append({packed(exact(0, 0)), nullptr, i});
    }
    EXPECT_GT(resources.memory.used_bytes(), 0u);
  }
  EXPECT_EQ(resources.memory.used_bytes(), 0u);
}

}  // namespace
}  // namespace tagline
