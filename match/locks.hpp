// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>

#include "queues/memory_backend.hpp"

namespace tagline {

// The locks of the concurrent matchers, all with one interface:
//
//   lock(node)      wait, then own it
//   try_lock(node)  own it, or false without waiting
//   unlock(node)    by the owner, with the node it locked with
//
// A LockNode is the caller's place in the queue, on its stack; only McsLock uses it.
//
//   name     waits on                  order of owners   two threads      more threads than cores
//   spin     one word, all together    whoever is first  fast             fine
//   patient  the same, but seldom      whoever is first  see PatientLock  fine
//   mcs      a word of its own         first come        good             slow: the next one sleeps
//   ticket   one word, all together    first come        good             slow: the next one sleeps
//   mutex    the system                whoever is first  the slowest      fine
//
// All but the mutex spin for a moment and then yield the processor, so that an owner that
// has lost its core gets one back.

// Differs in all threads that are alive, and is never 0.
inline std::uintptr_t this_thread() noexcept {
  return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
}

// How one waits: pauses that double, then yields.
class Backoff {
 public:
  Backoff() = default;
  // The first pauses are that many doublings long: for a word in a line that its owner works
  // in, where every look in between is a miss for the owner.
  explicit Backoff(unsigned doublings) noexcept : round_(doublings) {}

  void wait() noexcept {
    if (round_ >= kSpinRounds) {
      sched_yield();
      return;
    }
    for (unsigned i = 0; i < (1u << (round_ < kLongest ? round_ : kLongest)); ++i) pause();
    end_speculation();
    ++round_;
  }

  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

 private:
  // What follows is not begun before the pauses are over. Otherwise a processor that guesses
  // wrongly when that is looks at the word meanwhile, for nothing, and takes its line from the
  // owner each time: on one machine every third call of an owner waited for it, in some runs and
  // not in others, as the guesses went.
  static void end_speculation() noexcept {
#if defined(__SSE2__)
    __builtin_ia32_lfence();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
  }

  static constexpr unsigned kLongest = 5;      // 32 pauses at a time
  static constexpr unsigned kSpinRounds = 64;  // some tens of microseconds
  unsigned round_ = 0;
};

struct LockNode {
  std::atomic<LockNode*> next;
  std::atomic<bool> waiting;
};

// One word, taken by an exchange. A waiter only reads until the word is free, so that
// the owner keeps the line to itself meanwhile; between looks the pauses begin with kDoublings,
// see Backoff.
template <unsigned kDoublings>
class WordLock {
 public:
  // seq_cst: to a thread that closes the shards, taking the lock comes before the look at the
  // gate behind it (Shards::close). As acquire: pairs with unlock(), the owner sees
  // what the last one did. x86 has one instruction for both.
  bool try_lock() noexcept { return !held_.exchange(true, std::memory_order_seq_cst); }

  void lock() noexcept {
    if (try_lock()) [[likely]]
      return;
    lock_later();
  }
  // lock(), for whoever has just failed to try_lock(): not with another exchange at once, which
  // would take the line from the owner.
  [[gnu::noinline]] void lock_later() noexcept {
    Backoff backoff(kDoublings);
    do {
      // relaxed: the exchange that follows decides.
      while (held_.load(std::memory_order_relaxed)) backoff.wait();
    } while (!try_lock());
  }

  // The same with so many looks at most; false: it is another's still.
  [[gnu::noinline]] bool try_later(unsigned looks) noexcept {
    Backoff backoff(kDoublings);
    for (; looks > 0; --looks) {
      backoff.wait();
      if (!is_held() && try_lock()) return true;
    }
    return false;
  }

  // release: pairs with the exchange in try_lock() and the load in is_held().
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

  // seq_cst: see try_lock(). As acquire: pairs with unlock(), whoever sees it free
  // sees what the last owner did.
  bool is_held() const noexcept { return held_.load(std::memory_order_seq_cst); }

  void lock(LockNode&) noexcept { lock(); }
  bool try_lock(LockNode&) noexcept { return try_lock(); }
  void unlock(LockNode&) noexcept { unlock(); }

 private:
  std::atomic<bool> held_{false};
};

using SpinLock = WordLock<0>;

// For sections that are short beside what it costs to hand lines over to another core. A waiter
// that has found it taken looks again after 32 pauses, about a microsecond, and the owner comes
// back several times meanwhile, with all lines in its cache. Where sections are long that time is
// lost.
using PatientLock = WordLock<5>;

// Numbers are drawn and served in turn.
class TicketLock {
 public:
  // Not inlined, as are McsLock's, so that to choose among locks (Lock) saves no registers.
  [[gnu::noinline]] void lock(LockNode&) noexcept {
    // relaxed: drawing orders nothing but the tickets.
    const std::uint32_t mine = next_.fetch_add(1, std::memory_order_relaxed);
    Backoff backoff;
    // acquire: pairs with the release in unlock() of the owner before.
    while (serving_.load(std::memory_order_acquire) != mine) backoff.wait();
  }

  bool try_lock(LockNode&) noexcept {
    // acquire: pairs with unlock(); if the number served is still the next one to be
    // drawn, nobody has owned the lock since.
    std::uint32_t served = serving_.load(std::memory_order_acquire);
    return next_.compare_exchange_strong(served, served + 1, std::memory_order_relaxed);
  }

