// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "match/locks.hpp"

namespace tagline {

// Makes every other thread of the process pass a memory barrier before it returns
// (membarrier(2)). Not cheap: half a microsecond to some microseconds.
//
// allow_barriers() asks the system for that once; false: it has no such call or forbids it.
bool allow_barriers() noexcept;
void barrier_in_all_threads() noexcept;

// A spin lock that is free of charge for one thread, until another one takes it: most MPI
// programs that ask for MPI_THREAD_MULTIPLE communicate in one thread, or in one per
// communicator. At first that is whoever comes first; later a thread that has had the lock
// to itself for long may be: always again the one that was last, others a few times in the life
// of a lock.
//
// The favoured thread may enter and leave by plain stores to a word that nobody else sets.
// An atomic exchange would make its store visible before its next load; instead whoever
// comes second makes it so, once:
//
//   favoured thread   stores inside     looks at the bias
//   second one        ends the bias     barrier in all threads   waits as long as inside is set
//
// At least one of the two sees the other. From then on all take the word held, by an
// exchange (asymmetric Dekker algorithm; as in biased locks of Java's virtual machines).
// A third thread that comes in between does the same as the second one: only when somebody
// has waited to the end is the bias gone.
//
// Each favour has a word `inside` of its own, and there are no more favours than words: a
// thread may be long about finding out that its favour is over, and store to its word still.
// Only to that thread a favour that is over may be given again, for it is done with that when it
// takes the lock.
//
// Whether a thread has the lock to itself is watched: the bias says so for a while, and whoever
// else takes the lock meanwhile, or sees it free, ends that, which costs no barrier.
//
// Not recursive.
class BiasedLock {
 public:
  // A thread and the number of its favour; 0 is nobody's.
  using Favour = std::uintptr_t;
  static constexpr unsigned kFavours = 8;

  // The number of the favour, if it is the thread's; otherwise kFavours or more.
  static std::uintptr_t number_of(Favour favour, std::uintptr_t thread) noexcept {
    return favour ^ thread;
  }

  // Before anybody uses it. Otherwise it is a spin lock for good.
  void allow_bias() noexcept { allow_bias(inside_[0]); }
  // first_inside: the word of the first favour, which stays as long as the lock.
  void allow_bias(std::atomic<bool>& first_inside) noexcept {
    if (!allow_barriers()) return;
    first_inside_ = &first_inside;
    given_ = 0;
    // relaxed: nobody looks yet.
    bias_.store(kFree, std::memory_order_relaxed);
  }

  // The way in of the thread that has this favour. nullptr: it has failed, and fails until the lock
  // gives the favour again. Otherwise out again by a store of false to the word, release: it pairs
  // with the acquire in finish(). Inlined: nothing goes through memory.
  [[gnu::always_inline]] std::atomic<bool>* enter(Favour favour) noexcept {
    std::atomic<bool>& inside = word_of(favour);
    return enter(favour, inside) ? &inside : nullptr;
  }
  // The same with the first favour of a lock, which is just this_thread(), and its word.
  [[gnu::always_inline]] bool enter_first(std::atomic<bool>& first_inside) noexcept {
    return enter(this_thread(), first_inside);
  }

  // With the lock taken by lock(): whether the thread is favoured or watched, if nothing is
  // ending; what to enter() with the next time, or 0. relaxed, both: only a closer changes it
  // meanwhile, to end it, and enter() sees that.
  bool has_favour() const noexcept { return !is_over(bias_.load(std::memory_order_relaxed)); }
  Favour favour() const noexcept {
    const Favour favour = bias_.load(std::memory_order_relaxed);
    return number_of(favour, this_thread()) < kFavours ? favour : 0;
  }

  // With the lock taken by lock(), and nobody who closes: favours the thread if nobody else has
  // come since it last asked; otherwise watches for that from here on. anew: by a favour of its
  // own, if any are left, unless it was favoured last.
  void consider_this_thread(bool anew) noexcept {
    // relaxed, all: unlock() comes behind it, and others look when they have taken the lock or
    // seen it free.
    const Favour bias = bias_.load(std::memory_order_relaxed);
    if (is_watched(bias)) {  // this thread, or lock() would have ended it
      const Favour favour = bias & ~kWatched;
      given_ = static_cast<std::uint8_t>(favour % kFavours);
      bias_.store(favour, std::memory_order_relaxed);
    } else if (is_over(bias)) {
      if (thread_of(bias) == this_thread()) {
        bias_.store((bias & ~kOver) | kWatched, std::memory_order_relaxed);
      } else if (anew && given_ + 1u < kFavours) {
        bias_.store(this_thread() | (given_ + 1u) | kWatched, std::memory_order_relaxed);
      }
    }
  }

  // False if it was another's, and had to be waited for.
  bool lock() noexcept {
    const bool was_free = held_.try_lock();
    if (!was_free) [[unlikely]]
      held_.lock_later();
    claim_or_revoke();
    return was_free;
  }

