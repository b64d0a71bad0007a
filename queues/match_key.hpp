// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

namespace tagline {

// Which of a matcher's queues a queue is. Posted entries may be wildcards and are
// searched for messages; unexpected entries are messages, searched for receives.
enum class QueueSide { posted, unexpected };

// What one side of a match says about source and tag, within one context.
//
//   bits: tag in the upper, source in the lower 32 bits
//   mask: the bits that this side insists on
//
// A message insists on all 64. A receive from any source insists on none of the
// source bits; one with any tag insists only on the tag's sign being clear,
// because negative tags are the host's own traffic and must stay invisible to
// it. Bits outside the mask are zero, so equal receives have equal keys.
struct MatchKey {
  std::uint64_t bits = 0;
  std::uint64_t mask = 0;

  friend bool operator==(const MatchKey&, const MatchKey&) = default;
};

inline constexpr std::uint64_t kSourceMask = 0x00000000ffffffffu;
inline constexpr std::uint64_t kTagMask = 0xffffffff00000000u;
inline constexpr std::uint64_t kTagSign = 0x8000000000000000u;

inline constexpr std::uint64_t key_bits(std::int32_t source, std::int32_t tag) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(tag)) << 32 |
         static_cast<std::uint32_t>(source);
}

inline constexpr std::int32_t key_source(const MatchKey& key) noexcept {
  return static_cast<std::int32_t>(key.bits);
}
inline constexpr std::int32_t key_tag(const MatchKey& key) noexcept {
  return static_cast<std::int32_t>(key.bits >> 32);
}
inline constexpr bool key_any_source(const MatchKey& key) noexcept {
  return (key.mask & kSourceMask) == 0;
}
inline constexpr bool key_any_tag(const MatchKey& key) noexcept {
  return (key.mask & kTagMask) == kTagSign;
}

// A receive and a message fit if they agree on every bit that both insist on.
// Symmetric, so that one search serves the posted and the unexpected queue.
inline constexpr bool keys_meet(const MatchKey& a, const MatchKey& b) noexcept {
  return ((a.bits ^ b.bits) & a.mask & b.mask) == 0;
}

// A key in one word: the bits of the envelope, with these in place of wildcards. No message
// carries them: no rank is negative, and no tag is the least of all integers.
using PackedKey = std::uint64_t;
inline constexpr PackedKey kOpenSource = 0x0000000080000000u;
inline constexpr PackedKey kOpenTag = kTagSign;

inline constexpr PackedKey packed(const MatchKey& key) noexcept {
  return key.bits | (~key.mask & kOpenSource) | (~key.mask << 1 & kOpenTag);
}
inline constexpr MatchKey unpacked(PackedKey packed) noexcept {
  MatchKey key = {packed, kSourceMask | kTagMask};
  if ((packed & kOpenSource) != 0) key = {key.bits & ~kSourceMask, key.mask & ~kSourceMask};
  if ((packed & kTagMask) == kOpenTag)
    key = {key.bits & ~kTagMask, (key.mask & ~kTagMask) | kTagSign};
  return key;
}
inline constexpr bool is_exact(PackedKey packed) noexcept {
  return (packed & kOpenSource) == 0 && (packed & kTagMask) != kOpenTag;
}
// keys_meet(unpacked(packed), key): nearly always one comparison tells.
inline constexpr bool keys_meet(PackedKey packed, const MatchKey& key) noexcept {
  const std::uint64_t differs = (packed ^ key.bits) & key.mask;
  if (differs == 0) return true;
  if ((packed & (kOpenSource | kOpenTag)) == 0) return false;
  if ((packed & kOpenSource) == 0) {
    if ((differs & kSourceMask) != 0) return false;
  } else if ((differs & kTagMask) == 0) {
    return true;
  }
  return packed >> 32 == kOpenTag >> 32 && (key.bits & kTagSign) == 0;
}

// One queued receive or message, as queues hand it out.
struct QueueEntry {
  MatchKey key;
  void* cookie = nullptr;      // the caller's, never dereferenced
  std::uint64_t sequence = 0;  // its place in the matcher's order, unique
};

