// SPDX-License-Identifier: BSD-3-Clause
#include "match/configuration.hpp"

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "queues/linear.hpp"
#include "queues/vector.hpp"

namespace tagline {

namespace {

template <class Queue>
constexpr Structure structure_of() {
  return {Queue::kName,
          [](const simd::Kernels& kernels, std::size_t pool_bytes,
             std::uint64_t first_handle) -> tagline_matcher* {
            return new QueueMatcher<Queue>(kernels, pool_bytes, first_handle);
          }};
}

constexpr Structure kStructures[] = {structure_of<VectorQueue>(), structure_of<LinearQueue>()};

const char* name_of(const Structure& structure) { return structure.name; }
const char* name_of(const simd::Kernels& kernels) { return kernels.isa; }

// The entry of a catalogue (index -> pointer, nullptr behind the last) that the
// environment or the option names; the first one if neither does.
template <class Catalogue>
auto choose(Catalogue catalogue, const char* option, const char* variable, const char* what) {
  const char* from_environment = std::getenv(variable);
  const bool overridden = from_environment != nullptr && *from_environment != '\0';
  const char* wanted = overridden ? from_environment : option;
  if (wanted == nullptr || *wanted == '\0') return catalogue(0);
  std::string names;
  for (unsigned i = 0; const auto* entry = catalogue(i); ++i) {
    if (std::strcmp(name_of(*entry), wanted) == 0) return entry;
    if (i > 0) names += ", ";
    names += name_of(*entry);
  }
  std::string sentence = "unknown ";
  sentence.append(what).append(" \"").append(wanted).append("\"");
  if (overridden) sentence.append(" in ").append(variable);
  throw std::invalid_argument(sentence.append(": valid here are ").append(names));
}

}  // namespace

const Structure* structure(unsigned index) noexcept {
  return index < std::size(kStructures) ? &kStructures[index] : nullptr;
}

Configuration configure(const tagline_options& options) {
  return {choose(structure, options.queue, "TAGLINE_QUEUE", "queue structure"),
          choose(simd::available_kernels, options.isa, "TAGLINE_ISA", "instruction set")};
}

}  // namespace tagline
