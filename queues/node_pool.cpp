// SPDX-License-Identifier: BSD-3-Clause
#include "queues/node_pool.hpp"

#include <algorithm>
#include <new>

namespace tagline {

struct alignas(kCacheLine) NodePool::Chunk {
  Chunk* next;
  std::size_t bytes;
};

namespace {
// The first chunk of a matcher that sees little traffic stays within a page;
// a chunk is never so large that clearing its pages stalls a message for long.
constexpr std::size_t kFirstChunkBytes = 4096;
constexpr std::size_t kCutBytes = 2048;  // of a chunk, made ready at a time
constexpr std::size_t kLargestChunkBytes = std::size_t{1} << 20;
}  // namespace

bool NodePool::grow() noexcept {
  if (fresh_ == fresh_end_ && !add_chunk()) return false;
  const std::size_t left = static_cast<std::size_t>(fresh_end_ - fresh_) / node_bytes_;
  const std::size_t cut = std::min(left, std::max<std::size_t>(1, kCutBytes / node_bytes_));
  // Released in reverse, so that they are handed out in the order of their addresses.
  for (std::size_t i = cut; i-- > 0;) release(fresh_ + i * node_bytes_);
  fresh_ += cut * node_bytes_;
  return true;
}

bool NodePool::add_chunk() noexcept {
  // Doubling what there is keeps the number of chunks logarithmic at first.
  const std::size_t want = std::min(std::clamp(chunk_bytes_, kFirstChunkBytes, kLargestChunkBytes),
                                    memory_->available_bytes());
  // Less than that, down to one node, where the limit allows no more.
  const std::size_t nodes =
      want > sizeof(Chunk) ? std::max<std::size_t>(1, (want - sizeof(Chunk)) / node_bytes_) : 1;
  const std::size_t bytes = sizeof(Chunk) + nodes * node_bytes_;
  void* block = memory_->allocate(bytes);
  if (block == nullptr) return false;
  chunks_ = ::new (block) Chunk{chunks_, bytes};
  fresh_ = static_cast<std::byte*>(block) + sizeof(Chunk);
  fresh_end_ = fresh_ + nodes * node_bytes_;
  chunk_bytes_ += bytes;
  return true;
}

void NodePool::clear() noexcept {
  while (chunks_ != nullptr) {
    Chunk* next = chunks_->next;
    memory_->release(chunks_, chunks_->bytes);
    chunks_ = next;
  }
  free_ = nullptr;
  fresh_ = fresh_end_ = nullptr;
  chunk_bytes_ = 0;
}

}  // namespace tagline
