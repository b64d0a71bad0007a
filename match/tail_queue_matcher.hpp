// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>

#include "match/concurrent_parts.hpp"
#include "match/inbox.hpp"
#include "match/locks.hpp"
#include "match/matcher.hpp"

namespace tagline {

// One side of a tail-queue matcher: a queue of any structure behind a lock of its own.
//
// With bins, it is two queues, each with its lock: the front holds the oldest entries
// (about fifty), the back the others. A search takes the back's lock before it lets go
// of the front's, so searches go through the whole queue in one order, and two of them
// are inside at a time, one in each bin.
template <class Queue, bool kBins>
class TailQueueSide {
 public:
  using Core = QueueMatcher<Queue>;
  using Found = typename Core::Found;

  template <class... Arguments>
  TailQueueSide(tagline_side which, LockKind lock, const Arguments&... arguments)
      : which_(which), lock_(lock), back_(arguments...), front_lock_(lock), front_(arguments...) {}

  // find(core) -> Found, in the order of the entries; then hit(core, found) with its lock
  // held, or miss() with the lock of the end held. Returns what they return.
  template <class Find, class Hit, class Miss>
  tagline_status search(Find find, Hit hit, Miss miss) {
    if constexpr (kBins) {
      LockGuard front(front_lock_);
      if (back_length_.load(std::memory_order_relaxed) >= kRefill &&
          front_.length(which_) < kRefill) {
        refill();
      }
      if (const Found found = find(front_)) return hit(front_, found);
      LockGuard back(lock_);
      front.unlock();
      return search_back(find, hit, miss);
    } else {
      LockGuard back(lock_);
      return search_back(find, hit, miss);
    }
  }

  // Both with the lock of the end held; is_empty() tells of the end.
  bool is_empty(std::uint64_t context_id) noexcept { return back_.is_empty(which_, context_id); }

  tagline_status append(std::uint64_t context_id, const QueueEntry& entry) noexcept {
    const tagline_status status = back_.append(which_, context_id, entry);
    note_length();
    return status;
  }

  // use() with all locks held.
  template <class Use>
  void with_locks(Use use) {
    LockGuard front(front_lock_);
    LockGuard back(lock_);
    use();
  }

  // use(core) for each part, oldest entries first, with all locks held.
  template <class Use>
  void for_each_part(Use use) {
    if constexpr (kBins) use(front_);
    use(back_);
    note_length();
  }

 private:
  static constexpr std::uint64_t kFront = 50;
  static constexpr std::uint64_t kRefill = kFront / 2;

  template <class Find, class Hit, class Miss>
  tagline_status search_back(Find find, Hit hit, Miss miss) {
    const Found found = find(back_);
    if (!found) return miss();
    const tagline_status status = hit(back_, found);
    note_length();
    return status;
  }

  // With the front's lock held. Waits for whoever is in the back.
  [[gnu::noinline]] void refill() noexcept {
    LockGuard back(lock_);
    back_.move_oldest(which_, kFront - front_.length(which_), front_);
    note_length();
  }

  // relaxed: a hint when to refill; what is moved is decided under the lock.
  void note_length() noexcept {
    if constexpr (kBins) back_length_.store(back_.length(which_), std::memory_order_relaxed);
  }

  const tagline_side which_;
  Lock lock_;
  Core back_;  // or the whole queue
  Lock front_lock_;
  Core front_;
  alignas(kCacheLine) std::atomic<std::uint64_t> back_length_{0};
};

// Posts and arrivals search at the same time (M. Dosanjh, 2017, chapter 6.2).
//
//                 own lock                     tail lock
//   posted      [ oldest ... ] <- drained -- [ inbox ... newest ]  <- post_receive
//   unexpected  [ oldest ... ] <- drained -- [ inbox ... newest ]  <- arrive
//
// post_receive searches the unexpected queue under that queue's lock. Only if it finds
// nothing does it take the tail lock, and under both it searches what has come to the
// unexpected queue's inbox meanwhile, takes that over unless it is little, and if there is
// still no match appends to the inbox of the posted queue. arrive is the mirror image.
//
// Why no match is lost: "nothing in your inbox fits" and "now I am in mine" are one step
// under the tail lock, so of a receive and a message that fit, the one that takes it
// second finds the other in an inbox, or in a queue that was filled from there by
// somebody before it. Why order holds: an inbox is newer than its queue, entries go over
// in order, and whoever searches owns the queue's lock until it has seen the inbox too.
// Locks are taken in the order posted, unexpected, tail; a post or an arrival takes one
// of the first two. What is to see or change both sides at one moment takes all of them.
template <class Queue, bool kBins>
class TailQueueMatcher final : public tagline_matcher {
  using Side = TailQueueSide<Queue, kBins>;
  using Core = typename Side::Core;
  using Found = typename Side::Found;

