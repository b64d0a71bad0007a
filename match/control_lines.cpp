// SPDX-License-Identifier: BSD-3-Clause
#include "match/control_lines.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <numeric>
#include <random>

namespace tagline {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kBytes = ControlLines::kLines * ControlLines::kStride;
constexpr std::size_t kMappedBytes = kBytes + kHugePage;  // a huge page begins at its own size

}  // namespace

ControlLines::ControlLines() noexcept {
  mapping_ =
      mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) return;
  const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
  begin_ = static_cast<std::byte*>(mapping_) + (kHugePage - address % kHugePage);
  madvise(begin_, kBytes, MADV_HUGEPAGE);
  std::array<std::uint16_t, kLines> order;
  std::iota(order.begin(), order.end(), std::uint16_t{0});
  std::shuffle(order.begin(), order.end(), std::minstd_rand(1));  // as no prefetcher expects
  const Line* next = nullptr;
  Line* last = nullptr;
  for (const std::size_t i : order) {
    Line* const line = new (begin_ + i * kStride) Line{next};
    if (last == nullptr) last = line;
    next = line;
  }
  last->next = next;
  line_ = next;
}

ControlLines::~ControlLines() {
  if (mapping_ != MAP_FAILED) munmap(mapping_, kMappedBytes);
}

std::size_t ControlLines::read(std::size_t lines) noexcept {
  if (line_ == nullptr) return 0;
  const auto start = std::chrono::steady_clock::now();
  const Line* line = line_;
  for (; lines > 0; --lines) line = line->next;
  line_ = line;
  const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - start;
  return static_cast<std::size_t>(time.count());
}

}  // namespace tagline
