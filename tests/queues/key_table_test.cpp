// SPDX-License-Identifier: BSD-3-Clause
// The table against std::map, above all while slots move between two tables.
#include "queues/key_table.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace tagline {
namespace {

class Twin {
 public:
  explicit Twin(std::size_t limit_bytes = 0) : memory(limit_bytes) {}
  ~Twin() { table.clear(); }

  bool push(std::uint64_t key) {
    const IndexItem item = {key ^ next, next};
    if (!push_at_hand(key, item)) {
      if (!table.reserve()) return false;
      table.push(key, item);
    }
    expected[key].push_back(next++);
    return true;
  }
  // Every other time, where it is possible.
  bool push_at_hand(std::uint64_t key, const IndexItem& item) {
    if (next % 2 == 0 || !table.has_room(1)) return false;
    table.prefetch_place(key + 1);
    const auto known = expected.find(key);
    bool repeats = false;
    const bool done = table.push_at_hand(key, item, [&] { repeats = true; });
    EXPECT_EQ(repeats, done && known != expected.end()) << key;
    // Of one item there is no node yet, of others it has three places.
    const std::size_t items = known == expected.end() ? 0 : known->second.size();
    EXPECT_TRUE(items > 1 || done == (items == 0)) << key;
    behind_others += done && known != expected.end();
    return done;
  }
  void pop(std::uint64_t key) {
    KeyTable::Slot* slot = table.find(key);
    ASSERT_NE(slot, nullptr) << key;
    auto& sequences = expected[key];
    IndexItem item = slot->oldest;
    // Every other time, where it is possible: never where the key has more.
    const bool at_hand = pops++ % 2 == 0 && table.pop_at_hand(slot);
    if (!at_hand) item = table.pop(slot);
    EXPECT_FALSE(at_hand && sequences.size() > 1) << key;
    popped_at_hand += at_hand;
    EXPECT_EQ(item.sequence, sequences.front());
    EXPECT_EQ(item.value, key ^ item.sequence);
    sequences.pop_front();
    if (sequences.empty()) expected.erase(key);
  }
  void erase(std::uint64_t key, std::size_t which) {
    KeyTable::Slot* slot = table.find(key);
    ASSERT_NE(slot, nullptr) << key;
    auto& sequences = expected[key];
    const auto place = sequences.begin() + static_cast<std::ptrdiff_t>(which % sequences.size());
    table.erase(slot, *place);
    sequences.erase(place);
    if (sequences.empty()) expected.erase(key);
  }
  void let_shrink() { table.let_shrink(next - 1, table.capacity()); }
  void expect_all() const {
    ASSERT_EQ(table.size(), expected.size());
    for (const auto& [key, sequences] : expected) {
      const KeyTable::Slot* slot = table.find(key);
      ASSERT_NE(slot, nullptr) << key;
      std::deque<std::uint64_t> all;
      KeyTable::for_each_item(*slot, [&](const IndexItem& item) {
        all.push_back(item.sequence);
        return true;
      });
      ASSERT_EQ(all, sequences) << key;
    }
    std::map<std::uint64_t, std::deque<std::uint64_t>> visited;
    table.for_each([&, this](std::uint64_t key, const IndexItem& item) {
      visited[key].push_back(item.sequence);
    });
    ASSERT_EQ(visited, expected);
  }

