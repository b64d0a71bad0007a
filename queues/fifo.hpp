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
//   newest_ -> [ next, first, end, item item item ] -> oldest node -> ... -> newest
//
// The nodes form a ring, so that one pointer reaches both ends: an index keeps
// one of these for every key, nearly all of them empty.
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

  bool empty() const noexcept { return newest_ == nullptr; }
  const IndexItem& front() const noexcept { return oldest()->item[oldest()->first]; }

  // Wants pool.has_node().
  void push(NodePool& pool, const IndexItem& item) noexcept {
    if (newest_ == nullptr || newest_->end == 3) {
      Node* node = ::new (pool.take()) Node;  // the items are not there yet
      node->first = node->end = 0;
      node->next = newest_ == nullptr ? node : newest_->next;
      if (newest_ != nullptr) newest_->next = node;
      newest_ = node;
    }
    newest_->item[newest_->end++] = item;
  }

  // The same where the newest node has room; false: nothing has changed.
  bool push_at_hand(const IndexItem& item) noexcept {
    if (newest_ == nullptr || newest_->end == 3) return false;
    newest_->item[newest_->end++] = item;
    return true;
  }

  IndexItem pop(NodePool& pool) noexcept {
    Node* node = oldest();
    const IndexItem item = node->item[node->first++];
    if (node->first == node->end) unlink(pool, newest_, node);
    return item;
  }

  // Takes out the oldest item that the condition holds for; false if there is none.
  template <class Condition>
  bool erase_if(NodePool& pool, Condition condition) noexcept {
    if (newest_ == nullptr) return false;
    Node* before = newest_;
    do {
      Node* node = after(before);
      for (std::uint32_t i = node->first; i < node->end; ++i) {
        if (!condition(node->item[i])) continue;
        for (--node->end; i < node->end; ++i) node->item[i] = node->item[i + 1];
        if (node->first == node->end) unlink(pool, before, node);
        return true;
      }
      before = node;
    } while (before != newest_);
    return false;
  }

  // Oldest first, until visit returns false.
  template <class Visit>
  void for_each(Visit visit) const {
    if (newest_ == nullptr) return;
    const Node* node = newest_;
    do {
      node = after(node);
      for (std::uint32_t i = node->first; i < node->end; ++i) {
        if (!visit(node->item[i])) return;
      }
    } while (node != newest_);
  }

  void clear(NodePool& pool) noexcept {
    if (newest_ == nullptr) return;
    pool.release_chain(newest_->next, newest_);
    newest_ = nullptr;
  }

 private:
  static Node* after(const Node* node) noexcept { return static_cast<Node*>(node->next); }
  Node* oldest() const noexcept { return after(newest_); }

  void unlink(NodePool& pool, Node* before, Node* node) noexcept {
    before->next = node->next;
    if (node == newest_) newest_ = before == node ? nullptr : before;
    pool.release(node);
  }

  Node* newest_ = nullptr;
};

}  // namespace tagline
