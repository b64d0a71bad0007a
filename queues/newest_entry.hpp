// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "queues/key_table.hpp"
#include "queues/match_key.hpp"
#include "queues/resources.hpp"

namespace tagline {

template <class Structure>
concept KeepsIndex = requires(Structure structure, std::uint64_t bits) {
  structure.is_indexed();
  structure.look(bits);
};

// Its append() takes an entry as it keeps it, and note_wild() is told of wildcards.
template <class Structure>
concept TakesPacked = requires(Structure structure, PackedEntry entry) {
  structure.append(entry);
  structure.note_wild();
};

template <class Structure>
concept KeepsGroup = requires(Structure structure) {
  structure.is_one_group();
};

// A queue whose newest entry waits in the queue object itself, and goes to the
// structure behind it only when a newer one comes.
//
//   [ structure: all older entries, in order ] [ newest ]
//
// Behind an index nothing waits while matches come in another order: who has passed one entry on
// stores what follows there once, not here and then there, until the newest entry is the match
// again. An entry from anywhere that comes again then has one slot, the one it has just left.
//
// Many a message meets a receive posted just before it. Such a pair never
// reaches the structure: no lane is filled and emptied again, and no column is
// loaded as a whole right after one lane of it was stored, which would wait for
// the store to leave the core. And a queue of one entry takes no node at all.
//
// Structure offers the operations of queues/linear.hpp and kBeyond, and may offer
//
//   take_oldest(key, cookie)         take(), if one look finds the oldest entry to be the
//                                    match; none: it is no match
//   is_oldest_likely(), note_wild_search()  it may be, by the latest matches; told of a search with
//                                    wildcards that take_oldest() may end
//   number_without_match(key)        then: 1 or 2, if there are so many entries and one look tells
//                                    that none is; else 0
//   take_in(entry)                   append() by another way, where has_room() says no;
//   take_in_at_hand<side>(entry)     the same of an exact key, if one look and no call do it, and
//                                    has_empty_window()
//   has_empty_window()               it may come that way
//   begin_at_hand(entry)             the same where an index begins with it
//   take_in_and_log(entry)           the same for a message that is logged as well, if
//                                    only_logs()
//   take_in_and_list(entry)          or listed for receives with wildcards, if only_lists()
//   take_in_at_once(entry)           the same, if it takes no memory
//   make_room_in_index()             where that said no: entries that follow will have room
//   is_indexed(), tells(), look(bits), tells_among(), look_among(bits), look_listed(bits),
//   lists_none(bits), take_found(found, cookie), take_found_at_hand<side>(found, cookie)  see below
//   has_empty_index(), leave_index(newest)  after entries have gone: it holds nothing any more;
//                                    newest: the sequence number of the newest that came at hand
//   last_gone()                      the sequence number of what left the index last
//   slot_hint(small), let_shrink(newest, cycle)  of an index, see KeyTable
//   note_wild()                      called as an entry with wildcards comes to wait here; append()
//                                    then takes a PackedEntry
//   is_one_group()                   all it has can be compared at once;
//   take_from_group(key, cookie, count)  then: take() by that
//
// Guarantees: those of the structure; the newest entry is found after all others,
// because it is the last in order, unless overtaking is allowed.
//
// What every call looks at comes first. With `adaptive` that is one line: the newest entry, where
// the index is and the ends of the window.
template <class Structure>
class alignas(kCacheLine) NewestEntry {
 public:
  static constexpr const char* kName = Structure::kName;
  using Parameters = typename Structure::Parameters;
  static std::size_t node_bytes(const Parameters& parameters) noexcept {
    return Structure::node_bytes(parameters);
  }

  // A hit in the structure, or for the newest entry the one that is never any of its.
  using Hit = typename Structure::Hit;

  NewestEntry(QueueResources& resources, const Parameters& parameters, QueueSide side) noexcept
      : older_(resources, parameters, side) {}

  void set_hints(const Hints& hints) noexcept {
    overtaking_ = hints.overtaking;
    if constexpr (requires { older_.set_hints(hints); }) older_.set_hints(hints);
  }

