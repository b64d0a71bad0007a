// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>

#include "match/context.hpp"
#include "queues/key_table.hpp"
#include "queues/match_key.hpp"
#include "queues/resources.hpp"

namespace tagline {

// The contexts of one matcher, and the memory of their queues. The context used last is
// remembered, because hosts either keep one matcher per communicator or send bursts on one.
//
// Memory of queues that were long: as long as much is held, the matcher asks now and then
// (save_memory, every 512 appends) whether they have become short for good: whether 17 looks in
// a row saw more than 4096 bytes per entry held, and more than twice what was needed after the
// last move. If so, and at most 4096 entries wait in at most 256 contexts, they move to new
// nodes and tables, and the old ones are returned little by little. Nothing on the way of a
// message counts for this, nor does any structure have to know how to become smaller; an index that
// does is asked at the same time.
//
// Then, and every 2048 appends where little is held, it is also seen how often calls come. Where
// they are rare, other programs and the host's own work have the caches in between, and the slot
// that a call is about is asked for as early as may be: in an index of any size, and by the call
// that brings an entry, too, which itself has no use for it, but mostly the next one has. That is
// two dozen instructions, so not where calls come close together.
template <class Queue>
class Contexts {
 public:
  using Context = MatchContext<Queue>;
  using Clock = std::chrono::steady_clock;

  // pool_bytes: see NodeMemory. shared_limit: of several matchers together, or nullptr.
  Contexts(typename Queue::Parameters parameters, const simd::Kernels& kernels,
           std::size_t pool_bytes, MemoryLimit* shared_limit)
      : parameters_(parameters),
        kernels_(kernels),
        memory_(pool_bytes, shared_limit),
        resources_(make_resources()) {}

  bool empty() const noexcept { return contexts_.empty(); }

  // Of the context used last: whether it has this id, and its id; also once it is gone.
  bool is_last(std::uint64_t id) const noexcept { return last_id_ == id; }
  std::uint64_t last_id() const noexcept { return last_id_; }
  // The context itself, if there still is one, for a call with these key_bits() that looks at this
  // side first. Where its queue there has a large index, the slot of the key is asked for at once,
  // as in cold caches it would come last, after context and index, and so is what every call looks
  // at in the other queue: that is the next one's, or what this one brings goes there. Where calls
  // are rare, an index of any size on either side will do.
  [[gnu::always_inline]] Context* last(std::uint64_t bits, QueueSide begins_with) const noexcept {
    const std::intptr_t last = last_for(begins_with);
    if constexpr (OffersIndex<Queue>) {
      if (last <= 0) [[unlikely]]
        return ask(bits, begins_with);
    }
    return reinterpret_cast<Context*>(last);
  }
  // Whether such a call asks for a slot, or there is no context.
  bool asks(QueueSide begins_with) const noexcept { return last_for(begins_with) <= 0; }

  // nullptr if there is none of this id.
  Context* find(std::uint64_t id) noexcept {
    Context* const known = look_up(id);
    // Not written again: the line may be in other caches as well.
    if (known != last_ && known != nullptr) remember(known);
    return known;
  }

  // The same, and changes nothing: several threads may look at once.
  Context* look_up(std::uint64_t id) const noexcept {
    if (last_ != nullptr && last_id_ == id) [[likely]] {
      return last_;
    }
    const auto found = contexts_.find(id);
    return found == contexts_.end() ? nullptr : found->second.get();
  }

  // nullptr if there is no memory for a new one.
  Context* find_or_make(std::uint64_t id) noexcept try {
    if (Context* known = find(id)) return known;
    // Made before it is entered: no id stands in the map without its context.
    auto made = std::make_unique<Context>(id, *resources_, parameters_);
    Context* const entered = contexts_.emplace(id, std::move(made)).first->second.get();
    remember(entered);
    return entered;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }

  void erase(std::uint64_t id) noexcept {
    if (last_id_ == id) remember(nullptr);
    contexts_.erase(id);
  }

