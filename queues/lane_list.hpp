// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstdint>

#include "queues/match_key.hpp"
#include "queues/node_list.hpp"
#include "simd/kernels.hpp"

namespace tagline {

// A node (see queues/node_list.hpp) that kernels can search: a simd::LaneBlock,
// or one with fingerprints, and behind it what is read on a hit only.
template <class Block, class ShapeOfQueue>
struct LaneNode : Block {
  using Shape = ShapeOfQueue;
  struct Payload {
    std::uint64_t mask;  // of the entry's key
    void* cookie;
    std::uint64_t sequence;
  };
  Payload payload[simd::kLanes];

  static constexpr int lanes(const Shape&) noexcept { return simd::kLanes; }

  MatchKey key(int lane) const noexcept {
    return {key_bits(this->source[lane], this->tag[lane]), payload[lane].mask};
  }
  QueueEntry entry(const Shape&, int lane) const noexcept {
    return {key(lane), payload[lane].cookie, payload[lane].sequence};
  }

  [[gnu::always_inline]] void put(const Shape&, int lane, const QueueEntry& entry) noexcept {
    this->source[lane] = key_source(entry.key);
    this->tag[lane] = key_tag(entry.key);
    payload[lane] = {entry.key.mask, entry.cookie, entry.sequence};
    simd::LaneGroup& group = group_of(lane);
    group.live |= bit(lane);
    if (!is_plain(entry.key)) {
      if (key_any_source(entry.key)) group.any_source |= bit(lane);
      if (key_any_tag(entry.key)) group.any_tag |= bit(lane);
      if (key_tag(entry.key) < 0) group.negative_tag |= bit(lane);
    }
  }

  void remove(const Shape&, int lane) noexcept {
    simd::LaneGroup& group = group_of(lane);
    group.live &= ~bit(lane);
    if (!is_plain(key(lane))) {
      group.any_source &= ~bit(lane);
      group.any_tag &= ~bit(lane);
      group.negative_tag &= ~bit(lane);
    }
  }

  bool is_live(int lane) const noexcept {
    return (this->group[group_index(lane)].live & bit(lane)) != 0;
  }

  int next_live(const Shape&, int lane) const noexcept {
    const int end = static_cast<int>(this->used);
    // Mostly the next one: predicted, it is known before the mask is.
    if (lane < end && is_live(lane)) return lane;
    while (lane < end) {
      const simd::LaneMask rest =
          this->group[group_index(lane)].live >> static_cast<unsigned>(lane) % simd::kGroupLanes;
      if (rest != 0) return lane + std::countr_zero(rest);
      lane = static_cast<int>((group_index(lane) + 1) * simd::kGroupLanes);
    }
    return end;
  }

  void clear(const Shape&) noexcept {
    this->first = this->used = this->count = 0;
    for (simd::LaneGroup& group : this->group) group = {};
  }

 private:
  // Neither a wildcard nor a negative tag: nothing that a mask has to say.
  static bool is_plain(const MatchKey& key) noexcept {
    return key.mask == (kSourceMask | kTagMask) && (key.bits & kTagSign) == 0;
  }
  static simd::LaneMask bit(int lane) noexcept {
    return simd::LaneMask{1} << static_cast<unsigned>(lane) % simd::kGroupLanes;
  }
  static unsigned group_index(int lane) noexcept {
    return static_cast<unsigned>(lane) / simd::kGroupLanes;
  }
  simd::LaneGroup& group_of(int lane) noexcept { return this->group[group_index(lane)]; }
};

// A list of such nodes, with what comes before the kernel: few entries are
// compared one by one, and of many the oldest one is looked at first, because
// most queues are drained in order.
template <class Node>
class LaneList : public NodeList<Node> {
 public:
  using Hit = typename NodeList<Node>::Hit;
  using NodeList<Node>::NodeList;

 protected:
  // The lanes worth a look one by one: all of a few, else the first one.
  struct Near {
    int first, end;
    bool is_all;
  };
  Near near() const noexcept {
    const int first = static_cast<int>(this->oldest()->first);
    const int end = static_cast<int>(this->oldest()->used);
    const bool is_all = this->oldest() == this->newest() && end - first <= kFew;
    return {first, is_all ? end : first + 1, is_all};
  }

  // The first of them that meets the key. Wants !empty().
  int find_near(const Near& lanes, const MatchKey& key) const noexcept {
    const Node& node = *this->oldest();
    for (int lane = lanes.first; lane < lanes.end; ++lane) {
      if (keys_meet(node.key(lane), key) && node.is_live(lane)) return lane;
    }
    return simd::kNoLane;
  }

  static Hit hit_of(const simd::LaneHit& hit) noexcept {
    return {static_cast<Node*>(hit.older), hit.lane};
  }

 private:
  // Up to here a scalar search is at least as fast as a vector one.
  static constexpr int kFew = 4;
};

}  // namespace tagline
