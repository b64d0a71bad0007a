// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "match/envelope.hpp"

namespace tagline::test {

// The entries of one queue in their order, in a vector: what every structure is.
struct ReferenceQueue {
  std::vector<QueueEntry> entries;

  std::size_t size() const { return entries.size(); }
  bool empty() const { return entries.empty(); }

  // Places, size() for none.
  template <class Condition>
  std::size_t first(Condition condition) const {
    return static_cast<std::size_t>(std::find_if(entries.begin(), entries.end(), condition) -
                                    entries.begin());
  }
  std::size_t find(const MatchKey& key) const {
    return first([&](const QueueEntry& entry) { return fits(entry.key, key); });
  }
  void erase(std::size_t place) {
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(place));
  }

  // By envelopes: the library compares bits.
  static bool fits(const MatchKey& a, const MatchKey& b) {
    const tagline_envelope one = key_envelope(0, a);
    const tagline_envelope other = key_envelope(0, b);
    const auto tag_fits = [](std::int32_t wanted, std::int32_t tag) {
      return wanted == kAnyTag ? tag >= 0 || tag == kAnyTag : wanted == tag;
    };
    return (one.source == other.source || one.source == kAnySource || other.source == kAnySource) &&
           (tag_fits(one.tag, other.tag) || tag_fits(other.tag, one.tag));
  }
};

inline MatchKey key_of(std::int32_t source, std::int32_t tag) {
  return receive_key({0, source, tag});
}

}  // namespace tagline::test
