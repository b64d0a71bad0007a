// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "tests/support/players.hpp"

namespace tagline::test {

namespace {

using Kind = Operation::Kind;

void* pointer(std::uintptr_t cookie) { return reinterpret_cast<void*>(cookie); }
std::uintptr_t number(void* cookie) { return reinterpret_cast<std::uintptr_t>(cookie); }

void note_dropped(void* user, tagline_side, tagline_envelope, void* cookie) {
  static_cast<Outcome*>(user)->dropped.push_back(number(cookie));
}

}  // namespace

Library::Library(const tagline_options& options, CallHooks hooks) : hooks_(hooks) {
  EXPECT_EQ(tagline_create(&options, &matcher_), TAGLINE_OK) << tagline_error_message();
}

Library::~Library() { tagline_destroy(matcher_); }

template <class Call>
auto Library::hooked(Call call) const {
  if (hooks_.before != nullptr) hooks_.before();
  const auto result = call();
  if (hooks_.after != nullptr) hooks_.after();
  return result;
}

tagline_handle& Library::handle_of(std::uintptr_t cookie) {
  if (handles_.size() <= cookie) handles_.resize(2 * cookie + 1);
  return handles_[cookie];
}

Outcome Library::play(const Operation& operation) {
  Outcome outcome{};
  void* cookie = nullptr;
  const tagline_envelope envelope = operation.envelope;
  void* const own = pointer(operation.cookie);
  tagline_statistics statistics;
  tagline_get_statistics(matcher_, &statistics);
  switch (operation.kind) {
    case Kind::post_receive: {
      tagline_handle handle = 0;
      outcome.status =
          hooked([&] { return tagline_post_receive(matcher_, envelope, own, &cookie, &handle); });
      EXPECT_EQ(handle != 0, outcome.status == TAGLINE_QUEUED) << "a handle names a queued receive";
      if (handle != 0) handle_of(operation.cookie) = handle;
      break;
    }
    case Kind::claim_then_append:
      outcome.status = hooked([&] { return tagline_claim(matcher_, envelope, &cookie, nullptr); });
      if (outcome.status == TAGLINE_NOT_FOUND) {
        tagline_handle handle = 0;
        outcome.status =
            hooked([&] { return tagline_append_receive(matcher_, envelope, own, &handle); });
        if (handle != 0) handle_of(operation.cookie) = handle;
      }
      break;
    case Kind::arrive:
      outcome.status = hooked([&] { return tagline_arrive(matcher_, envelope, own, &cookie); });
      break;
    case Kind::match_then_append:
      outcome.status = hooked([&] { return tagline_match_message(matcher_, envelope, &cookie); });
      if (outcome.status == TAGLINE_NOT_FOUND) {
        outcome.status = hooked([&] { return tagline_append_message(matcher_, envelope, own); });
      }
      break;
    case Kind::append_receive:
      outcome.status =
          hooked([&] { return tagline_append_receive(matcher_, envelope, own, nullptr); });
      break;
    case Kind::append_message:
      outcome.status = hooked([&] { return tagline_append_message(matcher_, envelope, own); });
      break;
    case Kind::statistics:
      break;
    case Kind::inspect:
      outcome.status = hooked([&] {
        return tagline_inspect(
            matcher_, envelope,
            [](void* user, tagline_side, tagline_envelope, void* found) {
              *static_cast<void**>(user) = found;
            },
            &cookie);
      });
      break;
    case Kind::probe:
      outcome.status =
          hooked([&] { return tagline_probe(matcher_, envelope, &cookie, &outcome.found); });
      break;
    case Kind::claim:
      outcome.status =
          hooked([&] { return tagline_claim(matcher_, envelope, &cookie, &outcome.found); });
      break;
    case Kind::cancel_receive:
      outcome.status = hooked([&] { return tagline_cancel_receive(matcher_, envelope, own); });
      break;
    case Kind::cancel_handle: {
      const tagline_handle named = handle_of(operation.cookie);
      outcome.status =
          hooked([&] { return tagline_cancel_handle(matcher_, envelope.context_id, named); });
      break;
    }
    case Kind::set_hints:
      // Not where memory may fail: it would be one more outcome to allow for.
      outcome.status =
          tagline_set_hints(matcher_, envelope.context_id, static_cast<unsigned>(envelope.tag));
      break;
    case Kind::drop_context:
    case Kind::drop_source: {
      // Room beforehand: the visitor runs where allocation may be made to fail.
      outcome.dropped.reserve(statistics.posted.length + statistics.unexpected.length);
      const std::size_t dropped = hooked([&] {
        return operation.kind == Kind::drop_context
                   ? tagline_drop_context(matcher_, envelope.context_id, note_dropped, &outcome)
                   : tagline_drop_source(matcher_, envelope.context_id, envelope.source,
                                         note_dropped, &outcome);
      });
      EXPECT_EQ(dropped, outcome.dropped.size()) << "every removal is reported";
      break;
    }
  }
  outcome.cookie = number(cookie);
  tagline_get_statistics(matcher_, &statistics);
  outcome.posted = statistics.posted.length;
  outcome.unexpected = statistics.unexpected.length;
  return outcome;
}

Outcome Library::remains(std::uint64_t context) const {
  struct Collected {
    std::uint64_t context;
    std::vector<std::uintptr_t> side[2];
  } collected{context, {}};
  tagline_for_each(
      matcher_,
      [](void* user, tagline_side side, tagline_envelope envelope, void* cookie) {
        auto* all = static_cast<Collected*>(user);
        if (envelope.context_id == all->context) all->side[side].push_back(number(cookie));
      },
      &collected);
  return remains_outcome(collected.side[TAGLINE_POSTED], collected.side[TAGLINE_UNEXPECTED]);
}

Counts Library::counts(tagline_side side) const {
  tagline_statistics all;
  tagline_get_statistics(matcher_, &all);
  const tagline_side_statistics& one = side == TAGLINE_POSTED ? all.posted : all.unexpected;
  return {one.high_water, one.searches, one.matches};
}

std::uint64_t Library::pool_bytes() const {
  tagline_statistics all;
  tagline_get_statistics(matcher_, &all);
  return all.pool_bytes;
}

}  // namespace tagline::test