  bool empty() const noexcept { return !holds_newest() && older_.empty(); }
  bool has_room() const noexcept {
    return place_ == Place::taken ? older_.has_room() : place_ == Place::open;
  }
  bool make_room() noexcept {
    if constexpr (KeepsIndex<Structure>) {
      if (place_ == Place::closed) older_.make_room_in_index();
    }
    if (!holds_newest() || pass_on()) return true;
    if (!older_.make_room()) return false;
    pass_on();
    return true;
  }
  // Whether the newest entry waits here. Where has_room() says no, it has to go to the structure
  // before another one can come: pass_on_at_hand() does that, if one look tells and nothing has to
  // be called, pass_on_at_once(), if it takes no memory, and begin_index_at_hand() where an index
  // begins with it.
  bool holds_newest() const noexcept { return place_ == Place::taken; }
  template <QueueSide side>
  bool pass_on_at_hand() noexcept requires KeepsIndex<Structure> {
    return passed_on((side == QueueSide::unexpected || is_exact(newest_.key)) &&
                     older_.has_empty_window() &&
                     older_.template take_in_at_hand<side>(
                         {{newest_.key, kExact}, newest_.cookie, newest_.sequence}));
  }
  bool pass_on_at_once() noexcept requires KeepsIndex<Structure> {
    return passed_on(older_.take_in_at_once(unpacked(newest_)));
  }
  template <QueueSide side>
  bool begin_index_at_hand() noexcept requires KeepsIndex<Structure> {
    return passed_on(older_.template begin_at_hand<side>(unpacked(newest_)));
  }
  // append() straight to the index, where has_room() says no and nothing waits here: of an exact
  // key, if one look tells and nothing has to be called, also for messages that are logged, if
  // only_logs(), or listed for receives with wildcards, if only_lists(); of any key, if it takes no
  // memory. False: nothing has changed, and append() will do.
  template <QueueSide side>
  bool append_at_hand(const QueueEntry& entry) noexcept requires KeepsIndex<Structure> {
    return came(entry, older_.template take_in_at_hand<side>(entry));
  }
  // Whether the next entry, of an exact key, had better wait here: the one before it went to the
  // index and was the match at once.
  bool waits_here() const noexcept requires KeepsIndex<Structure> {
    return older_.last_gone() == newest_.sequence;
  }
  KeyTable::SlotHint slot_hint(bool small) const noexcept requires KeepsIndex<Structure> {
    return older_.slot_hint(small);
  }
  // See KeyTable.
  void let_shrink(std::uint64_t newest, std::size_t cycle) noexcept requires KeepsIndex<Structure> {
    older_.let_shrink(newest, cycle);
  }
  bool only_logs() const noexcept requires KeepsIndex<Structure> { return older_.only_logs(); }
  bool append_and_log(const QueueEntry& entry) noexcept requires KeepsIndex<Structure> {
    return came(entry, older_.take_in_and_log(entry));
  }
  bool only_lists() const noexcept requires KeepsIndex<Structure> { return older_.only_lists(); }
  bool append_and_list(const QueueEntry& entry) noexcept requires KeepsIndex<Structure> {
    return came(entry, older_.take_in_and_list(entry));
  }
  bool append_at_once(const QueueEntry& entry) noexcept requires KeepsIndex<Structure> {
    return came(entry, older_.take_in_at_once(entry));
  }

  [[gnu::always_inline]] void append(const QueueEntry& entry) noexcept {
    if constexpr (TakesPacked<Structure>) {
      entry.key.mask == kExact ? hold(packed(entry)) : append_wild(packed(entry));
    } else {
      hold(entry);
    }
  }
  // append() of one with wildcards.
  void append_wild(const PackedEntry& entry) noexcept requires TakesPacked<Structure> {
    hold(entry);
    older_.note_wild();
  }

  // For receives with wildcards: whether take_at_hand() is worth while, and what it is told then.
  bool is_glance_likely() const noexcept requires KeepsIndex<Structure> {
    return older_.empty() || older_.is_oldest_likely();
  }
  void note_wild_search() noexcept requires KeepsIndex<Structure> { older_.note_wild_search(); }
  // Wants !empty() and !is_indexed(). The match is the oldest entry, or the newest if all
  // older ones are seen to be no match.
  template <class Count>
  Glance take_at_hand(const MatchKey& key, void** cookie, Count count) noexcept {
    if (is_indexed()) __builtin_unreachable();  // spares what follows another look
    // Each number that is counted is written out: to add a constant takes half the instructions.
    const auto newest_taken = [&](std::uint64_t depth) {
      *cookie = newest_.cookie;
      place_ = Place::open;
      count(depth, true);
      return Glance::taken;
    };
    if (older_.empty()) {
      if (keys_meet(newest_.key, key)) return newest_taken(1);
      count(1, false);
      return Glance::none;
    }
    switch (take_oldest(older_, key, cookie)) {
      case Glance::taken:
        count(1, true);
        return Glance::taken;
      case Glance::none:
        if (!is_newest_met(key)) return Glance::unknown;
        switch (number_without_match(older_, key)) {
          case 1:
            return newest_taken(2);
          case 2:
            return newest_taken(3);
        }
        break;
      case Glance::unknown:
        break;
    }
    return overtaking_ && is_newest_met(key) ? newest_taken(1) : Glance::unknown;
  }

