// SPDX-License-Identifier: BSD-3-Clause
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "queues/memory_backend.hpp"

namespace tagline::memory_backend {

namespace {

// Larger blocks are mappings of their own. Left to malloc they would share a heap
// with the program, whose blocks then keep ours from being returned.
constexpr std::size_t kMapped = std::size_t{256} << 10;

std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void* allocate(std::size_t bytes, bool zeroed) noexcept {
  if (bytes >= kMapped) {
    void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? nullptr : block;
  }
  void* block = std::aligned_alloc(kCacheLine, round_up(bytes, kCacheLine));
  if (zeroed && block != nullptr) std::memset(block, 0, bytes);
  return block;
}

void release(void* block, std::size_t bytes) noexcept {
  if (bytes >= kMapped) {
    munmap(block, bytes);
  } else {
    std::free(block);
  }
}

Use use() noexcept { return {"system", 0, 0}; }

}  // namespace tagline::memory_backend
