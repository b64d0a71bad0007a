// SPDX-License-Identifier: BSD-3-Clause
#include "match/tail_queue_matcher.hpp"

#include <stdexcept>

#include "match/concurrent.hpp"
#include "match/structures.hpp"

namespace tagline {

tagline_matcher* make_tail_queues(const std::string& structure, const std::string& parameter,
                                  const std::string& argument, const simd::Kernels& kernels,
                                  const tagline_options& options) {
  const LockKind lock = parse_lock(argument);
  return with_structure(
      structure, parameter,
      [&]<class Queue>(const typename Queue::Parameters& parameters) -> tagline_matcher* {
        return new TailQueueMatcher<Queue, false>(parameters, kernels, options, lock);
      });
}

// Bins divide the work of a search from the front; other structures have none to divide.
tagline_matcher* make_binned_tail_queues(const std::string& structure, const std::string& parameter,
                                         const std::string& argument, const simd::Kernels& kernels,
                                         const tagline_options& options) {
  const LockKind lock = parse_lock(argument);
  if (structure != LinearQueue::kName) {
    throw std::invalid_argument("only a list has bins: \"binned:linear\", or \"tail:" + structure +
                                "\" without them");
  }
  return new TailQueueMatcher<LinearQueue, true>(LinearQueue::Parameters::parse(parameter), kernels,
                                                 options, lock);
}

}  // namespace tagline
