// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "match/locks.hpp"
#include "match/shard_policy.hpp"
#include "match/shard_store.hpp"

namespace tagline {

// The shards of a sharded matcher (match/shard_store.hpp), and the gate in front of them.
//
//   gate    open, or closed; and the number of shards, a power of two
//   shard   a lock and a matcher for the keys (context, source, tag) that hash to it
//   wild    the receives with wildcards, if there is more than one shard
//
// Open: a call with an exact key takes the lock of its shard, sees that the gate is still
// as it was, and has the shard to itself. Nobody else is asked.
//
// Closed: whoever holds the gate lock has all the shards. It has shut the gate and then
// waited until it has seen the lock of each shard free once. A call that takes a shard's
// lock later sees the shut gate and touches nothing:
//
//   a call         takes the shard's lock    then looks at the gate
//   who closes     shuts the gate            then looks at the shard's lock
//
// All four are seq_cst, so at least one of the two sees the other (a lock that is still
// its first thread's has another way to the same end, see match/biased_lock.hpp). The gate
// stays shut as long as a wildcard receive waits, and calls go through the gate lock one at
// a time.
//
// One shard is a matcher with a lock, wildcards and all: how every matcher starts. It
// becomes many when threads with keys of their own take turns at it all the time, more when
// they still do, and one again when the gate stays shut, or is shut so often that calls which
// look into all shards cost the other threads much of their time. Until then a matcher
// costs what a single lock costs, in time and in memory, and less as long as only one
// thread calls, or none but the first one has for a while. Of many shards each is as free of
// charge for a thread that calls there alone, until another one does or closes.
//
// If nearly all wildcards leave the source open and name a tag, as most programs' do, shards
// are chosen by context and tag alone: such a receive and all that it may match are in one
// shard, and it shuts nothing. Likewise for a source with any tag. So it is from the start
// where such receives come, or wait, while there is one shard, and later when they have shut
// the gate of many for too long. When threads take turns at those shards, and without
// wildcards, both parts choose again.
template <class Queue>
class Shards : public ShardStore<Queue> {
  using Store = ShardStore<Queue>;

 public:
  using Envelope = tagline_envelope;
  using Store::older;
  using typename Store::Core;
  using typename Store::Shard;

  static constexpr std::size_t kMostShards = ShardPolicy::kMostShards;

  // fixed_shards: that many from the start, for good; 0: as it turns out.
  Shards(typename Queue::Parameters parameters, const simd::Kernels& kernels,
         const tagline_options& options, std::size_t fixed_shards)
      : Store(parameters, kernels, options, std::max<std::size_t>(fixed_shards, 1)),
        fixed_(fixed_shards != 0) {
    if (fixed_shards > 1) return;
    first_.core->turns().look_with(
        [](void* shards) noexcept { static_cast<Shards*>(shards)->look_at_first(); }, this);
  }

  // The core of the one shard, for the thread that called first, as long as no other one does;
  // again when none has for a while. It ends the turn. nullptr: enter_favoured().
  [[gnu::always_inline]] Core* enter_alone() noexcept {
    if (!first_.enter_first(first_core_.turns().inside())) [[unlikely]]
      return nullptr;
    assert(first_.core == &first_core_);  // or who enters alone has missed that it is retired
    return &first_core_;
  }

  // open(shard) with the shard of the envelope, one of many, for the thread that its lock favours,
  // until it is back. Otherwise closed(): find_open(). No need to look at the gate again: whoever
  // else has closed since has ended this thread's favour before it touched the shard. A thread that
  // closes keeps its own favours, and sees here what it has stored.
  template <class Open, class Closed>
  [[gnu::always_inline]] tagline_status enter_favoured(Envelope envelope, Open open,
                                                       Closed closed) noexcept {
    // acquire, both: see find_open().
    const std::uint64_t gate = gate_.load(std::memory_order_acquire);
    if ((gate & kShut) != 0 || (gate & kMask) == 0 || !has_one_shard(envelope, gate)) {
      return closed();
    }
    Shard& shard = shards_.load(std::memory_order_acquire)[hash(envelope, gate) & gate & kMask];
    std::atomic<bool>* const inside = shard.enter();
    if (inside == nullptr) return closed();
    const tagline_status status = open(shard);
    inside->store(false, std::memory_order_release);  // see BiasedLock::enter()
    return status;
  }

