// SPDX-License-Identifier: BSD-3-Clause
#include "queues/key_table.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace tagline {

// Of the home of a key, counted from where moving began.
inline std::size_t KeyTable::old_place_of(std::uint64_t key) const noexcept {
  return (static_cast<std::size_t>(old_.home(key) - old_.slots) - start_) & old_.mask();
}

// Whether a key with this home is in the old table, if it is anywhere.
inline bool KeyTable::is_left_in_old(std::size_t place) const noexcept {
  return place >= moved_ && place < strayed_;
}

// The slot of the old table with a key of this home, or the empty one where it would be; nullptr:
// neither before the end.
KeyTable::Slot* KeyTable::find_in_old(std::size_t place, std::uint64_t key) const noexcept {
  for (std::size_t i = std::max(place, moved_); i <= old_.mask(); ++i) {
    Slot* const slot = old_.slots + ((start_ + i) & old_.mask());
    if (slot->oldest.sequence == 0 || slot->key == key) return slot;
  }
  return nullptr;
}

KeyTable::Slot* KeyTable::look_while_moving(std::uint64_t key) const noexcept {
  const std::size_t place = old_place_of(key);
  if (!is_left_in_old(place)) {
    if (Slot* const slot = look_now(key)) return slot;
  }
  Slot* const slot = find_in_old(place, key);
  return slot == nullptr || slot->oldest.sequence == 0 ? nullptr : slot;
}

void KeyTable::push_while_moving(std::uint64_t key, const IndexItem& item) noexcept {
  Slot* slot = look_while_moving(key);
  if (slot == nullptr) {
    const std::size_t place = old_place_of(key);
    if (place >= moved_) {
      slot = find_in_old(place, key);
      if (slot == nullptr) strayed_ = std::min(strayed_, place);
    }
    if (slot == nullptr) slot = place_of(key);
  }
  put(slot, key, item);
  move_some(kMovesPerCall);
}

void KeyTable::pop_further(Slot* slot) noexcept {
  if (!slot->more.empty()) {
    slot->oldest = slot->more.pop(*pool_);
    return;
  }
  --size_;
  if (in_old(slot)) {
    slot->key = kGone;
  } else {
    note_gap(slot->oldest.sequence);
    close_gap(slot);
  }
  move_some(kMovesPerCall);
}

// sequence: of the item that goes. Two of these tell how many came between them, give or take as
// many as wait, where they do not go in order.
void KeyTable::note_gap(std::uint64_t sequence) noexcept {
  if (now_.gaps++ == 0) gaps_since_ = static_cast<std::uint32_t>(sequence);
  if (!has_many_gaps()) return;
  const std::size_t capacity = now_.capacity();
  const auto came = static_cast<std::int32_t>(static_cast<std::uint32_t>(sequence) - gaps_since_);
  // Not where so few wait that it would shrink again.
  if (capacity < kMostForGaps && came < static_cast<std::int32_t>(capacity) &&
      peak() >= limit_of(2 * capacity) / 8) {
    room_ = 0;
  } else {
    now_.gaps = 0;
  }
}

bool KeyTable::make_room(std::size_t keys) noexcept {
  if (!pool_->has_node() && !pool_->grow()) return false;
  if (now_.slots != nullptr && has_many_gaps() && !is_moving()) {
    now_.gaps = 0;
    start_moving(now_.capacity() * 2);
  }
  if (size_ + (keys - 1) < limit_) {
    set_room(keys);
    return true;
  }
  // Moving is long done when the new table is full: it grew by at least as many
  // keys as calls were needed.
  move_some(old_.capacity());
  if (start_moving(now_.slots == nullptr ? kLeastCapacity : now_.capacity() * 2)) return true;
  // No memory for a larger table: this one serves, more slowly, until it is nearly full.
  if (now_.slots == nullptr || size_ >= now_.capacity() / 8 * 7) return false;
  limit_ = size_ + 1;
  set_room(1);
  return true;
}

void KeyTable::set_room(std::size_t keys) noexcept {
  while (size_at(peak_step_) < size_ + keys) ++peak_step_;
  room_ = is_moving() ? 0 : std::min(limit_, size_at(peak_step_));
}

void KeyTable::expect(std::size_t keys) noexcept {
  keys = std::min(keys, kMostExpected);
  if (size_ != 0 || keys <= limit_of(now_.capacity())) return;
  abandon();
  start_moving(capacity_for(keys));
}

bool KeyTable::start_moving(std::size_t capacity) noexcept {
  auto* slots = static_cast<Slot*>(pool_->memory().allocate_zeroed(capacity * sizeof(Slot)));
  if (slots == nullptr) return false;
  old_ = now_;
  start_ = moved_ = discarded_ = 0;
  strayed_ = old_.capacity();
  now_ = {slots, slots + capacity - 1, shift_of(capacity), 0};
  limit_ = limit_of(capacity);
  set_room(1);
  if (old_.slots == nullptr) {
    NodeMemory::supply(slots, capacity * sizeof(Slot));
    return true;
  }
  further_ |= kMoves;
  // There is an empty slot: no table is ever full.
  while (old_.slots[start_].oldest.sequence != 0) ++start_;
  move_some(kMovesPerCall);
  return true;
}