  // Gives all memory back. Nothing may be asked afterwards.
  void retire() noexcept {
    remember(nullptr);
    contexts_ = Map();
    resources_.reset();
    memory_.return_all();
  }

  // visit(context), in no order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [id, context] : contexts_) visit(*context);
  }

  NodeMemory& memory() noexcept { return memory_; }
  const NodeMemory& memory() const noexcept { return memory_; }
  const QueueCounts& counts(QueueSide side) const noexcept { return resources_->counts(side); }

  // When save_memory() is to be called next; 0: it has nothing to look after.
  std::uint64_t appends_between_looks() const noexcept {
    if (memory_.deferred_bytes() > 0) return kAppendsWhileReturning;
    if (holds_much()) return kAppendsBetweenLooks;
    return OffersIndex<Queue> ? kAppendsBetweenPaces : 0;
  }

  // Returns some of what has been given up, gives up what was not needed for long, and sees how
  // often calls came since the last time.
  // length: of all queues; newest_posted, newest_unexpected: sequence numbers of what came last to
  // either side. An index that has become large, or has moved, is noticed as well.
  void save_memory(std::uint64_t length, std::uint64_t newest_posted,
                   std::uint64_t newest_unexpected, Clock::time_point now) noexcept {
    note_pace(newest_posted + newest_unexpected, now);
    if constexpr (OffersIndex<Queue>) {
      if (last_ != nullptr && holds_much()) {
        const std::size_t cycle = queue_bytes() / kLeastPerEntry;
        last_->posted.let_shrink(newest_posted, cycle);
        last_->unexpected.let_shrink(newest_unexpected, cycle);
      }
    }
    remember(last_);
    memory_.return_some();
    if (queue_bytes() <= std::max<std::size_t>(length * kMuchPerEntry, enough_bytes_)) {
      quiet_looks_ = 0;
    } else if (++quiet_looks_ > kPatience) {
      quiet_looks_ = 0;
      if (length <= kMostMoved && contexts_.size() <= kMostContexts) move_queues();
    }
  }

