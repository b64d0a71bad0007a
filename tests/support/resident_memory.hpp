// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unistd.h>

#include <cstddef>
#include <fstream>

#include "tests/support/effort.hpp"

namespace tagline::test {

// Sanitizers and emulators have books of their own: then these numbers tell nothing.
inline constexpr bool kResidentBytesTell = TAGLINE_TEST_EFFORT == 100;

// Memory of this process that is really there (VmRSS).
inline std::size_t resident_bytes() {
  std::size_t all_pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> all_pages >> resident_pages;
  return resident_pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace tagline::test
