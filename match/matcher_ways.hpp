// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "match/contexts.hpp"
#include "match/envelope.hpp"
#include "match/operations.hpp"
#include "match/side_counts.hpp"
#include "match/tagline.h"
#include "match/turns.hpp"
#include "queues/resources.hpp"

namespace tagline {

// The ways of a message and of a receive through a context's two queues, from the shortest to
// those that always do: what QueueMatcher's operations are made of. A base of the matcher, so
// that each is a jump away and `this` is the same.
//
// gnu::hot: those that nearly every call takes lie side by side, with the operations. Where caches
// are cold each further page of code costs a walk through the table of pages.
template <class Queue, class Turns>
class MatcherWays : public tagline_matcher {
 protected:
  using Context = MatchContext<Queue>;
  using Side = SideCounts;

  MatcherWays(typename Queue::Parameters parameters, const simd::Kernels& kernels,
              std::size_t pool_bytes, std::uint64_t first_handle, MemoryLimit* shared_limit)
      : contexts_(parameters, kernels, pool_bytes, shared_limit),
        posted_(first_handle == 0 ? 1 : first_handle) {
    plan_pause(posted_);
    plan_pause(unexpected_);
  }

  Side& side_of(tagline_side side) noexcept {
    return side == TAGLINE_POSTED ? posted_ : unexpected_;
  }
  static constexpr tagline_side other_side(tagline_side side) noexcept {
    return side == TAGLINE_POSTED ? TAGLINE_UNEXPECTED : TAGLINE_POSTED;
  }
  template <tagline_side side>
  static constexpr QueueSide kQueueSide =
      side == TAGLINE_POSTED ? QueueSide::posted : QueueSide::unexpected;
  static Queue& queue_of(Context& context, tagline_side side) noexcept {
    return side == TAGLINE_POSTED ? context.posted : context.unexpected;
  }

  // What becomes of what a call brings, if it meets nothing.
  enum class Unmet : std::uint8_t { waits, leaves };

  // What every receive does. Behind an index nobody may foresee which wildcard the next one has,
  // if any, so the index is asked for first: without one, these are one branch each.
  template <Unmet unmet, class... Handle>
  [[gnu::always_inline]] tagline_status meet_receive(Context* context, const Envelope& envelope,
                                                     void* receive, void** message,
                                                     Handle... handle) noexcept {
    const std::uint64_t bits = exact_key(envelope).bits;
    if constexpr (OffersIndex<Queue>) {
      if (context->unexpected.is_indexed()) {
        return is_exact_in_one(envelope)
                   ? look<TAGLINE_POSTED, unmet>(context, bits, receive, message, handle...)
                   : look_for_any<unmet>(context, bits, receive, message, handle...);
      }
    }
    if (!is_exact(envelope)) return meet_any<unmet>(context, bits, receive, message, handle...);
    return meet<TAGLINE_POSTED, unmet>(context, bits, receive, message, handle...);
  }

  // What every call with an exact key does. own: the side of what it brings; met: where to put
  // the cookie of what it meets; handle: of receives. bits: source and tag as the envelope has
  // them, here and below. In four ways, from little to much; each but the first saves registers
  // for itself only, and is not there for queues that do not offer what it asks for.
  template <tagline_side own, Unmet unmet, class... Handle>
  [[gnu::always_inline]] tagline_status meet(Context* context, std::uint64_t bits, void* cookie,
                                             void** met, Handle... handle) noexcept {
    Queue& other = queue_of(*context, other_side(own));
    if constexpr (OffersIndex<Queue>) {
      if (other.is_indexed()) return look<own, unmet>(context, bits, cookie, met, handle...);
    }
    if (other.empty()) return wait<own, unmet>(context, bits, cookie, handle...);
    if constexpr (OffersAtHand<Queue>) {
      return glance<own, unmet>(context, bits, cookie, met, handle...);
    }
    const MatchKey key = {bits, kSourceMask | kTagMask};
    if (search_and_take<other_side(own)>(context, key, met)) return done(TAGLINE_MATCHED);
    return wait<own, unmet>(context, bits, cookie, handle...);
  }

