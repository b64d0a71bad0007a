// SPDX-License-Identifier: BSD-3-Clause
// How a matched message comes in.
#pragma once

#include "arrival.hpp"
#include "compat.h"
#include "request.hpp"

namespace tagline::pml {

// The request has been matched with the message: fills in its status, takes the data that is
// there and asks for the rest. The request may be finished, and gone, on return. Holds no lock.
void deliver(ReceiveRequest& request, const Arrival& arrival);

extern "C" TAGLINE_BTL_CALLBACK(tagline_on_fragment);
extern "C" TAGLINE_BTL_CALLBACK(tagline_on_put_done);

}  // namespace tagline::pml
