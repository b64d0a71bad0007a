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
#include "match/matcher.hpp"
#include "match/shard.hpp"
#include "match/turns.hpp"

namespace tagline {

// What stands behind the gate of a sharded matcher (match/shards.hpp): the shards, the receives
// with wildcards if there are several, and what holds for all of them.
//
// For whoever has closed the gate, unless it says otherwise; or before anybody calls.
template <class Queue>
class ShardStore : protected GateWord {
 public:
  using Core = QueueMatcher<Queue, TurnsAtShard>;
  using Shard = tagline::Shard<Core>;

  // What is in a queue of any part.
  struct Item {
    tagline_side side;
    std::uint64_t context_id;
    QueueEntry entry;
  };

  // Of several shards.
  Core& wild() noexcept { return *wild_; }

  // The shards' first.
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
      if (status == TAGLINE_OK) status = observe(core, observer);
    };
    for_each_core(tell);
    if (status != TAGLINE_OK) {
      for_each_core([](Core& core) { core.observe_memory(nullptr); });
      observer = nullptr;
    }
    observer_ = observer;
    return status;
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

 protected:
  // count: of shards, a power of two.
  ShardStore(typename Queue::Parameters parameters, const simd::Kernels& kernels,
             const tagline_options& options, std::size_t count)
      : parameters_(parameters),
        kernels_(kernels),
        limit_(options),
        floor_(options.first_handle == 0 ? 1 : options.first_handle),
        next_number_(floor_.load(std::memory_order_relaxed)),
        first_core_(parameters_, kernels_, 0, next_number_.load(std::memory_order_relaxed),
                    limit_.get()) {
    if (count > 1) {
      first_core_.retire();
      arrays_.push_back(make_shards(count));
      capacity_ = count;
      shards_.store(arrays_.back().get(), std::memory_order_relaxed);
      wild_ = make_core();
      gate_.store(count - 1, std::memory_order_relaxed);
    } else {
      first_.lock.allow_bias(first_core_.turns().inside());
      settle(first_, first_core_, 1);
    }
  }

  Shard* shards() const noexcept { return shards_.load(std::memory_order_relaxed); }
  // Shards less one; stable as long as a shard's lock or the gate lock is held.
  std::size_t mask() const noexcept { return gate_.load(std::memory_order_relaxed) & kMask; }

  // Of all queues.
  std::size_t total_length() noexcept {
    std::size_t length = 0;
    for_each_core([&](Core& core) {
      length += core.length(TAGLINE_POSTED) + core.length(TAGLINE_UNEXPECTED);
    });
    return length;
  }

  // Gives a shard that is taken its core, when something comes there for the first time; false:
  // no memory.
  [[gnu::noinline, gnu::cold]] bool equip(Shard& shard) noexcept try {
    shard.owned = make_core();
    settle(shard, *shard.owned, mask() + 1);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  // Moves every entry to where it belongs among so many shards, chosen by both parts of a key
  // (0) or by one. False: all is as before, for lack of memory, or because a receive that waits
  // would have no shard then.
  bool redistribute(std::size_t count, std::uint64_t by) noexcept try {
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
      // release: pairs with the acquire in Shards::find_open().
      shards_.store(arrays_.back().get(), std::memory_order_release);
    }
    wild_ = std::move(wild);
    for (std::size_t i = 0; i < count; ++i) install(shards()[i], std::move(cores[i]), count);
    // relaxed: Shards::reopen() publishes it.
    gate_.store(gate, std::memory_order_relaxed);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

 private:
  static constexpr std::size_t kMostArrays = 16;

  static std::unique_ptr<Shard[]> make_shards(std::size_t count) {
    auto shards = std::make_unique<Shard[]>(count);
    for (std::size_t i = 0; i < count; ++i) shards[i].lock.allow_bias();
    return shards;
  }

  // A shard's calls run its core's.
  static tagline_status observe(Core& core, MemoryObserver* observer) noexcept {
    if (observer != nullptr) core.tell_of_code(*observer);
    return core.observe_memory(observer);
  }

  // Throws std::bad_alloc.
  std::unique_ptr<Core> make_core(std::uint64_t first_number) {
    auto core = std::make_unique<Core>(parameters_, kernels_, 0, first_number, limit_.get());
    // Both change with the gate closed only.
    for (const auto& [context_id, hints] : hints_) {
      if (core->set_hints(context_id, hints) != TAGLINE_OK) throw std::bad_alloc();
    }
    if (observer_ != nullptr && observe(*core, observer_) != TAGLINE_OK) {
      throw std::bad_alloc();
    }
    return core;
  }
  std::unique_ptr<Core> make_core() {
    return make_core(next_number_.load(std::memory_order_relaxed));
  }

  // Makes it the core of one of so many shards. With the shard taken, or before anybody uses it.
  void settle(Shard& shard, Core& core, std::size_t count) noexcept {
    core.number_messages_from(count > 1 ? &next_stamp_ : nullptr);
    shard.numbers_end = core.next_sequence(TAGLINE_POSTED);
    shard.core = &core;
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
      shards()[i].core = nullptr;
      shards()[i].owned.reset();
      // Whoever closes keeps its own favours, and would enter.
      shards()[i].favour.store(0, std::memory_order_relaxed);
    }
    // Stays: the thread that was alone may be long about finding out.
    first_core_.retire();
  }

  // nullptr: none, until something comes.
  void install(Shard& shard, std::unique_ptr<Core> core, std::size_t count) noexcept {
    if (core == nullptr) return;
    core->advance(TAGLINE_POSTED, next_number_.load(std::memory_order_relaxed));
    core->advance(TAGLINE_UNEXPECTED, next_stamp_.load(std::memory_order_relaxed));
    shard.owned = std::move(core);
    settle(shard, *shard.owned, count);
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

 protected:
  // Read by every call, written by those that close.
  alignas(kCacheLine) std::atomic<std::uint64_t> gate_{0};  // see GateWord
  std::atomic<Shard*> shards_{&first_};
  std::atomic<std::uint64_t> floor_;  // no receive to come has a lower number

  alignas(kCacheLine) std::atomic<std::uint64_t> next_number_;

 private:
  alignas(kCacheLine) std::atomic<std::uint64_t> next_stamp_{1};

 protected:
  // Until there are several for the first time, and not used from then on. Its core is in place:
  // with a pointer to it a thread alone takes 1 to 8 % more (Zen 3).
  Shard first_;
  alignas(kCacheLine) Core first_core_;
  std::unique_ptr<Core> wild_;

 private:
  std::vector<std::unique_ptr<Shard[]>> arrays_;
  std::size_t capacity_ = 1;                           // shards of the last array, or the first one
  tagline_statistics past_{};                          // of cores that are gone
  std::unordered_map<std::uint64_t, unsigned> hints_;  // of contexts that have any
  MemoryObserver* observer_ = nullptr;
};

}  // namespace tagline
