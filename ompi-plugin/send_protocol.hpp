// SPDX-License-Identifier: BSD-3-Clause
// How a message leaves: eager, rendezvous with fragments, or read (Get) or written (Put) directly.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "compat.h"
#include "credit.hpp"
#include "plugin.hpp"
#include "request.hpp"

namespace tagline::pml {

inline constexpr std::uint32_t kFirstPacketFlags =
    MCA_BTL_DES_FLAGS_PRIORITY | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;

// Credit for a packet with so much payload. Always there if memory is not bounded.
inline bool spend_for(mca_bml_base_endpoint_t* endpoint, std::size_t payload) {
  return !plugin.credit || spend(credit_account(endpoint->btl_proc), charge_of(payload));
}

inline void refund_for(mca_bml_base_endpoint_t* endpoint, std::uint64_t charge) {
  if (plugin.credit && charge != 0) refund(credit_account(endpoint->btl_proc), charge);
}

// Whether a packet of so many bytes, header included, leaves at once with a whole message. Between
// two processes of a node that is more than the BTL's eager limit: to copy data into a packet and
// out of it is faster than to tell the receiver where they are and have the kernel copy them, and
// the sender need not wait. To itself a process copies once and directly.
inline bool leaves_at_once(const mca_bml_base_endpoint_t* endpoint,
                           const mca_btl_base_module_t* btl, std::size_t bytes) {
  if (bytes <= btl->btl_eager_limit) [[likely]]
    return true;
  return bytes <=
             std::min<std::size_t>(plugin.parameters.local_eager_limit, btl->btl_max_send_size) &&
         OPAL_PROC_ON_LOCAL_NODE(endpoint->btl_proc->super.proc_flags) && btl != plugin.self_btl;
}

// A packet of so many bytes is about to be sent, one of several: takes its memory back from the
// peer, which has read the packet before and has its lines in its cache. Copying a message into
// them waits for a few lines at a time; asked for all at once they come in half the time.
void take_back_packet(const mca_bml_base_endpoint_t* endpoint, mca_bml_base_btl_t* link,
                      std::size_t bytes);

// Starts a prepared request whose sequence number is set. A BTL without resources is no error:
// the request waits and is tried again.
//
// Returns OMPI_SUCCESS, or an error with the request untouched.
int start(SendRequest& request);

// Queues bytes of the message to be sent as fragments, and sends what the BTLs take.
void send_range(SendRequest& request, Range range);

// A BTL of the endpoint that can move data directly and carries messages as well, first from
// `index` on; NULL if there is none.
mca_bml_base_btl_t* direct_link(mca_bml_base_endpoint_t* endpoint, std::uint32_t flag,
                                std::size_t index);
// Number of those BTLs.
std::size_t direct_link_count(mca_bml_base_endpoint_t* endpoint, std::uint32_t flag);

extern "C" TAGLINE_BTL_CALLBACK(tagline_on_acknowledge);
extern "C" TAGLINE_BTL_CALLBACK(tagline_on_put);
extern "C" TAGLINE_BTL_CALLBACK(tagline_on_get_done);

}  // namespace tagline::pml
