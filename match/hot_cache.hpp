// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "match/processing_unit.hpp"
#include "queues/node_memory.hpp"

namespace tagline {

class ControlLines;

// Memory that a thread of ours, the heater, keeps in a cache: pass by pass it
// touches the first word of every line of every region, then sleeps. It runs on
// a processing unit that shares a cache with the thread that matches, which after
// a compute phase then finds its queues in that cache, or in the heater's own. It leaves out
// the passes in which that could gain nothing (match/control_lines.hpp).
//
// Regions are the blocks of node memory and the code of matching, not the entries in them: who
// appends, matches or removes does not know of the heater, and meets no lock of it unless blocks
// come or go.
//
//   first_ -> [begin lines owners] -> [free] -> [begin lines owners] -> nullptr
//                                                   ^ touching_
//
// Giving memory back is what has to wait for the heater. A region's record stays
// in the list for good and is used again, so the heater walks the list without a
// lock; it says which record it is at (touching_, a hazard pointer), then whether
// the record is free. remove() frees the record, then waits while the heater is
// at it. Either the heater sees that it is free, or remove() sees the heater: in
// both cases nothing reads the region once remove() has returned. The heater looks
// up every kBlockLines, so the wait is a microsecond or two, unless the system has
// taken the heater's processing unit away just then.
//
// Guarantees: add(), share() and remove() are for any thread; wake() costs a load but for
// the first one of a pass; pause() stops the heater within kBlockLines.
class HotCache {
 public:
  struct Settings {
    std::chrono::nanoseconds sleep;  // between passes
    std::chrono::nanoseconds idle;   // without a wake() until it pauses itself; 0: never
    std::size_t max_lines;           // touched in a pass
    bool always;                     // whether they would go cold or not
    ProcessingUnit unit;
  };
  struct Counts {
    std::uint64_t passes, passes_left_out, lines_touched, regions, region_lines;
    bool is_paused;
  };

  // The heater runs from now on. Throws Unavailable or std::bad_alloc.
  explicit HotCache(const Settings& settings);
  ~HotCache();
  HotCache(const HotCache&) = delete;
  HotCache& operator=(const HotCache&) = delete;

  // False if the address is a region already.
  bool add(const void* begin, std::size_t bytes, const void* owner);
  // Is a region, if need be of one owner more, until the last of them removes it.
  void share(const void* begin, std::size_t bytes, const void* owner);
  // False if it is none, or another owner's.
  bool remove(const void* begin, const void* owner) noexcept;
  void remove_all_of(const void* owner) noexcept;

  void pause() noexcept;
  void resume() noexcept;
  void wake() noexcept {
    // Mostly true already, and then the line stays in everyone's cache. The heater
    // that cleared it a moment ago takes what we read here for activity as well.
    if (active_.load(std::memory_order_relaxed)) return;
    // seq_cst, this and the load in wake_sleeper(): pairs with rest(), which says
    // that it dozes, then looks at active_. One of us sees the other.
    active_.store(true, std::memory_order_seq_cst);
    wake_sleeper();
  }

  // Ends the heater, for good. Regions may still be added and removed.
  void stop() noexcept;

  Counts counts() noexcept;
  const ProcessingUnit& unit() const noexcept { return settings_.unit; }

 private:
  static constexpr std::size_t kBlockLines = 64;

  struct Region {
    std::atomic<const std::byte*> begin{nullptr};  // nullptr: the record is free
    std::size_t lines = 0;                         // written while it is free, and nobody is at it
    std::vector<const void*> owners;               // this and the next are guarded by registry_
    Region* next_free = nullptr;
    std::atomic<Region*> next{nullptr};
  };
  using Places = std::unordered_map<const void*, Region*>;

  void run() noexcept;
  bool watches_the_last_level() const noexcept;
  bool note_activity() noexcept;
  bool would_be_lost(ControlLines& control, bool is_active) noexcept;
  void pass(bool pays) noexcept;
  std::size_t touch(Region& region, std::size_t most) noexcept;
  void rest() noexcept;
  void wake_sleeper() noexcept;
  void make_region(const void* begin, std::size_t bytes, const void* owner);
  Places::iterator retire_unowned(Places::iterator place) noexcept;
  void retire(Region& region) noexcept;
  bool is_halted() const noexcept {
    return is_paused_.load(std::memory_order_relaxed) ||
           is_stopped_.load(std::memory_order_relaxed);
  }

  const Settings settings_;

  std::mutex registry_;  // guards the list's growth and the map; the heater never takes it
  std::atomic<Region*> first_{nullptr};
  Region* last_ = nullptr;
  Region* free_ = nullptr;
  Places regions_;  // in use, by their begin
  std::atomic<Region*> touching_{nullptr};

  std::mutex sleep_;  // guards what the heater waits for
  std::condition_variable awake_;
  std::atomic<bool> is_paused_{false};
  std::atomic<bool> is_stopped_{false};
  std::atomic<bool> is_dozing_{false};  // it has paused itself
  // The heater's own.
  std::chrono::steady_clock::time_point last_active_;
  bool was_active_ = false;  // at the pass before
  bool is_lost_ = false;     // what was used when activity began, but for passes

  // Relaxed: counts, written by the heater alone.
  std::atomic<std::uint64_t> passes_{0};
  std::atomic<std::uint64_t> passes_left_out_{0};
  std::atomic<std::uint64_t> lines_touched_{0};

  // In a line of its own: whoever matches looks at it.
  alignas(kCacheLine) std::atomic<bool> active_{true};
  alignas(kCacheLine) std::thread heater_;
};

// What a matcher tells its memory and its code to: adds its blocks, shares its code, and removes
// both when it dies.
class HeatedMemory final : public MemoryObserver {
 public:
  explicit HeatedMemory(std::shared_ptr<HotCache> cache) noexcept : cache_(std::move(cache)) {}
  ~HeatedMemory() override { cache_->remove_all_of(this); }
  // Without memory for a record a block or code stays as cold as it is.
  void in_use(const void* block, std::size_t bytes) noexcept override;
  void code_in_use(const void* begin, std::size_t bytes) noexcept override;
  void out_of_use(const void* block) noexcept override { cache_->remove(block, this); }
  bool is_of(const HotCache& cache) const noexcept { return cache_.get() == &cache; }

 private:
  const std::shared_ptr<HotCache> cache_;
};

}  // namespace tagline
