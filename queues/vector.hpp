// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "queues/lane_list.hpp"
#include "queues/newest_entry.hpp"
#include "queues/resources.hpp"

namespace tagline {

// Columns of sources and tags, 64 lanes of which a search compares at a time.
//
//   node   line 0-2      link, counts, masks (live, any_source, any_tag, negative_tag)
//          line 3-34     source and tag columns: simd::LaneBlock
//          line 35-130   key mask, cookie and sequence of each lane, touched on a hit only
//
//   oldest -> [ 256 lanes ] -> [ 256 lanes ] -> [ 256 lanes ] <- newest; newest entry
//
// Wildcards are masks beside the columns, combined with the comparisons: a queue
// of nothing but wildcards is searched as fast as one without.
//
// Holes are handled as in queues/node_list.hpp; the newest entry stays outside of
// the columns as in queues/newest_entry.hpp.
//
// Guarantees: append and erase are O(1) amortised (at most 256 entries move);
// find touches 8 lines per 64 entries and 3 per node; entries keep their order;
// only append takes memory.
class VectorList : public LaneList<LaneNode<simd::LaneBlock, NoParameters>> {
  using Node = LaneNode<simd::LaneBlock, NoParameters>;

 public:
  static constexpr const char* kName = "vector";
  using Parameters = NoParameters;
  static std::size_t node_bytes(Parameters) noexcept { return sizeof(Node); }

  VectorList(QueueResources& resources, Parameters parameters, QueueSide) noexcept
      : LaneList(resources.pool, parameters), kernels_(&resources.kernels) {}

  // Wants !empty().
  Hit find(const MatchKey& key, std::uint64_t& depth) const noexcept {
    const Near lanes = near();
    const int lane = find_near(lanes, key);
    if (lane != kNoLane || lanes.is_all) {
      depth += static_cast<unsigned>((lane != kNoLane ? lane + 1 : lanes.end) - lanes.first);
      return {nullptr, lane};
    }
    return find_far(key, depth);
  }

 private:
  Hit find_far(const MatchKey& key, std::uint64_t& depth) const noexcept {
    simd::LaneCounts counts;
    const Hit hit = hit_of(kernels_->find_lane(oldest(), {key.bits, key.mask}, counts));
    depth += counts.lanes;
    return hit;
  }

  const simd::Kernels* kernels_;
};

using VectorQueue = NewestEntry<VectorList>;

}  // namespace tagline
