// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <new>

#include "queues/node_pool.hpp"

namespace tagline {

// What an index keeps of an entry: its cookie (or, in a view, its key) and its
// place in the queue's order.
struct IndexItem {
  std::uint64_t value;
  std::uint64_t sequence;  // 0: no item
};

// A first-in first-out list of items, three to a cache line.
//
//   newest -> [ next, first, end, item item item ] -> oldest node -> ... -> newest
//
// The nodes form a ring, so that one pointer reaches both ends: an index keeps
// one of these for every key, nearly all of them empty. Beside the pointer there is room for a
// mark, which says something of the place where the list is kept.
//
// Guarantees: push, pop and clear are O(1); nodes come from the pool given.
class Fifo {
  struct Node : NodePool::Link {
    std::uint32_t first;  // items [first, end) are there
    std::uint32_t end;
    IndexItem item[3];
  };
  static_assert(sizeof(Node) == kCacheLine, "three items are one line");

 public:
  static constexpr std::size_t kNodeBytes = sizeof(Node);

  bool empty() const noexcept { return newest() == nullptr; }
  // The mark is clear at first; whatever becomes of the items does not change it.
  bool is_marked() const noexcept { return (word_ & kMark) != 0; }
  void mark() noexcept { word_ |= kMark; }
  // Neither items nor a mark.
  bool is_bare() const noexcept { return word_ == 0; }
  // The items of another list, which is used no more, come to one that has none.
  void take_over(const Fifo& other) noexcept { set_newest(other.newest()); }

  const IndexItem& front() const noexcept { return oldest()->item[oldest()->first]; }

  // Wants pool.has_node().
  void push(NodePool& pool, const IndexItem& item) noexcept {
    Node* last = newest();
    if (last == nullptr || last->end == 3) {
      Node* node = ::new (pool.take()) Node;  // the items are not there yet
      node->first = node->end = 0;
      node->next = last == nullptr ? node : last->next;
      if (last != nullptr) last->next = node;
      set_newest(last = node);
    }
    last->item[last->end++] = item;
  }

  // The same where the newest node has room; false: nothing has changed.
  bool push_at_hand(const IndexItem& item) noexcept {
    Node* const last = newest();
    if (last == nullptr || last->end == 3) return false;
    last->item[last->end++] = item;
    return true;
  }

  IndexItem pop(NodePool& pool) noexcept {
    Node* const last = newest();
    Node* node = after(last);
    const IndexItem item = node->item[node->first++];
    if (node->first == node->end) unlink(pool, last, node);
    return item;
  }

  // Takes out the oldest item that the condition holds for; false if there is none.
  template <class Condition>
  bool erase_if(NodePool& pool, Condition condition) noexcept {
    Node* const last = newest();
    if (last == nullptr) return false;
    Node* before = last;
    do {
      Node* node = after(before);
      for (std::uint32_t i = node->first; i < node->end; ++i) {
        if (!condition(node->item[i])) continue;
        for (--node->end; i < node->end; ++i) node->item[i] = node->item[i + 1];
        if (node->first == node->end) unlink(pool, before, node);
        return true;
      }
      before = node;
    } while (before != last);
    return false;
  }

  // Oldest first, until visit returns false.
  template <class Visit>
  void for_each(Visit visit) const {
    const Node* const last = newest();
    if (last == nullptr) return;
    const Node* node = last;
    do {
      node = after(node);
      for (std::uint32_t i = node->first; i < node->end; ++i) {
        if (!visit(node->item[i])) return;
      }
    } while (node != last);
  }

  void clear(NodePool& pool) noexcept {
    Node* const last = newest();
    if (last == nullptr) return;
    pool.release_chain(last->next, last);
    set_newest(nullptr);
  }

 private:
  static constexpr std::uintptr_t kMark = 1;  // nodes are aligned to lines

  static Node* after(const Node* node) noexcept { return static_cast<Node*>(node->next); }
  Node* newest() const noexcept { return reinterpret_cast<Node*>(word_ & ~kMark); }
  Node* oldest() const noexcept { return after(newest()); }
  void set_newest(Node* node) noexcept {
    word_ = reinterpret_cast<std::uintptr_t>(node) | (word_ & kMark);
  }

  void unlink(NodePool& pool, Node* before, Node* node) noexcept {
    before->next = node->next;
    if (node == newest()) set_newest(before == node ? nullptr : before);
    pool.release(node);
  }

  std::uintptr_t word_ = 0;  // the newest node, and the mark
};

}  // namespace tagline
