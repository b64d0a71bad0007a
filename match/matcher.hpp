// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include "match/envelope.hpp"
#include "match/tagline.h"
#include "queues/resources.hpp"

// What a host holds: the operations of tagline.h with the arguments checked.
// One call through the table per operation; everything below it is inlined for
// the queue structure chosen.
struct tagline_matcher {
  using Envelope = tagline_envelope;

  virtual ~tagline_matcher() = default;
  virtual tagline_status post_receive(Envelope, void* receive, void** message,
                                      tagline_handle* handle) noexcept = 0;
  virtual tagline_status arrive(Envelope, void* message, void** receive) noexcept = 0;
  virtual tagline_status claim(Envelope, void** message, Envelope* found) noexcept = 0;
  virtual tagline_status append_receive(Envelope, void* receive,
                                        tagline_handle* handle) noexcept = 0;
  virtual tagline_status match_message(Envelope, void** receive) noexcept = 0;
  virtual tagline_status append_message(Envelope, void* message) noexcept = 0;
  virtual tagline_status probe(Envelope, void** message, Envelope* found) noexcept = 0;
  virtual tagline_status cancel_receive(Envelope, void* receive) noexcept = 0;
  virtual tagline_status cancel_handle(std::uint64_t context_id, tagline_handle) noexcept = 0;
  virtual std::size_t drop_context(std::uint64_t context_id, tagline_visitor, void* user) = 0;
  virtual std::size_t drop_source(std::uint64_t context_id, std::int32_t source, tagline_visitor,
                                  void* user) = 0;
  virtual tagline_status set_hints(std::uint64_t context_id, unsigned hints) noexcept = 0;
  virtual void for_each(tagline_visitor, void* user) const = 0;
  virtual tagline_statistics statistics() const noexcept = 0;

  // The observer is told of all memory that matching touches; nullptr: nobody is any
  // more. TAGLINE_NO_MEMORY, or TAGLINE_UNAVAILABLE for a matcher that has no way to.
  virtual tagline_status observe_memory(tagline::MemoryObserver* observer) noexcept;

  // Who is told, if the matcher is to keep it. Outlives the queues: they are
  // members of what is derived from here.
  std::unique_ptr<tagline::MemoryObserver> memory_observer;
  std::string queue_name;  // as asked for, with its parameter
  const char* isa_name = nullptr;
};

namespace tagline {

// Failures are rare and their sentence is read later, if at all.
void set_error_message(const char* sentence) noexcept;

// The matching rules over any queue structure (see queues/linear.hpp for what
// one offers).
//
// A match is exact on the context, so each context has a pair of queues of its
// own: no search looks at another communicator's entries, and no structure has
// to store the context. The pair used last is remembered, because hosts either
// keep one matcher per communicator or send bursts on one.
//
// Public calls read as a sentence: search the other queue, else append to mine.
template <class Queue>
class QueueMatcher final : public tagline_matcher {
 public:
  QueueMatcher(typename Queue::Parameters parameters, const simd::Kernels& kernels,
               std::size_t pool_bytes, std::uint64_t first_handle)
      : parameters_(parameters),
        kernels_(kernels),
        memory_(pool_bytes),
        resources_(make_resources()),
        posted_(first_handle == 0 ? 1 : first_handle) {
    isa_name = kernels.isa;
  }

  // The two operations of every message: what nearly all of them do is here, without
  // a call, and the rest is a jump away. For that every other way takes at most the
  // six arguments that fit registers. Flattened: key and hit stay in registers, which
  // through memory cost more than a short search.
  [[gnu::flatten]] tagline_status post_receive(Envelope envelope, void* receive, void** message,
                                               tagline_handle* handle) noexcept override {
    Context* context = last_;
    if (!is_context(context, envelope)) [[unlikely]] {
      return with_context<&QueueMatcher::post_receive>(envelope, receive, message, handle);
    }
    const MatchKey key = exact_key(envelope);
    if (!is_exact(envelope)) return post_wildcard(context, key.bits, receive, message, handle);
    if (!context->unexpected.empty()) {
      const Glance glance = take_only(context->unexpected, key, unexpected_, message);
      if (glance == Glance::taken) return TAGLINE_MATCHED;
      if (glance == Glance::unknown) return search_and_post(context, key.bits, receive, message, handle);
    }
    if (!context->posted.has_room()) [[unlikely]]
      return append_to_full(context->posted, key.bits, receive, posted_, handle);
    return push(context->posted, key, receive, posted_, handle);
  }

