// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "queues/node_memory.hpp"

namespace tagline {

// Node memory of one matcher: nodes of one size, on cache-line boundaries.
//
// Chunks double in size and are kept until the pool is cleared. Their nodes are cut
// off a few at a time, so that a growing queue never waits for a whole chunk to
// be touched; a released node is the next one handed out, while it is still in
// the cache. Once a queue has been as long as it gets, grow() is not called again.
//
// Guarantees: take(), release() and release_chain() are O(1) and never enter the system;
// addresses are stable until release(). One thread at a time.
class NodePool {
 public:
  // The first word of a free node; who links nodes by it can release them together.
  struct Link {
    Link* next;
  };

  // node_bytes: size of a node, rounded up to whole cache lines.
  NodePool(NodeMemory& memory, std::size_t node_bytes) noexcept
      : node_bytes_((node_bytes + kCacheLine - 1) / kCacheLine * kCacheLine), memory_(&memory) {}
  ~NodePool() { clear(); }
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;

  NodeMemory& memory() const noexcept { return *memory_; }

  bool has_node() const noexcept { return free_ != nullptr; }

  // Makes has_node() true; false if there is no memory.
  bool grow() noexcept;

  // Uninitialised memory of one node; wants has_node().
  void* take() noexcept {
    Link* node = free_;
    free_ = node->next;
    return node;
  }

  void release(void* node) noexcept { free_ = ::new (node) Link{free_}; }
  // A chain of nodes, each the next of the one before it.
  void release_chain(Link* first, Link* last) noexcept {
    last->next = free_;
    free_ = first;
  }

  // Gives its memory back; wants all nodes released, or nobody to use them again.
  void clear() noexcept;

  // The pool is about to die with all its nodes: whoever has many may keep them.
  void doom() noexcept { doomed_ = true; }
  bool is_doomed() const noexcept { return doomed_; }

 private:
  struct Chunk;

  bool add_chunk() noexcept;

  Link* free_ = nullptr;
  std::byte* fresh_ = nullptr;  // [fresh_, fresh_end_): never handed out yet
  std::byte* fresh_end_ = nullptr;
  const std::size_t node_bytes_;
  std::size_t chunk_bytes_ = 0;  // of all chunks together
  NodeMemory* memory_;
  Chunk* chunks_ = nullptr;
  bool doomed_ = false;
};

}  // namespace tagline