  // Whether the structure keeps older entries in an index now, and what then takes the place
  // of take_at_hand() if a look into that tells: the look, taking out what it has found, or
  // the newest entry if it has found nothing and that tells_none().
  bool is_indexed() const noexcept {
    if constexpr (KeepsIndex<Structure>) return older_.is_indexed();
    return false;
  }
  bool tells() const noexcept requires KeepsIndex<Structure> { return older_.tells(); }
  bool tells_none() const noexcept requires KeepsIndex<Structure> { return older_.tells_none(); }
  auto look(std::uint64_t bits) noexcept requires KeepsIndex<Structure> {
    return older_.look(bits);
  }
  // The same where receives with wildcards wait, or messages are listed for such.
  template <QueueSide side>
  bool tells_among() const noexcept requires KeepsIndex<Structure> {
    return older_.template tells_among<side>();
  }
  template <QueueSide side>
  auto look_among(std::uint64_t bits) noexcept requires KeepsIndex<Structure> {
    return older_.template look_among<side>(bits);
  }
  // For a receive with wildcards, of the unexpected side: the bits of its envelope. Where
  // nothing comes of the look, the newest entry is the only one that may be the match if
  // lists_none(), and otherwise a search can tell.
  auto look_listed(std::uint64_t bits) noexcept requires KeepsIndex<Structure> {
    return older_.look_listed(bits);
  }
  bool lists_none(std::uint64_t bits) noexcept requires KeepsIndex<Structure> {
    return older_.lists_none(bits);
  }
  template <class Found>
  void take_found(Found found, void** cookie) noexcept requires KeepsIndex<Structure> {
    older_.take_found(found, cookie);
    leave_empty_index();
  }
  // The same in two parts, for whoever would save no registers: take_found_at_hand(), if nothing
  // has to be called, and then leave_index(), if that empties the index. False: nothing has
  // changed.
  template <QueueSide side, class Found>
  bool take_found_at_hand(Found found, void** cookie,
                          bool& empties) noexcept requires KeepsIndex<Structure> {
    return older_.template take_found_at_hand<side>(found, cookie, empties);
  }
  void leave_index() noexcept requires KeepsIndex<Structure> {
    older_.leave_index(newest_.sequence);
    if (place_ == Place::closed) place_ = Place::open;
  }
  template <class Count>
  bool take_newest(const MatchKey& key, void** cookie, Count count,
                   std::uint64_t passed = 0) noexcept {
    return take_newest_if([&] { return keys_meet(newest_.key, key); }, cookie, count, passed);
  }
  // The same of an exact key, for whoever knows the side.
  template <QueueSide side, class Count>
  bool take_newest(std::uint64_t bits, void** cookie, Count count) noexcept {
    return take_newest_if([&] { return meets_newest<side>(bits); }, cookie, count);
  }

  template <class Count>
  bool take(const MatchKey& key, void** cookie, Count count) noexcept {
    return take_older_or_newest(key, cookie, count, [&](auto counted) {
      return !older_.empty() && take_from(older_, key, cookie, counted);
    });
  }

  // The same where the structure compares all older entries at once, if it does so now and
  // take_at_hand() could not tell.
  bool is_one_group() const noexcept requires KeepsGroup<Structure> {
    return older_.is_one_group();
  }
  template <class Count>
  bool take_from_group(const MatchKey& key, void** cookie,
                       Count count) noexcept requires KeepsGroup<Structure> {
    return take_older_or_newest(key, cookie, count, [&](auto counted) {
      return older_.take_from_group(key, cookie, counted);
    });
  }

  Hit find(const MatchKey& key, std::uint64_t& depth) noexcept {
    if (!older_.empty()) {
      if (const Hit hit = older_.find(key, depth)) return hit;
    }
    depth += holds_newest();
    return is_newest_met(key) ? Structure::kBeyond : Hit{};
  }

  Hit find_exact(const MatchKey& key, const void* cookie) const noexcept {
    if (const Hit hit = older_.find_exact(key, cookie)) return hit;
    const bool is_newest =
        holds_newest() && newest_.cookie == cookie && unpacked(newest_).key == key;
    return is_newest ? Structure::kBeyond : Hit{};
  }

