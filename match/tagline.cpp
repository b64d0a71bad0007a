// SPDX-License-Identifier: BSD-3-Clause
// The C contract: arguments are checked here, once, and nowhere below. With it the matcher of the
// default structure is compiled, so that a call shares a page of memory with what it runs through.
#include "match/tagline.h"

#include <cstdio>
#include <new>
#include <stdexcept>

#include "match/configuration.hpp"
#include "match/envelope.hpp"
#include "match/operations.hpp"
#include "match/recording.hpp"
#include "match/structures.hpp"
#include "queues/node_memory.hpp"
#include "simd/kernels.hpp"

// ---- What nearly every call runs through, by GCC in the order in which it lies in memory
// (CMakeLists.txt keeps it from choosing another). It begins with a page, as with cold caches each
// page of code costs a walk through the table of pages: the first one is all that receives take
// which wait for their messages, and the next one the rest of what messages take which come first.
// Nothing but time depends on it.

#if defined(__ELF__) && defined(__GNUC__) && !defined(__clang__)
#define TAGLINE_ORDERS_CODE
asm(".section .text.hot.0,\"ax\",%progbits\n"
    ".p2align 12\n"
    ".text");
extern "C" {
[[gnu::section(".text.hot.0")]] decltype(tagline_post_receive) tagline_post_receive;
[[gnu::section(".text.hot.0")]] decltype(tagline_arrive) tagline_arrive;
[[gnu::hot]] decltype(tagline_claim) tagline_claim;
[[gnu::hot]] decltype(tagline_append_receive) tagline_append_receive;
[[gnu::hot]] decltype(tagline_match_message) tagline_match_message;
[[gnu::hot]] decltype(tagline_append_message) tagline_append_message;
}
#endif

namespace tagline {

using Matcher = QueueMatcher<AdaptiveQueue>;

#ifdef TAGLINE_ORDERS_CODE
using Ways = MatcherWays<AdaptiveQueue, NoTurns>;
using Context = MatchContext<AdaptiveQueue>;
template tagline_status Matcher::post_receive(Envelope, void*, void**, tagline_handle*);
template tagline_status Matcher::arrive(Envelope, void*, void**);
template tagline_status Ways::append_to_full<TAGLINE_POSTED>(Context*, std::uint64_t, void*,
                                                             tagline_handle*);
template tagline_status Ways::look<TAGLINE_UNEXPECTED, Ways::Unmet::waits>(Context*, std::uint64_t,
                                                                           void*, void**);
template tagline_status Ways::glance<TAGLINE_UNEXPECTED, Ways::Unmet::waits>(Context*,
                                                                             std::uint64_t, void*,
                                                                             void**);
template tagline_status Ways::append_to_full<TAGLINE_UNEXPECTED>(Context*, std::uint64_t, void*);
template tagline_status Ways::look<TAGLINE_POSTED, Ways::Unmet::waits>(Context*, std::uint64_t,
                                                                       void*, void**,
                                                                       tagline_handle*);
template tagline_status Ways::glance<TAGLINE_POSTED, Ways::Unmet::waits>(Context*, std::uint64_t,
                                                                         void*, void**,
                                                                         tagline_handle*);
#endif

template class QueueMatcher<AdaptiveQueue>;

}  // namespace tagline

// ---- The contract.

using tagline::is_message;
using tagline::is_receive;

namespace {

thread_local char error_message[256] = "no error";

// A call away, so that the calls below are their checks and a jump.
[[gnu::noinline, gnu::cold]] tagline_status invalid(const char* sentence) noexcept {
  tagline::set_error_message(sentence);
  return TAGLINE_INVALID;
}

// An operation of every message. The default's matcher is told by the line that each of them begins
// with: a jump that is foretold, where the table is another line, of another page, whose content
// all else waits for: in cold caches a fifth of a match.
template <class Operation>
tagline_status at(tagline_matcher* matcher, Operation operation) {
  if (matcher->is_default) [[likely]]
    return operation(*static_cast<tagline::Matcher*>(matcher));
  return operation(*matcher);
}

constexpr char kNoMatcher[] = "matcher is NULL";
constexpr char kNoOutput[] = "an output pointer is NULL";
constexpr char kBadReceive[] = "a receive's source must be a rank >= 0 or TAGLINE_ANY_SOURCE";
constexpr char kBadMessage[] =
    "a message's source must be a rank >= 0 and its tag must not be TAGLINE_ANY_TAG";

}  // namespace

