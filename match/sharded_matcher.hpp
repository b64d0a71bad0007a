// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "match/shards.hpp"

namespace tagline {

// Calls with different keys do not meet (see match/shards.hpp for how wildcards do).
//
// Order. Receives that have a shard and accept one message have that message's shard, and are
// in order there. A wildcard receive that has none is posted with the gate closed and has a
// number above all receives before it and below all behind it; a message that arrives while
// it waits finds the gate closed, looks into its shard and among those wildcard receives, and
// takes the lower number. Messages are numbered as they are queued, from one counter, so
// a wildcard receive, probe or claim finds the oldest of all shards.
//
// Every call takes effect at one moment, in an order that could have been a single
// thread's: while it holds its shard, or all of them.
template <class Queue>
class ShardedMatcher final : public tagline_matcher {
  using Parts = Shards<Queue>;
  using Core = typename Parts::Core;
  using Shard = typename Parts::Shard;
  using Item = typename Parts::Item;
  using Found = typename Core::Found;

 public:
  ShardedMatcher(typename Queue::Parameters parameters, const simd::Kernels& kernels,
                 const tagline_options& options, std::size_t fixed_shards)
      : parts_(parameters, kernels, options, fixed_shards) {
    about->isa_name = kernels.isa;
  }

  // The six of every message.
  tagline_status post_receive(Envelope envelope, void* receive, void** message,
                              tagline_handle* handle) noexcept override {
    return enter<kPost, &ShardedMatcher::post_among>(envelope, receive, message, handle);
  }
  tagline_status arrive(Envelope envelope, void* message, void** receive) noexcept override {
    return enter<kArrive, &ShardedMatcher::arrive_among>(envelope, message, receive);
  }
  tagline_status claim(Envelope envelope, void** message, Envelope* found) noexcept override {
    return enter<kClaim, &ShardedMatcher::claim_among>(envelope, message, found);
  }
  tagline_status append_receive(Envelope envelope, void* receive,
                                tagline_handle* handle) noexcept override {
    return enter<kAppendReceive, &ShardedMatcher::append_receive_among>(envelope, receive, handle);
  }
  tagline_status match_message(Envelope envelope, void** receive) noexcept override {
    return enter<kMatch, &ShardedMatcher::match_among>(envelope, receive);
  }
  tagline_status append_message(Envelope envelope, void* message) noexcept override {
    return enter<kAppendMessage, &ShardedMatcher::append_message_among>(envelope, message);
  }

  tagline_status probe(Envelope envelope, void** message, Envelope* found) noexcept override {
    return parts_.visit(
        envelope,
        [&](Shard& shard) {
          return shard.core ? shard.core->probe(envelope, message, found) : TAGLINE_NOT_FOUND;
        },
        [&] { return look_at_message(envelope, tell(envelope, message, found)); });
  }

  tagline_status inspect(Envelope envelope, tagline_visitor visit, void* user) override {
    return parts_.visit(
        envelope,
        [&](Shard& shard) {
          return shard.core ? shard.core->inspect(envelope, visit, user) : TAGLINE_NOT_FOUND;
        },
        [&] {
          return look_at_message(envelope, [&](const QueueEntry& entry) {
            visit(user, TAGLINE_UNEXPECTED, key_envelope(envelope.context_id, entry.key),
                  entry.cookie);
          });
        });
  }

  tagline_status cancel_receive(Envelope envelope, void* receive) noexcept override {
    const auto cancel = [&](Shard& shard) {
      return shard.core ? shard.core->cancel_receive(envelope, receive) : TAGLINE_NOT_FOUND;
    };
    return parts_.visit(envelope, cancel, [&] {
      return parts_.has_shard(envelope) ? cancel(parts_.shard_of(envelope))
                                        : parts_.wild().cancel_receive(envelope, receive);
    });
  }

  // The handle does not tell the shard.
  tagline_status cancel_handle(std::uint64_t context_id, tagline_handle handle) noexcept override {
    tagline_status status = TAGLINE_NOT_FOUND;
    parts_.with_whole([&] {
      parts_.for_each_core([&](Core& core) {
        if (status != TAGLINE_OK) status = core.cancel_handle(context_id, handle);
      });
    });
    return status;
  }

  std::size_t drop_context(std::uint64_t context_id, tagline_visitor visit, void* user) override {
    return drop(context_id, visit, user, [&](Core& core, const auto& told) {
      parts_.forget_hints(context_id);
      return core.remove_context(context_id, told);
    });
  }

  std::size_t drop_source(std::uint64_t context_id, std::int32_t source, tagline_visitor visit,
                          void* user) override {
    return drop(context_id, visit, user, [&](Core& core, const auto& told) {
      return core.remove_source(context_id, source, told);
    });
  }

