// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

#include "match/locks.hpp"
#include "queues/memory_backend.hpp"

namespace tagline {

// Lets threads read together what somebody else changes who owns a lock, any lock: it stands
// beside it (D. Dice and A. Kogan, BRAVO, 2019). Readers touch neither the lock nor each
// other's lines.
//
//   a reader     says that it is inside     then looks whether readers are let in
//   the owner    lets no more of them in    then waits until it has seen each place empty
//
// All four are seq_cst, so at least one of the two sees the other.
class Readers {
  struct alignas(kCacheLine) Place {
    std::atomic<bool> inside{false};
  };

 public:
  // A reader, if readers are let in, until it leaves or goes away: nothing changes meanwhile.
  class [[nodiscard]] Reader {
   public:
    // nullptr: none.
    explicit Reader(Readers* readers) noexcept
        : place_(readers == nullptr ? nullptr : readers->enter()) {}
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader() { leave(); }
    explicit operator bool() const noexcept { return place_ != nullptr; }

    // release: pairs with the load in close(), what has been read is read.
    void leave() noexcept {
      if (place_ != nullptr) place_->inside.store(false, std::memory_order_release);
      place_ = nullptr;
    }

   private:
    Place* place_;
  };

  // By a reader: the lock's next owner is waited for.
  void ask_to_close() noexcept {
    // relaxed: only who enters and who closes look, and both look again.
    State open = State::open;
    state_.compare_exchange_strong(open, State::closing, std::memory_order_relaxed);
  }

  // The others by the owner of the lock. It may read as well, whether readers are let in or not.
  bool are_let_in() const noexcept {
    // relaxed: it becomes true with the lock held; what a reader may ask meanwhile can wait.
    return state_.load(std::memory_order_relaxed) == State::open;
  }
  void open() noexcept { state_.store(State::open, std::memory_order_seq_cst); }
  // What all have to do before they change anything. True: readers have been let in until now.
  bool close() noexcept {
    // relaxed: it leaves this state by an owner of the lock.
    if (state_.load(std::memory_order_relaxed) == State::closed) [[likely]]
      return false;
    wait_for_readers();
    return true;
  }

 private:
  enum class State : std::uint8_t { closed, open, closing };
  static constexpr unsigned kPlaces = 16;

  // nullptr as well if all places are taken.
  Place* enter() noexcept {
    // relaxed: a hint, the load that counts comes below.
    if (state_.load(std::memory_order_relaxed) != State::open) return nullptr;
    // Threads lie apart by their stacks, an odd number of pages.
    const std::uintptr_t first = this_thread() / 4096;
    for (unsigned i = 0; i < kPlaces; ++i) {
      std::atomic<bool>& inside = places_[(first + i) % kPlaces].inside;
      // relaxed: the exchange decides. seq_cst: see above.
      if (inside.load(std::memory_order_relaxed) ||
          inside.exchange(true, std::memory_order_seq_cst)) {
        continue;
      }
      // As acquire: pairs with the store in open(), the reader sees what the owner did.
      if (state_.load(std::memory_order_seq_cst) == State::open) [[likely]]
        return &places_[(first + i) % kPlaces];
      inside.store(false, std::memory_order_release);
      break;
    }
    return nullptr;
  }

  [[gnu::noinline]] void wait_for_readers() noexcept {
    state_.store(State::closed, std::memory_order_seq_cst);
    for (Place& place : places_) {
      Backoff backoff;
      // seq_cst: see above; as acquire: see leave().
      while (place.inside.load(std::memory_order_seq_cst) != 0) backoff.wait();
    }
  }

  Place places_[kPlaces];
  // Apart from what an owner writes: readers look here all the time.
  alignas(kCacheLine) std::atomic<State> state_{State::closed};
};

}  // namespace tagline
