// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "match/operations.hpp"

namespace tagline {

// The matcher itself, or where TAGLINE_TRACE names a folder a matcher around it that
// records every operation in the order in which it takes place: one trace per process,
// DIRECTORY/matching-HOST-PROCESS.tagtrace, of at most TAGLINE_TRACE_LIMIT MiB. A trace
// that cannot be written is said on stderr once, and nothing is recorded. A matcher for
// several threads serves them one at a time while it is recorded.
tagline_matcher* recorded(tagline_matcher* matcher, tagline_handle first_handle);

}  // namespace tagline
