// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <new>
#include <vector>

#include "queues/match_key.hpp"

namespace tagline {

// Without memory for a list, each entry takes a walk over all of them: dropping a
// context must not fail.
template <class Entries, class Predicate, class Visit>
void visit_one_by_one(const Entries& entries, Predicate wanted, Visit visit) {
  for (QueueEntry last, next;; last = next) {
    const bool is_first = last.sequence == 0;
    bool found = false;
    entries.for_each([&](const QueueEntry& entry) {
      if (!wanted(entry) || (!is_first && !is_older(last.sequence, entry.sequence))) return;
      if (found && !is_older(entry.sequence, next.sequence)) return;
      next = entry;
      found = true;
    });
    if (!found) return;
    visit(next);
  }
}

// Of entries that for_each() visits in any order the wanted ones, oldest first; visit may erase
// what it is given.
template <class Entries, class Predicate, class Visit>
void visit_in_order(const Entries& entries, Predicate wanted, Visit visit) {
  std::vector<QueueEntry> list;
  try {
    entries.for_each([&](const QueueEntry& entry) {
      if (wanted(entry)) list.push_back(entry);
    });
  } catch (const std::bad_alloc&) {
    visit_one_by_one(entries, wanted, visit);
    return;
  }
  std::sort(list.begin(), list.end(), [](const QueueEntry& a, const QueueEntry& b) {
    return is_older(a.sequence, b.sequence);
  });
  for (const QueueEntry& entry : list) visit(entry);
}

}  // namespace tagline
