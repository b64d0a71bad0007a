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
#include "queues/resources.hpp"

namespace tagline {

// The matching rules over any queue structure (see queues/linear.hpp for what
// one offers).
//
// A match is exact on the context, so each context has a pair of queues of its
// own: no search looks at another communicator's entries, and no structure has
// to store the context.
//
// Public calls read as a sentence: search the other queue, else append to mine.
template <class Queue>
class QueueMatcher final : public tagline_matcher {
 public:
  // shared_limit: of the memory of several matchers together, or nullptr.
  QueueMatcher(typename Queue::Parameters parameters, const simd::Kernels& kernels,
               std::size_t pool_bytes, std::uint64_t first_handle,
               MemoryLimit* shared_limit = nullptr)
      : contexts_(parameters, kernels, pool_bytes, shared_limit),
        posted_(first_handle == 0 ? 1 : first_handle) {
    isa_name = kernels.isa;
  }
  ~QueueMatcher() override { contexts_.memory().note_out_of_use(this); }

  // The two operations of every message: what nearly all of them do is here or a jump
  // away, without a call. For that every other way takes at most the six arguments that
  // fit registers. Flattened: key and hit stay in registers, which through memory cost more
  // than a short search.
  [[gnu::flatten]] tagline_status post_receive(Envelope envelope, void* receive, void** message,
                                               tagline_handle* handle) noexcept override {
    Context* context = contexts_.last();
    if (!is_context(context, envelope)) [[unlikely]] {
      return with_context<&QueueMatcher::post_receive>(envelope, receive, message, handle);
    }
    const MatchKey key = exact_key(envelope);
    if (!is_exact(envelope)) return meet_any<kWaits>(context, key.bits, receive, message, handle);
    return meet<TAGLINE_POSTED, kWaits>(context, key.bits, receive, message, handle);
  }

  [[gnu::flatten]] tagline_status arrive(Envelope envelope, void* message,
                                         void** receive) noexcept override {
    Context* context = contexts_.last();
    if (!is_context(context, envelope)) [[unlikely]] {
      return with_context<&QueueMatcher::arrive>(envelope, message, receive);
    }
    return meet<TAGLINE_UNEXPECTED, kWaits>(context, exact_key(envelope).bits, message, receive);
  }

  // Halves of these two, for hosts that store something only if it has to wait.
  [[gnu::flatten]] tagline_status claim(Envelope envelope, void** message,
                                        Envelope* found) noexcept override {
    Context* context = contexts_.last();
    if (!is_context(context, envelope)) [[unlikely]] {
      return with_known_context<&QueueMatcher::claim>(envelope, message, found);
    }
    if (found != nullptr) [[unlikely]]
      return claim_and_tell(context, envelope, message, found);
    const MatchKey key = exact_key(envelope);
    if (!is_exact(envelope)) return meet_any<kLeaves>(context, key.bits, nullptr, message);
    return meet<TAGLINE_POSTED, kLeaves>(context, key.bits, nullptr, message);
  }

  [[gnu::flatten]] tagline_status match_message(Envelope envelope,
                                                void** receive) noexcept override {
    Context* context = contexts_.last();
    if (!is_context(context, envelope)) [[unlikely]] {
      return with_known_context<&QueueMatcher::match_message>(envelope, receive);
    }
    return meet<TAGLINE_UNEXPECTED, kLeaves>(context, exact_key(envelope).bits, nullptr, receive);
  }

  [[gnu::flatten]] tagline_status append_receive(Envelope envelope, void* receive,
                                                 tagline_handle* handle) noexcept override {
    Context* context = contexts_.last();
    if (!is_context(context, envelope)) [[unlikely]] {
      return with_context<&QueueMatcher::append_receive>(envelope, receive, handle);
    }
    const MatchKey key = exact_key(envelope);
    if (!is_exact(envelope)) return append_any(context, key.bits, receive, handle);
    return append_exact<TAGLINE_POSTED>(context, key.bits, receive, handle);
  }

  [[gnu::flatten]] tagline_status append_message(Envelope envelope,
                                                 void* message) noexcept override {
    Context* context = contexts_.last();
    if (!is_context(context, envelope)) [[unlikely]] {
      return with_context<&QueueMatcher::append_message>(envelope, message);
    }
    return append_exact<TAGLINE_UNEXPECTED>(context, exact_key(envelope).bits, message);
  }

