// SPDX-License-Identifier: BSD-3-Clause
// pml_tagline_hot_cache: a heater for the matchers of this process (see the library's
// contract), awake while there is communication.
#pragma once

#include <cstddef>

#include "compat.h"
#include "match/tagline.h"
#include "plugin.hpp"

namespace tagline::pml {

// Tells the other ranks of the machine, before Open MPI exchanges what components publish,
// which processing units this one may use.
void publish_units();

// The heater, beside the calling thread and on none of the units of these processes. Where there
// can be none it says so and matching goes on without.
void start_heater(ompi_proc_t** procs, std::size_t count);
void stop_heater();

// The matcher's memory stays hot as long as it lives.
void keep_hot(tagline_matcher* matcher);

// Wakes it, unless pml_tagline_hot_cache_paused says that it is to pause. Wants a heater.
void say_communication();

// Whoever posts a receive calls this; progress, with which messages come, does by itself. Without
// a heater it is one look at a line in use anyway.
inline void wake_heater() {
  if (plugin.heater != nullptr) [[unlikely]]
    say_communication();
}

}  // namespace tagline::pml