 public:
  TailQueueMatcher(typename Queue::Parameters parameters, const simd::Kernels& kernels,
                   const tagline_options& options, LockKind lock)
      : limit_(options),
        posted_(TAGLINE_POSTED, lock, parameters, kernels, std::size_t{0}, first(options),
                limit_.get()),
        unexpected_(TAGLINE_UNEXPECTED, lock, parameters, kernels, std::size_t{0}, std::uint64_t{1},
                    limit_.get()),
        tail_lock_(lock),
        next_sequence_{first(options), 1},
        inbox_{Inbox(limit_.get()), Inbox(limit_.get())} {
    isa_name = kernels.isa;
  }

  tagline_status post_receive(Envelope envelope, void* receive, void** message,
                              tagline_handle* handle) noexcept override {
    return meet(
        TAGLINE_UNEXPECTED, envelope, kTake,
        [&](const QueueEntry& entry) { *message = entry.cookie; },
        [&] { return append(TAGLINE_POSTED, envelope, receive, handle); });
  }

  tagline_status arrive(Envelope envelope, void* message, void** receive) noexcept override {
    return meet(
        TAGLINE_POSTED, envelope, kTake, [&](const QueueEntry& entry) { *receive = entry.cookie; },
        [&] { return append(TAGLINE_UNEXPECTED, envelope, message, nullptr); });
  }

  tagline_status claim(Envelope envelope, void** message, Envelope* found) noexcept override {
    return meet(TAGLINE_UNEXPECTED, envelope, kTake, tell(envelope, message, found), not_found);
  }

  tagline_status probe(Envelope envelope, void** message, Envelope* found) noexcept override {
    return meet(TAGLINE_UNEXPECTED, envelope, kLook, tell(envelope, message, found), not_found);
  }

  tagline_status inspect(Envelope envelope, tagline_visitor visit, void* user) override {
    return meet(
        TAGLINE_UNEXPECTED, envelope, kLook,
        [&](const QueueEntry& entry) {
          visit(user, TAGLINE_UNEXPECTED, key_envelope(envelope.context_id, entry.key),
                entry.cookie);
        },
        not_found);
  }

  tagline_status match_message(Envelope envelope, void** receive) noexcept override {
    return meet(
        TAGLINE_POSTED, envelope, kTake, [&](const QueueEntry& entry) { *receive = entry.cookie; },
        not_found);
  }

  tagline_status append_receive(Envelope envelope, void* receive,
                                tagline_handle* handle) noexcept override {
    LockGuard tail(tail_lock_);
    return append(TAGLINE_POSTED, envelope, receive, handle);
  }

  tagline_status append_message(Envelope envelope, void* message) noexcept override {
    LockGuard tail(tail_lock_);
    return append(TAGLINE_UNEXPECTED, envelope, message, nullptr);
  }

  tagline_status cancel_receive(Envelope envelope, void* receive) noexcept override {
    const MatchKey key = receive_key(envelope);
    return cancel([&](Core& core) { return core.find_posted(envelope, receive); },
                  [&](const Inbox::Item& item) {
                    return item.context_id == envelope.context_id && item.entry.key == key &&
                           item.entry.cookie == receive;
                  });
  }

  tagline_status cancel_handle(std::uint64_t context_id, tagline_handle handle) noexcept override {
    return cancel([&](Core& core) { return core.find_posted(context_id, handle); },
                  [&](const Inbox::Item& item) {
                    return item.context_id == context_id && item.entry.sequence == handle;
                  });
  }

  std::size_t drop_context(std::uint64_t context_id, tagline_visitor visit, void* user) override {
    return drop(
        context_id, visit, user,
        [&](Core& core, const auto& told) { return core.remove_context(context_id, told); },
        [](const QueueEntry&) { return true; });
  }

