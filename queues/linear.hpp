// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "queues/match_key.hpp"
#include "queues/resources.hpp"

namespace tagline {

// A doubly linked list in the order of arrival: what MPI libraries use today,
// the oracle of every other structure and the baseline of every ratio.
//
//   ends_ <-> [links key cookie sequence] <-> [...] <-> [...] <-> ends_
//   oldest     one entry = one cache line             newest
//
// Every queue structure offers what this one does, with the same meaning:
//
//   Parameters            what stands behind the name's colon: "array:64"
//   node_bytes(p)         size of the nodes it takes from the pool
//   empty()               nothing to search
//   has_room()            append needs no memory
//   make_room()           take memory for it; false: there is none
//   append(entry)         entry becomes the newest; wants has_room()
//   find(key, depth)      the oldest entry that meets the key, or no hit;
//                         depth grows by the entries looked at
//   find_exact(key, c)    the oldest entry with equal key and cookie c
//   find_sequence(s)      the entry with that sequence number
//   at(hit), erase(hit)   read it; take it out without another search
//   for_each(visit)       oldest first
//   remove_if(p, visit)   oldest first; visit sees each entry after it is out
//
// and may offer shortcuts on a queue that is not empty:
//
//   take(key, cookie, count)          find, at and erase in one, see take_from()
//   take_at_hand(key, cookie, count)  the same, if a look at the ends tells
//   set_hints(hints)               spare work; they may change while entries wait
//
// Guarantees: append and erase are O(1); find touches one line per entry and
// stops at the first hit; nothing but append takes memory.
class LinearQueue {
  struct Links {
    Links* older;
    Links* newer;
  };
  struct Entry : Links {
    QueueEntry value;
  };
  static_assert(sizeof(Entry) <= kCacheLine, "a search touches one line per entry");

 public:
  static constexpr const char* kName = "linear";
  using Parameters = NoParameters;
  static std::size_t node_bytes(Parameters) noexcept { return sizeof(Entry); }

  struct Hit {
    Entry* entry = nullptr;
    explicit operator bool() const noexcept { return entry != nullptr; }
  };

  LinearQueue(QueueResources& resources, Parameters, QueueSide) noexcept : pool_(&resources.pool) {}
  LinearQueue(const LinearQueue&) = delete;
  LinearQueue& operator=(const LinearQueue&) = delete;
  ~LinearQueue() {
    remove_if([](const QueueEntry&) { return true; }, [](const QueueEntry&) {});
  }

  bool empty() const noexcept { return ends_.newer == &ends_; }

  bool has_room() const noexcept { return pool_->has_node(); }
  bool make_room() noexcept { return pool_->grow(); }

  void append(const QueueEntry& value) noexcept {
    Entry* entry = ::new (pool_->take()) Entry{{ends_.older, &ends_}, value};
    ends_.older->newer = entry;
    ends_.older = entry;
  }

  Hit find(const MatchKey& key, std::uint64_t& depth) const noexcept {
    std::uint64_t seen = 0;
    Hit hit = find_if([&](const QueueEntry& value) {
      ++seen;
      return keys_meet(value.key, key);
    });
    depth += seen;
    return hit;
  }

  // As find() and erase(), but the oldest entries apart: most matches are, and then there
  // is little to count, and nothing older to load.
  template <class Count>
  bool take(const MatchKey& key, void** cookie, Count count) noexcept {
    Entry* oldest = static_cast<Entry*>(ends_.newer);
    if (keys_meet(oldest->value.key, key)) {
      *cookie = oldest->value.cookie;
      ends_.newer = oldest->newer;
      ends_.newer->older = &ends_;
      pool_->release(oldest);
      count(1, true);
      return true;
    }
    Entry* const second = static_cast<Entry*>(oldest->newer);
    if (second != &ends_ && keys_meet(second->value.key, key)) {
      *cookie = second->value.cookie;
      erase({second});
      count(2, true);
      return true;
    }
    const bool is_alone = second == &ends_;
    std::uint64_t depth = is_alone ? 1 : 2;
    const Hit hit = first_from(is_alone ? second : second->newer, [&](const QueueEntry& value) {
      ++depth;
      return keys_meet(value.key, key);
    });
    if (hit) {
      *cookie = hit.entry->value.cookie;
      erase(hit);
    }
    count(depth, static_cast<bool>(hit));
    return static_cast<bool>(hit);
  }

  Hit find_exact(const MatchKey& key, const void* cookie) const noexcept {
    return find_if(
        [&](const QueueEntry& value) { return value.cookie == cookie && value.key == key; });
  }

  Hit find_sequence(std::uint64_t sequence) const noexcept {
    return find_if([&](const QueueEntry& value) { return value.sequence == sequence; });
  }

  const QueueEntry& at(Hit hit) const noexcept { return hit.entry->value; }

  void erase(Hit hit) noexcept {
    hit.entry->older->newer = hit.entry->newer;
    hit.entry->newer->older = hit.entry->older;
    pool_->release(hit.entry);
  }

  template <class Visit>
  void for_each(Visit visit) const {
    find_if([&](const QueueEntry& value) {
      visit(value);
      return false;
    });
  }

  template <class Predicate, class Visit>
  std::size_t remove_if(Predicate wanted, Visit visit) {
    std::size_t removed = 0;
    for (Links *links = ends_.newer, *newer; links != &ends_; links = newer) {
      newer = links->newer;
      Entry* entry = static_cast<Entry*>(links);
      if (!wanted(entry->value)) continue;
      const QueueEntry value = entry->value;
      erase({entry});
      visit(value);
      ++removed;
    }
    return removed;
  }

 private:
  // The oldest entry that the condition holds for.
  template <class Condition>
  Hit find_if(Condition condition) const {
    return first_from(ends_.newer, condition);
  }

  // From there on.
  template <class Condition>
  Hit first_from(Links* links, Condition condition) const {
    while (links != &ends_) {
      Entry* const entry = static_cast<Entry*>(links);
      // Before the entry is compared: all that follows waits for this one load. Behind the entry's
      // others it is late now and then, and a search takes up to a fifth longer, so the
      // compiler is kept from putting it there.
      links = links->newer;
      asm volatile("" : "+r"(links) : : "memory");
      if (condition(entry->value)) return {entry};
    }
    return {};
  }

  // The list is a ring through here: no entry is a special case.
  Links ends_{&ends_, &ends_};
  NodePool* pool_;
};

}  // namespace tagline
