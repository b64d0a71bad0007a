// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <limits>

namespace tagline {

inline constexpr std::size_t kCacheLine = 64;

// Where one matcher's queues get their memory: everything is counted, and
// nothing is handed out beyond the limit.
//
// Blocks start on a cache line and are returned with the size they were asked
// for. One thread at a time.
class NodeMemory {
 public:
  // limit_bytes: upper bound of what is handed out at any time; 0: none.
  explicit NodeMemory(std::size_t limit_bytes) noexcept
      : limit_bytes_(limit_bytes == 0 ? std::numeric_limits<std::size_t>::max() : limit_bytes) {}
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;

  // nullptr if the limit or the system says no.
  void* allocate(std::size_t bytes) noexcept;
  // As allocate(), all bytes zero; large blocks cost nothing until they are touched.
  void* allocate_zeroed(std::size_t bytes) noexcept;
  void release(void* block, std::size_t bytes) noexcept;

  std::size_t used_bytes() const noexcept { return used_bytes_; }
  std::size_t available_bytes() const noexcept { return limit_bytes_ - used_bytes_; }

 private:
  const std::size_t limit_bytes_;
  std::size_t used_bytes_ = 0;
};

}  // namespace tagline
