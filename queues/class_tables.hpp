// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "queues/key_table.hpp"
#include "queues/match_key.hpp"
#include "queues/resources.hpp"

namespace tagline {

// Entries by what they insist on, so that the oldest one for an exact key is found in constant
// time: four classes, source and tag, tag only (any source), source only (any tag), nothing. Each
// is a table from the bits it insists on to a FIFO of entries:
//
//   class 0  source+tag   ->  [oldest, ...]       a message looks into all four
//   class 1  tag          ->  [oldest, ...]       that hold anything; of the
//   class 2  source       ->  [oldest, ...]       oldest of each, the one with the
//   class 3  (no key)     ->  [oldest, ...]       lowest sequence number is its match
//
// Unexpected entries are messages, so all are in class 0, and a receive with a wildcard needs
// another way in: see KeyIndex, which this is a part of.
class ClassTables {
 public:
  // Which item of which slot. Two words, so that it travels in registers.
  class Hit {
   public:
    Hit() = default;
    Hit(KeyTable::Slot* slot, int key_class, std::uint64_t sequence) noexcept
        : slot_and_class_(reinterpret_cast<std::uintptr_t>(slot) |
                          static_cast<unsigned>(key_class)),
          sequence_(sequence) {}
    // No slot, and what else the word can tell.
    constexpr explicit Hit(std::uint64_t word) noexcept : sequence_(word) {}
    explicit operator bool() const noexcept { return slot_and_class_ != 0; }
    KeyTable::Slot* slot() const noexcept {
      return reinterpret_cast<KeyTable::Slot*>(slot_and_class_ & ~std::uintptr_t{3});
    }
    int key_class() const noexcept { return static_cast<int>(slot_and_class_ & 3); }
    constexpr std::uint64_t sequence() const noexcept { return sequence_; }
    friend bool operator==(const Hit&, const Hit&) = default;

   private:
    std::uintptr_t slot_and_class_ = 0;  // slots are aligned, the class fits below
    std::uint64_t sequence_ = 0;
  };

  bool empty() const noexcept { return tables_[0].empty() && wild_classes() == 0; }
  // Entries, of those of one key and class the oldest.
  std::size_t keys() const noexcept {
    return tables_[0].size() + tables_[1].size() + tables_[2].size() + tables_[3].size();
  }
  // Entries, of the unexpected side: of the posted one nothing asks for their number.
  std::size_t messages() const noexcept { return tables_[0].size() + repeated_; }

  // Entries, those of one key counted once, that waited together of late; of exact keys.
  std::size_t peak() const noexcept { return tables_[0].peak(); }

  // Whether one look tells the oldest entry that meets an exact key: no entry has a wildcard,
  // nothing moves, and no view lists it. Then look() is where that entry is, or nothing; it wants
  // !empty().
  bool tells() const noexcept { return tables_[0].tells(); }
  // With the key, so that where a look hands on what it has found every register stays as it is.
  struct Found {
    explicit operator bool() const noexcept { return slot != nullptr; }
    std::uint64_t bits;
    KeyTable::Slot* slot;
  };
  Found look(std::uint64_t bits) noexcept {
    const Found found = {bits, tables_[0].look_now</*keeps=*/false>(bits)};
    if (!found) missed_ = true;
    return found;
  }
  // Takes out what look() has found.
  void take_found(Found found, void** cookie) noexcept { take_oldest(found.slot, cookie); }

  // The same without a call. False: nothing has changed.
  template <QueueSide side>
  bool take_at_hand(Found found, void** cookie) noexcept {
    if (!KeyTable::pops_now(found.slot)) [[unlikely]]
      return false;
    take_now<side>(found.slot, cookie);
    return true;
  }

  // The same where receives with wildcards wait: each table that has any is looked into.
  Hit look_among_wild(std::uint64_t bits) noexcept {
    KeyTable::Slot* best = tables_[0].empty() ? nullptr : tables_[0].look_now(bits);
    int its_class = 0;
    for_each_class(wild_classes_of(bits), [&](int c) {
      KeyTable::Slot* const slot = tables_[c].look_now(bits & kClassBits[c]);
      if (slot == nullptr) return true;
      if (best != nullptr && is_older(best->oldest.sequence, slot->oldest.sequence)) return true;
      best = slot;
      its_class = c;
      return true;
    });
    if (best != nullptr) return {best, its_class, best->oldest.sequence};
    missed_ = true;
    return {};
  }
  void take_found(Hit found, void** cookie) noexcept;
  template <QueueSide side>
  bool take_at_hand(Hit found, void** cookie) noexcept {
    if (!KeyTable::pops_now(found.slot())) return false;
    take_now<side>(found.slot(), cookie, found.key_class());
    note_left(found.key_class());
    return true;
  }