  // The shard of the envelope and what the gate said, or nullptr: visit(). It is to be entered.
  struct Place {
    Shard* shard;
    std::uint64_t gate;
  };
  [[gnu::always_inline]] Place find_open(Envelope envelope) const noexcept {
    // acquire: pairs with the release in reopen(), the shards are as the last closed call
    // left them, and there are as many as the gate says.
    const std::uint64_t gate = gate_.load(std::memory_order_acquire);
    // acquire: pairs with the release in redistribute(). The array may be a later one than
    // the gate tells of, its locks are there all the same.
    Shard* const shards = shards_.load(std::memory_order_acquire);
    if ((gate & (kShut | kMask)) == 0) return {shards, gate};
    if ((gate & kShut) != 0 || !has_one_shard(envelope, gate)) [[unlikely]]
      return {nullptr, gate};
    return {shards + (hash(envelope, gate) & gate & kMask), gate};
  }

  // With its lock taken: whether all is as it was, and the lock nobody's favour. Most calls on
  // shards that several threads use come this way. False: the lock has been given back, and visit()
  // tells.
  [[gnu::always_inline]] bool enter_by_lock(Place place) noexcept {
    Shard& shard = *place.shard;
    // seq_cst: see lock().
    const bool is_open = gate_.load(std::memory_order_seq_cst) == place.gate;
    if (!is_open || !shard.lock.is_nobodys() || shard.core == nullptr) [[unlikely]] {
      shard.lock.unlock();
      return false;
    }
    return true;
  }
  // Then: whether it was another thread's before, with another key, and if so, whether not so often
  // that there should be more shards: then there are, and the shard has been left.
  [[gnu::always_inline]] bool hands_over(Shard& shard, Envelope envelope) noexcept {
    return policy_.hands_over(shard, envelope);
  }
  bool stay_or_grow(Shard& shard, Envelope envelope, bool lock_was_free) noexcept {
    if (!policy_.note_handover(shard, envelope, lock_was_free)) [[likely]]
      return true;
    // As it was: if somebody is about to close, there is no hurry.
    const std::uint64_t gate = gate_.load(std::memory_order_relaxed) & ~kShut;
    shard.lock.unlock();
    grow(gate);
    return false;
  }
  // The one whose lock the caller holds, or any with the gate closed.
  Shard& shard_of(Envelope envelope) const noexcept {
    const std::uint64_t gate = gate_.load(std::memory_order_relaxed);
    return shards()[hash(envelope, gate) & gate & kMask];
  }

  // open(shard) with the shard of the envelope to itself, or closed() with all of them.
  // Without wildcards the first is tried; with them only one shard serves.
  //
  // Inlined, as is open(), so that nothing of the call goes through memory; closed() should
  // hold values, not references, for that.
  template <class Open, class Closed>
  [[gnu::always_inline]] tagline_status visit(Envelope envelope, Open open, Closed closed) {
    while (true) {
      const auto [found, gate] = find_open(envelope);
      if (found == nullptr) [[unlikely]] {
        tagline_status status;
        if (with_all(envelope, closed, status)) return status;
        continue;
      }
      Shard& shard = *found;
      const Entry entry = lock(shard, envelope, gate);
      if (entry == Entry::too_late) [[unlikely]]
        continue;
      const tagline_status status = open(shard);
      shard.lock.unlock();
      if (entry == Entry::crowded) [[unlikely]]
        grow(gate);
      return status;
    }
  }

  // status = use() with all shards at once. False, and nothing was done: there is only one
  // shard now, which has the wildcards as well; or the gate has opened meanwhile for a call
  // that one shard serves. Were such a call to shut it again, the next one would find it shut,
  // and so on.
  template <class Use>
  [[gnu::noinline]] bool with_all(Envelope envelope, Use use, tagline_status& status) {
    LockGuard guard(gate_lock_);
    // relaxed: changes with the gate lock held.
    const std::uint64_t gate = gate_.load(std::memory_order_relaxed);
    const bool in_one = has_one_shard(envelope, gate);
    if (mask() == 0 || ((gate & kShut) == 0 && in_one)) return false;
    const ShardPolicy::Clock::time_point since =
        in_one ? ShardPolicy::Clock::time_point{} : ShardPolicy::Clock::now();
    close();
    status = use();
    if (!in_one) policy_.note_search(envelope, since);
    reopen();
    return true;
  }

