// SPDX-License-Identifier: BSD-3-Clause
#include "match/configuration.hpp"

#include <cstdlib>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>

#include "queues/adaptive.hpp"
#include "queues/array.hpp"
#include "queues/fuzzy.hpp"
#include "queues/linear.hpp"
#include "queues/source.hpp"
#include "queues/vector.hpp"

namespace tagline {

namespace {

struct Structure {
  const char* name;
  tagline_matcher* (*make)(const std::string& parameter, const simd::Kernels& kernels,
                           const tagline_options& options);
};

template <class Queue>
tagline_matcher* make(const typename Queue::Parameters& parameters, const simd::Kernels& kernels,
                      const tagline_options& options) {
  return new QueueMatcher<Queue>(parameters, kernels, options.pool_bytes, options.first_handle);
}

template <class Queue>
constexpr Structure structure_of() {
  return {Queue::kName, [](const std::string& parameter, const simd::Kernels& kernels,
                           const tagline_options& options) {
            return make<Queue>(Queue::Parameters::parse(parameter), kernels, options);
          }};
}

// The width of a fingerprint is a type.
tagline_matcher* make_fuzzy(const std::string& parameter, const simd::Kernels& kernels,
                            const tagline_options& options) {
  const Fingerprints fingerprints = Fingerprints::parse(parameter);
  const auto make_chosen = fingerprints.bits == 8    ? make<FuzzyQueue<std::uint8_t>>
                           : fingerprints.bits == 16 ? make<FuzzyQueue<std::uint16_t>>
                                                     : make<FuzzyQueue<std::uint32_t>>;
  return make_chosen(fingerprints, kernels, options);
}

constexpr Structure kStructures[] = {structure_of<AdaptiveQueue>(),
                                     structure_of<IndexedQueue>(),
                                     structure_of<ArrayQueue>(),
                                     structure_of<VectorQueue>(),
                                     {FuzzyQueue<std::uint16_t>::kName, make_fuzzy},
                                     structure_of<SourceQueue>(),
                                     structure_of<LinearQueue>()};

const Structure* structure(unsigned index) noexcept {
  return index < std::size(kStructures) ? &kStructures[index] : nullptr;
}

const char* name_of(const Structure& structure) { return structure.name; }
const char* name_of(const simd::Kernels& kernels) { return kernels.isa; }

// What a user asked for, and where.
struct Wish {
  std::string text;    // empty: no wish
  std::string origin;  // " in VARIABLE", empty if an option said so
};

Wish wish(const char* option, const char* variable) {
  const char* from_environment = std::getenv(variable);
  if (from_environment != nullptr && *from_environment != '\0') {
    return {from_environment, std::string(" in ").append(variable)};
  }
  return {option == nullptr ? "" : option, ""};
}

// The entry of a catalogue (index -> pointer, nullptr behind the last) that has
// the name; the first one for no name.
template <class Catalogue>
const auto& choose(Catalogue catalogue, const std::string& name, const Wish& wish,
                   const char* what) {
  if (name.empty()) return *catalogue(0);
  std::string names;
  for (unsigned i = 0; const auto* entry = catalogue(i); ++i) {
    if (name == name_of(*entry)) return *entry;
    if (i > 0) names.append(", ");
    names.append(name_of(*entry));
  }
  throw std::invalid_argument(std::string("unknown ")
                                  .append(what)
                                  .append(" \"")
                                  .append(name)
                                  .append("\"")
                                  .append(wish.origin)
                                  .append(": valid here are ")
                                  .append(names));
}

}  // namespace

const char* structure_name(unsigned index) noexcept {
  const Structure* entry = structure(index);
  return entry == nullptr ? nullptr : entry->name;
}

tagline_matcher* make_matcher(const tagline_options& options) {
  const Wish isa = wish(options.isa, "TAGLINE_ISA");
  const simd::Kernels& kernels = choose(simd::available_kernels, isa.text, isa, "instruction set");

  const Wish queue = wish(options.queue, "TAGLINE_QUEUE");
  const std::size_t colon = queue.text.find(':');
  const Structure& chosen =
      choose(structure, queue.text.substr(0, colon), queue, "queue structure");
  const std::string parameter = colon == std::string::npos ? "" : queue.text.substr(colon + 1);
  try {
    std::unique_ptr<tagline_matcher> matcher(chosen.make(parameter, kernels, options));
    matcher->queue_name = queue.text;
    if (queue.text.empty()) matcher->queue_name = chosen.name;
    return matcher.release();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string("queue \"")
                                    .append(queue.text)
                                    .append("\"")
                                    .append(queue.origin)
                                    .append(": ")
                                    .append(chosen.name)
                                    .append(" ")
                                    .append(error.what()));
  }
}

}  // namespace tagline
