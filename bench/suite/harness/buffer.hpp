// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that messages are sent from and received into. It begins with a page, as in other
// benchmarks: how fast large messages are copied depends on that.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace suite {

template <class T>
struct PageAllocator {
  using value_type = T;
  static constexpr std::align_val_t kPage{4096};

  PageAllocator() = default;
  template <class U>
  explicit PageAllocator(const PageAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kPage)); }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, kPage); }
  bool operator==(const PageAllocator&) const = default;
};

using Buffer = std::vector<char, PageAllocator<char>>;

}  // namespace suite