  NodeMemory memory;
  NodePool pool{memory, Fifo::kNodeBytes};
  KeyTable table{pool};
  std::map<std::uint64_t, std::deque<std::uint64_t>> expected;
  std::uint64_t next = 1;
  int behind_others = 0;  // pushed at hand
  unsigned pops = 0;
  int popped_at_hand = 0;
};

constexpr std::uint64_t grid(std::uint64_t i) { return i / 37 << 32 | i % 37; }

// Random calls that let the table grow to so many keys and empty again, often.
void churn(Twin& twin, std::uint32_t seed, std::size_t most, int calls) {
  std::mt19937 random(seed);
  bool growing = true;
  for (int call = 0; call < calls; ++call) {
    if (twin.expected.size() >= most) growing = false;
    if (twin.expected.empty()) growing = true;
    if (random() % 100 < (growing ? 75u : 25u)) {
      if (!twin.push(grid(random() % (3 * most)))) growing = false;
    } else if (!twin.expected.empty()) {
      auto found = twin.expected.lower_bound(grid(random() % (3 * most)));
      if (found == twin.expected.end()) found = twin.expected.begin();
      const std::uint64_t key = found->first;
      if (random() % 4 == 0) {
        ASSERT_NO_FATAL_FAILURE(twin.erase(key, random()));
      } else {
        ASSERT_NO_FATAL_FAILURE(twin.pop(key));
      }
    }
    ASSERT_EQ(twin.table.find(grid(4 * most)), nullptr);
    if (call % 97 == 0) {
      ASSERT_NO_FATAL_FAILURE(twin.expect_all());
    }
  }
}

TEST(KeyTable, FindsNothingWithoutMemoryOfItsOwn) {
  Twin twin;
  EXPECT_EQ(twin.table.find(1), nullptr);
  EXPECT_EQ(twin.memory.used_bytes(), 0u);
}

TEST(KeyTable, FollowsAMapThroughGrowthAndShrinking) {
  for (const std::size_t most : {5u, 60u, 700u, 3000u}) {
    Twin twin;
    ASSERT_NO_FATAL_FAILURE(churn(twin, static_cast<std::uint32_t>(most), most, 20000));
    EXPECT_GT(twin.behind_others, 0);
    EXPECT_GT(twin.popped_at_hand, 0);
  }
}

TEST(KeyTable, AHintTellsEachKeysLine) {
  Twin twin;
  for (const bool small : {true, false}) EXPECT_FALSE(twin.table.slot_hint(small));
  std::uint64_t next = 0;
  for (const std::uint64_t keys : {60u, 5000u, 40000u}) {
    while (next < keys || twin.table.is_moving()) ASSERT_TRUE(twin.push(grid(next++)));
    const KeyTable::SlotHint hint = twin.table.slot_hint(/*small=*/true);
    ASSERT_TRUE(hint);
    const bool is_large = keys == 40000;
    EXPECT_EQ(hint.is_large(), is_large);
    EXPECT_EQ(hint.bytes(), twin.table.capacity() * sizeof *twin.table.find(grid(0)));
    EXPECT_EQ(static_cast<bool>(twin.table.slot_hint(/*small=*/false)), is_large);
    std::size_t elsewhere = 0;  // where another key has its slot
    for (const auto& [key, sequences] : twin.expected) {
      const auto* slot = reinterpret_cast<const char*>(twin.table.find(key));
      const auto* place = static_cast<const char*>(hint.place_of(key));
      const char* const line = slot - reinterpret_cast<std::uintptr_t>(slot) % kCacheLine;
      elsewhere += place < line || place >= line + kCacheLine;
    }
    EXPECT_LT(elsewhere, twin.expected.size() / 4) << keys;
  }
}

// Every call looks for every key, so each state between two tables is seen.
TEST(KeyTable, EveryKeyIsFoundAtEveryStepOfAMove) {
  Twin twin;
  for (std::uint64_t i = 0; i < 600; ++i) {
    ASSERT_TRUE(twin.push(grid(i)));
    for (std::uint64_t k = 0; k <= i; ++k) ASSERT_NE(twin.table.find(grid(k)), nullptr) << k;
    ASSERT_EQ(twin.table.find(grid(i + 1)), nullptr);
  }
}

TEST(KeyTable, KeysGoFromEitherTableDuringAMove) {
  // At each size once: up to there, then out again in one of several orders.
  for (std::uint64_t size = 1; size < 300; size += 7) {
    for (const std::uint64_t stride : {1u, 298u, 101u}) {
      Twin twin;
      for (std::uint64_t i = 0; i < size; ++i) ASSERT_TRUE(twin.push(grid(i)));
      for (std::uint64_t i = 0; i < 299; ++i) {
        const std::uint64_t key = grid((i * stride + stride) % 299);
        if (twin.expected.count(key) != 0) {
          ASSERT_NO_FATAL_FAILURE(twin.pop(key));
        }
      }
      ASSERT_NO_FATAL_FAILURE(twin.expect_all());
      EXPECT_TRUE(twin.table.empty());
    }
  }
}

// Without memory to grow a table fills to the brim: long clusters, around its end.
TEST(KeyTable, FullTableKeepsItsClustersTogether) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    Twin twin(64 * sizeof(KeyTable::Slot) + 2048 + seed * 64);
    ASSERT_NO_FATAL_FAILURE(churn(twin, seed, 60, 3000));
  }
}

