// SPDX-License-Identifier: BSD-3-Clause
//
// The least that matching by lists can cost: what `linear` is measured against.
// Two doubly linked lists threaded through the caller's own requests, one request
// per cache line; no pool, no statistics, no argument checks, one structure and
// no choice. The calls have the shape of tagline.h and live in a file of their
// own, as the library's do, so that both pay for a call.
#pragma once

#include "match/tagline.h"

namespace bench {

struct PlainEntry {
  PlainEntry* next = nullptr;
  PlainEntry* previous = nullptr;
  tagline_envelope envelope{};
};

struct PlainQueue {
  PlainEntry* first = nullptr;
  PlainEntry* last = nullptr;
};

struct PlainMatcher {
  PlainQueue posted;
  PlainQueue unexpected;
};

tagline_status plain_post_receive(PlainMatcher* matcher, tagline_envelope envelope, void* receive,
                                  void** message, tagline_handle* handle);
tagline_status plain_arrive(PlainMatcher* matcher, tagline_envelope envelope, void* message,
                            void** receive);

}  // namespace bench
