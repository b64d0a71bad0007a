// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "queues/class_tables.hpp"
#include "queues/key_table.hpp"
#include "queues/match_key.hpp"
#include "queues/message_log.hpp"
#include "queues/resources.hpp"

namespace tagline {

// Finds the oldest of any number of entries in constant time, wildcards included. Entries are in
// the tables of their classes.
//
// Unexpected entries are messages, so all are in class 0, and a receive with a
// wildcard needs another way in: a view, which lists the messages of its class
// as (bits, sequence) under the bits that the class insists on. A view exists
// only once receives of its class have passed more than a few in vain. All views
// share a table, from the envelopes of such receives to their lists.
// A message that is taken leaves each list where it is the oldest, unless few are left. In others
// it stays until it comes to the front and is found gone; views or a log of mostly such items are
// made anew.
//
// Views are filled from a log (message_log.hpp), the messages in the order they arrived. A short
// queue has none, nor does a longer one that was filled and emptied, or in which as many came and
// went, without such a search: the first search with a wildcard writes it, and from then on it is
// kept until every class that is searched has its view, or as before. When the queue has emptied,
// so has the log; of the lists each begins anew when it is used again. A pass takes items off the
// log's front, drops those that are gone, and puts the others behind what it has passed and into
// the views that want them:
//
//   passed_: older items, in every complete view    log_: newer items
//
// A search that finds nothing in its (possibly unfinished) view walks the rest
// of the log, and then pays for a stretch of the pass in proportion.
//
// Where no wildcards can come, or without memory for a log, there are neither log
// nor views; a receive that has a wildcard nevertheless walks over all messages.
//
// Guarantees: find is O(1) expected but for the walks above, each of which
// shortens the next; push and erase are O(1) expected. Sequence numbers may wrap.
class KeyIndex : public ClassTables {
 public:
  KeyIndex(QueueResources& resources, QueueSide side) noexcept;

  // Without wildcards there is no log. Takes effect at once for fewer of them, and for more
  // with the first search that has one.
  void set_hints(const Hints& hints) noexcept;

  // See KeyTable.
  void let_shrink(std::uint64_t newest, std::size_t cycle) noexcept {
    ClassTables::let_shrink(newest, cycle);
    if (views_ != nullptr) views_->table.let_shrink(newest, cycle);
  }

  // Receives with wildcards have asked for lists of messages.
  bool has_views() const noexcept { return views_ != nullptr; }
  // Few messages have waited for a while, others come and go, and each is listed for searches that
  // are not too rare: to compare all takes less.
  bool toils() const noexcept {
    return messages() <= kFewInLists && viewed_ != 0 &&
           (messages() <= kFewInList || !has_one_view()) &&
           views_->listed > 4 * messages() + kFewInLists &&
           views_->listed < kMostListed * views_->asked && tables_[0].capacity() <= kMostToil;
  }

  // tells() and look() where there is more than exact keys: receives with wildcards wait, or views
  // list the messages.
  template <QueueSide side>
  bool tells_among() const noexcept {
    return side == QueueSide::posted ? !is_moving() : !tables_[0].is_moving();
  }
  template <QueueSide side>
  auto look_among(std::uint64_t bits) noexcept {
    if constexpr (side == QueueSide::posted) return look_among_wild(bits);
    if constexpr (side == QueueSide::unexpected) return Viewed{look(bits)};
  }
  struct Viewed : Found {};
  void take_found(Viewed found, void** cookie) noexcept { take_viewed(found.slot, cookie); }
  template <QueueSide side>
  bool take_at_hand(Viewed found, void** cookie) noexcept {
    if (messages() >= kFewListed || !KeyTable::pops_now(found.slot)) return false;
    take_now<side>(found.slot, cookie);
    note_stale(found.bits);
    return true;
  }
  using ClassTables::take_at_hand;
  using ClassTables::take_found;

