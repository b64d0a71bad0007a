// SPDX-License-Identifier: BSD-3-Clause
//
// The build of jemalloc by tools/jemalloc.sh: it serves nobody else, so its one
// arena is ours. An arena per matcher would cost each 100 KiB of resident memory
// with its first block, and a host has a matcher per communicator.
#include <atomic>
#include <cstdint>

#include "queues/memory_backend.hpp"
#include "tagline_jemalloc.h"

namespace tagline::memory_backend {

namespace {

// Blocks are few and large: a cache per thread would only hold memory back.
constexpr int kFlags = MALLOCX_LG_ALIGN(6) | MALLOCX_TCACHE_NONE | MALLOCX_ARENA(0);
static_assert(kCacheLine == 1u << 6, "blocks start on a cache line");

// Released, but perhaps not yet returned to the system. Small blocks of matchers
// that come and go are taken again before that costs anything.
std::atomic<std::size_t> unpurged_bytes{0};

template <class Value>
Value read(const char* name) noexcept {
  Value value{};
  std::size_t size = sizeof value;
  return tagline_jemalloc_mallctl(name, &value, &size, nullptr, 0) == 0 ? value : Value{};
}

}  // namespace

void* allocate(std::size_t bytes, bool zeroed) noexcept {
  return tagline_jemalloc_mallocx(bytes, kFlags | (zeroed ? MALLOCX_ZERO : 0));
}

void release(void* block, std::size_t bytes) noexcept {
  tagline_jemalloc_sdallocx(block, bytes, kFlags);
  // Relaxed: a count, it orders nothing.
  if (unpurged_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes >= kUnpurgedBytes) {
    unpurged_bytes.store(0, std::memory_order_relaxed);
    tagline_jemalloc_mallctl("arena.0.purge", nullptr, nullptr, nullptr, 0);
  }
}

Use use() noexcept {
  // Writing the epoch makes the statistics current.
  std::uint64_t epoch = 1;
  tagline_jemalloc_mallctl("epoch", nullptr, nullptr, &epoch, sizeof epoch);
  return {"jemalloc", read<std::size_t>("stats.arenas.0.mapped"),
          read<std::size_t>("stats.arenas.0.resident")};
}

}  // namespace tagline::memory_backend
