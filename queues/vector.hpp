// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "queues/match_key.hpp"
#include "queues/resources.hpp"

namespace tagline {

// A linked list of nodes that hold 64 entries as columns of 16, which a search
// compares a column at a time.
//
//   node   line 0       links, masks (live, any_source, any_tag, user_tag)
//          line 1-8     source and tag columns: simd::LaneBlock
//          line 9-24    cookie and sequence of each lane, touched on a hit only
//
//   oldest_ -> [ 64 lanes ] <-> [ 64 lanes ] <-> [ 64 lanes ] <- newest_
//
// Holes are filled before they cost: a full newest node that is at most half
// alive is squeezed rather than followed by another, and two neighbours that
// are half full together become one. So except for the newest one, any two
// neighbours hold more than 32 entries between them.
//
// A search of a very short queue compares single lanes: loading a whole column
// right after one lane of it was stored waits for the store to leave the core.
//
// Guarantees: append is O(1) amortised (at most 32 entries move), erase too;
// find touches 2 lines per 16 entries and one per node; entries keep their
// order; only append takes memory, and returns a node as soon as it is empty.
class VectorQueue {
  struct Payload {
    void* cookie;
    std::uint64_t sequence;
  };
  struct Node : simd::LaneBlock {
    Payload payload[simd::kLanes];
  };
  using LaneMask = simd::LaneMask;

 public:
  static constexpr const char* kName = "vector";
  using Parameters = NoParameters;
  static std::size_t node_bytes(Parameters) noexcept { return sizeof(Node); }

  struct Hit {
    Node* node = nullptr;
    int lane = 0;
    explicit operator bool() const noexcept { return node != nullptr; }
  };

  VectorQueue(QueueResources& resources, Parameters, QueueSide) noexcept
      : pool_(&resources.pool), kernels_(&resources.kernels) {}
  VectorQueue(const VectorQueue&) = delete;
  VectorQueue& operator=(const VectorQueue&) = delete;
  ~VectorQueue() {
    while (oldest_ != nullptr) unlink(oldest_);
  }

  bool empty() const noexcept { return oldest_ == nullptr || oldest_->live == 0; }

  bool has_room() const noexcept { return newest_ != nullptr && newest_->used < simd::kLanes; }

  bool make_room() noexcept {
    if (newest_ != nullptr && newest_->count <= kHalf) {
      squeeze(*newest_);
      return true;
    }
    return append_node();
  }

  void append(const QueueEntry& entry) noexcept { place(*newest_, entry); }

  Hit find(const MatchKey& key, std::uint64_t& depth) const noexcept {
    const simd::LaneQuery query = {key_source(key), key_tag(key), all_if(key_any_source(key)),
                                   all_if(key_any_tag(key)), all_if(key_tag(key) >= 0)};
    if (oldest_ == newest_ && oldest_->count <= kScalarSearch) return find_scalar(query, depth);
    const simd::LaneHit hit = kernels_->find_lane(oldest_, query);
    depth += simd::kLanes * hit.blocks_passed;
    if (hit.block == nullptr) return {};
    depth += static_cast<unsigned>(hit.lane) + 1;
    return {static_cast<Node*>(hit.block), hit.lane};
  }

  Hit find_exact(const MatchKey& key, const void* cookie) const noexcept {
    return find_live([&](const Node& node, int lane) {
      return node.payload[lane].cookie == cookie && key_at(node, lane) == key;
    });
  }

  Hit find_sequence(std::uint64_t sequence) const noexcept {
    if (empty()) return {};
    for (Node* node = oldest_; node != nullptr; node = newer(node)) {
      // Lanes are in order, so the last one tells whether to look at the others.
      // The difference is signed: sequence numbers may wrap.
      const std::uint64_t last = node->payload[node->used - 1].sequence;
      if (static_cast<std::int64_t>(last - sequence) < 0) continue;
      for (LaneMask rest = node->live; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        if (node->payload[lane].sequence == sequence) return {node, lane};
      }
      break;
    }
    return {};
  }

  QueueEntry at(Hit hit) const noexcept { return entry_at(*hit.node, hit.lane); }

  void erase(Hit hit) noexcept {
    take_out(*hit.node, hit.lane);
    tidy(hit.node);
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const Node* node = oldest_; node != nullptr; node = newer(node)) {
      for (LaneMask rest = node->live; rest != 0; rest &= rest - 1) {
        visit(entry_at(*node, std::countr_zero(rest)));
      }
    }
  }

  template <class Predicate, class Visit>
  std::size_t remove_if(Predicate wanted, Visit visit) {
    std::size_t removed = 0;
    for (Node* node = oldest_; node != nullptr;) {
      for (LaneMask rest = node->live; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        const QueueEntry entry = entry_at(*node, lane);
        if (!wanted(entry)) continue;
        take_out(*node, lane);
        ++removed;
        visit(entry);
      }
      // Tidying may free this node or merge it into the older one, but never
      // takes in lanes of the newer one before they have been looked at.
      Node* next = newer(node);
      if (node->live == 0) {
        unlink(node);
      } else if (node->older != nullptr) {
        merge_if_sparse(older(node), node);
      }
      node = next;
    }
    return removed;
  }

 private:
  static constexpr std::uint32_t kHalf = simd::kLanes / 2;