  // The same however many there are.
  template <class Use>
  void with_whole(Use use) {
    LockGuard guard(gate_lock_);
    close();
    use();
    reopen();
  }

  // ---- With the gate closed ------------------------------------------------------

  // Whether all that an envelope may match is in one shard, and which.
  bool has_shard(Envelope envelope) const noexcept {
    // relaxed: only who holds the gate lock changes it.
    return has_one_shard(envelope, gate_.load(std::memory_order_relaxed));
  }

  // A number for a wildcard receive: above all numbers in use, below all to come.
  std::uint64_t number_wild() noexcept {
    // relaxed, both: all want no more of a number than that it is theirs alone, and who reads the
    // floor has seen the gate open since.
    const std::uint64_t number = next_number_.fetch_add(kBlock, std::memory_order_relaxed);
    floor_.store(number + kBlock, std::memory_order_relaxed);
    return number;
  }

  // ---- With the shard to itself ---------------------------------------------------

  // Makes room for what comes to a shard for the first time; false: no memory.
  bool ready(Shard& shard) noexcept { return shard.core != nullptr || this->equip(shard); }

  // Makes its next receive younger than every wildcard receive there is. Receives are
  // numbered from blocks, so that shards do not fight for a counter; a wildcard receive
  // makes the rest of every block void. One shard counts by itself.
  void number_receive(Shard& shard) noexcept {
    if (!has_number(shard)) [[unlikely]]
      draw_numbers(shard);
  }
  // Whether that has nothing to do; the second: if there are several shards.
  bool has_number(const Shard& shard) const noexcept {
    return mask() == 0 || has_number_among(shard);
  }
  bool has_number(Place place) const noexcept {
    return (place.gate & kMask) == 0 || has_number_among(*place.shard);
  }
  bool has_number_among(const Shard& shard) const noexcept {
    const std::uint64_t next = shard.core->next_sequence(TAGLINE_POSTED);
    // relaxed: set with the gate closed, and the gate's acquire came since.
    return older(next, shard.numbers_end) && !older(next, floor_.load(std::memory_order_relaxed));
  }

 private:
  using Store::first_;
  using Store::first_core_;
  using Store::floor_;
  using Store::gate_;
  using Store::has_one_shard;
  using Store::hash;
  using Store::kByTag, Store::kBySource, Store::kMask, Store::kShut;
  using Store::mask;
  using Store::next_number_;
  using Store::shards;
  using Store::shards_;
  using Store::wild_;

  static constexpr std::uint64_t kBlock = 1024;

  // How a call has got a shard's lock: not at all, for the gate is not as it was any more;
  // or after others, so often that there should be more shards.
  enum class Entry : std::uint8_t { usual, crowded, too_late };

  [[gnu::always_inline]] Entry lock(Shard& shard, Envelope envelope, std::uint64_t gate) noexcept {
    const bool was_free = shard.lock.lock();
    // seq_cst: see above. It comes after the lock.
    if (gate_.load(std::memory_order_seq_cst) != gate) [[unlikely]] {
      shard.lock.unlock();
      return Entry::too_late;
    }
    if (shard.lock.has_favour() && shard.core != nullptr) [[unlikely]]
      shard.remember_favour();
    return policy_.is_crowded(shard, envelope, was_free) ? Entry::crowded : Entry::usual;
  }

  [[gnu::noinline, gnu::cold]] void draw_numbers(Shard& shard) noexcept {
    // relaxed: numbers have to differ and to grow; with the gate closed nobody draws.
    const std::uint64_t block = next_number_.fetch_add(kBlock, std::memory_order_relaxed);
    shard.numbers_end = block + kBlock;
    shard.core->advance(TAGLINE_POSTED, block);
    look_for_favour(shard, true);
  }

