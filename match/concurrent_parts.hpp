// SPDX-License-Identifier: BSD-3-Clause
// What the matchers for several threads share.
#pragma once

#include <algorithm>
#include <optional>

#include "match/envelope.hpp"
#include "match/operations.hpp"
#include "queues/node_memory.hpp"

namespace tagline {

// tagline_options.pool_bytes over all parts of a matcher.
class SharedLimit {
 public:
  explicit SharedLimit(const tagline_options& options) noexcept {
    if (options.pool_bytes != 0) limit_.emplace(options.pool_bytes);
  }
  MemoryLimit* get() noexcept { return limit_ ? &*limit_ : nullptr; }

 private:
  std::optional<MemoryLimit> limit_;
};

// Of parts that were not full at the same moment: high_water is an upper bound.
inline void add_statistics(tagline_side_statistics& sum,
                           const tagline_side_statistics& part) noexcept {
  sum.length += part.length;
  sum.high_water += part.high_water;
  sum.searches += part.searches;
  sum.matches += part.matches;
  sum.search_depth_sum += part.search_depth_sum;
  sum.search_depth_max = std::max(sum.search_depth_max, part.search_depth_max);
  sum.false_positives += part.false_positives;
}

// For what claim() and probe() tell of a message.
inline auto tell(const tagline_envelope& wanted, void** message, tagline_envelope* found) {
  return [=](const QueueEntry& entry) {
    *message = entry.cookie;
    if (found != nullptr) *found = key_envelope(wanted.context_id, entry.key);
  };
}

inline tagline_status not_found() noexcept { return TAGLINE_NOT_FOUND; }

}  // namespace tagline
