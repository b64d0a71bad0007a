// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "queues/match_key.hpp"
#include "queues/node_pool.hpp"
#include "simd/kernels.hpp"

namespace tagline {

// A doubly linked list in the order of arrival: what MPI libraries use today,
// the oracle of every other structure and the baseline of every ratio.
//
//   oldest_ -> [links cookie sequence key] <-> [...] <-> [...] <- newest_
//               one entry = one cache line
//
// Every queue structure offers what this one does, with the same meaning:
//
//   append(entry)         entry becomes the newest; false: no node memory
//   find(key, depth)      the oldest entry that meets the key, or no hit;
//                         depth grows by the entries looked at
//   find_exact(key, c)    the oldest entry with equal key and cookie c
//   find_sequence(s)      the entry with that sequence number
//   at(hit), erase(hit)   read it; take it out without another search
//   for_each(visit)       oldest first
//   remove_if(p, visit)   oldest first; visit sees each entry after it is out
//
// Guarantees: append and erase are O(1); find touches one line per entry and
// stops at the first hit; nothing but append takes memory.
class LinearQueue {
  struct Entry {
    Entry* older;
    Entry* newer;
    QueueEntry value;
  };
  static_assert(sizeof(Entry) <= kCacheLine, "a search touches one line per entry");

 public:
  static constexpr const char* kName = "linear";
  static constexpr std::size_t kNodeBytes = sizeof(Entry);

  struct Hit {
    Entry* entry = nullptr;
    explicit operator bool() const noexcept { return entry != nullptr; }
  };

  LinearQueue(NodePool& pool, const simd::Kernels&) noexcept : pool_(&pool) {}
  LinearQueue(const LinearQueue&) = delete;
  LinearQueue& operator=(const LinearQueue&) = delete;
  ~LinearQueue() {
    remove_if([](const QueueEntry&) { return true; }, [](const QueueEntry&) {});
  }

  std::size_t size() const noexcept { return size_; }

  bool append(const QueueEntry& value) noexcept {
    void* memory = pool_->take();
    if (memory == nullptr) return false;
    Entry* entry = ::new (memory) Entry{newest_, nullptr, value};
    (newest_ != nullptr ? newest_->newer : oldest_) = entry;
    newest_ = entry;
    ++size_;
    return true;
  }

  Hit find(const MatchKey& key, std::uint64_t& depth) const noexcept {
    std::uint64_t seen = 0;
    Entry* entry = oldest_;
    while (entry != nullptr) {
      ++seen;
      if (keys_meet(entry->value.key, key)) break;
      entry = entry->newer;
    }
    depth += seen;
    return {entry};
  }

  Hit find_exact(const MatchKey& key, const void* cookie) const noexcept {
    Entry* entry = oldest_;
    while (entry != nullptr && !(entry->value.cookie == cookie && entry->value.key == key)) {
      entry = entry->newer;
    }
    return {entry};
  }

  Hit find_sequence(std::uint64_t sequence) const noexcept {
    Entry* entry = oldest_;
    while (entry != nullptr && entry->value.sequence != sequence) entry = entry->newer;
    return {entry};
  }

  const QueueEntry& at(Hit hit) const noexcept { return hit.entry->value; }

  void erase(Hit hit) noexcept {
    Entry* entry = hit.entry;
    (entry->older != nullptr ? entry->older->newer : oldest_) = entry->newer;
    (entry->newer != nullptr ? entry->newer->older : newest_) = entry->older;
    pool_->release(entry);
    --size_;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const Entry* entry = oldest_; entry != nullptr; entry = entry->newer) visit(entry->value);
  }

  template <class Predicate, class Visit>
  std::size_t remove_if(Predicate wanted, Visit visit) {
    std::size_t removed = 0;
    for (Entry* entry = oldest_; entry != nullptr;) {
      Entry* newer = entry->newer;
      if (wanted(entry->value)) {
        const QueueEntry value = entry->value;
        erase({entry});
        visit(value);
        ++removed;
      }
      entry = newer;
    }
    return removed;
  }

 private:
  Entry* oldest_ = nullptr;
  Entry* newest_ = nullptr;
  std::size_t size_ = 0;
  NodePool* pool_;
};

}  // namespace tagline
