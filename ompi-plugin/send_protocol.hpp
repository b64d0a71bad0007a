// SPDX-License-Identifier: BSD-3-Clause
// How a message leaves: eager, rendezvous with fragments, or read (Get) or written (Put) directly.
#pragma once

#include "compat.h"
#include "request.hpp"

namespace tagline::pml {

// Starts a prepared request whose sequence number is set. A BTL without resources is no error:
// the request waits and is tried again.
//
// Returns OMPI_SUCCESS, or an error with the request untouched.
int start(SendRequest& request);

// One try to put a whole message into a BTL without any request. The data has left the user's
// buffer on success. False: not possible now, or not with this BTL.
bool send_inline(mca_bml_base_endpoint_t* endpoint, const EagerHeader& header, const Layout& layout,
                 const ompi_datatype_t* datatype, std::size_t count);

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
