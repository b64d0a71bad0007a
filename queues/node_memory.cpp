// SPDX-License-Identifier: BSD-3-Clause
#include "queues/node_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>

namespace tagline {

namespace {

// Relaxed: a count, it orders nothing.
std::atomic<std::size_t> total_bytes{0};

constexpr std::size_t kLeastDeferred = 4096;

std::uintptr_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

// Relaxed: a count, it orders nothing.
bool MemoryLimit::take(std::size_t bytes) noexcept {
  if (used_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limit_bytes_) return true;
  give_back(bytes);
  return false;
}

void MemoryLimit::give_back(std::size_t bytes) noexcept {
  used_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

std::size_t MemoryLimit::available_bytes() const noexcept {
  const std::size_t used = used_bytes_.load(std::memory_order_relaxed);
  return used < limit_bytes_ ? limit_bytes_ - used : 0;
}

std::size_t NodeMemory::available_bytes() const noexcept {
  const std::size_t own = limit_bytes_ - used_bytes_;
  return shared_ == nullptr ? own : std::min(own, shared_->available_bytes());
}

void* NodeMemory::take(std::size_t bytes, std::size_t counted, bool zeroed) noexcept {
  if (!count(counted)) return nullptr;
  void* block = memory_backend::allocate(bytes, zeroed);
  if (block == nullptr) uncount(counted);
  return block;
}

bool NodeMemory::count(std::size_t bytes) noexcept {
  while (bytes > available_bytes()) {
    if (!return_some()) return false;
  }
  if (shared_ != nullptr && !shared_->take(bytes)) return false;
  used_bytes_ += bytes;
  total_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

void NodeMemory::uncount(std::size_t bytes) noexcept {
  used_bytes_ -= bytes;
  if (shared_ != nullptr) shared_->give_back(bytes);
  total_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

void NodeMemory::release(void* block, std::size_t bytes, std::size_t counted) noexcept {
  if (block == nullptr) return;
  note_out_of_use(block);
  if (deferring_ && bytes >= kLeastDeferred) {
    deferred_ = ::new (block) Deferred{deferred_, bytes, counted, bytes};
    deferred_bytes_ += counted;
  } else {
    give_back(block, bytes, counted);
  }
}

bool NodeMemory::return_some() noexcept {
  std::size_t returned = 0;
  while (deferred_ != nullptr && returned < kReturnedAtOnce) {
    Deferred& first = *deferred_;
    if (first.with_pages > kReturnedAtOnce) {
      first.with_pages -= kReturnedAtOnce;
      discard(reinterpret_cast<std::byte*>(&first) + first.with_pages, kReturnedAtOnce);
      return true;
    }
    returned += first.with_pages;
    deferred_ = first.next;
    deferred_bytes_ -= first.counted;
    give_back(&first, first.bytes, first.counted);
  }
  return returned > 0;
}

void NodeMemory::give_back(void* block, std::size_t bytes, std::size_t counted) noexcept {
  memory_backend::release(block, bytes);
  uncount(counted);
}

void NodeMemory::discard(void* part, std::size_t bytes) noexcept {
  const std::uintptr_t page = page_bytes();
  const auto begin = (reinterpret_cast<std::uintptr_t>(part) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(part) + bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void NodeMemory::supply(void* part, std::size_t bytes) noexcept {
#ifdef MADV_POPULATE_WRITE  // since Linux 5.14
  const std::uintptr_t page = page_bytes();
  if (bytes <= page) return;  // not worth the call
  const auto begin = reinterpret_cast<std::uintptr_t>(part) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(part) + bytes + page - 1) / page * page;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
#else
  static_cast<void>(part), static_cast<void>(bytes);
#endif
}

std::size_t NodeMemory::total_used_bytes() noexcept {
  return total_bytes.load(std::memory_order_relaxed);
}

}  // namespace tagline