  // A search has found nothing, and so passed all that is here. was_missed(): asked when the index
  // has emptied, and then told anew.
  bool is_missed() const noexcept { return missed_; }
  bool was_missed() noexcept { return std::exchange(missed_, false); }
  // The sequence number of the entry that left last.
  std::uint64_t last_gone() const noexcept { return last_gone_; }

  QueueEntry at(Hit hit) const noexcept {
    const KeyTable::Slot& slot = *hit.slot();
    IndexItem found = slot.oldest;
    if (found.sequence != hit.sequence()) [[unlikely]] {
      KeyTable::for_each_item(slot, [&](const IndexItem& item) {
        found = item;
        return item.sequence != hit.sequence();
      });
    }
    return entry(hit.key_class(), slot.key, found);
  }

  // Of an exact key that is listed nowhere else, behind all others, if all it takes is a slot, or
  // room in a node. It calls nothing. False: nothing has changed.
  template <QueueSide side>
  bool push_at_hand(const QueueEntry& entry) noexcept {
    KeyTable& table = tables_[0];
    if (!table.has_room(1)) [[unlikely]]
      return false;
    return table.push_at_hand(entry.key.bits, item_of(entry), [&] {
      if constexpr (side == QueueSide::unexpected) ++repeated_;
    });
  }
  // See KeyTable.
  bool outgrows_caches() const noexcept { return tables_[0].outgrows_caches(); }
  KeyTable::SlotHint slot_hint(bool small) const noexcept { return tables_[0].slot_hint(small); }
  [[gnu::always_inline]] void prefetch(const MatchKey& key) const noexcept {
    tables_[class_of(key)].prefetch_place(key.bits);
  }

  // See KeyTable. renew_peak(): the same of exact keys, where they have just been drained.
  void let_shrink(std::uint64_t newest, std::size_t cycle) noexcept {
    for (KeyTable& table : tables_) table.let_shrink(newest, cycle);
  }
  void renew_peak(std::uint64_t newest) noexcept {
    tables_[0].let_shrink(newest, tables_[0].capacity());
  }

  // For the entries that follow one for which push_at_once() said no, and which waits outside.
  void make_room() noexcept { tables_[0].reserve(); }

  // That many entries are about to come, most of the kind of this one.
  void expect(std::size_t entries, const MatchKey& key) noexcept {
    tables_[class_of(key)].expect(entries);
  }

  // The oldest entry of exactly this key, wildcards included, that the condition
  // (on a QueueEntry) holds for. Walks the entries of the key.
  template <class Condition>
  Hit find_equal(const MatchKey& key, Condition condition) const noexcept {
    const int key_class = class_of(key);
    Hit hit;
    KeyTable::Slot* slot = tables_[key_class].find(key.bits);
    if (slot == nullptr) return {};
    KeyTable::for_each_item(*slot, [&](const IndexItem& item) {
      if (!condition(entry(key_class, slot->key, item))) return true;
      hit = {slot, key_class, item.sequence};
      return false;
    });
    return hit;
  }

