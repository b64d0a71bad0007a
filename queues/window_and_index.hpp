// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "queues/in_order.hpp"
#include "queues/index_decision.hpp"
#include "queues/key_index.hpp"
#include "queues/match_key.hpp"
#include "queues/resources.hpp"
#include "queues/window.hpp"

namespace tagline {

// Where the entries of an adaptive queue are, and when they move; queues/adaptive.hpp is how they
// are found.
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
//   to close it up again and again. Neither while wildcards are about, which cost more there, but
//   for more than a few receives, some of which have them. If they come later, a few messages
//   return to the window, and next time more entries have to come without them. See
//   queues/index_decision.hpp.
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
// `indexed` starts the index with the first search that passes anything, for measuring the index by
// itself.
//
// Guarantees: append is O(1) expected and amortised, and so is what a search moves; order is kept;
// without memory for the index the window serves, more slowly.
class WindowAndIndex {
 public:
  WindowAndIndex(QueueResources& resources, QueueSide side, bool index_at_once) noexcept
      : window_(resources, make_inline_slots()),
        index_at_once_(index_at_once),
        indexing_(index_at_once),
        resources_(&resources),
        side_(side) {}

  void set_hints(const Hints& hints) noexcept {
    hints_ = hints;
    if (index_ != nullptr) index_->set_hints(hints);
  }

  bool empty() const noexcept { return window_.empty() && !is_indexed(); }

  // The index holds something.
  bool is_indexed() const noexcept { return indexed_ != nullptr; }

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

  // Whether the index is to be left, once entries of it were taken or erased. newest: the sequence
  // number of the newest entry that was taken in or passed on at hand.
  bool has_empty_index() const noexcept { return indexed_->empty(); }
  [[gnu::noinline]] void leave_index(std::uint64_t newest) noexcept {
    indexed_ = nullptr;
    indexing_ = index_at_once_;
    // As far as this is easily told: no search was in vain, and the newest entry left last. Without
    // a branch, as of a few entries nobody could foresee that.
    const std::uint64_t last = index_->last_gone();
    const unsigned newest_last = unsigned{last == newest} | unsigned{last == newest_passed_};
    in_order_ = (in_order_ + 1) * (newest_last & unsigned{!index_->was_missed()});
    const unsigned often = index_->peak() <= Window::kGroup ? kInOrderIfShort : kInOrder;
    had_index_ = in_order_ < (window_.empty() ? often : 1);
    if (!had_index_) in_order_ = 0;
    index_->renew_peak(last);
    if (window_.is_mostly_past()) return shrink_window();
    window_.set_room(most_outside());
  }
  KeyTable::SlotHint slot_hint(bool small) const noexcept {
    return is_indexed() ? indexed_->slot_hint(small) : KeyTable::SlotHint();
  }
  // See KeyTable.
  void let_shrink(std::uint64_t newest, std::size_t cycle) noexcept {
    if (index_ != nullptr) index_->let_shrink(newest, cycle);
  }
  // The sequence number of the entry that left the index last.
  std::uint64_t last_gone() const noexcept { return indexed_->last_gone(); }

 protected:
  static constexpr std::uint64_t kExact = kSourceMask | kTagMask;
  static constexpr std::size_t kFewScattered = 2;  // entries among holes; fewer are soon compared
  static constexpr std::size_t kFewWild = 16;      // receives, some of them with wildcards
  static constexpr unsigned kInOrder = 2;          // times: the newest is the last by chance, too,
  static constexpr unsigned kInOrderIfShort = 8;   // of a few entries often
  static constexpr std::size_t kMany = 96;         // that are listed faster than first compared
  static constexpr std::size_t kMoves = 64;        // out of a full window
  static constexpr std::size_t kFollowing = 4;     // for each that comes
  static constexpr std::size_t kGathered = 16;     // see gather()
  static constexpr std::size_t kMovesOfSearch = 128;  // of the entries it passed, or
  static constexpr std::size_t kMovedPart = 1024;     // one of so many

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

  // A short window is full of holes, and worth an index; no wildcards are about that cost one more.
  bool is_scattered() noexcept {
    if (!window_.is_scattered_group() || window_.entries() < kFewScattered) return false;
    if (!decision_.is_calm(newest())) return false;
    decision_.be_less_wary();
    if (indexes_wild()) return true;
    const auto is_wild = [](const QueueEntry& entry) { return entry.key.mask != kExact; };
    return window_.find_if(is_wild) == Window::kNone;
  }
  // Wildcards or not, an index finds so many receives faster; of messages it would list each once
  // more for them.
  bool indexes_wild() const noexcept {
    return side_ == QueueSide::posted && window_.entries() > kFewWild;
  }
  // Matches of a short queue come in random order, and no wildcards are about that cost an index
  // more: the next entries are indexed.
  [[gnu::noinline, gnu::cold]] void ask_for_index() noexcept {
    const auto is_exact = [&] { return indexes_wild() || window_.held_only_exact(); };
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
    if (passed == 1 && !index_at_once_) return;  // for next to nothing
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
  const bool index_at_once_;
  bool indexing_;
  IndexDecision decision_;
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

}  // namespace tagline
