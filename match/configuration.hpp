// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "match/operations.hpp"

namespace tagline {

// A queue structure that a matcher can be made of, by index; the first one is
// the default. nullptr behind the last.
const char* structure_name(unsigned index) noexcept;

// Ways to serve several threads, and locks; likewise.
const char* threading_name(unsigned index) noexcept;
const char* lock_name(unsigned index) noexcept;

// A matcher of what the environment (TAGLINE_QUEUE, TAGLINE_ISA), else the
// options, else a profile, else the defaults ask for. A queue is named "structure" or
// "structure:parameter", with "threading:" or "threading@argument:" in front or not. Throws
// std::invalid_argument with a sentence that lists what is valid, or std::bad_alloc.
tagline_matcher* make_matcher(const tagline_options& options);

}  // namespace tagline
