// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "match/envelope.hpp"
#include "match/tagline.h"
#include "queues/resources.hpp"

namespace tagline {

// The two queues of a context. In lines of its own, as the resources: another matcher
// beside it may be another thread's.
template <class Queue>
struct alignas(kCacheLine) MatchContext {
  MatchContext(std::uint64_t context_id, QueueResources& resources,
               typename Queue::Parameters parameters)
      : id(context_id),
        posted(resources, parameters, QueueSide::posted),
        unexpected(resources, parameters, QueueSide::unexpected),
        memory(resources.memory) {
    memory.note_in_use(this, sizeof *this);
  }
  ~MatchContext() { memory.note_out_of_use(this); }

  // promised: TAGLINE_NO_ANY_SOURCE and others, for structures that can make use of them.
  void set_hints(unsigned promised) noexcept {
    hints = promised;
    constexpr unsigned kNoWildcards = TAGLINE_NO_ANY_SOURCE | TAGLINE_NO_ANY_TAG;
    const Hints for_queues = {(promised & kNoWildcards) != kNoWildcards,
                              (promised & TAGLINE_ALLOW_OVERTAKING) != 0};
    for (Queue* queue : {&posted, &unexpected}) {
      if constexpr (requires { queue->set_hints(for_queues); }) queue->set_hints(for_queues);
    }
  }

  const std::uint64_t id;
  Queue posted;
  Queue unexpected;
  unsigned hints = 0;
  NodeMemory& memory;
};

// Tells a visitor of entries of one context; visit may be nullptr.
inline auto teller(std::uint64_t context_id, tagline_visitor visit, void* user) {
  return [=](tagline_side side, const QueueEntry& entry) {
    if (visit != nullptr) visit(user, side, key_envelope(context_id, entry.key), entry.cookie);
  };
}

}  // namespace tagline
