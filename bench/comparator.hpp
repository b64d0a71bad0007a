// SPDX-License-Identifier: BSD-3-Clause
//
// What tagline's structures are measured against. A comparator is a matcher like
// any other and is called through tagline.h: arguments are checked, one virtual
// call per operation, so that a ratio compares structures and not calls.
//
// Entries live in the caller's requests, as in the MPI libraries that work this
// way: a cookie points to kRequestBytes that belong to the matcher while the
// request is queued.
#pragma once

#include "match/matcher.hpp"

namespace bench {

inline constexpr std::size_t kRequestBytes = 64;

inline bool accepts(const tagline_envelope& receive, const tagline_envelope& message) noexcept {
  // Negative tags belong to the host's own traffic: ANY_TAG does not see them.
  return receive.context_id == message.context_id &&
         (receive.source == message.source || receive.source == TAGLINE_ANY_SOURCE) &&
         (receive.tag == message.tag || (receive.tag == TAGLINE_ANY_TAG && message.tag >= 0));
}

// The operations that are not measured are refused.
struct Comparator : tagline_matcher {
  explicit Comparator(const char* name) {
    about->queue_name = name;
    about->isa_name = "";
  }
  tagline_status claim(Envelope, void**, Envelope*) noexcept override { return TAGLINE_INVALID; }
  tagline_status append_receive(Envelope, void*, tagline_handle*) noexcept override {
    return TAGLINE_INVALID;
  }
  tagline_status match_message(Envelope, void**) noexcept override { return TAGLINE_INVALID; }
  tagline_status append_message(Envelope, void*) noexcept override { return TAGLINE_INVALID; }
  tagline_status probe(Envelope, void**, Envelope*) noexcept override { return TAGLINE_INVALID; }
  tagline_status cancel_receive(Envelope, void*) noexcept override { return TAGLINE_INVALID; }
  tagline_status cancel_handle(std::uint64_t, tagline_handle) noexcept override {
    return TAGLINE_INVALID;
  }
  std::size_t drop_context(std::uint64_t, tagline_visitor, void*) override { return 0; }
  std::size_t drop_source(std::uint64_t, std::int32_t, tagline_visitor, void*) override {
    return 0;
  }
  tagline_status set_hints(std::uint64_t, unsigned) noexcept override { return TAGLINE_INVALID; }
  tagline_status observe_memory(tagline::MemoryObserver*) noexcept override {
    return TAGLINE_INVALID;
  }
  void for_each(tagline_visitor, void*) const override {}
};

}  // namespace bench