  // In no order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (int c = 0; c < kClasses; ++c) {
      tables_[c].for_each(
          [&](std::uint64_t bits, const IndexItem& item) { visit(entry(c, bits, item)); });
    }
  }

 protected:
  static constexpr int kClasses = 4;
  // The bits of a key that each class insists on, as a table key.
  static constexpr std::array<std::uint64_t, kClasses> kClassBits = {kSourceMask | kTagMask,
                                                                     kTagMask, kSourceMask, 0};
  static constexpr unsigned kAllWild = 0b1110;  // class c: bit c
  static constexpr unsigned kWithTag = 0b0011;
  static constexpr std::array<std::uint64_t, kClasses> kClassMask = {
      kSourceMask | kTagMask, kTagMask, kSourceMask | kTagSign, kTagSign};

  ClassTables(QueueResources& resources, QueueSide side) noexcept
      : tables_{KeyTable(resources.pool), KeyTable(resources.pool), KeyTable(resources.pool),
                KeyTable(resources.pool)},
        side_(side) {}

  // Of these classes the ones that such a message is seen by: negative tags are the host's own
  // traffic, and who leaves the tag open does not see them.
  static unsigned of_tag(std::uint64_t bits, unsigned classes) noexcept {
    return (bits & kTagSign) == 0 ? classes : classes & kWithTag;
  }
  // Of wildcard classes in a set. What popcount() is, which calls a function where any x86 will do:
  // the numbers of all eight sets, two bits each, and the first class is bit 1.
  static unsigned number_of(unsigned classes) noexcept {
    return 0b1110100110010100u >> classes & 3;
  }
  // visit(c) for those classes that are in the set, until it returns false; the rest of the set.
  // Spelled out, because the bits of a class are then constants.
  template <class Visit>
  [[gnu::always_inline]] static unsigned for_each_class(unsigned classes, Visit visit) noexcept {
    if ((classes & 2) != 0 && !visit(1)) return classes;
    if ((classes & 4) != 0 && !visit(2)) return classes & ~2u;
    if ((classes & 8) != 0 && !visit(3)) return classes & 8;
    return 0;
  }

  static int class_of(const MatchKey& key) noexcept {
    return (key_any_source(key) ? 1 : 0) | (key_any_tag(key) ? 2 : 0);
  }

  static IndexItem item_of(const QueueEntry& entry) noexcept {
    return {reinterpret_cast<std::uint64_t>(entry.cookie), entry.sequence};
  }
  static QueueEntry entry(int key_class, std::uint64_t bits, const IndexItem& item) noexcept {
    return {{bits, kClassMask[key_class]}, reinterpret_cast<void*>(item.value), item.sequence};
  }

  Hit find_in(int key_class, std::uint64_t bits, std::uint64_t& depth) const noexcept {
    KeyTable::Slot* slot = tables_[key_class].find(bits);
    if (slot == nullptr) return {};
    ++depth;
    return {slot, key_class, slot->oldest.sequence};
  }

  bool is_moving() const noexcept {
    return tables_[0].is_moving() || tables_[1].is_moving() || tables_[2].is_moving() ||
           tables_[3].is_moving();
  }
  void go_on_moving() noexcept;
  // For an exact key: one with wildcards, if it is older than `best`, or that is none.
  void find_wild_entry(const MatchKey& key, Hit& best, std::uint64_t& depth) const noexcept;
  // The oldest that meets any key. Walks over all.
  Hit find_by_walk(const MatchKey& key, std::uint64_t& depth) const noexcept;

  // The pop comes last: whoever does nothing else then saves no registers for it.
  void take_oldest(KeyTable::Slot* slot, void** cookie, int key_class = 0) noexcept {
    *cookie = reinterpret_cast<void*>(slot->oldest.value);
    note_going(slot, slot->oldest.sequence);
    tables_[key_class].pop(slot);
  }

  // The same without a call, where the table does not move and pops_now().
  template <QueueSide side>
  void take_now(KeyTable::Slot* slot, void** cookie, int key_class = 0) noexcept {
    *cookie = reinterpret_cast<void*>(slot->oldest.value);
    last_gone_ = slot->oldest.sequence;
    tables_[key_class].pop_now(slot);
  }

  // Into the table of its class; wants reserve() of that. push_to_class_at_once(): if that takes no
  // memory.
  void push_to_class(int key_class, const QueueEntry& entry) noexcept {
    KeyTable& table = tables_[key_class];
    const std::size_t keys = table.size();
    table.push(entry.key.bits, item_of(entry));
    if (side_ == QueueSide::unexpected) repeated_ += table.size() == keys;
  }
  template <QueueSide side>
  bool push_to_class_at_once(int key_class, const QueueEntry& entry) noexcept {
    return tables_[key_class].push_at_once(entry.key.bits, item_of(entry), [&] {
      if constexpr (side == QueueSide::unexpected) ++repeated_;
    });
  }
  // A receive has come to a class, or an entry has left it.
  void note_come(int key_class) noexcept { tables_[0].look_further(kAllWild & 1u << key_class); }
  void note_left(int key_class) noexcept {
    if (key_class != 0 && tables_[key_class].empty()) tables_[0].look_no_further(1u << key_class);
  }

  // A bit for each class but 0 that holds entries, kept where every look asks.
  unsigned wild_classes() const noexcept { return tables_[0].further() & kAllWild; }
  // Of these, those that may hold what a message meets.
  unsigned wild_classes_of(std::uint64_t bits) const noexcept {
    return of_tag(bits, wild_classes());
  }

  // An entry is about to leave its slot.
  void note_going(const KeyTable::Slot* slot, std::uint64_t sequence) noexcept {
    if (side_ == QueueSide::unexpected) repeated_ -= !slot->more.empty();
    last_gone_ = sequence;
  }

  std::array<KeyTable, kClasses> tables_;
  // From here on a line of what every operation looks at, which KeyIndex goes on with.
  std::size_t repeated_ = 0;     // messages behind another one of their key
  std::uint64_t last_gone_ = 0;  // a sequence number
  bool missed_ = false;          // see is_missed()
  const QueueSide side_;
};

}  // namespace tagline
