// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace tagline {

inline constexpr std::size_t kCacheLine = 64;

// Where the blocks of every NodeMemory come from. One of memory_backend_*.cpp is
// part of the library: a private jemalloc (TAGLINE_JEMALLOC), or the system.
//
// Blocks start on a cache line. Zeroed ones of many pages are fresh pages of the
// system, not cleared ones: a growing hash table must not stop for milliseconds.
// What is released goes back to the system, at the latest when it amounts to
// kUnpurgedBytes. Any thread, any time.
namespace memory_backend {

inline constexpr std::size_t kUnpurgedBytes = std::size_t{1} << 20;

// nullptr: there is no memory.
void* allocate(std::size_t bytes, bool zeroed) noexcept;
void release(void* block, std::size_t bytes) noexcept;

// What the process has from the system for this.
struct Use {
  const char* name;            // of the backend
  std::size_t mapped_bytes;    // address space in use, 0: not known
  std::size_t resident_bytes;  // of that, with memory behind it or not yet given back; 0: not known
};
Use use() noexcept;

}  // namespace memory_backend

}  // namespace tagline
