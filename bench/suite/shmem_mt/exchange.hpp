// SPDX-License-Identifier: BSD-3-Clause
//
// The mini-applications' exchange over OpenSHMEM: a thread per neighbour packs and puts;
// after the join the parent waits until all has come (quiet), then sets a counter at
// each neighbour and waits for its own ones.
#pragma once

#include "../miniapps/exchange.hpp"

namespace suite::shmem_mt {

// All PEs together; `capacity` is the most numbers of any link on any PE.
std::unique_ptr<miniapps::Exchange> make_exchange(const Session& session,
                                                  std::vector<miniapps::Link> links,
                                                  std::size_t capacity);

}  // namespace suite::shmem_mt