  // A promise spares work where a context has queues; nothing depends on it.
  tagline_status set_hints(std::uint64_t context_id, unsigned hints) noexcept override {
    tagline_status status = TAGLINE_OK;
    parts_.with_whole([&] { status = parts_.set_hints(context_id, hints); });
    return status;
  }

  tagline_status observe_memory(MemoryObserver* observer) noexcept override {
    tagline_status status = TAGLINE_OK;
    parts_.with_whole([&] { status = parts_.observe_memory(observer); });
    return status;
  }

  void for_each(tagline_visitor visit, void* user) const override {
    const auto tell_one = [&](tagline_side side, std::uint64_t id, const QueueEntry& entry) {
      visit(user, side, key_envelope(id, entry.key), entry.cookie);
    };
    parts_.with_whole([&] {
      std::vector<Item> all;
      try {
        all = parts_.items();
      } catch (const std::bad_alloc&) {
        // Without memory to sort them, shard by shard.
        for (const tagline_side side : {TAGLINE_POSTED, TAGLINE_UNEXPECTED}) {
          parts_.for_each_core([&](Core& core) {
            core.for_each_entry(side, [&](std::uint64_t id, const QueueEntry& entry) {
              tell_one(side, id, entry);
            });
          });
        }
        return;
      }
      for (const Item& item : all) tell_one(item.side, item.context_id, item.entry);
    });
  }

  tagline_statistics statistics() const noexcept override {
    tagline_statistics all;
    parts_.with_whole([&] { all = parts_.statistics(); });
    return all;
  }

 private:
  // ---- Into a shard ----------------------------------------------------------------

  static constexpr auto kPost = [](Core& core, auto... with) { return core.post_receive(with...); };
  static constexpr auto kArrive = [](Core& core, auto... with) { return core.arrive(with...); };
  static constexpr auto kClaim = [](Core& core, auto... with) { return core.claim(with...); };
  static constexpr auto kAppendReceive = [](Core& core, auto... with) {
    return core.append_receive(with...);
  };
  static constexpr auto kMatch = [](Core& core, auto... with) {
    return core.match_message(with...);
  };
  static constexpr auto kAppendMessage = [](Core& core, auto... with) {
    return core.append_message(with...);
  };

  // A thread alone jumps into call(core, ...), which ends the turn, see TurnsAtShard. Behind that,
  // each a jump further and saving registers for itself only, are the thread that the lock of
  // one of many shards favours; whoever finds the lock of a shard free, and it was its own, or
  // another's, before; whoever waits for it; and all else: among().
  template <auto call, auto among, class... Arguments>
  [[gnu::always_inline]] tagline_status enter(Envelope envelope, Arguments... arguments) noexcept {
    if (Core* const core = parts_.enter_alone()) return call(*core, envelope, arguments...);
    return enter_favoured<call, among>(envelope, arguments...);
  }
  template <auto call, auto among, class... Arguments>
  [[gnu::noinline]] tagline_status enter_favoured(Envelope envelope,
                                                  Arguments... arguments) noexcept {
    return parts_.enter_favoured(
        envelope,
        [&](Shard& shard) {
          if constexpr (is_receive<call>) {
            if (!parts_.has_number_among(shard)) return number_and<call>(envelope, arguments...);
          }
          return call(*shard.core, envelope, arguments...);
        },
        [&] { return enter_by_lock<call, among>(envelope, arguments...); });
  }
  template <auto call, auto among, class... Arguments>
  [[gnu::noinline]] tagline_status enter_by_lock(Envelope envelope,
                                                 Arguments... arguments) noexcept {
    const typename Parts::Place place = parts_.find_open(envelope);
    if (place.shard == nullptr) return (this->*among)(envelope, arguments...);
    if (!place.shard->lock.try_lock()) return enter_later<call, among>(envelope, arguments...);
    if (!parts_.enter_by_lock(place)) return (this->*among)(envelope, arguments...);
    if (parts_.hands_over(*place.shard, envelope))
      return enter_in_turns<call, among>(envelope, arguments...);
    if constexpr (is_receive<call>) {
      if (!parts_.has_number(place))
        return leave(*place.shard, number_and<call>(envelope, arguments...));
    }
    return leave(*place.shard, call(*place.shard->core, envelope, arguments...));
  }
  static tagline_status leave(Shard& shard, tagline_status status) noexcept {
    shard.lock.unlock();
    return status;
  }
  // In the turn that has been entered. Apart: it needs more registers.
  template <auto call, class... Arguments>
  [[gnu::noinline, gnu::cold]] tagline_status number_and(Envelope envelope,
                                                         Arguments... arguments) noexcept {
    Shard& shard = parts_.shard_of(envelope);
    parts_.number_receive(shard);
    return call(*shard.core, envelope, arguments...);
  }
  template <auto call, auto among, class... Arguments>
  [[gnu::noinline]] tagline_status enter_in_turns(Envelope envelope,
                                                  Arguments... arguments) noexcept {
    Shard& shard = parts_.shard_of(envelope);
    if (!parts_.stay_or_grow(shard, envelope, /*lock_was_free=*/true))
      return (this->*among)(envelope, arguments...);
    if constexpr (is_receive<call>) parts_.number_receive(shard);
    return leave(shard, call(*shard.core, envelope, arguments...));
  }
  template <auto call, auto among, class... Arguments>
  [[gnu::noinline]] tagline_status enter_later(Envelope envelope, Arguments... arguments) noexcept {
    const typename Parts::Place place = parts_.find_open(envelope);
    if (place.shard == nullptr) return (this->*among)(envelope, arguments...);
    Shard& shard = *place.shard;
    shard.lock.lock_later();
    if (!parts_.enter_by_lock(place)) return (this->*among)(envelope, arguments...);
    if (parts_.hands_over(shard, envelope) &&
        !parts_.stay_or_grow(shard, envelope, /*lock_was_free=*/false)) {
      return (this->*among)(envelope, arguments...);
    }
    if constexpr (is_receive<call>) parts_.number_receive(shard);
    return leave(shard, call(*shard.core, envelope, arguments...));
  }
  template <auto call>
  static constexpr bool is_receive = std::is_same_v<decltype(call), decltype(kPost)> ||
                                     std::is_same_v<decltype(call), decltype(kAppendReceive)>;

