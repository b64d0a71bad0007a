// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>

#include "queues/memory_backend.hpp"

namespace tagline {

// Is told what memory a matcher's queues use, for instance to keep it in a cache.
class MemoryObserver {
 public:
  virtual ~MemoryObserver() = default;
  virtual void in_use(const void* block, std::size_t bytes) noexcept = 0;
  // Code, which others use as well and which stays where it is: as long as this observer lives.
  // May be said more than once.
  virtual void code_in_use(const void* begin, std::size_t bytes) noexcept = 0;
  // Once this returns the observer looks at the block no more. It may never have
  // been told of it.
  virtual void out_of_use(const void* block) noexcept = 0;
};

// An upper bound on what several NodeMemory hand out together. Any thread.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes) noexcept : limit_bytes_(bytes) {}
  bool take(std::size_t bytes) noexcept;
  void give_back(std::size_t bytes) noexcept;
  std::size_t available_bytes() const noexcept;

 private:
  const std::size_t limit_bytes_;
  std::atomic<std::size_t> used_bytes_{0};
};

// Where one matcher's queues get their memory: everything is counted, and
// nothing is handed out beyond the limit.
//
// Blocks start on a cache line and are returned with the size they were asked
// for. One thread at a time; different matchers may share the backend at once.
//
// To return much memory to the system takes long, so a matcher that gives up a
// lot at once defers that: what is released meanwhile is returned little by little.
class NodeMemory {
 public:
  // limit_bytes: upper bound of what is handed out at any time; 0: none.
  // shared: another one, with others; nullptr: none.
  explicit NodeMemory(std::size_t limit_bytes, MemoryLimit* shared = nullptr) noexcept
      : limit_bytes_(limit_bytes == 0 ? std::numeric_limits<std::size_t>::max() : limit_bytes),
        shared_(shared) {}
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;
  ~NodeMemory() { return_all(); }

  // nullptr if the limit or the system says no.
  void* allocate(std::size_t bytes) noexcept { return told(take(bytes, bytes, false), bytes); }
  // As allocate(), all bytes zero; large blocks cost nothing until they are touched.
  void* allocate_zeroed(std::size_t bytes) noexcept {
    return told(take(bytes, bytes, true), bytes);
  }
  void release(void* block, std::size_t bytes) noexcept { release(block, bytes, bytes); }

  // A large block of which only a part is used and counted; more of it comes into use by count(),
  // which is false if the limit says no. The observer is told by whoever uses it.
  void* reserve(std::size_t bytes, std::size_t counted) noexcept {
    return take(bytes, counted, false);
  }
  bool count(std::size_t bytes) noexcept;
  void release(void* block, std::size_t bytes, std::size_t counted) noexcept;

  // From now on, or no more: release() only notes the blocks, for return_some().
  // They count as used until they are returned.
  void defer_releases(bool defer) noexcept { deferring_ = defer; }
  // Returns up to kReturnedAtOnce of it to the system; false if there is none.
  bool return_some() noexcept;
  void return_all() noexcept {
    while (return_some()) {
    }
  }
  static constexpr std::size_t kReturnedAtOnce = std::size_t{1} << 20;
  std::size_t deferred_bytes() const noexcept { return deferred_bytes_; }

  // Of a large block: returns the memory of the pages that lie wholly in this part.
  // It reads as zero from now on, or as before. So that a release, which is one
  // call, has less to return.
  static void discard(void* part, std::size_t bytes) noexcept;

  // Of a large block: has the system supply the memory of this part now, pages that lie
  // partly in it included, which takes half as long as when each page is first read, and then
  // first written. Where the system cannot, that is when it does.
  static void supply(void* part, std::size_t bytes) noexcept;

  std::size_t used_bytes() const noexcept { return used_bytes_; }
  std::size_t available_bytes() const noexcept;

  // From now on the observer, which outlives this, is told of each block handed out
  // or released; nullptr: nobody is. Of earlier blocks it learns their release only.
  void set_observer(MemoryObserver* observer) noexcept { observer_ = observer; }
  // What the queues read and write beside these blocks, for the observer only.
  void note_in_use(const void* block, std::size_t bytes) noexcept {
    if (observer_ != nullptr) observer_->in_use(block, bytes);
  }
  void note_out_of_use(const void* block) noexcept {
    if (observer_ != nullptr) observer_->out_of_use(block);
  }

  // By all of them together.
  static std::size_t total_used_bytes() noexcept;

 private:
  // Lies at the start of the block.
  struct Deferred {
    Deferred* next;
    std::size_t bytes;       // of the block
    std::size_t counted;     // of these
    std::size_t with_pages;  // of these, from its start, not yet discarded
  };

  void* take(std::size_t bytes, std::size_t counted, bool zeroed) noexcept;
  void* told(void* block, std::size_t bytes) noexcept {
    if (block != nullptr) note_in_use(block, bytes);
    return block;
  }
  void give_back(void* block, std::size_t bytes, std::size_t counted) noexcept;
  void uncount(std::size_t bytes) noexcept;

  MemoryObserver* observer_ = nullptr;
  const std::size_t limit_bytes_;
  MemoryLimit* const shared_;
  std::size_t used_bytes_ = 0;
  bool deferring_ = false;
  Deferred* deferred_ = nullptr;
  std::size_t deferred_bytes_ = 0;
};

}  // namespace tagline
