// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "queues/in_order.hpp"
#include "queues/index_decision.hpp"
#include "queues/key_index.hpp"
#include "queues/newest_entry.hpp"
#include "queues/window.hpp"

namespace tagline {

// A short queue is a window that is searched from the front; a queue that is
// searched deeply gets an index for all but its newest entries.
//
//      older                                   newer
//   [ index: any number, found by key ] [ window: in order ] [ newest entry ]
//
// Every entry of the index is older than every entry of the window, so a search
// asks the index first and the window only if that has no match.
//
// - Entries start in the window. As long as searches end near its head, that is
//   all there is, however long the queue: a queue that is drained in order pays
//   for no index.
// - When searches have passed so many entries in vain that indexing the window
//   would have cost no more, the index starts: from then on searches move what
//   they passed in the window, the oldest first and a bounded part at a time,
//   and once the window is empty new entries go straight to the index. If the index is
//   matched in no order, each entry that comes takes a few older ones along.
// - In a window of one group a search that hits costs the same wherever the match is, so there
//   only searches for nothing count. But where most of a short queue's matches took such a search,
//   the index is faster, as nobody can foresee which entry is next: it starts with the next entry.
//   It also starts where a short queue never empties and its window is full of holes, rather than
//   to close it up again and again. Neither while wildcards are about, which cost more there. If
//   they come later, a few messages return to the window, and next time more entries have to come
//   without them. See queues/index_decision.hpp.
// - Beyond Window::kLargest entries the oldest move to the index in any case, so
//   no search ever compares more than that many one after the other. Where that goes on, all of
//   the window follows: new entries then go one way, not two.
// - Where no cache holds the index, entries that come one after the other are gathered in the
//   window: their slots come from memory together, and then they go to the index.
// - When the index has emptied, it is not used until searches are deep again. But if
//   any search had passed what was in it, the next entries go to it as they
//   come: who searches deeply once does so again, and entries that have left the cache
//   cost most to index then. Where wildcards ask for lists as well, which cost more, that is
//   beyond one group. A queue that was drained in order twice in a row forgets that, a short one
//   after eight times, one that goes on while its index empties at once: all that is asked is
//   whether the newest was the last, and of a few entries it often is by chance.
//
// The newest entry waits outside, see queues/newest_entry.hpp. `adaptive` does all
// this. `indexed` starts the index with the first search that passes anything, for
// measuring the index by itself.
//
// Guarantees: append, find and erase are O(1) expected and amortised; order is
// kept; without memory for the index the window serves, more slowly.
template <bool index_at_once>
class WindowedIndex {
 public:
  static constexpr const char* kName = index_at_once ? "indexed" : "adaptive";
  using Parameters = NoParameters;
  static std::size_t node_bytes(Parameters) noexcept { return Fifo::kNodeBytes; }

  // In the index, or at a position of the window.
  class Hit {
   public:
    Hit() = default;
    explicit Hit(KeyIndex::Hit indexed) noexcept : indexed_(indexed) {}
    constexpr explicit Hit(std::size_t position) noexcept : indexed_(position) {}
    explicit operator bool() const noexcept { return indexed_ || position() != Window::kNone; }
    bool is_indexed() const noexcept { return static_cast<bool>(indexed_); }
    KeyIndex::Hit indexed() const noexcept { return indexed_; }
    constexpr std::size_t position() const noexcept { return indexed_.sequence(); }
    friend bool operator==(const Hit&, const Hit&) = default;

   private:
    KeyIndex::Hit indexed_{Window::kNone};  // no slot: the position takes its place
  };

  static constexpr Hit kBeyond = Hit(Window::kNone - 1);

  WindowedIndex(QueueResources& resources, Parameters, QueueSide side) noexcept
      : window_(resources, make_inline_slots()), resources_(&resources), side_(side) {}

  void set_hints(const Hints& hints) noexcept {
    hints_ = hints;
    if (index_ != nullptr) index_->set_hints(hints);
  }

  bool empty() const noexcept { return window_.empty() && !is_indexed(); }

  // The index holds something.
  bool is_indexed() const noexcept { return indexed_ != nullptr; }

  // See queues/newest_entry.hpp; they want !is_indexed().
  void note_wild_search() noexcept { decision_.note_wild(); }
  bool is_oldest_likely() const noexcept { return window_.is_oldest_likely(); }
  Glance take_oldest(const MatchKey& key, void** cookie) noexcept {
    return window_.take_oldest(key, cookie);
  }
  std::size_t number_without_match(const MatchKey& key) const noexcept {
    return window_.number_without_match(key);
  }

