// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "match/envelope.hpp"
#include "match/shard.hpp"

namespace tagline {

// When a sharded matcher should have other shards than it has:
//
//   more              when threads with keys of their own take turns at one of them
//   one               when wildcards keep the gate shut
//   by a part of key  when that spares the wildcards the gate
//
// It watches and advises; Shards acts.
class ShardPolicy {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::size_t kMostShards = 1024;

  // ---- With the shard's lock -------------------------------------------------------

  // Whether threads with keys of their own take turns at a shard so fast that they pay for
  // little but its lines, which go from core to core. Handovers tell that; waiting for the lock
  // alone does not: mostly a thread waits for the line of the lock, and then finds it free.
  template <class Shard>
  [[gnu::always_inline]] bool is_crowded(Shard& shard, MatchEnvelope envelope,
                                         bool lock_was_free) noexcept {
    return hands_over(shard, envelope) && note_handover(shard, envelope, lock_was_free);
  }

  // The same in two steps: whether another thread comes with another key than the last one, and
  // then, apart, because threads that share a key never come there, whether that is too often.
  template <class Shard>
  [[gnu::always_inline]] static bool hands_over(Shard& shard, MatchEnvelope envelope) noexcept {
    const std::uintptr_t thread = this_thread();
    const std::uint64_t key = key_bits(envelope.source, envelope.tag);
    const bool other = shard.thread != thread && shard.key != key;
    shard.thread = thread;
    shard.key = key;
    return other;
  }

  template <class Shard>
  [[gnu::noinline]] bool note_handover(Shard& shard, MatchEnvelope envelope,
                                       bool lock_was_free) noexcept {
    const std::uint16_t weight = lock_was_free ? kHandover : kWait;
    shard.handovers += weight;
    shard.open_parts.note(envelope, weight);
    // relaxed: a guess about the future, whoever changed it.
    return shard.handovers >= patience_.load(std::memory_order_relaxed) && are_too_soon(shard);
  }

  // ---- With the gate lock ----------------------------------------------------------

  // More shards were of no use, or were not to be had: not soon again. relaxed: a number that
  // others may see late; who changes it holds the gate lock.
  void lose_patience() noexcept {
    patience_.store(std::min(kMostPatience, 64 * patience_.load(std::memory_order_relaxed)),
                    std::memory_order_relaxed);
  }

  // How many in place of that many, with so many entries in all queues. At first as many as
  // there are keys, as far as one can tell. More than kMostShards: as many as it gets already.
  static std::size_t more_than(std::size_t count, std::size_t entries) noexcept {
    if (count > 1) return 4 * count;
    return std::clamp(std::bit_ceil(entries), kFirstShards, kMostShards);
  }

  void note_closing() noexcept { calls_ = 0; }
  void note_call_in_closing() noexcept { ++calls_; }
  // Of a call that has looked into all shards.
  void note_search(MatchEnvelope envelope, Clock::time_point since) noexcept {
    ++searches_;
    lost_ += Clock::now() - since;
    open_parts_.note(envelope, 1);
  }

  bool is_due() const noexcept {
    return searches_ >= kSearches || calls_ >= kTooLong ||
           (lost_ >= kMuchLost && searches_ >= kFewSearches);
  }

  // By what to split a crowded shard.
  Split split() const noexcept {
    // relaxed: a guess, of the last shard that was found crowded.
    return split_.load(std::memory_order_relaxed);
  }

  // Since the last review.
  struct Review {
    bool is_shut_mostly;  // shards as they are chosen now are of no use
    Split split;          // better ones
  };
  Review review() noexcept {
    const Clock::time_point now = Clock::now();
    const bool too_often = kMostLost * lost_ > now - since_;
    const Review review{.is_shut_mostly = too_often || calls_ >= kTooLong,
                        .split = open_parts_.split()};
    const Clock::duration in_vain = review.is_shut_mostly ? lost_in_vain_ + lost_ : lost_in_vain_;
    begin(now);
    lost_in_vain_ = in_vain;
    return review;
  }
  // How many entries are worth moving to other shards: as many as searches have cost already.
  std::size_t worth_moving() const noexcept {
    return std::max(kMostMoved, static_cast<std::size_t>(lost_in_vain_ / kMove));
  }
  // Entries have been moved, or could not be.
  void begin(Clock::time_point now = Clock::now()) noexcept {
    searches_ = calls_ = 0;
    open_parts_ = {};
    lost_ = lost_in_vain_ = {};
    since_ = now;
  }

 private:
  static constexpr std::size_t kFirstShards = 64;  // at least, in place of one

  // A shard is crowded when it has been handed over kPatience times, kTooSoon apart on average or
  // less. After a change that was of no use it takes more, up to kMostPatience.
  static constexpr std::uint16_t kHandover = 1;
  static constexpr std::uint16_t kWait = 8;  // counts as so many: one that was waited for
  static constexpr std::uint32_t kPatience = 1024;
  static constexpr std::uint32_t kMostPatience = 1u << 20;
  static constexpr std::chrono::microseconds kTooSoon{2};
  // Shards are split by key all the same if of so many handovers at most one was a wildcard's.
  static constexpr std::uint32_t kRareWildcards = 512;

  // What a review waits for: so many searches of all shards; few, if they took long together;
  // or one closing that lasts for so many calls.
  static constexpr unsigned kSearches = 256;
  static constexpr unsigned kFewSearches = 16;
  static constexpr std::chrono::milliseconds kMuchLost{1};
  static constexpr unsigned kTooLong = 4096;

  // Shards are of no use if searches of all take more than one part in so many of the time.
  static constexpr unsigned kMostLost = 8;

  static constexpr std::size_t kMostMoved = 1u << 16;    // entries, for the first time
  static constexpr std::chrono::nanoseconds kMove{200};  // of one entry, into cold caches

  template <class Shard>
  [[gnu::noinline, gnu::cold]] bool are_too_soon(Shard& shard) noexcept {
    const Clock::time_point now = Clock::now();
    const bool too_soon = now - shard.since < shard.handovers * kTooSoon;
    if (too_soon) {
      const bool has_wildcards = kRareWildcards * shard.open_parts.most() > shard.handovers;
      split_.store(has_wildcards ? shard.open_parts.split() : Split::by_key,
                   std::memory_order_relaxed);
    }
    shard.since = now;
    shard.handovers = 0;
    shard.open_parts = {};
    return too_soon;
  }

  std::atomic<std::uint32_t> patience_{kPatience};  // handovers in a shard
  std::atomic<Split> split_{Split::by_key};
  unsigned searches_ = 0;           // of all shards, since the last review
  OpenParts open_parts_;            // of these
  unsigned calls_ = 0;              // in the closing now
  Clock::duration lost_{};          // in searches, for all other threads
  Clock::time_point since_{};       // the last review
  Clock::duration lost_in_vain_{};  // up to then, since entries were moved last
};

}  // namespace tagline
