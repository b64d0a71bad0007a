// SPDX-License-Identifier: BSD-3-Clause
// The order of threads that send to one peer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "compat.h"
#include "match/biased_lock.hpp"
#include "match/locks.hpp"

namespace tagline::pml {

// Threads that send to one peer take turns, each from a message's number until the BTL has it. So
// messages set out in the order of their numbers, and the peer need not hold one that has
// overtaken another. Besides, a BTL lets in one at a time anyway: a thread that has the turn finds
// the BTL's lock free, and sends several messages before another one takes the lines away.
//
// It only saves time. What the BTL does not take at once goes on behind the turn, a thread that has
// been the only one for a while takes none, and none is waited for at any price: where a BTL calls
// back who sends to the same peer again, the turn's owner would wait for itself.
class PeerTurn {
 public:
  explicit PeerTurn(const mca_bml_base_endpoint_t* endpoint) noexcept {
    Place& place = place_of(endpoint);
    // relaxed, here and below: what is seen too late costs time only.
    const std::uintptr_t last = place.last.load(std::memory_order_relaxed);
    const unsigned until_alone = place.until_alone.load(std::memory_order_relaxed);
    if (last == this_thread() && until_alone == 0) [[likely]]
      return;
    place.last.store(this_thread(), std::memory_order_relaxed);
    place.until_alone.store(last == this_thread() ? until_alone - 1 : kUntilAlone,
                            std::memory_order_relaxed);
    if (place.lock.try_lock() || place.lock.try_later(kMostLooks)) lock_ = &place.lock;
  }
  PeerTurn(const PeerTurn&) = delete;
  PeerTurn& operator=(const PeerTurn&) = delete;
  ~PeerTurn() {
    if (lock_ != nullptr) lock_->unlock();
  }

 private:
  static constexpr unsigned kBits = 10;
  // Messages of one thread in a row until it counts as the only one.
  static constexpr unsigned kUntilAlone = 1000;
  static constexpr unsigned kMostLooks = 80;  // some tens of microseconds, then a few yields
  // Of a peer. Few enough share one; their threads then take turns for nothing.
  struct alignas(kCacheLine) Place {
    PatientLock lock;
    std::atomic<unsigned> until_alone{0};  // messages left
    std::atomic<std::uintptr_t> last{0};   // the thread that has sent last
  };

  static Place& place_of(const mca_bml_base_endpoint_t* endpoint) noexcept {
    static constinit std::array<Place, 1u << kBits> places;
    const auto address = reinterpret_cast<std::uintptr_t>(endpoint);
    return places[(address * 0x9e3779b97f4a7c15u) >> (64 - kBits)];
  }

  PatientLock* lock_ = nullptr;  // NULL: it goes without
};

}  // namespace tagline::pml
