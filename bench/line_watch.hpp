// SPDX-License-Identifier: BSD-3-Clause
//
// Which cache lines a call touches. The library is compiled a second time for the
// programs that ask, with the compiler's hooks for every memory access
// (-fsanitize=thread, of which only the hooks are used: they are defined in
// line_watch.cpp and the sanitizer is not linked). Vector accesses have hooks too, so
// every instruction set can be counted.
//
//   matcher   what the library allocates by `new`: the matcher and its contexts,
//             with the entries that these hold themselves
//   queue     every other line that is neither stack nor static data: nodes,
//             tables, and requests where a comparator keeps its entries in them
//
// One thread.
#pragma once

#include <cstddef>

namespace bench {

// Where the stack of the calling thread lies; first thing in main().
void find_stack();

// What `new` hands out from here on is the matcher's.
void remember_new();
void forget_new();  // no longer; what is known stays known
std::size_t bytes_of_new();

void watch_lines();
struct LineCount {
  std::size_t matcher = 0;
  std::size_t queue = 0;
};
LineCount lines_watched();  // since watch_lines(), which ends

// Looks at matches only; appends are part of the story but not of the figure.
// All kinds of matches of a pass have their share: those that build an index too.
class LineWatch {
 public:
  explicit LineWatch(std::size_t matches) : every_((matches + kMatches - 1) / kMatches) {}
  template <class Call>
  void append(Call call) {
    call();
  }
  template <class Call>
  void match(Call call) {
    if (calls_++ % every_ != 0) {
      call();
      return;
    }
    watch_lines();
    call();
    const LineCount lines = lines_watched();
    queue_ += lines.queue;
    matcher_ += lines.matcher;
    ++matches_;
  }
  double queue_lines() const { return mean(queue_); }
  double matcher_lines() const { return mean(matcher_); }

 private:
  static constexpr std::size_t kMatches = 1000;
  double mean(std::size_t sum) const {
    return matches_ == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(matches_);
  }
  const std::size_t every_;
  std::size_t calls_ = 0;
  std::size_t queue_ = 0;
  std::size_t matcher_ = 0;
  std::size_t matches_ = 0;
};

}  // namespace bench