  // The same in steps, where it is nobody's favour, nor about to be: taking it, or waiting for it
  // behind that, and then the look.
  bool try_lock() noexcept { return held_.try_lock(); }
  void lock_later() noexcept { held_.lock_later(); }
  // acquire: as in claim_or_revoke().
  bool is_nobodys() const noexcept { return is_over(bias_.load(std::memory_order_acquire)); }

  void unlock() noexcept { held_.unlock(); }

  // Returns when the lock has been free for a moment. A thread that takes it afterwards sees
  // what the caller stored seq_cst before; of a thread that had it the caller sees all. True:
  // not yet of the favoured thread, whose favour ends now; for that a barrier in all threads
  // is to follow, and wait_for_favoured(). In two steps, so that many locks need one barrier.
  bool wait_for_holder() noexcept {
    Backoff backoff;
    while (held_.is_held()) backoff.wait();
    // acquire: pairs with the release in finish(). Behind the look at held_: whoever was
    // favoured before that is seen.
    const Favour favour = bias_.load(std::memory_order_acquire);
    if (is_over(favour) || favour == kFree) [[likely]]
      return false;
    if (thread_of(favour) == this_thread()) return false;
    if (is_watched(favour)) {
      // relaxed: whoever takes the lock before the shards are open again leaves it as it is.
      bias_.store(over(favour), std::memory_order_relaxed);
      return false;
    }
    // seq_cst: as in revoke().
    bias_.store(favour | kEnding, std::memory_order_seq_cst);
    return true;
  }
  // Nothing to do if there is no favour that ends: somebody else has waited to the end.
  void wait_for_favoured() noexcept {
    // acquire: as in wait_for_holder().
    const Favour favour = bias_.load(std::memory_order_acquire);
    if ((favour & kEnding) != 0) finish(favour);
  }

 private:
  // The bias is a favour, or one of these. kOver: the favour given last, of no thread if there
  // was none. kWatched: the one given next, or again, if nobody comes meanwhile.
  static constexpr Favour kFree = 1;                   // whoever comes first will be favoured
  static constexpr Favour kOver = ~(~Favour{0} >> 1);  // with a favour, each: nobody's
  static constexpr Favour kEnding = kOver >> 1;        // it ends
  static constexpr Favour kWatched = kOver >> 2;       // not yet
  static constexpr Favour kNumber = kFavours - 1;

  static bool is_over(Favour bias) noexcept { return (bias & kOver) != 0; }
  static bool is_watched(Favour bias) noexcept { return (bias & kWatched) != 0; }
  static Favour over(Favour bias) noexcept { return (bias & ~(kEnding | kWatched)) | kOver; }
  // A thread pointer is a multiple of 16, and far from the end of the lower half of the
  // addresses.
  static std::uintptr_t thread_of(Favour bias) noexcept {
    return bias & ~(kOver | kEnding | kWatched | kNumber);
  }

  [[gnu::always_inline]] std::atomic<bool>& word_of(Favour favour) noexcept {
    const unsigned number = favour % kFavours;
    return number == 0 ? *first_inside_ : inside_[number];
  }
  [[gnu::always_inline]] bool enter(Favour favour, std::atomic<bool>& inside) noexcept {
    inside.store(true, std::memory_order_relaxed);
    // The compiler keeps the order; the second thread's barrier makes the processor's.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (bias_.load(std::memory_order_relaxed) == favour) [[likely]]
      return true;
    inside.store(false, std::memory_order_release);
    return false;
  }

  // With held_ taken.
  void claim_or_revoke() noexcept {
    // acquire: pairs with the release in finish().
    const Favour favour = bias_.load(std::memory_order_acquire);
    if (is_over(favour)) [[likely]]
      return;
    if (favour == kFree) {
      // relaxed: others look when they have taken the lock or seen it free.
      bias_.store(this_thread(), std::memory_order_relaxed);
    } else if (thread_of(favour) != this_thread()) {
      revoke(favour);
    }
  }

  // Whoever closes does not hold the lock, and may do this together with whoever does: both
  // do the same for the same favour. None is given or watched for meanwhile, see Shards::lock().
  [[gnu::noinline, gnu::cold]] void revoke(Favour favour) noexcept {
    if (is_watched(favour)) return bias_.store(over(favour), std::memory_order_relaxed);
    // seq_cst: done before the barrier that follows, and after taking the lock or seeing it free.
    bias_.store(favour | kEnding, std::memory_order_seq_cst);
    barrier_in_all_threads();
    finish(favour);
  }
  void finish(Favour favour) noexcept {
    Backoff backoff;
    // acquire: pairs with the release of whoever leaves, see enter().
    const std::atomic<bool>& inside = word_of(favour);
    while (inside.load(std::memory_order_acquire)) backoff.wait();
    // release: whoever sees it sees what the favoured thread did.
    bias_.store(over(favour), std::memory_order_release);
  }

  PatientLock held_;                         // in the line that its owner works in, see Shard
  std::uint8_t given_ = kFavours - 1;        // number of the last favour; changes with held_ taken
  std::atomic<bool> inside_[kFavours] = {};  // each set by one thread only
  std::atomic<Favour> bias_{kOver};
  std::atomic<bool>* first_inside_ = nullptr;  // the first of them, or one instead
};

}  // namespace tagline