  std::size_t drop_source(std::uint64_t context_id, std::int32_t source, tagline_visitor visit,
                          void* user) override {
    return drop(
        context_id, visit, user,
        [&](Core& core, const auto& told) { return core.remove_source(context_id, source, told); },
        [&](const QueueEntry& entry) {
          return !key_any_source(entry.key) && key_source(entry.key) == source;
        });
  }

  tagline_status set_hints(std::uint64_t context_id, unsigned hints) noexcept override {
    bool done = true;
    with_everything([&] {
      // All parts have been promised the same.
      unsigned before = 0;
      for_each_core([&](Core& core) { before = core.hints(context_id); });
      for_each_core(
          [&](Core& core) { done = done && core.set_hints(context_id, hints) == TAGLINE_OK; });
      // A part that has no memory for the context has none to promise about either.
      if (!done) for_each_core([&](Core& core) { core.set_hints(context_id, before); });
    });
    return done ? TAGLINE_OK : no_memory();
  }

  tagline_status observe_memory(MemoryObserver* observer) noexcept override {
    tagline_status status = TAGLINE_OK;
    const auto observe = [&](MemoryObserver* whom) {
      for_each_core([&](Core& core) {
        if (whom == nullptr || status == TAGLINE_OK) {
          const tagline_status told = core.observe_memory(whom);
          if (told != TAGLINE_OK) status = told;
        }
      });
      for (Inbox& inbox : inbox_) inbox.observe_memory(whom);
    };
    with_everything([&] {
      observe(observer);
      if (status != TAGLINE_OK) observe(nullptr);
    });
    return status;
  }

  void for_each(tagline_visitor visit, void* user) const override {
    with_everything([&] {
      for (const tagline_side which : kSides) {
        side(which).for_each_part([&](Core& core) {
          core.for_each_entry(which, [&](std::uint64_t id, const QueueEntry& entry) {
            visit(user, which, key_envelope(id, entry.key), entry.cookie);
          });
        });
        inbox_[which].for_each([&](const Inbox::Item& item) {
          visit(user, which, key_envelope(item.context_id, item.entry.key), item.entry.cookie);
        });
      }
    });
  }

  tagline_statistics statistics() const noexcept override {
    tagline_statistics all{};
    with_everything([&] {
      for (const tagline_side which : kSides) {
        tagline_side_statistics& sum = which == TAGLINE_POSTED ? all.posted : all.unexpected;
        side(which).for_each_part([&](Core& core) {
          const tagline_statistics part = core.statistics();
          add_statistics(sum, which == TAGLINE_POSTED ? part.posted : part.unexpected);
          all.pool_bytes += part.pool_bytes;
        });
        const Inbox& inbox = inbox_[which];
        add_statistics(sum, inbox_counts_[which]);
        sum.length += inbox.length();
        sum.high_water += inbox.high_water();
        all.pool_bytes += inbox.used_bytes();
      }
    });
    return all;
  }

 private:
  static constexpr tagline_side kSides[] = {TAGLINE_POSTED, TAGLINE_UNEXPECTED};
  enum Manner { kTake, kLook };

  // Searches a queue, then, with the tail lock as well, its inbox; hit(entry) with what
  // fits, else miss() while nothing new can come.
  template <class Hit, class Miss>
  tagline_status meet(tagline_side which, Envelope envelope, Manner manner, Hit hit, Miss miss) {
    return side(which).search(
        [&](Core& core) {
          core.fetch_counts(which);
          return core.find(which, envelope);
        },
        [&](Core& core, const Found& found) {
          hit(manner == kTake ? core.take(which, found) : core.look(which, found));
          return TAGLINE_MATCHED;
        },
        [&] {
          fetch_tail();
          LockGuard tail(tail_lock_);
          if (!inbox_[which].empty() && take_over(which, envelope, manner, hit)) {
            return TAGLINE_MATCHED;
          }
          return miss();
        });
  }