  [[gnu::flatten]] tagline_status arrive(Envelope envelope, void* message,
                                         void** receive) noexcept override {
    Context* context = last_;
    if (!is_context(context, envelope)) [[unlikely]] {
      return with_context<&QueueMatcher::arrive>(envelope, message, receive);
    }
    const MatchKey key = exact_key(envelope);
    if (!context->posted.empty()) {
      const Glance glance = take_only(context->posted, key, posted_, receive);
      if (glance == Glance::taken) return TAGLINE_MATCHED;
      if (glance == Glance::unknown) return search_and_arrive(context, key.bits, message, receive);
    }
    if (!context->unexpected.has_room()) [[unlikely]]
      return append_to_full(context->unexpected, key.bits, message, unexpected_, nullptr);
    return push(context->unexpected, key, message, unexpected_, nullptr);
  }

  [[gnu::flatten]] tagline_status claim(Envelope envelope, void** message,
                                        Envelope* found) noexcept override {
    Context* context = known_context(envelope.context_id);
    if (context == nullptr) return TAGLINE_NOT_FOUND;
    const auto hit = search(context->unexpected, receive_key(envelope), unexpected_);
    if (!hit) return TAGLINE_NOT_FOUND;
    const QueueEntry entry = take(context->unexpected, hit, unexpected_);
    *message = entry.cookie;
    if (found != nullptr) *found = key_envelope(envelope.context_id, entry.key);
    return TAGLINE_MATCHED;
  }

  [[gnu::flatten]] tagline_status append_receive(Envelope envelope, void* receive,
                                                 tagline_handle* handle) noexcept override {
    Context* context = last_;
    if (!is_context(context, envelope)) [[unlikely]] {
      return with_context<&QueueMatcher::append_receive>(envelope, receive, handle);
    }
    return append(context->posted, receive_key(envelope), receive, posted_, handle);
  }

  [[gnu::flatten]] tagline_status match_message(Envelope envelope,
                                                void** receive) noexcept override {
    Context* context = known_context(envelope.context_id);
    if (context == nullptr) return TAGLINE_NOT_FOUND;
    const auto hit = search(context->posted, exact_key(envelope), posted_);
    if (!hit) return TAGLINE_NOT_FOUND;
    *receive = take(context->posted, hit, posted_).cookie;
    return TAGLINE_MATCHED;
  }

  [[gnu::flatten]] tagline_status append_message(Envelope envelope,
                                                 void* message) noexcept override {
    Context* context = last_;
    if (!is_context(context, envelope)) [[unlikely]] {
      return with_context<&QueueMatcher::append_message>(envelope, message);
    }
    return append(context->unexpected, exact_key(envelope), message, unexpected_, nullptr);
  }

  tagline_status probe(Envelope envelope, void** message, Envelope* found) noexcept override {
    Context* context = known_context(envelope.context_id);
    if (context == nullptr) return TAGLINE_NOT_FOUND;
    const auto hit = search(context->unexpected, receive_key(envelope), unexpected_);
    if (!hit) return TAGLINE_NOT_FOUND;
    unexpected_.count_look();
    const QueueEntry entry = context->unexpected.at(hit);
    *message = entry.cookie;
    if (found != nullptr) *found = key_envelope(envelope.context_id, entry.key);
    return TAGLINE_MATCHED;
  }

  tagline_status cancel_receive(Envelope envelope, void* receive) noexcept override {
    Context* context = known_context(envelope.context_id);
    if (context == nullptr) return TAGLINE_NOT_FOUND;
    return cancel(context->posted, context->posted.find_exact(receive_key(envelope), receive));
  }

