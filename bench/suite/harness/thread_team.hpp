// SPDX-License-Identifier: BSD-3-Clause
//
// Threads that a parent starts once and lets go again and again.
//
// Each child says by a counter that it is there and waits for the parent's broadcast;
// the constructor returns when all are there, so that no timer sees a thread begin.
// release() is the broadcast, join() waits until all children have done their part.
// Waiting spins for a moment, then yields: there may be more threads than CPUs.
#pragma once

#include <sched.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace suite {

template <class Condition>
void wait_until(Condition condition) {
  for (int turns = 0; !condition(); ++turns) {
    if (turns < 100) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else {
      sched_yield();
    }
  }
}

class ThreadTeam {
 public:
  // `work(thread)` is what a child does each time.
  ThreadTeam(int threads, std::function<void(int)> work) : work_(std::move(work)) {
    for (int i = 0; i < threads; ++i) children_.emplace_back([this, i] { live(i); });
    wait_until([&] { return ready_.load(std::memory_order_acquire) == threads; });
  }
  ~ThreadTeam() {
    end_ = true;
    release();
    for (std::thread& child : children_) child.join();
  }
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  void release() {
    done_.store(0, std::memory_order_relaxed);
    // release: pairs with the acquire in live(); the children see what the parent prepared
    turn_.fetch_add(1, std::memory_order_release);
  }
  void join() {
    const int all = static_cast<int>(children_.size());
    // acquire: pairs with the release in live(); the parent sees what the children did
    wait_until([&] { return done_.load(std::memory_order_acquire) == all; });
  }

 private:
  void live(int thread) {
    unsigned seen = 0;
    ready_.fetch_add(1, std::memory_order_release);
    for (;;) {
      wait_until([&] { return turn_.load(std::memory_order_acquire) != seen; });
      ++seen;
      if (end_) return;
      work_(thread);
      done_.fetch_add(1, std::memory_order_release);
    }
  }

  std::function<void(int)> work_;
  std::vector<std::thread> children_;
  bool end_ = false;  // written before release() only
  alignas(64) std::atomic<int> ready_{0};
  alignas(64) std::atomic<unsigned> turn_{0};
  alignas(64) std::atomic<int> done_{0};
};

}  // namespace suite