  tagline_status probe(Envelope envelope, void** message, Envelope* found) noexcept override {
    Context* context = contexts_.find(envelope.context_id);
    if (context == nullptr) return TAGLINE_NOT_FOUND;
    const auto hit = find_in(context->unexpected, receive_key(envelope), unexpected_);
    if (!hit) return TAGLINE_NOT_FOUND;
    unexpected_.count_look();
    const QueueEntry entry = context->unexpected.at(hit);
    *message = entry.cookie;
    if (found != nullptr) *found = key_envelope(envelope.context_id, entry.key);
    return TAGLINE_MATCHED;
  }

  tagline_status cancel_receive(Envelope envelope, void* receive) noexcept override {
    return cancel(find_posted(envelope, receive));
  }

  tagline_status cancel_handle(std::uint64_t context_id, tagline_handle handle) noexcept override {
    return cancel(find_posted(context_id, handle));
  }

  std::size_t drop_context(std::uint64_t context_id, tagline_visitor visit, void* user) override {
    return remove_context(context_id, teller(context_id, visit, user));
  }

  std::size_t drop_source(std::uint64_t context_id, std::int32_t source, tagline_visitor visit,
                          void* user) override {
    return remove_source(context_id, source, teller(context_id, visit, user));
  }

  tagline_status set_hints(std::uint64_t context_id, unsigned hints) noexcept override {
    Context* context = contexts_.find_or_make(context_id);
    if (context == nullptr) return no_memory();
    context->set_hints(hints);
    return TAGLINE_OK;
  }

  void for_each(tagline_visitor visit, void* user) const override {
    for (const tagline_side side : {TAGLINE_POSTED, TAGLINE_UNEXPECTED}) {
      for_each_entry(side, [&](std::uint64_t id, const QueueEntry& entry) {
        visit(user, side, key_envelope(id, entry.key), entry.cookie);
      });
    }
  }

  tagline_statistics statistics() const noexcept override {
    tagline_statistics all = {posted_.statistics(), unexpected_.statistics(),
                              contexts_.memory().used_bytes()};
    all.posted.false_positives = contexts_.counts(QueueSide::posted).false_positives;
    all.unexpected.false_positives = contexts_.counts(QueueSide::unexpected).false_positives;
    return all;
  }

  // Of what there is already the observer learns by a move of the queues.
  tagline_status observe_memory(MemoryObserver* observer) noexcept override {
    NodeMemory& memory = contexts_.memory();
    memory.note_out_of_use(this);
    memory.set_observer(observer);
    memory.note_in_use(this, sizeof *this);
    if (observer == nullptr || contexts_.empty() || contexts_.move_queues()) return TAGLINE_OK;
    memory.note_out_of_use(this);
    memory.set_observer(nullptr);
    return no_memory();
  }

 private:
  using Context = MatchContext<Queue>;
  using Side = SideCounts;

 public:
  // ---- Parts, for matchers that are made of several of these, one thread at a time.

  // What a search has found, until something changes: to be taken or to be let go.
  struct Found {
    Context* context = nullptr;
    typename Queue::Hit hit{};
    std::uint64_t sequence = 0;
    explicit operator bool() const noexcept { return static_cast<bool>(hit); }
  };

  // The oldest posted receive that accepts a message; the oldest message for a receive.
  Found find(tagline_side side, Envelope envelope) noexcept {
    Context* context = contexts_.find(envelope.context_id);
    if (context == nullptr) return {};
    Queue& queue = queue_of(*context, side);
    const MatchKey key = side == TAGLINE_POSTED ? exact_key(envelope) : receive_key(envelope);
    const auto hit = find_in(queue, key, side_of(side));
    return {context, hit, hit ? queue.at(hit).sequence : 0};
  }

  // The very receive: by envelope and cookie, by sequence number.
  Found find_posted(Envelope envelope, void* receive) noexcept {
    Context* context = contexts_.find(envelope.context_id);
    if (context == nullptr) return {};
    const auto hit = context->posted.find_exact(receive_key(envelope), receive);
    return {context, hit, hit ? context->posted.at(hit).sequence : 0};
  }

  Found find_posted(std::uint64_t context_id, tagline_handle handle) noexcept {
    Context* context = contexts_.find(context_id);
    if (context == nullptr) return {};
    return {context, context->posted.find_sequence(handle), handle};
  }

