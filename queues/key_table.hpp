// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "queues/fifo.hpp"
#include "queues/match_key.hpp"
#include "queues/node_memory.hpp"
#include "queues/node_pool.hpp"

namespace tagline {

// From a 64-bit key to the items that have it, oldest first.
//
//   slot   [ key | oldest item | further items ]     32 bytes, half a cache line
//
// A slot embeds the oldest item, so a key that is used once costs one line to
// find and to take out. The table is open addressing with linear probing; a slot
// that empties is closed by moving later ones back, so there are no tombstones. A key that
// passes a slot on its way to a free one marks it: behind a slot without a mark there is nothing
// that a search or a gap need ask for, and whether the next slot is used, which nobody can
// foresee, does not matter. A mark may outlive its reason; it goes when the slot empties.
//
// Growing and shrinking move a few slots per operation from the old table to the
// new one; a key is in exactly one of them. Slots leave the old table in the order of
// their position, beginning behind an empty slot, so what is left of a cluster is always
// its end: a search in the old table starts where the moving has got to. A key whose
// home has not been moved is still put into the old table, and looked for only there: so
// the new one, whose pages the system clears when they are first touched, is written
// nearly in the order of its pages, and no operation waits for more than a few of them.
//
// Neither pushes nor pops are counted: the sequence numbers of items tell how many have come. A
// table shrinks, where its owner asks, when it was never an eighth as full as it may be while so
// many came that every queue was filled and drained, twice: one that fills and drains again and
// again keeps its size. It grows, up to 2 MiB, when many pops left a gap to be closed, which
// nobody can foresee: keys that count up are spread evenly and leave none, others leave fewer the
// more slots there are. The push that follows sees to that.
//
// Guarantees: find is O(1) expected and does not write; push and pop are O(1)
// expected, growth included (kMovesPerSearch slots are moved at most, and what is left when the
// new table is full already).
// Slot pointers are valid until the next push, pop or go_on_moving().
class alignas(kCacheLine) KeyTable {
 public:
  struct Slot {
    std::uint64_t key;
    IndexItem oldest;
    Fifo more;
  };
  static_assert(sizeof(Slot) == 32, "two slots share a line");

  // pool: of nodes of Fifo::kNodeBytes. The table's own memory is the pool's, too.
  explicit KeyTable(NodePool& pool) noexcept : pool_(&pool) {}
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;
  ~KeyTable() { clear(); }

  // The slot where a search for the key begins, in a table of shift_of() so many slots. It is in
  // one line for two tags that differ in their lowest bit alone, so tags that count up take half as
  // many lines: where no cache holds all of them, each counts.
  static constexpr std::size_t home(std::uint64_t key, unsigned shift) noexcept {
    const std::uint64_t hash = spread(key);
    return 2 * (line_bits(hash) >> shift) + (hash >> 63);
  }
  // capacity: a power of two.
  static constexpr unsigned shift_of(std::size_t capacity) noexcept {
    return 65 - static_cast<unsigned>(std::countr_zero(capacity));
  }

  // Where each key has its slot, kept apart from the table: whoever has only that asks for the
  // slot's line while where the table is has yet to come from memory. The table may have moved
  // meanwhile; then a line comes that nobody wants.
  class SlotHint {
   public:
    SlotHint() = default;  // of no table
    explicit operator bool() const noexcept { return slots_ != nullptr; }
    std::uint64_t bytes() const noexcept { return bytes_; }  // of all slots
    bool is_large() const noexcept { return bytes_ >= kLargeCapacity * sizeof(Slot); }
    // An address within the slot's line. Multiplied, as a number of bits to shift by has one
    // register, and whoever calls has an argument in that.
    const void* place_of(std::uint64_t key) const noexcept {
      return slots_ + ((line_bits(spread(key)) >> 32) * bytes_ >> 32);
    }
    // Inlined, as GCC 12 leaves out calls of functions that only ask for lines.
    [[gnu::always_inline]] void prefetch(std::uint64_t key) const noexcept {
      __builtin_prefetch(place_of(key), 1);
    }