  // The oldest message that a receive with wildcards accepts, if a list tells; envelope: the
  // receive's bits, see kOpenSource. Otherwise the answer is unknown, and find() tells.
  class Listed {
   public:
    Listed() = default;
    explicit operator bool() const noexcept { return slot_ != nullptr; }

   private:
    friend KeyIndex;
    Listed(KeyTable::Slot* list, KeyTable::Slot* slot) noexcept : list_(list), slot_(slot) {}
    KeyTable::Slot* list_ = nullptr;  // of the views
    KeyTable::Slot* slot_ = nullptr;  // of class 0
  };
  Listed look_listed(std::uint64_t envelope) const noexcept {
    if (viewed_ == 0 || views_->table.is_moving() || tables_[0].is_moving()) return {};
    if (views_->table.empty()) return {};
    KeyTable::Slot* const list = views_->table.look_now(envelope);  // an unfinished one will do
    if (list == nullptr) return {};
    return {list, if_not_gone(list->oldest, tables_[0].look_now(list->oldest.value))};
  }
  void take_found(Listed found, void** cookie) noexcept;
  template <QueueSide side>
  bool take_at_hand(Listed found, void** cookie) noexcept {
    KeyTable& table = views_->table;
    if (messages() >= kFewListed || !table.pops_now(found.list_) ||
        !tables_[0].pops_now(found.slot_))
      return false;
    note_asked();
    table.pop_now(found.list_);
    keep_no_loads();  // or two registers more have to be saved, for 8 instructions
    take_now<side>(found.slot_, cookie);
    note_stale(found.slot_->key, /*left_one=*/true);
    return true;
  }
  // Where no list has told the oldest: whether one tells that there is none.
  bool lists_none(std::uint64_t envelope) noexcept {
    if (!is_complete(class_of_envelope(envelope))) return false;
    if (views_->table.find(envelope) != nullptr) return false;  // it may list what is gone
    note_asked();
    missed_ = true;
    return true;
  }

  // Finds and takes out the oldest entry that meets the key, if no more than a look into each
  // table tells which it is: nearly always. Otherwise the answer is unknown, and find() tells.
  Glance take(const MatchKey& key, void** cookie) noexcept {
    if (is_moving()) [[unlikely]]
      go_on_moving();
    if (key.mask != (kSourceMask | kTagMask)) return Glance::unknown;
    if (wild_classes() != 0) return take_among(key.bits, cookie);
    if (empty()) return Glance::none;
    KeyTable::Slot* const slot = tables_[0].look(key.bits);
    if (slot == nullptr) {
      missed_ = true;
      return Glance::none;
    }
    viewed_ == 0 ? take_oldest(slot, cookie) : take_viewed(slot, cookie);
    return Glance::taken;
  }

  // The oldest entry that meets the key. depth grows by the entries looked at.
  Hit find(const MatchKey& key, std::uint64_t& depth) noexcept {
    if (is_moving()) [[unlikely]]
      go_on_moving();
    Hit hit;
    if (key.mask == (kSourceMask | kTagMask)) [[likely]] {
      hit = find_in(0, key.bits, depth);
      if (wild_classes() != 0) [[unlikely]]
        find_wild_entry(key, hit, depth);
    } else {
      hit = find_by_view(key, depth);
    }
    if (!hit) missed_ = true;
    return hit;
  }

  void erase(Hit hit) noexcept {
    if (viewed_ != 0) [[unlikely]]
      leave_views(hit.slot()->key, hit.sequence(), viewed_);
    KeyTable& table = tables_[hit.key_class()];
    note_going(hit.slot(), hit.sequence());
    if (hit.slot()->oldest.sequence == hit.sequence()) [[likely]] {
      table.pop(hit.slot());
    } else {
      table.erase(hit.slot(), hit.sequence());
    }
    note_left(hit.key_class());
  }