  QueueEntry take(tagline_side side, const Found& found) noexcept {
    return take(queue_of(*found.context, side), found.hit, side_of(side));
  }
  QueueEntry look(tagline_side side, const Found& found) noexcept {
    side_of(side).count_look();
    return queue_of(*found.context, side).at(found.hit);
  }
  void let_go(tagline_side side) noexcept { side_of(side).count_look(); }
  tagline_status cancel(const Found& found) noexcept {
    if (!found) return TAGLINE_NOT_FOUND;
    found.context->posted.erase(found.hit);
    ++posted_.left;
    ++posted_.unmatched;
    return TAGLINE_OK;
  }

  // Of the entry appended next.
  std::uint64_t next_sequence(tagline_side side) noexcept { return side_of(side).next_sequence; }
  // Raises it; it never goes back.
  void advance(tagline_side side, std::uint64_t sequence) noexcept {
    side_of(side).advance(sequence);
  }
  std::uint64_t length(tagline_side side) noexcept { return side_of(side).length(); }

  // Appends with the entry's own sequence number, above those of its context.
  tagline_status append(tagline_side which, std::uint64_t context_id,
                        const QueueEntry& entry) noexcept {
    Context* context = contexts_.find_or_make(context_id);
    if (context == nullptr) return no_memory();
    Queue& queue = queue_of(*context, which);
    Side& side = side_of(which);
    if (!queue.has_room() && !make_room(queue, side)) return no_memory();
    side.advance(entry.sequence);
    queue.append(entry);
    if (++side.next_sequence == side.pause_at) return pause(which);
    side.high_water = std::max(side.high_water, side.length());
    return TAGLINE_QUEUED;
  }

  // The oldest entries of each context, at most so many in all, become the newest of
  // another matcher, which has none that are newer.
  void move_oldest(tagline_side side, std::size_t entries, QueueMatcher& to) noexcept {
    constexpr MatchKey kEveryEntry = {0, 0};
    contexts_.for_each([&](Context& context) {
      Queue& queue = queue_of(context, side);
      for (; entries > 0 && !queue.empty(); --entries) {
        std::uint64_t depth = 0;
        const auto oldest = queue.find(kEveryEntry, depth);
        if (to.append(side, context.id, queue.at(oldest)) != TAGLINE_QUEUED) return;
        queue.erase(oldest);
        ++side_of(side).left;
        ++side_of(side).unmatched;
      }
    });
  }

  // visit(context_id, entry), oldest first within a context.
  template <class Visit>
  void for_each_entry(tagline_side side, Visit visit) const {
    contexts_.for_each([&](Context& context) {
      const Queue& queue = queue_of(context, side);
      queue.for_each([&](const QueueEntry& entry) { visit(context.id, entry); });
    });
  }

  // visit(side, entry) once the entry is out.
  template <class Visit>
  std::size_t remove_context(std::uint64_t context_id, Visit visit) {
    const std::size_t removed = remove(
        context_id, [](const QueueEntry&) { return true; }, visit);
    contexts_.erase(context_id);
    return removed;
  }

  template <class Visit>
  std::size_t remove_source(std::uint64_t context_id, std::int32_t source, Visit visit) {
    return remove(
        context_id,
        [source](const QueueEntry& entry) {
          return !key_any_source(entry.key) && key_source(entry.key) == source;
        },
        visit);
  }

 private:
  Side& side_of(tagline_side side) noexcept {
    return side == TAGLINE_POSTED ? posted_ : unexpected_;
  }
  static constexpr tagline_side other_side(tagline_side side) noexcept {
    return side == TAGLINE_POSTED ? TAGLINE_UNEXPECTED : TAGLINE_POSTED;
  }
  static Queue& queue_of(Context& context, tagline_side side) noexcept {
    return side == TAGLINE_POSTED ? context.posted : context.unexpected;
  }

  static bool is_context(const Context* context, const Envelope& envelope) noexcept {
    return context != nullptr && context->id == envelope.context_id;
  }

