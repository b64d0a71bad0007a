// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

#include "match/tagline.h"
#include "queues/memory_backend.hpp"

namespace tagline {

// What a matcher counts of one side, over all contexts: as few numbers per call as give
// every statistic, all in one line.
struct alignas(kCacheLine) SideCounts {
  explicit SideCounts(std::uint64_t first)
      : next_sequence(first), record_at(first + 1), unmatched(first) {}

  std::uint64_t length() const noexcept { return next_sequence - left(); }
  // An entry is gone.
  void note_gone(bool gone = true) noexcept { record_at += gone; }
  // After each append. As entries come one by one, no record is passed over.
  [[gnu::always_inline]] void note_length() noexcept {
    if (next_sequence == record_at) [[unlikely]] {
      ++high_water;
      ++record_at;
    }
  }

  tagline_side_statistics statistics() const noexcept {
    const std::uint64_t matches = left() - unmatched;
    return {length(), high_water,       matches + other_searches,
            matches,  matches + passed, std::max<std::uint64_t>(depth_max, matches > 0 ? 1 : 0),
            0};
  }

  // Most searches end at the first entry, and a match counts as one entry by itself.
  void count_search(std::uint64_t depth, bool matched) noexcept {
    if (depth == 1 && matched) [[likely]]
      return;
    count_any_search(depth, matched);
  }
  // The same without asking, where nobody could foresee the answer.
  void count_any_search(std::uint64_t depth, bool matched) noexcept {
    passed += depth - matched;
    if (!matched) ++other_searches;
    if (depth > depth_max) [[unlikely]]
      depth_max = depth;
  }

  // A search that found what stays where it is.
  void count_look() noexcept {
    ++other_searches;
    ++passed;
    depth_max = std::max<std::uint64_t>(depth_max, 1);
  }

  // Sequence number 0 names no entry, not even after the wrap.
  void skip_zero() noexcept { skip(1); }
  void skip(std::uint64_t numbers) noexcept {
    next_sequence += numbers;
    record_at += numbers;
    unmatched += numbers;
  }

  [[gnu::always_inline]] void advance(std::uint64_t sequence) noexcept {
    const std::uint64_t numbers = sequence - next_sequence;
    if (static_cast<std::int64_t>(numbers) <= 0) return;
    const bool passes_pause = pause_at - next_sequence <= numbers;
    skip(numbers);
    if (next_sequence == 0) skip_zero();
    // A pause that has been passed comes with the next append.
    if (passes_pause) pause_at = next_sequence + 1;
  }

  std::uint64_t next_sequence;  // of the entry appended next
  std::uint64_t pause_at = 0;   // the append that makes this, or 0, the next has more to do
  std::uint64_t record_at;      // the append that makes this makes the most entries there ever were
  std::uint64_t unmatched;      // of those gone, cancelled or dropped; counted as left()
  std::uint64_t high_water = 0;      // the most entries there ever were
  std::uint64_t other_searches = 0;  // that took nothing: probes and misses
  std::uint64_t passed = 0;          // entries looked at but for those that matched
  std::uint64_t depth_max = 0;       // of the searches that passed any

 private:
  // Entries that are gone, counted from the first sequence number.
  std::uint64_t left() const noexcept { return record_at - high_water - 1; }
};
static_assert(sizeof(SideCounts) == kCacheLine, "counting touches one line");

}  // namespace tagline
