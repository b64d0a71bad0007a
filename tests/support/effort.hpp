// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

// Per cent of the work, where every access is checked or every instruction
// emulated; the build sets it.
#ifndef TAGLINE_TEST_EFFORT
#define TAGLINE_TEST_EFFORT 100
#endif

namespace tagline::test {

// So many seeds, entries or rounds of a test that need not be just that many.
constexpr int effort(int full) { return std::max(1, full * TAGLINE_TEST_EFFORT / 100); }

}  // namespace tagline::test
