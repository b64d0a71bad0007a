// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "queues/match_key.hpp"
#include "queues/resources.hpp"

namespace tagline {

// A list per source, and one for receives from any source: what MPI libraries
// with a pair of queues per peer do.
//
//   table_   [ . bin . . bin . bin . ]    open addressing by source
//   bin      source 3: entry <-> entry <-> entry
//            source 9: entry
//   any_     any source: entry <-> entry
//   order_   entry <-> entry <-> entry <-> ... all of them, oldest first
//
//   entry    links in the bin, links in the order, what is queued   one line
//
// A search for one source walks its bin and the any-source list side by side, in
// the order of their sequence numbers, so it stops at the oldest entry that fits.
// A search for any source walks the order.
//
// Bins are made when their source is first seen, and kept.
//
// Guarantees: append and erase are O(1) expected (the table doubles when it is
// half full); a search touches a line per entry of its source and of any source
// that is older than the hit; only append takes memory.
class SourceQueue {
  struct Links {
    Links* older;
    Links* newer;

    void make_ring() noexcept { older = newer = this; }
    bool is_alone() const noexcept { return newer == this; }
    void insert_before(Links* other) noexcept {
      older = other->older;
      newer = other;
      older->newer = this;
      other->older = this;
    }
    void take_out() noexcept {
      older->newer = newer;
      newer->older = older;
    }
  };
  struct InBin : Links {};
  struct InOrder : Links {};
  struct Entry : InBin, InOrder {
    QueueEntry value;
  };
  struct Bin {
    InBin entries;
    std::int32_t source;
  };
  static_assert(sizeof(Entry) <= kCacheLine, "a search touches one line per entry");
  static_assert(sizeof(Bin) <= sizeof(Entry), "bins and entries share a pool");

 public:
  static constexpr const char* kName = "source";
  using Parameters = NoParameters;
  static std::size_t node_bytes(Parameters) noexcept { return sizeof(Entry); }

  struct Hit {
    Entry* entry = nullptr;
    explicit operator bool() const noexcept { return entry != nullptr; }
  };

  SourceQueue(QueueResources& resources, Parameters, QueueSide) noexcept
      : pool_(&resources.pool), memory_(&resources.memory) {
    order_.make_ring();
    any_.make_ring();
  }
  SourceQueue(const SourceQueue&) = delete;
  SourceQueue& operator=(const SourceQueue&) = delete;
  ~SourceQueue() {
    remove_if([](const QueueEntry&) { return true; }, [](const QueueEntry&) {});
    for (std::size_t i = 0; i < places_; ++i) {
      if (table_[i] != nullptr) pool_->release(table_[i]);
    }
    if (spare_ != nullptr) pool_->release(spare_);
    release_table();
  }

  bool empty() const noexcept { return order_.is_alone(); }

  // For an entry of a source not seen before: its node, its bin, its place.
  bool has_room() const noexcept {
    return spare_ != nullptr && pool_->has_node() && 2 * bins_ < places_;
  }

  bool make_room() noexcept {
    if (2 * bins_ >= places_ && !grow_table()) return false;
    if (spare_ == nullptr) {
      if (!pool_->has_node() && !pool_->grow()) return false;
      spare_ = pool_->take();
    }
    return pool_->has_node() || pool_->grow();
  }

  void append(const QueueEntry& value) noexcept {
    Entry* entry = ::new (pool_->take()) Entry{{}, {}, value};
    InBin& list = key_any_source(value.key) ? any_ : bin_of(key_source(value.key)).entries;
    static_cast<InBin*>(entry)->insert_before(&list);
    static_cast<InOrder*>(entry)->insert_before(&order_);
  }

  Hit find(const MatchKey& key, std::uint64_t& depth) const noexcept {
    std::uint64_t seen = 0;
    const auto meets = [&](const QueueEntry& value) {
      ++seen;
      return keys_meet(value.key, key);
    };
    const Hit hit = key_any_source(key) ? first_in_order(meets) : first_of_source(key, meets);
    depth += seen;
    return hit;
  }

  Hit find_exact(const MatchKey& key, const void* cookie) const noexcept {
    const auto is_it = [&](const QueueEntry& value) {
      return value.cookie == cookie && value.key == key;
    };
    if (key_any_source(key)) return first_in_bin(any_, is_it);
    const Bin* bin = known_bin(key_source(key));
    return bin == nullptr ? Hit{} : first_in_bin(bin->entries, is_it);
  }