  // ---- Among other threads ---------------------------------------------------------

  [[gnu::noinline]] tagline_status post_among(Envelope envelope, void* receive, void** message,
                                              tagline_handle* handle) noexcept {
    return parts_.visit(
        envelope, [&](Shard& shard) { return post(shard, envelope, receive, message, handle); },
        [=, this] { return post_closed(envelope, receive, message, handle); });
  }
  [[gnu::noinline]] tagline_status arrive_among(Envelope envelope, void* message,
                                                void** receive) noexcept {
    return parts_.visit(
        envelope,
        [&](Shard& shard) {
          return parts_.ready(shard) ? shard.core->arrive(envelope, message, receive) : no_memory();
        },
        [=, this] { return arrive_closed(envelope, message, receive); });
  }
  [[gnu::noinline]] tagline_status claim_among(Envelope envelope, void** message,
                                               Envelope* found) noexcept {
    return parts_.visit(
        envelope,
        [&](Shard& shard) {
          return shard.core ? shard.core->claim(envelope, message, found) : TAGLINE_NOT_FOUND;
        },
        [=, this] { return take_message(envelope, tell(envelope, message, found)); });
  }
  [[gnu::noinline]] tagline_status append_receive_among(Envelope envelope, void* receive,
                                                        tagline_handle* handle) noexcept {
    return parts_.visit(
        envelope, [&](Shard& shard) { return append_receive(shard, envelope, receive, handle); },
        [=, this] {
          return parts_.has_shard(envelope)
                     ? append_receive(parts_.shard_of(envelope), envelope, receive, handle)
                     : append_wild(envelope, receive, handle);
        });
  }
  [[gnu::noinline]] tagline_status match_among(Envelope envelope, void** receive) noexcept {
    return parts_.visit(
        envelope,
        [&](Shard& shard) {
          return shard.core ? shard.core->match_message(envelope, receive) : TAGLINE_NOT_FOUND;
        },
        [=, this] { return take_receive(parts_.shard_of(envelope), envelope, receive); });
  }
  [[gnu::noinline]] tagline_status append_message_among(Envelope envelope, void* message) noexcept {
    return parts_.visit(
        envelope, [&](Shard& shard) { return append_message(shard, envelope, message); },
        [=, this] { return append_message(parts_.shard_of(envelope), envelope, message); });
  }

  tagline_status post(Shard& shard, Envelope envelope, void* receive, void** message,
                      tagline_handle* handle) noexcept {
    if (!parts_.ready(shard)) return no_memory();
    parts_.number_receive(shard);
    return shard.core->post_receive(envelope, receive, message, handle);
  }

  tagline_status append_receive(Shard& shard, Envelope envelope, void* receive,
                                tagline_handle* handle) noexcept {
    if (!parts_.ready(shard)) return no_memory();
    parts_.number_receive(shard);
    return shard.core->append_receive(envelope, receive, handle);
  }

