// SPDX-License-Identifier: BSD-3-Clause
//
// What one point of RMA-MT is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace suite::rma_mt {

struct Options {
  std::string pattern = "latency";
  std::string operation = "put";
  std::string synchronisation = "fence";
  int threads = 1;  // 0: the parent issues all by itself
  std::vector<std::uint64_t> bytes{8};
  int window = 64;     // operations per thread and peer between two synchronisations
  int neighbours = 6;  // of the halo exchange
  int slots = 0;       // messages of different memory per thread and peer; 0: as many as fit
  std::string memory = "allocate";
  std::string clock = "batch";

  bool two_sided() const { return operation == "send"; }
  int issuers() const { return std::max(threads, 1); }
  // Operations that one of them issues to one peer between two synchronisations.
  int count() const { return pattern == "latency" ? 1 : window; }
  bool is_rate() const { return pattern == "rate" || pattern == "halo"; }
};

// Who sends to whom. Data of a Put flow from origin to target, those of a Get back.
struct Peers {
  std::vector<int> targets;
  std::vector<int> origins;
};

inline Peers peers_of(const Options& options, int rank, int size) {
  Peers peers;
  if (options.pattern == "halo") {
    // Half of the neighbours on either side of a ring.
    for (int i = 1; i <= options.neighbours / 2; ++i) {
      for (const int at : {rank + i, rank - i}) peers.targets.push_back((at + size) % size);
    }
    peers.origins = peers.targets;
  } else if (options.pattern == "bibandwidth") {
    peers.targets = peers.origins = {1 - rank};
  } else {
    // Latency and bandwidth are the rate's pattern with one pair.
    const int half = size / 2;
    (rank < half ? peers.targets : peers.origins) = {rank < half ? rank + half : rank - half};
  }
  return peers;
}

inline std::size_t index_of(const std::vector<int>& list, int rank) {
  return static_cast<std::size_t>(std::find(list.begin(), list.end(), rank) - list.begin());
}

// A buffer of one rank: for every peer and every thread so many slots of one message.
// Operations beyond the last slot use the first ones again, with the same data.
struct Layout {
  std::size_t bytes;
  int threads;
  int slots;

  Layout(const Options& options, std::size_t message_bytes, std::size_t peers)
      : bytes(message_bytes), threads(options.issuers()) {
    constexpr std::size_t kMostBytes = std::size_t{32} << 20;
    const std::size_t fit =
        kMostBytes / (bytes * static_cast<std::size_t>(threads) * std::max<std::size_t>(peers, 1));
    slots = static_cast<int>(
        std::clamp<std::size_t>(fit, 1, static_cast<std::size_t>(options.count())));
    if (options.slots > 0) slots = std::min(slots, options.slots);
  }
  std::size_t offset(std::size_t peer, int thread, int slot) const {
    return ((peer * static_cast<std::size_t>(threads) + static_cast<std::size_t>(thread)) *
                static_cast<std::size_t>(slots) +
            static_cast<std::size_t>(slot)) *
           bytes;
  }
  std::size_t size(std::size_t peers) const { return offset(peers, 0, 0); }
};

}  // namespace suite::rma_mt
