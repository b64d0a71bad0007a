// SPDX-License-Identifier: BSD-3-Clause
#include "line_watch.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <new>

namespace {

constexpr std::uintptr_t kLine = 64;

// Accesses of the call under way. Plain arrays: the hooks must not allocate.
bool watching = false;
std::uintptr_t touched[1 << 20];
std::size_t touched_count = 0;

struct Block {
  std::uintptr_t begin, end;
};
// What `new` has handed out since the matcher was made.
Block blocks[4096];
std::size_t block_count = 0;
bool remembering = false;

std::uintptr_t stack_low = 0;
std::uintptr_t stack_high = 0;

extern "C" char __executable_start;
extern "C" char _end;

bool is_static(std::uintptr_t address) {
  return address >= reinterpret_cast<std::uintptr_t>(&__executable_start) &&
         address < reinterpret_cast<std::uintptr_t>(&_end);
}
bool is_stack(std::uintptr_t address) { return address >= stack_low && address < stack_high; }
bool is_matcher(std::uintptr_t address) {
  return std::any_of(blocks, blocks + block_count, [&](const Block& block) {
    return address >= block.begin && address < block.end;
  });
}

void touch(const void* pointer, std::size_t bytes) {
  if (!watching) return;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (is_static(address) || is_stack(address)) return;
  for (std::uintptr_t line = address / kLine; line <= (address + bytes - 1) / kLine; ++line) {
    // Runs within a line are the common case.
    if (touched_count > 0 && touched[touched_count - 1] == line) continue;
    if (touched_count < std::size(touched)) touched[touched_count++] = line;
  }
}

void* allocate(std::size_t alignment, std::size_t bytes) {
  void* const memory =
      std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  if (remembering && block_count < std::size(blocks)) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    blocks[block_count++] = {begin, begin + bytes};
  }
  return memory;
}

void release(void* memory) {
  for (std::size_t i = 0; i < block_count; ++i) {
    if (blocks[i].begin != reinterpret_cast<std::uintptr_t>(memory)) continue;
    blocks[i] = blocks[--block_count];
    break;
  }
  std::free(memory);
}

}  // namespace

// Not inlined: the compiler would see free() meet memory of operator new.
[[gnu::noinline]] void* operator new(std::size_t bytes) { return allocate(16, bytes); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(static_cast<std::size_t>(alignment), bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}

// The hooks, under the names that compilers call them by.
extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_atomic_signal_fence(int) {}
void __tsan_vptr_update(void** pointer, void*) { touch(pointer, sizeof(void*)); }
void __tsan_vptr_read(void** pointer) { touch(pointer, sizeof(void*)); }
void __tsan_read_range(void* pointer, std::size_t bytes) { touch(pointer, bytes); }
void __tsan_write_range(void* pointer, std::size_t bytes) { touch(pointer, bytes); }
#define BENCH_HOOK(name, bytes) \
  void __tsan_##name##bytes(void* pointer) { touch(pointer, bytes); }
#define BENCH_HOOKS(bytes)           \
  BENCH_HOOK(read, bytes)            \
  BENCH_HOOK(write, bytes)           \
  BENCH_HOOK(unaligned_read, bytes)  \
  BENCH_HOOK(unaligned_write, bytes) \
  BENCH_HOOK(read_write, bytes)      \
  BENCH_HOOK(unaligned_read_write, bytes)
BENCH_HOOKS(1)
BENCH_HOOKS(2)
BENCH_HOOKS(4)
BENCH_HOOKS(8)
BENCH_HOOKS(16)
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  touch(from, bytes);
  touch(to, bytes);
  return __builtin_memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  touch(from, bytes);
  touch(to, bytes);
  return __builtin_memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
  touch(to, bytes);
  return __builtin_memset(to, value, bytes);
}
}

namespace bench {

void find_stack() {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  // The main thread's stack grows down from here; main's callers lie a little above.
  stack_low = here - (std::uintptr_t{8} << 20);
  stack_high = here + (std::uintptr_t{1} << 16);
}

void remember_new() {
  block_count = 0;
  remembering = true;
}

void forget_new() { remembering = false; }

std::size_t bytes_of_new() {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < block_count; ++i) bytes += blocks[i].end - blocks[i].begin;
  return bytes;
}

void watch_lines() {
  touched_count = 0;
  watching = true;
}

LineCount lines_watched() {
  watching = false;
  LineCount lines;
  std::sort(touched, touched + touched_count);
  const auto* const end = std::unique(touched, touched + touched_count);
  for (const auto* line = touched; line != end; ++line) {
    // A line belongs to the block that any byte of it lies in.
    const bool mine = is_matcher(*line * kLine) || is_matcher(*line * kLine + kLine - 1);
    ++(mine ? lines.matcher : lines.queue);
  }
  return lines;
}

}  // namespace bench
