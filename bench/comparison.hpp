// SPDX-License-Identifier: BSD-3-Clause
//
// MPI jobs under several configurations, turn by turn. A turn is one job per
// configuration; ratios are taken within a turn or with the next ones, so that
// whatever slows the machine for a while slows both sides of a ratio. Every second
// turn runs backwards, so that no configuration always comes first.
//
// A virtual machine also moves its CPUs together and apart, which changes small
// messages threefold: only jobs that found a cache line to travel equally fast make
// a pair.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "benchmarks.hpp"
#include "mpirun.hpp"
#include "report.hpp"

namespace bench {

// A point: what was measured under every configuration.
struct Key {
  std::string measure;  // latency, bandwidth, bidirectional, rate or time
  std::string which;    // what lies ahead of the match, or a program's name
  std::string cache;
  int depth;
  int message_bytes;
  auto operator<=>(const Key&) const = default;
};

bool more_is_better(const Key& key);

// One job's samples of a point.
struct Sample {
  std::vector<double> values;
  double line_ns = 0;  // time of a cache line from one rank to the other; 0: not measured
};

// By turn, so that ratios can be paired.
using Turns = std::map<int, Sample>;

struct Runner {
  Configuration configuration;
  std::map<Key, Turns> results;
  std::string library;  // as the MPI library calls itself
  std::size_t sweep_bytes = 0;
  std::string reason;  // why it was given up, if it was
};

std::vector<double> all_samples(const Turns& turns);

// How much better `ours` is than `base` (> 1: better), one ratio per turn that has a
// counterpart.
std::optional<Spread> ratio(const Key& key, const Turns& base, const Turns& ours);

class Comparison {
 public:
  using Seconds = std::chrono::seconds;
  // Takes a line of a job's stdout for a turn of a runner; returns what it was about.
  using TakeLine = std::function<std::string(const std::string& line, int turn, Runner& runner)>;

  // names: of ob1, ucx, tagline and tagline:QUEUE; ratios are against ob1.
  Comparison(const Context& context, const std::vector<std::string>& names,
             const std::string& transport = "vader");
  // Any configurations; ratios are against the one named `base`.
  Comparison(std::vector<Configuration> configurations, std::string base);

  // Runs the program with its arguments once per configuration. Lines are the JSON
  // objects of our programs, unless told otherwise. A configuration that fails is given up.
  void take_turn(const std::vector<std::string>& program, const std::string& label, Seconds limit);
  void take_turn(const std::vector<std::string>& program, const std::string& label, Seconds limit,
                 const TakeLine& take);

  // Says why configurations were given up and forgets them: what has failed under way
  // has no result that counts. False if that happened to one that has to run.
  bool finish();

  const std::vector<Runner>& runners() const { return runners_; }
  const std::string& base_name() const { return base_; }
  const Runner* base() const;  // or NULL
  const Runner* find(const std::string& name) const;
  std::set<Key> keys() const;
  std::optional<Spread> against_base(const Runner& runner, const Key& key) const;

  // One per runner and point. `add` sets what else a benchmark knows.
  std::vector<Record> records(const Record& common,
                              const std::function<void(Record&, const Key&)>& add) const;
  // A column per runner, and the ratios.
  std::vector<std::string> table_header(const std::string& first, const std::string& unit) const;
  std::vector<std::string> table_row(const std::string& first, const Key& key) const;

 private:
  std::vector<Runner> runners_;
  std::string base_ = "ob1";
  int turn_ = 0;
};

std::string join(const std::vector<std::string>& words);

// Decides after each round whether another one fits into the time: a slow or busy
// machine gets fewer rounds, not a longer wait.
class Rounds {
 public:
  // wanted: 0 for `usual` rounds within `total`; else that many, however long they take
  Rounds(int wanted, int usual, std::chrono::seconds total);
  bool next();
  int taken() const { return taken_; }
  std::string label() const;  // "round 2/7"

 private:
  using Clock = std::chrono::steady_clock;
  bool fixed_;
  int rounds_;
  int taken_ = 0;
  std::chrono::seconds total_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point round_start_ = start_;
};

}  // namespace bench