// The same in fewer words, as queues keep it.
struct PackedEntry {
  PackedKey key = 0;
  void* cookie = nullptr;
  std::uint64_t sequence = 0;
};
inline constexpr PackedEntry packed(const QueueEntry& entry) noexcept {
  return {packed(entry.key), entry.cookie, entry.sequence};
}
inline constexpr QueueEntry unpacked(const PackedEntry& entry) noexcept {
  return {unpacked(entry.key), entry.cookie, entry.sequence};
}
inline constexpr const QueueEntry& unpacked(const QueueEntry& entry) noexcept { return entry; }

// The order of sequence numbers. The difference is signed, because they may wrap.
inline constexpr bool is_older(std::uint64_t a, std::uint64_t b) noexcept {
  return static_cast<std::int64_t>(a - b) < 0;
}

// What a search that takes its match out came to. Two words, so that it travels
// in registers.
struct TakeResult {
  bool taken;
  std::uint64_t depth;  // entries looked at
};

// What a queue can say of a key at a glance: nearly all matches are near an end.
enum class Glance {
  taken,   // the match, and it is out
  none,    // no entry meets the key
  unknown  // a search can tell; nothing has changed
};

// What takes a match out is told how to count: count(depth, taken), depth in entries looked at.
// It is called once, where both are known, so that the compiler decides what is counted of a
// match; a glance that has found nothing out does not call it. take_at_hand() calls it last of all:
// whoever counts may let others in.
using CountOfSearch = void (*)(std::uint64_t depth, bool taken);

template <class Queue>
concept OffersAtHand = requires(Queue queue, MatchKey key, void** cookie, CountOfSearch count) {
  queue.take_at_hand(key, cookie, count);
};
template <class Queue>
concept OffersTake = requires(Queue queue, MatchKey key, void** cookie, CountOfSearch count) {
  queue.take(key, cookie, count);
};
// May compare all it has at once, where a glance has not told.
template <class Queue>
concept OffersGroup = requires(Queue queue, MatchKey key, void** cookie, CountOfSearch count) {
  queue.is_one_group() && queue.take_from_group(key, cookie, count);
};
// Keeps keys packed, and takes those with wildcards so.
template <class Queue>
concept KeepsPacked = requires(Queue queue, PackedEntry entry) {
  queue.append_wild(entry);
};
// May keep entries in an index.
template <class Queue>
concept OffersIndex = requires(Queue queue, std::uint64_t bits, void** cookie, QueueEntry entry) {
  queue.is_indexed() && queue.tells() && queue.template tells_among<QueueSide::posted>();
  queue.tells_none() && queue.lists_none(bits);
  queue.take_found(queue.look(bits), cookie);
  queue.take_found(queue.template look_among<QueueSide::posted>(bits), cookie);
  queue.take_found(queue.look_listed(bits), cookie);
  queue.append_and_log(entry) || queue.append_and_list(entry) || queue.append_at_once(entry);
  queue.pass_on_at_once() || queue.template begin_index_at_hand<QueueSide::posted>() ||
      queue.waits_here();
  queue.slot_hint(true).prefetch(bits);
  queue.let_shrink(bits, std::size_t{1});
};

// No instruction: what has been loaded is loaded again where it is needed once more. To keep it
// takes registers, and on the ways of a message whoever takes one more has to save it first.
inline void keep_no_loads() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

// Finds and takes out the oldest entry that meets the key; false: there is none.
template <class Queue, class Count>
inline bool take_from(Queue& queue, const MatchKey& key, void** cookie, Count count) noexcept {
  if constexpr (OffersTake<Queue>) {
    return queue.take(key, cookie, count);
  } else {
    std::uint64_t depth = 0;
    const auto hit = queue.find(key, depth);
    if (!hit) {
      count(depth, false);
      return false;
    }
    *cookie = queue.at(hit).cookie;
    queue.erase(hit);
    count(depth, true);
    return true;
  }
}

}  // namespace tagline