  // All queues to new nodes and tables. False without memory for that: all stays where it is.
  bool move_queues() noexcept try {
    std::unique_ptr<QueueResources> resources = make_resources();
    std::copy(resources_->side_counts, std::end(resources_->side_counts), resources->side_counts);
    Map contexts;
    for (const auto& [id, context] : contexts_) {
      auto copy = std::make_unique<Context>(id, *resources, parameters_);
      copy->set_hints(context->hints);
      if (!copy_entries(context->posted, copy->posted)) return false;
      if (!copy_entries(context->unexpected, copy->unexpected)) return false;
      contexts.emplace(id, std::move(copy));
    }
    if (last_ != nullptr) remember(contexts.at(last_id_).get());
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

 private:
  using Map = std::unordered_map<std::uint64_t, std::unique_ptr<Context>>;

  // Between two appends: next to that two dozen instructions are little.
  static constexpr std::chrono::nanoseconds kRare{500};
  static constexpr std::size_t kMuchMemory = std::size_t{256} << 10;
  static constexpr std::size_t kMuchPerEntry = 4096;  // bytes: sparse tables, and views of them
  static constexpr std::size_t kLeastPerEntry = 16;   // bytes: no queue has more entries
  static constexpr std::uint64_t kAppendsBetweenLooks = 512;
  static constexpr std::uint64_t kAppendsBetweenPaces = 2048;  // a look reads the clock
  static constexpr std::uint64_t kAppendsWhileReturning = 64;
  static constexpr unsigned kPatience = 16;  // looks
  // Entries: half as many as were appended since the last move, and few enough for one call.
  static constexpr std::uint64_t kMostMoved = 4096;
  static constexpr std::size_t kMostContexts = 256;

  std::intptr_t last_for(QueueSide begins_with) const noexcept {
    return begins_with == QueueSide::posted ? last_posted_ : last_unexpected_;
  }
  [[gnu::always_inline]] Context* ask(std::uint64_t bits, QueueSide begins_with) const noexcept {
    const bool from_posted = begins_with == QueueSide::posted;
    std::intptr_t address = last_for(from_posted ? QueueSide::unexpected : QueueSide::posted);
    if (address <= 0) [[unlikely]] {
      if (address == 0) return nullptr;
      address = -address;
    }
    auto* const last = reinterpret_cast<Context*>(address);
    // Before the slot, or GCC 12 keeps the address in a register of its own.
    __builtin_prefetch(from_posted ? &last->unexpected : &last->posted, 1);
    // Not for a receive with wildcards that looks for messages: it has no slot there, and waited
    // 50 ns for one in a page that nothing else looked at (see queues/README.md). Nor for negative
    // tags, as one mask tells both.
    if (from_posted || (bits & (kOpenSource | kOpenTag)) == 0) [[likely]]
      slots_.prefetch(bits);
    return last;
  }

  // nullptr: none.
  void remember(Context* context) noexcept {
    last_ = context;
    last_posted_ = last_unexpected_ = reinterpret_cast<std::intptr_t>(context);
    slots_ = {};
    if (context == nullptr) return;
    last_id_ = context->id;
    if constexpr (OffersIndex<Queue>) {
      const KeyTable::SlotHint posted = context->posted.slot_hint(are_calls_rare_);
      const KeyTable::SlotHint unexpected = context->unexpected.slot_hint(are_calls_rare_);
      slots_ = posted.bytes() < unexpected.bytes() ? unexpected : posted;
      if ((posted && unexpected) || (slots_ && are_calls_rare_)) {
        last_posted_ = last_unexpected_ = -last_posted_;
      } else if (slots_) {
        (posted ? last_posted_ : last_unexpected_) = 0;
      }
    }
  }
  // appended: entries, since there is this matcher, give or take what numbers were left out.
  void note_pace(std::uint64_t appended, Clock::time_point now) noexcept {
    const std::uint64_t appends = appended - std::exchange(appended_, appended);
    const Clock::time_point before = std::exchange(looked_, now);
    if (before == Clock::time_point()) return;  // the first time
    are_calls_rare_ = static_cast<std::uint64_t>((now - before) / kRare) > appends;
  }
  bool holds_much() const noexcept { return slots_.is_large() || queue_bytes() > enough_bytes_; }
  std::size_t queue_bytes() const noexcept {
    return memory_.used_bytes() - memory_.deferred_bytes();
  }

  std::unique_ptr<QueueResources> make_resources() {
    return std::make_unique<QueueResources>(kernels_, memory_, Queue::node_bytes(parameters_));
  }

  static bool copy_entries(const Queue& from, Queue& to) {
    bool copied = true;
    from.for_each([&](const QueueEntry& entry) {
      copied = copied && (to.has_room() || to.make_room());
      if (copied) to.append(entry);
    });
    return copied;
  }

  // Side by side: whoever asks touches no line of the context for that, nor of its queues.
  // The address of the context used last, for calls that begin with either side, or 0: none. Not
  // above 0 if they ask for a slot: 0 where those that begin with the other side do not, or else
  // both have it with its sign turned, as an address is never below 0.
  std::intptr_t last_posted_ = 0;
  std::intptr_t last_unexpected_ = 0;
  std::uint64_t last_id_ = 0;
  KeyTable::SlotHint slots_;  // of what is asked for; of two the larger, or of posted receives
  Context* last_ = nullptr;   // the same context: on the next line
  bool are_calls_rare_ = false;
  const typename Queue::Parameters parameters_;
  unsigned quiet_looks_ = 0;    // in a row
  std::uint64_t appended_ = 0;  // see note_pace()
  Clock::time_point looked_{};
  const simd::Kernels& kernels_;
  NodeMemory memory_;
  std::unique_ptr<QueueResources> resources_;
  // Destroyed before the resources that its queues return their memory to.
  Map contexts_;
  std::size_t enough_bytes_ = kMuchMemory;  // that the queues may hold, whatever their length
};

}  // namespace tagline