  tagline_status append_message(Shard& shard, Envelope envelope, void* message) noexcept {
    return parts_.ready(shard) ? shard.core->append_message(envelope, message) : no_memory();
  }

  // ---- With the gate closed ------------------------------------------------------

  [[gnu::noinline]] tagline_status post_closed(Envelope envelope, void* receive, void** message,
                                               tagline_handle* handle) noexcept {
    if (parts_.has_shard(envelope)) {
      return post(parts_.shard_of(envelope), envelope, receive, message, handle);
    }
    const tagline_status status = take_message(envelope, tell(envelope, message, nullptr));
    return status == TAGLINE_MATCHED ? status : append_wild(envelope, receive, handle);
  }

  [[gnu::noinline]] tagline_status arrive_closed(Envelope envelope, void* message,
                                                 void** receive) noexcept {
    Shard& shard = parts_.shard_of(envelope);
    const tagline_status status = take_receive(shard, envelope, receive);
    return status == TAGLINE_MATCHED ? status : append_message(shard, envelope, message);
  }

  tagline_status append_wild(Envelope envelope, void* receive, tagline_handle* handle) noexcept {
    parts_.wild().advance(TAGLINE_POSTED, parts_.number_wild());
    return parts_.wild().append_receive(envelope, receive, handle);
  }

  // The oldest receive of the shard or the oldest one with wildcards, whichever was first.
  tagline_status take_receive(Shard& shard, Envelope envelope, void** receive) noexcept {
    Core& wild = parts_.wild();
    const Found exact = shard.core ? shard.core->find(TAGLINE_POSTED, envelope) : Found{};
    const Found other = wild.find(TAGLINE_POSTED, envelope);
    if (!exact && !other) return TAGLINE_NOT_FOUND;
    const bool exact_first = exact && (!other || Parts::older(exact.sequence, other.sequence));
    if (exact && other) (exact_first ? wild : *shard.core).let_go(TAGLINE_POSTED);
    *receive =
        (exact_first ? shard.core->take(TAGLINE_POSTED, exact) : wild.take(TAGLINE_POSTED, other))
            .cookie;
    return TAGLINE_MATCHED;
  }

  // use(core, found) of the oldest message of all shards.
  template <class Use>
  tagline_status with_oldest_message(Envelope envelope, Use use) noexcept {
    Core* from = nullptr;
    Found oldest;
    const auto look = [&](Core& core) {
      const Found found = core.find(TAGLINE_UNEXPECTED, envelope);
      if (!found) return;
      const bool older = from == nullptr || Parts::older(found.sequence, oldest.sequence);
      if (from != nullptr) (older ? *from : core).let_go(TAGLINE_UNEXPECTED);
      if (!older) return;
      from = &core;
      oldest = found;
    };
    if (parts_.has_shard(envelope)) {
      Shard& shard = parts_.shard_of(envelope);
      if (shard.core) look(*shard.core);
    } else {
      parts_.for_each_core(look);
    }
    if (from == nullptr) return TAGLINE_NOT_FOUND;
    use(*from, oldest);
    return TAGLINE_MATCHED;
  }

  template <class Tell>
  tagline_status take_message(Envelope envelope, Tell told) noexcept {
    return with_oldest_message(envelope, [&](Core& core, const Found& found) {
      told(core.take(TAGLINE_UNEXPECTED, found));
    });
  }
  template <class Tell>
  tagline_status look_at_message(Envelope envelope, Tell told) {
    return with_oldest_message(envelope, [&](Core& core, const Found& found) {
      told(core.look(TAGLINE_UNEXPECTED, found));
    });
  }

  template <class Remove>
  std::size_t drop(std::uint64_t context_id, tagline_visitor visit, void* user, Remove remove) {
    std::size_t dropped = 0;
    const auto tell_one = teller(context_id, visit, user);
    parts_.with_whole([&] {
      std::vector<Item> all;
      bool sorted = true;
      try {
        all.reserve(parts_.length(context_id));
      } catch (const std::bad_alloc&) {
        sorted = false;  // told shard by shard
      }
      parts_.for_each_core([&](Core& core) {
        dropped += remove(core, [&](tagline_side side, const QueueEntry& entry) {
          sorted ? all.push_back({side, context_id, entry}) : tell_one(side, entry);
        });
      });
      std::sort(all.begin(), all.end(), Parts::is_older);
      for (const Item& item : all) tell_one(item.side, item.entry);
    });
    return dropped;
  }

  mutable Parts parts_;
};

}  // namespace tagline
