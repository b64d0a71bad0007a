// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "queues/match_key.hpp"
#include "queues/node_memory.hpp"

namespace tagline {

// The newest entries of a tail queue, in the order they came, until whoever searches
// the queue takes them over, because they are many, or one of them out.
//
// Guarantees: append takes memory or fails and changes nothing; taking over takes none.
class Inbox {
 public:
  static constexpr std::uint64_t kInline = 4;  // that need no memory

  struct Item {
    std::uint64_t context_id;
    QueueEntry entry;
  };

  explicit Inbox(MemoryLimit* shared_limit) noexcept : memory_(0, shared_limit) {}
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;
  ~Inbox() { release(); }

  bool empty() const noexcept { return length_ == 0; }
  std::uint64_t length() const noexcept { return length_; }
  std::uint64_t high_water() const noexcept { return high_water_; }
  std::size_t used_bytes() const noexcept { return memory_.used_bytes(); }
  // Of what it takes from now on.
  void observe_memory(MemoryObserver* observer) noexcept { memory_.set_observer(observer); }

  // False: no memory.
  bool append(const Item& item) noexcept {
    if (length_ == capacity_ && !grow()) [[unlikely]]
      return false;
    items_[length_++] = item;
    high_water_ = std::max(high_water_, length_);
    return true;
  }

  // keep(item) decides, oldest first, whether an item stays.
  template <class Keep>
  void filter(Keep keep) {
    std::uint64_t kept = 0;
    for (std::uint64_t i = 0; i < length_; ++i) {
      if (!keep(items_[i])) continue;
      if (kept != i) items_[kept] = items_[i];
      ++kept;
    }
    length_ = kept;
    if (length_ == 0 && capacity_ > kMostIdle) release();
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint64_t i = 0; i < length_; ++i) visit(items_[i]);
  }

 private:
  static constexpr std::uint64_t kMostIdle = 256;

  bool grow() noexcept {
    const std::uint64_t larger = std::max<std::uint64_t>(2 * capacity_, 32);
    void* block = memory_.allocate(larger * sizeof(Item));
    if (block == nullptr) return false;
    auto* items = static_cast<Item*>(block);
    std::uninitialized_copy_n(items_, length_, items);
    const std::uint64_t length = length_;
    release();
    items_ = items;
    capacity_ = larger;
    length_ = length;
    return true;
  }

  void release() noexcept {
    if (items_ != inline_) memory_.release(items_, capacity_ * sizeof(Item));
    items_ = inline_;
    capacity_ = kInline;
    length_ = 0;
  }

  Item* items_ = inline_;
  std::uint64_t length_ = 0;
  std::uint64_t capacity_ = kInline;
  std::uint64_t high_water_ = 0;
  Item inline_[kInline] = {};
  NodeMemory memory_;
};

}  // namespace tagline
