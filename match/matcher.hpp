// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "match/contexts.hpp"
#include "match/envelope.hpp"
#include "match/matcher_ways.hpp"
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
//
// Turns: what it does for threads that share it, see match/turns.hpp.
template <class Queue, class Turns = NoTurns>
class QueueMatcher final : public MatcherWays<Queue, Turns> {
  using Ways = MatcherWays<Queue, Turns>;
  using typename Ways::Context;
  using typename Ways::Side;
  using typename Ways::Unmet;
  using Ways::append;
  using Ways::append_any;
  using Ways::claim_and_tell;
  using Ways::contexts_;
  using Ways::done;
  using Ways::find_in;
  using Ways::look_after_memory;
  using Ways::make_room;
  using Ways::plan_pause;
  using Ways::posted_;
  using Ways::queue_of;
  using Ways::side_of;
  using Ways::take;
  using Ways::unexpected_;

 public:
  using typename tagline_matcher::Envelope;

  // shared_limit: of the memory of several matchers together, or nullptr.
  QueueMatcher(typename Queue::Parameters parameters, const simd::Kernels& kernels,
               std::size_t pool_bytes, std::uint64_t first_handle,
               MemoryLimit* shared_limit = nullptr)
      : Ways(parameters, kernels, pool_bytes, first_handle, shared_limit) {
    this->about->isa_name = kernels.isa;
  }
  ~QueueMatcher() override { contexts_.memory().note_out_of_use(this); }

  // The two operations of every message: what nearly all of them do is here or a jump
  // away, without a call. For that every other way takes at most the six arguments that
  // fit registers. Flattened: key and hit stay in registers, which through memory cost more
  // than a short search.
  [[gnu::flatten, gnu::hot]] tagline_status post_receive(Envelope envelope, void* receive,
                                                         void** message,
                                                         tagline_handle* handle) noexcept override {
    if (!contexts_.is_last(envelope.context_id)) [[unlikely]]
      return with_context<&QueueMatcher::post_receive>(envelope, receive, message, handle);
    const std::uint64_t bits = exact_key(envelope).bits;
    if (Context* const last = contexts_.last(bits, QueueSide::unexpected)) [[likely]]
      return Ways::template meet_receive<Unmet::waits>(last, envelope, receive, message, handle);
    return with_context<&QueueMatcher::post_receive>(of_last(envelope), receive, message, handle);
  }

  [[gnu::flatten, gnu::hot]] tagline_status arrive(Envelope envelope, void* message,
                                                   void** receive) noexcept override {
    if (!contexts_.is_last(envelope.context_id)) [[unlikely]]
      return with_context<&QueueMatcher::arrive>(envelope, message, receive);
    const std::uint64_t bits = exact_key(envelope).bits;
    if (Context* const last = contexts_.last(bits, QueueSide::posted)) [[likely]]
      return Ways::template meet<TAGLINE_UNEXPECTED, Unmet::waits>(last, bits, message, receive);
    return with_context<&QueueMatcher::arrive>(of_last(envelope), message, receive);
  }

  // Halves of these two, for hosts that store something only if it has to wait.
  [[gnu::flatten, gnu::hot]] tagline_status claim(Envelope envelope, void** message,
                                                  Envelope* found) noexcept override {
    if (!contexts_.is_last(envelope.context_id)) [[unlikely]]
      return with_known_context<&QueueMatcher::claim>(envelope, message, found);
    const std::uint64_t bits = exact_key(envelope).bits;
    if (Context* const last = contexts_.last(bits, QueueSide::unexpected)) [[likely]]
      return claim_in(last, envelope, message, found);
    return with_known_context<&QueueMatcher::claim>(of_last(envelope), message, found);
  }

  [[gnu::flatten, gnu::hot]] tagline_status match_message(Envelope envelope,
                                                          void** receive) noexcept override {
    if (!contexts_.is_last(envelope.context_id)) [[unlikely]]
      return with_known_context<&QueueMatcher::match_message>(envelope, receive);
    const std::uint64_t bits = exact_key(envelope).bits;
    if (Context* const last = contexts_.last(bits, QueueSide::posted)) [[likely]]
      return Ways::template meet<TAGLINE_UNEXPECTED, Unmet::leaves>(last, bits, nullptr, receive);
    return with_known_context<&QueueMatcher::match_message>(of_last(envelope), receive);
  }

  [[gnu::flatten, gnu::hot]] tagline_status append_receive(
      Envelope envelope, void* receive, tagline_handle* handle) noexcept override {
    if (!contexts_.is_last(envelope.context_id)) [[unlikely]]
      return with_context<&QueueMatcher::append_receive>(envelope, receive, handle);
    const std::uint64_t bits = exact_key(envelope).bits;
    if (Context* const last = contexts_.last(bits, QueueSide::posted)) [[likely]]
      return append_receive_to(last, envelope, receive, handle);
    return with_context<&QueueMatcher::append_receive>(of_last(envelope), receive, handle);
  }