  // Moves what has come to the inbox to the queue, but for the oldest entry that fits if
  // it is to be taken. Few entries stay, and are searched here: they are about to be matched,
  // and whoever moved them would take the lines at the queue's end from the other thread, which
  // takes them back. Without memory the rest stays as well. It is still newer. Wants the lock of
  // the queue's end and the tail lock.
  template <class Hit>
  bool take_over(tagline_side which, Envelope envelope, Manner manner, Hit hit) {
    const MatchKey key = which == TAGLINE_POSTED ? exact_key(envelope) : receive_key(envelope);
    // Of the queue a search has been counted already if there was anything to search.
    const bool begins = side(which).is_empty(envelope.context_id);
    std::uint64_t depth = 0;
    bool met = false;
    bool stays = inbox_[which].length() <= Inbox::kInline;
    inbox_[which].filter([&](const Inbox::Item& item) {
      const bool is_looked_at = !met && item.context_id == envelope.context_id;
      depth += is_looked_at;
      if (is_looked_at && keys_meet(item.entry.key, key)) {
        met = true;
        hit(item.entry);
        if (manner == kTake) return false;
      }
      stays = stays || side(which).append(item.context_id, item.entry) != TAGLINE_QUEUED;
      return stays;
    });
    tagline_side_statistics& counts = inbox_counts_[which];
    counts.searches += begins && depth > 0;
    counts.matches += met && manner == kTake;
    counts.search_depth_sum += depth;
    counts.search_depth_max = std::max(counts.search_depth_max, depth);
    return met;
  }

  // What the other thread has changed since comes across while the lock does, not line after line
  // behind it.
  void fetch_tail() const noexcept {
    const auto* const end = reinterpret_cast<const char*>(std::end(inbox_counts_));
    for (const auto* line = reinterpret_cast<const char*>(next_sequence_); line < end;
         line += kCacheLine) {
      __builtin_prefetch(line, 1);
    }
  }

  // Wants the tail lock.
  tagline_status append(tagline_side which, Envelope envelope, void* cookie,
                        tagline_handle* handle) noexcept {
    std::uint64_t& next = next_sequence_[which];
    const MatchKey key = which == TAGLINE_POSTED ? receive_key(envelope) : exact_key(envelope);
    if (!inbox_[which].append({envelope.context_id, {key, cookie, next}})) return no_memory();
    if (handle != nullptr) *handle = next;
    if (++next == 0) ++next;  // 0 names no entry
    return TAGLINE_QUEUED;
  }

  template <class Find, class Wanted>
  tagline_status cancel(Find find, Wanted wanted) noexcept {
    return posted_.search(
        find, [](Core& core, const Found& found) { return core.cancel(found); },
        [&] {
          LockGuard tail(tail_lock_);
          bool cancelled = false;
          inbox_[TAGLINE_POSTED].filter([&](const Inbox::Item& item) {
            if (cancelled || !wanted(item)) return true;
            cancelled = true;
            return false;
          });
          return cancelled ? TAGLINE_OK : TAGLINE_NOT_FOUND;
        });
  }

  // remove(core, told) in the queues, wanted(entry) in the inboxes.
  template <class Remove, class Wanted>
  std::size_t drop(std::uint64_t context_id, tagline_visitor visit, void* user, Remove remove,
                   Wanted wanted) {
    std::size_t dropped = 0;
    const auto told = teller(context_id, visit, user);
    with_everything([&] {
      for (const tagline_side which : kSides) {
        side(which).for_each_part([&](Core& core) { dropped += remove(core, told); });
        inbox_[which].filter([&](const Inbox::Item& item) {
          if (item.context_id != context_id || !wanted(item.entry)) return true;
          ++dropped;
          told(which, item.entry);
          return false;
        });
      }
    });
    return dropped;
  }

  // use() with all locks, taken in the order of all calls, so nobody waits in a circle.
  template <class Use>
  void with_everything(Use use) const {
    posted_.with_locks([&] {
      unexpected_.with_locks([&] {
        LockGuard tail(tail_lock_);
        use();
      });
    });
  }

  // With everything locked.
  template <class Use>
  void for_each_core(Use use) const {
    for (const tagline_side which : kSides) side(which).for_each_part(use);
  }

  Side& side(tagline_side which) const noexcept {
    return which == TAGLINE_POSTED ? posted_ : unexpected_;
  }

  static std::uint64_t first(const tagline_options& options) noexcept {
    return options.first_handle == 0 ? 1 : options.first_handle;
  }

  SharedLimit limit_;
  // Read-only operations lock too.
  mutable Side posted_;
  mutable Side unexpected_;
  mutable Lock tail_lock_;
  // Behind the tail lock, by side, and side by side for fetch_tail().
  std::uint64_t next_sequence_[2];
  mutable Inbox inbox_[2];
  tagline_side_statistics inbox_counts_[2] = {};  // but for length and high water mark
};

}  // namespace tagline