  // Who has come for numbers twice, and nobody else in between, has the shard to itself. Looked
  // at there, because on the way of every call it costs threads that share a shard a tenth.
  void look_for_favour(Shard& shard, bool anew) noexcept {
    // relaxed: a shard's lock is held, unless all of them are. Whoever shuts the gate from here
    // on waits for that lock, and finds the favour.
    if ((gate_.load(std::memory_order_relaxed) & kShut) != 0) return;
    shard.lock.consider_this_thread(anew);
  }
  // One shard draws no numbers, and can only be entered by its first favour.
  [[gnu::noinline, gnu::cold]] void look_at_first() noexcept { look_for_favour(first_, false); }

  // With the gate lock held.
  void close() noexcept {
    // relaxed: only who holds that lock changes the gate.
    if ((gate_.load(std::memory_order_relaxed) & kShut) != 0) {
      policy_.note_call_in_closing();
      return;
    }
    // seq_cst: see above. It comes before the looks at the locks.
    gate_.fetch_or(kShut, std::memory_order_seq_cst);
    // One barrier for all that are favoured anywhere.
    Shard* const all = shards();
    bool favoured = false;
    for (std::size_t i = 0; i <= mask(); ++i) favoured |= all[i].lock.wait_for_holder();
    if (favoured) {
      barrier_in_all_threads();
      for (std::size_t i = 0; i <= mask(); ++i) all[i].lock.wait_for_favoured();
    }
    policy_.note_closing();
  }

  void reopen() noexcept {
    if (wild_ != nullptr && policy_.is_due()) [[unlikely]]
      reconsider();
    if (wild_ != nullptr && wild_->length(TAGLINE_POSTED) != 0) return;
    // release: pairs with the acquire in visit().
    gate_.store(gate_.load(std::memory_order_relaxed) & ~kShut, std::memory_order_release);
  }

  // If the gate is shut most of the time, shards are of no use; unless nearly all wildcards
  // leave the same part of the key open, and shards can be chosen by the other one.
  [[gnu::noinline, gnu::cold]] void reconsider() noexcept {
    const ShardPolicy::Review review = policy_.review();
    if (!review.is_shut_mostly || this->total_length() > policy_.worth_moving()) return;
    const bool is_split = choice() == 0 && spread(mask() + 1, review.split);
    if (!is_split && !fixed_) {
      policy_.lose_patience();
      change(1, 0);
    }
    policy_.begin();  // what has been lost is spent, even in vain
  }

  // Calls wait for each other: more shards, if there are no more yet.
  [[gnu::noinline, gnu::cold]] void grow(std::uint64_t gate) noexcept {
    if (fixed_) return;
    LockGuard guard(gate_lock_);
    // relaxed: as in close().
    if (gate_.load(std::memory_order_relaxed) != gate) return;
    close();
    const std::size_t count = mask() + 1;
    const Split split = policy_.split();
    if (choice() != 0) {
      // Keys that differ in the part that does not count. Should wildcards come, all over again.
      policy_.lose_patience();
      if (split == Split::by_key) change(count, 0);
    } else {
      const std::size_t wanted = ShardPolicy::more_than(count, this->total_length());
      // Calls that wait for each other all the same, or wildcards: not soon again.
      if (wanted > kMostShards || !spread(wanted, split)) policy_.lose_patience();
    }
    reopen();
  }

  // By key only if no receive waits that would have no shard then.
  bool spread(std::size_t count, Split split) noexcept {
    if (split == Split::not_at_all) return false;
    if (split != Split::by_key) return change(count, choice_of(split));
    return change(count, 0) || change(count, kByTag) || change(count, kBySource);
  }

  // False: all is as before, because that would take long or be of no use.
  bool change(std::size_t count, std::uint64_t by) noexcept {
    if (this->total_length() > policy_.worth_moving() || !this->redistribute(count, by))
      return false;
    policy_.begin();
    return true;
  }

  // kByTag, kBySource or 0. relaxed: as in close().
  std::uint64_t choice() const noexcept {
    return gate_.load(std::memory_order_relaxed) & (kByTag | kBySource);
  }
  static std::uint64_t choice_of(Split split) noexcept {
    return split == Split::by_tag ? kByTag : split == Split::by_source ? kBySource : 0;
  }

  alignas(kCacheLine) SpinLock gate_lock_;
  // Behind the gate lock.
  ShardPolicy policy_;
  const bool fixed_;
};

}  // namespace tagline