  // Where there is an index: a look into it, then at the newest entry. look_among(): receives with
  // wildcards as well, or of messages that are listed for such.
  template <tagline_side own, Unmet unmet, class... Handle>
  [[gnu::noinline, gnu::flatten, gnu::hot]] tagline_status look(Context* context,
                                                                std::uint64_t bits, void* cookie,
                                                                void** met,
                                                                Handle... handle) noexcept {
    return look_into<own, unmet, /*among=*/false>(context, bits, cookie, met, handle...);
  }
  template <tagline_side own, Unmet unmet, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status look_among(Context* context, std::uint64_t bits,
                                                            void* cookie, void** met,
                                                            Handle... handle) noexcept {
    return look_into<own, unmet, /*among=*/true>(context, bits, cookie, met, handle...);
  }
  // Not always_inline, nor is glance_at(): GCC 12 then flattens neither.
  template <tagline_side own, Unmet unmet, bool among, class... Handle>
  tagline_status look_into(Context* context, std::uint64_t bits, void* cookie, void** met,
                           Handle... handle) noexcept {
    constexpr tagline_side side = other_side(own);
    Queue& other = queue_of(*context, side);
    if (!(among ? other.template tells_among<kQueueSide<side>>() : other.tells())) {
      if constexpr (!among) return look_among<own, unmet>(context, bits, cookie, met, handle...);
      return search<own, unmet>(context, bits, cookie, met, handle...);
    }
    const auto find = [&other, bits] {
      if constexpr (among) return other.template look_among<kQueueSide<side>>(bits);
      if constexpr (!among) return other.look(bits);
    };
    if (const auto found = find()) return take_found_at_hand<side, !among>(context, found, met);
    if (!other.tells_none()) return search<own, unmet>(context, bits, cookie, met, handle...);
    const auto count = counter_of(side_of(side));
    if (other.template take_newest<kQueueSide<side>>(bits, met, count))
      return done(TAGLINE_MATCHED);
    return wait<own, unmet>(context, bits, cookie, handle...);
  }

  // Where there is none: what is at hand. glance_any(): of a receive with wildcards; so is exact:
  // false, here and below.
  template <tagline_side own, Unmet unmet, class... Handle>
  [[gnu::noinline, gnu::flatten, gnu::hot]] tagline_status glance(Context* context,
                                                                  std::uint64_t bits, void* cookie,
                                                                  void** met,
                                                                  Handle... handle) noexcept {
    return glance_at<own, unmet, /*exact=*/true>(context, bits, cookie, met, handle...);
  }
  template <Unmet unmet, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status glance_any(Context* context, std::uint64_t bits,
                                                            void* cookie, void** met,
                                                            Handle... handle) noexcept {
    return glance_at<TAGLINE_POSTED, unmet, /*exact=*/false>(context, bits, cookie, met, handle...);
  }
  template <tagline_side own, Unmet unmet, bool exact, class... Handle>
  tagline_status glance_at(Context* context, std::uint64_t bits, void* cookie, void** met,
                           Handle... handle) noexcept {
    constexpr tagline_side side = other_side(own);
    Queue& other = queue_of(*context, side);
    const MatchKey key = key_of<exact>(bits);
    // What is taken ends here, where the queue counts it. With one end for all that it may take,
    // behind a jump, a thread alone takes 4 % more (Zen 3).
    const auto count_and_end = [this](std::uint64_t depth, bool taken) {
      counter_of(side_of(side))(depth, taken);
      if (taken) turns_.end();
    };
    const Glance seen = other.take_at_hand(key, met, count_and_end);
    if (seen == Glance::taken) return TAGLINE_MATCHED;
    if (seen == Glance::none) return wait<own, unmet, exact>(context, bits, cookie, handle...);
    if constexpr (OffersGroup<Queue>)
      return compare<own, unmet, exact>(context, bits, cookie, met, handle...);
    return search<own, unmet, exact>(context, bits, cookie, met, handle...);
  }

  // Where that does not tell, and the queue is short: all of it.
  template <tagline_side own, Unmet unmet, bool exact, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status compare(Context* context, std::uint64_t bits,
                                                         void* cookie, void** met,
                                                         Handle... handle) noexcept {
    constexpr tagline_side side = other_side(own);
    Queue& other = queue_of(*context, side);
    if (!other.is_one_group()) [[unlikely]]
      return search<own, unmet, exact>(context, bits, cookie, met, handle...);
    const MatchKey key = key_of<exact>(bits);
    const auto count = [this](std::uint64_t depth, bool taken) {
      Side& searched = side_of(side);
      searched.note_gone(taken);
      searched.count_any_search(depth, taken);
    };
    const bool taken = other.take_from_group(key, met, count);
    // A search in vain may have made an index. Not asked by its depth, which nobody could foresee.
    if (other.is_indexed() && side_of(side).pause_at == 0) [[unlikely]]
      plan_pause(side_of(side));
    if (taken) return done(TAGLINE_MATCHED);
    return wait<own, unmet, exact>(context, bits, cookie, handle...);
  }

