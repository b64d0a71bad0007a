// SPDX-License-Identifier: BSD-3-Clause
// The first packet of a message: in the BTL's buffer while its callback runs, or stored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compat.h"
#include "wire.hpp"

namespace tagline::pml {

struct CreditAccount;

// A view; it dies with the BTL callback or with the StoredArrival it was made from.
struct Arrival {
  mca_btl_base_module_t* btl;              // brought the packet
  WireTag kind;                            // kEager, kRendezvous or kGet
  const mca_btl_base_segment_t* segments;  // the header is in one piece in the first
  std::size_t segment_count;

  template <class Header>
  const Header& header() const {
    return *static_cast<const Header*>(segments[0].seg_addr.pval);
  }
  const EagerHeader& match() const { return header<EagerHeader>(); }

  // Bytes of the message that are in this packet.
  std::size_t payload_bytes() const {
    return kind == kGet ? 0 : bytes_of(segments, segment_count) - header_bytes();
  }

  // Bytes of the whole message.
  std::size_t message_bytes() const {
    return kind == kEager ? payload_bytes() : header<RendezvousHeader>().length;
  }

  std::size_t header_bytes() const {
    switch (kind) {
      case kEager:
        return sizeof(EagerHeader);
      case kRendezvous:
        return sizeof(RendezvousHeader);
      default:
        return sizeof(GetHeader);
    }
  }
};

// A copy of a packet that no receive wants yet. Small ones live behind the item itself, in space
// the free list adds; larger ones on the heap.
struct StoredArrival {
  opal_free_list_item_t item;  // first: the free list's link
  mca_btl_base_module_t* btl;
  WireTag kind;
  CreditAccount* account;          // whose credit it uses up; or NULL
  mca_btl_base_segment_t segment;  // header and payload in one piece
  StoredArrival* next;             // used by whoever holds it

  Arrival view() const { return {btl, kind, &segment, 1}; }
};

// Keeps a copy until discard(), and as long the credit that the sender has spent on it. NULL when
// memory is exhausted. Threads: any.
StoredArrival* store(const Arrival& arrival, CreditAccount* account);
void discard(StoredArrival* stored);

// Bytes a free list element needs for parameters.unexpected_inline.
std::size_t stored_arrival_bytes();
opal_class_t* stored_arrival_class();

// BTL callbacks for the three kinds.
extern "C" TAGLINE_BTL_CALLBACK(tagline_on_eager);
extern "C" TAGLINE_BTL_CALLBACK(tagline_on_rendezvous);
extern "C" TAGLINE_BTL_CALLBACK(tagline_on_get);

// Matches and delivers or queues one first packet, as if it had just come in. Ordered by the
// sender's sequence number; a packet ahead of its turn is kept until its turn comes.
void handle_arrival(const Arrival& arrival);

// The context id is from now on another communicator's, or none's.
void forget_latest(std::uint32_t context);

}  // namespace tagline::pml
