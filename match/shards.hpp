// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "match/concurrent_parts.hpp"
#include "match/locks.hpp"
#include "match/matcher.hpp"
#include "match/shard.hpp"
#include "match/shard_policy.hpp"
#include "match/turns.hpp"

namespace tagline {

// The shards of a sharded matcher, and the gate in front of them.
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
class Shards : GateWord {
 public:
  using Core = QueueMatcher<Queue, TurnsAtShard>;
  using Envelope = tagline_envelope;

  using Shard = tagline::Shard<Core>;

  static constexpr std::size_t kMostShards = ShardPolicy::kMostShards;

  // What is in a queue of any part.
  struct Item {
    tagline_side side;
    std::uint64_t context_id;
    QueueEntry entry;
  };

  // fixed_shards: that many from the start, for good; 0: as it turns out.
  Shards(typename Queue::Parameters parameters, const simd::Kernels& kernels,
         const tagline_options& options, std::size_t fixed_shards)
      : parameters_(parameters),
        kernels_(kernels),
        limit_(options),
        floor_(options.first_handle == 0 ? 1 : options.first_handle),
        next_number_(floor_.load(std::memory_order_relaxed)),
        fixed_(fixed_shards != 0) {
    if (fixed_shards > 1) {
      arrays_.push_back(make_shards(fixed_shards));
      capacity_ = fixed_shards;
      shards_.store(arrays_.back().get(), std::memory_order_relaxed);
      wild_ = make_core();
      gate_.store(fixed_shards - 1, std::memory_order_relaxed);
    } else {
      first_.lock.allow_bias();
      settle(first_, make_core(), 1);
      first_.core->turns().look_with(
          [](void* shards) noexcept { static_cast<Shards*>(shards)->look_at_first(); }, this);
    }
  }

  // The one shard, for the thread that called first, as long as no other one does; again when
  // none has for a while. Until its core ends the turn. nullptr: enter().
  [[gnu::always_inline]] Shard* enter_alone() noexcept {
    return first_.enter_first() ? &first_ : nullptr;
  }

  // open(shard) with the shard of the envelope, one of many, for the thread that its lock favours;
  // likewise. Otherwise closed(): find_open(). No need to look at the gate again: whoever else has
  // closed since has ended this thread's favour before it touched the shard. A thread that closes
  // keeps its own favours, and sees here what it has stored.
  template <class Open, class Closed>
  [[gnu::always_inline]] tagline_status enter_favoured(Envelope envelope, Open open,
                                                       Closed closed) noexcept {
    // acquire, both: see find_open().
    const std::uint64_t gate = gate_.load(std::memory_order_acquire);
    if ((gate & kShut) != 0 || (gate & kMask) == 0 || !has_one_shard(envelope, gate)) {
      return closed();
    }
    Shard& shard = shards_.load(std::memory_order_acquire)[hash(envelope, gate) & gate & kMask];
    if (!shard.enter()) return closed();
    return open(shard);
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
    if ((gate & kShut) != 0 || !has_one_shard(envelope, gate)) [[unlikely]]
      return {nullptr, gate};
    // acquire: pairs with the release in redistribute(). The array may be a later one than
    // the gate tells of, its locks are there all the same.
    Shard* const shards = shards_.load(std::memory_order_acquire);
    const std::uint64_t mask = gate & kMask;
    return {mask == 0 ? shards : shards + (hash(envelope, gate) & mask), gate};
  }

