// SPDX-License-Identifier: BSD-3-Clause
// What a matcher that threads share does for the threads.
//
// They take turns at it. A thread alone could end its own turn, but would have to save registers
// for that, call and come back: a fifth of what the call costs. So the matcher itself does, last of
// all, in the six operations that every message takes (post_receive, arrive and their halves), and
// a thread alone jumps there. All other turns, and operations, are the caller's to end.
#pragma once

#include <atomic>
#include <cstdint>

#include "match/side_counts.hpp"

namespace tagline {

// Of one thread, or behind a lock that the caller holds and gives back.
struct NoTurns {
  static constexpr bool kNumbersMessages = false;

  void end() noexcept {}
  bool numbers_messages() const noexcept { return false; }
  void number_from(std::atomic<std::uint64_t>*) noexcept {}
  std::uint64_t appends_between_looks() const noexcept { return 0; }
  void look(std::uint64_t) noexcept {}
};

// Of a shard, see match/shards.hpp.
class TurnsAtShard {
 public:
  static constexpr bool kNumbersMessages = true;
  static constexpr std::uint64_t kAppendsBetweenLooks = 1024;

  // Says that the thread that is alone there is inside: here, where the end of a turn need not look
  // for it.
  std::atomic<bool>& inside() noexcept { return inside_; }
  // Messages that wait are numbered from this, which tells their order among several shards;
  // nullptr: the matcher counts by itself. It pauses for each number, and so has to know: see
  // QueueMatcher::number_messages_from().
  void number_from(std::atomic<std::uint64_t>* numbers) noexcept { numbers_ = numbers; }

  // hook(of) in a turn now and then, behind so many appends that it costs nothing to speak of.
  void look_with(void (*hook)(void*) noexcept, void* of) noexcept {
    look_ = hook;
    of_ = of;
  }

  // release: whoever waits for the turn sees what was done in it. In a turn that is the caller's to
  // end it is false already, or about to be: nobody else is inside.
  void end() noexcept { inside_.store(false, std::memory_order_release); }

  bool numbers_messages() const noexcept { return numbers_ != nullptr; }
  // Numbers the message that is appended next. True: and for nothing else the matcher has paused.
  // relaxed: if one arrival happens before another, so do their draws, of one counter. Inlined, or
  // every message that is numbered would save registers.
  [[gnu::always_inline]] bool only_numbers(SideCounts& unexpected) noexcept {
    if (numbers_ == nullptr) return false;
    unexpected.advance(numbers_->fetch_add(1, std::memory_order_relaxed));
    return ++numbered_ % kNumbersBetweenPauses != 0;
  }

  // 0: it need not look.
  std::uint64_t appends_between_looks() const noexcept {
    return look_ == nullptr ? 0 : kAppendsBetweenLooks;
  }
  // appends: of all times. The matcher may have paused for another reason.
  void look(std::uint64_t appends) noexcept {
    if (look_ == nullptr || static_cast<std::int64_t>(appends - look_at_) < 0) return;
    look_at_ = appends + kAppendsBetweenLooks;
    look_(of_);
  }

 private:
  static constexpr unsigned kNumbersBetweenPauses = 512;

  std::atomic<bool> inside_{false};
  std::atomic<std::uint64_t>* numbers_ = nullptr;
  unsigned numbered_ = 0;
  void (*look_)(void*) noexcept = nullptr;
  void* of_ = nullptr;
  std::uint64_t look_at_ = 0;
};

}  // namespace tagline
