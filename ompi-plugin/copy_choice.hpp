// SPDX-License-Identifier: BSD-3-Clause
// Who copies a large message from one process of a node to another.
//
//   read    the kernel, in one call of the receiver's; the sender need not do anything
//   share   both processes, the sender into packets and the receiver out of them, at the same time;
//           both have to be inside MPI
//
// Which is faster depends on the kernel, the virtual machine, the caches and on how busy the node
// is. So where the sender waits inside MPI anyway, both ways are timed and the faster one is taken.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tagline::pml {

enum class CopyWay : std::uint8_t { kRead, kShare };

// For each size, by powers of two: what a byte has cost either way, and when the way that seems
// slower is tried again. Threads: any; what two of them write at once may be lost, which only
// makes a decision later.
class CopyChoice {
 public:
  // The way for the next message of that size.
  CopyWay choose(std::size_t bytes);

  // A message came by that way, its last byte so long after it was matched.
  void note(CopyWay way, std::size_t bytes, std::uint64_t nanoseconds);

 private:
  // Messages until the next trial. After each one it takes twice as long, because a trial may cost
  // much: a receiver that computes before it waits for the message lets a sender that shares wait.
  static constexpr std::uint32_t kFirstTrial = 4;
  static constexpr std::uint32_t kRarestTrial = 4096;
  // Sharing takes the time of two processors and fills both caches: it has to be worth it.
  static constexpr float kWorthIt = 0.9F;

  struct Size {
    std::array<std::atomic<float>, 2> cost{};  // by way, nanoseconds per byte; 0: not known yet
    std::atomic<std::uint32_t> messages{0};    // since the last trial
    std::atomic<std::uint32_t> trial_after{kFirstTrial};

    // Both costs are known.
    CopyWay faster() const;
  };

  std::array<Size, 64> sizes_;
};

}  // namespace tagline::pml
