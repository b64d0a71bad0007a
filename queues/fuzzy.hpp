// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "queues/lane_list.hpp"
#include "queues/newest_entry.hpp"
#include "queues/resources.hpp"

namespace tagline {

// How a fingerprint is made: a part of the source XOR a part of the tag, each the
// upper bits of a product.
//
// Mixed, the multipliers are odd and spread every bit of the value over the
// fingerprint. A window of low-order bits is the same with a power of two, which
// moves the masked bits to where they belong; the windows of tag and source lie
// side by side, so that XOR joins them.
struct Fingerprints {
  int bits = 16;  // of a fingerprint: 8, 16 or 32
  std::uint64_t source_mask = kMixed;
  std::uint64_t source_multiplier = 0x9e3779b97f4a7c15u;
  std::uint64_t tag_mask = kMixed;
  std::uint64_t tag_multiplier = 0xc2b2ae3d27d4eb4fu;

  static constexpr std::uint64_t kMixed = 0xffffffffu;  // all bits of a value count

  template <class Word>
  Word of_source(std::int32_t source) const noexcept {
    return part<Word>(source, source_mask, source_multiplier);
  }
  template <class Word>
  Word of_tag(std::int32_t tag) const noexcept {
    return part<Word>(tag, tag_mask, tag_multiplier);
  }

  // "", "BITS" or "BITS:tagT:sourceS".
  static Fingerprints parse(const std::string& text) {
    Fingerprints made;
    if (text.empty()) return made;
    std::size_t end = 0;
    made.bits = number(text, end);
    if (made.bits != 8 && made.bits != 16 && made.bits != 32) refuse();
    if (end == text.size()) return made;
    const int tag_bits = number_behind(":tag", text, end);
    const int source_bits = number_behind(":source", text, end);
    if (end != text.size() || tag_bits + source_bits > made.bits) refuse();
    made.source_mask = low(source_bits);
    made.source_multiplier = std::uint64_t{1} << (64 - made.bits);
    made.tag_mask = low(tag_bits);
    made.tag_multiplier = tag_bits == 0 ? 0 : made.source_multiplier << source_bits;
    return made;
  }

 private:
  template <class Word>
  static Word part(std::int32_t value, std::uint64_t mask, std::uint64_t multiplier) noexcept {
    return static_cast<Word>((static_cast<std::uint32_t>(value) & mask) * multiplier >>
                             (64 - 8 * sizeof(Word)));
  }

  static std::uint64_t low(int bits) { return (std::uint64_t{1} << bits) - 1; }

  [[noreturn]] static void refuse() {
    throw std::invalid_argument(
        "takes 8, 16 or 32 bits, alone (\"fuzzy:16\": mixed) or with windows of low-order "
        "bits that fit into them (\"fuzzy:32:tag8:source24\")");
  }

  // A number of one or two digits from there on; moves `end` behind it.
  static int number(const std::string& text, std::size_t& end) {
    const std::size_t start = end;
    int value = 0;
    for (; end < text.size() && text[end] >= '0' && text[end] <= '9'; ++end) {
      value = 10 * value + (text[end] - '0');
      if (end - start == 2) refuse();
    }
    if (end == start) refuse();
    return value;
  }
  static int number_behind(const std::string& word, const std::string& text, std::size_t& end) {
    if (text.compare(end, word.size(), word) != 0) refuse();
    end += word.size();
    return number(text, end);
  }
};

template <class Word>
struct FuzzyNode : LaneNode<simd::FingerprintBlock<Word>, Fingerprints> {
  using Base = LaneNode<simd::FingerprintBlock<Word>, Fingerprints>;

