// SPDX-License-Identifier: BSD-3-Clause
//
// Events in the order of their time, for millions that lie close together: a wheel of buckets,
// each sorted when its turn comes. What is further away than the wheel reaches waits aside.
//
// Invariant: no event is earlier than the bucket that is being emptied; what is pushed into
// that bucket meanwhile finds its place in what is left of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

namespace tagline::tools {

struct Event {
  std::uint64_t ns;
  std::uint32_t rank;
  std::uint16_t step;
  std::uint16_t slot;

  friend bool operator<(const Event& a, const Event& b) noexcept {
    return std::tie(a.ns, a.rank, a.step, a.slot) < std::tie(b.ns, b.rank, b.step, b.slot);
  }
};
static_assert(sizeof(Event) == 16, "millions are under way");

class EventWheel {
 public:
  EventWheel() : buckets_(kBuckets) {}

  std::uint64_t size() const noexcept { return size_; }

  void push(const Event& event) {
    ++size_;
    const std::uint64_t number = event.ns / kWidth;
    if (number >= first_ + kBuckets) {
      far_.push_back(event);
      return;
    }
    std::vector<Event>& bucket = buckets_[number % kBuckets];
    if (number == first_ && sorted_) {
      bucket.insert(std::upper_bound(bucket.begin() + static_cast<std::ptrdiff_t>(next_),
                                     bucket.end(), event),
                    event);
    } else {
      bucket.push_back(event);
    }
  }

  // False if there is none.
  bool pop(Event& event) {
    if (size_ == 0) return false;
    for (;;) {
      std::vector<Event>& bucket = buckets_[first_ % kBuckets];
      if (!sorted_) std::sort(bucket.begin(), bucket.end());
      sorted_ = true;
      if (next_ < bucket.size()) {
        event = bucket[next_++];
        --size_;
        return true;
      }
      // A burst leaves no memory behind.
      if (bucket.capacity() > 64) std::vector<Event>().swap(bucket);
      bucket.clear();
      next_ = 0;
      sorted_ = false;
      if (++first_ % kBuckets == 0) turn();
    }
  }

 private:
  static constexpr std::uint64_t kBuckets = 8192;
  static constexpr std::uint64_t kWidth = 64;  // nanoseconds

  // Once a turn what the wheel reaches by now comes in.
  void turn() {
    std::vector<Event> waiting;
    waiting.swap(far_);
    size_ -= waiting.size();
    for (const Event& event : waiting) push(event);
  }

  std::vector<std::vector<Event>> buckets_;
  std::vector<Event> far_;
  std::uint64_t first_ = 0;  // number of the bucket that is being emptied
  std::size_t next_ = 0;     // in it
  bool sorted_ = false;
  std::uint64_t size_ = 0;
};

}  // namespace tagline::tools