  // Whether what a look finds is the oldest entry that meets an exact key: nearly always. Then
  // look() is where that entry is, or nullptr: if tells_none(), there is none. tells_among(),
  // look_among(): the same where receives with wildcards wait, or messages are listed for such.
  // look_listed(): the oldest message for a receive with wildcards, if a list tells; lists_none():
  // otherwise, whether one tells that there is none. All want is_indexed().
  bool tells() const noexcept { return indexed_->tells(); }
  bool tells_none() const noexcept { return window_.empty(); }
  KeyIndex::Found look(std::uint64_t bits) noexcept { return indexed_->look(bits); }
  template <QueueSide side>
  bool tells_among() const noexcept {
    return indexed_->template tells_among<side>();
  }
  template <QueueSide side>
  auto look_among(std::uint64_t bits) noexcept {
    return indexed_->template look_among<side>(bits);
  }
  KeyIndex::Listed look_listed(std::uint64_t bits) noexcept { return indexed_->look_listed(bits); }
  bool lists_none(std::uint64_t bits) noexcept {
    return window_.empty() && indexed_->lists_none(bits);
  }
  template <QueueSide side, class Found>
  bool take_found_at_hand(Found found, void** cookie, bool& empties) noexcept {
    KeyIndex& index = *indexed_;
    if (!index.template take_at_hand<side>(found, cookie)) return false;
    empties = index.empty();
    return true;
  }
  template <class Found>
  void take_found(Found found, void** cookie) noexcept {
    indexed_->take_found(found, cookie);
  }
  // Whether the index is to be left, once entries of it were taken or erased. newest: the sequence
  // number of the newest entry that was taken in or passed on at hand.
  bool has_empty_index() const noexcept { return indexed_->empty(); }
  [[gnu::noinline]] void leave_index(std::uint64_t newest) noexcept {
    indexed_ = nullptr;
    indexing_ = index_at_once;
    // As far as this is easily told: no search was in vain, and the newest entry left last. Without
    // a branch, as of a few entries nobody could foresee that.
    const std::uint64_t last = index_->last_gone();
    const unsigned newest_last = unsigned{last == newest} | unsigned{last == newest_passed_};
    in_order_ = (in_order_ + 1) * (newest_last & unsigned{!index_->was_missed()});
    const unsigned often = index_->peak() <= Window::kGroup ? kInOrderIfShort : kInOrder;
    had_index_ = in_order_ < (window_.empty() ? often : 1);
    if (!had_index_) in_order_ = 0;
    index_->let_shrink(last);
    if (window_.is_mostly_past()) return shrink_window();
    window_.set_room(most_outside());
  }
  KeyTable::SlotHint slot_hint() const noexcept {
    return is_indexed() ? indexed_->slot_hint() : KeyTable::SlotHint();
  }
  // newest: the sequence number of the newest entry.
  void let_shrink(std::uint64_t newest) noexcept {
    if (index_ != nullptr) index_->let_shrink(newest);
  }
  // The sequence number of the entry that left the index last.
  std::uint64_t last_gone() const noexcept { return indexed_->last_gone(); }

  template <class Count>
  bool take(const MatchKey& key, void** cookie, Count count) noexcept {
    const auto counted = [&](const TakeResult& result) {
      count(result.depth, result.taken);
      return result.taken;
    };
    if (is_indexed()) return counted(take_from_both(key, cookie));
    decision_.note_search(key);
    const Glance glance = window_.take_near(key, cookie, count);
    if (glance != Glance::unknown) return glance == Glance::taken;
    return is_one_group() ? take_from_group(key, cookie, count)
                          : counted(take_from_window(key, cookie));
  }

  // See queues/newest_entry.hpp; wants !is_indexed().
  bool is_one_group() const noexcept { return !indexing_ && window_.is_one_group(); }
  template <class Count>
  bool take_from_group(const MatchKey& key, void** cookie, Count count) noexcept {
    const std::size_t position = window_.find_in_group(key);
    if (position == Window::kNone) {
      window_.miss_in_group();
      // To pass so few costs too little for an index.
      count(window_.length() > Window::kAtHand ? pass(window_.tail()) : window_.length(), false);
      return false;
    }
    *cookie = window_.cookie_at(position);
    count(position - window_.head() + 1, true);
    if (decision_.note_compared()) [[unlikely]]
      ask_for_index();
    window_.erase_in_group(position);
    return true;
  }

