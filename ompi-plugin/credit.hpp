// SPDX-License-Identifier: BSD-3-Clause
// Bounded memory for unexpected messages (pml_tagline_unexpected_limit), by credit.
//
// What a blocking send has handed over cannot be asked for again, so the receiver must be able to
// keep whatever is on its way. It therefore tells each process in advance how much it may have on
// the way or stored; all these shares together stay below the limit. Payload that may end up stored
// spends credit. A message without credit goes as a rendezvous that carries no payload: its header
// is stored, its sender waits for the receive as it does for a large message. Nobody ever waits for
// credit, so there is nothing to deadlock on, and order is kept by sequence numbers as always.
//
//   sender    spent, allowed        may send while spent + charge <= allowed
//   receiver  consumed, granted     granted - consumed is at most the sender's share
//
// All four only grow, so a Credit message is the new `allowed`, and the largest one counts in
// whatever order they come. Half of the limit is divided among the processes of the job, which know
// their share without being told. The other half goes to those who run out of credit although their
// messages are received, half of what is left at most to each; processes of another job begin with
// none and get theirs from it.
//
// A process without a limit neither spends nor grants; every process of a job has the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compat.h"
#include "wire.hpp"

namespace tagline::pml {

struct Arrival;

// What this process and one other owe each other. Threads: any, each has a lock.
struct CreditAccount;

// Bytes of memory, beside the payload, that a stored message costs at most: its list element, its
// entry in a queue, the allocator's own. Sender and receiver count with the same number.
inline constexpr std::size_t kStoredOverhead = 512;
// Above this much payload and header in a list element the overhead would be more.
inline constexpr unsigned kLargestInline = 128;

inline std::uint64_t charge_of(std::size_t payload_bytes) {
  return payload_bytes + kStoredOverhead;
}

// Credit that the packet's sender has spent on it.
std::uint64_t charge_of(const Arrival& arrival);

// The sender had no credit for the packet's payload.
bool starved(const Arrival& arrival);

// NULL when memory is exhausted: then the peer gets, and spends, no credit.
CreditAccount* credit_account(ompi_proc_t* proc);

// Takes credit for a packet to the peer, all or nothing.
bool spend(CreditAccount* account, std::uint64_t charge);
// Gives back what was not sent after all.
void refund(CreditAccount* account, std::uint64_t charge);

// A packet of the peer is not stored (any more). Grants the peer new credit if that is worth a
// message. `starved`: it came without credit; the peer gets a larger share if there is one.
void consume(CreditAccount* account, std::uint64_t charge, bool starved);

// Once at startup, with the parameters known; then with the number of processes in the job.
void open_credit();
void share_credit(std::uint64_t processes);
// Forgets a peer that is gone, or all of them at the end.
void close_credit_account(ompi_proc_t* proc);
void close_credit();

extern "C" TAGLINE_BTL_CALLBACK(tagline_on_credit);

}  // namespace tagline::pml
