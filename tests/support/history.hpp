// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "match/tagline.h"

namespace tagline::test {

// One call on a matcher, with everything it needs to be replayed.
struct Operation {
  enum class Kind {
    post_receive,
    arrive,
    claim_then_append,  // post_receive by its halves
    match_then_append,  // arrive by its halves
    probe,
    claim,
    cancel_receive,
    cancel_handle,
    drop_context,
    drop_source,
    set_hints,  // the tag is the hints
    // What random histories have as halves of others, or around every call.
    append_receive,
    append_message,
    inspect,
    statistics,
  };
  Kind kind;
  tagline_envelope envelope;
  std::uintptr_t cookie;  // of the receive or message, or which one to cancel
};

// The shape of a random history.
struct Mix {
  std::uint32_t seed = 1;
  int operations = 2000;
  int contexts = 2;
  int sources = 4;
  int tags = 4;              // tags are drawn from [-tags / 4, tags)
  double wildcards = 0.2;    // share of receives and probes with each wildcard
  double posted_bias = 0.5;  // share of post_receive among posts and arrivals
  double rare = 0.15;        // share of probes, claims, cancels, drops and hints
};

std::vector<Operation> random_history(const Mix& mix);

// What a call did: its status and the cookie that came out (0 if none), then the
// queues' lengths, so that a difference shows at the call that caused it.
struct Outcome {
  int status;
  std::uintptr_t cookie;
  tagline_envelope found;
  std::uint64_t posted;
  std::uint64_t unexpected;
  std::vector<std::uintptr_t> dropped;  // by a drop, in the order reported
};

bool operator==(const Outcome& a, const Outcome& b);

}  // namespace tagline::test
