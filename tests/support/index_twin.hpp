// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "queues/key_index.hpp"
#include "tests/support/reference_queue.hpp"

namespace tagline::test {

// An index and what it should hold: each call goes to both, and they have to agree. Every other
// entry takes the ways that a matcher tries first.
class Twin {
 public:
  explicit Twin(QueueSide side, std::uint64_t first_sequence = 1, std::size_t limit_bytes = 0)
      : resources(*simd::available_kernels(0), limit_bytes, Fifo::kNodeBytes),
        index(resources, side),
        side(side),
        next(first_sequence) {}

  bool push(std::int32_t source, std::int32_t tag) {
    const QueueEntry entry = {key_of(source, tag), reinterpret_cast<void*>(++cookies), next};
    const bool at_once = !index.empty() && cookies % 2 == 0 && push_at_once(entry);
    if (!at_once && !index.push(entry)) return false;
    reference.entries.push_back(entry);
    if (++next == 0) next = 1;
    return true;
  }
  // Finds what the reference finds; the entries looked at.
  std::uint64_t look(std::int32_t source, std::int32_t tag) { return search(source, tag, false); }
  std::uint64_t take(std::int32_t source, std::int32_t tag) { return search(source, tag, true); }

  QueueResources resources;
  KeyIndex index;
  const QueueSide side;
  std::uint64_t next;
  std::uintptr_t cookies = 0;
  unsigned takes = 0;  // every other one at once, or not at all
  unsigned taken_from_lists = 0;
  unsigned logged_at_hand = 0;
  unsigned listed_at_hand = 0;
  ReferenceQueue reference;

 private:
  // What a matcher tries first.
  bool push_at_once(const QueueEntry& entry) {
    if (index.lists_once(entry.key)) {
      const bool posted = side == QueueSide::posted;
      if (posted ? index.push_at_hand<QueueSide::posted>(entry)
                 : index.push_at_hand<QueueSide::unexpected>(entry))
        return true;
    } else if (index.only_logs() && index.log_at_hand(entry)) {
      ++logged_at_hand;
      return true;
    } else if (index.only_lists() && index.list_at_hand(entry)) {
      ++listed_at_hand;
      return true;
    }
    return index.push_at_once(entry);
  }
  Glance take_at_once(const MatchKey& key, std::uint64_t envelope, void** cookie) {
    if (key.mask == (kSourceMask | kTagMask)) return index.take(key, cookie);
    const auto listed = index.look_listed(envelope);
    if (!listed) return index.lists_none(envelope) ? Glance::none : Glance::unknown;
    index.take_found(listed, cookie);
    ++taken_from_lists;
    return Glance::taken;
  }
  void expect_size() const {
    EXPECT_EQ(index.empty(), reference.size() == 0);
    if (side == QueueSide::unexpected) {
      EXPECT_EQ(index.messages(), reference.size());
    }
  }
  std::uint64_t search(std::int32_t source, std::int32_t tag, bool take) {
    const MatchKey key = key_of(source, tag);
    const std::size_t place = reference.find(key);
    if (take && ++takes % 2 == 0) {
      void* cookie = nullptr;
      const Glance glance = take_at_once(key, key_bits(source, tag), &cookie);
      if (glance != Glance::unknown) {
        EXPECT_EQ(glance == Glance::taken, place != reference.size()) << source << ", " << tag;
        if (glance != Glance::taken || place == reference.size()) return 1;
        EXPECT_EQ(cookie, reference.entries[place].cookie);
        reference.erase(place);
        expect_size();
        return 1;
      }
    }
    std::uint64_t depth = 0;
    const KeyIndex::Hit hit = index.find(key, depth);
    EXPECT_EQ(static_cast<bool>(hit), place != reference.size()) << source << ", " << tag;
    if (!hit || place == reference.size()) return depth;
    const QueueEntry entry = index.at(hit);
    EXPECT_EQ(entry.sequence, reference.entries[place].sequence) << source << ", " << tag;
    EXPECT_EQ(entry.cookie, reference.entries[place].cookie);
    EXPECT_EQ(entry.key, reference.entries[place].key);
    if (take) {
      index.erase(hit);
      reference.erase(place);
      expect_size();
    }
    return depth;
  }
};

}  // namespace tagline::test
