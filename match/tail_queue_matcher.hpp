// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "match/concurrent_parts.hpp"
#include "match/inbox.hpp"
#include "match/locks.hpp"
#include "match/matcher.hpp"
#include "match/readers.hpp"

namespace tagline {

// Where a search only reads, as the standard library has it: several threads may search at once
// while nobody changes the queue.
template <class Queue>
concept OffersReading = requires(const Queue queue, MatchKey key, std::uint64_t depth) {
  queue.find(key, depth);
};

// One side of a tail-queue matcher: a queue of any structure behind a lock of its own.
//
// A long queue in which nothing is found for a while is read by all threads together, without
// its lock. Who finds something, or has to change the queue for another reason, takes the lock
// and waits until they have left. One at a time, threads would go from side to side at the pace
// of the slowest.
//
// With bins, it is two queues, each with its lock: the front holds the oldest entries
// (about fifty), the back the others. A search takes the back's lock before it lets go
// of the front's, so searches go through the whole queue in one order, and two of them
// are inside at a time, one in each bin.
template <class Queue, bool kBins>
class TailQueueSide {
 public:
  using Core = QueueMatcher<Queue>;
  using Envelope = tagline_envelope;

  template <class... Arguments>
  TailQueueSide(tagline_side which, LockKind lock, const Arguments&... arguments)
      : which_(which), lock_(lock), back_(arguments...), front_lock_(lock), front_(arguments...) {}

  // How a search has ended without a match: whether it is alone with the end of the queue, and so
  // may change it, and how many entries it has passed that nobody has counted.
  struct Missed {
    bool alone;
    std::uint64_t depth;
  };

  // attempt(core), in the order of the entries, until one does not say TAGLINE_NOT_FOUND; else
  // miss(Missed) while nobody else changes the end of the queue. Returns what they return.
  // wanted: of what is sought by its key, together with others if that can be; or nullptr.
  template <class Attempt, class Miss>
  [[gnu::always_inline]] tagline_status search(const Envelope* wanted, Attempt attempt, Miss miss) {
    Missed missed = {true, 0};
    Readers::Reader reader(kReads && wanted != nullptr ? &readers_ : nullptr);
    if (reader && !lacks(*wanted, missed.depth)) {
      reader.leave();
      wanted = nullptr;
    }
    LockGuard front(kBins ? &front_lock_ : nullptr);
    if constexpr (kBins) {
      if (back_length_.load(std::memory_order_relaxed) >= kRefill &&
          front_.length(which_) < kRefill) {
        refill();
      }
      const tagline_status status = attempt(front_);
      if (status != TAGLINE_NOT_FOUND) return status;
    }
    LockGuard back(reader ? nullptr : &lock_);
    front.unlock();
    if (reader) {
      missed.alone = false;
    } else if (kReads && wanted != nullptr && readers_.are_let_in()) {
      // Since it waits for the lock; to shut them out again would be the end of it.
      missed.alone = !lacks(*wanted, missed.depth);
    }
    if (missed.alone) {
      missed.depth = 0;
      close();
      const tagline_status status = attempt(back_);
      if (status != TAGLINE_NOT_FOUND) {
        if (misses_ != 0) misses_ = 0;
        note_length();
        return status;
      }
    }
    const tagline_status status = miss(missed);
    if (missed.alone) count_miss();
    return status;
  }
  // By who has missed together with others: what it would change is to be done soon.
  void ask_to_be_alone() noexcept { readers_.ask_to_close(); }

  // Both alone with the end; is_empty() tells of it.
  bool is_empty(std::uint64_t context_id) noexcept { return back_.is_empty(which_, context_id); }

  tagline_status append(std::uint64_t context_id, const QueueEntry& entry) noexcept {
    const tagline_status status = back_.append(which_, context_id, entry);
    note_length();
    return status;
  }

  // use() alone.
  template <class Use>
  void with_locks(Use use) {
    LockGuard front(front_lock_);
    LockGuard back(lock_);
    close();
    use();
  }

  // use(core) for each part, oldest entries first, alone.
  template <class Use>
  void for_each_part(Use use) {
    if constexpr (kBins) use(front_);
    use(back_);
    note_length();
  }

 private:
  static constexpr bool kReads = !kBins && OffersReading<Queue>;
  static constexpr std::uint64_t kFront = 50;
  static constexpr std::uint64_t kRefill = kFront / 2;
  // When readers are let in: whoever finds something then has to search again, and between short
  // searches lines go across the more often the fewer wait.
  static constexpr std::uint64_t kLong = 64;  // entries
  static constexpr unsigned kMissesInRow = 64;