  // While there is an index, an entry may go straight there: see take_in().
  bool has_room() const noexcept { return window_.has_room(); }

  bool make_room() noexcept {
    if (gathers() && gather()) return true;
    if (follows_index()) move_to_index(kFollowing, window_.tail());
    if (window_.length() < most_outside()) return true;
    const bool largest = is_largest();
    if (largest) note_full_window();
    const bool soon = indexing_ || (had_index_ && window_.length() >= most_before_index());
    if ((soon || largest || is_scattered()) && give_some_away()) return true;
    if (window_.full() && !window_.grow()) return give_some_away();  // which takes less memory
    if (!is_indexed()) window_.set_room(window_.capacity());
    return true;
  }

  // note_wild() comes first, where the entry has wildcards.
  void append(const PackedEntry& entry) noexcept { window_.append(entry); }
  void note_wild() noexcept { window_.note_wild(); }

  // The other way in, where has_room() says no: into the index, if nothing older is
  // outside of it.
  bool take_in(const QueueEntry& entry) noexcept {
    if (!is_indexed()) return starts_indexed() && begin_index(entry);
    if (!window_.empty()) return false;
    if (indexed_->toils() && return_to_window()) [[unlikely]]
      return false;
    return pass_to_index(entry);
  }
  // The same, where all it takes is a slot, or that and a place in the log or in lists, and where
  // it takes no memory; begin_at_hand(): where the index is empty. All but this and
  // take_in_at_once() want is_indexed(), an empty window and an exact key.
  template <QueueSide side>
  bool take_in_at_hand(const QueueEntry& entry) noexcept {
    return indexed_->template lists_exact_once<side>() &&
           indexed_->template push_at_hand<side>(entry);
  }
  bool has_empty_window() const noexcept { return window_.empty(); }
  template <QueueSide side>
  bool begin_at_hand(const QueueEntry& entry) noexcept {
    if (!starts_indexed() || !index_->begins_at_hand(entry.key)) return false;
    if (!index_->template push_at_hand<side>(entry)) return false;
    indexed_ = index_.get();  // there has been no room in the window, nor is there any now
    return true;
  }
  bool only_logs() const noexcept { return indexed_->only_logs(); }
  bool take_in_and_log(const QueueEntry& entry) noexcept { return indexed_->log_at_hand(entry); }
  bool only_lists() const noexcept { return indexed_->only_lists(); }
  bool take_in_and_list(const QueueEntry& entry) noexcept { return indexed_->list_at_hand(entry); }
  // take_in_at_once() said no, and the entry waits outside: it says yes of those that follow.
  void make_room_in_index() noexcept { indexed_->make_room(); }
  bool take_in_at_once(const QueueEntry& entry) noexcept {
    return is_indexed() && window_.empty() && indexed_->push_at_once(entry);
  }

  Hit find(const MatchKey& key, std::uint64_t& depth) noexcept {
    if (is_indexed()) {
      const Found found = find_indexed(key);
      depth += found.depth;
      if (found.hit) return Hit(found.hit);
    }
    decision_.note_search(key);
    return Hit(find_in_window(key, depth));
  }

  Hit find_exact(const MatchKey& key, const void* cookie) const noexcept {
    const auto wanted = [&](const QueueEntry& entry) {
      return entry.key == key && entry.cookie == cookie;
    };
    if (is_indexed()) {
      if (const KeyIndex::Hit hit = index_->find_equal(key, wanted)) return Hit(hit);
    }
    // Every entry of this very key meets its bits; few others do.
    const MatchKey exact = {key.bits, ~std::uint64_t{0}};
    std::size_t position = window_.find(exact);
    while (position != Window::kNone && !wanted(window_.at(position))) {
      position = window_.find(exact, position + 1);
    }
    return Hit(position);
  }

  Hit find_sequence(std::uint64_t sequence) const noexcept {
    const auto wanted = [&](const QueueEntry& entry) { return entry.sequence == sequence; };
    const std::size_t position = window_.find_sequence(sequence);
    if (position != Window::kNone || !is_indexed()) return Hit(position);
    MatchKey key;
    bool found = false;
    index_->for_each([&](const QueueEntry& entry) {
      if (wanted(entry)) key = entry.key, found = true;
    });
    return found ? Hit(index_->find_equal(key, wanted)) : Hit();
  }

  QueueEntry at(Hit hit) const noexcept {
    return hit.is_indexed() ? index_->at(hit.indexed()) : window_.at(hit.position());
  }

