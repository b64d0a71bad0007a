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

// When a sharded matcher should have other shards than it has: more when threads with keys of
// their own take turns at one, one when wildcards keep the gate shut, and chosen by a part of
// the key when that spares the wildcards the gate. It watches and advises; Shards acts.
class ShardPolicy {
 public:
  static constexpr std::size_t kMostShards = 1024;

  // ---- With the shard's lock -------------------------------------------------------

  // Whether threads with keys of their own take turns at a shard so fast that they pay for
  // little but its lines, which go from core to core. That they wait for each other tells
  // only a part: mostly they wait for the line of the lock, and then find it free.
  template <class Shard>
  [[gnu::always_inline]] bool is_crowded(Shard& shard, MatchEnvelope envelope,
                                         bool lock_was_free) noexcept {
    if (!hands_over(shard, envelope)) return false;
    // relaxed: a guess about the future, whoever changed it.
    const std::uint32_t patience = patience_.load(std::memory_order_relaxed);
    if ((shard.handovers += lock_was_free ? kHandover : kWait) < patience) [[likely]]
      return false;
    return are_too_soon(shard);
  }

  // ---- With the gate lock ----------------------------------------------------------

  // More shards were of no use, or were not to be had: not soon again.
  void lose_patience() noexcept {
    patience_.store(std::min(kMostPatience, 8 * patience_.load(std::memory_order_relaxed)),
                    std::memory_order_relaxed);
  }

  // How many in place of that many, with so many entries in all queues. At first as many as
  // there are keys, as far as one can tell. More than kMostShards: as many as it gets already.
  static std::size_t more_than(std::size_t count, std::size_t entries) noexcept {
    if (count > 1) return 4 * count;
    return std::clamp(std::bit_ceil(entries), kFirstShards, kMostShards);
  }

  void note_closing() noexcept {
    ++closings_;
    calls_ = 0;
  }
  void note_call_in_closing() noexcept { ++calls_; }
  // Of a call that closes: which choice of shards would have spared that.
  void note_wildcard(MatchEnvelope envelope) noexcept {
    if (envelope.source == kAnySource && envelope.tag != kAnyTag) ++for_tag_;
    if (envelope.source != kAnySource && envelope.tag == kAnyTag) ++for_source_;
  }

  bool is_due() const noexcept { return closings_ >= kClosings || calls_ >= kTooLong; }

  // Since the last review.
  struct Review {
    bool is_shut_mostly;      // shards as they are chosen now are of no use
    bool by_tag_would_do;     // nearly all that shut the gate left only the source open
    bool by_source_would_do;  // nearly all left only the tag open
  };
  Review review() noexcept {
    const auto now = std::chrono::steady_clock::now();
    const bool too_often = closings_ >= kClosings && now - since_ < kClosings * kTooOften;
    const unsigned most = closings_ - closings_ / 8;
    const Review review{.is_shut_mostly = too_often || calls_ >= kTooLong,
                        .by_tag_would_do = for_tag_ >= most,
                        .by_source_would_do = for_source_ >= most};
    closings_ = for_tag_ = for_source_ = 0;
    calls_ = 0;
    since_ = now;
    return review;
  }

 private:
  static constexpr std::size_t kFirstShards = 64;
  static constexpr std::uint32_t kHandover = 1;
  static constexpr std::uint32_t kWait = 4;  // a handover that was waited for
  static constexpr std::uint32_t kPatience = 128;
  static constexpr std::uint32_t kMostPatience = 1u << 20;
  static constexpr std::chrono::microseconds kTooSoon{2};    // between two handovers
  static constexpr unsigned kClosings = 256;                 // looked at together
  static constexpr std::chrono::microseconds kTooOften{10};  // between two closings
  static constexpr unsigned kTooLong = 4096;                 // calls in one closing

  // Whether another thread comes with another key than the last one.
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
  [[gnu::noinline, gnu::cold]] static bool are_too_soon(Shard& shard) noexcept {
    const auto now = std::chrono::steady_clock::now();
    const bool too_soon = now - shard.since < shard.handovers * kTooSoon;
    shard.since = now;
    shard.handovers = 0;
    return too_soon;
  }

  std::atomic<std::uint32_t> patience_{kPatience};  // handovers in a shard
  unsigned closings_ = 0;                           // since the last review
  unsigned for_tag_ = 0;                            // of these, for any source and one tag
  unsigned for_source_ = 0;                         // for any tag of one source
  unsigned calls_ = 0;                              // in the closing now
  std::chrono::steady_clock::time_point since_{};   // the last review
};

}  // namespace tagline