  Hit find_sequence(std::uint64_t sequence) const noexcept {
    return first_in_order([&](const QueueEntry& value) { return value.sequence == sequence; });
  }

  const QueueEntry& at(Hit hit) const noexcept { return hit.entry->value; }

  void erase(Hit hit) noexcept {
    static_cast<InBin*>(hit.entry)->take_out();
    static_cast<InOrder*>(hit.entry)->take_out();
    pool_->release(hit.entry);
  }

  template <class Visit>
  void for_each(Visit visit) const {
    first_in_order([&](const QueueEntry& value) {
      visit(value);
      return false;
    });
  }

  template <class Predicate, class Visit>
  std::size_t remove_if(Predicate wanted, Visit visit) {
    std::size_t removed = 0;
    for (Links *links = order_.newer, *newer; links != &order_; links = newer) {
      newer = links->newer;
      Entry* entry = in_order(links);
      if (!wanted(entry->value)) continue;
      const QueueEntry value = entry->value;
      erase({entry});
      visit(value);
      ++removed;
    }
    return removed;
  }

 private:
  static Entry* in_bin(Links* links) noexcept {
    return static_cast<Entry*>(static_cast<InBin*>(links));
  }
  static Entry* in_order(Links* links) noexcept {
    return static_cast<Entry*>(static_cast<InOrder*>(links));
  }

  template <class Condition>
  Hit first_in_order(Condition condition) const {
    for (Links* links = order_.newer; links != &order_; links = links->newer) {
      if (condition(in_order(links)->value)) return {in_order(links)};
    }
    return {};
  }

  template <class Condition>
  static Hit first_in_bin(const InBin& list, Condition condition) {
    for (Links* links = list.newer; links != &list; links = links->newer) {
      if (condition(in_bin(links)->value)) return {in_bin(links)};
    }
    return {};
  }

  // Two lists, each in order, walked as one.
  template <class Condition>
  Hit first_of_source(const MatchKey& key, Condition condition) const {
    const Bin* bin = known_bin(key_source(key));
    if (bin == nullptr) return first_in_bin(any_, condition);
    Links* exact = bin->entries.newer;
    Links* any = any_.newer;
    while (exact != &bin->entries || any != &any_) {
      const bool from_bin =
          any == &any_ || (exact != &bin->entries &&
                           is_older(in_bin(exact)->value.sequence, in_bin(any)->value.sequence));
      Links*& next = from_bin ? exact : any;
      Entry* entry = in_bin(next);
      if (condition(entry->value)) return {entry};
      next = next->newer;
    }
    return {};
  }

  // Where a source's bin is, or would be. Wants an empty place in the table.
  static Bin*& place_of(Bin** table, std::size_t places, std::int32_t source) noexcept {
    const std::uint64_t spread = static_cast<std::uint32_t>(source) * 0x9e3779b97f4a7c15u;
    std::size_t i = static_cast<std::size_t>(spread >> 32) & (places - 1);
    while (table[i] != nullptr && table[i]->source != source) i = (i + 1) & (places - 1);
    return table[i];
  }

  const Bin* known_bin(std::int32_t source) const noexcept {
    return place_of(table_, places_, source);
  }

  Bin& bin_of(std::int32_t source) noexcept {
    Bin*& bin = place_of(table_, places_, source);
    if (bin == nullptr) {
      bin = ::new (spare_) Bin{{}, source};
      bin->entries.make_ring();
      spare_ = nullptr;
      ++bins_;
    }
    return *bin;
  }

  bool grow_table() noexcept {
    const std::size_t places = 2 * places_;
    auto* table = static_cast<Bin**>(memory_->allocate_zeroed(places * sizeof(Bin*)));
    if (table == nullptr) return false;
    for (std::size_t i = 0; i < places_; ++i) {
      if (table_[i] != nullptr) place_of(table, places, table_[i]->source) = table_[i];
    }
    release_table();
    table_ = table;
    places_ = places;
    return true;
  }

  void release_table() noexcept {
    if (table_ != few_) memory_->release(table_, places_ * sizeof(Bin*));
  }

  static constexpr std::size_t kFewPlaces = 8;  // always a power of two

  InOrder order_;  // rings through here: no entry is a special case
  InBin any_;
  Bin* few_[kFewPlaces] = {};  // the first table
  Bin** table_ = few_;
  std::size_t places_ = kFewPlaces;
  std::size_t bins_ = 0;
  void* spare_ = nullptr;  // node for the next bin
  NodePool* pool_;
  NodeMemory* memory_;
};

}  // namespace tagline
