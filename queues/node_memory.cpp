// SPDX-License-Identifier: BSD-3-Clause
#include "queues/node_memory.hpp"

#include <cstdlib>
#include <cstring>

namespace tagline {

void* NodeMemory::allocate(std::size_t bytes) noexcept {
  if (bytes > available_bytes()) return nullptr;
  void* block = std::aligned_alloc(kCacheLine, (bytes + kCacheLine - 1) / kCacheLine * kCacheLine);
  if (block != nullptr) used_bytes_ += bytes;
  return block;
}

void* NodeMemory::allocate_zeroed(std::size_t bytes) noexcept {
  void* block = allocate(bytes);
  if (block != nullptr) std::memset(block, 0, bytes);
  return block;
}

void NodeMemory::release(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  std::free(block);
  used_bytes_ -= bytes;
}

}  // namespace tagline
