// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "match/tagline.h"
#include "tests/support/history.hpp"

namespace tagline::test {

// Everything that can play a history, call by call, offers
//
//   play(operation)     the call and what came of it
//   remains(context)    what is left in both queues of a context, as an Outcome
//                       that lists posted receives first, each queue oldest first
//   counts(side)        what tagline_statistics says of it

struct Counts {
  std::uint64_t high_water = 0;
  std::uint64_t searches = 0;
  std::uint64_t matches = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
};

// What is left of a context, as remains() reports it.
Outcome remains_outcome(const std::vector<std::uintptr_t>& posted,
                        const std::vector<std::uintptr_t>& unexpected);

// MPI's rule, field by field.
bool accepts(const tagline_envelope& receive, const tagline_envelope& message);

// Around every call into the library and nothing else: where faults are injected.
struct CallHooks {
  void (*before)() = nullptr;
  void (*after)() = nullptr;
};

// The library behind the calls of a history.
class Library {
 public:
  explicit Library(const tagline_options& options, CallHooks hooks = {});
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  Outcome play(const Operation& operation);
  Outcome remains(std::uint64_t context) const;
  Counts counts(tagline_side side) const;
  std::uint64_t pool_bytes() const;

 private:
  template <class Call>
  auto hooked(Call call) const;
  tagline_handle& handle_of(std::uintptr_t cookie);

  tagline_matcher* matcher_ = nullptr;
  CallHooks hooks_;
  std::vector<tagline_handle> handles_;  // by cookie, which count up from 1
};

// MPI's rules in their plainest form: two vectors searched front to back.
class Model {
 public:
  // taken: what the library has found, 0 if nothing. Where messages may overtake, any entry that
  // fits is as good as the oldest, so then this is the match, if it is one that fits.
  Outcome play(const Operation& operation, std::uintptr_t taken = 0);
  Outcome remains(std::uint64_t context) const;
  Counts counts(tagline_side side) const { return counts_[side]; }

  // The call played last queued an entry for which the library had no memory: as
  // if it had not been made. (A search in vain still counts as one.)
  Outcome take_back(const Operation& operation);

 private:
  struct Entry {
    tagline_envelope envelope;
    std::uintptr_t cookie;
  };
  using Entries = std::vector<Entry>;

  Outcome lengths(Outcome outcome) const;
  Entries::iterator find(tagline_side side, const tagline_envelope& envelope, std::uintptr_t taken);
  void count_search(tagline_side side, const tagline_envelope& envelope);
  void append(tagline_side side, const Operation& operation);
  void drop(Outcome& outcome, std::uint64_t context, const std::int32_t* source);

  Entries queue_[2];
  std::map<std::uint64_t, unsigned> hints_;  // by context
  Counts counts_[2];
  std::uint64_t high_water_before_ = 0;  // the newest entry
};

// Plays a history on the library and on the model side by side and compares after
// every call, and at the end what is left and what was counted; "" if all agrees. Where messages
// may overtake, the model follows the library's choice.
// With a limit of memory or hooks, a call that queues may fail for lack of memory
// instead, and must then have changed nothing.
std::string first_difference(const std::vector<Operation>& history, const tagline_options& options,
                             int contexts, CallHooks hooks = {});

// A difference at one call, for a person to read.
std::string describe(const std::vector<Operation>& history, std::size_t call,
                     const Outcome& expected, const Outcome& actual);

}  // namespace tagline::test
