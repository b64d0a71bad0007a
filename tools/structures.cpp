// SPDX-License-Identifier: BSD-3-Clause
#include "structures.hpp"

#include <cstdlib>
#include <stdexcept>

namespace tagline::tools {

std::vector<std::string> structure_names() {
  std::vector<std::string> names;
  for (unsigned i = 0; tagline_queue_name(i) != nullptr; ++i)
    names.emplace_back(tagline_queue_name(i));
  return names;
}

std::vector<std::string> threaded_names() {
  std::vector<std::string> names;
  for (unsigned i = 0; tagline_threading_name(i) != nullptr; ++i) {
    for (const std::string& structure : structure_names()) {
      names.push_back(std::string(tagline_threading_name(i)) + ":" + structure);
      try {
        make_matcher(names.back());
        break;
      } catch (const std::runtime_error&) {
        names.pop_back();  // not every structure can be served in every way
      }
    }
  }
  return names;
}

OwnedMatcher make_matcher(const std::string& queue, const char* isa) {
  for (const char* variable : {"TAGLINE_QUEUE", "TAGLINE_PROFILE", "TAGLINE_TRACE"}) {
    unsetenv(variable);
  }
  tagline_options options = TAGLINE_OPTIONS_DEFAULT;
  options.queue = queue.c_str();
  options.isa = isa;
  tagline_matcher* matcher = nullptr;
  if (tagline_create(&options, &matcher) != TAGLINE_OK) {
    throw std::runtime_error(tagline_error_message());
  }
  return OwnedMatcher(matcher);
}

}  // namespace tagline::tools