  void erase(Hit hit) noexcept {
    if (!hit.is_indexed()) {
      erase_outside(hit.position());
      return;
    }
    erase_indexed(hit.indexed());
  }

  template <class Visit>
  void for_each(Visit visit) const {
    if (is_indexed()) {
      visit_in_order(
          *index_, [](const QueueEntry&) { return true; }, visit);
    }
    window_.find_if([&](const QueueEntry& entry) {
      visit(entry);
      return false;
    });
  }

  template <class Predicate, class Visit>
  std::size_t remove_if(Predicate wanted, Visit visit) {
    std::size_t removed = 0;
    const auto count = [&](const QueueEntry& entry) {
      visit(entry);
      ++removed;
    };
    if (is_indexed()) {
      visit_in_order(*index_, wanted, [&](const QueueEntry& entry) {
        erase_indexed(find_indexed_equal(entry));
        count(entry);
      });
    }
    window_.remove_if(wanted, count);
    return removed;
  }

 private:
  static constexpr std::uint64_t kExact = kSourceMask | kTagMask;
  static constexpr std::size_t kFewScattered = 2;  // entries among holes; fewer are soon compared
  static constexpr unsigned kInOrder = 2;          // times: the newest is the last by chance, too,
  static constexpr unsigned kInOrderIfShort = 8;   // of a few entries often
  static constexpr std::size_t kMany = 96;         // that are listed faster than first compared
  static constexpr std::size_t kNear = index_at_once ? 0 : 1;  // passed for next to nothing
  static constexpr std::size_t kMoves = 64;                    // out of a full window
  static constexpr std::size_t kFollowing = 4;                 // for each that comes
  static constexpr std::size_t kGathered = 16;                 // see gather()
  static constexpr std::size_t kMovesOfSearch = 128;           // of the entries it passed, or
  static constexpr std::size_t kMovedPart = 1024;              // one of so many

  // Entries of the window before it is asked whether they belong into the index.
  std::size_t most_outside() const noexcept {
    return had_index_ ? std::min(window_.capacity(), most_before_index()) : window_.capacity();
  }
  // Entries that may come to the window without further thought.
  std::size_t room() const noexcept {
    if (!is_indexed()) return most_outside();
    return gathers() ? most_gathered() : 0;
  }
  // Entries that are compared faster than indexed, where there has been an index.
  std::size_t most_before_index() const noexcept {
    return index_->has_views() && index_->peak() <= kMany ? Window::kGroup : 0;
  }

  // A short window is full of holes, and worth an index; wildcards have not been seen lately.
  bool is_scattered() noexcept {
    if (!window_.is_scattered_group() || window_.entries() < kFewScattered) return false;
    if (!decision_.is_calm(newest())) return false;
    decision_.be_less_wary();
    const auto is_wild = [](const QueueEntry& entry) { return entry.key.mask != kExact; };
    return window_.find_if(is_wild) == Window::kNone;
  }
  // Matches of a short queue come in random order, and no wildcards are about: the next entries are
  // indexed.
  [[gnu::noinline, gnu::cold]] void ask_for_index() noexcept {
    const auto is_exact = [&] { return window_.held_only_exact(); };
    if (!decision_.is_at_random(newest(), is_exact) || !make_index()) return;
    had_index_ = true;
    window_.set_room(room());
  }
  // Sequence numbers of the window's ends; want !empty(). The newest may be a hole, and so older.
  std::uint64_t newest() const noexcept { return window_.at(window_.tail() - 1).sequence; }
  std::uint64_t oldest() const noexcept { return window_.at(window_.head()).sequence; }

  bool give_some_away() noexcept {
    if (!move_to_index(kMoves, window_.tail())) return false;
    indexed_before_ = index_->keys();
    return true;
  }

  // What is older is matched in no order, and what comes to the window will be, too. Searches alone
  // may leave some there for long: they seldom pass what is new.
  bool follows_index() const noexcept { return is_indexed() && indexing_ && indexed_->is_missed(); }

  // It does not become any larger, at least not now.
  bool is_largest() const noexcept {
    return window_.full() && (window_.capacity() >= Window::kLargest || !window_.grows_at_once());
  }

  // Entries that come to a full window go through it and the index. Where as many leave the index
  // meanwhile, the queue stays as long as it is, and where the index holds as many as the window,
  // it may grow on: in both all go straight to the index, as soon as the window has gone there.
  void note_full_window() noexcept {
    if (!is_indexed() || window_.capacity() < Window::kLargest) return;
    const std::size_t indexed = index_->keys();
    if (indexed + kMoves <= indexed_before_ || indexed >= Window::kLargest) had_index_ = true;
  }