void KeyTable::renew_peak(std::uint64_t newest) noexcept {
  const std::size_t capacity = now_.capacity();
  if (is_moving()) return;
  peak_since_ = newest;
  const bool is_sparse = capacity > kLeastCapacity && peak() < limit_ / 8;
  peak_step_before_ = std::exchange(peak_step_, 0);
  if (!is_sparse || !start_moving(capacity / 2)) set_room(1);
}

void KeyTable::move_some(std::size_t slots) noexcept {
  if (old_.slots == nullptr) return;
  const std::size_t mask = old_.mask();
  const bool grows = now_.capacity() > old_.capacity();
  for (; slots > 0 && moved_ <= mask; --slots, ++moved_) {
    if (grows && 2 * moved_ % kSuppliedSlots == 0) supply_next();
    Slot& slot = old_.slots[(start_ + moved_) & mask];
    if (slot.oldest.sequence == 0) continue;
    if (!is_gone(slot)) insert(slot);
    slot.key = kGone;
  }
  if (moved_ > mask) {
    end_moving();
    set_room(1);
  } else if (moved_ - discarded_ >= kDiscardedSlots) {
    discard_moved();
  }
}

// What is about to move into a larger table has its home there in twice as many slots, in the
// same order, or in the next few behind them.
void KeyTable::supply_next() const noexcept {
  const std::size_t wanted = std::min(kSuppliedSlots, now_.capacity());
  const std::size_t begin = 2 * (start_ + moved_) & now_.mask();
  const std::size_t until_end = std::min(wanted, now_.capacity() - begin);
  NodeMemory::supply(now_.slots + begin, until_end * sizeof(Slot));
  NodeMemory::supply(now_.slots, (wanted - until_end) * sizeof(Slot));
}

// Nobody looks at a slot that was moved, and discarded slots read as empty. To
// give a large table back in one call would stall that call.
void KeyTable::discard_moved() noexcept {
  const std::size_t begin = (start_ + discarded_) & old_.mask();
  const std::size_t slots = std::min(moved_ - discarded_, old_.capacity() - begin);
  NodeMemory::discard(old_.slots + begin, slots * sizeof(Slot));
  discarded_ += slots;
}

void KeyTable::insert(const Slot& content) noexcept { put_into(place_of(content.key), content); }

// The place keeps its mark.
inline void KeyTable::put_into(Slot* slot, const Slot& content) noexcept {
  slot->key = content.key;
  slot->oldest = content.oldest;
  slot->more.take_over(content.more);
}

// Moves back whatever a search would no longer find behind the hole: what has its home not
// between the hole and where it is. As differences that wrap this holds at the table's end, too.
void KeyTable::close_gap(Slot* hole) noexcept {
  const auto behind_hole = [&](const Slot* slot) {
    return reinterpret_cast<std::uintptr_t>(slot) - reinterpret_cast<std::uintptr_t>(hole);
  };
  for (Slot* slot = hole; slot->more.is_marked();) {
    slot = now_.after(slot);
    if (slot->oldest.sequence == 0) break;
    if (behind_hole(now_.home(slot->key)) - 1 < behind_hole(slot)) continue;
    put_into(hole, *slot);
    hole = slot;
  }
  hole->oldest.sequence = 0;
  hole->more = {};
}

void KeyTable::end_moving() noexcept {
  release(old_);
  further_ &= static_cast<std::uint8_t>(~kMoves);
}

void KeyTable::release(Table& table) const noexcept {
  if (table.slots == nullptr) return;
  pool_->memory().release(table.slots, table.capacity() * sizeof(Slot));
  table = {};
}

void KeyTable::forget() noexcept {
  constexpr std::size_t kStride = 8;  // most slots are empty, and nearly all of these together
  static_assert(kLeastCapacity % kStride == 0);
  for (Table* table : {&now_, &old_}) {
    const std::size_t capacity = table->capacity();
    for (std::size_t i = 0; i < capacity; i += kStride) {
      Slot* const slots = table->slots + i;
      std::uint64_t any = 0;
      for (std::size_t k = 0; k < kStride; ++k) any |= slots[k].oldest.sequence;
      if (any == 0) continue;
      for (std::size_t k = 0; k < kStride; ++k) {
        if (slots[k].oldest.sequence != 0 && !is_gone(slots[k])) slots[k].more.clear(*pool_);
        slots[k].oldest.sequence = 0;
        slots[k].more = {};
      }
    }
  }
  end_moving();
  size_ = 0;
  set_room(1);
}

void KeyTable::clear() noexcept {
  if (size_ > 0 && !pool_->is_doomed()) forget();
  abandon();
}

}  // namespace tagline
