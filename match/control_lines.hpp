// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace tagline {

// The heater's control group: lines that are used as the queues are and that nobody keeps hot.
// As long as the last-level cache still has them it has the queues, too, and to touch these would
// only take them from there into the cache of the heater's own core, out of which they come later
// (23 ns instead of 13 on Zen 5). Once these are gone, so are the queues.
//
//   256 lines, 16 KiB apart, chained in random order; use() reads all, are_lost() the next 32
//
// So far apart they share few sets of a second-level cache, four times as many as fit (up to 2 MiB
// of 16 ways): each has left it again when the others have been read. In huge pages if there are
// any, or finding the page would take as long as the line.
//
// Not for several threads.
class ControlLines {
 public:
  // Takes 4 MiB from the system. Where it gives none, all count as lost.
  ControlLines() noexcept;
  ~ControlLines();
  ControlLines(const ControlLines&) = delete;
  ControlLines& operator=(const ControlLines&) = delete;

  // Cost: 6 us, or 30 if they come from memory.
  void use() noexcept { read(kLines); }
  // Of some that have not been read since use(), up to seven times after it. Cost: an eighth.
  bool are_lost() noexcept { return line_ == nullptr || read(kLinesAsked) > kLostNs * kLinesAsked; }

  static constexpr std::size_t kLines = 256;
  static constexpr std::size_t kStride = 16384;
  const std::byte* begin() const noexcept { return begin_; }

 private:
  struct Line {
    const Line* next;
  };
  static constexpr std::size_t kLinesAsked = kLines / 8;
  // A line out of a last-level cache takes 10 to 45 ns, one from memory 80 and more.
  static constexpr std::size_t kLostNs = 60;

  std::size_t read(std::size_t lines) noexcept;  // nanoseconds that it took

  void* mapping_ = nullptr;
  std::byte* begin_ = nullptr;
  const Line* line_ = nullptr;  // read next
};

}  // namespace tagline