  // With the lock of the end held, what is below as well.
  void count_miss() noexcept {
    if constexpr (kReads) {
      if (back_.length(which_) >= kLong && ++misses_ >= kMissesInRow) readers_.open();
    }
  }
  void close() noexcept {
    if constexpr (kReads) {
      if (readers_.close()) misses_ = 0;
    }
  }

  // By a reader, or the owner of the lock.
  bool lacks(Envelope envelope, std::uint64_t& depth) const noexcept {
    if constexpr (kReads) {
      const Queue* const queue = back_.look_up(which_, envelope.context_id);
      if (queue == nullptr) return true;
      return is_exact(envelope) ? !queue->find(exact_key(envelope), depth)
                                : !queue->find(receive_key(envelope), depth);
    }
    return false;
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
  Readers readers_;
  Lock lock_;
  Core back_;            // or the whole queue
  unsigned misses_ = 0;  // in a row, of a long queue: a line that a short one hands to nobody
  Lock front_lock_;
  Core front_;
  alignas(kCacheLine) std::atomic<std::uint64_t> back_length_{0};
};

// Posts and arrivals search at the same time (M. Dosanjh, 2017, chapter 6.2).
//
//                 own lock, or readers         tail lock
//   posted      [ oldest ... ] <- drained -- [ inbox ... newest ]  <- post_receive
//   unexpected  [ oldest ... ] <- drained -- [ inbox ... newest ]  <- arrive
//
// post_receive searches the unexpected queue under that queue's lock, or as one of its
// readers. Only if it finds nothing does it take the tail lock, and under both it searches
// what has come to the unexpected queue's inbox meanwhile, takes that over unless it is little
// or others read, and if there is still no match appends to the inbox of the posted queue.
// arrive is the mirror image.
//
// Why no match is lost: "nothing in your inbox fits" and "now I am in mine" are one step
// under the tail lock, so of a receive and a message that fit, the one that takes it
// second finds the other in an inbox, or in a queue that was filled from there by
// somebody before it. Why order holds: an inbox is newer than its queue, entries go over
// in order, and nobody changes the queue of whoever searches until it has seen the inbox too.
// Locks are taken in the order posted, unexpected, tail; a post or an arrival takes one
// of the first two. What is to see or change both sides at one moment takes all of them.
template <class Queue, bool kBins>
class TailQueueMatcher final : public tagline_matcher {
  using Side = TailQueueSide<Queue, kBins>;
  using Core = typename Side::Core;
  using Missed = typename Side::Missed;

 public:
  TailQueueMatcher(typename Queue::Parameters parameters, const simd::Kernels& kernels,
                   const tagline_options& options, LockKind lock)
      : limit_(options),
        posted_(TAGLINE_POSTED, lock, parameters, kernels, std::size_t{0}, first(options),
                limit_.get()),
        unexpected_(TAGLINE_UNEXPECTED, lock, parameters, kernels, std::size_t{0}, std::uint64_t{1},
                    limit_.get()),
        tail_lock_(lock),
        inbox_{Inbox(first(options), limit_.get()), Inbox(1, limit_.get())} {
    about->isa_name = kernels.isa;
  }

  tagline_status post_receive(Envelope envelope, void* receive, void** message,
                              tagline_handle* handle) noexcept override {
    return meet<TAGLINE_UNEXPECTED, kTake>(
        envelope, [&](Core& core) { return core.claim(envelope, message, nullptr); },
        tell(envelope, message, nullptr),
        [&] { return append<TAGLINE_POSTED>(envelope, receive, handle); });
  }

  tagline_status arrive(Envelope envelope, void* message, void** receive) noexcept override {
    return meet<TAGLINE_POSTED, kTake>(
        envelope, [&](Core& core) { return core.match_message(envelope, receive); },
        tell(envelope, receive, nullptr),
        [&] { return append<TAGLINE_UNEXPECTED>(envelope, message, nullptr); });
  }

  tagline_status claim(Envelope envelope, void** message, Envelope* found) noexcept override {
    return meet<TAGLINE_UNEXPECTED, kTake>(
        envelope, [&](Core& core) { return core.claim(envelope, message, found); },
        tell(envelope, message, found), not_found);
  }

  tagline_status probe(Envelope envelope, void** message, Envelope* found) noexcept override {
    return meet<TAGLINE_UNEXPECTED, kLook>(
        envelope, [&](Core& core) { return core.probe(envelope, message, found); },
        tell(envelope, message, found), not_found);
  }

  tagline_status inspect(Envelope envelope, tagline_visitor visit, void* user) override {
    return meet<TAGLINE_UNEXPECTED, kLook>(
        envelope, [&](Core& core) { return core.inspect(envelope, visit, user); },
        [&](const QueueEntry& entry) {
          visit(user, TAGLINE_UNEXPECTED, key_envelope(envelope.context_id, entry.key),
                entry.cookie);
        },
        not_found);
  }

