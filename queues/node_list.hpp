// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

#include "queues/match_key.hpp"
#include "queues/node_pool.hpp"

namespace tagline {

// What the packed structures (array, vector, fuzzy) have in common: a linked list
// of nodes that hold several entries each, in order. They differ in the node, and
// in how they search.
//
//   oldest_ -> [ lane lane lane lane ] -> [ lane . lane . ] -> [ lane lane . . ] <- newest_
//
// Holes are filled before they cost. Whenever a sixteenth of a node has gone, it
// becomes one with a neighbour if both fit into one node, or is squeezed if at most
// half of it is alive: a search passes 9 dead lanes for 7 live ones at most. The
// newest node, which still grows, joins the one before it only if both fill half a
// node; when it is full and at most half alive, it is squeezed rather than followed
// by another. Dead lanes at the front of a node are passed without a look.
//
// A Node has these members; Shape is what the nodes of one queue share.
//
//   newer, first, used, count   link; live lanes lie in [first, used), first is
//                               live if any is, count of them are
//   lanes(shape)                how many it can hold
//   put(shape, lane, entry)     fill a lane; everything but the counts
//   entry(shape, lane)          what put() was given
//   remove(shape, lane)         make it a hole
//   next_live(shape, lane)      the first live lane from there on, at most `used`
//   clear(shape)                no lane handed out
//
// Guarantees: append and erase are O(1) amortised (no call moves more than one
// node's entries); entries keep their order; only append takes memory, and a
// node goes back to the pool when it is empty, except for the last one.
template <class Node>
class NodeList {
 public:
  static constexpr int kNoLane = -1;  // as the kernels say it
  using Shape = typename Node::Shape;

  // A lane of the node behind `older`, or of the oldest node: what it takes to
  // unlink a node of a singly linked list, in two registers. Valid until the next
  // append or erase.
  struct Hit {
    Node* older = nullptr;
    int lane = kNoLane;
    explicit operator bool() const noexcept { return lane != kNoLane; }
    friend bool operator==(const Hit&, const Hit&) = default;
  };
  // A hit that is no entry of any list.
  static constexpr Hit kBeyond = {nullptr, std::numeric_limits<int>::max()};

  NodeList(NodePool& pool, const Shape& shape) noexcept
      : shape_(shape), tidied_every_(tidied_every(Node::lanes(shape_))), pool_(&pool) {}
  NodeList(const NodeList&) = delete;
  NodeList& operator=(const NodeList&) = delete;
  ~NodeList() {
    for (Node *node = oldest_, *next; node != nullptr; node = next) {
      next = newer(node);
      pool_->release(node);
    }
  }

  bool empty() const noexcept { return oldest_ == nullptr || oldest_->count == 0; }

  bool has_room() const noexcept {
    return newest_ != nullptr && static_cast<int>(newest_->used) < lanes();
  }

  bool make_room() noexcept {
    if (newest_ != nullptr && static_cast<int>(newest_->count) <= lanes() / 2) {
      squeeze(*newest_);
      return true;
    }
    return append_node();
  }

  void append(const QueueEntry& entry) noexcept { place(*newest_, entry); }

  Hit find_exact(const MatchKey& key, const void* cookie) const noexcept {
    return find_if(
        [&](const QueueEntry& entry) { return entry.cookie == cookie && entry.key == key; });
  }

  Hit find_sequence(std::uint64_t sequence) const noexcept {
    if (empty()) return {};
    Node* older = nullptr;
    for (Node* node = oldest_; node != nullptr; older = node, node = newer(node)) {
      // Lanes are in order, so the last one tells whether to look at the others;
      // dead or not, it is the youngest that the node has.
      const std::uint64_t last = node->entry(shape_, static_cast<int>(node->used) - 1).sequence;
      if (is_older(last, sequence)) continue;
      for (int lane = node->first; lane < static_cast<int>(node->used);
           lane = node->next_live(shape_, lane + 1)) {
        if (node->entry(shape_, lane).sequence == sequence) return {older, lane};
      }
      break;
    }
    return {};
  }

  QueueEntry at(Hit hit) const noexcept { return node_of(hit)->entry(shape_, hit.lane); }

  void erase(Hit hit) noexcept {
    Node* node = node_of(hit);
    take_out(*node, hit.lane);
    if ((static_cast<int>(node->count) & (tidied_every_ - 1)) == 0) tidy(node, hit.older);
  }

  template <class Visit>
  void for_each(Visit visit) const {
    find_if([&](const QueueEntry& entry) {
      visit(entry);
      return false;
    });
  }

  template <class Predicate, class Visit>
  std::size_t remove_if(Predicate wanted, Visit visit) {
    if (empty()) return 0;
    std::size_t removed = 0;
    Node* older = nullptr;
    for (Node* node = oldest_; node != nullptr;) {
      for (int lane = node->first; lane < static_cast<int>(node->used);
           lane = node->next_live(shape_, lane + 1)) {
        const QueueEntry entry = node->entry(shape_, lane);
        if (!wanted(entry)) continue;
        take_out(*node, lane);
        ++removed;
        visit(entry);
      }
      // Tidying may free this node or merge it into the older one, but never
      // takes in lanes of the newer one before they have been looked at.
      Node* next = newer(node);
      if (node->count == 0 && oldest_ != newest_) {
        unlink(node, older);
      } else if (older == nullptr || !merge_if_sparse(older, node)) {
        older = node;
      }
      node = next;
    }
    if (oldest_ == newest_ && oldest_->count == 0) oldest_->clear(shape_);
    return removed;
  }