   private:
    friend class KeyTable;
    SlotHint(const Slot* slots, std::uint64_t bytes) noexcept
        : slots_(reinterpret_cast<const char*>(slots)), bytes_(bytes) {}
    const char* slots_ = nullptr;
    std::uint64_t bytes_ = 0;  // of all, 2^32 at most
  };
  // Of a large table; of a smaller one, which it takes more than it wins to ask for unless others
  // have the caches in between, only if `small` says so.
  SlotHint slot_hint(bool small) const noexcept {
    const std::uint64_t bytes = now_.capacity() * sizeof(Slot);
    return (small || is_large()) && bytes <= kMostHinted ? SlotHint(now_.slots, bytes) : SlotHint();
  }

  // Keys, not items.
  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return now_.capacity() + old_.capacity(); }  // slots
  bool empty() const noexcept { return size_ == 0; }
  // The largest size() of late, since let_shrink() has found twice that a cycle had come: rounded
  // up to 16, 24, 32, 48, 64 and so on.
  std::size_t peak() const noexcept { return size_at(std::max(peak_step_, peak_step_before_)); }
  bool is_moving() const noexcept { return old_.slots != nullptr; }
  // Whether look_now() tells all that its owner asks for: the table does not move, and no bit of
  // its owner's says that there is more to look at. Those are all bits of further() but the first,
  // which is the table's: in one byte, as every look asks.
  bool tells() const noexcept { return further_ == 0; }
  unsigned further() const noexcept { return further_; }
  void look_further(unsigned bits) noexcept { further_ |= static_cast<std::uint8_t>(bits); }
  void look_no_further(unsigned bits) noexcept { further_ &= static_cast<std::uint8_t>(~bits); }

  Slot* find(std::uint64_t key) const noexcept { return empty() ? nullptr : look(key); }
  // The same; wants !empty().
  Slot* look(std::uint64_t key) const noexcept {
    if (old_.slots != nullptr) [[unlikely]]
      return look_while_moving(key);
    return look_now(key);
  }
  // The same; wants !is_moving(), too. It calls nothing. keeps: where the slots are is kept in a
  // register, for the few keys that are not in the first one; without, receives that look for one
  // key have one to spare, and messages that look for several take 1.1 times as long.
  template <bool keeps = true>
  Slot* look_now(std::uint64_t key) const noexcept {
    for (Slot* slot = now_.home(key);; slot = now_.after(slot)) {
      if (slot->key == key) return slot->oldest.sequence != 0 ? slot : nullptr;
      // Not [[likely]], which GCC 12 forgets as it inlines this: then registers are the loop's.
      if (__builtin_expect(!slot->more.is_marked(), 1)) return nullptr;
      if constexpr (!keeps) keep_no_loads();
    }
  }

  // For searches: a table that nothing more comes to or leaves would be between two sizes for good,
  // and every look go the long way. Before the look, as a slot may move.
  void go_on_moving() noexcept {
    if (is_moving()) [[unlikely]]
      move_some(kMovesPerSearch);
  }

  // The key will be looked for soon.
  void prefetch(std::uint64_t key) const noexcept {
    const Table& table = is_moving() ? old_ : now_;
    if (table.slots != nullptr) __builtin_prefetch(table.home(key));
  }

  // To be called now and then, with the sequence number of the newest entry that came. cycle: as so
  // many came, all that its matcher has room for was filled and drained at least once.
  void let_shrink(std::uint64_t newest, std::size_t cycle) noexcept {
    if (newest - peak_since_ >= cycle && now_.slots != nullptr) [[unlikely]]
      renew_peak(newest);
  }

  // Makes push() possible, and has_room() true of so many keys but while the table moves; false if
  // there is no memory for it.
  bool reserve(std::size_t keys = 1) noexcept {
    if (has_room(keys) && pool_->has_node()) [[likely]]
      return true;
    return make_room(keys);
  }

  // Sees to room for that many keys, or kMostExpected, if there are none yet: then nothing has
  // to move when they come. Without memory the table grows as they do.
  void expect(std::size_t keys) noexcept;

  // The item becomes the newest of its key; wants reserve().
  void push(std::uint64_t key, const IndexItem& item) noexcept {
    if (old_.slots != nullptr) [[unlikely]]
      return push_while_moving(key, item);
    put(place_of(key), key, item);
  }