// Memory that is there again when the table is full: the old table of this move is
// all clusters, one of which may cross its end.
TEST(KeyTable, MoveOutOfAFullTableLosesNoKey) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    constexpr std::size_t kLimit = 1 << 16;
    Twin twin(kLimit);
    ASSERT_TRUE(twin.push(grid(seed * 100)));
    const std::size_t ballast = twin.memory.available_bytes();
    void* block = twin.memory.allocate(ballast);
    ASSERT_NE(block, nullptr);
    std::uint64_t pushed = 1;
    while (pushed < 56 && twin.push(grid(seed * 100 + pushed))) ++pushed;
    twin.memory.release(block, ballast);
    ASSERT_GT(pushed, 20u);
    for (std::uint64_t i = 0; i < 20; ++i, ++pushed) {
      ASSERT_TRUE(twin.push(grid(seed * 100 + pushed)));
      ASSERT_NO_FATAL_FAILURE(twin.expect_all());
      const auto some = static_cast<std::ptrdiff_t>((seed + 7 * i) % twin.expected.size());
      ASSERT_NO_FATAL_FAILURE(twin.pop(std::next(twin.expected.begin(), some)->first));
      ASSERT_NO_FATAL_FAILURE(twin.expect_all());
    }
  }
}

// One cluster from near the end of the table far into its beginning, on the move.
// The keys have one home in a table of 64 slots.
TEST(KeyTable, ClusterAcrossTheEndIsFoundAtEveryStepOfAMove) {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t source = 0; keys.size() < 45; ++source) {
    if (KeyTable::home(source, KeyTable::shift_of(64)) == 61) keys.push_back(source);
  }
  for (std::size_t moved = 0; moved < 8; ++moved) {
    Twin twin(1 << 16);
    ASSERT_TRUE(twin.push(keys[0]));
    const std::size_t ballast = twin.memory.available_bytes();
    void* block = twin.memory.allocate(ballast);
    ASSERT_NE(block, nullptr);
    for (std::size_t i = 1; i < 40; ++i) ASSERT_TRUE(twin.push(keys[i]));
    twin.memory.release(block, ballast);
    ASSERT_TRUE(twin.table.reserve());  // begins the move
    ASSERT_NO_FATAL_FAILURE(twin.expect_all());
    for (std::size_t i = 0; i < 5; ++i) {
      ASSERT_NO_FATAL_FAILURE(twin.pop(keys[(moved * 5 + i) % 40]));
      ASSERT_NO_FATAL_FAILURE(twin.expect_all());
      ASSERT_TRUE(twin.push(keys[40 + i]));
      ASSERT_NO_FATAL_FAILURE(twin.expect_all());
    }
  }
}

// What goes out of the old table of a move must not be carried on: a table that
// then shrinks would be full of it, and searches would not end.
TEST(KeyTable, KeysGoneDuringAMoveTakeNoRoomInTheNextTables) {
  Twin twin;
  for (int cycle = 0; cycle < 5; ++cycle) {
    for (std::uint64_t i = 0; i < 515; ++i) ASSERT_TRUE(twin.push(grid(i)));
    for (std::uint64_t i = 0; i < 515; ++i) ASSERT_NO_FATAL_FAILURE(twin.pop(grid(514 - i)));
    for (std::uint64_t i = 0; i < 40000; ++i) {
      ASSERT_TRUE(twin.push(grid(i % 5)));
      ASSERT_NO_FATAL_FAILURE(twin.pop(grid(i % 5)));
      twin.let_shrink();
    }
    EXPECT_EQ(twin.table.find(grid(1000)), nullptr);
  }
}

TEST(KeyTable, EveryLimitOfMemoryIsSurvived) {
  for (std::size_t limit = 64; limit < 64 * 1024; limit += 64 * (1 + limit / 2048)) {
    Twin twin(limit);
    ASSERT_NO_FATAL_FAILURE(churn(twin, static_cast<std::uint32_t>(limit), 400, 1500));
    EXPECT_LE(twin.memory.used_bytes(), limit);
  }
}

