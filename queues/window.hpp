// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "queues/match_key.hpp"
#include "queues/resources.hpp"

namespace tagline {

// Entries in their order, as columns in a ring: what a short queue is, and the
// newest part of a long one.
//
//   key      [ . . h x x o x t . ]     h: head, the oldest entry;  t: the newest one
//   payload  [ . . h x x o x t . ]     o: a hole, marked by
//   holes      0 0 0 0 0 1 0 0 0       a bit of its own, so that no column is written
//
// A key is one word, wildcards included (see PackedKey), so an entry takes 24 bytes. While none has
// wildcards, searches compare for equality alone.
//
// Positions count up and hold until the window is closed up, shrinks or grows; the ring
// wraps underneath. The first eight entries lie in slots of the owner's. Holes go when
// they reach an end, or when the window is full of them, or when they are half of a window
// that is searched by more than one comparison, but not so long that a call would stall: then
// it is closed up in place. A window that was long and holds next to nothing becomes a short
// ring again, in the same memory.
//
// A search compares up to 64 slots and only then asks which of them it was, so up to
// there it takes the same time, and no branch that depends on the order of matches,
// wherever the match lies.
//
// Guarantees: append and erase are O(1) amortised; find is O(length / 64); order is kept.
class Window {
 public:
  static constexpr std::size_t kInline = 8;
  static constexpr std::size_t kAtHand = 2;  // entries that take_near() tells all of
  // Slots that one word of holes stands for, compared at once.
  static constexpr std::size_t kGroup = 64;
  // Slots that a long window is made for; it can have more.
  static constexpr std::size_t kLargest = std::size_t{1} << 20;
  static constexpr std::size_t kNone = ~std::size_t{0};

  class Slots;
  // inline_slots: of kInline entries, stays as long as the window.
  Window(QueueResources& resources, Slots& inline_slots) noexcept;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() { release(); }

  bool empty() const noexcept { return head_ == tail_; }
  bool full() const noexcept { return tail_ - head_ == wrap_ + 1; }
  std::size_t capacity() const noexcept { return wrap_ + 1; }
  // Of entries and holes.
  std::size_t length() const noexcept { return tail_ - head_; }
  std::size_t entries() const noexcept { return length() - number_of_holes(); }
  // A search takes the same time wherever the match is.
  bool is_one_group() const noexcept { return wrap_ < kGroup; }
  // Positions [head(), tail()) hold entries and holes, the first one is an entry.
  std::size_t head() const noexcept { return head_; }
  std::size_t tail() const noexcept { return tail_; }

  // So many may come without further thought of the owner's, who says so.
  bool has_room() const noexcept { return length() < room_; }
  void set_room(std::size_t entries) noexcept { room_ = entries; }

  // A glance is worth its while: neither has a later entry gone before the oldest, nor has any of
  // the latest matches passed more than a glance tells. Where these come in random order a glance
  // would find something now and then, which no processor can foresee.
  bool is_oldest_likely() const noexcept { return (holes_ | scattered_) == 0; }

  // Takes the oldest entry if it meets the key; none: it does not. Wants !empty().
  Glance take_oldest(const MatchKey& key, void** cookie) noexcept {
    if (!is_oldest_likely()) return Glance::unknown;
    const std::size_t i = head_ & wrap_;
    const bool met = keys_meet(key_[i], key);
    keep_no_loads();
    if (!met) return Glance::none;
    ++head_;
    *cookie = payload_[i].cookie;
    return Glance::taken;
  }

  // Where the oldest entry does not meet the key: 1 or 2, if there are so many and none does;
  // else 0.
  std::size_t number_without_match(const MatchKey& key) const noexcept {
    keep_no_loads();
    const std::size_t length = tail_ - head_;
    if (length == 1) [[likely]]
      return 1;
    return length == 2 && !meets(tail_ - 1, key) ? 2 : 0;
  }