  // Room for that many keys, and there is nothing else to see to.
  bool has_room(std::size_t keys) const noexcept { return size_ + (keys - 1) < room_; }

  // push() without reserve(), where has_room() and it takes no memory; false: nothing has
  // changed. repeated(): called where the item comes behind others of its key, here and below.
  template <class Repeated>
  bool push_at_once(std::uint64_t key, const IndexItem& item, Repeated repeated) noexcept {
    if (!has_room(1)) [[unlikely]]
      return false;
    Slot* const slot = place_of(key);
    if (slot->oldest.sequence == 0) [[likely]] {
      fill(slot, key, item);
      return true;
    }
    if (!push_further(slot, item)) return false;
    repeated();
    return true;
  }
  // The same where items older than `first` count for nothing: what takes their place is alone.
  bool push_or_renew(std::uint64_t key, const IndexItem& item, std::uint64_t first) noexcept {
    Slot* const slot = place_of(key);
    if (slot->oldest.sequence == 0) {
      fill(slot, key, item);
      return true;
    }
    if (!is_older(slot->oldest.sequence, first)) return push_further(slot, item);
    renew(slot, item);
    return true;
  }
  // The item becomes the newest of a slot that has others; wants reserve().
  void push_behind(Slot* slot, const IndexItem& item) noexcept { slot->more.push(*pool_, item); }
  // The item takes the place of all that a slot has.
  void renew(Slot* slot, const IndexItem& item) noexcept {
    slot->more.clear(*pool_);
    slot->oldest = item;
  }

  // push() without a call: into an empty slot, or behind other items of the key where their newest
  // node has room. False: nothing has changed. Wants has_room().
  template <class Repeated>
  bool push_at_hand(std::uint64_t key, const IndexItem& item, Repeated repeated) noexcept {
    Slot* const slot = place_of(key);
    if (slot->oldest.sequence != 0) [[unlikely]] {
      if (!slot->more.push_at_hand(item)) return false;
      repeated();
      return true;
    }
    keep_no_loads();  // not in fill(): lists of 16384 messages took 1.3 times as long
    fill(slot, key, item);
    return true;
  }
  // Few more keys may come before it has to grow.
  bool is_nearly_full() const noexcept { return size_ > limit_ / 4 * 3; }
  // A key's place will be looked for soon. Where the table is small it is in a cache.
  [[gnu::always_inline]] void prefetch_place(std::uint64_t key) const noexcept {
    if (is_large()) __builtin_prefetch(now_.home(key), 1);
  }
  // As large as a second-level cache.
  bool is_large() const noexcept { return limit_ >= limit_of(kLargeCapacity); }
  // A slot is probably in no cache near the core.
  bool outgrows_caches() const noexcept { return limit_ >= limit_of(kVastCapacity); }

  // Takes the oldest item of a slot out; returns it. Most slots hold one, and nothing
  // behind them has to move.
  IndexItem pop(Slot* slot) noexcept {
    const IndexItem item = slot->oldest;
    if (!is_alone(slot)) [[unlikely]] {
      pop_further(slot);
      return item;
    }
    vacate(slot);
    return item;
  }

  // pop() without a call. False: nothing has changed. pop_now() wants pops_now() and !is_moving().
  bool pop_at_hand(Slot* slot) noexcept {
    if (is_moving() || !pops_now(slot)) [[unlikely]]
      return false;
    pop_now(slot);
    return true;
  }
  void pop_now(Slot* slot) noexcept { vacate(slot); }
  static bool pops_now(const Slot* slot) noexcept { return slot->more.is_bare(); }

  // Takes the item with this sequence number out of a slot.
  void erase(Slot* slot, std::uint64_t sequence) noexcept {
    if (slot->oldest.sequence == sequence) {
      pop(slot);
    } else {
      slot->more.erase_if(*pool_, [&](const IndexItem& item) { return item.sequence == sequence; });
    }
  }

  // Items of one slot, oldest first, until visit returns false.
  template <class Visit>
  static void for_each_item(const Slot& slot, Visit visit) {
    if (visit(slot.oldest)) slot.more.for_each(visit);
  }

