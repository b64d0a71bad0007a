// SPDX-License-Identifier: BSD-3-Clause
// What the component keeps per communicator: one matcher, the lock that keeps arrivals
// in order, and a little per peer.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>

#include "arrival.hpp"
#include "compat.h"
#include "match/locks.hpp"
#include "match/tagline.h"
#include "peer_table.hpp"
#include "plugin.hpp"

namespace tagline::pml {

struct CommunicatorState {
  ompi_communicator_t* comm = nullptr;
  tagline_matcher* matcher = nullptr;
  std::uint32_t context_id = 0;
  PeerTable peers;
  // Guards changes of Peer::arrived, and held, and keeps numbered messages in order on their way to
  // the matcher, which has locks of its own if there are several threads. Held no longer than a
  // match takes. Its line is not that of what every call reads.
  alignas(kCacheLine) SpinLock arrival_lock;
  // Packets ahead of their turn by rank and sequence number: links of different speed, or a
  // sender whose first try found no resources.
  std::unordered_map<std::uint64_t, StoredArrival*> held;
  // By the side that was searched; counted if the user asked for it. In a line of its own again.
  alignas(kCacheLine) std::atomic<std::uint64_t> match_nanoseconds[2] = {};
  CommunicatorState* next = nullptr;   // of all communicators, see observe.cpp
  CommunicatorState** link = nullptr;  // what points to this one
};

// By context id; NULL: not known, or not yet. Open MPI has such a table as well, with one lock
// for all threads. As many as Open MPI's collectives and windows are used to; what nobody uses
// of it takes no memory.
inline constexpr std::uint32_t kContexts = 65536;
extern std::atomic<CommunicatorState*> communicators[kContexts];

// That of a packet. Its flags, and what no sender of ours writes, are cut off.
inline std::atomic<CommunicatorState*>& communicator_of(std::uint32_t context) {
  return communicators[context % kContexts];
}

inline CommunicatorState* state_of(const ompi_communicator_t* comm) {
  return reinterpret_cast<CommunicatorState*>(comm->c_pml_comm);
}

// What a receive or probe asks for, in the engine's words.
inline tagline_envelope envelope_of(const CommunicatorState& state, int source, int tag) {
  return {state.context_id, source == OMPI_ANY_SOURCE ? TAGLINE_ANY_SOURCE : source,
          tag == OMPI_ANY_TAG ? TAGLINE_ANY_TAG : tag};
}

// MPI error class of a matcher status that is an error.
inline int error_of(tagline_status status) {
  return status == TAGLINE_NO_MEMORY ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_ERR_BAD_PARAM;
}

// The peer's BML endpoint, connected on first use; NULL when it cannot be reached.
inline mca_bml_base_endpoint_t* endpoint_of(ompi_communicator_t* comm, int rank) {
  ompi_proc_t* proc = ompi_comm_peer_lookup(comm, rank);
  return proc == nullptr ? nullptr : mca_bml_base_get_endpoint(proc);
}

// What is known of a communicator when its matcher is made, see tagline_options.
struct MatcherUse {
  bool threads = false;
  int ranks = 0;
  unsigned hints = 0;
};

// A matcher with the user's parameters. On failure tagline_error_message() says why.
tagline_status create_matcher(tagline_matcher** matcher, const MatcherUse& use);

extern "C" int tagline_add_comm(ompi_communicator_t* comm);
extern "C" int tagline_del_comm(ompi_communicator_t* comm);

// Keeps a packet for a communicator that this process does not know yet. False if the
// communicator has appeared meanwhile: handle the packet now.
bool keep_early(const Arrival& arrival);
void discard_early();

}  // namespace tagline::pml
