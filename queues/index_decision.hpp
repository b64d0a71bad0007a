// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "queues/match_key.hpp"

namespace tagline {

// When a queue that compares its entries would do better with an index, by what its searches
// cost; see queues/window_and_index.hpp. Entries are told by their sequence numbers.
//
// - Searches have passed so many entries in vain that indexing them would have cost no more.
// - Matches of a short queue come in random order: a third or more of what came had to be
//   searched for by comparing all.
// - Not where wildcards have been seen of late, which cost an index more: the oftener it has been
//   given up for them, the longer they must stay away.
class IndexDecision {
 public:
  void note_search(const MatchKey& key) noexcept {
    wild_search_ |= key.mask != (kSourceMask | kTagMask);
  }
  void note_wild() noexcept { wild_search_ = true; }
  // Searches with wildcards have not been seen for so long that an index may be worth it again.
  bool is_calm(std::uint64_t newest) noexcept {
    if (std::exchange(wild_search_, false)) calm_since_ = newest;
    // The newest of then may have left, and all that came later.
    return calm_since_ == 0 || !is_older(newest, calm_since_ + wariness_ * kCalm);
  }
  void be_less_wary() noexcept { wariness_ = std::max(1u, wariness_ / 4); }
  // An index has been given up for wildcards.
  void be_warier(std::uint64_t newest) noexcept {
    calm_since_ = newest;
    wariness_ = std::min(4 * wariness_, kMostWary);
  }

  // Counts what a search has passed in vain of so many entries. The count begins anew when all that
  // were there when it began have gone. indexed_before: an index was of use.
  bool is_too_much(std::size_t passed, std::uint64_t oldest, std::uint64_t newest,
                   std::size_t length, bool indexed_before) noexcept {
    if (is_older(newest_counted_, oldest)) {
      newest_counted_ = newest;
      begin_anew();
      if (is_calm(newest)) be_less_wary();
    }
    passed_ += passed;
    most_passed_ = std::max(most_passed_, most_in_vain(length, indexed_before));
    return passed_ > most_passed_;
  }
  void begin_anew() noexcept { passed_ = most_passed_ = 0; }

  // A match was found by comparing all. True now and then: is_at_random() is worth asking.
  // is_exact(): no entry has had a wildcard of late, or none that an index would mind.
  bool note_compared() noexcept { return --until_asked_ == 0; }
  template <class IsExact>
  bool is_at_random(std::uint64_t newest, IsExact is_exact) noexcept {
    const std::uint64_t asked_at = std::exchange(asked_at_, newest);
    const auto came = static_cast<std::int64_t>(newest - asked_at);  // the newest may have gone
    const bool are_many = asked_at != 0 && came <= std::int64_t{3} * asked_every_;
    const bool at_random = are_many && is_exact() && is_calm(newest);
    asked_every_ = until_asked_ = are_many && !at_random ? kAskedOfWild : kAsked;
    return at_random;
  }

 private:
  static constexpr std::size_t kPatience =
      16;  // an entry costs as much to index as so many to pass
  static constexpr std::size_t kMostPatience = 2048;
  static constexpr std::size_t kShort = 48;   // entries that are compared faster than indexed once
  static constexpr std::uint64_t kCalm = 64;  // entries that come without a search with wildcards
  static constexpr unsigned kMostWary = 1024;
  static constexpr unsigned kAsked = 64;          // matches
  static constexpr unsigned kAskedOfWild = 1024;  // where only wildcards said no

  // Entries that searches may pass in vain before the others are indexed: as long
  // as that is cheaper, and not for long in any case, because entries that have
  // left the cache cost more to pass. Where an index was of use before, sooner.
  std::size_t most_in_vain(std::size_t length, bool indexed_before) const noexcept {
    if (indexed_before && length > kShort) return wariness_ * length;
    return wariness_ * std::min(kPatience * length, kMostPatience);
  }

  unsigned until_asked_ = kAsked;
  unsigned asked_every_ = kAsked;
  std::uint64_t asked_at_ = 0;
  bool wild_search_ = false;      // one with a wildcard, since is_calm() was last asked
  unsigned wariness_ = 1;         // how much more an index has to be worth: wildcards made it toil
  std::uint64_t calm_since_ = 0;  // there was none since; 0: never
  std::size_t passed_ = 0;        // see is_too_much()
  std::size_t most_passed_ = 0;
  std::uint64_t newest_counted_ = 0;
};

}  // namespace tagline