  // Looks at the oldest entry, and at the newest if there are two.
  template <class Count>
  Glance take_near(const MatchKey& key, void** cookie, Count count) noexcept {
    if (empty()) {
      count(0, false);
      return Glance::none;
    }
    if (!is_oldest_likely()) return Glance::unknown;
    if (meets(head_, key)) {
      *cookie = cookie_at(head_++);
      count(1, true);
      return Glance::taken;
    }
    const std::size_t length = tail_ - head_;
    if (length > kAtHand) return Glance::unknown;
    if (length == 1 || !meets(tail_ - 1, key)) {
      count(length, false);
      return Glance::none;
    }
    *cookie = cookie_at(--tail_);
    count(2, true);
    return Glance::taken;
  }

  // Wants !full(). Where the entry has wildcards, wants that note_wild() was called when all others
  // that are older had come.
  void append(const PackedEntry& entry) noexcept {
    const std::size_t i = tail_++ & wrap_;
    key_[i] = entry.key;
    payload_[i] = {entry.cookie, entry.sequence};
  }
  // The next entry that will come has wildcards. Nothing need come: then searches ask for them in
  // vain, until what is here now has left.
  void note_wild() noexcept { wild_end_ = tail_ + 1; }
  // Some entries have wildcards, or had and left before older ones did.
  bool holds_wild() const noexcept { return head_ < wild_end_; }

  // The oldest position that meets the key, or kNone.
  std::size_t find(const MatchKey& key) const noexcept { return find(key, head_); }

  // The same from a position on.
  std::size_t find(const MatchKey& key, std::size_t from) const noexcept {
    if (!is_one_group()) return find_by_group(key, from);
    if (from == tail_) return kNone;
    return find_in_group(key, ~std::uint64_t{0} << (from - head_));
  }

  // Takes, of a window of one group, nothing: what it has is no match.
  void miss_in_group() noexcept { note_match(0); }

  // The same in a window of one group. wanted: places to look at, the lowest bit for head().
  std::size_t find_in_group(const MatchKey& key,
                            std::uint64_t wanted = ~std::uint64_t{0}) const noexcept {
    // From the oldest entry on, and on again at the start of the ring: behind the newest
    // entry come places before the oldest, which are no part of the window.
    const std::uint64_t slots = meeting(key_, capacity(), key);
    const std::uint64_t met =
        std::rotr(slots * repeats_, static_cast<int>(head_ % kGroup)) & ~holes_ & wanted;
    if (met == 0) return kNone;
    const std::size_t position = head_ + static_cast<unsigned>(std::countr_zero(met));
    return position < tail_ ? position : kNone;
  }

  void* cookie_at(std::size_t position) const noexcept { return payload_[position & wrap_].cookie; }

  QueueEntry at(std::size_t position) const noexcept {
    const std::size_t i = position & wrap_;
    return unpacked(PackedEntry{key_[i], payload_[i].cookie, payload_[i].sequence});
  }

  void erase(std::size_t position) noexcept {
    if (position == head_ && holes_ == 0) {
      ++head_;
      return;
    }
    if (!is_one_group()) {
      erase_in_groups(position);
      return;
    }
    erase_in_group(position);
  }

  void erase_in_group(std::size_t position) noexcept {
    note_match(position - head_);
    // Without a branch: which entry of a short queue goes next nobody can predict.
    const bool is_newest = position + 1 == tail_;
    tail_ -= is_newest;
    const std::uint64_t holes = holes_ | std::uint64_t{!is_newest} << (position - head_);
    if (~holes == 0) __builtin_unreachable();  // place 63 would be the newest's, never marked
    const auto gone = static_cast<unsigned>(std::countr_zero(~holes));
    holes_ = holes >> gone;
    head_ += gone;
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
      // A hole still has its number.
      if (is_older(payload_[middle & wrap_].sequence, sequence)) {
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
      if (is_hole(from)) {
        if (!is_one_group()) holes_at(from) &= ~bit(from);
        continue;
      }
      const QueueEntry entry = at(from);
      if (wanted(entry)) {
        visit(entry);
        continue;
      }
      key_[to & wrap_] = key_[from & wrap_];
      payload_[to & wrap_] = payload_[from & wrap_];
      ++to;
    }
    tail_ = to;
    holes_ = 0;
  }

  // Of one group: whether it has exact entries only, and had no others of late.
  bool held_only_exact() const noexcept {
    return std::all_of(key_, key_ + capacity(), [](PackedKey key) { return is_exact(key); });
  }