  [[gnu::flatten, gnu::hot]] tagline_status append_message(Envelope envelope,
                                                           void* message) noexcept override {
    if (!contexts_.is_last(envelope.context_id)) [[unlikely]]
      return with_context<&QueueMatcher::append_message>(envelope, message);
    const std::uint64_t bits = exact_key(envelope).bits;
    if (Context* const last = contexts_.last(bits, QueueSide::unexpected)) [[likely]]
      return Ways::template append_exact<TAGLINE_UNEXPECTED>(last, bits, message);
    return with_context<&QueueMatcher::append_message>(of_last(envelope), message);
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

  // ---- Parts, for matchers that are made of several of these, one thread at a time.

  Turns& turns() noexcept { return this->turns_; }
  // Gives up what it holds, its observer included. From then on only turns() may be asked for.
  void retire() noexcept {
    NodeMemory& memory = contexts_.memory();
    contexts_.retire();
    memory.note_out_of_use(this);
    memory.set_observer(nullptr);
  }
  // See TurnsAtShard.
  void number_messages_from(std::atomic<std::uint64_t>* numbers) noexcept {
    this->turns_.number_from(numbers);
    plan_pause(unexpected_);
  }

  // What a search has found, until something changes: to be taken or to be let go.
  struct Found {
    Context* context = nullptr;
    typename Queue::Hit hit{};
    std::uint64_t sequence = 0;
    explicit operator bool() const noexcept { return static_cast<bool>(hit); }
  };

  // Before a search of a queue in which another thread has searched: what counts it comes from
  // there meanwhile.
  void fetch_counts(tagline_side side) noexcept { __builtin_prefetch(&side_of(side), 1); }

  // The oldest posted receive that accepts a message; the oldest message for a receive.
  Found find(tagline_side side, Envelope envelope) noexcept {
    Context* context = contexts_.find(envelope.context_id);
    if (context == nullptr) return {};
    Queue& queue = queue_of(*context, side);
    const MatchKey key = side == TAGLINE_POSTED ? exact_key(envelope) : receive_key(envelope);
    const auto hit = find_in(queue, key, side_of(side));
    return {context, hit, hit ? queue.at(hit).sequence : 0};
  }

  // Of a context, or nullptr. Changes nothing: several threads may ask at once.
  const Queue* look_up(tagline_side side, std::uint64_t context_id) const noexcept {
    Context* const context = contexts_.look_up(context_id);
    return context == nullptr ? nullptr : &queue_of(*context, side);
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
    posted_.note_gone();
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
  // Promised of the context; 0 if there is none.
  unsigned hints(std::uint64_t context_id) noexcept {
    const Context* context = contexts_.find(context_id);
    return context == nullptr ? 0 : context->hints;
  }
  bool is_empty(tagline_side side, std::uint64_t context_id) const noexcept {
    const Queue* const queue = look_up(side, context_id);
    return queue == nullptr || queue->empty();
  }
  // Of one context: walks over them.
  std::size_t length(tagline_side side, std::uint64_t context_id) noexcept {
    Context* context = contexts_.find(context_id);
    std::size_t length = 0;
    if (context != nullptr) {
      queue_of(*context, side).for_each([&](const QueueEntry&) { ++length; });
    }
    return length;
  }

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
    if (++side.next_sequence == side.pause_at) look_after_memory(which);
    side.note_length();
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
        side_of(side).note_gone();
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
  [[gnu::always_inline]] tagline_status claim_in(Context* context, const Envelope& envelope,
                                                 void** message, Envelope* found) noexcept {
    if (found != nullptr) [[unlikely]]
      return claim_and_tell(context, envelope, message, found);
    return Ways::template meet_receive<Unmet::leaves>(context, envelope, nullptr, message);
  }
  [[gnu::always_inline]] tagline_status append_receive_to(Context* context,
                                                          const Envelope& envelope, void* receive,
                                                          tagline_handle* handle) noexcept {
    const MatchKey key = exact_key(envelope);
    if (!is_exact(envelope)) return append_any(context, key.bits, receive, handle);
    return Ways::template append_exact<TAGLINE_POSTED>(context, key.bits, receive, handle);
  }

  // The same envelope, of the id that was used last: read again, so that no way to there has to
  // keep it in a register.
  Envelope of_last(const Envelope& envelope) const noexcept {
    keep_no_loads();
    return {contexts_.last_id(), envelope.source, envelope.tag};
  }
  // Finds or makes the context, then starts the operation again. Apart, so that
  // the operations themselves call nothing and keep their values in registers.
  template <auto operation, class... Arguments>
  [[gnu::noinline, gnu::cold]] tagline_status with_context(Envelope envelope,
                                                           Arguments... arguments) noexcept {
    if (contexts_.find_or_make(envelope.context_id) == nullptr) return done(no_memory());
    return (this->*operation)(envelope, arguments...);
  }
  // The same for operations that find nothing where there is no context.
  template <auto operation, class... Arguments>
  [[gnu::noinline, gnu::cold]] tagline_status with_known_context(Envelope envelope,
                                                                 Arguments... arguments) noexcept {
    if (contexts_.find(envelope.context_id) == nullptr) return done(TAGLINE_NOT_FOUND);
    return (this->*operation)(envelope, arguments...);
  }

  template <class Predicate, class Visit>
  std::size_t remove(std::uint64_t context_id, Predicate wanted, Visit visit) {
    Context* context = contexts_.find(context_id);
    if (context == nullptr) return 0;
    const auto remove_from = [&](tagline_side which, Queue& queue, Side& side) {
      return queue.remove_if(wanted, [&](const QueueEntry& entry) {
        side.note_gone();
        ++side.unmatched;
        visit(which, entry);
      });
    };
    return remove_from(TAGLINE_POSTED, context->posted, posted_) +
           remove_from(TAGLINE_UNEXPECTED, context->unexpected, unexpected_);
  }
};

}  // namespace tagline
