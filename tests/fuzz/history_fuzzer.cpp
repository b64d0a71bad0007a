// SPDX-License-Identifier: BSD-3-Clause
//
// libFuzzer target: any bytes are a history of calls, which every queue structure
// plays side by side with the model. A difference, a sanitizer's complaint or a
// pool beyond its limit ends the run; the input that did it is left in a file.
//
//   header   4 bytes: memory limit, its size, instruction set and shape, first handle
//   calls    2 bytes each: kind, wildcards and context; source and tag
//            + 1 byte for a cancel (which receive)
//            + 2 bytes for a burst (how many, how the envelopes go on)
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "tests/support/all_matchers.hpp"
#include "tests/support/players.hpp"

namespace tagline::test {
namespace {

using Kind = Operation::Kind;

constexpr int kContexts = 3;
constexpr std::size_t kMostCalls = 2000;  // the model is quadratic

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : next_(data), end_(data + size) {}
  bool empty() const { return next_ == end_; }
  std::uint8_t take() { return empty() ? 0 : *next_++; }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* end_;
};

struct Input {
  std::size_t pool_bytes;  // 0: no limit
  unsigned isa;
  bool few_keys;  // so that bursts pile up equal ones
  std::uint64_t first_handle;
};

Input take_input(Bytes& bytes) {
  const unsigned limit = bytes.take();
  const unsigned size = bytes.take();
  const unsigned shape = bytes.take();
  const unsigned handle = bytes.take();
  Input input{};
  // Three of four inputs have all the memory they want: limits end long queues.
  if (limit % 4 == 3) input.pool_bytes = 1 + size * (limit >= 128 ? 256 : 64);
  input.isa = shape & 7;
  input.few_keys = (shape & 8) != 0;
  if (handle != 0) input.first_handle = std::numeric_limits<std::uint64_t>::max() - 4 * handle;
  return input;
}

// Small numbers, and those whose bits betray a comparison that skips some.
constexpr std::int32_t kSources[] = {0, 1, 2, 3, 0x100, 0x10000, 0x1000000, INT32_MAX};
constexpr std::int32_t kTags[] = {
    0,     1,     2,       3,       4,         5,         6,          7,
    8,     9,     10,      11,      12,        13,        14,         15,
    0x100, 0x200, 0x10000, 0x20000, 0x1000000, INT32_MAX, 0x7f000000, 0x7fff0000,
    -1,    -2,    -3,      -0x100,  -0x10000,  -0x10001,  -INT32_MAX, -0x1000000,
};
static_assert(std::size(kSources) == 8 && std::size(kTags) == 32);

tagline_envelope message_envelope(unsigned context, unsigned source_and_tag) {
  return {context % kContexts, kSources[source_and_tag & 7], kTags[source_and_tag >> 3]};
}

tagline_envelope receive_envelope(tagline_envelope envelope, bool any_source, bool any_tag) {
  if (any_source) envelope.source = TAGLINE_ANY_SOURCE;
  if (any_tag) envelope.tag = TAGLINE_ANY_TAG;
  return envelope;
}

// Keeps a stepped number a rank or a tag, whatever the steps add up to.
std::int32_t stepped(std::int32_t from, int step, int count, bool rank) {
  const auto bits = static_cast<std::uint32_t>(from) + static_cast<std::uint32_t>(step * count);
  if (rank) return static_cast<std::int32_t>(bits & 0x7fffffffu);
  return bits == 0x80000000u ? 0 : static_cast<std::int32_t>(bits);
}

std::vector<Operation> take_history(Bytes& bytes, const Input& input) {
  // Calls of one kind in a row, so that a few bytes make a long queue.
  constexpr Kind kBursts[] = {Kind::post_receive, Kind::arrive, Kind::post_receive, Kind::arrive,
                              Kind::claim};
  std::vector<Operation> history;
  std::vector<Operation> posts;
  const auto add = [&](Kind kind, const tagline_envelope& envelope) {
    history.push_back({kind, envelope, history.size() + 1});
    if (kind == Kind::post_receive || kind == Kind::claim_then_append) {
      posts.push_back(history.back());
    }
  };
  while (!bytes.empty() && history.size() < kMostCalls) {
    const unsigned call = bytes.take();
    const unsigned code = call & 15;
    const bool any_source = (call & 16) != 0;
    const bool any_tag = (call & 32) != 0;
    const unsigned source_and_tag = bytes.take();
    const tagline_envelope exact = message_envelope(call >> 6, source_and_tag);
    const tagline_envelope wanted = receive_envelope(exact, any_source, any_tag);
    if (code < 10) {
      const Kind kind = static_cast<Kind>(code);
      if (kind == Kind::cancel_receive || kind == Kind::cancel_handle) {
        if (posts.empty()) continue;
        // Counted from the newest or from the oldest one on.
        const std::size_t choice = bytes.take();
        const std::size_t last = posts.size() - 1;
        const std::size_t which =
            choice < 128 ? last - std::min(last, choice) : std::min(last, choice - 128);
        history.push_back({kind, posts[which].envelope, posts[which].cookie});
        posts.erase(posts.begin() + static_cast<std::ptrdiff_t>(which));
      } else {
        const bool message = kind == Kind::arrive || kind == Kind::match_then_append ||
                             kind == Kind::drop_context || kind == Kind::drop_source;
        add(kind, message ? exact : wanted);
      }
      continue;
    }
    if (code == 15) {
      tagline_envelope hints = exact;
      hints.tag = static_cast<std::int32_t>((call >> 4 & 3) | (source_and_tag & 1) << 2);
      history.push_back({Kind::set_hints, hints, 0});
      continue;
    }
    const Kind kind = kBursts[code - 10];
    const int count = bytes.take();
    const unsigned steps = bytes.take();
    const int tag_step = input.few_keys ? 0 : static_cast<int>(steps & 7) - 3;
    const int source_step = static_cast<int>(steps >> 3 & 7) - 3;
    const unsigned wildcards_every = (steps >> 6) + 1;  // 1: all of them
    for (int i = 0; i < count && history.size() < kMostCalls; ++i) {
      tagline_envelope envelope = exact;
      envelope.tag = stepped(exact.tag, tag_step, i, false);
      envelope.source = stepped(exact.source, source_step, i, true);
      const bool wild = kind != Kind::arrive && static_cast<unsigned>(i) % wildcards_every == 0;
      add(kind, receive_envelope(envelope, wild && any_source, wild && any_tag));
    }
  }
  return history;
}

std::vector<Variant> variants_on(unsigned isa) {
  const std::vector<Variant> all = all_variants();
  std::vector<std::string> names;
  for (unsigned i = 0; tagline_isa_name(i) != nullptr; ++i) names.push_back(tagline_isa_name(i));
  std::vector<Variant> chosen;
  for (const Variant& variant : all) {
    if (variant.isa == names[isa % names.size()]) chosen.push_back(variant);
  }
  return chosen;
}

}  // namespace
}  // namespace tagline::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tagline::test;
  static const auto by_isa = [] {
    std::vector<std::vector<Variant>> all;
    for (unsigned isa = 0; isa < 8; ++isa) all.push_back(variants_on(isa));
    return all;
  }();

  Bytes bytes(data, size);
  const Input input = take_input(bytes);
  const std::vector<Operation> history = take_history(bytes, input);
  for (const Variant& variant : by_isa[input.isa]) {
    tagline_options options = variant.options();
    options.pool_bytes = input.pool_bytes;
    options.first_handle = input.first_handle;
    const std::string difference = first_difference(history, options, kContexts);
    if (difference.empty() && !testing::Test::HasFailure()) continue;
    std::fprintf(stderr, "%s, pool_bytes %zu, first handle %llu: %s\n", variant.name().c_str(),
                 input.pool_bytes, static_cast<unsigned long long>(input.first_handle),
                 difference.c_str());
    std::abort();
  }
  return 0;
}
