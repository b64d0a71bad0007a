// SPDX-License-Identifier: BSD-3-Clause
// Requests of one kind that nobody uses: Open MPI's free list, and in front of it a few for each
// thread.
//
// Open MPI's list is one stack. Threads that take turns at it take its head from each other, and
// each gets the request that another one has just let go of, whose lines are in that one's cache.
// A thread that gets its own back pays for neither. One thread alone spares a line of each request,
// and what keeps Open MPI's list fit for several.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "match/biased_lock.hpp"
#include "match/locks.hpp"
#include "plugin.hpp"

namespace tagline::pml {

// Any thread may call all but empty().
template <class Request>
class RequestPool {
 public:
  explicit constexpr RequestPool(opal_free_list_t& list) noexcept : list_(list) {}

  // Waits for one if the free list has a limit and all are in use.
  [[gnu::noinline]] Request* take() noexcept {
    if (Request* request = take_at_hand()) return request;
    if (plugin.keeps_requests) {
      if (Request* request = mine().take()) return request;
    }
    return reinterpret_cast<Request*>(opal_free_list_wait(&list_));
  }
  // The same without any call, which would have the caller save its arguments; NULL: take().
  [[gnu::always_inline]] Request* take_at_hand() noexcept {
    if (plugin.threads) [[unlikely]]
      return nullptr;
    return kept_[0].take_alone();
  }

  [[gnu::always_inline]] void give(Request& request) noexcept {
    if (plugin.threads) [[unlikely]]
      return give_among_threads(request);
    give_alone(request);
  }
  // There are not several threads.
  [[gnu::always_inline]] void give_alone(Request& request) noexcept {
    if (!kept_[0].put_alone(request)) [[unlikely]]
      give_to_list(request);
  }

  // Gives all back to the list. No other thread is in the component.
  void empty() noexcept {
    for (Kept& kept : kept_) {
      while (Request* request = kept.take()) give_to_list(*request);
    }
  }

 private:
  // Of a thread, or of several that hash to the same one; those do not wait for each other.
  class alignas(kCacheLine) Kept {
   public:
    // NULL: there is none.
    Request* take() noexcept {
      if (!lock_.try_lock()) return nullptr;
      Request* const request = take_alone();
      lock_.unlock();
      return request;
    }
    // False: there is no room.
    bool put(Request& request) noexcept {
      if (!lock_.try_lock()) return false;
      const bool fits = put_alone(request);
      lock_.unlock();
      return fits;
    }
    // The same with the lock, or where there are not several threads.
    Request* take_alone() noexcept { return count_ == 0 ? nullptr : requests_[--count_]; }
    bool put_alone(Request& request) noexcept {
      if (count_ == requests_.size()) return false;
      requests_[count_++] = &request;
      return true;
    }

   private:
    SpinLock lock_;
    std::uint32_t count_ = 0;
    std::array<Request*, 78> requests_ = {};  // a window of 64 and some, in ten lines
  };

  static constexpr unsigned kBits = 8;

  // Stacks, and what tells threads apart with them, lie whole pages from each other.
  Kept& mine() noexcept {
    return kept_[((this_thread() >> 12) * 0x9e3779b97f4a7c15u) >> (64 - kBits)];
  }

  [[gnu::noinline]] void give_among_threads(Request& request) noexcept {
    if (plugin.keeps_requests && mine().put(request)) return;
    give_to_list(request);
  }

  [[gnu::noinline]] void give_to_list(Request& request) noexcept {
    opal_free_list_return(&list_, reinterpret_cast<opal_free_list_item_t*>(&request));
  }

  opal_free_list_t& list_;
  std::array<Kept, 1u << kBits> kept_ = {};
};

}  // namespace tagline::pml