  template <tagline_side own, Unmet unmet, bool exact = true, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status search(Context* context, std::uint64_t bits,
                                                        void* cookie, void** met,
                                                        Handle... handle) noexcept {
    const MatchKey key = key_of<exact>(bits);
    if (search_and_take<other_side(own)>(context, key, met)) return done(TAGLINE_MATCHED);
    if constexpr (unmet == Unmet::waits) {
      return queue_of(*context, own).has_room()
                 ? push<own, exact>(context, bits, cookie, handle...)
                 : append_behind<own, exact>(context, bits, cookie, handle...);
    }
    return done(TAGLINE_NOT_FOUND);
  }

  template <tagline_side own, Unmet unmet, bool exact = true, class... Handle>
  tagline_status wait(Context* context, std::uint64_t bits, void* cookie,
                      Handle... handle) noexcept {
    if constexpr (unmet == Unmet::leaves) {
      return done(TAGLINE_NOT_FOUND);
    } else if constexpr (exact) {
      return append_exact<own>(context, bits, cookie, handle...);
    } else {
      return append_any(context, bits, cookie, handle...);
    }
  }

  // The same for receives with wildcards, where there is no index.
  template <Unmet unmet, class... Handle>
  [[gnu::noinline]] tagline_status meet_any(Context* context, std::uint64_t bits, void* receive,
                                            void** message, Handle... handle) noexcept {
    constexpr tagline_side own = TAGLINE_POSTED;
    if (context->unexpected.empty())
      return wait<own, unmet, /*exact=*/false>(context, bits, receive, handle...);
    if constexpr (OffersIndex<Queue>) {
      context->unexpected.note_wild_search();
      return context->unexpected.is_glance_likely()
                 ? glance_any<unmet>(context, bits, receive, message, handle...)
                 : compare<own, unmet, /*exact=*/false>(context, bits, receive, message, handle...);
    }
    return search<own, unmet, /*exact=*/false>(context, bits, receive, message, handle...);
  }

  template <Unmet unmet, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status look_for_any(Context* context, std::uint64_t bits,
                                                              void* receive, void** message,
                                                              Handle... handle) noexcept {
    if (const auto listed = context->unexpected.look_listed(bits))
      return take_found_at_hand<TAGLINE_UNEXPECTED>(context, listed, message);
    return look_at_newest<unmet>(context, bits, receive, message, handle...);
  }

  // Where no list has told the oldest message, one may tell that there is none: then only the
  // newest is left.
  template <Unmet unmet, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status look_at_newest(Context* context,
                                                                std::uint64_t bits, void* receive,
                                                                void** message,
                                                                Handle... handle) noexcept {
    constexpr tagline_side own = TAGLINE_POSTED;
    if (!context->unexpected.lists_none(bits))
      return search<own, unmet, /*exact=*/false>(context, bits, receive, message, handle...);
    const MatchKey key = unpacked(bits);
    if (context->unexpected.take_newest(key, message, counter_of(unexpected_)))
      return done(TAGLINE_MATCHED);
    return wait<own, unmet, /*exact=*/false>(context, bits, receive, handle...);
  }

  // Three ways to take what a look has found: what calls nothing, and so saves no registers, a part
  // of the look, which loads again what the look has loaded, as to keep that in registers moves all
  // arguments into others; the same where that was the last entry of the index; and what always
  // does. ends_apart: GCC does not let what may follow the look share the end, for three
  // instructions more.
  template <tagline_side which, bool ends_apart = false, class Found>
  [[gnu::always_inline]] tagline_status take_found_at_hand(Context* context, Found found,
                                                           void** cookie) noexcept {
    Queue& queue = queue_of(*context, which);
    keep_no_loads();
    bool empties = false;
    if (!queue.template take_found_at_hand<kQueueSide<which>>(found, cookie, empties)) [[unlikely]]
      return take_found<which>(context, found, cookie);
    if (empties) [[unlikely]]
      return leave_index<which>(context);
    counter_of(side_of(which))(1, true);
    if constexpr (ends_apart) keep_no_loads();
    return done(TAGLINE_MATCHED);
  }
  template <tagline_side which>
  [[gnu::noinline, gnu::flatten]] tagline_status leave_index(Context* context) noexcept {
    counter_of(side_of(which))(1, true);
    queue_of(*context, which).leave_index();
    return done(TAGLINE_MATCHED);
  }
  // noipa: or GCC would leave out what of `found` is only there to stay in its register. Clang does
  // not know it.
  template <tagline_side which, class Found>
#if __has_cpp_attribute(gnu::noipa)
  [[gnu::noipa]]
#endif
  [[gnu::noinline, gnu::flatten]] tagline_status
  take_found(Context* context, Found found, void** cookie) noexcept {
    counter_of(side_of(which))(1, true);
    queue_of(*context, which).take_found(found, cookie);
    return done(TAGLINE_MATCHED);
  }