  tagline_status cancel_handle(std::uint64_t context_id, tagline_handle handle) noexcept override {
    Context* context = known_context(context_id);
    if (context == nullptr) return TAGLINE_NOT_FOUND;
    return cancel(context->posted, context->posted.find_sequence(handle));
  }

  std::size_t drop_context(std::uint64_t context_id, tagline_visitor visit, void* user) override {
    const std::size_t dropped = drop(
        context_id, [](const QueueEntry&) { return true; }, visit, user);
    if (last_ != nullptr && last_->id == context_id) last_ = nullptr;
    contexts_.erase(context_id);
    return dropped;
  }

  std::size_t drop_source(std::uint64_t context_id, std::int32_t source, tagline_visitor visit,
                          void* user) override {
    return drop(
        context_id,
        [source](const QueueEntry& entry) {
          return !key_any_source(entry.key) && key_source(entry.key) == source;
        },
        visit, user);
  }

  tagline_status set_hints(std::uint64_t context_id, unsigned hints) noexcept override {
    if (!find_or_make_context(context_id)) return no_memory();
    known_context(context_id)->set_hints(hints);
    return TAGLINE_OK;
  }

  void for_each(tagline_visitor visit, void* user) const override {
    const auto visit_side = [&](tagline_side side, const Queue Context::*queue) {
      for (const auto& [id, context] : contexts_) {
        ((*context).*queue).for_each([&, id = id](const QueueEntry& entry) {
          visit(user, side, key_envelope(id, entry.key), entry.cookie);
        });
      }
    };
    visit_side(TAGLINE_POSTED, &Context::posted);
    visit_side(TAGLINE_UNEXPECTED, &Context::unexpected);
  }

  tagline_statistics statistics() const noexcept override {
    tagline_statistics all = {posted_.statistics(), unexpected_.statistics(), memory_.used_bytes()};
    all.posted.false_positives = resources_->counts(QueueSide::posted).false_positives;
    all.unexpected.false_positives = resources_->counts(QueueSide::unexpected).false_positives;
    return all;
  }

  // Of what there is already the observer learns by a move of the queues.
  tagline_status observe_memory(MemoryObserver* observer) noexcept override {
    memory_.note_out_of_use(this);
    memory_.set_observer(observer);
    memory_.note_in_use(this, sizeof *this);
    if (observer == nullptr || contexts_.empty() || move_queues()) return TAGLINE_OK;
    memory_.note_out_of_use(this);
    memory_.set_observer(nullptr);
    return no_memory();
  }

 private:
  struct Context {
    Context(std::uint64_t context_id, QueueResources& resources,
            typename Queue::Parameters parameters)
        : id(context_id),
          posted(resources, parameters, QueueSide::posted),
          unexpected(resources, parameters, QueueSide::unexpected),
          memory(resources.memory) {
      memory.note_in_use(this, sizeof *this);
    }
    ~Context() { memory.note_out_of_use(this); }

    void set_hints(unsigned promised) noexcept {
      hints = promised;
      constexpr unsigned kNoWildcards = TAGLINE_NO_ANY_SOURCE | TAGLINE_NO_ANY_TAG;
      const Hints for_queues = {(promised & kNoWildcards) != kNoWildcards,
                                (promised & TAGLINE_ALLOW_OVERTAKING) != 0};
      for (Queue* queue : {&posted, &unexpected}) {
        if constexpr (requires { queue->set_hints(for_queues); }) queue->set_hints(for_queues);
      }
    }

    const std::uint64_t id;
    Queue posted;
    Queue unexpected;
    unsigned hints = 0;
    NodeMemory& memory;
  };
  using Contexts = std::unordered_map<std::uint64_t, std::unique_ptr<Context>>;

  // What one side counts, over all contexts: as few numbers per call as give
  // every statistic, all in one line.
  struct alignas(kCacheLine) Side {
    explicit Side(std::uint64_t first) : next_sequence(first), left(first), unmatched(first) {}

