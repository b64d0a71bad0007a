// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "queues/match_key.hpp"
#include "queues/resources.hpp"

namespace tagline {

// Entries in their order, as columns in a ring: what a short queue is, and the
// newest part of a long one.
//
//   bits     [ . . h x x - x t . ]     h: head, the oldest entry
//   mask     [ . . h x x - x t . ]     t: the newest one
//   payload  [ . . h x x - x t . ]     -: a hole, which meets no key
//
// Positions count up and are never reused, the ring wraps underneath. The first
// eight entries need no memory of their own. Holes go when they reach an end, or
// when they are half of the window: then it is closed up in place.
//
// Guarantees: append and erase are O(1) amortised; find looks at the oldest
// entries one by one, then at many at a time; order is kept.
class Window {
 public:
  static constexpr std::size_t kInline = 8;
  static constexpr std::size_t kNone = ~std::size_t{0};

  explicit Window(QueueResources& resources) noexcept : resources_(&resources) {
    use(inline_bits_, inline_mask_, inline_payload_, kInline);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() { release(); }

  bool empty() const noexcept { return head_ == tail_; }
  bool full() const noexcept { return tail_ - head_ == wrap_ + 1; }
  std::size_t capacity() const noexcept { return wrap_ + 1; }
  // Positions [head(), tail()) hold entries and holes, both ends are entries.
  std::size_t head() const noexcept { return head_; }
  std::size_t tail() const noexcept { return tail_; }

  // One entry, and it does not meet the key.
  bool is_one_other(const MatchKey& key) const noexcept {
    return tail_ - head_ == 1 && !meets(head_, key);
  }

  // Looks at the oldest entry, and at the newest if there are two.
  Glance take_near(const MatchKey& key, void** cookie, std::uint64_t& depth) noexcept {
    if (empty()) return Glance::none;
    if (meets(head_, key)) {
      if (holes_ != 0) [[unlikely]] return Glance::unknown;
      ++depth;
      *cookie = cookie_at(head_++);
      return Glance::taken;
    }
    if (tail_ - head_ > 2) return Glance::unknown;
    const bool one = tail_ - head_ == 1;
    depth += one ? 1 : 2;
    if (one || !meets(tail_ - 1, key)) return Glance::none;
    *cookie = cookie_at(--tail_);
    return Glance::taken;
  }

  // Wants !full().
  void append(const QueueEntry& entry) noexcept {
    const std::size_t i = tail_++ & wrap_;
    bits_[i] = entry.key.bits;
    mask_[i] = entry.key.mask;
    payload_[i] = {entry.cookie, entry.sequence};
  }

  // The oldest position that meets the key, or kNone.
  std::size_t find(const MatchKey& key) const noexcept { return find(key, head_); }

  // The same from a position on.
  std::size_t find(const MatchKey& key, std::size_t from) const noexcept {
    const std::size_t near = std::min(tail_, from + kInline);
    for (std::size_t position = from; position != near; ++position) {
      if (meets(position, key)) return position;
    }
    return near == tail_ ? kNone : find_beyond(key, near);
  }

  void* cookie_at(std::size_t position) const noexcept { return payload_[position & wrap_].cookie; }

  QueueEntry at(std::size_t position) const noexcept {
    const std::size_t i = position & wrap_;
    return {{bits_[i], mask_[i]}, payload_[i].cookie, payload_[i].sequence};
  }

  void erase(std::size_t position) noexcept {
    if (position == head_) [[likely]] {
      ++head_;
      if (holes_ != 0) [[unlikely]]
        trim();
    } else if (position + 1 == tail_) {
      --tail_;
      if (holes_ != 0) [[unlikely]]
        trim();
    } else {
      make_hole(position);
    }
  }

  // The oldest position whose entry the condition holds for, or kNone.
  template <class Condition>
  std::size_t find_if(Condition condition) const {
    for (std::size_t position = head_; position != tail_; ++position) {
      if (!is_hole(position) && condition(at(position))) return position;
    }
    return kNone;
  }

  // The position of the entry with this sequence number, or kNone: they are in order.
  std::size_t find_sequence(std::uint64_t sequence) const noexcept {
    std::size_t low = head_;
    for (std::size_t high = tail_; low != high;) {
      const std::size_t middle = low + (high - low) / 2;
      // Signed: sequence numbers may wrap. A hole still has its number.
      if (static_cast<std::int64_t>(payload_[middle & wrap_].sequence - sequence) < 0) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const bool found = low != tail_ && payload_[low & wrap_].sequence == sequence && !is_hole(low);
    return found ? low : kNone;
  }

  // Takes out what is wanted, oldest first, and closes all holes in the same pass.
  template <class Predicate, class Visit>
  void remove_if(Predicate wanted, Visit visit) {
    std::size_t to = head_;
    for (std::size_t from = head_; from != tail_; ++from) {
      if (is_hole(from)) continue;
      const QueueEntry entry = at(from);
      if (wanted(entry)) {
        visit(entry);
        continue;
      }
      bits_[to & wrap_] = entry.key.bits;
      mask_[to & wrap_] = entry.key.mask;
      payload_[to & wrap_] = {entry.cookie, entry.sequence};
      ++to;
    }
    tail_ = to;
    holes_ = 0;
  }

  // Makes !full() true for twice as many entries; false if there is no memory.
  bool grow() noexcept;

 private:
  struct Payload {
    void* cookie;
    std::uint64_t sequence;
  };
  static constexpr std::size_t kEntryBytes = 2 * sizeof(std::uint64_t) + sizeof(Payload);

  // Source -1 and the lowest tag: no message has this source, no receive asks
  // for this tag, and a tag wildcard wants the sign clear. So nothing meets it.
  static constexpr std::uint64_t kHoleBits = key_bits(-1, INT32_MIN);
  bool is_hole(std::size_t position) const noexcept { return bits_[position & wrap_] == kHoleBits; }

  bool meets(std::size_t position, const MatchKey& key) const noexcept {
    const std::size_t i = position & wrap_;
    return ((bits_[i] ^ key.bits) & mask_[i] & key.mask) == 0;
  }

  [[gnu::noinline, gnu::cold]] void make_hole(std::size_t position) noexcept {
    bits_[position & wrap_] = kHoleBits;
    mask_[position & wrap_] = ~std::uint64_t{0};
    if (++holes_ > (tail_ - head_) / 2) close_holes();
  }

  [[gnu::noinline]] std::size_t find_beyond(MatchKey key, std::size_t from) const noexcept {
    while (from != tail_) {
      // Up to the end of the window or of the ring, whichever comes first.
      const std::size_t i = from & wrap_;
      const std::size_t span = std::min(tail_ - from, capacity() - i);
      const std::size_t hit =
          resources_->kernels.find_key(bits_ + i, mask_ + i, span, key.bits, key.mask);
      if (hit != span) return from + hit;
      from += span;
    }
    return kNone;
  }

  [[gnu::noinline, gnu::cold]] void trim() noexcept {
    for (; head_ != tail_ && is_hole(head_); ++head_) --holes_;
    for (; head_ != tail_ && is_hole(tail_ - 1); --tail_) --holes_;
  }

  void close_holes() noexcept {
    remove_if([](const QueueEntry&) { return false; }, [](const QueueEntry&) {});
  }

  void use(std::uint64_t* bits, std::uint64_t* mask, Payload* payload,
           std::size_t capacity) noexcept {
    bits_ = bits;
    mask_ = mask;
    payload_ = payload;
    wrap_ = capacity - 1;
  }

  void release() noexcept {
    if (bits_ != inline_bits_) resources_->memory.release(bits_, capacity() * kEntryBytes);
  }

  std::size_t head_ = 0;
  std::size_t tail_ = 0;
  std::size_t wrap_;  // capacity - 1, a power of two
  std::size_t holes_ = 0;
  std::uint64_t* bits_;
  std::uint64_t* mask_;
  Payload* payload_;
  QueueResources* resources_;
  std::uint64_t inline_bits_[kInline];
  std::uint64_t inline_mask_[kInline];
  Payload inline_payload_[kInline];
};

inline bool Window::grow() noexcept {
  if (holes_ > capacity() / 4) {
    close_holes();
    return true;
  }
  const std::size_t larger = 2 * capacity();
  auto* block = static_cast<std::uint64_t*>(resources_->memory.allocate(larger * kEntryBytes));
  if (block == nullptr) return false;
  auto* payload = reinterpret_cast<Payload*>(block + 2 * larger);
  std::size_t to = 0;
  for (std::size_t from = head_; from != tail_; ++from) {
    if (is_hole(from)) continue;
    block[to] = bits_[from & wrap_];
    block[larger + to] = mask_[from & wrap_];
    payload[to++] = payload_[from & wrap_];
  }
  release();
  use(block, block + larger, payload, larger);
  head_ = 0;
  tail_ = to;
  holes_ = 0;
  return true;
}

}  // namespace tagline