  void unlock(LockNode&) noexcept {
    // relaxed load: only the owner writes it. release: pairs with the acquires above.
    serving_.store(serving_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

 private:
  std::atomic<std::uint32_t> next_{0};
  std::atomic<std::uint32_t> serving_{0};
};

// Waiters form a list; each spins on its own node until the one before hands over
// (Mellor-Crummey and Scott, 1991).
class McsLock {
 public:
  [[gnu::noinline]] void lock(LockNode& node) noexcept {
    // relaxed: the node is nobody else's until the exchange publishes it.
    node.next.store(nullptr, std::memory_order_relaxed);
    node.waiting.store(true, std::memory_order_relaxed);
    // release: publishes the node. acquire: pairs with the release in unlock() that
    // emptied the list, or with the exchange that published the node before.
    LockNode* const before = last_.exchange(&node, std::memory_order_acq_rel);
    if (before == nullptr) return;
    // release: pairs with the acquire load of next in unlock(), which reads the node.
    before->next.store(&node, std::memory_order_release);
    Backoff backoff;
    // acquire: pairs with the release in unlock() of the owner before.
    while (node.waiting.load(std::memory_order_acquire)) backoff.wait();
  }

  bool try_lock(LockNode& node) noexcept {
    // relaxed: as in lock().
    node.next.store(nullptr, std::memory_order_relaxed);
    LockNode* none = nullptr;
    // As the exchange in lock(); relaxed on failure: nothing has been read or published.
    return last_.compare_exchange_strong(none, &node, std::memory_order_acq_rel,
                                         std::memory_order_relaxed);
  }

  [[gnu::noinline]] void unlock(LockNode& node) noexcept {
    // acquire: pairs with the release store of next in lock().
    LockNode* after = node.next.load(std::memory_order_acquire);
    if (after == nullptr) {
      LockNode* self = &node;
      // release: pairs with the exchange of the next owner. relaxed on failure:
      // somebody is on the way, and its store of next is waited for below.
      if (last_.compare_exchange_strong(self, nullptr, std::memory_order_release,
                                        std::memory_order_relaxed)) {
        return;
      }
      Backoff backoff;
      while ((after = node.next.load(std::memory_order_acquire)) == nullptr) backoff.wait();
    }
    // release: pairs with the acquire in lock(). Afterwards the waiter may go away.
    after->waiting.store(false, std::memory_order_release);
  }

 private:
  std::atomic<LockNode*> last_{nullptr};
};

class MutexLock {
 public:
  void lock(LockNode&) { mutex_.lock(); }
  bool try_lock(LockNode&) { return mutex_.try_lock(); }
  void unlock(LockNode&) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

enum class LockKind : std::uint8_t { spin, patient, mcs, ticket, mutex };

inline constexpr const char* kLockNames[] = {"spin", "patient", "mcs", "ticket", "mutex"};

// One of them, chosen when it is made. The choice is read with the lock's own line,
// and a processor foresees the branch.
class alignas(kCacheLine) Lock {
  template <class Use>
  auto with(Use use) {
    switch (kind_) {
      case LockKind::spin:
        return use(spin_);
      case LockKind::patient:
        return use(patient_);
      case LockKind::mcs:
        return use(mcs_);
      case LockKind::ticket:
        return use(ticket_);
      default:
        return use(mutex_);
    }
  }

 public:
  explicit Lock(LockKind kind) : kind_(kind) {
    with([](auto& lock) { ::new (&lock) std::remove_reference_t<decltype(lock)>; });
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    if (kind_ == LockKind::mutex) mutex_.~MutexLock();
  }

  // The default in place, the others behind a call.
  void lock(LockNode& node) {
    if (kind_ == LockKind::spin) [[likely]] {
      spin_.lock();
    } else {
      lock_other(node);
    }
  }
  bool try_lock(LockNode& node) {
    return with([&](auto& lock) { return lock.try_lock(node); });
  }
  void unlock(LockNode& node) {
    if (kind_ == LockKind::spin) [[likely]] {
      spin_.unlock();
    } else {
      unlock_other(node);
    }
  }

 private:
  [[gnu::noinline]] void lock_other(LockNode& node) {
    with([&](auto& lock) { lock.lock(node); });
  }
  [[gnu::noinline]] void unlock_other(LockNode& node) {
    with([&](auto& lock) { lock.unlock(node); });
  }

  union {
    SpinLock spin_;
    PatientLock patient_;
    McsLock mcs_;
    TicketLock ticket_;
    MutexLock mutex_;
  };
  const LockKind kind_;
};

// Owns a lock until it is told otherwise or goes away.
template <class AnyLock>
class [[nodiscard]] LockGuard {
 public:
  explicit LockGuard(AnyLock& lock) : LockGuard(&lock) {}
  // nullptr: none.
  explicit LockGuard(AnyLock* lock) : lock_(lock) {
    if (lock_ != nullptr) lock_->lock(node_);
  }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;
  ~LockGuard() { unlock(); }

  void unlock() {
    if (lock_ != nullptr) lock_->unlock(node_);
    lock_ = nullptr;
  }

 private:
  AnyLock* lock_;
  LockNode node_;
};

}  // namespace tagline