TEST(KeyTable, ShrinksWhenLittleIsLeft) {
  Twin twin;
  for (std::uint64_t i = 0; i < 50000; ++i) ASSERT_TRUE(twin.push(grid(i)));
  const std::size_t full = twin.memory.used_bytes();
  for (std::uint64_t i = 0; i < 50000; ++i) twin.pop(grid(i));
  // What remains is used as a queue is: filled and drained by a few.
  for (std::uint64_t round = 0; round < 600000; ++round) {
    ASSERT_TRUE(twin.push(grid(round % 1000)));
    twin.pop(grid(round % 1000));
    if (round % 500 == 0) twin.let_shrink();
  }
  EXPECT_LT(twin.memory.used_bytes(), full / 16);
}

// Of a queue that has just been emptied the next entries are as many as before, most likely.
TEST(KeyTable, KnowsItsPeakWhileItIsDrainedTwice) {
  Twin twin;
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(twin.push(grid(i)));
  for (std::uint64_t i = 0; i < 100; ++i) twin.pop(grid(i));
  std::uint64_t newest = twin.next - 1;
  const auto let_come = [&](std::size_t items) {
    twin.table.let_shrink(newest += items, twin.table.capacity());
  };
  const std::size_t capacity = twin.table.capacity();
  const std::size_t peak = twin.table.peak();
  EXPECT_GE(peak, 100u);
  let_come(capacity);
  EXPECT_EQ(twin.table.peak(), peak);
  let_come(capacity - 1);
  EXPECT_EQ(twin.table.peak(), peak);
  let_come(1);
  EXPECT_LT(twin.table.peak(), peak);
}

// Slots of a table that has grown to so many keys.
std::size_t capacity_for(std::size_t keys) {
  NodeMemory memory(0);
  NodePool pool(memory, Fifo::kNodeBytes);
  KeyTable table(pool);
  for (std::size_t i = 0; i < keys; ++i) {
    EXPECT_TRUE(table.reserve());
    table.push(i, {1, i + 1});
  }
  while (table.is_moving()) table.go_on_moving();
  return table.capacity();
}

// Places that keys are away from the slots where their searches begin, on average: about 0.17 where
// keys scatter at random and a quarter of the slots are used, 0.5 where half are.
template <class Key>
double places_passed(std::size_t keys, std::size_t capacity, Key key) {
  std::vector<std::size_t> begin_at(capacity);
  const unsigned shift = KeyTable::shift_of(capacity);
  for (std::size_t i = 0; i < keys; ++i) ++begin_at[KeyTable::home(key(i), shift)];
  // Twice around: who passes the last slot goes on at the first.
  std::size_t waiting = 0;
  std::size_t passed = 0;
  for (int round = 0; round < 2; ++round) {
    passed = 0;
    for (const std::size_t here : begin_at) {
      waiting += here;
      if (waiting > 0) --waiting;
      passed += waiting;
    }
  }
  return static_cast<double>(passed) / static_cast<double>(keys);
}

TEST(KeyTable, KeysThatCountUpHaveASlotEach) {
  double all = 0;
  int count = 0;
  for (std::size_t keys = 8; keys <= 1 << 17; keys *= 2) {
    const std::size_t capacity = capacity_for(keys);
    const auto grid_of = [&](std::uint64_t sources) {
      return places_passed(keys, capacity,
                           [&](std::uint64_t i) { return i / sources << 32 | i % sources; });
    };
    const auto in_strides = [&](std::uint64_t of_sources, std::uint64_t of_tags) {
      return places_passed(keys, capacity,
                           [&](std::uint64_t i) { return i * of_tags << 32 | i * of_sources; });
    };
    EXPECT_LT(in_strides(0, 1), 0.04) << keys;
    EXPECT_LT(in_strides(1, 0), 0.05) << keys;
    EXPECT_LT(grid_of(64), 0.1) << keys;
    std::vector<double> others = {in_strides(1, 1)};
    for (const std::uint64_t sources : {2, 4, 8, 16, 26, 100, 256}) {
      others.push_back(grid_of(sources));
    }
    for (const std::uint64_t stride : {2, 3, 4, 5, 8, 10, 16, 100, 1000, 1024, 4096}) {
      others.push_back(in_strides(0, stride));
      others.push_back(in_strides(stride, 0));
    }
    for (const double passed : others) {
      EXPECT_LT(passed, 1.5) << keys;
      all += passed;
      ++count;
    }
  }
  EXPECT_LT(all / count, 0.09);
}

