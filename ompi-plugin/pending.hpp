// SPDX-License-Identifier: BSD-3-Clause
// Work that found no resources in a BTL and is tried again from Open MPI's progress loop.
#pragma once

#include <cstddef>

#include "compat.h"
#include "wire.hpp"

namespace tagline::pml {

// Embedded in what has to wait. Queued at most once at a time.
struct Pending {
  Pending* next = nullptr;
  bool (*retry)(void* owner) = nullptr;  // false: still no resources, keep it queued
  void* owner = nullptr;
};

// Threads: any. What waits for one peer is tried in the order queued, and the first that still
// finds no resources ends the round for this peer: a million waiting messages cost no more than
// one.
void retry_later(Pending& pending, const mca_bml_base_endpoint_t* endpoint, bool (*retry)(void*),
                 void* owner);

// Sends a header without payload; never fails, it waits in the queue if it must.
//
// link: the BTL it has to go by (it must not overtake data there), or NULL for any.
void send_control(mca_bml_base_endpoint_t* endpoint, mca_bml_base_btl_t* link, WireTag tag,
                  const void* header, std::size_t bytes);

// One try. False: no resources.
bool try_control(mca_bml_base_btl_t* link, WireTag tag, const void* header, std::size_t bytes);

// Drops what still waits, at finalize.
void discard_pending();

}  // namespace tagline::pml
