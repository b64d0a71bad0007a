// SPDX-License-Identifier: BSD-3-Clause
//
// Histories through queue structures: what each costs, and whether that matters.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "history.hpp"
#include "match/tagline.h"

namespace tagline::tools {

struct ReplayOptions {
  std::vector<std::uint32_t> ranks;  // all: empty
  std::vector<std::string> queues;   // all, those for several threads too: empty
  double seconds = 10;
  std::uint64_t most = TraceSet::kMost;  // records of a rank; all: 0
  bool lines = true;
  std::filesystem::path lines_program;
  std::filesystem::path trace;
};

struct ReplayedSide {
  std::uint64_t searches = 0;
  std::uint64_t depth_sum = 0;
  std::uint64_t depth_max = 0;
  std::uint64_t high_water = 0;
  double mean_depth() const {
    return searches == 0 ? 0 : static_cast<double>(depth_sum) / static_cast<double>(searches);
  }
};

struct ReplayedQueue {
  std::string queue;
  bool is_for_threads = false;
  bench::Spread ns_per_operation;  // over passes; of all ranks together
  ReplayedSide posted;
  ReplayedSide unexpected;
  std::uint64_t false_positives = 0;
  std::uint64_t pool_bytes = 0;  // most of a rank, at the end of its history
  double lines = -1;             // cache lines per post or arrival; -1: not counted
  std::vector<double> pass_ns;   // per operation
};

struct Replayed {
  std::vector<std::uint32_t> ranks;
  std::uint64_t operations = 0;
  std::uint64_t posts = 0;
  std::uint64_t arrivals = 0;
  std::uint64_t unexpected = 0;
  std::uint64_t known = 0;
  std::uint64_t otherwise = 0;
  std::uint64_t guessed_arrivals = 0;
  std::uint64_t lost = 0;
  std::uint64_t left_out = 0;
  std::size_t cut = 0;
  double duration_ns = 0;  // longest of the ranks
  std::vector<ReplayedQueue> queues;

  double unexpected_share() const {
    return arrivals == 0 ? 0 : static_cast<double>(unexpected) / static_cast<double>(arrivals);
  }
  // A rank's matching, on average.
  double matching_ms(const ReplayedQueue& queue) const;
  double share_of_run(const ReplayedQueue& queue) const;
  const ReplayedQueue* find(const std::string& queue) const;
  const ReplayedQueue& best() const;
  // In plain words: is matching the problem, and what helps.
  std::string verdict() const;
};

// What was asked for; of more than 16 ranks 16, spread evenly.
std::vector<std::uint32_t> some_ranks(const TraceSet& traces,
                                      const std::vector<std::uint32_t>& asked);

Replayed replay(const TraceSet& traces, const ReplayOptions& options);

nlohmann::ordered_json to_json(const Replayed& replayed);

}  // namespace tagline::tools
