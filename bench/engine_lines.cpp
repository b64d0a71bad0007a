// SPDX-License-Identifier: BSD-3-Clause
//
// Counts the cache lines that a match touches. The library is compiled a second
// time for this program, with the compiler's hooks for every memory access
// (-fsanitize=thread, of which only the hooks are used: they are defined here and
// the sanitizer is not linked). Vector accesses have hooks too, so every
// instruction set can be counted.
//
//   matcher   what the library allocates by `new`: the matcher and its contexts,
//             with the entries that these hold themselves
//   queue     every other line that is neither stack nor static data: nodes,
//             tables, and requests where a comparator keeps its entries in them
//
// Prints one JSON object per structure and point, means over the matches of a pass.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <new>
#include <regex>
#include <string>
#include <vector>

#include "engine_workload.hpp"

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

std::size_t bytes_of_new() {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < block_count; ++i) bytes += blocks[i].end - blocks[i].begin;
  return bytes;
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

namespace {

// Looks at matches only; appends are part of the story but not of the figure.
// All kinds of matches of a pass have their share: those that build an index too.
class LineWatch {
 public:
  explicit LineWatch(std::size_t matches) : every_((matches + kMatches - 1) / kMatches) {}
  template <class Call>
  void append(Call call) {
    call();
  }
  template <class Call>
  void match(Call call) {
    if (calls_++ % every_ != 0) {
      call();
      return;
    }
    touched_count = 0;
    watching = true;
    call();
    watching = false;
    std::sort(touched, touched + touched_count);
    std::size_t of_matcher = 0;
    std::size_t of_queue = 0;
    const auto* const end = std::unique(touched, touched + touched_count);
    for (const auto* line = touched; line != end; ++line) {
      // A line belongs to the block that any byte of it lies in.
      const bool mine = is_matcher(*line * kLine) || is_matcher(*line * kLine + kLine - 1);
      ++(mine ? of_matcher : of_queue);
    }
    queue_ += of_queue;
    matcher_ += of_matcher;
    ++matches_;
  }
  double queue_lines() const { return mean(queue_); }
  double matcher_lines() const { return mean(matcher_); }

 private:
  static constexpr std::size_t kMatches = 1000;
  double mean(std::size_t sum) const {
    return matches_ == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(matches_);
  }
  const std::size_t every_;
  std::size_t calls_ = 0;
  std::size_t queue_ = 0;
  std::size_t matcher_ = 0;
  std::size_t matches_ = 0;
};

void find_stack() {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  // The main thread's stack grows down from here; main's callers lie a little above.
  stack_low = here - (std::uintptr_t{8} << 20);
  stack_high = here + (std::uintptr_t{1} << 16);
}

// What a matcher takes before it holds an entry: as it is made, and after one
// receive has been matched (its context stays).
void print_memory(const bench::EngineStructure& structure) {
  const bench::EnginePoint point;
  const auto script = std::make_shared<const bench::Script>(point);
  block_count = 0;
  remembering = true;
  bench::Workload workload(structure, script);
  const std::size_t made = bytes_of_new() + workload.pool_bytes();
  workload.pass();
  remembering = false;
  const std::size_t used = bytes_of_new() + workload.pool_bytes();
  std::printf(
      "{\"memory\":true,%s,\"bytes_per_new_matcher\":%zu,\"bytes_per_empty_matcher\":%zu}\n",
      json_fields(structure, point).c_str(), made, used);
}

}  // namespace

int main(int argc, char** argv) {
  find_stack();
  std::string subset = "standard";
  std::string filter;
  std::size_t deepest = 65536;
  CLI::App app{"Cache lines of queue memory that a match touches"};
  app.add_option("--subset", subset, "as in the program engine");
  app.add_option("--filter", filter, "regular expression on the names of benchmarks");
  app.add_option("--deepest", deepest, "deepest queue to count in")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  unsetenv("TAGLINE_QUEUE");
  unsetenv("TAGLINE_ISA");

  const std::regex wanted(filter);
  const auto structures = bench::known_structures();
  for (const bench::EngineStructure& structure : structures) print_memory(structure);
  for (const bench::EngineTask& task : bench::tasks_of(subset)) {
    const bench::EnginePoint& point = task.point;
    // What is touched does not depend on whether it is in the cache.
    if (point.cold || point.depth > deepest) continue;
    if (point.operation != bench::Operation::post_and_match) continue;
    const bool drains = point.order != bench::Order::last;
    const auto script = std::make_shared<const bench::Script>(point);
    for (const bench::EngineStructure& structure : structures) {
      if (!can_do(structure, point)) continue;
      if (!std::regex_search(benchmark_name(structure, point), wanted)) continue;
      // Draining a deep list takes as long as in engine.cpp, times ten.
      const bool is_index = structure.structure == "adaptive" || structure.structure == "indexed" ||
                            structure.structure == "exact_hash";
      if (point.depth > (drains ? 1024 : 4096) && !is_index) continue;

      block_count = 0;
      remembering = true;
      bench::Workload workload(structure, script);
      LineWatch watch(workload.pairs());
      workload.fill();
      workload.pass();  // contexts come with the first call
      remembering = false;
      workload.pass(watch);
      std::printf("{%s,\"lines_per_match\":%.4g,\"matcher_lines_per_match\":%.4g}\n",
                  json_fields(structure, point).c_str(), watch.queue_lines(),
                  watch.matcher_lines());
    }
  }
  return 0;
}