  // No position found before counts any more, unless it erased the oldest of many.
  void erase_outside(std::size_t position) noexcept {
    window_.erase(position);
    if (window_.is_mostly_past()) [[unlikely]]
      shrink_window();
  }
  [[gnu::noinline, gnu::cold]] void shrink_window() noexcept {
    window_.shrink();
    window_.set_room(room());
  }

  // The index is a call away, so that a queue without one keeps its registers.
  struct Found {
    KeyIndex::Hit hit;
    std::uint64_t depth = 0;
  };
  [[gnu::noinline]] Found find_indexed(MatchKey key) noexcept {
    Found found;
    found.hit = index_->find(key, found.depth);
    return found;
  }

  // All entries of the index, where they are few. False: no memory, and all are where they were.
  [[gnu::noinline, gnu::cold]] bool return_to_window() noexcept {
    while (window_.capacity() <= index_->messages()) {
      if (!window_.grow()) return false;
    }
    visit_in_order(
        *index_, [](const QueueEntry&) { return true; },
        [&](const QueueEntry& entry) {
          index_->erase(find_indexed_equal(entry));
          window_.append(packed(entry));  // a message
        });
    leave_index(index_->last_gone());
    had_index_ = false;
    window_.set_room(room());
    decision_.be_warier(newest());
    return true;
  }

  // The index is nearly always told by a look.
  TakeResult take_from_both(const MatchKey& key, void** cookie) noexcept {
    if (!window_.empty() && gathers()) [[unlikely]]
      end_gathering();
    const Glance glance = indexed_->take(key, cookie);
    if (glance == Glance::unknown) return take_far(key, cookie);
    if (glance == Glance::none) {
      return window_.empty() ? TakeResult{false, 0} : take_from_window(key, cookie);
    }
    return {true, 1};
  }

  // Where a look into the index did not tell.
  [[gnu::noinline]] TakeResult take_far(MatchKey key, void** cookie) noexcept {
    const TakeResult indexed = search_index(key, cookie);
    if (indexed.taken) return indexed;
    const TakeResult outside = take_from_window(key, cookie);
    return {outside.taken, indexed.depth + outside.depth};
  }

  [[gnu::noinline]] TakeResult take_from_window(MatchKey key, void** cookie) noexcept {
    std::uint64_t depth = 0;
    const std::size_t position = find_in_window(key, depth);
    if (position == Window::kNone) return {false, depth};
    *cookie = window_.cookie_at(position);
    erase_outside(position);
    return {true, depth};
  }

  TakeResult search_index(MatchKey key, void** cookie) noexcept {
    std::uint64_t depth = 0;
    const KeyIndex::Hit hit = index_->find(key, depth);
    if (!hit) return {false, depth};
    *cookie = index_->at(hit).cookie;
    erase_indexed(hit);
    return {true, depth};
  }

  [[gnu::noinline]] void erase_indexed(KeyIndex::Hit hit) noexcept { index_->erase(hit); }

  std::size_t find_in_window(const MatchKey& key, std::uint64_t& depth) noexcept {
    const std::size_t position = window_.find(key);
    const std::size_t end = position == Window::kNone ? window_.tail() : position;
    depth += end - window_.head() + (position != Window::kNone);
    if (position == Window::kNone || !window_.is_one_group() || indexing_) pass(end);
    return position;
  }

  // Counts the entries before a position, which a search has passed in vain; returns how many.
  [[gnu::noinline]] std::size_t pass(std::size_t end) noexcept {
    const std::size_t passed = end - window_.head();
    if (passed == 0) return 0;
    if (indexing_ || decision_.is_too_much(passed, oldest(), newest(), window_.length(),
                                           had_index_)) [[unlikely]]
      start_indexing(end);
    return passed;
  }

  [[gnu::noinline, gnu::cold]] void start_indexing(std::size_t before) noexcept {
    const std::size_t passed = before - window_.head();
    decision_.begin_anew();
    if (passed <= kNear) return;
    indexing_ = true;
    move_to_index(std::max(kMovesOfSearch, passed / kMovedPart), before);
  }

  KeyIndex::Hit find_indexed_equal(const QueueEntry& entry) const noexcept {
    const auto same = [&](const QueueEntry& other) { return other.sequence == entry.sequence; };
    return index_->find_equal(entry.key, same);
  }