    std::uint64_t length() const noexcept { return next_sequence - left; }
    tagline_side_statistics statistics() const noexcept {
      const std::uint64_t matches = left - unmatched;
      return {length(),
              high_water,
              matches + other_searches,
              matches,
              matches + passed,
              std::max<std::uint64_t>(depth_max, matches > 0 ? 1 : 0),
              0};
    }

    // Most searches end at the first entry, and a match counts as one entry by itself.
    void count_search(std::uint64_t depth, bool matched) noexcept {
      if (depth == 1 && matched) [[likely]] return;
      passed += depth - matched;
      depth_max = std::max(depth_max, depth);
      other_searches += !matched;
    }

    // A search that found what stays where it is.
    void count_look() noexcept {
      ++other_searches;
      ++passed;
      depth_max = std::max<std::uint64_t>(depth_max, 1);
    }

    // Sequence number 0 names no entry, not even after the wrap.
    void skip_zero() noexcept {
      ++next_sequence;
      ++left;
      ++unmatched;
    }

    std::uint64_t next_sequence;  // of the entry appended next
    std::uint64_t pause_at = 0;   // when this is next, or 0 is, there is more to do
    std::uint64_t left;           // entries that are gone, counted from the first sequence number
    std::uint64_t unmatched;      // of these, cancelled or dropped; counted likewise
    std::uint64_t high_water = 0;
    std::uint64_t other_searches = 0;  // that took nothing: probes and misses
    std::uint64_t passed = 0;          // entries looked at but for those that matched
    std::uint64_t depth_max = 0;       // of the searches that passed any
  };
  static_assert(sizeof(Side) == kCacheLine, "counting touches one line");

  // The pair of queues of a context, or nullptr if it has none.
  Context* known_context(std::uint64_t id) noexcept {
    if (last_ != nullptr && last_->id == id) [[likely]] {
      return last_;
    }
    const auto found = contexts_.find(id);
    if (found == contexts_.end()) return nullptr;
    return last_ = found->second.get();
  }

  static bool is_context(const Context* context, const Envelope& envelope) noexcept {
    return context != nullptr && context->id == envelope.context_id;
  }

  // Finds or makes the context, then starts the operation again. Apart, so that
  // the operations themselves call nothing and keep their values in registers.
  template <auto operation, class... Arguments>
  [[gnu::noinline, gnu::cold]] tagline_status with_context(Envelope envelope,
                                                           Arguments... arguments) noexcept {
    return find_or_make_context(envelope.context_id) ? (this->*operation)(envelope, arguments...)
                                                     : no_memory();
  }

