// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "match/tagline.h"

namespace tagline::test {

// A queue structure on an instruction set; tests run once for each.
struct Variant {
  std::string queue;
  std::string isa;
  tagline_options options() const { return {queue.c_str(), isa.c_str(), 0, 0, 0, nullptr, 0, 0}; }
  std::string name() const {
    std::string text = std::string(queue).append("_").append(isa);
    std::replace(text.begin(), text.end(), ':', '_');
    std::replace(text.begin(), text.end(), '@', '_');
    return text;
  }
  friend void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name(); }
};

// Every structure by its name alone, and the parameters that make a difference.
inline std::vector<std::string> all_queues() {
  std::vector<std::string> queues;
  for (unsigned q = 0; tagline_queue_name(q) != nullptr; ++q)
    queues.push_back(tagline_queue_name(q));
  for (const char* queue :
       {"array:4", "array:64", "array:1024", "fuzzy:8", "fuzzy:32", "fuzzy:8:tag4:source4",
        "fuzzy:16:tag8:source8", "fuzzy:32:tag8:source24", "fuzzy:16:tag1:source0"}) {
    queues.push_back(queue);
  }
  return queues;
}

// Structures that use no kernel run on one instruction set.
inline bool uses_kernels(const std::string& queue) {
  return queue != "linear" && queue != "source" && queue.substr(0, 5) != "array";
}

inline std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  for (const std::string& queue : all_queues()) {
    for (unsigned i = 0; tagline_isa_name(i) != nullptr; ++i) {
      if (i == 0 || uses_kernels(queue)) variants.push_back({queue, tagline_isa_name(i)});
    }
  }
  return variants;
}

// The matchers for several threads, which one thread may use as well: every way, every
// lock, shards by number and as it turns out, and structures of each kind.
inline std::vector<std::string> threaded_queues() {
  return {"locked:adaptive",      "locked@mcs:linear",    "locked@ticket:vector",
          "locked@patient:fuzzy", "locked@mutex:source",  "tail:linear",
          "tail@mcs:adaptive",    "tail@ticket:fuzzy:8",  "tail@mutex:array",
          "binned:linear",        "binned@mcs:linear",    "sharded:adaptive",
          "sharded@1:linear",     "sharded@4:vector",     "sharded@16:indexed",
          "sharded@64:linear",    "sharded@1024:adaptive"};
}

inline std::vector<Variant> threaded_variants() {
  std::vector<Variant> variants;
  for (const std::string& queue : threaded_queues()) {
    variants.push_back({queue, tagline_isa_name(0)});
  }
  return variants;
}

inline bool is_threaded(const std::string& queue) {
  const std::string first = queue.substr(0, queue.find_first_of("@:"));
  for (unsigned i = 0; tagline_threading_name(i) != nullptr; ++i) {
    if (first == tagline_threading_name(i)) return true;
  }
  return false;
}

inline std::string variant_name(const testing::TestParamInfo<Variant>& info) {
  return info.param.name();
}

struct Destroy {
  void operator()(tagline_matcher* matcher) const { tagline_destroy(matcher); }
};
using MatcherPointer = std::unique_ptr<tagline_matcher, Destroy>;

inline MatcherPointer make_matcher(const tagline_options& options) {
  tagline_matcher* matcher = nullptr;
  EXPECT_EQ(tagline_create(&options, &matcher), TAGLINE_OK) << tagline_error_message();
  return MatcherPointer(matcher);
}

}  // namespace tagline::test
