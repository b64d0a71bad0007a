// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "queues/match_key.hpp"
#include "queues/node_memory.hpp"
#include "queues/node_pool.hpp"
#include "simd/kernels.hpp"

namespace tagline {

// What is promised about the receives and probes of a queue.
struct Hints {
  bool wildcards = true;    // there may be some
  bool overtaking = false;  // of several entries that meet a key any will do
};

// What only some structures have to count.
struct QueueCounts {
  std::uint64_t false_positives = 0;  // equal fingerprints of unequal keys
};

// What the queues of one matcher share. The matcher owns it and outlives them. In lines of
// its own: another matcher's beside it may be another thread's.
struct alignas(kCacheLine) QueueResources {
  QueueResources(const simd::Kernels& kernels_to_use, NodeMemory& memory_to_use,
                 std::size_t node_bytes) noexcept
      : memory(memory_to_use), pool(memory, node_bytes), kernels(kernels_to_use) {}
  // With a memory of their own.
  QueueResources(const simd::Kernels& kernels_to_use, std::size_t limit_bytes,
                 std::size_t node_bytes)
      : own_memory(std::make_unique<NodeMemory>(limit_bytes)),
        memory(*own_memory),
        pool(memory, node_bytes),
        kernels(kernels_to_use) {}

  QueueCounts& counts(QueueSide side) noexcept { return side_counts[static_cast<int>(side)]; }
  const QueueCounts& counts(QueueSide side) const noexcept {
    return side_counts[static_cast<int>(side)];
  }

  const std::unique_ptr<NodeMemory> own_memory;
  NodeMemory& memory;
  NodePool pool;  // nodes of the structure's node_bytes()
  const simd::Kernels& kernels;
  QueueCounts side_counts[2];
};

// Parameters of a structure that has none: "linear", not "linear:7".
struct NoParameters {
  // text: what stands behind "name:", "" if nothing does.
  // Throws std::invalid_argument with the forms that are valid.
  static NoParameters parse(const std::string& text) {
    if (!text.empty()) throw std::invalid_argument("takes no parameter");
    return {};
  }
};

}  // namespace tagline