  bool find_or_make_context(std::uint64_t id) noexcept try {
    if (known_context(id) != nullptr) return true;
    // Made before it is entered: no id stands in the map without its context.
    auto made = std::make_unique<Context>(id, *resources_, parameters_);
    last_ = contexts_.emplace(id, std::move(made)).first->second.get();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  // bits: source and tag as the envelope has them.
  [[gnu::noinline, gnu::flatten]] tagline_status post_wildcard(Context* context,
                                                               std::uint64_t bits, void* receive,
                                                               void** message,
                                                               tagline_handle* handle) noexcept {
    const MatchKey exact = {bits, kSourceMask | kTagMask};
    const MatchKey key = receive_key({context->id, key_source(exact), key_tag(exact)});
    if (!context->unexpected.empty() &&
        search_and_take(context->unexpected, key, unexpected_, message)) {
      return TAGLINE_MATCHED;
    }
    return append(context->posted, key, receive, posted_, handle);
  }

  // bits: of an exact key.
  [[gnu::noinline, gnu::flatten]] tagline_status search_and_post(Context* context,
                                                                 std::uint64_t bits, void* receive,
                                                                 void** message,
                                                                 tagline_handle* handle) noexcept {
    const MatchKey key = {bits, kSourceMask | kTagMask};
    if (search_and_take(context->unexpected, key, unexpected_, message)) return TAGLINE_MATCHED;
    return append(context->posted, key, receive, posted_, handle);
  }

  [[gnu::noinline, gnu::flatten]] tagline_status search_and_arrive(Context* context,
                                                                   std::uint64_t bits,
                                                                   void* message,
                                                                   void** receive) noexcept {
    const MatchKey key = {bits, kSourceMask | kTagMask};
    if (search_and_take(context->posted, key, posted_, receive)) return TAGLINE_MATCHED;
    return append(context->unexpected, key, message, unexpected_, nullptr);
  }

  // Of a queue that is not empty.
  Glance take_only(Queue& queue, const MatchKey& key, Side& side, void** cookie) noexcept {
    if constexpr (OffersOnly<Queue>) {
      const Glance glance = queue.take_only(key, cookie);
      if (glance == Glance::taken) ++side.left;
      if (glance == Glance::none) side.count_search(1, false);
      return glance;
    } else {
      return search_and_take(queue, key, side, cookie) ? Glance::taken : Glance::none;
    }
  }

  bool search_and_take(Queue& queue, const MatchKey& key, Side& side,
                              void** cookie) noexcept {
    const TakeResult result = take_from(queue, key, cookie);
    count_search(side, result.depth, result.taken);
    if (result.taken) ++side.left;
    return result.taken;
  }

  // A deep search may have made an index, and so taken memory as an append does.
  void count_search(Side& side, std::uint64_t depth, bool matched) noexcept {
    side.count_search(depth, matched);
    if (depth > kDeep && side.pause_at == 0) [[unlikely]]
      plan_pause(side);
  }

  // What is found counts as a match, which take() makes it.
  auto search(Queue& queue, const MatchKey& key, Side& side) noexcept {
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

  tagline_status append(Queue& queue, const MatchKey& key, void* cookie, Side& side,
                        tagline_handle* handle) noexcept {
    if (!queue.has_room() && !make_room(queue, side)) [[unlikely]]
      return no_memory();
    return push(queue, key, cookie, side, handle);
  }

  // bits: of an exact key.
  [[gnu::noinline, gnu::cold]] tagline_status append_to_full(Queue& queue, std::uint64_t bits,
                                                             void* cookie, Side& side,
                                                             tagline_handle* handle) noexcept {
    return append(queue, {bits, kSourceMask | kTagMask}, cookie, side, handle);
  }

  // Wants queue.has_room().
  tagline_status push(Queue& queue, const MatchKey& key, void* cookie, Side& side,
                      tagline_handle* handle) noexcept {
    queue.append({key, cookie, side.next_sequence});
    if (handle != nullptr) *handle = side.next_sequence;
    if (++side.next_sequence == side.pause_at) [[unlikely]]
      return pause(side);
    if (side.length() > side.high_water) [[unlikely]] {
      side.high_water = side.length();
    }
    return TAGLINE_QUEUED;
  }

  [[gnu::noinline, gnu::cold]] bool make_room(Queue& queue, Side& side) noexcept {
    if (!queue.make_room()) return false;
    if (side.pause_at == 0) plan_pause(side);
    return true;
  }

  // ---- Memory of a queue that was long: as long as a matcher holds much of it, an
  // append now and then looks whether its queues have become short for good. If so
  // they move to new nodes and tables, and the old ones are returned little by
  // little. Nothing on the way of a message counts for this, nor does any structure
  // have to know how to become smaller.

  static constexpr std::size_t kMuchMemory = std::size_t{256} << 10;
  static constexpr std::size_t kMuchPerEntry = 4096;  // bytes: sparse tables, and views of them
  static constexpr std::uint64_t kPauseAfter = 64;    // appends
  static constexpr unsigned kPatience = 128;          // pauses
  static constexpr std::uint64_t kDeep = 16;          // entries
  static constexpr std::uint64_t kMostMoved = 256;    // entries, contexts

  // Behind an append that is done but for the high water mark.
  [[gnu::noinline, gnu::cold]] tagline_status pause(Side& side) noexcept {
    if (side.next_sequence == 0) side.skip_zero();
    side.high_water = std::max(side.high_water, side.length());
    memory_.return_some();
    const std::uint64_t length = posted_.length() + unexpected_.length();
    if (queue_bytes() <= std::max<std::size_t>(length * kMuchPerEntry, enough_bytes_)) {
      quiet_pauses_ = 0;
    } else if (++quiet_pauses_ > kPatience) {
      quiet_pauses_ = 0;
      if (length <= kMostMoved && contexts_.size() <= kMostMoved) move_queues();
    }
    plan_pause(side);
    return TAGLINE_QUEUED;
  }

  void plan_pause(Side& side) noexcept {
    const bool wanted = memory_.deferred_bytes() > 0 || queue_bytes() > enough_bytes_;
    const std::uint64_t then = side.next_sequence + kPauseAfter;
    side.pause_at = wanted && then > side.next_sequence ? then : 0;
  }

  std::size_t queue_bytes() const noexcept {
    return memory_.used_bytes() - memory_.deferred_bytes();
  }

  std::unique_ptr<QueueResources> make_resources() {
    return std::make_unique<QueueResources>(kernels_, memory_, Queue::node_bytes(parameters_));
  }

  // False without memory for that: all stays where it is.
  bool move_queues() noexcept try {
    std::unique_ptr<QueueResources> resources = make_resources();
    std::copy(resources_->side_counts, std::end(resources_->side_counts), resources->side_counts);
    Contexts contexts;
    for (const auto& [id, context] : contexts_) {
      auto copy = std::make_unique<Context>(id, *resources, parameters_);
      copy->set_hints(context->hints);
      if (!copy_entries(context->posted, copy->posted)) return false;
      if (!copy_entries(context->unexpected, copy->unexpected)) return false;
      contexts.emplace(id, std::move(copy));
    }
    last_ = last_ == nullptr ? nullptr : contexts.at(last_->id).get();
    contexts.swap(contexts_);
    resources.swap(resources_);
    resources->pool.doom();
    memory_.defer_releases(true);
    contexts.clear();
    resources.reset();
    memory_.defer_releases(false);
    enough_bytes_ = std::max(kMuchMemory, 2 * queue_bytes());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  static bool copy_entries(const Queue& from, Queue& to) {
    bool copied = true;
    from.for_each([&](const QueueEntry& entry) {
      copied = copied && (to.has_room() || to.make_room());
      if (copied) to.append(entry);
    });
    return copied;
  }

  tagline_status cancel(Queue& posted, typename Queue::Hit hit) noexcept {
    if (!hit) return TAGLINE_NOT_FOUND;
    posted.erase(hit);
    ++posted_.left;
    ++posted_.unmatched;
    return TAGLINE_OK;
  }

  template <class Predicate>
  std::size_t drop(std::uint64_t context_id, Predicate wanted, tagline_visitor visit, void* user) {
    Context* context = known_context(context_id);
    if (context == nullptr) return 0;
    const auto drop_side = [&](tagline_side which, Queue& queue, Side& side) {
      return queue.remove_if(wanted, [&](const QueueEntry& entry) {
        ++side.left;
        ++side.unmatched;
        if (visit != nullptr) visit(user, which, key_envelope(context_id, entry.key), entry.cookie);
      });
    };
    return drop_side(TAGLINE_POSTED, context->posted, posted_) +
           drop_side(TAGLINE_UNEXPECTED, context->unexpected, unexpected_);
  }

  [[gnu::noinline, gnu::cold]] static tagline_status no_memory() noexcept {
    set_error_message(
        "the matcher has no memory for another entry: raise pool_bytes or free memory");
    return TAGLINE_NO_MEMORY;
  }

  Context* last_ = nullptr;
  const typename Queue::Parameters parameters_;
  const simd::Kernels& kernels_;
  NodeMemory memory_;
  std::unique_ptr<QueueResources> resources_;
  Side posted_;
  Side unexpected_{1};
  // Destroyed before the resources that its queues return their memory to.
  Contexts contexts_;
  std::size_t enough_bytes_ = kMuchMemory;  // that the queues may hold, whatever their length
  unsigned quiet_pauses_ = 0;               // in a row
};

}  // namespace tagline