  [[gnu::noinline]] tagline_status claim_and_tell(Context* context, Envelope envelope,
                                                  void** message, Envelope* found) noexcept {
    const auto hit = find_in(context->unexpected, receive_key(envelope), unexpected_);
    if (!hit) return done(TAGLINE_NOT_FOUND);
    const QueueEntry entry = take(context->unexpected, hit, unexpected_);
    *message = entry.cookie;
    *found = key_envelope(envelope.context_id, entry.key);
    return done(TAGLINE_MATCHED);
  }

  // Counts what a look tells.
  static auto counter_of(Side& side) noexcept {
    return [&side](std::uint64_t depth, bool taken) {
      side.note_gone(taken);
      side.count_search(depth, taken);
    };
  }

  template <tagline_side which>
  bool search_and_take(Context* context, const MatchKey& key, void** cookie) noexcept {
    return take_from(queue_of(*context, which), key, cookie, [&](std::uint64_t depth, bool taken) {
      Side& side = side_of(which);
      side.note_gone(taken);
      count_search(side, depth, taken);
    });
  }

  void count_search(Side& side, std::uint64_t depth, bool matched) noexcept {
    side.count_search(depth, matched);
    note_memory(side, depth);
  }

  // A deep search may have made an index, and so taken memory as an append does.
  void note_memory(Side& side, std::uint64_t depth) noexcept {
    if constexpr (OffersIndex<Queue>) {
      if (depth > kDeep && side.pause_at == 0) [[unlikely]]
        plan_pause(side);
    }
  }

  // What is found counts as a match, which take() makes it.
  auto find_in(Queue& queue, const MatchKey& key, Side& side) noexcept {
    if (queue.empty()) return typename Queue::Hit{};
    std::uint64_t depth = 0;
    const auto hit = queue.find(key, depth);
    count_search(side, depth, static_cast<bool>(hit));
    return hit;
  }

  static QueueEntry take(Queue& queue, typename Queue::Hit hit, Side& side) noexcept {
    const QueueEntry entry = queue.at(hit);
    queue.erase(hit);
    side.note_gone();
    return entry;
  }

  // The ways to append, from what nearly always does to what always does. bits: of an exact key.
  template <tagline_side which, class... Handle>
  tagline_status append_exact(Context* context, std::uint64_t bits, void* cookie,
                              Handle... handle) noexcept {
    const Queue& queue = queue_of(*context, which);
    if (!queue.has_room()) [[unlikely]] {
      if constexpr (OffersIndex<Queue>) {
        if (queue.holds_newest()) [[unlikely]]
          return append_behind_newest<which>(context, bits, cookie, handle...);
      }
      return append_to_full<which>(context, bits, cookie, handle...);
    }
    return push<which>(context, bits, cookie, handle...);
  }

