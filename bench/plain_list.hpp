// SPDX-License-Identifier: BSD-3-Clause
//
// The least that matching by lists can cost: what `linear` is measured against.
// Two doubly linked lists threaded through the caller's own requests, one request
// per cache line; no pool, no statistics, one structure and no choice.
#pragma once

#include "comparator.hpp"

namespace bench {

tagline_matcher* make_plain_list();

}  // namespace bench
