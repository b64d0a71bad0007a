// SPDX-License-Identifier: BSD-3-Clause
// All queue structures by name, for whoever makes matchers of them.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "match/matcher.hpp"
#include "queues/adaptive.hpp"
#include "queues/array.hpp"
#include "queues/fuzzy.hpp"
#include "queues/linear.hpp"
#include "queues/source.hpp"
#include "queues/vector.hpp"

namespace tagline {

// What of the matchers is not inlined is compiled once: in configuration.cpp, that of the default
// structure in tagline.cpp, with the calls.
extern template class QueueMatcher<AdaptiveQueue>;
extern template class QueueMatcher<IndexedQueue>;
extern template class QueueMatcher<ArrayQueue>;
extern template class QueueMatcher<VectorQueue>;
extern template class QueueMatcher<FuzzyQueue<std::uint8_t>>;
extern template class QueueMatcher<FuzzyQueue<std::uint16_t>>;
extern template class QueueMatcher<FuzzyQueue<std::uint32_t>>;
extern template class QueueMatcher<SourceQueue>;
extern template class QueueMatcher<LinearQueue>;

// The first one is the default.
inline constexpr const char* kStructures[] = {AdaptiveQueue::kName,
                                              IndexedQueue::kName,
                                              ArrayQueue::kName,
                                              VectorQueue::kName,
                                              FuzzyQueue<std::uint16_t>::kName,
                                              SourceQueue::kName,
                                              LinearQueue::kName};

// make.template operator()<Queue>(parameters) for the structure of that name, which is
// one of them, with the parameters that the text says.
// Throws std::invalid_argument with a sentence if the text is no parameter of it.
template <class Make>
auto with_structure(const std::string& name, const std::string& parameter, Make make) try {
  const auto plain = [&]<class Queue>() {
    return make.template operator()<Queue>(Queue::Parameters::parse(parameter));
  };
  if (name == AdaptiveQueue::kName) return plain.template operator()<AdaptiveQueue>();
  if (name == IndexedQueue::kName) return plain.template operator()<IndexedQueue>();
  if (name == ArrayQueue::kName) return plain.template operator()<ArrayQueue>();
  if (name == VectorQueue::kName) return plain.template operator()<VectorQueue>();
  if (name == SourceQueue::kName) return plain.template operator()<SourceQueue>();
  if (name == LinearQueue::kName) return plain.template operator()<LinearQueue>();
  // The width of a fingerprint is a type.
  const Fingerprints fingerprints = Fingerprints::parse(parameter);
  if (fingerprints.bits == 8) {
    return make.template operator()<FuzzyQueue<std::uint8_t>>(fingerprints);
  }
  if (fingerprints.bits == 16) {
    return make.template operator()<FuzzyQueue<std::uint16_t>>(fingerprints);
  }
  return make.template operator()<FuzzyQueue<std::uint32_t>>(fingerprints);
} catch (const std::invalid_argument& error) {
  throw std::invalid_argument(name + " " + error.what());
}

}  // namespace tagline