  // grow() would close up a window of one group: matches leave holes, and the window never empties.
  bool is_scattered_group() const noexcept { return is_one_group() && has_many_holes(); }

  // Makes !full() true: closes up a window with many holes, else doubles it. False if there is
  // no memory. No position found before counts any more.
  bool grow() noexcept;
  // Whether that moves no more than kMoved entries.
  bool grows_at_once() const noexcept {
    if (capacity() <= kMoved) return true;
    return capacity() < block_slots_ && !has_many_holes() && (head_ & wrap_) <= kMoved;
  }

  // Whether so few entries are left of so many that shrink() is worth its while, which makes
  // it a ring of kInline slots again: no search compares what is long gone. It takes no memory,
  // nor does it give any back: a queue that was long once is so again. There is room for another.
  bool is_mostly_past() const noexcept { return !is_one_group() && length() < kInline; }
  void shrink() noexcept;

 private:
  static constexpr unsigned kRemembered = 8;  // matches, at least
  // A window of so many slots reserves a block for kLargest: to copy as many into a larger one
  // would stall a call, and what is not used yet costs only addresses.
  static constexpr std::size_t kLarge = 8192;
  static constexpr std::size_t kMoved = 65536;  // entries in one call

  struct Payload {
    void* cookie;
    std::uint64_t sequence;
  };
  static constexpr std::size_t block_bytes(std::size_t capacity) noexcept {
    return capacity * (sizeof(PackedKey) + sizeof(Payload)) +
           words(capacity) * sizeof(std::uint64_t);
  }
  static constexpr std::size_t words(std::size_t capacity) noexcept { return capacity / kGroup; }

  void note_match(std::size_t passed) noexcept {
    scattered_ = scattered_ >> 1 | passed / kAtHand << kRemembered;
  }

  std::size_t number_of_holes() const noexcept {
    return is_one_group() ? static_cast<std::size_t>(std::popcount(holes_)) : holes_;
  }
  bool has_many_holes() const noexcept { return number_of_holes() > capacity() / 4; }
  std::uint64_t& holes_at(std::size_t position) const noexcept {
    return hole_bits_[(position & wrap_) / kGroup];
  }
  std::uint64_t bit(std::size_t position) const noexcept {
    return std::uint64_t{1} << position % kGroup;
  }
  bool is_hole(std::size_t position) const noexcept {
    if (is_one_group()) return (holes_ >> (position - head_) & 1) != 0;
    return (holes_at(position) & bit(position)) != 0;
  }

  bool meets(std::size_t position, const MatchKey& key) const noexcept {
    return keys_meet(key_[position & wrap_], key);
  }
  std::uint64_t meeting(const PackedKey* keys, std::size_t count,
                        const MatchKey& key) const noexcept {
    const simd::Kernels& kernels = resources_->kernels;
    return (holds_wild() ? kernels.meeting : kernels.meeting_exact)(keys, count, key.bits,
                                                                    key.mask);
  }

  [[gnu::noinline]] std::size_t find_by_group(MatchKey key, std::size_t from) const noexcept {
    while (from < tail_) {
      const std::size_t within = (from & wrap_) % kGroup;
      const std::size_t slot = (from & wrap_) - within;
      const std::uint64_t group =
          (meeting(key_ + slot, kGroup, key) & ~hole_bits_[slot / kGroup]) >> within;
      if (group != 0) {
        const std::size_t position = from + static_cast<std::size_t>(std::countr_zero(group));
        return position < tail_ ? position : kNone;
      }
      from += kGroup - within;
    }
    return kNone;
  }

  [[gnu::noinline]] void erase_in_groups(std::size_t position) noexcept {
    if (position == head_) {
      ++head_;
    } else if (position + 1 == tail_) {
      --tail_;
    } else {
      // Only here: whoever takes entries off the front keeps positions behind them.
      holes_at(position) |= bit(position);
      if (++holes_ > length() / 2 && length() <= kMoved) close_holes();
    }
    if (holes_ != 0) trim();
  }

