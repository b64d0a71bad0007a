// SPDX-License-Identifier: BSD-3-Clause
// What is particular to the fuzzy queue: fingerprints propose, keys decide.
#include "queues/fuzzy.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tagline {
namespace {

constexpr MatchKey exact(int source, int tag) {
  return {key_bits(source, tag), kSourceMask | kTagMask};
}
constexpr MatchKey any_source(int tag) { return {key_bits(0, tag), kTagMask}; }
constexpr MatchKey any_tag(int source) { return {key_bits(source, 0), kSourceMask | kTagSign}; }
constexpr MatchKey anything() { return {0, kTagSign}; }

// A queue with fingerprints of the parameter given, on the best instruction set.
template <class Word>
struct Fuzzy {
  explicit Fuzzy(const std::string& parameter)
      : fingerprints(Fingerprints::parse(parameter)),
        resources(*simd::available_kernels(0), 0, FuzzyQueue<Word>::node_bytes(fingerprints)),
        queue(resources, fingerprints, QueueSide::posted) {}

  void append(const MatchKey& key) {
    ASSERT_TRUE(queue.has_room() || queue.make_room());
    queue.append({key, nullptr, ++appended});
  }
  // Sequence of the oldest entry that meets the key, 0 if there is none.
  std::uint64_t find(const MatchKey& key) {
    std::uint64_t depth = 0;
    const auto hit = queue.find(key, depth);
    return hit ? queue.at(hit).sequence : 0;
  }
  std::uint64_t false_positives() { return resources.counts(QueueSide::posted).false_positives; }