  tagline_status match_message(Envelope envelope, void** receive) noexcept override {
    return meet<TAGLINE_POSTED, kTake>(
        envelope, [&](Core& core) { return core.match_message(envelope, receive); },
        tell(envelope, receive, nullptr), not_found);
  }

  tagline_status append_receive(Envelope envelope, void* receive,
                                tagline_handle* handle) noexcept override {
    LockGuard tail(tail_lock_);
    return append<TAGLINE_POSTED>(envelope, receive, handle);
  }

  tagline_status append_message(Envelope envelope, void* message) noexcept override {
    LockGuard tail(tail_lock_);
    return append<TAGLINE_UNEXPECTED>(envelope, message, nullptr);
  }

  tagline_status cancel_receive(Envelope envelope, void* receive) noexcept override {
    const MatchKey key = receive_key(envelope);
    return cancel([&](Core& core) { return core.cancel_receive(envelope, receive); },
                  [&](const Inbox::Item& item) {
                    return item.context_id == envelope.context_id && item.entry.key == key &&
                           item.entry.cookie == receive;
                  });
  }

  tagline_status cancel_handle(std::uint64_t context_id, tagline_handle handle) noexcept override {
    return cancel([&](Core& core) { return core.cancel_handle(context_id, handle); },
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
        add_statistics(sum, inbox_[which].statistics());
        all.pool_bytes += inbox_[which].used_bytes();
      }
    });
    return all;
  }

 private:
  static constexpr tagline_side kSides[] = {TAGLINE_POSTED, TAGLINE_UNEXPECTED};
  enum Manner { kTake, kLook };
  static constexpr std::uint64_t kMostBesideReaders = 32;  // entries in an inbox

  // Searches a queue, attempt(core), then, with the tail lock as well, its inbox; hit(entry) with
  // what fits there, else miss() while nothing new can come.
  template <tagline_side which, Manner manner, class Attempt, class Hit, class Miss>
  [[gnu::always_inline]] tagline_status meet(Envelope envelope, Attempt attempt, Hit hit,
                                             Miss miss) {
    return side(which).search(
        &envelope,
        [&](Core& core) {
          core.fetch_counts(which);
          return attempt(core);
        },
        [&](Missed missed) {
          // What the other thread has changed since comes across while the lock does, not line
          // after line behind it.
          for (const Inbox& inbox : inbox_) inbox.fetch();
          LockGuard tail(tail_lock_);
          if (missed.depth > 0 || !inbox_[which].empty()) {
            if (take_over<which, manner>(envelope, missed, hit)) return TAGLINE_MATCHED;
          }
          return miss();
        });
  }

  // Moves what has come to the inbox to the queue, but for the oldest entry that fits if
  // it is to be taken. Few entries stay, and are searched here: they are about to be matched,
  // and whoever moved them would take the lines at the queue's end from the other thread, which
  // takes them back. All stay while others read the queue, and those that it has no memory for.
  // They are still newer. Wants the tail lock, and nobody to change the queue.
  template <tagline_side which, Manner manner, class Hit>
  [[gnu::always_inline]] bool take_over(Envelope envelope, Missed missed, Hit hit) {
    Inbox& inbox = inbox_[which];
    const MatchKey key = receive_key(envelope);
    // Whoever is alone has counted the search if there was anything to search.
    const bool is_new = !missed.alone || side(which).is_empty(envelope.context_id);
    std::uint64_t depth = missed.depth;
    bool met = false;
    bool stays = !missed.alone || inbox.length() <= Inbox::kInline;
    inbox.filter([&](const Inbox::Item& item) {
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
    if (!missed.alone && inbox.length() > kMostBesideReaders) side(which).ask_to_be_alone();
    inbox.count_search(depth, met && manner == kTake, is_new && depth > 0);
    return met;
  }

  // Wants the tail lock.
  template <tagline_side which>
  tagline_status append(Envelope envelope, void* cookie, tagline_handle* handle) noexcept {
    const std::uint64_t sequence =
        inbox_[which].append(envelope.context_id, receive_key(envelope), cookie);
    if (sequence == 0) return no_memory();
    if (handle != nullptr) *handle = sequence;
    return TAGLINE_QUEUED;
  }

  // attempt(core) in the queue, then the oldest wanted(item) in its inbox.
  template <class Attempt, class Wanted>
  tagline_status cancel(Attempt attempt, Wanted wanted) noexcept {
    return posted_.search(nullptr, attempt, [&](Missed) {
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
  mutable Inbox inbox_[2];  // behind the tail lock, by side
};

}  // namespace tagline