  // Holes at either end are no longer part of the window.
  void trim() noexcept {
    for (; head_ != tail_ && is_hole(head_); ++head_, --holes_) holes_at(head_) &= ~bit(head_);
    for (; head_ != tail_ && is_hole(tail_ - 1); --tail_, --holes_)
      holes_at(tail_ - 1) &= ~bit(tail_ - 1);
  }

  void close_holes() noexcept {
    remove_if([](const QueueEntry&) { return false; }, [](const QueueEntry&) {});
  }

  // The same in a window of one group, by a step for each entry behind the first hole: where
  // the holes are no processor can foresee.
  void close_group() noexcept {
    const auto in_place = static_cast<unsigned>(std::countr_zero(holes_));
    std::uint64_t moved =
        ~holes_ & ~std::uint64_t{0} >> (kGroup - length()) & ~std::uint64_t{0} << in_place;
    std::size_t to = head_ + in_place;
    for (; moved != 0; moved &= moved - 1, ++to) {
      const std::size_t i = (head_ + static_cast<unsigned>(std::countr_zero(moved))) & wrap_;
      key_[to & wrap_] = key_[i];
      payload_[to & wrap_] = payload_[i];
    }
    tail_ = to;
    holes_ = 0;
  }

  void use(PackedKey* key, Payload* payload, std::uint64_t* holes, std::size_t block_slots,
           std::size_t capacity) noexcept {
    key_ = key;
    payload_ = payload;
    hole_bits_ = holes;
    block_slots_ = block_slots;
    used_slots_ = capacity;
    set_capacity(capacity);
  }

  void set_capacity(std::size_t capacity) noexcept {
    wrap_ = capacity - 1;
    scattered_ = 0;
    if (capacity <= kGroup)
      repeats_ = capacity == kGroup ? 1 : ~std::uint64_t{0} / ((std::uint64_t{1} << capacity) - 1);
  }

  // All positions change.
  void renumber(std::size_t head, std::size_t tail) noexcept {
    wild_end_ = holds_wild() ? tail + 1 : 0;  // or the next one that comes is it
    head_ = head;
    tail_ = tail;
  }

  void release() noexcept {
    if (hole_bits_ == nullptr) return;
    if (is_reserved()) tell_out_of_use();
    resources_->memory.release(key_, block_bytes(block_slots_), block_bytes(used_slots_));
  }

  // Or as large: that block is told of twice, which does no harm.
  bool is_reserved() const noexcept { return block_slots_ == kLargest; }
  bool use_more(std::size_t slots) noexcept;
  void tell_in_use() noexcept {
    NodeMemory& memory = resources_->memory;
    memory.note_in_use(key_, used_slots_ * sizeof *key_);
    memory.note_in_use(payload_, used_slots_ * sizeof *payload_);
  }
  void tell_out_of_use() noexcept {
    NodeMemory& memory = resources_->memory;
    memory.note_out_of_use(key_);
    memory.note_out_of_use(payload_);
  }

  bool grow_into_block(std::size_t block_slots, std::size_t slots) noexcept;
  void unfold() noexcept;