  void put(const Fingerprints& fingerprints, int lane, const QueueEntry& entry) noexcept {
    Base::put(fingerprints, lane, entry);
    // What the key does not insist on is zero, and so is the part of zero.
    this->fingerprint[lane] =
        static_cast<Word>(fingerprints.of_source<Word>(key_source(entry.key)) ^
                          fingerprints.of_tag<Word>(key_tag(entry.key)));
  }
};

// Columns of short fingerprints of source and tag: as many fit into a register as
// it has words, up to 64. A fingerprint proposes, the full key decides.
//
//   node   line 0-34     as in queues/vector.hpp: link, masks, source and tag columns
//          next 4-16     fingerprints: 256 words of 8, 16 or 32 bits
//          last 96       key mask, cookie and sequence of each lane
//
//   oldest -> [ 256 lanes ] -> [ 256 lanes ] -> [ 256 lanes ] <- newest; newest entry
//
// A search reads the fingerprints, and of the rest only the lanes proposed. Those
// that do not meet the key after all are counted as false positives.
//
// Wildcards: a fingerprint joins a part of the source and a part of the tag, so a
// lane with a wildcard has the other part alone. The masks beside the column say
// which lanes these are, and the whole column is compared with each part: a
// queue of nothing but wildcards costs up to three comparisons instead of one,
// and as few false positives. A search *for* a wildcard has half a key, and half
// a fingerprint cannot be compared with whole ones; it compares the key columns.
//
// Holes are handled as in queues/node_list.hpp; the newest entry stays outside of
// the columns as in queues/newest_entry.hpp.
//
// Guarantees: append and erase are O(1) amortised (at most 256 entries move);
// find is exact, and touches 1, 2 or 4 lines per 64 entries and 3 per node, plus
// 2 per false positive; entries keep their order; only append takes memory.
template <class Word>
class FuzzyList : public LaneList<FuzzyNode<Word>> {
  using Node = FuzzyNode<Word>;
  using Base = LaneList<Node>;

 public:
  static constexpr const char* kName = "fuzzy";
  using Parameters = Fingerprints;
  using Hit = typename Base::Hit;
  static std::size_t node_bytes(const Parameters&) noexcept { return sizeof(Node); }

  FuzzyList(QueueResources& resources, const Parameters& parameters, QueueSide side) noexcept
      : Base(resources.pool, parameters),
        kernels_(&resources.kernels),
        counts_(&resources.counts(side)) {}

  // Wants !empty().
  Hit find(const MatchKey& key, std::uint64_t& depth) const noexcept {
    const auto lanes = this->near();
    const int lane = this->find_near(lanes, key);
    if (lane != Base::kNoLane || lanes.is_all) {
      depth += static_cast<unsigned>((lane != Base::kNoLane ? lane + 1 : lanes.end) - lanes.first);
      return {nullptr, lane};
    }
    return find_far(key, depth);
  }

 private:
  Hit find_far(const MatchKey& key, std::uint64_t& depth) const noexcept {
    simd::LaneCounts counts;
    simd::LaneHit hit;
    if (key_any_source(key) || key_any_tag(key)) {
      hit = kernels_->find_lane(this->oldest(), {key.bits, key.mask}, counts);
    } else {
      const Word source = this->shape().template of_source<Word>(key_source(key));
      const Word tag = this->shape().template of_tag<Word>(key_tag(key));
      hit = kernel()(this->oldest(),
                     {{key.bits, key.mask}, static_cast<Word>(source ^ tag), source, tag}, counts);
      counts_->false_positives += counts.false_positives;
    }
    depth += counts.lanes;
    return this->hit_of(hit);
  }

  auto kernel() const noexcept {
    if constexpr (sizeof(Word) == 1) {
      return kernels_->find_fingerprint8;
    } else if constexpr (sizeof(Word) == 2) {
      return kernels_->find_fingerprint16;
    } else {
      return kernels_->find_fingerprint32;
    }
  }

  const simd::Kernels* kernels_;
  QueueCounts* counts_;
};

template <class Word>
using FuzzyQueue = NewestEntry<FuzzyList<Word>>;

}  // namespace tagline