 protected:
  // Shape of the nodes and both ends, for the search of the structure.
  const Shape& shape() const noexcept { return shape_; }
  Node* oldest() const noexcept { return oldest_; }
  Node* newest() const noexcept { return newest_; }
  static Node* newer(const Node* node) noexcept { return static_cast<Node*>(node->newer); }

 private:
  int lanes() const noexcept { return Node::lanes(shape_); }

  Node* node_of(Hit hit) const noexcept {
    return hit.older == nullptr ? oldest_ : newer(hit.older);
  }

  // Of so many erases in a node one looks at its neighbours, whose lines most erases have no
  // need of. Always a power of two.
  static int tidied_every(int lanes) noexcept {
    return std::max(1, static_cast<int>(std::bit_floor(static_cast<unsigned>(lanes))) / 16);
  }

  // With at most so many entries between them a node and its older neighbour become one. Where
  // the node still grows, half a node leaves room for as many appends as were moved; of very
  // small nodes next to nothing is moved.
  int most_merged(const Node* node) const noexcept {
    return node == newest_ && lanes() > 4 ? lanes() / 2 : lanes();
  }

  // The oldest entry that the condition holds for.
  template <class Condition>
  Hit find_if(Condition condition) const {
    Node* older = nullptr;
    for (Node* node = oldest_; node != nullptr; older = node, node = newer(node)) {
      for (int lane = node->first; lane < static_cast<int>(node->used);
           lane = node->next_live(shape_, lane + 1)) {
        if (condition(node->entry(shape_, lane))) return {older, lane};
      }
    }
    return {};
  }

  void place(Node& node, const QueueEntry& entry) noexcept {
    node.put(shape_, static_cast<int>(node.used), entry);
    ++node.used;
    ++node.count;
  }

  void take_out(Node& node, int lane) noexcept {
    node.remove(shape_, lane);
    --node.count;
    if (lane == static_cast<int>(node.first)) {
      node.first = static_cast<decltype(node.first)>(node.next_live(shape_, lane + 1));
    }
  }

  bool append_node() noexcept {
    if (!pool_->has_node() && !pool_->grow()) return false;
    // Lanes stay as they are: nothing reads one that has not been handed out.
    Node* node = ::new (pool_->take()) Node;
    node->clear(shape_);
    node->newer = nullptr;
    if (newest_ != nullptr) {
      newest_->newer = node;
    } else {
      oldest_ = node;
    }
    newest_ = node;
    return true;
  }

  void unlink(Node* node, Node* older) noexcept {
    if (older != nullptr) {
      older->newer = node->newer;
    } else {
      oldest_ = newer(node);
    }
    if (node == newest_) newest_ = older;
    pool_->release(node);
  }

  // After an erase in node: no empty node stays, no neighbours that fit into one, and no node
  // of any size that is mostly holes.
  [[gnu::noinline]] void tidy(Node* node, Node* older) noexcept {
    if (node->count == 0) {
      // The last node of a queue that drains to nothing is kept for the next entry.
      if (oldest_ == newest_) {
        node->clear(shape_);
      } else {
        unlink(node, older);
      }
      return;
    }
    if (older != nullptr && merge_if_sparse(older, node)) return;
    if (node->newer != nullptr && merge_if_sparse(node, newer(node))) return;
    const int extent = static_cast<int>(node->used) - static_cast<int>(node->first);
    const bool is_mostly_holes = 2 * static_cast<int>(node->count) <= extent;
    if (tidied_every_ > 1 && is_mostly_holes) squeeze(*node);
  }

  // Moves the newer neighbour's entries into the older node if there is room for them.
  bool merge_if_sparse(Node* into, Node* from) noexcept {
    if (static_cast<int>(into->count + from->count) > most_merged(from)) return false;
    squeeze(*into);
    for (int lane = from->first; lane < static_cast<int>(from->used);
         lane = from->next_live(shape_, lane + 1)) {
      place(*into, from->entry(shape_, lane));
    }
    unlink(from, into);
    return true;
  }

  // Moves the live lanes down over the holes, in order.
  [[gnu::noinline]] void squeeze(Node& node) noexcept {
    int target = 0;
    for (int lane = node.first, next; lane < static_cast<int>(node.used); lane = next, ++target) {
      next = node.next_live(shape_, lane + 1);
      if (lane == target) continue;
      const QueueEntry entry = node.entry(shape_, lane);
      node.remove(shape_, lane);
      node.put(shape_, target, entry);
    }
    node.first = 0;
    node.used = static_cast<decltype(node.used)>(target);
  }

  Node* oldest_ = nullptr;
  Node* newest_ = nullptr;
  const Shape shape_;
  const int tidied_every_;
  NodePool* pool_;
};

}  // namespace tagline
