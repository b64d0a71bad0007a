// SPDX-License-Identifier: BSD-3-Clause
//
// A bare hash table from (source, tag) to a cookie: the limit of what any engine
// can reach that looks a key up. It is no matcher: no wildcards, no two entries
// with the same key, no contexts, so a slot takes 16 bytes.
//
// With slots of 32 bytes, laid out, sized and found as those of KeyTable, it is the limit of an
// engine that keeps a sequence number and a list with each key.
#pragma once

#include "comparator.hpp"

namespace bench {

tagline_matcher* make_exact_hash();
tagline_matcher* make_exact_hash_of_32_bytes();

}  // namespace bench
