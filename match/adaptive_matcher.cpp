// SPDX-License-Identifier: BSD-3-Clause
// The matcher of the default structure, by itself: what nearly every call of it runs through is
// then side by side.
#include "match/structures.hpp"

// And from the beginning of a page on, as what receives and messages take fills two: with cold
// caches each page of code costs a walk through the table of pages. 128: GCC 12 then has
// post_receive() begin the second one. Nothing but time depends on it.
#if defined(__ELF__)
asm(".section .text.hot.0,\"ax\",%progbits\n"
    ".p2align 12\n"
    ".fill 128, 1, 0\n"
    ".text");
#endif

namespace tagline {

template class QueueMatcher<AdaptiveQueue>;

}  // namespace tagline