  // Every item, in no order of keys; items of one key oldest first.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Table* table : {&now_, &old_}) {
      const std::size_t capacity = table->capacity();
      for (std::size_t i = 0; i < capacity; ++i) {
        const Slot& slot = table->slots[i];
        if (slot.oldest.sequence == 0 || is_gone(slot)) continue;
        for_each_item(slot, [&](const IndexItem& item) {
          visit(slot.key, item);
          return true;
        });
      }
    }
  }

  // Takes out everything, in time of the table's capacity. forget() keeps the memory.
  void forget() noexcept;
  void clear() noexcept;

  // As clear(), when the pool is about to give up all its nodes at once.
  void abandon() noexcept {
    release(now_);
    end_moving();
    size_ = limit_ = room_ = 0;
  }

 private:
  struct Table {
    Slot* slots = nullptr;
    Slot* last = nullptr;  // of the slots, a power of two
    unsigned shift = 0;    // see home()
    unsigned gaps = 0;     // closed in it, see note_gap()

    std::size_t capacity() const noexcept { return slots == nullptr ? 0 : mask() + 1; }
    std::size_t mask() const noexcept { return static_cast<std::size_t>(last - slots); }
    Slot* after(Slot* slot) const noexcept { return slot == last ? slots : slot + 1; }

    Slot* home(std::uint64_t key) const noexcept { return slots + KeyTable::home(key, shift); }
  };

  static constexpr std::uint64_t kMostHinted = std::uint64_t{1} << 32;  // bytes
  static constexpr std::size_t kLeastCapacity = 64;
  static constexpr std::size_t kSparseCapacity = 4096;  // 128 KiB, a part of a second-level cache
  static constexpr std::size_t kLargeCapacity = 32768;  // 1 MiB
  static constexpr std::size_t kVastCapacity = 524288;  // 16 MiB
  static constexpr std::size_t kManyGaps = 12;          // one while so many items come
  static constexpr std::size_t kMostForGaps = 65536;    // slots: 2 MiB
  static constexpr std::size_t kDiscardedSlots = 8192;  // at a time: 256 KiB
  static constexpr std::size_t kSuppliedSlots = 1024;   // at a time: 32 KiB
  static constexpr std::size_t kMostExpected = 2048;    // keys
  static constexpr std::uint8_t kLeastPeak = 16;
  static constexpr unsigned kMoves = 1;  // a bit of further_
  static constexpr unsigned kMovesPerCall = 8;
  static constexpr unsigned kMovesPerSearch = 64;  // some hundred nanoseconds, and soon done

  // The first bit tells the slot of a line, the upper ones of the others the line. A product's
  // first bit is all that the first bit of what is multiplied changes: here the lowest one of the
  // tag. The rest of the tag is the lower half of that, so all of the constant spreads tags, and
  // its lower half sources. It was chosen among many under which 8, 16, 32 ... a million of what
  // counts up hardly ever share a slot, for short probes in grids of both and in strides.
  static constexpr std::uint64_t spread(std::uint64_t key) noexcept {
    return std::rotl(key, 31) * 0xbde75c5f6f69d503u;
  }
  static constexpr std::uint64_t line_bits(std::uint64_t hash) noexcept { return hash << 1; }

  // A slot of the old table whose key was used up or moved: it keeps its place,
  // because searches run along it.
  static bool is_gone(const Slot& slot) noexcept { return slot.key == kGone; }
  // Neither a source of 2^32 - 1 nor its combination with this tag is a rank.
  static constexpr std::uint64_t kGone = ~std::uint64_t{0};

  // How many keys a table of this capacity takes before it grows. Probes are short where half of
  // the slots are used, and a table's first use costs what its memory does: a page fault for 128
  // slots. A small one stays in a cache all the same, so in that a quarter is used: fewer
  // keys find their slot taken by another, which nobody can foresee.
  // In both a bit more: programs like to wait for a power of two of messages and a few others, and
  // would move all of them for these.
  static constexpr std::size_t limit_of(std::size_t capacity) noexcept {
    const std::size_t limit = capacity <= kSparseCapacity ? capacity / 4 : capacity / 2;
    return limit + limit / 8;
  }
  static std::size_t capacity_for(std::size_t keys) noexcept {
    const std::size_t capacity = std::bit_ceil(std::max(2 * keys, kLeastCapacity));
    return keys <= limit_of(capacity) ? capacity : 2 * capacity;
  }

  // Where the table of now has the key, or would have it.
  Slot* place_of(std::uint64_t key) noexcept {
    Slot* slot = now_.home(key);
    for (; __builtin_expect(slot->oldest.sequence != 0, 0) && slot->key != key;
         slot = now_.after(slot)) {
      slot->more.mark();
      keep_no_loads();
    }
    return slot;
  }
  // What an empty slot has further is nothing, and no mark.
  void fill(Slot* slot, std::uint64_t key, const IndexItem& item) noexcept {
    slot->key = key;
    slot->oldest = item;
    ++size_;
  }
  bool push_further(Slot* slot, const IndexItem& item) noexcept {
    if (!pool_->has_node()) return false;
    slot->more.push(*pool_, item);
    return true;
  }
  void put(Slot* slot, std::uint64_t key, const IndexItem& item) noexcept {
    if (slot->oldest.sequence == 0) [[likely]]
      return fill(slot, key, item);
    slot->more.push(*pool_, item);
  }

  // It holds one item, and when that goes nothing has to move.
  bool is_alone(const Slot* slot) const noexcept {
    return slot->more.is_bare() && old_.slots == nullptr;
  }
  void vacate(Slot* slot) noexcept {
    slot->oldest.sequence = 0;
    --size_;  // last: whoever asks then whether the table is empty() is told by this
  }

  Slot* look_while_moving(std::uint64_t key) const noexcept;
  void push_while_moving(std::uint64_t key, const IndexItem& item) noexcept;
  std::size_t old_place_of(std::uint64_t key) const noexcept;
  bool is_left_in_old(std::size_t place) const noexcept;
  Slot* find_in_old(std::size_t place, std::uint64_t key) const noexcept;
  bool in_old(const Slot* slot) const noexcept {
    return slot >= old_.slots && slot < old_.slots + old_.capacity();
  }
  void pop_further(Slot* slot) noexcept;
  bool make_room(std::size_t keys) noexcept;
  bool start_moving(std::size_t capacity) noexcept;
  void end_moving() noexcept;
  bool has_many_gaps() const noexcept { return now_.gaps >= now_.capacity() / kManyGaps; }
  void note_gap(std::uint64_t sequence) noexcept;
  static std::size_t size_at(unsigned peak_step) noexcept {
    return std::size_t{kLeastPeak / 2} * (2 + peak_step % 2) << peak_step / 2;
  }
  void set_room(std::size_t keys) noexcept;
  void renew_peak(std::uint64_t newest) noexcept;
  void move_some(std::size_t slots) noexcept;
  void supply_next() const noexcept;
  void discard_moved() noexcept;
  void insert(const Slot& content) noexcept;
  static void put_into(Slot* slot, const Slot& content) noexcept;
  void close_gap(Slot* hole) noexcept;
  void release(Table& table) const noexcept;

  // Up to old_.slots one line: all that most calls look at, but for the slot.
  Table now_;
  std::size_t size_ = 0;
  std::size_t room_ = 0;   // of size_, before a push has more to see to: at most limit_ and what
                           // peak_step_ says, and 0 as long as the table moves
  std::size_t limit_ = 0;  // of size_, before the table has to grow
  std::uint32_t gaps_since_ = 0;       // of a sequence number the lower half
  std::uint8_t peak_step_ = 0;         // of size_ since peak_since_,
  std::uint8_t peak_step_before_ = 0;  // and before: see peak()
  std::uint8_t further_ = 0;           // see tells()
  Table old_;
  std::size_t start_ = 0;         // in the old table, where moving began: behind an empty slot
  std::size_t moved_ = 0;         // its slots moved, counted from there
  std::size_t discarded_ = 0;     // of these, slots whose memory is given back
  std::size_t strayed_ = 0;       // homes counted from there on: keys may be in the new table, for
                                  // the old one had no more room behind them
  std::uint64_t peak_since_ = 0;  // a sequence number
  NodePool* pool_;
};

static_assert(sizeof(KeyTable) == 2 * kCacheLine, "an index has four, each found by a shift");

}  // namespace tagline
