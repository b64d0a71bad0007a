// SPDX-License-Identifier: BSD-3-Clause
//
// A bare hash table from (source, tag) to a cookie: the limit of what any engine
// can reach that looks a key up. It is no matcher: no wildcards, no two entries
// with the same key, no contexts.
#pragma once

#include "comparator.hpp"

namespace bench {

tagline_matcher* make_exact_hash();

}  // namespace bench
