// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "queues/in_order.hpp"
#include "queues/key_index.hpp"
#include "queues/match_key.hpp"
#include "queues/newest_entry.hpp"
#include "queues/window.hpp"
#include "queues/window_and_index.hpp"

namespace tagline {

// A short queue is a window that is searched from the front; a queue that is
// searched deeply gets an index for all but its newest entries.
//
//      older                                   newer
//   [ index: any number, found by key ] [ window: in order ] [ newest entry ]
//
// Every entry of the index is older than every entry of the window, so a search
// asks the index first and the window only if that has no match. When entries go to the index is
// told by queues/window_and_index.hpp.
//
// The newest entry waits outside, see queues/newest_entry.hpp. `adaptive` does all
// this; for `indexed` see there.
//
// Guarantees: append, find and erase are O(1) expected and amortised; order is
// kept.
template <bool index_at_once>
class WindowedIndex : public WindowAndIndex {
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
      : WindowAndIndex(resources, side, index_at_once) {}

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
};

using AdaptiveQueue = NewestEntry<WindowedIndex<false>>;
using IndexedQueue = NewestEntry<WindowedIndex<true>>;

}  // namespace tagline
