// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pthread.h>

#include <stdexcept>

namespace tagline {

// Something this machine, this build or this process's rights do not allow: the
// sentence says what, why, and what to do.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A processing unit (core, or hardware thread of one) by the system's number.
struct ProcessingUnit {
  int number;
  int shared_cache;  // level of the innermost cache shared with the thread asked for, 0: none
};

// The unit for a thread that is to share a cache with the calling thread.
//
//   wanted  its number; negative: the first one, going outwards from the innermost
//           cache, that is neither the calling thread's nor in `used`. Callers that
//           name each other's units in `used` get different ones while there are
//           enough.
//   used    units of others, "0,2-5"; nullptr: none known
//
// Throws Unavailable, or std::invalid_argument for a `used` that is no such list.
ProcessingUnit unit_beside_this_thread(int wanted, const char* used);

// Throws Unavailable if the system does not let us.
void bind_thread(pthread_t thread, const ProcessingUnit& unit);

}  // namespace tagline
