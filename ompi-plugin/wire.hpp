// SPDX-License-Identifier: BSD-3-Clause
// Headers on the wire, in native byte order. One BTL tag per kind, so a header carries no type.
//
//   Eager        the whole message follows the header
//   Rendezvous   the first bytes follow; the receiver answers with Acknowledge or Put
//   Get          nothing follows; the receiver reads from the sender's memory, answers with
//                GetDone, or asks with Acknowledge for what it could not read
//   Acknowledge  receiver to sender: send this range as Fragments
//   Fragment     one piece of a range
//   Put          receiver to sender: write this range into my memory, answer with PutDone
//   Credit       receiver to sender, about all its messages: see credit.hpp
//
// Addresses of requests travel as opaque 64-bit numbers and come back unchanged.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compat.h"

namespace tagline::pml {

enum WireTag : mca_btl_base_tag_t {
  kEager = MCA_BTL_TAG_PML + 1,
  kRendezvous,
  kGet,
  kAcknowledge,
  kFragment,
  kPut,
  kGetDone,
  kPutDone,
  kCredit,
};

// Set in EagerHeader::context when the sender's communicator permits overtaking, or the message
// arrives before the call that sends it returns: it has no sequence number and is matched as it
// arrives.
inline constexpr std::uint32_t kUnordered = 1u << 31;

struct EagerHeader {
  std::uint32_t context;
  std::int32_t source;     // sender's rank
  std::int32_t tag;        // negative: collective traffic
  std::uint32_t sequence;  // counts this sender's messages with a number
};
static_assert(sizeof(EagerHeader) == 16, "with 8 bytes of payload it fills half a line in vader");

enum RendezvousFlags : std::uint64_t {
  kContiguous = 1,  // the sender's data is one piece of memory, so Put is possible
  kStarved = 2,     // for want of credit the sender has left out payload
  kWaiting = 4,     // the sender stays inside MPI until it is rid of the message
};

struct RendezvousHeader {
  EagerHeader match;
  std::uint64_t length;  // bytes of the whole message
  std::uint64_t send_request;
  std::uint64_t flags;
};

struct GetHeader {
  RendezvousHeader rendezvous;
  std::uint64_t address;  // sender's memory
  // The BTL's registration handle of that memory follows (btl_registration_handle_size bytes).
};

enum ReplyFlags : std::uint64_t {
  kFirstReply = 1,  // tells a rendezvous sender that its message is matched; sent exactly once
};

struct AcknowledgeHeader {
  std::uint64_t send_request;
  std::uint64_t receive_request;
  std::uint64_t offset;  // bytes into the packed message
  std::uint64_t length;  // bytes; 0: nothing to send
  std::uint64_t flags;
};

struct FragmentHeader {
  std::uint64_t receive_request;
  std::uint64_t offset;  // bytes into the packed message
};

struct PutHeader {
  std::uint64_t send_request;
  std::uint64_t receive_request;
  std::uint64_t transfer;  // comes back in PutDone
  std::uint64_t offset;    // bytes into the packed message
  std::uint64_t length;    // bytes
  std::uint64_t address;   // receiver's memory
  std::uint64_t flags;
  // The BTL's registration handle of that memory follows (btl_registration_handle_size bytes).
};

struct DoneHeader {
  std::uint64_t cookie;  // GetDone: the send request; PutDone: the transfer
  std::uint64_t bytes;   // PutDone: 0 tells that the range comes as Fragments instead
};

struct CreditHeader {
  std::uint64_t process;  // whose receiver speaks: job and rank
  std::uint64_t allowed;  // bytes of charges that the sender may have spent in all
};

// Bytes of a packet, its header included.
inline std::size_t bytes_of(const mca_btl_base_segment_t* segments, std::size_t count) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes += segments[i].seg_len;
  return bytes;
}

// A BTL whose eager limit cannot carry every header is of no use to the component.
inline constexpr std::size_t kLargestHeader = sizeof(PutHeader);
static_assert(kLargestHeader >= sizeof(GetHeader));

}  // namespace tagline::pml
