// SPDX-License-Identifier: BSD-3-Clause
#include "queues/class_tables.hpp"

#include <bit>

namespace tagline {

[[gnu::cold]] void ClassTables::go_on_moving() noexcept {
  for (KeyTable& table : tables_) table.go_on_moving();
}

void ClassTables::take_found(Hit found, void** cookie) noexcept {
  take_oldest(found.slot(), cookie, found.key_class());
  note_left(found.key_class());
}

void ClassTables::find_wild_entry(const MatchKey& key, Hit& best,
                                  std::uint64_t& depth) const noexcept {
  for (unsigned left = wild_classes_of(key.bits); left != 0; left &= left - 1) {
    const int c = std::countr_zero(left);
    const Hit hit = find_in(c, key.bits & kClassBits[c], depth);
    if (hit && (!best || is_older(hit.sequence(), best.sequence()))) best = hit;
  }
}

ClassTables::Hit ClassTables::find_by_walk(const MatchKey& key,
                                           std::uint64_t& depth) const noexcept {
  bool found = false;
  QueueEntry oldest;
  for_each([&](const QueueEntry& entry) {
    ++depth;
    if (!keys_meet(key, entry.key) || (found && is_older(oldest.sequence, entry.sequence))) return;
    oldest = entry;
    found = true;
  });
  return found ? Hit(tables_[0].find(oldest.key.bits), 0, oldest.sequence) : Hit();
}

}  // namespace tagline
