// SPDX-License-Identifier: BSD-3-Clause
// How a matched message comes in.
#pragma once

#include <algorithm>
#include <cstring>

#include "arrival.hpp"
#include "compat.h"
#include "request.hpp"

namespace tagline::pml {

// The request has been matched with the message: fills in its status, takes the data that is
// there and asks for the rest. The request may be finished, and gone, on return. Holds no lock.
void deliver(ReceiveRequest& request, const Arrival& arrival);

// memcpy for what is mostly a few bytes.
inline void copy(unsigned char* to, const unsigned char* from, std::size_t bytes) {
  if (bytes > 16) {
    std::memcpy(to, from, bytes);
  } else if (bytes == 16) {
    // By one store: who sends it on reads all of it at once, and from two stores could not
    // before both have reached the cache, behind others that wait for the peer's lines.
    std::memcpy(to, from, 16);
  } else if (bytes >= 8) {
    std::uint64_t first;
    std::uint64_t last;
    std::memcpy(&first, from, 8);
    std::memcpy(&last, from + bytes - 8, 8);
    std::memcpy(to, &first, 8);
    std::memcpy(to + bytes - 8, &last, 8);
  } else if (bytes >= 4) {
    std::uint32_t first;
    std::uint32_t last;
    std::memcpy(&first, from, 4);
    std::memcpy(&last, from + bytes - 4, 4);
    std::memcpy(to, &first, 4);
    std::memcpy(to + bytes - 4, &last, 4);
  } else {
    for (std::size_t i = 0; i < bytes; ++i) to[i] = from[i];
  }
}

// Where the message is from, and what lies behind its header.
inline void take_data(ReceiveRequest& request, const EagerHeader& header, std::size_t bytes) {
  ompi_status_public_t& status = request.ompi().req_status;
  status.MPI_SOURCE = header.source;
  status.MPI_TAG = header.tag;
  copy(request.layout.memory, reinterpret_cast<const unsigned char*>(&header + 1), bytes);
}

// deliver() for the packet that matters most: eager, in one piece, into contiguous memory.
// False: not such a packet, nothing done.
inline bool deliver_plain(ReceiveRequest& request, const Arrival& arrival) {
  if (arrival.kind != kEager || arrival.segment_count != 1 || !request.layout.contiguous) {
    return false;
  }
  const EagerHeader& header = arrival.match();
  request.message_bytes = arrival.segments[0].seg_len - sizeof(EagerHeader);
  take_data(request, header, std::min(request.message_bytes, request.layout.bytes));
  finish(request);
  return true;
}
// The same where there are not several threads, for a message that fits.
inline bool deliver_alone(ReceiveRequest& request, const EagerHeader& header, std::size_t bytes) {
  if (bytes > request.layout.bytes || !request.layout.contiguous) [[unlikely]]
    return false;
  take_data(request, header, bytes);
  finish_alone(request, bytes);
  return true;
}

extern "C" TAGLINE_BTL_CALLBACK(tagline_on_fragment);
extern "C" TAGLINE_BTL_CALLBACK(tagline_on_put_done);

}  // namespace tagline::pml