  // Entries come in the order of their sequence numbers. False: no memory, and
  // nothing has changed.
  bool push(const QueueEntry& entry) noexcept {
    if (side_ == QueueSide::unexpected && (logs() || viewed_ != 0 || messages() == 0))
      return push_and_log(entry);
    const int key_class = class_of(entry.key);
    if (!tables_[key_class].reserve()) [[unlikely]]
      return false;
    push_to_class(key_class, entry);
    note_come(key_class);
    return true;
  }

  // Whether an entry of this key, the next one, is in no table or list but that of the exact
  // keys: nearly always where no receive has a wildcard.
  bool lists_once(const MatchKey& key) const noexcept {
    return side_ == QueueSide::posted ? key.mask == (kSourceMask | kTagMask)
                                      : lists_exact_once<QueueSide::unexpected>();
  }
  // The same of an exact key, for whoever knows the side.
  template <QueueSide side>
  bool lists_exact_once() const noexcept {
    return side == QueueSide::posted || messages() < alone_below_;
  }

  // The same of the first entry, where there is nothing to forget of those before it, nor so large
  // a table that entries had better be gathered.
  bool begins_at_hand(const MatchKey& key) const noexcept {
    return lists_once(key) && views_ == nullptr && !wild_search_ && !outgrows_caches();
  }

  // push_at_hand() where messages are logged as well, but listed in no views, nor is a pass under
  // way. Whether the log is long is asked once for each block.
  bool only_logs() const noexcept { return only_logs_; }
  bool log_at_hand(const QueueEntry& entry) noexcept {
    if (!log_.is_room_in_block() || !push_at_hand<QueueSide::unexpected>(entry)) return false;
    log_.push_into_block({entry.key.bits, entry.sequence});
    ++logged_;
    return true;
  }

  // The same where messages are listed in views as well, but not logged. It calls nothing, but
  // where a view is short of memory, or mostly of what is gone.
  bool only_lists() const noexcept { return viewed_ != 0 && !logs(); }
  bool list_at_hand(const QueueEntry& entry) noexcept {
    if (toils()) [[unlikely]]
      return false;
    if (!push_to_class_at_once<QueueSide::unexpected>(0, entry)) return false;
    feed_complete({entry.key.bits, entry.sequence});
    return true;
  }

  // push(), if that takes no memory and no thought: nearly always.
  bool push_at_once(const QueueEntry& entry) noexcept {
    if (viewed_ != 0) [[unlikely]]
      return push_and_list_at_once(entry);
    if (entry.key.mask != (kSourceMask | kTagMask)) [[unlikely]]
      return push_wild_at_once(entry);
    if (logs()) return push_and_log_at_once(entry);
    return side_ == QueueSide::posted ? push_to_class_at_once<QueueSide::posted>(0, entry)
                                      : push_to_class_at_once<QueueSide::unexpected>(0, entry);
  }

 private:
  // What a receive of each class holds besides: then its envelope is the key of a list.
  static constexpr std::array<std::uint64_t, kClasses> kClassOpen = {0, kOpenSource, kOpenTag,
                                                                     kOpenSource | kOpenTag};
  static constexpr int class_of_envelope(std::uint64_t envelope) noexcept {
    return ((envelope & kSourceMask) == kOpenSource ? 1 : 0) |
           ((envelope & kTagMask) == kOpenTag ? 2 : 0);
  }
  static constexpr std::uint64_t envelope_of(int key_class, std::uint64_t bits) noexcept {
    return (bits & kClassBits[key_class]) | kClassOpen[key_class];
  }
  static constexpr unsigned kViewed = 0b10000;  // beside the classes, see ClassTables

  // See toils(): messages that are compared faster than put into one list or several, and slots
  // that it pays to walk over for them.
  static constexpr std::size_t kFewInList = 48;
  static constexpr std::size_t kFewInLists = 256;
  static constexpr std::size_t kMostToil = 4096;
  static constexpr std::size_t kMostListed = 128;  // messages for each search