  Fingerprints fingerprints;
  QueueResources resources;
  FuzzyQueue<Word> queue;
  std::uint64_t appended = 0;
};

TEST(Fuzzy, WindowsTakeTheLowBits) {
  const Fingerprints windows = Fingerprints::parse("32:tag8:source24");
  EXPECT_EQ(windows.of_tag<std::uint32_t>(0x12345678), 0x78000000u);
  EXPECT_EQ(windows.of_source<std::uint32_t>(0x12345678), 0x345678u);
  const Fingerprints small = Fingerprints::parse("16:tag3:source4");
  EXPECT_EQ(small.of_tag<std::uint16_t>(-1), 0x70u);
  EXPECT_EQ(small.of_source<std::uint16_t>(0xff), 0x0fu);
  const Fingerprints one_sided = Fingerprints::parse("8:tag0:source8");
  EXPECT_EQ(one_sided.of_tag<std::uint8_t>(0xff), 0u);
  EXPECT_EQ(one_sided.of_source<std::uint8_t>(0xff), 0xffu);
  EXPECT_EQ(Fingerprints::parse("32:tag32:source0").of_tag<std::uint32_t>(-2), 0xfffffffeu);
}

TEST(Fuzzy, MixedFingerprintsSpreadSourcesTagsAndGrids) {
  const Fingerprints mixed = Fingerprints::parse("16");
  const auto most_alike = [&](int sources, int tags, int stride) {
    std::map<int, int> seen;
    int most = 0;
    for (int source = 0; source < sources; ++source) {
      for (int tag = 0; tag < tags; ++tag) {
        const auto fingerprint = mixed.of_source<std::uint16_t>(source * stride) ^
                                 mixed.of_tag<std::uint16_t>(tag * stride);
        most = std::max(most, ++seen[fingerprint]);
      }
    }
    return most;
  };
  for (const int stride : {1, 2, 16, 1000, 65536}) {
    EXPECT_LE(most_alike(1, 4096, stride), 3) << stride;
    EXPECT_LE(most_alike(4096, 1, stride), 3) << stride;
    EXPECT_LE(most_alike(64, 64, stride), 8) << stride;
  }
}

TEST(Fuzzy, EqualFingerprintsOfUnequalKeysAreVerifiedAndCounted) {
  Fuzzy<std::uint16_t> fuzzy("16:tag8:source8");
  for (int i = 0; i < 100; ++i) fuzzy.append(exact(0x100 * i, 7));
  for (int i = 0; i < 100; ++i) fuzzy.append(exact(5, 6 + 0x100 * i));
  EXPECT_EQ(fuzzy.false_positives(), 0u);
  EXPECT_EQ(fuzzy.find(exact(0x100 * 60, 7)), 61u);
  EXPECT_EQ(fuzzy.false_positives(), 60u);
  EXPECT_EQ(fuzzy.find(exact(0, 7 + 0x100)), 0u);
  EXPECT_EQ(fuzzy.false_positives(), 160u);
  EXPECT_EQ(fuzzy.find(exact(5, 6 + 0x100 * 20)), 121u);
  EXPECT_EQ(fuzzy.false_positives(), 180u);
}

TEST(Fuzzy, RemovedEntryIsNoFalsePositive) {
  Fuzzy<std::uint8_t> fuzzy("8:tag0:source0");  // all alike
  for (int tag = 0; tag < 50; ++tag) fuzzy.append(exact(0, tag));
  fuzzy.queue.remove_if([](const QueueEntry& entry) { return key_tag(entry.key) % 2 == 0; },
                        [](const QueueEntry&) {});
  fuzzy.append(exact(0, 50));
  EXPECT_EQ(fuzzy.find(exact(0, 40)), 0u);
  EXPECT_EQ(fuzzy.false_positives(), 25u);
}

template <class Word>
void expect_wildcards_stay_columns(const std::string& parameter) {
  Fuzzy<Word> fuzzy(parameter);
  for (int i = 0; i < 1000; ++i) fuzzy.append(i % 2 == 0 ? any_source(100 + i) : any_tag(5000 + i));
  fuzzy.append(anything());
  fuzzy.append(exact(1, 1));
  const auto limit =
      static_cast<std::uint64_t>(parameter == "8" ? 20 : 4);  // by chance, of a thousand lanes
  EXPECT_EQ(fuzzy.find(exact(1, 100 + 998)), 999u) << parameter;
  EXPECT_EQ(fuzzy.find(exact(5000 + 999, 1)), 1000u) << parameter;
  EXPECT_EQ(fuzzy.find(exact(1, 1)), 1001u) << parameter;
  // Wildcard lanes are proposed by the half that they do insist on.
  EXPECT_LE(fuzzy.false_positives(), 3 * limit) << parameter;
  // A tag wildcard takes no negative tag, and is not even proposed for one.
  const std::uint64_t before = fuzzy.false_positives();
  EXPECT_EQ(fuzzy.find(exact(5001, -3)), 0u) << parameter;
  EXPECT_LE(fuzzy.false_positives(), before + limit) << parameter;
}

TEST(Fuzzy, WildcardLanesAreComparedByWhatTheyInsistOn) {
  expect_wildcards_stay_columns<std::uint8_t>("8");
  expect_wildcards_stay_columns<std::uint16_t>("16");
  expect_wildcards_stay_columns<std::uint32_t>("32");
  expect_wildcards_stay_columns<std::uint32_t>("32:tag16:source16");
}

TEST(Fuzzy, WildcardQueryFindsTheOldestThatFits) {
  Fuzzy<std::uint16_t> fuzzy("16");
  for (int i = 0; i < 300; ++i) fuzzy.append(exact(i % 7, i < 150 ? -1 - i : i));
  EXPECT_EQ(fuzzy.find(anything()), 151u);
  EXPECT_EQ(fuzzy.find(any_source(-120)), 120u);
  EXPECT_EQ(fuzzy.find(any_tag(4)), 152u);
  EXPECT_EQ(fuzzy.false_positives(), 0u);
}

TEST(Fuzzy, MovedEntriesTakeTheirFingerprintsAlong) {
  Fuzzy<std::uint32_t> fuzzy("32");
  for (int tag = 0; tag < 2000; ++tag) fuzzy.append(tag % 3 == 0 ? any_source(tag) : exact(2, tag));
  fuzzy.queue.remove_if([](const QueueEntry& entry) { return key_tag(entry.key) % 10 != 6; },
                        [](const QueueEntry&) {});
  for (int tag = 0; tag < 2000; ++tag) {
    EXPECT_EQ(fuzzy.find(exact(2, tag)), tag % 10 == 6 ? static_cast<unsigned>(tag) + 1 : 0u);
  }
}

}  // namespace
}  // namespace tagline
