// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "queues/match_key.hpp"
#include "queues/resources.hpp"

namespace tagline {

// A queue whose newest entry waits in the queue object itself, and goes to the
// structure behind it only when a newer one comes.
//
//   [ structure: all older entries, in order ] [ newest ]
//
// Many a message meets a receive posted just before it. Such a pair never
// reaches the structure: no lane is filled and emptied again, and no column is
// loaded as a whole right after one lane of it was stored, which would wait for
// the store to leave the core. And a queue of one entry takes no node at all.
//
// Structure offers the operations of queues/linear.hpp. Guarantees: those of the
// structure; the newest entry is found after all others, because it is the last
// in order.
template <class Structure>
class NewestEntry {
 public:
  static constexpr const char* kName = Structure::kName;
  using Parameters = typename Structure::Parameters;
  static std::size_t node_bytes(const Parameters& parameters) noexcept {
    return Structure::node_bytes(parameters);
  }

  // A hit in the structure, or the newest entry as a lane that no node has.
  using Hit = typename Structure::Hit;

  NewestEntry(QueueResources& resources, const Parameters& parameters, QueueSide side) noexcept
      : older_(resources, parameters, side) {}

  bool empty() const noexcept { return !waits_ && older_.empty(); }
  bool has_room() const noexcept { return !waits_ || older_.has_room(); }
  bool make_room() noexcept { return older_.make_room(); }

  void append(const QueueEntry& entry) noexcept {
    if (waits_) older_.append(newest_);
    newest_ = entry;
    waits_ = true;
  }

  // No call for the newest entry where it is the only one.
  bool front_meets(const MatchKey& key) const noexcept {
    return older_.empty() && keys_meet(newest_.key, key);
  }
  void* front_cookie() const noexcept { return newest_.cookie; }
  void erase_front() noexcept { waits_ = false; }

  Hit find(const MatchKey& key, std::uint64_t& depth) const noexcept {
    if (!older_.empty()) {
      if (const Hit hit = older_.find(key, depth)) return hit;
    }
    if (!waits_) return {};
    ++depth;
    return keys_meet(newest_.key, key) ? kNewest : Hit{};
  }

  Hit find_exact(const MatchKey& key, const void* cookie) const noexcept {
    if (const Hit hit = older_.find_exact(key, cookie)) return hit;
    return waits_ && newest_.cookie == cookie && newest_.key == key ? kNewest : Hit{};
  }

  Hit find_sequence(std::uint64_t sequence) const noexcept {
    return waits_ && newest_.sequence == sequence ? kNewest : older_.find_sequence(sequence);
  }

  QueueEntry at(Hit hit) const noexcept { return is_newest(hit) ? newest_ : older_.at(hit); }

  void erase(Hit hit) noexcept {
    if (is_newest(hit)) {
      waits_ = false;
    } else {
      older_.erase(hit);
    }
  }

  template <class Visit>
  void for_each(Visit visit) const {
    older_.for_each(visit);
    if (waits_) visit(newest_);
  }

  template <class Predicate, class Visit>
  std::size_t remove_if(Predicate wanted, Visit visit) {
    const std::size_t removed = older_.remove_if(wanted, visit);
    if (!waits_ || !wanted(newest_)) return removed;
    waits_ = false;
    visit(newest_);
    return removed + 1;
  }

 private:
  static constexpr Hit kNewest = {nullptr, std::numeric_limits<int>::max()};
  static bool is_newest(Hit hit) noexcept { return hit.lane == kNewest.lane; }

  bool waits_ = false;
  QueueEntry newest_;
  Structure older_;
};

}  // namespace tagline
