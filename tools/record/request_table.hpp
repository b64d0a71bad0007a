// SPDX-License-Identifier: BSD-3-Clause
//
// Which receive an MPI request is: a hash table by handle, linear probing, no holes left by
// what is removed. Grows with the requests that the program has open, up to kMost; what does
// not find room is not known later, and its completion is not recorded.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdlib>

namespace tagline::record {

class RequestTable {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 22;

  RequestTable() = default;
  RequestTable(const RequestTable&) = delete;
  RequestTable& operator=(const RequestTable&) = delete;
  ~RequestTable() { std::free(slots_); }

  bool empty() const noexcept { return used_ == 0; }

  // A key that is there already gets the new value.
  void set(std::uint64_t key, std::uint64_t value) noexcept {
    if (used_ * 2 >= size_ && !grow()) return;
    Slot* slot = find_slot(key);
    if (slot->key == 0) ++used_;
    *slot = {key, value};
  }

  // kNone if it is not there.
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t get(std::uint64_t key) const noexcept {
    if (used_ == 0) return kNone;
    const Slot* slot = find_slot(key);
    return slot->key == 0 ? kNone : slot->value;
  }

  void remove(std::uint64_t key) noexcept {
    if (used_ == 0) return;
    Slot* slot = find_slot(key);
    if (slot->key == 0) return;
    --used_;
    // What was displaced by the one that leaves moves up.
    std::size_t hole = static_cast<std::size_t>(slot - slots_);
    for (std::size_t i = (hole + 1) & (size_ - 1); slots_[i].key != 0; i = (i + 1) & (size_ - 1)) {
      const std::size_t home = home_of(slots_[i].key);
      if (((i - home) & (size_ - 1)) < ((i - hole) & (size_ - 1))) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = {};
  }

 private:
  struct Slot {
    std::uint64_t key;  // 0: free; handles are never 0 here
    std::uint64_t value;
  };

  std::size_t home_of(std::uint64_t key) const noexcept {
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> shift_);
  }

  Slot* find_slot(std::uint64_t key) const noexcept {
    std::size_t i = home_of(key);
    while (slots_[i].key != 0 && slots_[i].key != key) i = (i + 1) & (size_ - 1);
    return &slots_[i];
  }

  bool grow() noexcept {
    const std::size_t size = size_ == 0 ? 256 : size_ * 2;
    if (size > kMost) return used_ < size_ - 1;
    auto* slots = static_cast<Slot*>(std::calloc(size, sizeof(Slot)));
    if (slots == nullptr) return size_ != 0 && used_ < size_ - 1;
    Slot* const old = slots_;
    const std::size_t old_size = size_;
    slots_ = slots;
    size_ = size;
    shift_ = 64 - std::countr_zero(size);
    for (std::size_t i = 0; i < old_size; ++i) {
      if (old[i].key != 0) *find_slot(old[i].key) = old[i];
    }
    std::free(old);
    return true;
  }

  Slot* slots_ = nullptr;
  std::size_t size_ = 0;  // a power of two
  std::size_t used_ = 0;
  int shift_ = 0;
};

}  // namespace tagline::record
