// SPDX-License-Identifier: BSD-3-Clause
// A shard, and the word that tells a call which one is its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "match/biased_lock.hpp"
#include "match/envelope.hpp"

namespace tagline {

// By which part of a key shards are chosen.
enum class Split : std::uint8_t { by_key, by_tag, by_source, not_at_all };

// How many wildcards left which part of the key open.
struct OpenParts {
  std::uint16_t source = 0;
  std::uint16_t tag = 0;

  // Any envelope. Stops counting when that is too many, for both.
  void note(MatchEnvelope envelope, std::uint16_t weight) noexcept {
    if (std::max(source, tag) > UINT16_MAX - weight) return;
    if (envelope.source == kAnySource) source += weight;
    if (envelope.tag == kAnyTag) tag += weight;
  }
  std::uint16_t most() const noexcept { return std::max(source, tag); }
  // That spares nearly all of them the gate.
  Split split() const noexcept {
    return 8 * tag <= source   ? Split::by_tag
           : 8 * source <= tag ? Split::by_source
                               : Split::not_at_all;
  }
};

template <class Core>
struct alignas(kCacheLine) Shard {
  // One line: who has the lock has all of it.
  BiasedLock lock;
  std::uint32_t handovers = 0;    // from one thread and key to others, see ShardPolicy
  OpenParts open_parts;           // of calls it was handed over to
  std::uint64_t key = 0;          // of the last call that took the lock
  std::uintptr_t thread = 0;      // likewise
  std::uint64_t numbers_end = 0;  // of the block that its next receive is numbered from

  // In a line that all may read without taking the other from whoever works there.
  alignas(kCacheLine) std::atomic<BiasedLock::Favour> favour{0};  // that the lock gave last
  Core* core = nullptr;         // nullptr: nothing has come here yet
  std::unique_ptr<Core> owned;  // owns it, unless ShardStore does: the very first one
  // Seldom written.
  std::chrono::steady_clock::time_point since{};  // handovers are counted

  // The thread that the lock favours has it to itself, whatever the gate says since: nobody
  // else closes before that thread has lost its favour. nullptr: not so; otherwise see
  // BiasedLock::enter().
  [[gnu::always_inline]] std::atomic<bool>* enter() noexcept {
    // relaxed: a hint, for the lock to confirm.
    BiasedLock::Favour last = favour.load(std::memory_order_relaxed);
    if (BiasedLock::number_of(last, this_thread()) >= BiasedLock::kFavours) return nullptr;
    if (std::atomic<bool>* const inside = lock.enter(last)) [[likely]]
      return inside;
    // Unless it is another thread's meanwhile, which needs it to leave. relaxed, here and below: as
    // above, the hint orders nothing.
    favour.compare_exchange_strong(last, 0, std::memory_order_relaxed);
    return nullptr;
  }
  // The same for the first favour alone, whose word the caller knows, in few instructions.
  [[gnu::always_inline]] bool enter_first(std::atomic<bool>& inside) noexcept {
    if (favour.load(std::memory_order_relaxed) != this_thread()) [[unlikely]]
      return false;
    if (lock.enter_first(inside)) [[likely]]
      return true;
    // Or every call would write to the lock's line before it owns it.
    favour.store(0, std::memory_order_relaxed);
    return false;
  }

  // With the lock taken, and the core there. Where there is none the line stays as it is.
  void remember_favour() noexcept {
    const BiasedLock::Favour mine = lock.favour();
    if (mine != 0) favour.store(mine, std::memory_order_relaxed);
  }
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
  [[gnu::always_inline]] static bool has_one_shard(MatchEnvelope envelope,
                                                   std::uint64_t gate) noexcept {
    const std::uint64_t bits = packed_bits(envelope);
    const bool any_source = static_cast<std::uint32_t>(bits) == kOpenSource;
    const bool any_tag = bits >> 32 == kOpenTag >> 32;
    if (!any_source && !any_tag) [[likely]]
      return true;
    return (gate & kMask) == 0 ||
           ((!any_source || (gate & kByTag) != 0) && (!any_tag || (gate & kBySource) != 0));
  }

  // Multiplied so that every bit counts, in the upper bits: ranks and tags count up, often
  // together.
  [[gnu::always_inline]] static std::uint64_t hash(MatchEnvelope envelope,
                                                   std::uint64_t gate) noexcept {
    std::uint64_t bits = packed_bits(envelope);
    if ((gate & (kByTag | kBySource)) != 0) [[unlikely]] {
      bits &= (gate & kByTag) != 0 ? kTagMask : kSourceMask;
    }
    return (bits * 0x9e3779b97f4a7c15u + envelope.context_id * 0xd6e8feb86659fd93u) >> 48;
  }
};

}  // namespace tagline