  // Whoever takes one of fewer messages does not ask whether it is the oldest of its lists: so many
  // may stay in each of these, for one search to pop.
  static constexpr std::size_t kFewListed = 2048;

  // The lists of all wildcard classes of messages, and their memory.
  struct Views {
    explicit Views(NodeMemory& memory) noexcept : pool(memory, Fifo::kNodeBytes), table(pool) {}
    ~Views() { table.abandon(); }
    NodePool pool;
    KeyTable table;
    std::size_t gone = 0;  // about so many of the items, since there was no message
    std::size_t kept = 0;  // and before that
    // Since as many messages as kFewInLists waited, or none:
    std::size_t listed = 0;  // messages
    std::size_t asked = 0;   // searches
  };

  // So many messages wait without a log where no search has had a wildcard: the next one makes
  // one of all that are there, which a later search would have to do with more.
  static constexpr std::size_t kMostUnlogged = 4096;
  // The same once so many as that were logged in vain: the first search with a wildcard, if one
  // comes after all, takes 1.3 ms (Zen 4). A few more than a power of two.
  static constexpr std::size_t kManyUnlogged = 131072 + 131072 / 8;
  // So many sequence numbers for each message may at least lie between the oldest and the newest
  // where each has a place as a log is made.
  static constexpr std::size_t kLeastPlaces = 2;
  // Items of the views that may be gone beyond half as many as there are messages.
  static constexpr std::size_t kFewGone = 64;

  // The next entry goes into a log, or should make one.
  bool logs() const noexcept { return messages() >= log_from_size_; }
  bool is_logging() const noexcept { return log_from_size_ == 0; }
  void log_from_now() noexcept {
    log_from_size_ = 0;
    note_lists();
  }
  void log_no_more(std::size_t most_unlogged = kMostUnlogged) noexcept {
    const bool may = wildcards_ && side_ == QueueSide::unexpected;
    log_from_size_ = may ? most_unlogged : ~std::size_t{0};
    note_lists();
  }
  void set_passing(bool passing) noexcept {
    passing_ = passing;
    note_lists();
  }
  // For a message that comes: what log, views and a pass make of it, in one word each.
  void note_lists() noexcept {
    alone_below_ = viewed_ == 0 ? log_from_size_ : 0;
    only_logs_ = is_logging() && viewed_ == 0 && !passing_;
  }
  bool push_and_log(const QueueEntry& entry) noexcept;
  bool reserve_message() noexcept;
  bool push_and_log_at_once(const QueueEntry& entry) noexcept;
  bool push_and_list_at_once(const QueueEntry& entry) noexcept;
  void log_and_view(const QueueEntry& entry) noexcept;
  bool push_wild_at_once(const QueueEntry& entry) noexcept;
  void begin_anew(std::uint64_t first) noexcept;

  Hit find_by_view(const MatchKey& key, std::uint64_t& depth) noexcept;
  void forget_log() noexcept;
  void clear_log() noexcept;
  bool start_log() noexcept;
  bool log_by_place();
  void log_sorted();
  void log(const IndexItem& message);

  KeyTable::Slot* front_of(std::uint64_t envelope, std::uint64_t& depth) noexcept;
  void take_viewed(KeyTable::Slot* slot, void** cookie) noexcept;
  void take_viewed_of_many(KeyTable::Slot* slot, unsigned views, void** cookie) noexcept;
  void take_viewed_further(KeyTable::Slot* slot, unsigned views, void** cookie) noexcept;
  void leave_views(std::uint64_t bits, std::uint64_t sequence, unsigned views) noexcept;
  Glance take_among(std::uint64_t bits, void** cookie) noexcept;

  // A message is taken that lists still have. It may have left one list, which is taken off without
  // a look which it is: it may be of a class whose view is not complete.
  void note_stale(std::uint64_t bits, bool left_one = false) noexcept {
    const unsigned lists = number_of(of_tag(bits, viewed_));
    views_->gone += lists - (left_one && lists != 0);
  }

