// SPDX-License-Identifier: BSD-3-Clause
// What queues/linear.hpp promises, for every structure by itself: either side,
// sequence numbers that wrap, every limit of memory.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "queues/adaptive.hpp"
#include "queues/array.hpp"
#include "queues/fuzzy.hpp"
#include "queues/linear.hpp"
#include "queues/source.hpp"
#include "queues/vector.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/reference_queue.hpp"

namespace tagline::test {
namespace {

template <class Queue>
class Twin {
 public:
  using Hit = typename Queue::Hit;

  Twin(QueueSide side, std::uint64_t first_sequence, std::size_t limit_bytes = 0)
      : resources(*simd::available_kernels(0), limit_bytes, Queue::node_bytes(parameters)),
        queue(resources, parameters, side),
        side(side),
        next(first_sequence) {}

  bool append(const MatchKey& key) {
    if (!queue.has_room() && !queue.make_room()) return false;
    const QueueEntry entry = {key, reinterpret_cast<void*>(++cookies), next};
    queue.append(entry);
    reference.entries.push_back(entry);
    if (++next == 0) next = 1;  // as the matcher does: 0 names no entry
    return true;
  }

  // Nothing asks for the sequence number of a message: not every structure keeps it.
  void expect_same(const QueueEntry& actual, const QueueEntry& expected) const {
    ASSERT_EQ(actual.cookie, expected.cookie);
    ASSERT_EQ(actual.key, expected.key);
    if (side == QueueSide::posted) {
      ASSERT_EQ(actual.sequence, expected.sequence);
    }
  }
  // The structure's answer is the reference's, which then loses the entry too.
  void expect_and_erase(Hit hit, std::size_t place) {
    ASSERT_EQ(static_cast<bool>(hit), place != reference.size());
    if (!hit) return;
    ASSERT_NO_FATAL_FAILURE(expect_same(queue.at(hit), reference.entries[place]));
    queue.erase(hit);
    reference.erase(place);
  }
  static constexpr std::size_t kFew = 64;  // entries that are quickly counted

