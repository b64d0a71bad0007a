// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "match/tagline.h"
#include "queues/match_key.hpp"
#include "queues/node_memory.hpp"

namespace tagline {

// The newest entries of a tail queue, in the order they came, until whoever searches
// the queue takes them over, because they are many, or one of them out.
//
// What every call changes is in one line, the first entries begin the next one: two threads
// hand them over to each other all the time.
//
// Guarantees: append takes memory or fails and changes nothing; taking over takes none.
class Inbox {
 public:
  static constexpr std::uint64_t kInline = 4;  // that need no memory

  struct Item {
    std::uint64_t context_id;
    QueueEntry entry;
  };

  // first_sequence: of the first entry.
  Inbox(std::uint64_t first_sequence, MemoryLimit* shared_limit) noexcept
      : head_{.next_sequence = first_sequence}, memory_(0, shared_limit) {}
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;
  ~Inbox() { release(); }

  bool empty() const noexcept { return head_.length == 0; }
  std::uint64_t length() const noexcept { return head_.length; }
  std::size_t used_bytes() const noexcept { return memory_.used_bytes(); }
  // Of what it takes from now on.
  void observe_memory(MemoryObserver* observer) noexcept { memory_.set_observer(observer); }

  // Brings what append() and filter() change into this core's cache.
  void fetch() const noexcept {
    __builtin_prefetch(&head_, 1);
    __builtin_prefetch(inline_, 1);
  }

  // The entry's sequence number, or 0: no memory.
  std::uint64_t append(std::uint64_t context_id, const MatchKey& key, void* cookie) noexcept {
    if (head_.length == head_.capacity && !grow()) [[unlikely]]
      return 0;
    const std::uint64_t sequence = head_.next_sequence;
    items()[head_.length++] = {context_id, {key, cookie, sequence}};
    head_.high_water = std::max(head_.high_water, head_.length);
    if (++head_.next_sequence == 0) ++head_.next_sequence;  // 0 names no entry
    return sequence;
  }

  // keep(item) decides, oldest first, whether an item stays.
  template <class Keep>
  void filter(Keep keep) {
    Item* const items = this->items();
    const std::uint64_t length = head_.length;
    std::uint64_t kept = 0;
    for (std::uint64_t i = 0; i < length; ++i) {
      if (!keep(items[i])) continue;
      if (kept != i) items[kept] = items[i];
      ++kept;
    }
    head_.length = kept;
    if (kept == 0 && head_.capacity > kMostIdle) [[unlikely]]
      release();
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint64_t i = 0; i < head_.length; ++i) visit(items()[i]);
  }

  // A search that has looked at so many entries; is_new: nobody else has counted it.
  void count_search(std::uint64_t depth, bool matched, bool is_new) noexcept {
    head_.searches += is_new;
    head_.matches += matched;
    head_.depth_sum += depth;
    head_.depth_max = std::max(head_.depth_max, depth);
  }
  tagline_side_statistics statistics() const noexcept {
    return {head_.length,
            head_.high_water,
            head_.searches,
            head_.matches,
            head_.depth_sum,
            head_.depth_max,
            0};
  }

 private:
  static constexpr std::uint64_t kMostIdle = 256;

  struct alignas(kCacheLine) Head {
    std::uint64_t length = 0;
    std::uint64_t capacity = kInline;
    std::uint64_t next_sequence;
    std::uint64_t high_water = 0;
    std::uint64_t searches = 0;
    std::uint64_t matches = 0;
    std::uint64_t depth_sum = 0;
    std::uint64_t depth_max = 0;
  };
  static_assert(sizeof(Head) == kCacheLine);

  Item* items() noexcept { return head_.capacity == kInline ? inline_ : block_; }
  const Item* items() const noexcept { return head_.capacity == kInline ? inline_ : block_; }

  bool grow() noexcept {
    const std::uint64_t larger = std::max<std::uint64_t>(2 * head_.capacity, 32);
    void* block = memory_.allocate(larger * sizeof(Item));
    if (block == nullptr) return false;
    std::uninitialized_copy_n(items(), head_.length, static_cast<Item*>(block));
    release();
    block_ = static_cast<Item*>(block);
    head_.capacity = larger;
    return true;
  }

  // Of the entries nothing is kept but their number.
  void release() noexcept {
    if (head_.capacity != kInline) memory_.release(block_, head_.capacity * sizeof(Item));
    head_.capacity = kInline;
  }

  Head head_;
  Item inline_[kInline] = {};
  Item* block_ = nullptr;
  NodeMemory memory_;
};

}  // namespace tagline