  // Finds or makes the context, then starts the operation again. Apart, so that
  // the operations themselves call nothing and keep their values in registers.
  template <auto operation, class... Arguments>
  [[gnu::noinline, gnu::cold]] tagline_status with_context(Envelope envelope,
                                                           Arguments... arguments) noexcept {
    if (contexts_.find_or_make(envelope.context_id) == nullptr) return no_memory();
    return (this->*operation)(envelope, arguments...);
  }
  // The same for operations that find nothing where there is no context.
  template <auto operation, class... Arguments>
  [[gnu::noinline, gnu::cold]] tagline_status with_known_context(Envelope envelope,
                                                                 Arguments... arguments) noexcept {
    if (contexts_.find(envelope.context_id) == nullptr) return TAGLINE_NOT_FOUND;
    return (this->*operation)(envelope, arguments...);
  }

  // What a call brings waits if it meets nothing, or leaves again.
  static constexpr bool kWaits = true;
  static constexpr bool kLeaves = false;

  // What every call with an exact key does. own: the side of what it brings; met: where to put
  // the cookie of what it meets; handle: of receives. bits: source and tag as the envelope has
  // them, here and below. In four ways, from little to much; each but the first saves registers
  // for itself only, and is not there for queues that do not offer what it asks for.
  template <tagline_side own, bool waits, class... Handle>
  [[gnu::always_inline]] tagline_status meet(Context* context, std::uint64_t bits, void* cookie,
                                             void** met, Handle... handle) noexcept {
    Queue& other = queue_of(*context, other_side(own));
    if constexpr (OffersIndex<Queue>) {
      if (other.is_indexed()) return look<own, waits>(context, bits, cookie, met, handle...);
    }
    if (other.empty()) return wait<own, waits>(context, bits, cookie, handle...);
    if constexpr (OffersAtHand<Queue>) {
      return glance<own, waits>(context, bits, cookie, met, handle...);
    }
    const MatchKey key = {bits, kSourceMask | kTagMask};
    if (search_and_take<other_side(own)>(context, key, met)) return TAGLINE_MATCHED;
    return wait<own, waits>(context, bits, cookie, handle...);
  }

  // Where there is an index: a look into it, then at the newest entry. among: receives with
  // wildcards as well.
  template <tagline_side own, bool waits, bool among = false, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status look(Context* context, std::uint64_t bits,
                                                      void* cookie, void** met,
                                                      Handle... handle) noexcept {
    constexpr tagline_side side = other_side(own);
    Queue& other = queue_of(*context, side);
    if (!(among ? other.tells_among() : other.tells())) {
      constexpr bool further = side == TAGLINE_POSTED && !among;
      if constexpr (further) return look<own, waits, true>(context, bits, cookie, met, handle...);
      return search<own, waits>(context, bits, cookie, met, handle...);
    }
    const auto find = [&other, bits] {
      if constexpr (among) return other.look_among(bits);
      if constexpr (!among) return other.look(bits);
    };
    if (const auto found = find()) return take_found<side>(context, found, met);
    const MatchKey key = {bits, kSourceMask | kTagMask};
    if (other.take_newest(key, met, counter_of(side_of(side)))) return TAGLINE_MATCHED;
    return wait<own, waits>(context, bits, cookie, handle...);
  }

  // Where there is none: what is at hand.
  template <tagline_side own, bool waits, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status glance(Context* context, std::uint64_t bits,
                                                        void* cookie, void** met,
                                                        Handle... handle) noexcept {
    constexpr tagline_side side = other_side(own);
    const MatchKey key = {bits, kSourceMask | kTagMask};
    const Glance seen = queue_of(*context, side).take_at_hand(key, met, counter_of(side_of(side)));
    if (seen == Glance::taken) return TAGLINE_MATCHED;
    if (seen == Glance::none) return wait<own, waits>(context, bits, cookie, handle...);
    return search<own, waits>(context, bits, cookie, met, handle...);
  }

  template <tagline_side own, bool waits, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status search(Context* context, std::uint64_t bits,
                                                        void* cookie, void** met,
                                                        Handle... handle) noexcept {
    const MatchKey key = {bits, kSourceMask | kTagMask};
    if (search_and_take<other_side(own)>(context, key, met)) return TAGLINE_MATCHED;
    if constexpr (waits) return append<own>(context, key, cookie, handle...);
    return TAGLINE_NOT_FOUND;
  }

  template <tagline_side own, bool waits, class... Handle>
  tagline_status wait(Context* context, std::uint64_t bits, void* cookie,
                      Handle... handle) noexcept {
    if constexpr (waits) return append_exact<own>(context, bits, cookie, handle...);
    return TAGLINE_NOT_FOUND;
  }

