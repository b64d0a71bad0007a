// SPDX-License-Identifier: BSD-3-Clause
// One read from or write to a peer's memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compat.h"
#include "pending.hpp"

namespace tagline::pml {

// Receiver: a Get it does itself, or a Put it asked for. Sender: a Put it does for the receiver.
struct RemoteTransfer {
  opal_free_list_item_t item;  // first: the free list's link
  Pending pending;
  void* request;  // SendRequest or ReceiveRequest
  mca_bml_base_btl_t* link;
  unsigned char* local;
  std::uint64_t remote;
  std::uint64_t offset;         // bytes into the packed message
  std::uint64_t length;         // bytes to move
  std::uint64_t counted;        // bytes to account for; more than length if the rest is cut off
  std::uint64_t peer_transfer;  // sender's Put: the receiver's transfer, for PutDone
  mca_btl_base_registration_handle_t* registration;  // of the local memory
  unsigned char remote_handle[MCA_BTL_REG_HANDLE_MAX_SIZE];
};

// NULL when memory is exhausted. Fields are not initialised, but for registration: NULL.
RemoteTransfer* allocate_transfer();
// Also gives up the registration.
void free_transfer(RemoteTransfer* transfer);

}  // namespace tagline::pml
