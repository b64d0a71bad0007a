// SPDX-License-Identifier: BSD-3-Clause
#include "queues/key_index.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <vector>

namespace tagline {

namespace {

// A search pays for at least so much of a pass as this, and, beyond the second figure, for
// a part of what it has walked: the first receive of a new class among a million messages
// takes milliseconds.
constexpr std::size_t kLeastPass = 64;
constexpr std::size_t kMuchPass = 2048;
constexpr std::size_t kPassedPart = 16;

// Items that a view may list beyond half as many as there are messages, and beyond four times
// as many.
constexpr std::size_t kFewGone = 64;
constexpr std::size_t kManyGone = 1024;

// Slots of a view that are emptied at once; a larger one is dropped.
constexpr std::size_t kMostForgotten = std::size_t{1} << 15;

}  // namespace

KeyIndex::KeyIndex(QueueResources& resources, QueueSide side) noexcept
    : tables_{KeyTable(resources.memory, resources.pool),
              KeyTable(resources.memory, resources.pool),
              KeyTable(resources.memory, resources.pool),
              KeyTable(resources.memory, resources.pool)},
      side_(side),
      resources_(&resources) {}

KeyIndex::~KeyIndex() { forget_log(); }

void KeyIndex::forget_log() const noexcept {
  for (int c = 1; c < kClasses; ++c) drop_view(c);
  if (!resources_->pool.is_doomed()) clear_log();
}

void KeyIndex::clear_log() const noexcept {
  passed_.clear(resources_->pool);
  log_.clear(resources_->pool);
  logged_ = 0;
  passing_ = false;
}

void KeyIndex::set_hints(const Hints& hints) noexcept {
  wildcards_ = hints.wildcards;
  if (wildcards_) return;
  logging_ = false;
  forget_log();
}

// A message that its table has already. False: no memory, and its table has it no more.
[[gnu::always_inline]] inline bool KeyIndex::log_and_view(const QueueEntry& entry) noexcept {
  const IndexItem logged = {entry.key.bits, entry.sequence};
  if (logging_) {
    // The table may have taken the node that there was.
    if (!resources_->pool.has_node() && !resources_->pool.grow()) [[unlikely]] {
      tables_[0].erase(tables_[0].find(entry.key.bits), entry.sequence);
      return false;
    }
    log_.push(resources_->pool, logged);
    ++logged_;
  }
  if (viewed_ != 0) feed_complete(logged);
  ++size_;
  return true;
}

// An unexpected message: whether it has to be logged is seen when the index was empty,
// and once it is long.
bool KeyIndex::push_and_log(const QueueEntry& entry) noexcept {
  if (size_ == 0) {
    begin_anew(entry.sequence);
  } else if (size_ == kMostUnlogged && wildcards_ && !logging_) {
    start_log();
  }
  if (!tables_[0].reserve()) return false;
  tables_[0].push(entry.key.bits, item_of(entry));
  if (!log_and_view(entry)) return false;
  if (logging_ && (passing_ || is_long_log())) [[unlikely]] {
    passing_ = true;
    pass(4);
  }
  return true;
}

bool KeyIndex::push_and_log_at_once(const QueueEntry& entry) noexcept {
  if (!logging_ || passing_ || is_long_log()) return false;
  return tables_[0].push_at_once(entry.key.bits, item_of(entry)) && log_and_view(entry);
}

// Every message has gone.
void KeyIndex::begin_anew(std::uint64_t sequence) noexcept {
  const bool was_short = logged_ <= kMostUnlogged;
  clear_log();
  walked_ = 0;
  first_ = sequence;
  // A view that some of the log had not come to lacks nothing now.
  for (int c = 1; c < kClasses; ++c) {
    if (views_[c] == nullptr) continue;
    views_[c]->fed = true;
    viewed_ |= 1u << c;
  }
  if (was_short && !walks_log_) logging_ = false;  // each class that was searched has a view
  if (was_short && !wild_search_) {
    for (int c = 1; c < kClasses; ++c) drop_view(c);
  }
  forget_viewed();
  wild_search_ = walks_log_ = false;
}

bool KeyIndex::push_wild_at_once(const QueueEntry& entry) noexcept {
  const int key_class = class_of(entry.key);
  if (!tables_[key_class].push_at_once(entry.key.bits, item_of(entry))) return false;
  note_come(key_class);
  return true;
}

void KeyIndex::find_wild_entry(const MatchKey& key, Hit& best,
                               std::uint64_t& depth) const noexcept {
  for (unsigned left = wild_classes_of(key); left != 0; left &= left - 1) {
    const int c = std::countr_zero(left);
    const Hit hit = find_in(c, key.bits & kClassBits[c], depth);
    if (hit && (!best || older(hit.sequence(), best.sequence()))) best = hit;
  }
}

// What is there, oldest first.
std::vector<IndexItem> KeyIndex::items_in_order() const {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  tables_[0].for_each([&](std::uint64_t, const IndexItem& item) {
    if (first == 0 || older(item.sequence, first)) first = item.sequence;
    if (last == 0 || older(last, item.sequence)) last = item.sequence;
  });
  // Sequence numbers are unique, and mostly those of this queue: then each item has a place.
  const std::uint64_t places = last - first + 1;
  const bool dense = places <= 4 * size_;
  std::vector<IndexItem> items(dense ? places : 0);
  tables_[0].for_each([&](std::uint64_t bits, const IndexItem& item) {
    const IndexItem listed = {bits, item.sequence};
    if (dense) {
      items[item.sequence - first] = listed;
    } else {
      items.push_back(listed);
    }
  });
  if (dense) {
    std::erase_if(items, [](const IndexItem& item) { return item.sequence == 0; });
  } else {
    std::sort(items.begin(), items.end(),
              [](const IndexItem& a, const IndexItem& b) { return older(a.sequence, b.sequence); });
  }
  return items;
}

// Lists what is there. False: no memory, and nothing is logged.
bool KeyIndex::start_log() const noexcept try {
  const std::vector<IndexItem> items = items_in_order();
  NodePool& pool = resources_->pool;
  for (const IndexItem& item : items) {
    if (!pool.has_node() && !pool.grow()) {
      forget_log();
      return false;
    }
    log_.push(pool, item);
    ++logged_;
  }
  logging_ = true;
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

KeyIndex::Hit KeyIndex::find_by_walk(const MatchKey& key, std::uint64_t& depth) const noexcept {
  bool found = false;
  QueueEntry oldest;
  for_each([&](const QueueEntry& entry) {
    ++depth;
    if (!keys_meet(key, entry.key) || (found && older(oldest.sequence, entry.sequence))) return;
    oldest = entry;
    found = true;
  });
  return found ? Hit(tables_[0].find(oldest.key.bits), 0, oldest.sequence) : Hit();
}

// The oldest message that a view lists under these bits and that is still there.
[[gnu::always_inline]] inline KeyIndex::Front KeyIndex::front_of(
    View& view, std::uint64_t bits) const noexcept {
  while (KeyTable::Slot* listed = view.table.find(bits)) {
    if (KeyTable::Slot* slot = still_there(listed->oldest)) return {listed, slot};
    view.table.pop(listed);
    --view.items;
  }
  return {nullptr, nullptr};
}

KeyIndex::Hit KeyIndex::find_by_view(const MatchKey& key, std::uint64_t& depth) const noexcept {
  wild_search_ = true;
  const int key_class = class_of(key);
  View*& view = views_[key_class];
  if (view != nullptr && view->fed) {
    ++depth;
    const Front front = front_of(*view, key.bits & kClassBits[key_class]);
    if (front.slot != nullptr) return {front.slot, 0, front.slot->oldest.sequence};
    if (is_complete(key_class)) return {};
  }
  if (!logging_) {
    const bool may_log = wildcards_ && size_ <= kMostUnlogged && side_ == QueueSide::unexpected;
    if (!may_log || !start_log()) return find_by_walk(key, depth);
  }
  // Walk what no view lists: the log, and what was passed if the view is not fed.
  std::size_t walked = 0;
  Hit hit;
  const auto look = [&](const IndexItem& item) {
    ++walked;
    if (!keys_meet(key, {item.value, kSourceMask | kTagMask})) return true;
    KeyTable::Slot* slot = still_there(item);
    if (slot == nullptr) return true;
    hit = {slot, 0, slot->oldest.sequence};
    return false;
  };
  if (view == nullptr || !view->fed) passed_.for_each(look);
  if (!hit) log_.for_each(look);
  depth += walked;

  walked_ += walked;
  if (walked_ > kLeastPass && view == nullptr) {
    walked_ = 0;
    view = new (std::nothrow) View(resources_->memory);
  }
  if (view != nullptr) {
    passing_ = true;
    pass(std::clamp(walked, kLeastPass, std::max(kMuchPass, walked / kPassedPart)));
  } else {
    walks_log_ = true;
  }
  return hit;
}

// A message, where receives with wildcards wait.
Glance KeyIndex::take_among_wild(MatchKey key, void** cookie) noexcept {
  KeyTable::Slot* best = tables_[0].find(key.bits);
  int its_class = 0;
  for (unsigned left = wild_classes_of(key); left != 0; left &= left - 1) {
    const int c = std::countr_zero(left);
    KeyTable::Slot* const slot = tables_[c].find(key.bits & kClassBits[c]);
    if (slot == nullptr) continue;
    if (best != nullptr && older(best->oldest.sequence, slot->oldest.sequence)) continue;
    best = slot;
    its_class = c;
  }
  if (best == nullptr) {
    in_order_ = false;
    return Glance::none;
  }
  take_oldest(best, cookie, its_class);
  note_left(its_class);
  return Glance::taken;
}

// Takes the message out of the view, too, where it would be passed by later searches.
Glance KeyIndex::take_by_view(MatchKey key, void** cookie) noexcept {
  const int key_class = class_of(key);
  if (!is_complete(key_class)) return Glance::unknown;
  View* const view = views_[key_class];
  wild_search_ = true;
  const Front front = front_of(*view, key.bits & kClassBits[key_class]);
  if (front.slot == nullptr) {
    in_order_ = false;
    return Glance::none;
  }
  view->table.pop(front.listed);
  --view->items;
  const unsigned others = viewed_ & ~(1u << key_class);
  if (others != 0) leave_views(front.slot->key, front.slot->oldest.sequence, others);
  take_oldest(front.slot, cookie);
  return Glance::taken;
}

// Takes a message that complete views list.
void KeyIndex::take_viewed(KeyTable::Slot* slot, void** cookie) noexcept {
  leave_views(slot->key, slot->oldest.sequence, viewed_);
  take_oldest(slot, cookie);
}

// views: those of these classes, complete ones.
void KeyIndex::leave_views(std::uint64_t bits, std::uint64_t sequence, unsigned views) noexcept {
  for (; views != 0; views &= views - 1) {
    const int c = std::countr_zero(views);
    View* const view = views_[c];
    KeyTable::Slot* const listed = view->table.find(bits & kClassBits[c]);
    if (listed == nullptr || listed->oldest.sequence != sequence) continue;
    view->table.pop(listed);
    --view->items;
  }
}

// False: no memory, or mostly items that are gone; the view is of no more use.
[[gnu::always_inline]] inline bool KeyIndex::feed(View& view, int key_class,
                                                  const IndexItem& item) const noexcept {
  if ((key_class & 2) != 0 && key_tag({item.value, 0}) < 0) return true;
  const std::uint64_t bits = item.value & kClassBits[key_class];
  if (!view.table.push_at_once(bits, item) && !view.push(bits, item)) return false;
  ++view.items;
  return view.items <= size_ + size_ / 2 + kFewGone || trim(view, bits);
}

// One in, one that is gone out: so a view that is seldom asked stays about as long as the
// queue. False: that did not suffice.
bool KeyIndex::trim(View& view, std::uint64_t bits) const noexcept {
  KeyTable::Slot* const listed = view.table.find(bits);
  if (still_there(listed->oldest) == nullptr) {
    view.table.pop(listed);
    --view.items;
  }
  return view.items <= 4 * size_ + kManyGone;
}

void KeyIndex::feed_complete(const IndexItem& item) const noexcept {
  for (unsigned left = viewed_; left != 0; left &= left - 1) {
    const int c = std::countr_zero(left);
    if (!feed(*views_[c], c, item)) drop_view(c);
  }
}

// When every message has gone: what complete views list is gone, too.
void KeyIndex::forget_viewed() noexcept {
  for (unsigned left = viewed_; left != 0; left &= left - 1) {
    const int c = std::countr_zero(left);
    View* const view = views_[c];
    if (view->items == 0) continue;
    if (view->table.capacity() > kMostForgotten) {
      drop_view(c);
    } else {
      view->table.forget();
      view->items = 0;
    }
  }
}

void KeyIndex::drop_view(int key_class) const noexcept {
  delete views_[key_class];
  views_[key_class] = nullptr;
  viewed_ &= ~(1u << key_class);
}

bool KeyIndex::view_waits() const noexcept {
  for (int c = 1; c < kClasses; ++c) {
    if (views_[c] != nullptr && !is_complete(c)) return true;
  }
  return false;
}

// Moves up to this many items from the log to what has been passed.
void KeyIndex::pass(std::size_t items) const noexcept {
  if (passed_.empty()) {
    // From the beginning: whoever waits for it is fed from here on.
    for (View* view : views_) {
      if (view != nullptr) view->fed = true;
    }
  }
  NodePool& pool = resources_->pool;
  for (; items > 0 && !log_.empty(); --items) {
    const IndexItem item = log_.front();
    if (still_there(item)) {
      if (passed_.empty() && !is_long_log() && !view_waits()) {
        passing_ = false;  // what was gone was all at the front
        return;
      }
      if (!pool.has_node() && !pool.grow()) return;
      passed_.push(pool, item);
      for (int c = 1; c < kClasses; ++c) {
        View* view = views_[c];
        if (view != nullptr && view->fed && !is_complete(c) && !feed(*view, c, item)) drop_view(c);
      }
    } else {
      --logged_;
    }
    log_.pop(pool);
  }
  if (!log_.empty()) return;
  log_ = passed_;
  passed_ = {};
  passing_ = false;
  for (int c = 1; c < kClasses; ++c) {
    if (views_[c] == nullptr) continue;
    if (views_[c]->fed) {
      viewed_ |= 1u << c;
    } else {
      passing_ = true;  // it came too late for this pass
    }
  }
  // Where all that are searched have views, a short queue needs no log.
  if (!passing_ && !walks_log_ && size_ <= kMostUnlogged / 2) {
    log_.clear(pool);
    logged_ = 0;
    logging_ = false;
  }
}

}  // namespace tagline
