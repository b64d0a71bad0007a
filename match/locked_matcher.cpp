// SPDX-License-Identifier: BSD-3-Clause
#include "match/locked_matcher.hpp"

#include "match/concurrent.hpp"
#include "match/structures.hpp"

tagline_matcher* tagline::make_locked(const std::string& structure, const std::string& parameter,
                                      const std::string& argument, const simd::Kernels& kernels,
                                      const tagline_options& options) {
  const LockKind lock = parse_lock(argument);
  return with_structure(
      structure, parameter,
      [&]<class Queue>(const typename Queue::Parameters& parameters) -> tagline_matcher* {
        return new LockedMatcher<QueueMatcher<Queue>>(lock, parameters, kernels,
                                                      options.pool_bytes, options.first_handle);
      });
}
