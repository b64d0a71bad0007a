// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "match/tagline.h"

namespace tagline::tools {

struct DestroyMatcher {
  void operator()(tagline_matcher* matcher) const { tagline_destroy(matcher); }
};
using OwnedMatcher = std::unique_ptr<tagline_matcher, DestroyMatcher>;

// Every queue structure of the library, in its order: the default first.
std::vector<std::string> structure_names();

// The default structure, else the first that it has, behind every way to serve threads.
std::vector<std::string> threaded_names();

// Throws std::runtime_error with the library's sentence. Environment variables that choose
// something else do not count.
OwnedMatcher make_matcher(const std::string& queue, const char* isa = nullptr);

}  // namespace tagline::tools
