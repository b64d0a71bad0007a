// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "match/matcher.hpp"

namespace tagline {

// A queue structure that a matcher can be made of.
struct Structure {
  const char* name;
  tagline_matcher* (*create)(const simd::Kernels& kernels, std::size_t pool_bytes,
                             std::uint64_t first_handle);
};

// By index, nullptr behind the last; the first one is the default.
const Structure* structure(unsigned index) noexcept;

struct Configuration {
  const Structure* structure = nullptr;
  const simd::Kernels* kernels = nullptr;
};

// What the environment (TAGLINE_QUEUE, TAGLINE_ISA), else the options, else the
// defaults ask for. Throws std::invalid_argument with a sentence that lists the
// valid names.
Configuration configure(const tagline_options& options);

}  // namespace tagline