// Both tags of a pair have one line, and hardly any pair shares it with others.
TEST(KeyTable, TagsThatCountUpTakeHalfAsManyLines) {
  for (std::size_t keys = 16; keys <= 1 << 20; keys *= 2) {
    const unsigned shift = KeyTable::shift_of(4 * keys);
    std::set<std::size_t> lines;
    for (std::uint64_t tag = 0; tag < keys; ++tag) {
      const std::size_t home = KeyTable::home(tag << 32 | 5, shift);
      ASSERT_LT(home, 4 * keys);
      if (tag % 2 == 1) EXPECT_EQ(home, KeyTable::home((tag - 1) << 32 | 5, shift) ^ 1) << tag;
      lines.insert(home / 2);
    }
    EXPECT_LE(lines.size(), keys / 2) << keys;
    EXPECT_GE(lines.size(), keys / 2 - keys / 64) << keys;
  }
}

// Keys that leave gaps get more slots, until these are rare; those that count up need none.
TEST(KeyTable, GrowsWhereKeysLeaveGaps) {
  const auto capacity = [](std::uint64_t keys, int rounds, auto key) {
    Twin twin;
    for (int round = 0; round < rounds; ++round) {
      for (std::uint64_t i = 0; i < keys; ++i) EXPECT_TRUE(twin.push(key(i)));
      for (std::uint64_t i = keys; i-- > 0;) twin.pop(key(i));
    }
    EXPECT_FALSE(twin.table.is_moving());
    return twin.table.capacity();
  };
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> some(4000);
  std::generate(some.begin(), some.end(), random);
  const auto mixed = [&](std::uint64_t i) { return some[i]; };
  const auto tags = [](std::uint64_t i) { return i << 32; };
  for (const std::uint64_t keys : {140, 1100, 4000}) {
    const std::size_t irregular = capacity(keys, 30, mixed);
    EXPECT_GT(irregular, capacity(keys, 30, tags)) << keys;
    EXPECT_EQ(irregular, capacity(keys, 60, mixed)) << keys;
    EXPECT_LE(irregular, 16 * keys) << keys;
  }
}

// The system clears a page when it is first touched: a thousand pages cost a millisecond.
TEST(KeyTable, GrowsPageByPage) {
  const auto faults = [] {
    rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_minflt;
  };
  constexpr int kKeys = 256;  // at a time
  NodeMemory memory(0);
  NodePool pool(memory, Fifo::kNodeBytes);
  KeyTable table(pool);
  table.expect(1 << 17);
  long most = 0;
  for (std::uint64_t i = 1; i < 1 << 17;) {
    const long before = faults();
    for (int k = 0; k < kKeys; ++k, ++i) {
      ASSERT_TRUE(table.reserve());
      table.push(grid(i), {i, i});
      ASSERT_NE(table.find(grid(i / 2 + 1)), nullptr);
      ASSERT_EQ(table.find(~grid(i)), nullptr);
    }
    most = std::max(most, faults() - before);
  }
  EXPECT_LT(most, kKeys * 3 / 4);
}

TEST(KeyTable, GivesBackItsMemoryWhenCleared) {
  NodeMemory memory(0);
  {
    NodePool pool(memory, Fifo::kNodeBytes);
    KeyTable table(pool);
    for (std::uint64_t i = 0; i < 5000; ++i) {
      ASSERT_TRUE(table.reserve());
      table.push(grid(i % 1500), {i, i + 1});
    }
    table.clear();
    EXPECT_TRUE(table.empty());
    EXPECT_EQ(table.find(grid(1)), nullptr);
    const std::size_t cleared = memory.used_bytes();
    for (std::uint64_t i = 0; i < 5000; ++i) {  // nodes were returned to the pool
      ASSERT_TRUE(table.reserve());
      table.push(grid(0), {i, i + 1});
    }
    EXPECT_LE(memory.used_bytes(), cleared + 64 * sizeof(KeyTable::Slot));
  }
  EXPECT_EQ(memory.used_bytes(), 0u);
}

}  // namespace
}  // namespace tagline
