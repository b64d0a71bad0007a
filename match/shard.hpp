// SPDX-License-Identifier: BSD-3-Clause
// A shard, and the word that tells a call which one is its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "match/biased_lock.hpp"
#include "match/envelope.hpp"

namespace tagline {

template <class Core>
struct alignas(kCacheLine) Shard {
  // One line: who has the lock has all of it.
  BiasedLock lock;
  std::uint32_t handovers = 0;    // from one thread and key to others, see is_crowded()
  std::uint64_t key = 0;          // of the last call
  std::uintptr_t thread = 0;      // likewise
  std::uint64_t numbers_end = 0;  // of the block that its next receive is numbered from
  std::unique_ptr<Core> core;     // nullptr: nothing has come here yet
  std::chrono::steady_clock::time_point since{};  // handovers are counted

  // In a line that all may read without taking the other from whoever works there.
  alignas(kCacheLine) std::atomic<std::uintptr_t> first{0};  // to whom the lock may be biased

  // The only thread that has called so far has it to itself, whatever the gate says since:
  // nobody else closes before that thread has lost its bias. To be left by lock.leave_first().
  [[gnu::always_inline]] bool enter_first() noexcept {
    // relaxed: a hint, for the lock to confirm.
    if (first.load(std::memory_order_relaxed) != this_thread()) return false;
    if (lock.enter_first()) [[likely]]
      return true;
    first.store(0, std::memory_order_relaxed);
    return false;
  }
  // With the lock taken by its first thread, and the core there.
  void remember_first() noexcept { first.store(this_thread(), std::memory_order_relaxed); }
};

// The gate: shards - 1, what of a key chooses the shard, a count of changes of that, and
// whether it is shut. A call that was late for a change never takes the gate for what it was.
struct GateWord {
  static constexpr std::uint64_t kMask = 0xffff;
  static constexpr std::uint64_t kByTag = kMask + 1;  // whatever the source
  static constexpr std::uint64_t kBySource = 2 * kByTag;
  static constexpr std::uint64_t kChange = 2 * kBySource;
  static constexpr std::uint64_t kShut = std::uint64_t{1} << 63;

  // Exact keys have one, and wildcards if there is but one, or if what they leave open does
  // not choose it.
  static bool has_one_shard(MatchEnvelope envelope, std::uint64_t gate) noexcept {
    return is_exact(envelope) || (gate & kMask) == 0 ||
           ((envelope.source != kAnySource || (gate & kByTag) != 0) &&
            (envelope.tag != kAnyTag || (gate & kBySource) != 0));
  }

  // Multiplied so that every bit counts, in the upper bits: ranks and tags count up, often
  // together.
  static std::uint64_t hash(MatchEnvelope envelope, std::uint64_t gate) noexcept {
    std::uint64_t bits = key_bits(envelope.source, envelope.tag);
    if ((gate & (kByTag | kBySource)) != 0) [[unlikely]] {
      bits &= (gate & kByTag) != 0 ? kTagMask : kSourceMask;
    }
    return (bits * 0x9e3779b97f4a7c15u + envelope.context_id * 0xd6e8feb86659fd93u) >> 48;
  }
};

}  // namespace tagline