  // The same for receives with wildcards.
  template <bool waits, class... Handle>
  [[gnu::noinline]] tagline_status meet_any(Context* context, std::uint64_t bits, void* receive,
                                            void** message, Handle... handle) noexcept {
    if constexpr (OffersIndex<Queue>) {
      if (context->unexpected.is_indexed())
        return look_for_any<waits>(context, bits, receive, message, handle...);
    }
    if (!context->unexpected.empty())
      return search_any<waits>(context, bits, receive, message, handle...);
    if constexpr (waits) return append_any(context, bits, receive, handle...);
    return TAGLINE_NOT_FOUND;
  }

  template <bool waits, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status look_for_any(Context* context, std::uint64_t bits,
                                                              void* receive, void** message,
                                                              Handle... handle) noexcept {
    if (const auto listed = context->unexpected.look_listed(bits))
      return take_found<TAGLINE_UNEXPECTED>(context, listed, message);
    return search_any<waits>(context, bits, receive, message, handle...);
  }

  template <bool waits, class... Handle>
  [[gnu::noinline, gnu::flatten]] tagline_status search_any(Context* context, std::uint64_t bits,
                                                            void* receive, void** message,
                                                            Handle... handle) noexcept {
    const MatchKey key = wildcard_key(context, bits);
    if (search_and_take<TAGLINE_UNEXPECTED>(context, key, message)) return TAGLINE_MATCHED;
    if constexpr (waits) {
      return context->posted.has_room()
                 ? push<TAGLINE_POSTED>(context, key, receive, handle...)
                 : append_behind<TAGLINE_POSTED>(context, key, receive, handle...);
    }
    return TAGLINE_NOT_FOUND;
  }

  static MatchKey wildcard_key(const Context* context, std::uint64_t bits) noexcept {
    const MatchKey exact = {bits, kSourceMask | kTagMask};
    return receive_key({context->id, key_source(exact), key_tag(exact)});
  }

  template <tagline_side which, class Found>
  [[gnu::noinline, gnu::flatten]] tagline_status take_found(Context* context, Found found,
                                                            void** cookie) noexcept {
    counter_of(side_of(which))(1, true);
    queue_of(*context, which).take_found(found, cookie);
    return TAGLINE_MATCHED;
  }

  [[gnu::noinline]] tagline_status claim_and_tell(Context* context, Envelope envelope,
                                                  void** message, Envelope* found) noexcept {
    const auto hit = find_in(context->unexpected, receive_key(envelope), unexpected_);
    if (!hit) return TAGLINE_NOT_FOUND;
    const QueueEntry entry = take(context->unexpected, hit, unexpected_);
    *message = entry.cookie;
    *found = key_envelope(envelope.context_id, entry.key);
    return TAGLINE_MATCHED;
  }

  // Counts what a look tells.
  static auto counter_of(Side& side) noexcept {
    return [&side](std::uint64_t depth, bool taken) {
      side.left += taken;
      side.count_search(depth, taken);
    };
  }

  template <tagline_side which>
  bool search_and_take(Context* context, const MatchKey& key, void** cookie) noexcept {
    return take_from(queue_of(*context, which), key, cookie, [&](std::uint64_t depth, bool taken) {
      Side& side = side_of(which);
      side.left += taken;
      count_search(side, depth, taken);
    });
  }

  // A deep search may have made an index, and so taken memory as an append does.
  void count_search(Side& side, std::uint64_t depth, bool matched) noexcept {
    side.count_search(depth, matched);
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
    ++side.left;
    return entry;
  }

  // The ways to append, from what nearly always does to what always does. bits: of an exact key.
  template <tagline_side which>
  tagline_status append_exact(Context* context, std::uint64_t bits, void* cookie,
                              tagline_handle* handle = nullptr) noexcept {
    if (!queue_of(*context, which).has_room()) [[unlikely]]
      return append_to_full<which>(context, bits, cookie, handle);
    return push<which>(context, {bits, kSourceMask | kTagMask}, cookie, handle);
  }

