// SPDX-License-Identifier: BSD-3-Clause
//
// What a history says about matching, but for what it costs: how long the lists are, how deep
// searches go in a plain list, who sends what nobody waits for, which bits tell envelopes apart.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "history.hpp"

namespace tagline::tools {

// Of all values a rank has met. A window is the low bits of a value.
class BitUse {
 public:
  static constexpr int kWindows = 33;  // 0 to 32 bits

  // Of one rank: how often each value came.
  void add(const std::map<std::int32_t, std::uint64_t>& values);

  std::size_t most_values = 0;  // different ones that a rank has met
  int used_bits = 0;            // of the largest value
  int minimum = 0;              // the smallest window that tells all of a rank's values apart
  // Of two messages of a rank, picked at random: how often they differ and look alike in the
  // window. Of the rank where it is highest.
  std::array<double, kWindows> overlap = {};
};

struct StudiedSide {
  std::vector<std::uint64_t> lengths;  // samples by length, one per addition and deletion
  std::vector<std::uint64_t> depths;   // searches by entries looked at
};

struct Study {
  static constexpr std::size_t kBins = 200;
  struct Bin {
    std::uint64_t arrivals = 0;
    std::uint64_t unexpected = 0;   // of them
    std::uint64_t most_posted = 0;  // of a rank, entries
    std::uint64_t most_unexpected = 0;
  };
  struct Peer {
    std::uint64_t messages = 0;
    std::uint64_t unexpected = 0;
    std::uint64_t bytes = 0;
  };

  explicit Study(double duration_ns) : duration_ns_(duration_ns) {}
  void add(const History& history);

  StudiedSide posted;
  StudiedSide unexpected;
  std::vector<Bin> over_time = std::vector<Bin>(kBins);
  std::map<std::int32_t, Peer> peers;
  std::uint64_t posts = 0;
  std::uint64_t any_source = 0;  // of the posts, those with any tag as well included
  std::uint64_t any_tag = 0;
  std::uint64_t probes = 0;
  std::uint64_t cancels = 0;
  std::uint64_t most_waiting_bytes = 0;  // of a rank's unexpected messages
  BitUse tags;
  BitUse sources;

 private:
  friend class StudyWatch;
  double duration_ns_;
};

}  // namespace tagline::tools