  // The look of a receive asks there whether views list the messages.
  void set_viewed(unsigned views) noexcept {
    viewed_ = static_cast<std::uint8_t>(views);
    views != 0 ? tables_[0].look_further(kViewed) : tables_[0].look_no_further(kViewed);
    note_lists();
  }

  // The slot of a message that a view or the log lists, if it has not gone. Of
  // one key the oldest goes first, so it has gone if all that are left are newer.
  KeyTable::Slot* still_there(const IndexItem& item) const noexcept {
    return if_not_gone(item, tables_[0].find(item.value));
  }
  static KeyTable::Slot* if_not_gone(const IndexItem& item, KeyTable::Slot* slot) noexcept {
    return slot == nullptr || is_older(item.sequence, slot->oldest.sequence) ? nullptr : slot;
  }

  // For toils(), where it may say so.
  void note_listed() noexcept {
    ++views_->listed;
    if (messages() == kFewInLists) views_->listed = views_->asked = 0;  // more are about to wait
  }
  void note_asked() noexcept {
    wild_search_ = true;
    views_->asked += messages() <= kFewInLists;
  }

  void pop_gone(KeyTable::Slot* list) noexcept;
  void feed(unsigned classes, IndexItem item) noexcept;
  // feed() for complete views. It calls nothing, but last.
  [[gnu::always_inline]] void feed_complete(IndexItem item) noexcept {
    unsigned left = of_tag(item.value, viewed_);
    KeyTable& table = views_->table;
    if (messages() <= kFewInLists) note_listed();
    if (!has_many_gone() && table.has_room(kClasses - 1)) [[likely]] {
      left = for_each_class(left, [&](int c) {
        return table.push_or_renew(envelope_of(c, item.value), item, first_);
      });
    }
    if (left != 0) [[unlikely]]
      feed(left, item);
  }
  bool has_one_view() const noexcept { return (viewed_ & (viewed_ - 1)) == 0; }
  bool has_many_gone() const noexcept { return views_->gone > messages() / 2 + kFewGone; }
  void forget_viewed() noexcept;
  void drop_views() noexcept;
  void pass(std::size_t items) noexcept;
  void look_ahead() const noexcept;
  // Messages come and go, and no search has asked for the log.
  bool logs_in_vain() const noexcept {
    return is_long_log() && !wild_search_ && views_ == nullptr && messages() <= kManyUnlogged;
  }
  // Mostly items that are gone.
  bool is_long_log() const noexcept { return logged_ > 2 * messages() + 1024; }
  bool is_complete(int key_class) const noexcept { return (viewed_ >> key_class & 1) != 0; }

  // On the line of what every operation looks at, which ClassTables begins. Views and log change
  // what a search costs, never what it finds, so a search may work on them.
  std::uint8_t viewed_ = 0;  // a bit for each class whose view is complete: it lists
                             // the log too, not only what was passed
  bool only_logs_ = false;
  bool wildcards_ = true;  // may come
  bool passing_ = false;
  bool wild_search_ = false;     // there was one since the index was empty
  bool walks_log_ = false;       // one of a class that has no view
  std::size_t log_from_size_;    // with as many entries messages are logged: 0 where there
                                 // is a log, the largest number where there is never one
  std::size_t alone_below_ = 0;  // with fewer messages the next one is in no log and no view
  std::uint64_t first_ = 0;      // of the message that came when there was none
  QueueResources* resources_;

  std::unique_ptr<Views> views_;  // if any are to be made
  unsigned wanted_ = 0;           // of these classes
  unsigned fed_ = 0;              // by the pass now under way, or complete
  NodePool log_pool_;
  MessageLog passed_;
  MessageLog log_;
  std::size_t logged_ = 0;  // items in both
  std::size_t walked_ = 0;  // items, by searches for which a view is missing
};

}  // namespace tagline