  // False: no memory.
  bool make_index() noexcept {
    if (index_ == nullptr) {
      index_.reset(new (std::nothrow) KeyIndex(*resources_, side_));
      if (index_ == nullptr) return false;
      index_->set_hints(hints_);
    }
    return true;
  }

  // The next entry, the oldest of all, goes to the index.
  bool starts_indexed() const noexcept {
    return had_index_ && window_.empty() && most_before_index() == 0;
  }
  bool begin_index(const QueueEntry& entry) noexcept {
    if (!index_->push(entry)) return false;
    indexed_ = index_.get();
    window_.set_room(room());
    return true;
  }

  // Not for the entry that an index begins with: those that follow at hand are newer.
  bool pass_to_index(const QueueEntry& entry) noexcept {
    newest_passed_ = entry.sequence;
    return index_->push(entry);
  }

  // Moves up to this many of the oldest entries before a position from the
  // window to the index; false if none could be moved.
  bool move_to_index(std::size_t entries, std::size_t before) noexcept {
    if (!make_index()) return false;
    if (index_->empty() && !window_.empty()) {
      index_->expect(before - window_.head(), window_.at(window_.head()).key);
    }
    bool moved = false;
    for (; entries > 0 && window_.head() < before && !window_.empty(); --entries) {
      if (!pass_to_index(window_.at(window_.head()))) break;
      window_.erase(window_.head());
      moved = true;
    }
    if (moved) {
      indexed_ = index_.get();
      window_.set_room(room());
    }
    return moved;
  }

  // No cache has the index, and next to nothing older than what comes is outside of it.
  bool gathers() const noexcept {
    return is_indexed() && indexed_->outgrows_caches() && window_.length() <= kGathered;
  }
  // Entries come to a slot once its line has come from memory, and that of many at once: when the
  // window is full, the lines of its newer half are asked for, and the older half, whose lines were
  // asked for the last time, goes to the index. False: no memory.
  bool gather() noexcept {
    if (window_.capacity() < kGathered && window_.grow()) window_.set_room(most_gathered());
    const std::size_t most = most_gathered();
    if (window_.length() < most) return true;
    const std::size_t half = window_.head() + most / 2;
    prefetch_slots(half);
    return move_to_index(most / 2, half);
  }
  // For a search, which looks into the index alone then. Where few came since the last one, all go
  // straight there from now on.
  [[gnu::noinline, gnu::cold]] void end_gathering() noexcept {
    const bool few = window_.length() < most_gathered() / 2;
    prefetch_slots(window_.head());
    move_to_index(kGathered, window_.tail());
    if (few) window_.set_room(0);
  }
  std::size_t most_gathered() const noexcept { return std::min(window_.capacity(), kGathered); }
  // Inlined as what it calls is: a function that only asks for lines GCC 12 takes for one that does
  // nothing, and leaves its calls out.
  [[gnu::always_inline]] void prefetch_slots(std::size_t from) const noexcept {
    for (; from != window_.tail(); ++from) indexed_->prefetch(window_.at(from).key);
  }

  // Made where the bytes reserved for it are aligned: an aligned member would part those before it
  // from what stands before this object, and all that every call looks at would not be one line.
  Window::Slots& make_inline_slots() noexcept {
    void* place = inline_bytes_;
    std::size_t bytes = sizeof inline_bytes_;
    return *::new (std::align(alignof(Window::Slots), sizeof(Window::Slots), place, bytes))
        Window::Slots;
  }

  KeyIndex* indexed_ = nullptr;  // the index, if it holds anything
  Window window_;
  std::unique_ptr<KeyIndex> index_;
  bool indexing_ = index_at_once;
  IndexDecision<index_at_once ? 0 : 16> decision_;
  bool had_index_ = false;           // which was of use: the next one starts sooner
  unsigned in_order_ = 0;            // times that the index emptied so, in a row
  std::uint64_t newest_passed_ = 0;  // to the index, after others and not at hand: its number
  std::size_t indexed_before_ = 0;   // entries, when the window last gave some of its own away
  QueueResources* resources_;
  const QueueSide side_;
  Hints hints_;
  alignas(void*) std::byte
      inline_bytes_[sizeof(Window::Slots) + alignof(Window::Slots) - sizeof(void*)];
};

using AdaptiveQueue = NewestEntry<WindowedIndex<false>>;
using IndexedQueue = NewestEntry<WindowedIndex<true>>;

}  // namespace tagline
