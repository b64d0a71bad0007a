// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

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
  tagline_options options() const { return {queue.c_str(), isa.c_str(), 0, 0}; }
  std::string name() const { return std::string(queue).append("_").append(isa); }
  friend void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name(); }
};

inline std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  for (unsigned q = 0; tagline_queue_name(q) != nullptr; ++q) {
    for (unsigned i = 0; tagline_isa_name(i) != nullptr; ++i) {
      variants.push_back({tagline_queue_name(q), tagline_isa_name(i)});
    }
  }
  return variants;
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
