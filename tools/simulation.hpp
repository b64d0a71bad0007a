// SPDX-License-Identifier: BSD-3-Clause
//
// Match lists of a communication pattern at any number of ranks, without MPI: a simulation of
// events (a message arrives, a rank has computed) that follows how long the two queues of every
// rank are and counts a sample at each entry that comes or goes.
//
// A rank does steps. In each it posts its receives, sends, waits for all of them and computes
// (or, with sends_last, computes before it sends). Messages of a step that arrive before the
// receives are posted are unexpected. Nothing is said about the network but a latency with
// jitter: what makes lists long is that ranks are not equally fast.
//
// Memory: some bytes per rank, and what is under way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "match/tagline.h"

namespace tagline::tools {

struct SimulatedReceive {
  std::int32_t source;  // TAGLINE_ANY_SOURCE: takes any message whose receive has it, too
  std::int32_t tag;
};

// Addressed to one of the receives of a step of the destination.
struct SimulatedSend {
  std::uint32_t destination;
  std::uint32_t step;
  std::uint32_t slot;  // which of its receives of the step
};

// Pure functions of rank and step, so that nothing has to be stored.
class Pattern {
 public:
  static constexpr std::uint32_t kMostSteps = 0xffff;
  static constexpr std::uint32_t kMostReceives = 0xfffe;  // of one step
  static constexpr std::int32_t kStrangerTag = 9000;

  virtual ~Pattern() = default;
  virtual void receives(std::uint32_t rank, std::uint32_t step,
                        std::vector<SimulatedReceive>& list) const = 0;
  virtual void sends(std::uint32_t rank, std::uint32_t step,
                     std::vector<SimulatedSend>& list) const = 0;
  virtual std::uint64_t compute_ns(std::uint32_t rank, std::uint32_t step) const = 0;
  // A message to the rank so many further on, which does not expect it and probes at the end of
  // its steps.
  virtual std::uint32_t stranger_distance(std::uint32_t) const { return 1; }
  virtual bool sends_stranger(std::uint32_t, std::uint32_t) const { return false; }

  std::uint32_t ranks = 0;
  std::uint32_t steps = 0;
  bool sends_last = false;
};

struct PatternName {
  const char* name;
  const char* what;
  std::uint32_t ranks;  // by default
  std::uint32_t steps;
  const char* step_unit;
};
// Ends with a name that is nullptr.
extern const PatternName kPatterns[];

// Throws std::runtime_error for a name, a number of ranks or of steps that cannot be.
std::unique_ptr<Pattern> make_pattern(const std::string& name, std::uint32_t ranks,
                                      std::uint32_t steps);

struct SimulatedSide {
  std::vector<std::uint64_t> samples;  // by length, one per addition and deletion
  std::vector<std::uint64_t> ranks;    // by the longest length that they had

  std::uint64_t total() const;
  std::uint32_t longest() const { return static_cast<std::uint32_t>(samples.size()) - 1; }
  std::uint32_t percentile(double share) const;  // of the samples
};

struct Simulated {
  SimulatedSide posted;
  SimulatedSide unexpected;
  std::uint64_t messages = 0;
  double seconds = 0;               // simulated
  std::uint32_t longest_rank = 0;  // who had the longest list
  std::uint64_t most_under_way = 0;
};

struct SimulateOptions {
  std::vector<std::uint32_t> traced;  // ranks whose history is written to
  std::filesystem::path folder;       // this folder
  std::function<void(double done)> progress;
};

// Throws std::runtime_error where a trace cannot be written or a rank does not exist.
Simulated simulate(const Pattern& pattern, const SimulateOptions& options);

}  // namespace tagline::tools