  // What a matcher tries first.
  template <class Count>
  Glance glance(const MatchKey& key, void** cookie, Count count) {
    if constexpr (OffersIndex<decltype(queue)>) {
      if (queue.is_indexed()) {
        if (key.mask != (kSourceMask | kTagMask)) {
          const MatchEnvelope receive = key_envelope(0, key);
          const std::uint64_t bits = key_bits(receive.source, receive.tag);
          if (const auto listed = queue.look_listed(bits)) {
            queue.take_found(listed, cookie);
            return Glance::taken;
          }
          if (!queue.lists_none(bits)) return Glance::unknown;
          return queue.take_newest(key, cookie, count) ? Glance::taken : Glance::none;
        }
        return side == QueueSide::posted
                   ? look_into<QueueSide::posted>(key.bits, cookie, count)
                   : look_into<QueueSide::unexpected>(key.bits, cookie, count);
      }
    }
    return queue.take_at_hand(key, cookie, count);
  }
  template <QueueSide of, class Count>
  Glance look_into(std::uint64_t bits, void** cookie, Count count) {
    const auto take = [&](auto found) {
      if (found) queue.take_found(found, cookie);
      return static_cast<bool>(found);
    };
    const bool tells = queue.tells();
    if (!tells && !queue.template tells_among<of>()) return Glance::unknown;
    if (tells ? take(queue.look(bits)) : take(queue.template look_among<of>(bits)))
      return Glance::taken;
    if (!queue.tells_none()) return Glance::unknown;
    return queue.template take_newest<of>(bits, cookie, count) ? Glance::taken : Glance::none;
  }
  void take(const MatchKey& key) {
    const std::size_t place = reference.find(key);
    if (queue.empty()) {
      ASSERT_TRUE(reference.empty());
      return;
    }
    std::uint64_t depth = 0;
    if constexpr (OffersTake<decltype(queue)>) {
      if ((++calls & 1) != 0) {
        void* cookie = nullptr;
        int counts = 0;
        bool counted_as_taken = false;
        const bool taken = queue.take(key, &cookie, [&](std::uint64_t, bool is_taken) {
          ++counts;
          counted_as_taken = is_taken;
        });
        ASSERT_EQ(taken, place != reference.size());
        ASSERT_EQ(counts, 1);
        ASSERT_EQ(counted_as_taken, taken);
        if (!taken) return;
        ASSERT_EQ(cookie, reference.entries[place].cookie);
        reference.erase(place);
        return;
      }
    }
    if constexpr (OffersAtHand<decltype(queue)>) {
      void* cookie = nullptr;
      std::uint64_t looked_at = 0;
      int counts = 0;
      std::size_t left = 0;  // as it counts: the match is out already
      const auto count = [&](std::uint64_t entries, bool taken) {
        looked_at = entries;
        ++counts;
        if (taken && reference.size() < kFew) queue.for_each([&](const QueueEntry&) { ++left; });
      };
      bool skips = false;  // an index looks at no entry but the match
      if constexpr (OffersIndex<decltype(queue)>) skips = queue.is_indexed();
      switch (glance(key, &cookie, count)) {
        case Glance::taken:
          ASSERT_LT(place, reference.size());
          ASSERT_EQ(cookie, reference.entries[place].cookie);
          if (!skips) {
            ASSERT_EQ(looked_at, place + 1);
            ASSERT_EQ(counts, 1);
            ASSERT_TRUE(left == reference.size() - 1 || reference.size() >= kFew) << left;
          }
          ASSERT_LE(looked_at, place + 1);
          reference.erase(place);
          return;
        case Glance::none:
          ASSERT_EQ(place, reference.size());
          ASSERT_LE(looked_at, reference.size());
          return;
        case Glance::unknown:
          break;
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_and_erase(queue.find(key, depth), place));
  }
  void look(const MatchKey& key) {
    if (queue.empty()) return;
    std::uint64_t depth = 0;
    const std::size_t place = reference.find(key);
    const Hit hit = queue.find(key, depth);
    ASSERT_EQ(static_cast<bool>(hit), place != reference.size());
    if (hit) {
      ASSERT_NO_FATAL_FAILURE(expect_same(queue.at(hit), reference.entries[place]));
    }
  }
  void cancel(std::size_t place, bool by_sequence) {
    const QueueEntry entry = reference.entries[place];
    if (by_sequence) {
      ASSERT_NO_FATAL_FAILURE(expect_and_erase(queue.find_sequence(entry.sequence), place));
      ASSERT_FALSE(queue.find_sequence(entry.sequence));
    } else {
      ASSERT_NO_FATAL_FAILURE(expect_and_erase(queue.find_exact(entry.key, entry.cookie), place));
      ASSERT_FALSE(queue.find_exact(entry.key, entry.cookie));
    }
  }
  template <class Predicate>
  void remove_if(Predicate wanted) {
    std::vector<void*> expected;
    std::vector<void*> removed;
    for (const QueueEntry& entry : reference.entries) {
      if (wanted(entry)) expected.push_back(entry.cookie);
    }
    std::erase_if(reference.entries, wanted);
    const std::size_t count =
        queue.remove_if(wanted, [&](const QueueEntry& entry) { removed.push_back(entry.cookie); });
    ASSERT_EQ(count, expected.size());
    ASSERT_EQ(removed, expected);
  }
  void expect_all() const {
    std::vector<void*> expected;
    std::vector<void*> all;
    for (const QueueEntry& entry : reference.entries) expected.push_back(entry.cookie);
    queue.for_each([&](const QueueEntry& entry) { all.push_back(entry.cookie); });
    ASSERT_EQ(queue.empty(), expected.empty());
    ASSERT_EQ(all, expected);
  }

  typename Queue::Parameters parameters = Queue::Parameters::parse("");
  QueueResources resources;
  Queue queue;
  const QueueSide side;
  std::uint64_t next;
  std::uintptr_t cookies = 0;
  unsigned calls = 0;
  ReferenceQueue reference;
};

struct Churn {
  std::uint32_t seed;
  int keys;  // this many tags of each of three sources
  int wildcards;
  std::size_t most;  // entries
  int calls;
  int together = 1;  // so many entries, or fewer, come one after the other
};

template <class Queue>
void churn(Twin<Queue>& twin, const Churn& mix) {
  std::mt19937 random(mix.seed);
  const auto below = [&](int bound) { return static_cast<int>(random() % unsigned(bound)); };
  const auto message = [&] { return key_of(below(3), below(mix.keys) - mix.keys / 5); };
  const auto receive = [&] {
    const bool wild = below(100) < mix.wildcards;
    const int kind = wild ? 1 + below(3) : 0;
    return key_of((kind & 1) != 0 ? kAnySource : below(3),
                  (kind & 2) != 0 ? kAnyTag : below(mix.keys) - mix.keys / 5);
  };
  const bool posted = twin.side == QueueSide::posted;
  const auto own = [&] { return posted ? receive() : message(); };
  const auto other = [&] { return posted ? message() : receive(); };
  bool growing = true;
  for (int call = 0; call < mix.calls; ++call) {
    if (twin.reference.size() >= mix.most) growing = false;
    if (twin.reference.size() <= mix.most / 8) growing = true;
    const int choice = below(1000);
    if (choice < (growing ? 600 : 250)) {
      for (int left = 1 + below(mix.together); left > 0; --left) {
        if (!twin.append(own())) growing = false;
      }
    } else if (choice < 860) {
      ASSERT_NO_FATAL_FAILURE(twin.take(other()));
    } else if (choice < 960) {
      ASSERT_NO_FATAL_FAILURE(twin.look(other()));
    } else if (choice < 998 && posted && !twin.reference.empty()) {
      // Receives are cancelled; messages only leave by a match or a drop.
      const std::size_t size = twin.reference.size();
      const std::size_t places[] = {0, size - 1, size / 2, random() % size};
      ASSERT_NO_FATAL_FAILURE(twin.cancel(places[below(4)], below(2) == 0));
    } else if (choice == 998) {
      const int source = below(3);
      ASSERT_NO_FATAL_FAILURE(twin.remove_if([&](const QueueEntry& entry) {
        return !key_any_source(entry.key) && key_source(entry.key) == source;
      }));
    } else if (choice == 999 && below(4) == 0) {
      ASSERT_NO_FATAL_FAILURE(twin.remove_if([](const QueueEntry&) { return true; }));
    }
    if (call % 61 == 0) {
      ASSERT_NO_FATAL_FAILURE(twin.expect_all());
    }
  }
  ASSERT_NO_FATAL_FAILURE(twin.expect_all());
}

template <class Queue>
class EveryQueue : public testing::Test {};

using Queues = testing::Types<LinearQueue, VectorQueue, ArrayQueue, FuzzyQueue<std::uint8_t>,
                              FuzzyQueue<std::uint16_t>, FuzzyQueue<std::uint32_t>, SourceQueue,
                              IndexedQueue, AdaptiveQueue>;
TYPED_TEST_SUITE(EveryQueue, Queues);

constexpr QueueSide kSides[] = {QueueSide::posted, QueueSide::unexpected};
constexpr std::uint64_t kLast = ~std::uint64_t{0};

TYPED_TEST(EveryQueue, KeepsOrderWhileSequencesWrap) {
  for (const QueueSide side : kSides) {
    for (std::uint32_t seed = 1; seed <= static_cast<std::uint32_t>(effort(20)); ++seed) {
      for (const Churn& mix : {Churn{seed, 40, 10, 120, 1500}, Churn{seed, 3, 40, 60, 1500},
                               Churn{seed, 400, 2, 600, 3000}, Churn{seed, 1, 0, 200, 1500}}) {
        Twin<TypeParam> twin(side, kLast - static_cast<std::uint64_t>(mix.calls) / 4);
        ASSERT_NO_FATAL_FAILURE(churn(twin, mix)) << "seed " << seed << ", keys " << mix.keys;
      }
    }
  }
}

// Among more than a cache holds entries may go another way, and few of them later as well.
TYPED_TEST(EveryQueue, KeepsOrderWhereVeryManyHaveWaited) {
  for (const QueueSide side : kSides) {
    for (const int wildcards : {0, 10}) {
      Twin<TypeParam> twin(side, kLast - 300000);
      for (int tag = 0; tag < 300000; ++tag) ASSERT_TRUE(twin.append(key_of(0, tag)));
      ASSERT_NO_FATAL_FAILURE(twin.take(key_of(1, 0)));
      ASSERT_NO_FATAL_FAILURE(twin.remove_if([](const QueueEntry&) { return true; }));
      const auto seed = static_cast<std::uint32_t>(wildcards) + 1;
      ASSERT_NO_FATAL_FAILURE(churn(twin, {seed, 20, wildcards, 200, 1500, 30}));
    }
  }
}

// At every limit an append works or is refused; what is in the queue stays there.
TYPED_TEST(EveryQueue, RefusesWhatItHasNoMemoryForAndGoesOn) {
  for (const QueueSide side : kSides) {
    for (std::size_t limit = 1; limit < 200000; limit += (64 + limit / 16) * 100 / effort(100)) {
      Twin<TypeParam> twin(side, 1, limit);
      const auto seed = static_cast<std::uint32_t>(limit);
      ASSERT_NO_FATAL_FAILURE(churn(twin, {seed, 60, 15, 500, 1200})) << "limit " << limit;
      ASSERT_LE(twin.resources.memory.used_bytes(), limit);
      if (twin.append(key_of(0, 0))) continue;
      // Refused once, refused again; then everything that waits can be had.
      ASSERT_FALSE(twin.append(key_of(0, 0)));
      ASSERT_NO_FATAL_FAILURE(twin.expect_all());
      while (!twin.reference.empty()) {
        ASSERT_NO_FATAL_FAILURE(twin.take(key_of(key_source(twin.reference.entries[0].key),
                                                 key_tag(twin.reference.entries[0].key))));
      }
    }
  }
}

TYPED_TEST(EveryQueue, ReturnsAllMemory) {
  for (const QueueSide side : kSides) {
    typename TypeParam::Parameters parameters = TypeParam::Parameters::parse("");
    QueueResources resources(*simd::available_kernels(0), 0, TypeParam::node_bytes(parameters));
    const auto fill = [&] {
      TypeParam queue(resources, parameters, side);
      for (std::uint64_t i = 1; i <= 3000; ++i) {
        ASSERT_TRUE(queue.has_room() || queue.make_room());
        queue.append(
            {key_of(static_cast<std::int32_t>(i % 7), static_cast<std::int32_t>(i)), nullptr, i});
        std::uint64_t depth = 0;
        queue.find(side == QueueSide::posted ? key_of(9, 9) : key_of(kAnySource, 9999), depth);
      }
    };
    fill();
    const std::size_t used = resources.memory.used_bytes();
    for (int round = 0; round < 5; ++round) fill();
    // The pool keeps its nodes; all else was given back or used again.
    EXPECT_LE(resources.memory.used_bytes(), used);
  }
}

}  // namespace
}  // namespace tagline::test
