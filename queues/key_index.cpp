// SPDX-License-Identifier: BSD-3-Clause
#include "queues/key_index.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <vector>

namespace tagline {

namespace {

// A search pays for at least so much of a pass as this, and, beyond the second figure, for
// a part of what it has walked, which takes about as long: the first receives of a new class
// among a million messages take up to a millisecond each.
constexpr std::size_t kLeastPass = 64;
constexpr std::size_t kMuchPass = 128;
constexpr std::size_t kPassedPart = 512;
// A message pays for more than it adds: a pass ends without searches, too.
constexpr std::size_t kPassOfPush = 2;

// Items of a pass that are on their way from memory at once.
constexpr std::size_t kAhead = 16;

// Items of the views that may be gone: so many for each message, and others.
constexpr std::size_t kMostGone = 12;
constexpr std::size_t kManyGone = 1024;

// Slots of the views that are emptied at once; more are dropped.
constexpr std::size_t kMostForgotten = std::size_t{1} << 16;

}  // namespace

KeyIndex::KeyIndex(QueueResources& resources, QueueSide side) noexcept
    : ClassTables(resources, side),
      resources_(&resources),
      log_pool_(resources.memory, MessageLog::kBlockBytes) {
  log_no_more();
}

void KeyIndex::forget_log() noexcept {
  drop_views();
  clear_log();
  log_pool_.clear();
}

void KeyIndex::clear_log() noexcept {
  passed_.clear(log_pool_);
  log_.clear(log_pool_);
  logged_ = 0;
  set_passing(false);
}

void KeyIndex::set_hints(const Hints& hints) noexcept {
  if (hints.wildcards == wildcards_) return;
  wildcards_ = hints.wildcards;
  log_no_more();
  if (!wildcards_) forget_log();
}

// A message that its table has already. Where there is a log it wants room in it.
[[gnu::always_inline]] inline void KeyIndex::log_and_view(const QueueEntry& entry) noexcept {
  const IndexItem logged = {entry.key.bits, entry.sequence};
  if (is_logging()) {
    log_.push(log_pool_, logged);
    ++logged_;
  }
  if (viewed_ != 0) feed_complete(logged);
}

// Room for a message. Log and views only save time: where the memory ends they give way.
bool KeyIndex::reserve_message() noexcept {
  if (tables_[0].reserve() && (!is_logging() || log_.reserve(log_pool_))) return true;
  if (!is_logging() && views_ == nullptr) return false;
  forget_log();
  log_no_more();
  return tables_[0].reserve();
}

// An unexpected message: whether it has to be logged is seen when the index was empty,
// and once it is long.
bool KeyIndex::push_and_log(const QueueEntry& entry) noexcept {
  if (messages() == 0) {
    begin_anew(entry.sequence);
  } else if (messages() == log_from_size_) {
    start_log();
  }
  if (!reserve_message()) return false;
  push_to_class(0, entry);
  log_and_view(entry);
  if (is_logging() && (passing_ || is_long_log())) [[unlikely]] {
    if (logs_in_vain()) {
      clear_log();
      log_no_more(kManyUnlogged);
      return true;
    }
    set_passing(true);
    pass(kPassOfPush);
  }
  return true;
}

[[gnu::noinline, gnu::flatten]] bool KeyIndex::push_and_log_at_once(
    const QueueEntry& entry) noexcept {
  if (!is_logging() || passing_ || is_long_log() || !log_.has_room(log_pool_)) return false;
  if (toils()) [[unlikely]]
    return false;
  if (!push_to_class_at_once<QueueSide::unexpected>(0, entry)) return false;
  log_and_view(entry);
  return true;
}

bool KeyIndex::push_and_list_at_once(const QueueEntry& entry) noexcept {
  return logs() ? push_and_log_at_once(entry) : list_at_hand(entry);
}

// Every message has gone.
void KeyIndex::begin_anew(std::uint64_t first) noexcept {
  first_ = first;
  const std::size_t logged = logged_;
  const bool was_short = logged <= kMostUnlogged;
  clear_log();
  walked_ = 0;
  // A view that some of the log had not come to lacks nothing now.
  fed_ = wanted_;
  set_viewed(fed_);
  if (wild_search_) {
    if (was_short && !walks_log_) log_no_more();  // each class that was searched has a view
  } else if (is_logging() && logged <= kManyUnlogged) {
    log_no_more(was_short ? kMostUnlogged : kManyUnlogged);
  }
  if (was_short && !wild_search_) drop_views();
  forget_viewed();
  wild_search_ = walks_log_ = false;
}

bool KeyIndex::push_wild_at_once(const QueueEntry& entry) noexcept {
  const int key_class = class_of(entry.key);
  if (!push_to_class_at_once<QueueSide::posted>(key_class, entry)) return false;
  note_come(key_class);
  return true;
}

// Lists what is there. False: no memory, and nothing is logged.
bool KeyIndex::start_log() noexcept try {
  if (!log_by_place()) log_sorted();
  log_from_now();
  return true;
} catch (const std::bad_alloc&) {
  forget_log();
  return false;
}

// Sequence numbers are unique, and mostly those of this queue: then each has a place for a key in a
// ring. False: they are too far apart, or there is no memory for that, and nothing is logged.
bool KeyIndex::log_by_place() {
  const std::size_t places = std::bit_ceil(kLeastPlaces * messages());
  // Of the system, which supplies what is written to only.
  const std::unique_ptr<std::uint64_t[], decltype(&std::free)> keys(
      static_cast<std::uint64_t*>(std::calloc(places, sizeof(std::uint64_t))), &std::free);
  if (keys == nullptr) return false;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  tables_[0].for_each([&](std::uint64_t bits, const IndexItem& item) {
    if (first == 0 || is_older(item.sequence, first)) first = item.sequence;
    if (last == 0 || is_older(last, item.sequence)) last = item.sequence;
    keys[item.sequence & (places - 1)] = ~bits;  // no message has the key that would be 0
  });
  if (last - first >= places) return false;
  for (std::uint64_t sequence = first; sequence != last + 1; ++sequence) {
    const std::uint64_t key = keys[sequence & (places - 1)];
    if (key != 0) log({~key, sequence});
  }
  return true;
}

void KeyIndex::log_sorted() {
  std::vector<IndexItem> items;
  items.reserve(messages());
  tables_[0].for_each([&](std::uint64_t bits, const IndexItem& item) {
    items.push_back({bits, item.sequence});
  });
  std::sort(items.begin(), items.end(), [](const IndexItem& a, const IndexItem& b) {
    return is_older(a.sequence, b.sequence);
  });
  for (const IndexItem& item : items) log(item);
}

void KeyIndex::log(const IndexItem& message) {
  if (!log_.reserve(log_pool_)) throw std::bad_alloc();
  log_.push(log_pool_, message);
  ++logged_;
}

// Its oldest item is gone.
void KeyIndex::pop_gone(KeyTable::Slot* list) noexcept {
  views_->table.pop(list);
  // What went before its view was complete has not been counted.
  if (views_->gone > 0) --views_->gone;
}

// The oldest message of a list that is still there.
KeyTable::Slot* KeyIndex::front_of(std::uint64_t envelope, std::uint64_t& depth) noexcept {
  while (KeyTable::Slot* const list = views_->table.find(envelope)) {
    if (KeyTable::Slot* const slot = still_there(list->oldest)) return slot;
    if (is_older(list->oldest.sequence, first_)) {
      // Kept when there was no message: all of it has gone, and has been counted.
      views_->table.renew(list, list->oldest);
      views_->table.pop(list);
    } else {
      pop_gone(list);
    }
    ++depth;
  }
  return nullptr;
}

KeyIndex::Hit KeyIndex::find_by_view(const MatchKey& key, std::uint64_t& depth) noexcept {
  wild_search_ = true;
  if (views_ != nullptr) {
    views_->table.go_on_moving();
    note_asked();
  }
  const int key_class = class_of(key);
  const unsigned own = 1u << key_class;
  if ((fed_ & own) != 0) {
    ++depth;
    if (KeyTable::Slot* const front = front_of(envelope_of(key_class, key.bits), depth))
      return {front, 0, front->oldest.sequence};
    if (is_complete(key_class)) return {};
  }
  if (!is_logging()) {
    // However many wait, as where a promise of no wildcards has been withdrawn: this once it
    // takes a few times a walk, and then no search walks over all of them again.
    const bool may_log = wildcards_ && side_ == QueueSide::unexpected;
    if (!may_log || !start_log()) return find_by_walk(key, depth);
  }
  // Walk what no view lists: the log, and what was passed if the view is not fed.
  std::size_t walked = 0;
  Hit hit;
  const auto is_there = [&](const IndexItem& item) {
    KeyTable::Slot* const slot = still_there(item);
    if (slot == nullptr) return false;
    hit = {slot, 0, slot->oldest.sequence};
    return true;
  };
  const simd::Kernels& kernels = resources_->kernels;
  const bool passed_it = (fed_ & own) == 0 && passed_.find(kernels, key, walked, is_there);
  if (!passed_it) log_.find(kernels, key, walked, is_there);
  depth += walked;

  walked_ += walked;
  if (walked_ > kLeastPass && (wanted_ & own) == 0) {
    walked_ = 0;
    if (views_ == nullptr) views_.reset(new (std::nothrow) Views(resources_->memory));
    if (views_ != nullptr) wanted_ |= own;
  }
  if ((wanted_ & own) != 0) {
    set_passing(true);
    pass(std::clamp(walked, kLeastPass, std::max(kMuchPass, walked / kPassedPart)));
  } else {
    walks_log_ = true;
  }
  return hit;
}

// A message, where receives with wildcards wait.
Glance KeyIndex::take_among(std::uint64_t bits, void** cookie) noexcept {
  if (!tells_among<QueueSide::posted>()) return Glance::unknown;
  const Hit found = look_among<QueueSide::posted>(bits);
  if (!found) return Glance::none;
  take_found(found, cookie);
  return Glance::taken;
}

[[gnu::flatten]] void KeyIndex::take_found(Listed found, void** cookie) noexcept {
  note_asked();
  const std::uint64_t envelope = found.list_->key;
  views_->table.pop(found.list_);
  if (messages() >= kFewListed)
    return take_viewed_of_many(found.slot_, viewed_ & ~(1u << class_of_envelope(envelope)), cookie);
  note_stale(found.slot_->key, /*left_one=*/true);
  take_oldest(found.slot_, cookie);
}

// Takes a message that all complete views list.
[[gnu::flatten]] void KeyIndex::take_viewed(KeyTable::Slot* slot, void** cookie) noexcept {
  if (messages() >= kFewListed) return take_viewed_of_many(slot, viewed_, cookie);
  note_stale(slot->key);
  take_oldest(slot, cookie);
}

// Takes a message that views of these classes list; where it is the oldest of its list, it leaves
// that. What calls nothing, and behind that what may: a list that goes on, or whose slot has
// neighbours.
[[gnu::noinline, gnu::flatten]] void KeyIndex::take_viewed_of_many(KeyTable::Slot* slot,
                                                                   unsigned views,
                                                                   void** cookie) noexcept {
  KeyTable& table = views_->table;
  const std::uint64_t bits = slot->key;
  if (table.is_moving() || table.empty()) [[unlikely]]
    return take_viewed_further(slot, views, cookie);
  const unsigned left = for_each_class(of_tag(bits, views), [&](int c) {
    KeyTable::Slot* const list = table.look_now(envelope_of(c, bits));
    if (list == nullptr || list->oldest.sequence != slot->oldest.sequence) {
      ++views_->gone;
      return true;
    }
    return table.pop_at_hand(list);
  });
  if (left != 0) return take_viewed_further(slot, left, cookie);
  take_oldest(slot, cookie);
}

[[gnu::noinline, gnu::flatten]] void KeyIndex::take_viewed_further(KeyTable::Slot* slot,
                                                                   unsigned views,
                                                                   void** cookie) noexcept {
  leave_views(slot->key, slot->oldest.sequence, views);
  take_oldest(slot, cookie);
}

void KeyIndex::leave_views(std::uint64_t bits, std::uint64_t sequence, unsigned views) noexcept {
  KeyTable& table = views_->table;
  if (table.empty()) return;
  for_each_class(of_tag(bits, views), [&](int c) {
    KeyTable::Slot* const list = table.look(envelope_of(c, bits));
    if (list != nullptr && list->oldest.sequence == sequence) {
      table.pop(list);
    } else {
      ++views_->gone;
    }
    return true;
  });
}

// Lists a message. Without memory, or where they list mostly what is gone, the views are of
// no more use.
[[gnu::noinline, gnu::flatten]] void KeyIndex::feed(unsigned classes, IndexItem item) noexcept {
  KeyTable& table = views_->table;
  const bool sweeps = has_many_gone();
  for (unsigned left = of_tag(item.value, classes); left != 0; left &= left - 1) {
    if (!table.reserve(kClasses - 1)) return drop_views();
    const std::uint64_t envelope = envelope_of(std::countr_zero(left), item.value);
    KeyTable::Slot* const list = table.find(envelope);
    if (list == nullptr) {
      table.push(envelope, item);
    } else if (is_older(list->oldest.sequence, first_)) {
      table.renew(list, item);
    } else {
      table.push_behind(list, item);
      // One in, two that are gone out: so a view that is seldom asked stays a few times as long as
      // the queue, however long the oldest message of a list stays.
      for (int out = 0; sweeps && out < 2 && still_there(list->oldest) == nullptr; ++out) {
        pop_gone(list);
      }
    }
  }
  if (views_->gone > kMostGone * messages() + kManyGone) drop_views();
}

// When every message has gone: what complete views list is gone, too. It stays until a list is
// used again, as most are where a program repeats itself, or so much of it has gathered that a walk
// over the table is worth it. But not where so many waited that some have left their lists and some
// have not: which, nobody could foresee. And not where messages come back that have been here.
void KeyIndex::forget_viewed() noexcept {
  if (views_ == nullptr) return;
  KeyTable& table = views_->table;
  views_->listed = views_->asked = 0;
  views_->kept += std::exchange(views_->gone, 0);
  const bool much =
      views_->kept > table.capacity() || table.is_nearly_full() || tables_[0].peak() > kFewListed;
  if (!much && is_older(last_gone_, first_)) return;
  if (table.capacity() > kMostForgotten) return drop_views();
  views_->kept = 0;
  table.forget();
}

void KeyIndex::drop_views() noexcept {
  views_.reset();
  wanted_ = fed_ = 0;
  set_viewed(0);
}

// What pass() will look at soon is on its way from memory meanwhile.
inline void KeyIndex::look_ahead() const noexcept {
  const std::uint64_t bits = log_.bits_ahead(kAhead);
  tables_[0].prefetch(bits);
  for_each_class(fed_ & ~viewed_, [&](int c) {
    views_->table.prefetch(envelope_of(c, bits));
    return true;
  });
}

// Moves up to this many items from the log to what has been passed.
void KeyIndex::pass(std::size_t items) noexcept {
  if (passed_.empty()) {
    fed_ = wanted_;  // from the beginning: whoever waits for it is fed from here on
  }
  for (; items > 0 && !log_.empty(); --items) {
    look_ahead();
    const IndexItem item = log_.front();
    if (still_there(item)) {
      if (passed_.empty() && !is_long_log() && wanted_ == viewed_) {
        set_passing(false);  // what was gone was all at the front
        return;
      }
      if (!passed_.reserve(log_pool_)) return;
      passed_.push(log_pool_, item);
      if (fed_ != viewed_) feed(fed_ & ~viewed_, item);
    } else {
      --logged_;
    }
    log_.pop(log_pool_);
  }
  if (!log_.empty()) return;
  log_ = passed_;
  passed_ = {};
  set_viewed(fed_);
  set_passing(wanted_ != fed_);  // some came too late for this pass
  // Where all that are searched have views, a short queue needs no log.
  if (!passing_ && !walks_log_ && messages() <= kMostUnlogged / 2) {
    log_.clear(log_pool_);
    logged_ = 0;
    log_no_more();
  }
}

}  // namespace tagline
