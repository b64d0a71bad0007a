// SPDX-License-Identifier: BSD-3-Clause
//
// Matching by a fixed number of hash bins, as UCX does it: each bin is a list of
// entries in order. Receives with a wildcard wait in one list of their own and
// are merged with the bins by a sequence number; a receive with a wildcard
// searches the messages of all bins in the order they arrived.
#pragma once

#include "comparator.hpp"

namespace bench {

tagline_matcher* make_hash_bins();

}  // namespace bench