  // Where there is no room, nearly always an index takes it at hand. Whatever takes more is
  // a jump away, so that this saves no registers.
  template <tagline_side which, class... Handle>
  [[gnu::noinline, gnu::flatten, gnu::hot]] tagline_status append_to_full(
      Context* context, std::uint64_t bits, void* cookie, Handle... handle) noexcept {
    if constexpr (OffersIndex<Queue>) {
      Queue& queue = queue_of(*context, which);
      const MatchKey key = {bits, kSourceMask | kTagMask};
      if (is_numbered_next<which>() || queue.waits_here())
        return push<which>(context, bits, cookie, handle...);
      const std::uint64_t sequence = side_of(which).next_sequence;
      if (queue.template append_at_hand<kQueueSide<which>>({key, cookie, sequence}))
        return note_append<which>(sequence, handle...);
      if constexpr (which == TAGLINE_UNEXPECTED) {
        // For receives with wildcards messages are listed, or else, as among many, logged.
        if (queue.only_lists()) return append_and_list(context, bits, cookie);
        if (queue.only_logs() && queue.append_and_log({key, cookie, sequence}))
          return note_append<which>(sequence, handle...);
      }
    }
    return append_exact_behind<which>(context, bits, cookie, handle...);
  }
  // The same where messages are listed.
  [[gnu::noinline, gnu::flatten]] tagline_status append_and_list(Context* context,
                                                                 std::uint64_t bits,
                                                                 void* message) noexcept {
    constexpr tagline_side which = TAGLINE_UNEXPECTED;
    Queue& queue = context->unexpected;
    const MatchKey key = {bits, kSourceMask | kTagMask};
    const std::uint64_t sequence = unexpected_.next_sequence;
    if (!queue.append_and_list({key, message, sequence}))
      return append_exact_behind<which>(context, bits, message);
    return note_append<which>(sequence);
  }
  // The newest entry was not the match, and goes to the index first.
  template <tagline_side which, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status append_behind_newest(Context* context,
                                                                      std::uint64_t bits,
                                                                      void* cookie,
                                                                      Handle... handle) noexcept {
    Queue& queue = queue_of(*context, which);
    if (!queue.is_indexed()) return begin_index_and_append<which>(context, bits, cookie, handle...);
    const bool waits = is_numbered_next<which>() || queue.waits_here();
    if (queue.template pass_on_at_hand<kQueueSide<which>>()) {
      if (waits) return push<which>(context, bits, cookie, handle...);
      return append_to_full<which>(context, bits, cookie, handle...);
    }
    return pass_on_and_append<which>(context, bits, cookie, handle...);
  }
  // The same where an index begins with it.
  template <tagline_side which, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status begin_index_and_append(Context* context,
                                                                        std::uint64_t bits,
                                                                        void* cookie,
                                                                        Handle... handle) noexcept {
    if (queue_of(*context, which).template begin_index_at_hand<kQueueSide<which>>())
      return append_to_full<which>(context, bits, cookie, handle...);
    return append_exact_behind<which>(context, bits, cookie, handle...);
  }
  template <tagline_side which, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status pass_on_and_append(Context* context,
                                                                    std::uint64_t bits,
                                                                    void* cookie,
                                                                    Handle... handle) noexcept {
    Queue& queue = queue_of(*context, which);
    if (queue.pass_on_at_once()) return append_to_full<which>(context, bits, cookie, handle...);
    return append_exact_behind<which>(context, bits, cookie, handle...);
  }
  template <tagline_side which, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status append_exact_behind(Context* context,
                                                                     std::uint64_t bits,
                                                                     void* cookie,
                                                                     Handle... handle) noexcept {
    return append_behind<which>(context, bits, cookie, handle...);
  }

  // Of a receive with wildcards.
  tagline_status append_any(Context* context, std::uint64_t bits, void* receive,
                            tagline_handle* handle) noexcept {
    if (!context->posted.has_room()) return append_any_behind(context, bits, receive, handle);
    return push<TAGLINE_POSTED, /*exact=*/false>(context, bits, receive, handle);
  }
  [[gnu::noinline, gnu::flatten]] tagline_status append_any_behind(
      Context* context, std::uint64_t bits, void* receive, tagline_handle* handle) noexcept {
    return append_behind<TAGLINE_POSTED, /*exact=*/false>(context, bits, receive, handle);
  }

  template <tagline_side which, bool exact = true>
  tagline_status append_behind(Context* context, std::uint64_t bits, void* cookie,
                               tagline_handle* handle = nullptr) noexcept {
    if constexpr (OffersIndex<Queue>) {
      Queue& queue = queue_of(*context, which);
      if (!queue.holds_newest() || queue.pass_on_at_once()) {
        const std::uint64_t sequence = side_of(which).next_sequence;
        if (!is_numbered_next<which>() &&
            queue.append_at_once({key_of<exact>(bits), cookie, sequence}))
          return note_append<which>(sequence, handle);
      }
    }
    return append<which, exact>(context, bits, cookie, handle);
  }

  template <tagline_side which, bool exact = true>
  tagline_status append(Context* context, std::uint64_t bits, void* cookie,
                        tagline_handle* handle) noexcept {
    Queue& queue = queue_of(*context, which);
    if (!queue.has_room() && !make_room(queue, side_of(which))) [[unlikely]]
      return done(no_memory());
    return push<which, exact>(context, bits, cookie, handle);
  }

