// SPDX-License-Identifier: BSD-3-Clause
#include "match/sharded_matcher.hpp"

#include <bit>
#include <charconv>
#include <stdexcept>

#include "match/concurrent.hpp"
#include "match/structures.hpp"

namespace tagline {
namespace {

constexpr std::size_t kMostShards = Shards<LinearQueue>::kMostShards;

// "": as it turns out, 0.
std::size_t parse_shards(const std::string& text) {
  if (text.empty()) return 0;
  std::size_t shards = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, shards);
  if (error != std::errc{} || rest != end || shards == 0 || shards > kMostShards ||
      !std::has_single_bit(shards)) {
    throw std::invalid_argument("\"" + text +
                                "\" behind @ is no number of shards: a power of 2 up to " +
                                std::to_string(kMostShards));
  }
  return shards;
}

}  // namespace

tagline_matcher* make_sharded(const std::string& structure, const std::string& parameter,
                              const std::string& argument, const simd::Kernels& kernels,
                              const tagline_options& options) {
  const std::size_t shards = parse_shards(argument);
  return with_structure(
      structure, parameter,
      [&]<class Queue>(const typename Queue::Parameters& parameters) -> tagline_matcher* {
        return new ShardedMatcher<Queue>(parameters, kernels, options, shards);
      });
}

}  // namespace tagline