  Hit find_sequence(std::uint64_t sequence) const noexcept {
    return holds_newest() && newest_.sequence == sequence ? Structure::kBeyond
                                                          : older_.find_sequence(sequence);
  }

  QueueEntry at(Hit hit) const noexcept {
    return is_newest(hit) ? unpacked(newest_) : older_.at(hit);
  }

  void erase(Hit hit) noexcept {
    if (is_newest(hit)) {
      place_ = Place::open;
    } else {
      older_.erase(hit);
      leave_empty_index();
    }
  }

  template <class Visit>
  void for_each(Visit visit) const {
    older_.for_each(visit);
    if (holds_newest()) visit(unpacked(newest_));
  }

  template <class Predicate, class Visit>
  std::size_t remove_if(Predicate wanted, Visit visit) {
    const std::size_t removed = older_.remove_if(wanted, visit);
    leave_empty_index();
    if (!holds_newest() || !wanted(unpacked(newest_))) return removed;
    place_ = Place::open;
    visit(unpacked(newest_));
    return removed + 1;
  }

 private:
  // Of the newest entry. closed: nothing waits there, and the next entry goes to the index, which
  // holds something, as all that waits is there.
  enum class Place : std::uint8_t { open, taken, closed };
  static constexpr std::uint64_t kExact = kSourceMask | kTagMask;
  using Kept = std::conditional_t<TakesPacked<Structure>, PackedEntry, QueueEntry>;

  [[gnu::always_inline]] void hold(const Kept& entry) noexcept {
    if (holds_newest()) older_.append(newest_);
    newest_ = entry;
    place_ = Place::taken;
  }

  // Where an entry of the structure has gone.
  void leave_empty_index() noexcept {
    if constexpr (KeepsIndex<Structure>) {
      if (is_indexed() && older_.has_empty_index()) [[unlikely]]
        leave_index();
    }
  }
  bool passed_on(bool taken_in) noexcept {
    if (taken_in) place_ = Place::closed;
    return taken_in;
  }
  bool came(const QueueEntry& entry, bool taken_in) noexcept {
    if (taken_in) newest_.sequence = entry.sequence;
    return taken_in;
  }
  bool pass_on() noexcept {
    if constexpr (KeepsIndex<Structure>) {
      return holds_newest() && passed_on(older_.take_in(unpacked(newest_)));
    }
    return false;
  }

  // take_older(count) of the structure.
  template <class Count, class TakeOlder>
  bool take_older_or_newest(const MatchKey& key, void** cookie, Count count,
                            TakeOlder take_older) noexcept {
    std::uint64_t passed = 0;
    const auto count_match = [&](std::uint64_t depth, bool taken) {
      if (taken) {
        count(depth, true);
      } else {
        passed = depth;
      }
    };
    if (take_older(count_match)) {
      leave_empty_index();
      return true;
    }
    return take_newest(key, cookie, count, passed);
  }

  template <class Meets, class Count>
  bool take_newest_if(Meets meets, void** cookie, Count count, std::uint64_t passed = 0) noexcept {
    // A way without a jump for where it is met: GCC 12 forgets [[unlikely]] as it inlines this.
    if (__builtin_expect(!holds_newest(), 0) || __builtin_expect(!meets(), 0)) {
      count(passed + holds_newest(), false);
      return false;
    }
    *cookie = newest_.cookie;
    place_ = Place::open;
    count(passed + 1, true);
    return true;
  }
  // Messages have no wildcards.
  template <QueueSide side>
  bool meets_newest(std::uint64_t bits) const noexcept {
    if constexpr (side == QueueSide::unexpected && TakesPacked<Structure>)
      return newest_.key == bits;
    return keys_meet(newest_.key, {bits, kExact});
  }
  bool is_newest_met(const MatchKey& key) const noexcept {
    return holds_newest() && keys_meet(newest_.key, key);
  }

  // Where the structure can tell and do that without a search.
  static Glance take_oldest(Structure& older, const MatchKey& key, void** cookie) noexcept {
    if constexpr (requires { older.take_oldest(key, cookie); })
      return older.take_oldest(key, cookie);
    return Glance::unknown;
  }

  static std::size_t number_without_match(Structure& older, const MatchKey& key) noexcept {
    if constexpr (requires { older.number_without_match(key); })
      return older.number_without_match(key);
    return 0;
  }

  static bool is_newest(Hit hit) noexcept { return hit == Structure::kBeyond; }

  Kept newest_;
  Place place_ = Place::open;
  bool overtaking_ = false;
  Structure older_;
};

}  // namespace tagline
