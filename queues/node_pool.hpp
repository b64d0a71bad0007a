// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

namespace tagline {

inline constexpr std::size_t kCacheLine = 64;

// Node memory of one matcher: nodes of one size, on cache-line boundaries.
//
// Chunks double in size and are kept until the pool dies. Their nodes are cut
// off a few at a time, so that a growing queue never waits for a whole chunk to
// be touched; a released node is the next one handed out, while it is still in
// the cache. Once a queue has been as long as it gets, grow() is not called again.
//
// Guarantees: take() and release() are O(1) and never enter the system; chunks
// never exceed limit_bytes in sum; addresses are stable until release(). One
// thread at a time.
class NodePool {
 public:
  // node_bytes: size of a node, rounded up to whole cache lines.
  // limit_bytes: upper bound of all chunks together; 0: none.
  NodePool(std::size_t node_bytes, std::size_t limit_bytes) noexcept
      : node_bytes_((node_bytes + kCacheLine - 1) / kCacheLine * kCacheLine),
        limit_bytes_(limit_bytes == 0 ? std::numeric_limits<std::size_t>::max() : limit_bytes) {}
  ~NodePool();
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;

  bool has_node() const noexcept { return free_ != nullptr; }

  // Makes has_node() true; false if the limit or the system says no.
  bool grow() noexcept;

  // Uninitialised memory of one node; wants has_node().
  void* take() noexcept {
    FreeNode* node = free_;
    free_ = node->next;
    return node;
  }

  void release(void* node) noexcept { free_ = ::new (node) FreeNode{free_}; }

  // Bytes of all chunks, used or not.
  std::size_t reserved_bytes() const noexcept { return reserved_bytes_; }

 private:
  struct FreeNode {
    FreeNode* next;
  };
  struct Chunk;

  bool add_chunk() noexcept;

  FreeNode* free_ = nullptr;
  std::byte* fresh_ = nullptr;  // [fresh_, fresh_end_): never handed out yet
  std::byte* fresh_end_ = nullptr;
  const std::size_t node_bytes_;
  const std::size_t limit_bytes_;
  std::size_t reserved_bytes_ = 0;
  Chunk* chunks_ = nullptr;
};

}  // namespace tagline