  // The ends, and behind them a line of all else that a glance looks at.
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
  std::size_t room_ = kInline;
  std::size_t wrap_;  // capacity - 1, a power of two
  // Of one group: a bit for each hole, the lowest one for the oldest entry, which is none.
  // Of more: their number.
  std::uint64_t holes_ = 0;
  std::uint64_t scattered_ = 0;  // of one group: not 0 where the latest matches passed many
  PackedKey* key_;
  Payload* payload_;
  std::uint64_t repeats_;     // times a group of bits of one capacity: the word is full of them
  std::size_t wild_end_ = 0;  // behind the last entry with wildcards that came, or will come
  std::uint64_t* hole_bits_;  // nullptr: the inline slots, which are one group
  std::size_t block_slots_;   // there are addresses for
  std::size_t used_slots_;    // of these have ever been used
  QueueResources* resources_;
};

// Apart from the window, which then can lie where its owner wants it. Compared as a whole,
// whatever lies in them.
class alignas(kCacheLine) Window::Slots {
  friend Window;
  PackedKey key_[kInline] = {};
  Payload payload_[kInline];
};

inline Window::Window(QueueResources& resources, Slots& inline_slots) noexcept
    : resources_(&resources) {
  use(inline_slots.key_, inline_slots.payload_, nullptr, kInline, kInline);
}

inline bool Window::grow() noexcept {
  const std::size_t larger = 2 * capacity();
  if (has_many_holes()) {
    is_one_group() ? close_group() : close_holes();
    return true;
  }
  if (larger > block_slots_) {
    const bool reserves = larger >= kLarge && larger < kLargest;
    return (reserves && grow_into_block(kLargest, larger)) || grow_into_block(larger, larger);
  }
  if (larger > used_slots_ && !use_more(larger)) return false;
  unfold();
  return true;
}

// So many slots of the block.
inline bool Window::use_more(std::size_t slots) noexcept {
  if (!resources_->memory.count(block_bytes(slots) - block_bytes(used_slots_))) return false;
  std::fill_n(hole_bits_ + words(used_slots_), words(slots) - words(used_slots_), 0);
  tell_out_of_use();
  used_slots_ = slots;
  tell_in_use();
  return true;
}

// Doubles the ring in its block. What lies before the oldest entry came last, and follows it.
inline void Window::unfold() noexcept {
  const std::size_t slots = capacity();
  const std::size_t head = head_ & wrap_;
  if (slots == kGroup) {  // the holes of one group are marked by other bits than those of more
    hole_bits_[0] = std::rotl(holes_, static_cast<int>(head));
    holes_ = static_cast<std::uint64_t>(std::popcount(holes_));
  }
  std::copy_n(key_, head, key_ + slots);
  std::copy_n(payload_, head, payload_ + slots);
  for (std::size_t i = 0; i < head; i += kGroup) {
    const std::uint64_t moved = head - i < kGroup ? bit(head) - 1 : ~std::uint64_t{0};
    hole_bits_[(slots + i) / kGroup] = hole_bits_[i / kGroup] & moved;
    hole_bits_[i / kGroup] &= ~moved;
  }
  set_capacity(2 * slots);
  renumber(head, head + length());
}

// Wants is_mostly_past(). Slots behind the entries keep what was in them, which never counts.
inline void Window::shrink() noexcept {
  PackedEntry kept[kInline];
  std::size_t count = 0;
  for (std::size_t position = head_; position != tail_; ++position) {
    if (is_hole(position)) {
      holes_at(position) &= ~bit(position);
    } else {
      const std::size_t i = position & wrap_;
      kept[count++] = {key_[i], payload_[i].cookie, payload_[i].sequence};
    }
  }
  set_capacity(kInline);
  renumber(0, count);
  holes_ = 0;
  for (std::size_t i = 0; i < count; ++i) {
    key_[i] = kept[i].key;
    payload_[i] = {kept[i].cookie, kept[i].sequence};
  }
}

// Moves into a new block for so many slots, and uses some of them.
inline bool Window::grow_into_block(std::size_t block_slots, std::size_t slots) noexcept {
  NodeMemory& memory = resources_->memory;
  const std::size_t bytes = block_bytes(block_slots);
  auto* block = static_cast<PackedKey*>(
      block_slots == slots ? memory.allocate(bytes) : memory.reserve(bytes, block_bytes(slots)));
  if (block == nullptr) return false;
  auto* payload = reinterpret_cast<Payload*>(block + block_slots);
  auto* holes = reinterpret_cast<std::uint64_t*>(payload + block_slots);
  std::size_t to = 0;
  for (std::size_t from = head_; from != tail_; ++from) {
    if (is_hole(from)) continue;
    block[to] = key_[from & wrap_];
    payload[to++] = payload_[from & wrap_];
  }
  // What lies behind the newest entry is compared with it but never counts; to write it here
  // would touch every page of a long window.
  for (std::size_t i = to; i < std::min(slots, kGroup); ++i) block[i] = 0;
  std::fill_n(holes, words(slots), 0);
  release();
  use(block, payload, holes, block_slots, slots);
  if (is_reserved()) tell_in_use();
  renumber(0, to);
  holes_ = 0;
  return true;
}

}  // namespace tagline
