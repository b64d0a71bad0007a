// SPDX-License-Identifier: BSD-3-Clause
//
// What `tagline tune` has measured and what it advises, in a file that people can read.
//
//   tagline profile 1
//   # a comment
//   machine 2 units of AMD EPYC 9B14
//   run 2026-11-21T17:40:00Z low 5.0 1.0.0
//   time short adaptive avx512bw 8.1 8.0 8.9 40
//   score single/exact/few vector avx512bw 1.31 1.20 1.44 3.10 40
//   choose single/exact/few adaptive avx512bw
//
//   machine  what the lines below it are about: processing units and processor
//   run      date, effort, seconds, version of tagline: what follows was measured then
//   time     use, queue, instruction set, nanoseconds per match (median, 10th and 90th
//            percentile), rounds
//   score    kind of matcher, queue, instruction set, time as a multiple of the default's
//            (median, 10th and 90th percentile of rounds), the same in the use where it is worst,
//            rounds
//   choose   kind of matcher, queue, instruction set: what matchers of this kind are made of
//
// Read by the library, so it needs no other; strictly, because a profile that is half
// understood is worse than none.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "match/tagline.h"

namespace tagline {

struct ProfileTime {
  std::string use;
  std::string queue;
  std::string isa;
  double median = 0;
  double low = 0;
  double high = 0;
  unsigned rounds = 0;
};

struct ProfileScore {
  std::string kind;
  std::string queue;
  std::string isa;
  double median = 0;
  double low = 0;
  double high = 0;
  double worst = 0;
  unsigned rounds = 0;
};

struct ProfileChoice {
  std::string kind;
  std::string queue;
  std::string isa;
};

struct ProfileRun {
  std::string date;
  std::string effort;
  double seconds = 0;
  std::string version;
  std::vector<ProfileTime> times;
  std::vector<ProfileScore> scores;
};

struct MachineProfile {
  std::string name;
  std::vector<ProfileRun> runs;
  std::vector<ProfileChoice> choices;

  const ProfileChoice* find(const std::string& kind) const;
};

struct Profile {
  std::vector<MachineProfile> machines;

  // nullptr: nothing was measured there.
  const MachineProfile* find(const std::string& machine) const;
  std::string text() const;
};

// A sentence: what, why, what to do.
struct BadProfile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws BadProfile.
Profile read_profile(const std::string& path);

// "2 units of AMD EPYC 9B14"
std::string this_machine();

// What is known of a matcher when it is made: served threads, wildcards that are promised not
// to come, and how many ranks may send. "single/exact/few", "threads/any/many".
inline constexpr std::int32_t kFewRanks = 64;  // at most
std::string profile_kind(bool threads, bool exact, bool many);
std::string profile_kind(const tagline_options& options);

// What the profile says for this kind of matcher on this machine; nullptr if it says nothing, and
// why not is reported.
const ProfileChoice* profile_choice(const std::string& path, const std::string& kind);

// Says that on stderr, once per file, and in one process of a job on each machine.
void report_profile(const std::string& path, const std::string& sentence);

}  // namespace tagline