  // Wants room.
  template <tagline_side which, bool exact = true>
  tagline_status push(Context* context, std::uint64_t bits, void* cookie,
                      tagline_handle* handle = nullptr) noexcept {
    if constexpr (kMayNumber<which>) {
      if (is_numbered_next<which>()) [[unlikely]]
        return number_and_push(context, bits, cookie);
    }
    Queue& queue = queue_of(*context, which);
    const std::uint64_t sequence = side_of(which).next_sequence;
    if constexpr (exact || !KeepsPacked<Queue>) {
      queue.append({key_of<exact>(bits), cookie, sequence});
    } else {
      queue.append_wild({bits, cookie, sequence});
    }
    return note_append<which>(sequence, handle);
  }
  template <bool exact>
  static MatchKey key_of(std::uint64_t bits) noexcept {
    return exact ? MatchKey{bits, kSourceMask | kTagMask} : unpacked(bits);
  }

  // Whether what comes next has to be numbered first, as number_and_push() does.
  template <tagline_side which>
  static constexpr bool kMayNumber = (which == TAGLINE_UNEXPECTED) && Turns::kNumbersMessages;
  template <tagline_side which>
  bool is_numbered_next() noexcept {
    if constexpr (!kMayNumber<which>) return false;
    return side_of(which).next_sequence + 1 == side_of(which).pause_at;
  }
  // What follows once it is in the queue.
  template <tagline_side which>
  tagline_status note_append(std::uint64_t sequence, tagline_handle* handle = nullptr) noexcept {
    Side& side = side_of(which);
    if (which == TAGLINE_POSTED && handle != nullptr) *handle = sequence;
    side.next_sequence = sequence + 1;
    if (side.next_sequence == side.pause_at && !kMayNumber<which>) [[unlikely]]
      return pause(which);
    side.note_length();
    return done(TAGLINE_QUEUED);
  }

  // The same of a message that pauses the matcher: for its number, for what pause() does, or both.
  // So all others need not ask whether there are numbers.
  [[gnu::noinline, gnu::flatten]] tagline_status number_and_push(Context* context,
                                                                 std::uint64_t bits,
                                                                 void* message) noexcept {
    Side& side = unexpected_;
    const bool only_numbers = turns_.only_numbers(side);
    context->unexpected.append({{bits, kSourceMask | kTagMask}, message, side.next_sequence});
    ++side.next_sequence;
    side.note_length();
    if (!only_numbers || side.next_sequence == 0) [[unlikely]]
      return pause(TAGLINE_UNEXPECTED);
    side.pause_at = side.next_sequence + 1;
    return done(TAGLINE_QUEUED);
  }

  [[gnu::noinline]] bool make_room(Queue& queue, Side& side) noexcept {
    if (!queue.make_room()) return false;
    if (side.pause_at == 0) plan_pause(side);
    return true;
  }

  // Much memory is looked after now and then, see Contexts, and so is what Turns looks at.
  // Behind an append that is done but for the high water mark.
  [[gnu::noinline, gnu::cold]] tagline_status pause(tagline_side which) noexcept {
    look_after_memory(which);
    turns_.look(posted_.next_sequence + unexpected_.next_sequence);
    return done(TAGLINE_QUEUED);
  }
  void look_after_memory(tagline_side which) noexcept {
    Side& side = side_of(which);
    if (side.next_sequence == 0) side.skip_zero();
    side.note_length();
    contexts_.save_memory(posted_.length() + unexpected_.length(), posted_.next_sequence - 1,
                          unexpected_.next_sequence - 1, Contexts<Queue>::Clock::now());
    plan_pause(side);
  }

  void plan_pause(Side& side) noexcept {
    const bool numbers = &side == &unexpected_ && turns_.numbers_messages();
    // The sooner of both; 0 is never.
    const std::uint64_t looks =
        std::min(contexts_.appends_between_looks() - 1, turns_.appends_between_looks() - 1) + 1;
    const std::uint64_t appends = numbers ? 1 : looks;
    const std::uint64_t then = side.next_sequence + appends;
    side.pause_at = then > side.next_sequence ? then : 0;
  }

  // The end of every way but glance()'s: all is told, and the next call may come.
  tagline_status done(tagline_status status) noexcept {
    turns_.end();
    return status;
  }

  Contexts<Queue> contexts_;
  Side posted_;
  Side unexpected_{1};
  [[no_unique_address]] Turns turns_;

 private:
  static constexpr std::uint64_t kDeep = 16;  // entries
};

}  // namespace tagline