void tagline::set_error_message(const char* sentence) noexcept {
  std::snprintf(error_message, sizeof error_message, "%s", sentence);
}

extern "C" {

tagline_status tagline_create(const tagline_options* options, tagline_matcher** matcher) {
  if (matcher == nullptr) return invalid(kNoOutput);
  const tagline_options defaults = TAGLINE_OPTIONS_DEFAULT;
  const tagline_options& wanted = options != nullptr ? *options : defaults;
  try {
    *matcher = tagline::recorded(tagline::make_matcher(wanted), wanted.first_handle);
    return TAGLINE_OK;
  } catch (const std::invalid_argument& error) {
    return invalid(error.what());
  } catch (const std::bad_alloc&) {
    tagline::set_error_message("no memory for a matcher");
    return TAGLINE_NO_MEMORY;
  }
}

void tagline_destroy(tagline_matcher* matcher) { delete matcher; }

tagline_status tagline_post_receive(tagline_matcher* matcher, tagline_envelope envelope,
                                    void* receive, void** message, tagline_handle* handle) {
  if (matcher == nullptr) return invalid(kNoMatcher);
  if (message == nullptr) return invalid(kNoOutput);
  if (!is_receive(envelope)) return invalid(kBadReceive);
  return at(matcher,
            [&](auto& known) { return known.post_receive(envelope, receive, message, handle); });
}

tagline_status tagline_arrive(tagline_matcher* matcher, tagline_envelope envelope, void* message,
                              void** receive) {
  if (matcher == nullptr) return invalid(kNoMatcher);
  if (receive == nullptr) return invalid(kNoOutput);
  if (!is_message(envelope)) return invalid(kBadMessage);
  return at(matcher, [&](auto& known) { return known.arrive(envelope, message, receive); });
}

tagline_status tagline_claim(tagline_matcher* matcher, tagline_envelope envelope, void** message,
                             tagline_envelope* found) {
  if (matcher == nullptr) return invalid(kNoMatcher);
  if (message == nullptr) return invalid(kNoOutput);
  if (!is_receive(envelope)) return invalid(kBadReceive);
  return at(matcher, [&](auto& known) { return known.claim(envelope, message, found); });
}

tagline_status tagline_append_receive(tagline_matcher* matcher, tagline_envelope envelope,
                                      void* receive, tagline_handle* handle) {
  if (matcher == nullptr) return invalid(kNoMatcher);
  if (!is_receive(envelope)) return invalid(kBadReceive);
  return at(matcher, [&](auto& known) { return known.append_receive(envelope, receive, handle); });
}

tagline_status tagline_match_message(tagline_matcher* matcher, tagline_envelope envelope,
                                     void** receive) {
  if (matcher == nullptr) return invalid(kNoMatcher);
  if (receive == nullptr) return invalid(kNoOutput);
  if (!is_message(envelope)) return invalid(kBadMessage);
  return at(matcher, [&](auto& known) { return known.match_message(envelope, receive); });
}

tagline_status tagline_append_message(tagline_matcher* matcher, tagline_envelope envelope,
                                      void* message) {
  if (matcher == nullptr) return invalid(kNoMatcher);
  if (!is_message(envelope)) return invalid(kBadMessage);
  return at(matcher, [&](auto& known) { return known.append_message(envelope, message); });
}

tagline_status tagline_probe(tagline_matcher* matcher, tagline_envelope envelope, void** message,
                             tagline_envelope* found) {
  if (matcher == nullptr) return invalid(kNoMatcher);
  if (message == nullptr) return invalid(kNoOutput);
  if (!is_receive(envelope)) return invalid(kBadReceive);
  return matcher->probe(envelope, message, found);
}

tagline_status tagline_inspect(tagline_matcher* matcher, tagline_envelope envelope,
                               tagline_visitor visit, void* user) {
  if (matcher == nullptr) return invalid(kNoMatcher);
  if (visit == nullptr) return invalid("the visitor is NULL");
  if (!is_receive(envelope)) return invalid(kBadReceive);
  return matcher->inspect(envelope, visit, user);
}

tagline_status tagline_cancel_receive(tagline_matcher* matcher, tagline_envelope envelope,
                                      void* receive) {
  if (matcher == nullptr) return invalid(kNoMatcher);
  if (!is_receive(envelope)) return invalid(kBadReceive);
  return matcher->cancel_receive(envelope, receive);
}

tagline_status tagline_cancel_handle(tagline_matcher* matcher, uint64_t context_id,
                                     tagline_handle handle) {
  if (matcher == nullptr) return invalid(kNoMatcher);
  return matcher->cancel_handle(context_id, handle);
}

size_t tagline_drop_context(tagline_matcher* matcher, uint64_t context_id, tagline_visitor visit,
                            void* user) {
  return matcher == nullptr ? 0 : matcher->drop_context(context_id, visit, user);
}

size_t tagline_drop_source(tagline_matcher* matcher, uint64_t context_id, int32_t source,
                           tagline_visitor visit, void* user) {
  return matcher == nullptr ? 0 : matcher->drop_source(context_id, source, visit, user);
}

tagline_status tagline_set_hints(tagline_matcher* matcher, uint64_t context_id, unsigned hints) {
  if (matcher == nullptr) return invalid(kNoMatcher);
  constexpr unsigned kAll = TAGLINE_NO_ANY_SOURCE | TAGLINE_NO_ANY_TAG | TAGLINE_ALLOW_OVERTAKING;
  if ((hints & ~kAll) != 0) return invalid("hints has a bit that is none of tagline_hint");
  return matcher->set_hints(context_id, hints);
}

void tagline_for_each(const tagline_matcher* matcher, tagline_visitor visit, void* user) {
  if (matcher != nullptr && visit != nullptr) matcher->for_each(visit, user);
}

void tagline_get_statistics(const tagline_matcher* matcher, tagline_statistics* statistics) {
  if (matcher != nullptr && statistics != nullptr) *statistics = matcher->statistics();
}

void tagline_memory(tagline_memory_use* use) {
  if (use == nullptr) return;
  const tagline::memory_backend::Use backend = tagline::memory_backend::use();
  *use = {backend.name, tagline::NodeMemory::total_used_bytes(), backend.mapped_bytes,
          backend.resident_bytes};
}

const char* tagline_matcher_queue(const tagline_matcher* matcher) {
  return matcher == nullptr ? nullptr : matcher->about->queue_name.c_str();
}

const char* tagline_matcher_isa(const tagline_matcher* matcher) {
  return matcher == nullptr ? nullptr : matcher->about->isa_name;
}

const char* tagline_matcher_reason(const tagline_matcher* matcher) {
  return matcher == nullptr ? nullptr : matcher->about->reason.c_str();
}

const char* tagline_queue_name(unsigned index) { return tagline::structure_name(index); }

const char* tagline_threading_name(unsigned index) { return tagline::threading_name(index); }

const char* tagline_lock_name(unsigned index) { return tagline::lock_name(index); }

const char* tagline_isa_name(unsigned index) {
  const tagline::simd::Kernels* kernels = tagline::simd::available_kernels(index);
  return kernels == nullptr ? nullptr : kernels->isa;
}

const char* tagline_error_message(void) { return error_message; }

const char* tagline_version(void) { return TAGLINE_VERSION; }

}  // extern "C"
