// SPDX-License-Identifier: BSD-3-Clause
//
// Plays a history to a matcher. Receives are known by their number, messages by the order of
// their arrival; who got whom goes into a sum that has to be the same for every structure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "history.hpp"
#include "match/tagline.h"

namespace tagline::tools {

struct Played {
  std::uint64_t expected = 0;    // messages that found their receive waiting
  std::uint64_t unexpected = 0;  // messages that had to wait
  std::uint64_t otherwise = 0;   // receives that got another message than in the run
  std::uint64_t known = 0;       // receives of which the run tells what they got
  std::uint64_t pairs = 0;       // sum over who got whom
  std::uint64_t operations = 0;
};

// Watches nothing.
struct NoWatch {
  template <class Call>
  void match(Call call) {
    call();
  }
  template <class Call>
  void other(Call call) {
    call();
  }
};

// compare_with_run: look up what the run's receives got as well, which costs time.
template <class Watch = NoWatch>
Played play(const History& history, tagline_matcher* matcher, Watch&& watch = {},
            bool compare_with_run = false) {
  using Kind = Operation::Kind;
  Played played;
  const auto as_cookie = [](std::uint64_t number) { return reinterpret_cast<void*>(number + 1); };
  const auto as_number = [](void* cookie) { return reinterpret_cast<std::uint64_t>(cookie) - 1; };
  std::vector<std::pair<std::int32_t, std::int32_t>> arrived;
  std::uint64_t arrivals = 0;
  const auto join = [&](std::uint64_t receive, std::uint64_t message) {
    played.pairs += (receive + 1) * 0x9e3779b97f4a7c15u ^ (message + 1) * 0xff51afd7ed558ccdu;
    if (!compare_with_run || receive >= history.got.size() ||
        history.got[receive].source == TAGLINE_ANY_SOURCE) {
      return;
    }
    ++played.known;
    const History::Got& got = history.got[receive];
    if (arrived[message] != std::pair(got.source, got.tag)) ++played.otherwise;
  };
  const auto check = [](tagline_status status) {
    if (status < 0) throw std::runtime_error(tagline_error_message());
    return status;
  };
  for (const Operation& operation : history.operations) {
    const tagline_envelope envelope = {operation.context, operation.source, operation.tag};
    void* partner = nullptr;
    tagline_status status = TAGLINE_OK;
    switch (operation.kind) {
      case Kind::post:
        watch.match([&] {
          status = tagline_post_receive(matcher, envelope, as_cookie(operation.number), &partner,
                                        nullptr);
        });
        if (check(status) == TAGLINE_MATCHED) join(operation.number, as_number(partner));
        break;
      case Kind::arrive:
        if (compare_with_run) arrived.emplace_back(operation.source, operation.tag);
        watch.match(
            [&] { status = tagline_arrive(matcher, envelope, as_cookie(arrivals), &partner); });
        if (check(status) == TAGLINE_MATCHED) {
          ++played.expected;
          join(as_number(partner), arrivals);
        } else {
          ++played.unexpected;
        }
        ++arrivals;
        break;
      case Kind::probe:
        // A thousand looks in a row cost what ten of them tell.
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(operation.number, 10); ++i) {
          watch.other([&] { check(tagline_probe(matcher, envelope, &partner, nullptr)); });
        }
        break;
      case Kind::claim:
        watch.other([&] { check(tagline_claim(matcher, envelope, &partner, nullptr)); });
        break;
      case Kind::cancel:
        watch.other(
            [&] { check(tagline_cancel_receive(matcher, envelope, as_cookie(operation.number))); });
        break;
      case Kind::cancel_envelope: {
        struct Oldest {
          tagline_envelope envelope;
          void* cookie;
        } oldest = {envelope, nullptr};
        tagline_for_each(
            matcher,
            [](void* user, tagline_side side, tagline_envelope found, void* cookie) {
              auto& wish = *static_cast<Oldest*>(user);
              if (wish.cookie == nullptr && side == TAGLINE_POSTED &&
                  found.context_id == wish.envelope.context_id &&
                  found.source == wish.envelope.source && found.tag == wish.envelope.tag) {
                wish.cookie = cookie;
              }
            },
            &oldest);
        if (oldest.cookie != nullptr) {
          watch.other([&] { check(tagline_cancel_receive(matcher, envelope, oldest.cookie)); });
        }
        break;
      }
      case Kind::drop_context:
        watch.other([&] { tagline_drop_context(matcher, operation.context, nullptr, nullptr); });
        break;
      case Kind::drop_source:
        watch.other([&] {
          tagline_drop_source(matcher, operation.context, operation.source, nullptr, nullptr);
        });
        break;
    }
    ++played.operations;
  }
  return played;
}

}  // namespace tagline::tools
