// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/history.hpp"

#include <algorithm>
#include <sstream>
#include <string>

#include "tests/support/all_matchers.hpp"
#include "tests/support/players.hpp"

namespace tagline::test {

using Kind = Operation::Kind;

bool operator==(const Outcome& a, const Outcome& b) {
  return a.status == b.status && a.cookie == b.cookie && a.found.context_id == b.found.context_id &&
         a.found.source == b.found.source && a.found.tag == b.found.tag && a.posted == b.posted &&
         a.unexpected == b.unexpected && a.dropped == b.dropped;
}

std::vector<Operation> random_history(const Mix& mix) {
  std::mt19937 random(mix.seed);
  const auto below = [&](int bound) { return std::uniform_int_distribution(0, bound - 1)(random); };
  const auto chance = [&](double p) { return std::bernoulli_distribution(p)(random); };
  const auto message_envelope = [&] {
    return tagline_envelope{static_cast<std::uint64_t>(below(mix.contexts)), below(mix.sources),
                            below(mix.tags + mix.tags / 4) - mix.tags / 4};
  };
  const auto receive_envelope = [&] {
    tagline_envelope envelope = message_envelope();
    if (chance(mix.wildcards)) envelope.source = TAGLINE_ANY_SOURCE;
    if (chance(mix.wildcards)) envelope.tag = TAGLINE_ANY_TAG;
    return envelope;
  };

  std::vector<Operation> history;
  std::vector<Operation> posts;  // candidates for a cancel, matched by now or not
  for (int i = 0; i < mix.operations; ++i) {
    const auto cookie = static_cast<std::uintptr_t>(i) + 1;
    if (!chance(mix.rare)) {
      if (chance(mix.posted_bias)) {
        const Kind kind = chance(0.8) ? Kind::post_receive : Kind::claim_then_append;
        history.push_back({kind, receive_envelope(), cookie});
        posts.push_back(history.back());
      } else {
        const Kind kind = chance(0.8) ? Kind::arrive : Kind::match_then_append;
        history.push_back({kind, message_envelope(), cookie});
      }
      continue;
    }
    const int choice = below(100);
    if (choice < 35) {
      history.push_back({Kind::probe, receive_envelope(), 0});
    } else if (choice < 60) {
      history.push_back({Kind::claim, receive_envelope(), 0});
    } else if (choice < 97 && !posts.empty()) {
      // The oldest, the newest or any one: ends of a queue are where lists break.
      const int last = static_cast<int>(posts.size()) - 1;
      const int which = choice < 70 ? last : choice < 75 ? 0 : below(last + 1);
      const Operation& post = posts[static_cast<std::size_t>(which)];
      const Kind kind = chance(0.5) ? Kind::cancel_receive : Kind::cancel_handle;
      history.push_back({kind, post.envelope, post.cookie});
      posts.erase(posts.begin() + which);
    } else if (choice < 98) {
      // Promises that are not kept: what matches must not depend on them.
      tagline_envelope hints = message_envelope();
      hints.tag = below(8);
      history.push_back({Kind::set_hints, hints, 0});
    } else if (choice < 99) {
      history.push_back({Kind::drop_source, message_envelope(), 0});
    } else {
      history.push_back({Kind::drop_context, message_envelope(), 0});
    }
  }
  return history;
}

namespace {

// Shards list receives with different keys in any order.
void forget_order(Outcome& expected, Outcome& actual) {
  std::sort(expected.dropped.begin(), expected.dropped.end());
  std::sort(actual.dropped.begin(), actual.dropped.end());
}

}  // namespace

std::string first_difference(const std::vector<Operation>& history, const tagline_options& options,
                             int contexts, CallHooks hooks) {
  Library library(options, hooks);
  Model model;
  const bool threaded = options.queue != nullptr && is_threaded(options.queue);
  const bool any_order = threaded && std::string(options.queue).starts_with("sharded");
  for (std::size_t i = 0; i < history.size(); ++i) {
    Outcome actual = library.play(history[i]);
    Outcome expected = model.play(history[i], actual.cookie);
    if (any_order) forget_order(expected, actual);
    if (actual.status == TAGLINE_NO_MEMORY && expected.status == TAGLINE_QUEUED &&
        (options.pool_bytes != 0 || hooks.before != nullptr)) {
      expected = model.take_back(history[i]);
    }
    if (!(expected == actual)) return describe(history, i, expected, actual);
    if (options.pool_bytes != 0 && library.pool_bytes() > options.pool_bytes) {
      return "pool_bytes exceeded at call " + std::to_string(i);
    }
  }
  for (int context = 0; context < contexts; ++context) {
    Outcome expected = model.remains(static_cast<std::uint64_t>(context));
    Outcome actual = library.remains(static_cast<std::uint64_t>(context));
    if (any_order) forget_order(expected, actual);
    if (!(expected == actual)) return describe(history, history.size(), expected, actual);
  }
  for (const tagline_side side : {TAGLINE_POSTED, TAGLINE_UNEXPECTED}) {
    const Counts expected = model.counts(side);
    const Counts actual = library.counts(side);
    if (expected == actual) continue;
    // Of several parts the high water marks add up, and each part is searched.
    if (threaded && expected.matches == actual.matches &&
        actual.high_water >= expected.high_water) {
      continue;
    }
    std::ostringstream text;
    text << "the statistics of side " << side << " differ";
    for (const Counts& counts : {expected, actual}) {
      text << "\n  " << counts.high_water << " entries at most, " << counts.searches
           << " searches, " << counts.matches << " matches";
    }
    return text.str();
  }
  return {};
}

std::string describe(const std::vector<Operation>& history, std::size_t call,
                     const Outcome& expected, const Outcome& actual) {
  std::ostringstream text;
  text << "differs at call " << call;
  if (call < history.size()) {
    const Operation& operation = history[call];
    text << " (kind " << static_cast<int>(operation.kind) << ", context "
         << operation.envelope.context_id << ", source " << operation.envelope.source << ", tag "
         << operation.envelope.tag << ")";
  } else {
    text << " (the entries left)";
  }
  for (const Outcome* outcome : {&expected, &actual}) {
    text << (outcome == &expected ? "\n  expected status " : "\n  got      status ")
         << outcome->status << ", cookie " << outcome->cookie << ", lengths " << outcome->posted
         << " and " << outcome->unexpected << ", listed";
    for (std::size_t i = 0; i < std::min<std::size_t>(50, outcome->dropped.size()); ++i) {
      text << " " << outcome->dropped[i];
    }
  }
  return text.str();
}

}  // namespace tagline::test
