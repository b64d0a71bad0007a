// SPDX-License-Identifier: BSD-3-Clause
#include "exact_hash.hpp"

#include <bit>
#include <utility>
#include <vector>

#include "queues/key_table.hpp"

namespace bench {
namespace {

// What a slot holds, where searches for a key begin, and how full a table may be.
struct Least {
  struct Slot {
    std::uint64_t key;
    void* cookie;
  };
  void fill(Slot& slot, std::uint64_t key, void* cookie) noexcept { slot = {key, cookie}; }
  // By a key on its way to a free slot: not noted, so whoever leaves a hole looks at the next slot.
  static void pass(Slot&, bool = true) noexcept {}
  static bool is_passed(const Slot&) noexcept { return true; }
  // Two rounds, so that no regular pattern of sources and tags clusters.
  static std::size_t home(std::uint64_t key, unsigned shift) noexcept {
    const std::uint64_t once = key * 0x9e3779b97f4a7c15u;
    return (once ^ once >> 32) * 0xd1342543de82ef95u >> shift;
  }
  static unsigned shift_of(std::size_t capacity) noexcept {
    return 64 - std::countr_zero(capacity);
  }
  // last: of the slots, counted from 0.
  static bool is_full(std::size_t keys, std::size_t last) noexcept { return 2 * keys > last; }
};

// The same as in KeyTable, so that only what an engine does besides is left out.
struct AsIndexed {
  struct alignas(32) Slot {  // two to a cache line
    std::uint64_t key;
    void* cookie;
    std::uint64_t sequence;
    std::uint64_t further;  // entries of the key, none here, and a mark
  };
  static_assert(sizeof(Slot) == sizeof(tagline::KeyTable::Slot));
  void fill(Slot& slot, std::uint64_t key, void* cookie) noexcept {
    slot.key = key;
    slot.cookie = cookie;
    slot.sequence = ++sequence;
  }
  static void pass(Slot& slot, bool passed = true) noexcept { slot.further = passed; }
  static bool is_passed(const Slot& slot) noexcept { return slot.further != 0; }
  static std::size_t home(std::uint64_t key, unsigned shift) noexcept {
    return tagline::KeyTable::home(key, shift);
  }
  static unsigned shift_of(std::size_t capacity) noexcept {
    return tagline::KeyTable::shift_of(capacity);
  }
  static bool is_full(std::size_t keys, std::size_t last) noexcept { return 16 * keys > 9 * last; }
  std::uint64_t sequence = 0;  // of the slot filled last
};

// Open addressing with linear probing; a hole is closed by moving later slots back, so that
// searches stay short.
template <class Layout>
class Table {
 public:
  bool empty() const noexcept { return size_ == 0; }

  void** find(std::uint64_t key) noexcept {
    for (std::size_t i = home(key); slots_[i].cookie != nullptr; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return &slots_[i].cookie;
    }
    return nullptr;
  }

  void insert(std::uint64_t key, void* cookie) noexcept {
    if (Layout::is_full(++size_, mask_)) [[unlikely]] {
      grow();
    }
    place(key, cookie);
  }

  void* take(void** where) noexcept {
    void* const cookie = *where;
    auto hole = static_cast<std::size_t>(
        reinterpret_cast<Slot*>(reinterpret_cast<char*>(where) - offsetof(Slot, cookie)) -
        slots_.data());
    --size_;
    if (Layout::is_passed(slots_[hole])) {
      for (std::size_t i = (hole + 1) & mask_; slots_[i].cookie != nullptr; i = (i + 1) & mask_) {
        // A slot may move back only as far as the place it hashes to.
        if (((i - home(slots_[i].key)) & mask_) < ((i - hole) & mask_)) continue;
        slots_[hole] = slots_[i];
        Layout::pass(slots_[hole]);
        hole = i;
      }
      Layout::pass(slots_[hole], false);
    }
    slots_[hole].cookie = nullptr;
    return cookie;
  }

  std::size_t bytes() const noexcept { return (mask_ + 1) * sizeof(Slot); }

 private:
  using Slot = typename Layout::Slot;

  std::size_t home(std::uint64_t key) const noexcept { return Layout::home(key, shift_); }

  void place(std::uint64_t key, void* cookie) noexcept {
    std::size_t i = home(key);
    for (; slots_[i].cookie != nullptr; i = (i + 1) & mask_) Layout::pass(slots_[i]);
    layout_.fill(slots_[i], key, cookie);
  }

  [[gnu::noinline, gnu::cold]] void grow() noexcept {
    const std::vector<Slot> old = std::move(slots_);
    slots_ = std::vector<Slot>(2 * old.size());
    mask_ = slots_.size() - 1;
    shift_ = Layout::shift_of(slots_.size());
    for (const Slot& slot : old) {
      if (slot.cookie != nullptr) place(slot.key, slot.cookie);
    }
  }

  static constexpr std::size_t kLeastCapacity = 64;
  std::vector<Slot> slots_ = std::vector<Slot>(kLeastCapacity);
  std::size_t mask_ = kLeastCapacity - 1;
  unsigned shift_ = Layout::shift_of(kLeastCapacity);
  std::size_t size_ = 0;
  [[no_unique_address]] Layout layout_;
};

template <class Layout>
class ExactHash final : public Comparator {
 public:
  ExactHash() : Comparator("exact_hash") {}

  tagline_status post_receive(Envelope envelope, void* receive, void** message,
                              tagline_handle*) noexcept override {
    return match_or_queue(unexpected_, posted_, envelope, receive, message);
  }

  tagline_status arrive(Envelope envelope, void* message, void** receive) noexcept override {
    return match_or_queue(posted_, unexpected_, envelope, message, receive);
  }

  tagline_status probe(Envelope envelope, void** message, Envelope* found) noexcept override {
    void** const where = unexpected_.find(key_of(envelope));
    if (where == nullptr) return TAGLINE_NOT_FOUND;
    *message = *where;
    if (found != nullptr) *found = envelope;
    return TAGLINE_MATCHED;
  }

  tagline_statistics statistics() const noexcept override {
    tagline_statistics result{};
    result.pool_bytes = posted_.bytes() + unexpected_.bytes();
    return result;
  }

 private:
  static std::uint64_t key_of(const Envelope& envelope) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(envelope.tag)} << 32 |
           static_cast<std::uint32_t>(envelope.source);
  }

  static tagline_status match_or_queue(Table<Layout>& other, Table<Layout>& mine,
                                       const Envelope& envelope, void* cookie,
                                       void** partner) noexcept {
    const std::uint64_t key = key_of(envelope);
    if (!other.empty()) {
      if (void** where = other.find(key)) {
        *partner = other.take(where);
        return TAGLINE_MATCHED;
      }
    }
    mine.insert(key, cookie);
    return TAGLINE_QUEUED;
  }

  Table<Layout> posted_;
  Table<Layout> unexpected_;
};

}  // namespace

tagline_matcher* make_exact_hash() { return new ExactHash<Least>; }
tagline_matcher* make_exact_hash_of_32_bytes() { return new ExactHash<AsIndexed>; }

}  // namespace bench