  // With its lock taken: if all is as it was, and the lock nobody's favour, the core gives the lock
  // back as it ends the turn. Most calls on shards that several threads use come this way, and save
  // no register. False: the lock has been given back, and visit() tells.
  [[gnu::always_inline]] bool enter_by_lock(Place place) noexcept {
    Shard& shard = *place.shard;
    // seq_cst: see lock().
    const bool is_open = gate_.load(std::memory_order_seq_cst) == place.gate;
    if (!is_open || !shard.lock.is_nobodys() || shard.core == nullptr) [[unlikely]] {
      shard.lock.unlock();
      return false;
    }
    shard.core->turns().end_by(shard.lock.held());
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
  // The one whose lock the caller holds.
  Shard& shard_in(Envelope envelope) const noexcept {
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

  Core& wild() noexcept { return *wild_; }

  // Whether all that an envelope may match is in one shard, and which.
  bool has_shard(Envelope envelope) const noexcept {
    return has_one_shard(envelope, gate_.load(std::memory_order_relaxed));
  }
  Shard& shard_of(Envelope envelope) noexcept {
    Shard& shard = shard_in(envelope);
    keep_lock(shard);
    return shard;
  }

  template <class Use>
  void for_each_core(Use use) {
    for (std::size_t i = 0; i <= mask(); ++i) {
      if (shards()[i].core != nullptr) use(*shards()[i].core);
    }
    if (wild_ != nullptr) use(*wild_);
  }

  // Of every part, and of parts to come. On failure all promises are as they were.
  tagline_status set_hints(std::uint64_t context_id, unsigned hints) noexcept try {
    const auto [place, is_new] = hints_.try_emplace(context_id, 0);
    const unsigned before = place->second;
    bool done = true;
    for_each_core(
        [&](Core& core) { done = done && core.set_hints(context_id, hints) == TAGLINE_OK; });
    // A part that has no memory for the context has none to promise about either.
    if (!done) for_each_core([&](Core& core) { core.set_hints(context_id, before); });
    place->second = done ? hints : before;
    if (place->second == 0) hints_.erase(place);
    return done ? TAGLINE_OK : no_memory();
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
  void forget_hints(std::uint64_t context_id) noexcept { hints_.erase(context_id); }

  // Of every part, and of parts to come.
  tagline_status observe_memory(MemoryObserver* observer) noexcept {
    tagline_status status = TAGLINE_OK;
    const auto tell = [&](Core& core) {
      if (status == TAGLINE_OK) status = core.observe_memory(observer);
    };
    for_each_core(tell);
    if (status != TAGLINE_OK) {
      for_each_core([](Core& core) { core.observe_memory(nullptr); });
      observer = nullptr;
    }
    observer_ = observer;
    return status;
  }

  // A number for a wildcard receive: above all numbers in use, below all to come.
  std::uint64_t number_wild() noexcept {
    const std::uint64_t number = next_number_.fetch_add(kBlock, std::memory_order_relaxed);
    floor_.store(number + kBlock, std::memory_order_relaxed);
    return number;
  }

  // Everything, posted receives first, oldest first. Throws std::bad_alloc.
  std::vector<Item> items() {
    std::vector<Item> all;
    for (const tagline_side side : {TAGLINE_POSTED, TAGLINE_UNEXPECTED}) {
      const std::size_t first = all.size();
      for_each_core([&](Core& core) {
        core.for_each_entry(side, [&](std::uint64_t id, const QueueEntry& entry) {
          all.push_back({side, id, entry});
        });
      });
      std::sort(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(), is_older);
    }
    return all;
  }

  static bool is_older(const Item& a, const Item& b) noexcept {
    return a.side != b.side ? a.side < b.side : older(a.entry.sequence, b.entry.sequence);
  }
  static bool older(std::uint64_t a, std::uint64_t b) noexcept {
    return static_cast<std::int64_t>(a - b) < 0;
  }

  // Entries of a context.
  std::size_t length(std::uint64_t context_id) noexcept {
    std::size_t length = 0;
    for_each_core([&](Core& core) {
      length +=
          core.length(TAGLINE_POSTED, context_id) + core.length(TAGLINE_UNEXPECTED, context_id);
    });
    return length;
  }

  tagline_statistics statistics() noexcept {
    tagline_statistics all{};
    for_each_core([&](Core& core) {
      const tagline_statistics part = core.statistics();
      add_statistics(all.posted, part.posted);
      add_statistics(all.unexpected, part.unexpected);
      all.pool_bytes += part.pool_bytes;
    });
    add_past(all.posted, past_.posted);
    add_past(all.unexpected, past_.unexpected);
    return all;
  }

  // ---- With the shard to itself ---------------------------------------------------

  // Makes room for what comes to a shard for the first time; false: no memory.
  bool ready(Shard& shard) noexcept { return shard.core != nullptr || make_core(shard); }

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
  bool has_number_among(const Shard& shard) const noexcept {
    const std::uint64_t next = shard.core->next_sequence(TAGLINE_POSTED);
    // relaxed: set with the gate closed, and the gate's acquire came since.
    return older(next, shard.numbers_end) && !older(next, floor_.load(std::memory_order_relaxed));
  }

 private:
  static constexpr std::uint64_t kBlock = 1024;
  static constexpr std::size_t kMostArrays = 16;

  Shard* shards() const noexcept { return shards_.load(std::memory_order_relaxed); }
  // The turn of its core that comes does not give the lock back, which is the caller's, or nobody's
  // with the gate closed.
  static void keep_lock(Shard& shard) noexcept {
    if (shard.core != nullptr) shard.core->turns().end_by(shard.lock.inside());
  }
  // Stable as long as a shard's lock or the gate lock is held.
  std::size_t mask() const noexcept { return gate_.load(std::memory_order_relaxed) & kMask; }

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
    keep_lock(shard);  // first: a favoured thread enters only by what it has remembered
    if (shard.lock.has_favour() && shard.core != nullptr) [[unlikely]]
      shard.remember_favour();
    return policy_.is_crowded(shard, envelope, was_free) ? Entry::crowded : Entry::usual;
  }

  static std::unique_ptr<Shard[]> make_shards(std::size_t count) {
    auto shards = std::make_unique<Shard[]>(count);
    for (std::size_t i = 0; i < count; ++i) shards[i].lock.allow_bias();
    return shards;
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
    // What its turns end by is seen to when it takes the lock the next time, and remembers it.
    shard.lock.consider_this_thread(anew);
  }
  // One shard draws no numbers, and can only be entered by its first favour.
  [[gnu::noinline, gnu::cold]] void look_at_first() noexcept { look_for_favour(first_, false); }

  // Throws std::bad_alloc.
  std::unique_ptr<Core> make_core(std::uint64_t first_number) {
    auto core = std::make_unique<Core>(parameters_, kernels_, 0, first_number, limit_.get());
    // Both change with the gate closed only.
    for (const auto& [context_id, hints] : hints_) {
      if (core->set_hints(context_id, hints) != TAGLINE_OK) throw std::bad_alloc();
    }
    if (observer_ != nullptr && core->observe_memory(observer_) != TAGLINE_OK) {
      throw std::bad_alloc();
    }
    return core;
  }
  std::unique_ptr<Core> make_core() {
    return make_core(next_number_.load(std::memory_order_relaxed));
  }
  [[gnu::noinline, gnu::cold]] bool make_core(Shard& shard) noexcept try {
    settle(shard, make_core(), mask() + 1);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  // Makes it the core of one of so many shards. With the shard taken, or before anybody uses it.
  void settle(Shard& shard, std::unique_ptr<Core> core, std::size_t count) noexcept {
    core->turns().end_by(shard.lock.inside());
    core->turns().number_from(count > 1 ? &next_stamp_ : nullptr);
    shard.numbers_end = core->next_sequence(TAGLINE_POSTED);
    shard.core = std::move(core);
  }

  // With the gate lock held.
  void close() noexcept {
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
    if (!review.is_shut_mostly || length() > policy_.worth_moving()) return;
    const bool is_split = choice() == 0 && spread(mask() + 1, review.split);
    if (!is_split && !fixed_) {
      policy_.lose_patience();
      redistribute(1, 0);
    }
    policy_.begin();  // what has been lost is spent, even in vain
  }

  // Calls wait for each other: more shards, if there are no more yet.
  [[gnu::noinline, gnu::cold]] void grow(std::uint64_t gate) noexcept {
    if (fixed_) return;
    LockGuard guard(gate_lock_);
    if (gate_.load(std::memory_order_relaxed) != gate) return;
    close();
    const std::size_t count = mask() + 1;
    const Split split = policy_.split();
    if (choice() != 0) {
      // Keys that differ in the part that does not count. Should wildcards come, all over again.
      policy_.lose_patience();
      if (split == Split::by_key) redistribute(count, 0);
    } else {
      const std::size_t wanted = ShardPolicy::more_than(count, length());
      // Calls that wait for each other all the same, or wildcards: not soon again.
      if (wanted > kMostShards || !spread(wanted, split)) policy_.lose_patience();
    }
    reopen();
  }

  // By key only if no receive waits that would have no shard then.
  bool spread(std::size_t count, Split split) noexcept {
    if (split == Split::not_at_all) return false;
    if (split != Split::by_key) return redistribute(count, choice_of(split));
    return redistribute(count, 0) || redistribute(count, kByTag) || redistribute(count, kBySource);
  }

  // Of all queues.
  std::size_t length() noexcept {
    std::size_t length = 0;
    for_each_core([&](Core& core) {
      length += core.length(TAGLINE_POSTED) + core.length(TAGLINE_UNEXPECTED);
    });
    return length;
  }

  // kByTag, kBySource or 0.
  std::uint64_t choice() const noexcept {
    return gate_.load(std::memory_order_relaxed) & (kByTag | kBySource);
  }
  static std::uint64_t choice_of(Split split) noexcept {
    return split == Split::by_tag ? kByTag : split == Split::by_source ? kBySource : 0;
  }

  // Moves every entry to where it belongs among so many shards, chosen by both parts of a key
  // (0) or by one. False: all is as before, for lack of memory, or because that would take long
  // or be of no use.
  bool redistribute(std::size_t count, std::uint64_t by) noexcept try {
    if (length() > policy_.worth_moving()) return false;
    const std::vector<Item> all = items();
    const std::uint64_t changes = (gate_.load(std::memory_order_relaxed) & ~kShut) / kChange + 1;
    const std::uint64_t gate = kShut | changes * kChange | by | (count - 1);
    const bool have_shards = std::all_of(all.begin(), all.end(), [&](const Item& item) {
      return has_one_shard(key_envelope(item.context_id, item.entry.key), gate);
    });
    if (!have_shards) return false;

    // Numbers go on where they are.
    for_each_core([&](Core& core) {
      raise(next_number_, core.next_sequence(TAGLINE_POSTED));
      raise(next_stamp_, core.next_sequence(TAGLINE_UNEXPECTED));
    });
    std::vector<std::unique_ptr<Core>> cores = distribute(all, count, gate);
    std::unique_ptr<Core> wild = count > 1 ? make_core() : nullptr;
    if (count == 1 && cores[0] == nullptr) cores[0] = make_core();
    // New ones for fewer as well, to be biased anew.
    std::unique_ptr<Shard[]> array;
    const std::size_t capacity = std::max(count, capacity_);
    if (count > capacity_ || (count > 1 && arrays_.size() < kMostArrays)) {
      array = make_shards(capacity);
      arrays_.reserve(arrays_.size() + 1);
    }

    // Nothing fails from here on.
    retire_cores();
    if (array != nullptr) {
      // The old ones stay: a call that is late may still take the lock of one.
      arrays_.push_back(std::move(array));
      capacity_ = capacity;
      // release: pairs with the acquire in visit().
      shards_.store(arrays_.back().get(), std::memory_order_release);
    }
    wild_ = std::move(wild);
    for (std::size_t i = 0; i < count; ++i) install(shards()[i], std::move(cores[i]), count);
    // relaxed: reopen() publishes it.
    gate_.store(gate, std::memory_order_relaxed);
    policy_.begin();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  // Cores with these entries for as many shards as the gate says, none where none belongs.
  // Throws std::bad_alloc.
  std::vector<std::unique_ptr<Core>> distribute(const std::vector<Item>& all, std::size_t count,
                                                std::uint64_t gate) {
    std::vector<std::unique_ptr<Core>> cores(count);
    for (const Item& item : all) {
      auto& core = cores[hash(key_envelope(item.context_id, item.entry.key), gate) & (count - 1)];
      if (core == nullptr) {
        core = item.side == TAGLINE_POSTED ? make_core(item.entry.sequence) : make_core();
      }
      if (core->append(item.side, item.context_id, item.entry) != TAGLINE_QUEUED) {
        throw std::bad_alloc();
      }
    }
    return cores;
  }

  // Of what they have counted only the lengths go on elsewhere.
  void retire_cores() noexcept {
    tagline_statistics past = statistics();
    past.posted.length = past.unexpected.length = 0;
    past_ = past;
    for (std::size_t i = 0; i <= mask(); ++i) {
      shards()[i].core.reset();
      // Whoever closes keeps its own favours, and would enter.
      shards()[i].favour.store(0, std::memory_order_relaxed);
    }
  }

  // nullptr: none, until something comes.
  void install(Shard& shard, std::unique_ptr<Core> core, std::size_t count) noexcept {
    if (core == nullptr) return;
    core->advance(TAGLINE_POSTED, next_number_.load(std::memory_order_relaxed));
    core->advance(TAGLINE_UNEXPECTED, next_stamp_.load(std::memory_order_relaxed));
    settle(shard, std::move(core), count);
  }

  // relaxed: with the gate closed nobody else draws numbers.
  static void raise(std::atomic<std::uint64_t>& counter, std::uint64_t at_least) noexcept {
    if (older(counter.load(std::memory_order_relaxed), at_least)) {
      counter.store(at_least, std::memory_order_relaxed);
    }
  }

  static void add_past(tagline_side_statistics& sum, const tagline_side_statistics& past) noexcept {
    const std::uint64_t high_water = std::max(sum.high_water, past.high_water);
    add_statistics(sum, past);
    sum.high_water = high_water;
  }

  const typename Queue::Parameters parameters_;
  const simd::Kernels& kernels_;
  SharedLimit limit_;

  // Read by every call, written by those that close.
  alignas(kCacheLine) std::atomic<std::uint64_t> gate_{0};  // see GateWord
  std::atomic<Shard*> shards_{&first_};
  std::atomic<std::uint64_t> floor_;  // no receive to come has a lower number

  alignas(kCacheLine) std::atomic<std::uint64_t> next_number_;
  alignas(kCacheLine) std::atomic<std::uint64_t> next_stamp_{1};

  Shard first_;  // as long as there is only one

  alignas(kCacheLine) SpinLock gate_lock_;
  // Behind the gate lock.
  std::unique_ptr<Core> wild_;
  std::vector<std::unique_ptr<Shard[]>> arrays_;
  std::size_t capacity_ = 1;  // shards of the last array, or the first one
  ShardPolicy policy_;
  tagline_statistics past_{};                          // of cores that are gone
  std::unordered_map<std::uint64_t, unsigned> hints_;  // of contexts that have any
  MemoryObserver* observer_ = nullptr;
  const bool fixed_;
};

}  // namespace tagline