  // Up to here a scalar search is at least as fast as a vector one.
  static constexpr std::size_t kScalarSearch = 4;

  static LaneMask bit(int lane) noexcept { return LaneMask{1} << lane; }
  static LaneMask all_if(bool condition) noexcept { return condition ? ~LaneMask{0} : LaneMask{0}; }
  static Node* newer(const Node* node) noexcept { return static_cast<Node*>(node->newer); }
  static Node* older(const Node* node) noexcept { return static_cast<Node*>(node->older); }

  static MatchKey key_at(const Node& node, int lane) noexcept {
    return make_key(node, lane, node.any_source, node.any_tag);
  }

  static MatchKey make_key(const Node& node, int lane, LaneMask any_source,
                           LaneMask any_tag) noexcept {
    return {key_bits(node.source[lane], node.tag[lane]),
            ((any_source & bit(lane)) != 0 ? 0 : kSourceMask) |
                ((any_tag & bit(lane)) != 0 ? kTagSign : kTagMask)};
  }

  static QueueEntry entry_at(const Node& node, int lane) noexcept {
    return {key_at(node, lane), node.payload[lane].cookie, node.payload[lane].sequence};
  }

  // Into the next lane of a node; lanes not handed out have no mask bits.
  static void place(Node& node, const QueueEntry& entry) noexcept {
    const int lane = static_cast<int>(node.used++);
    ++node.count;
    node.live |= bit(lane);
    node.any_source |= LaneMask{key_any_source(entry.key)} << lane;
    node.any_tag |= LaneMask{key_any_tag(entry.key)} << lane;
    node.user_tag |= LaneMask{key_tag(entry.key) >= 0} << lane;
    node.source[lane] = key_source(entry.key);
    node.tag[lane] = key_tag(entry.key);
    node.payload[lane] = {entry.cookie, entry.sequence};
  }

  static void take_out(Node& node, int lane) noexcept {
    node.live &= ~bit(lane);
    --node.count;
  }

  Hit find_scalar(const simd::LaneQuery& query, std::uint64_t& depth) const noexcept {
    const LaneMask open_source = simd::source_is_open(*oldest_, query);
    const LaneMask open_tag = simd::tag_is_open(*oldest_, query);
    for (LaneMask rest = oldest_->live; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      ++depth;
      if ((oldest_->source[lane] == query.source || (open_source >> lane & 1) != 0) &&
          (oldest_->tag[lane] == query.tag || (open_tag >> lane & 1) != 0)) {
        return {oldest_, lane};
      }
    }
    return {};
  }

  // The oldest live lane that the condition holds for.
  template <class Condition>
  Hit find_live(Condition condition) const noexcept {
    for (Node* node = oldest_; node != nullptr; node = newer(node)) {
      for (LaneMask rest = node->live; rest != 0; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        if (condition(*node, lane)) return {node, lane};
      }
    }
    return {};
  }

  bool append_node() noexcept {
    if (!pool_->has_node() && !pool_->grow()) return false;
    Node* node =
        ::new (pool_->take()) Node;  // columns stay as they are: nothing reads a lane not live
    node->newer = nullptr;
    node->older = newest_;
    clear(*node);
    if (newest_ != nullptr) {
      newest_->newer = node;
    } else {
      oldest_ = node;
    }
    newest_ = node;
    return true;
  }

  void unlink(Node* node) noexcept {
    if (node->older != nullptr) {
      node->older->newer = node->newer;
    } else {
      oldest_ = newer(node);
    }
    if (node->newer != nullptr) {
      node->newer->older = node->older;
    } else {
      newest_ = older(node);
    }
    pool_->release(node);
  }

  // After an erase in node: no empty node stays, and no pair of sparse ones.
  void tidy(Node* node) noexcept {
    if (node->live == 0) {
      // The last node of a queue that drains to nothing is kept for the next entry.
      if (oldest_ == newest_) {
        clear(*node);
      } else {
        unlink(node);
      }
      return;
    }
    if (node->older != nullptr && merge_if_sparse(older(node), node)) return;
    if (node->newer != nullptr) merge_if_sparse(node, newer(node));
  }

  // Moves the newer neighbour's entries into the older node if both are half full together.
  bool merge_if_sparse(Node* into, Node* from) noexcept {
    if (into->count + from->count > kHalf) return false;
    squeeze(*into);
    for (LaneMask rest = from->live; rest != 0; rest &= rest - 1) {
      place(*into, entry_at(*from, std::countr_zero(rest)));
    }
    unlink(from);
    return true;
  }

  // Moves the live lanes down over the holes, in order: a lane is written only
  // after it has been read.
  static void squeeze(Node& node) noexcept {
    const LaneMask any_source = node.any_source;
    const LaneMask any_tag = node.any_tag;
    LaneMask rest = node.live;
    for (clear(node); rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      place(node, {make_key(node, lane, any_source, any_tag), node.payload[lane].cookie,
                   node.payload[lane].sequence});
    }
  }

  static void clear(Node& node) noexcept {
    node.live = node.any_source = node.any_tag = node.user_tag = 0;
    node.used = node.count = 0;
  }

  Node* oldest_ = nullptr;
  Node* newest_ = nullptr;
  NodePool* pool_;
  const simd::Kernels* kernels_;
};

}  // namespace tagline
