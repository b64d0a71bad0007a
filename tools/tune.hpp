// SPDX-License-Identifier: BSD-3-Clause
//
// What structure, instruction set and way to serve threads does best on this machine, by kind
// of matcher. A model that two short measurements of each candidate calibrate ranks them; the
// first of that ranking are measured in turns, beside the default, in every use.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "match/profile.hpp"

namespace tagline::tools {

struct Effort {
  const char* name;
  double seconds;         // for everything
  std::size_t measured;   // candidates of each group, the default besides
};
inline constexpr Effort kEfforts[] = {{"low", 5, 5}, {"medium", 30, 10}, {"high", 180, 24}};

// A thing that matchers are asked to do, one figure: nanoseconds per match.
struct Use {
  const char* name;
  const char* what;
};

// A matcher is for one thread or for several, and both kinds have uses of their own.
struct Group {
  bool threads;
  std::vector<Use> uses;
};
std::vector<Group> groups();

struct Candidate {
  std::string queue;
  std::string isa;
  double model_ns = 0;                 // predicted, over the uses of the group
  std::map<std::string, std::vector<double>> ns = {};  // by use, one per round
  bool aborted = false;                // clearly slower: not measured to the end
  std::size_t rounds() const { return ns.empty() ? 0 : ns.begin()->second.size(); }
};

struct Tuned {
  Group group;
  std::vector<Candidate> candidates;   // measured; the first is the default
  std::vector<Candidate> passed_over;  // by the model, best first
};

// done: 0 to 1, from time to time.
Tuned tune(const Group& group, std::size_t measured, double seconds,
           const std::function<void(double done)>& tell);

// The run's lines of a profile.
void add_to(ProfileRun& run, const Tuned& tuned);

// What all runs together advise, for each kind that was measured. A candidate replaces the
// default if it takes at most kWorthwhile times as long, is faster in nine of ten rounds of each
// run and in no use takes kTolerable times as long. Runs of other versions of tagline do not count.
inline constexpr double kWorthwhile = 0.97;
inline constexpr double kTolerable = 1.5;
struct Advice {
  ProfileScore score;         // of what is chosen, over all runs
  ProfileScore next;          // the best but for that; no queue: nothing else was measured to the end
  bool is_default = false;
};
std::vector<Advice> advise(const MachineProfile& machine, const std::string& version);

}  // namespace tagline::tools
