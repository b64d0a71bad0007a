// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tests/support/players.hpp"

namespace tagline::test {

// MPI's rules for queues of millions: entries in one vector in their order, and
// for every kind of envelope a map from envelope to the entries filed under it.
//
//   entries_   [ 0 1 2 3 4 5 ... ]          never reused, marked when gone
//   files_[k]  envelope -> 1 -> 4 -> ...    in order; gone ones are skipped
//
// A posted receive is filed under its own envelope, so a message looks under the
// four that accept it. A message is filed under the envelopes that may ask for
// it, from the first question of that kind on. Shares no code with the library.
class OrderedOracle {
 public:
  Outcome play(const Operation& operation);
  Outcome remains(std::uint64_t context) const;
  Counts counts(tagline_side side) const { return sides_[side].counts; }

 private:
  static constexpr unsigned kKinds = 4;  // bit 0: any source, bit 1: any tag

  using Number = std::uint32_t;  // of an entry, in its side's order
  static constexpr Number kNone = ~Number{0};

  struct Entry {
    tagline_envelope envelope;
    std::uintptr_t cookie;
    bool gone = false;
    std::array<Number, kKinds> next{kNone, kNone, kNone, kNone};  // in the same file
  };
  struct File {
    Number first = kNone;
    Number last = kNone;
  };
  struct Equal {
    bool operator()(const tagline_envelope& a, const tagline_envelope& b) const;
  };
  struct Hash {
    std::size_t operator()(const tagline_envelope& envelope) const;
  };
  using Files = std::unordered_map<tagline_envelope, File, Hash, Equal>;

  struct Side {
    std::vector<Entry> entries;
    std::array<Files, kKinds> files;
    std::array<bool, kKinds> filed{};                      // unexpected: this kind was asked for
    std::unordered_map<std::uint64_t, std::size_t> alive;  // per context
    std::size_t length = 0;
    Counts counts;
  };

  static unsigned kind_of(const tagline_envelope& envelope);
  static tagline_envelope as_kind(tagline_envelope envelope, unsigned kind);
  static Entry* oldest_in(Side& side, unsigned kind, const tagline_envelope& envelope);

  Entry* find_message(const tagline_envelope& envelope);
  Entry* find_receive(const tagline_envelope& envelope);
  void append(Side& side, const Operation& operation);
  static void file(Side& side, Number number, unsigned kind);
  void file_message(Number number, unsigned kind);
  static void remove(Side& side, Entry& entry);
  void count_search(Side& side, const tagline_envelope& envelope);

  std::array<Side, 2> sides_;
  std::vector<Number> receives_;  // by cookie
};

}  // namespace tagline::test
