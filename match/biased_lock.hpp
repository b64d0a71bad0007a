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

// Differs in all threads that are alive, and is never 0.
inline std::uintptr_t this_thread() noexcept {
  return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
}

// A spin lock that is free of charge for the first thread that takes it, until another
// one does: most MPI programs that ask for MPI_THREAD_MULTIPLE communicate in one thread,
// or in one per communicator.
//
// The first thread may enter and leave by plain stores to a word that nobody else writes.
// An atomic exchange would make its store visible before its next load; instead whoever
// comes second makes it so, for good and once:
//
//   first thread   stores inside     looks at the bias
//   second one     ends the bias     barrier in all threads   waits as long as inside is set
//
// At least one of the two sees the other. From then on all take the word held, by an
// exchange (asymmetric Dekker algorithm; as in biased locks of Java's virtual machines).
// A third thread that comes in between does the same as the second one: only when somebody
// has waited to the end is the bias gone.
//
// Not recursive.
class BiasedLock {
 public:
  // Before anybody uses it. Otherwise it is a spin lock from the start.
  void allow_bias() noexcept {
    if (allow_barriers()) bias_.store(Bias::valid, std::memory_order_relaxed);
  }

  // The way in of the thread that is_owners() has told so, as long as no other has come;
  // out again by leave_first(). Once it has failed, it fails for good.
  [[gnu::always_inline]] bool enter_first() noexcept {
    inside_.store(true, std::memory_order_relaxed);
    // The compiler keeps the order; the second thread's barrier makes the processor's.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (bias_.load(std::memory_order_relaxed) == Bias::valid) [[likely]]
      return true;
    inside_.store(false, std::memory_order_release);
    return false;
  }
  // With the lock taken by lock(): whether the next time enter_first() will do.
  bool is_owners() const noexcept { return bias_.load(std::memory_order_relaxed) == Bias::valid; }

  // release: pairs with the acquire in revoke().
  void leave_first() noexcept { inside_.store(false, std::memory_order_release); }

  // False if it was another's, and had to be waited for.
  bool lock() noexcept {
    const bool was_free = held_.try_lock();
    if (!was_free) [[unlikely]]
      wait();
    claim_or_revoke();
    return was_free;
  }

  void unlock() noexcept { held_.unlock(); }

  // Returns when the lock has been free for a moment. A thread that takes it afterwards sees
  // what the caller stored seq_cst before; of a thread that had it the caller sees all.
  void wait_until_free() noexcept {
    Backoff backoff;
    while (held_.is_held()) backoff.wait();
    // acquire: pairs with the release in revoke().
    if (bias_.load(std::memory_order_acquire) == Bias::gone) [[likely]]
      return;
    // Behind the look at held_: whoever became the first one before that is seen.
    const std::uintptr_t first = first_.load(std::memory_order_relaxed);
    if (first != 0 && first != this_thread()) revoke();
  }

 private:
  enum class Bias : std::uint8_t { valid, ending, gone };

  // Not with another exchange, which would take the line from the owner. Nor with a look too
  // soon: the line is the shard's, see Shard.
  [[gnu::noinline]] void wait() noexcept {
    Backoff backoff(4);
    do {
      while (held_.is_held()) backoff.wait();
    } while (!held_.try_lock());
  }

  // With held_ taken.
  void claim_or_revoke() noexcept {
    // acquire: pairs with the release in revoke().
    if (bias_.load(std::memory_order_acquire) == Bias::gone) [[likely]]
      return;
    const std::uintptr_t first = first_.load(std::memory_order_relaxed);
    if (first == 0) {
      first_.store(this_thread(), std::memory_order_relaxed);
    } else if (first != this_thread()) {
      revoke();
    }
  }

  [[gnu::noinline, gnu::cold]] void revoke() noexcept {
    bias_.store(Bias::ending, std::memory_order_seq_cst);
    barrier_in_all_threads();
    Backoff backoff;
    // acquire: pairs with the release in leave_first().
    while (inside_.load(std::memory_order_acquire)) backoff.wait();
    // release: whoever sees it sees what the first thread did.
    bias_.store(Bias::gone, std::memory_order_release);
  }

  SpinLock held_;
  std::atomic<bool> inside_{false};  // written by the first thread only
  std::atomic<Bias> bias_{Bias::gone};
  std::atomic<std::uintptr_t> first_{0};  // set once, with held_ taken
};

}  // namespace tagline