  // Where there is no room, nearly always an index makes some at hand. Whatever takes more is
  // a jump away, so that this saves no registers.
  template <tagline_side which>
  [[gnu::noinline, gnu::flatten]] tagline_status append_to_full(Context* context,
                                                                std::uint64_t bits, void* cookie,
                                                                tagline_handle* handle) noexcept {
    if constexpr (OffersIndex<Queue>) {
      if (queue_of(*context, which).make_room_at_hand())
        return push<which>(context, {bits, kSourceMask | kTagMask}, cookie, handle);
    }
    return append_exact_behind<which>(context, bits, cookie, handle);
  }
  template <tagline_side which>
  [[gnu::noinline, gnu::flatten]] tagline_status append_exact_behind(
      Context* context, std::uint64_t bits, void* cookie, tagline_handle* handle) noexcept {
    return append_behind<which>(context, {bits, kSourceMask | kTagMask}, cookie, handle);
  }

  // Of a receive with wildcards.
  tagline_status append_any(Context* context, std::uint64_t bits, void* receive,
                            tagline_handle* handle) noexcept {
    if (!context->posted.has_room()) return append_any_behind(context, bits, receive, handle);
    return push<TAGLINE_POSTED>(context, wildcard_key(context, bits), receive, handle);
  }
  [[gnu::noinline, gnu::flatten]] tagline_status append_any_behind(
      Context* context, std::uint64_t bits, void* receive, tagline_handle* handle) noexcept {
    return append_behind<TAGLINE_POSTED>(context, wildcard_key(context, bits), receive, handle);
  }

  template <tagline_side which>
  tagline_status append_behind(Context* context, const MatchKey& key, void* cookie,
                               tagline_handle* handle) noexcept {
    if constexpr (OffersIndex<Queue>) {
      if (queue_of(*context, which).make_room_at_once())
        return push<which>(context, key, cookie, handle);
    }
    return append<which>(context, key, cookie, handle);
  }

  template <tagline_side which>
  tagline_status append(Context* context, const MatchKey& key, void* cookie,
                        tagline_handle* handle = nullptr) noexcept {
    Queue& queue = queue_of(*context, which);
    if (!queue.has_room() && !make_room(queue, side_of(which))) [[unlikely]]
      return no_memory();
    return push<which>(context, key, cookie, handle);
  }

  // Wants room.
  template <tagline_side which>
  tagline_status push(Context* context, const MatchKey& key, void* cookie,
                      tagline_handle* handle) noexcept {
    Side& side = side_of(which);
    queue_of(*context, which).append({key, cookie, side.next_sequence});
    if (handle != nullptr) *handle = side.next_sequence;
    if (++side.next_sequence == side.pause_at) [[unlikely]]
      return pause(which);
    if (side.length() > side.high_water) [[unlikely]] {
      side.high_water = side.length();
    }
    return TAGLINE_QUEUED;
  }

  [[gnu::noinline]] bool make_room(Queue& queue, Side& side) noexcept {
    if (!queue.make_room()) return false;
    if (side.pause_at == 0) plan_pause(side);
    return true;
  }

  // Much memory is looked after now and then, see Contexts. Behind an append that is done
  // but for the high water mark.
  [[gnu::noinline, gnu::cold]] tagline_status pause(tagline_side which) noexcept {
    Side& side = side_of(which);
    if (side.next_sequence == 0) side.skip_zero();
    side.high_water = std::max(side.high_water, side.length());
    contexts_.save_memory(posted_.length() + unexpected_.length());
    plan_pause(side);
    return TAGLINE_QUEUED;
  }

  void plan_pause(Side& side) noexcept {
    const std::uint64_t then = side.next_sequence + kPauseAfter;
    side.pause_at = contexts_.holds_much() && then > side.next_sequence ? then : 0;
  }

  template <class Predicate, class Visit>
  std::size_t remove(std::uint64_t context_id, Predicate wanted, Visit visit) {
    Context* context = contexts_.find(context_id);
    if (context == nullptr) return 0;
    const auto remove_from = [&](tagline_side which, Queue& queue, Side& side) {
      return queue.remove_if(wanted, [&](const QueueEntry& entry) {
        ++side.left;
        ++side.unmatched;
        visit(which, entry);
      });
    };
    return remove_from(TAGLINE_POSTED, context->posted, posted_) +
           remove_from(TAGLINE_UNEXPECTED, context->unexpected, unexpected_);
  }

  static constexpr std::uint64_t kPauseAfter = 64;  // appends
  static constexpr std::uint64_t kDeep = 16;        // entries

  Contexts<Queue> contexts_;
  Side posted_;
  Side unexpected_{1};
};

}  // namespace tagline
