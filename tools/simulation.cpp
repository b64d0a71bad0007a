// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "event_wheel.hpp"
#include "match/trace.hpp"
#include "random_numbers.hpp"

namespace tagline::tools {

namespace {

constexpr std::uint64_t kLatencyNs = 1500;
constexpr double kJitterNs = 400;             // mean
constexpr std::uint64_t kMostJitterNs = 4000;  // messages of a pair stay in order
constexpr std::uint64_t kPostNs = 50;
constexpr std::uint64_t kSendNs = 100;

// Slots of events that are no message to a receive.
constexpr std::uint16_t kComputed = 0xffff;
constexpr std::uint16_t kStranger = 0xfffe;

// Counts lengths, and what each rank had at most.
struct Counter {
  std::vector<std::uint64_t> samples = {0};
  std::vector<std::uint16_t> longest;  // by rank

  void count(std::uint32_t rank, std::uint32_t length) {
    if (length >= samples.size()) samples.resize(length + 1);
    ++samples[length];
    if (length > longest[rank]) longest[rank] = static_cast<std::uint16_t>(length);
  }
};

class Simulation {
 public:
  Simulation(const Pattern& pattern, const SimulateOptions& options)
      : pattern_(pattern), options_(options), ranks_(pattern.ranks) {
    posted_.longest.resize(pattern.ranks);
    unexpected_.longest.resize(pattern.ranks);
    for (const std::uint32_t rank : options.traced) trace(rank);
  }

  Simulated run() {
    for (std::uint32_t rank = 0; rank < pattern_.ranks; ++rank) {
      wheel_.push({hash(rank, 0, 1) % 2000, rank, 0, kComputed});
    }
    Event event = {};
    std::uint64_t most = 0;
    for (std::uint64_t count = 0; wheel_.pop(event); ++count) {
      if (event.slot == kComputed) {
        go_on(event.rank, event.ns);
      } else {
        arrive(event);
      }
      most = std::max(most, wheel_.size());
      if (count % 4194304 == 0 && options_.progress) {
        options_.progress(static_cast<double>(steps_done_) / pattern_.ranks / pattern_.steps);
      }
    }
    if (ended_ != pattern_.ranks) {
      throw std::logic_error("the pattern waits for messages that nobody sends");
    }
    Simulated result;
    result.posted = side_of(posted_);
    result.unexpected = side_of(unexpected_);
    result.messages = messages_;
    result.seconds = static_cast<double>(event.ns) / 1e9;
    result.most_under_way = most;
    const auto longest = [&](std::uint32_t rank) {
      return std::max(posted_.longest[rank], unexpected_.longest[rank]);
    };
    for (std::uint32_t rank = 0; rank < pattern_.ranks; ++rank) {
      if (longest(rank) > longest(result.longest_rank)) result.longest_rank = rank;
    }
    return result;
  }

 private:
  struct Early {
    std::uint16_t step;
    std::uint16_t slot;
  };
  struct Rank {
    std::uint32_t step = 0;
    std::uint16_t missing = 0;    // of the receives of the step
    bool begun = false;           // the step: its receives are posted
    TraceWriter* trace = nullptr;
    std::uint16_t posted = 0;     // lengths of the queues
    std::uint16_t strangers = 0;  // of the messages that wait these nobody has a receive for
    std::vector<Early> early;     // the others of them
    std::uint32_t unexpected() const {
      return static_cast<std::uint32_t>(early.size()) + strangers;
    }
  };

  // A rank has computed: the sends of its step, where they come last, and the next step.
  void go_on(std::uint32_t number, std::uint64_t ns) {
    Rank& rank = ranks_[number];
    if (rank.begun) {
      if (pattern_.sends_last) ns = send(number, rank.step, ns);
      end_step(rank);
    }
    // Steps that wait for nothing and compute nothing follow at once.
    while (rank.step < pattern_.steps) {
      ns = post(number, ns);
      if (!pattern_.sends_last) ns = send(number, rank.step, ns);
      if (rank.missing > 0) return;
      const std::uint64_t computes = ready(number, ns);
      if (computes > 0) return;
      if (pattern_.sends_last) ns = send(number, rank.step, ns);
      end_step(rank);
    }
    ++ended_;
  }

  void end_step(Rank& rank) {
    rank.begun = false;
    ++rank.step;
    ++steps_done_;
  }

  // All receives have completed: strangers are taken, and then it computes.
  std::uint64_t ready(std::uint32_t number, std::uint64_t ns) {
    Rank& rank = ranks_[number];
    for (; rank.strangers > 0; --rank.strangers) {
      if (rank.trace != nullptr) take_stranger(rank, ns);
      unexpected_.count(number, rank.unexpected() - 1);
    }
    const std::uint64_t computes = pattern_.compute_ns(number, rank.step);
    if (computes > 0) {
      wheel_.push({ns + computes, number, static_cast<std::uint16_t>(rank.step), kComputed});
    }
    return computes;
  }

  std::uint64_t post(std::uint32_t number, std::uint64_t ns) {
    Rank& rank = ranks_[number];
    rank.begun = true;
    rank.missing = 0;
    pattern_.receives(number, rank.step, receives_);
    // Of the messages that are there those of this step.
    present_.assign(receives_.size(), false);
    std::uint32_t any = 0;  // for the receives that take any of them
    std::erase_if(rank.early, [&](const Early& early) {
      if (early.step != rank.step) return false;
      if (receives_[early.slot].source == TAGLINE_ANY_SOURCE) {
        ++any;
      } else {
        present_[early.slot] = true;
      }
      return true;
    });
    std::uint32_t waiting = rank.unexpected() + any;
    waiting += static_cast<std::uint32_t>(std::count(present_.begin(), present_.end(), true));
    for (std::size_t slot = 0; slot < receives_.size(); ++slot, ns += kPostNs) {
      const SimulatedReceive& receive = receives_[slot];
      const bool takes_any = receive.source == TAGLINE_ANY_SOURCE && any > 0;
      if (rank.trace != nullptr) record(rank, ns, TraceKind::post, receive.source, receive.tag);
      if (takes_any || present_[slot]) {
        any -= takes_any;
        unexpected_.count(number, --waiting);
      } else {
        ++rank.missing;
        posted_.count(number, ++rank.posted);
      }
    }
    return ns;
  }

  std::uint64_t send(std::uint32_t number, std::uint32_t step, std::uint64_t ns) {
    pattern_.sends(number, step, sends_);
    for (const SimulatedSend& each : sends_) {
      ns += kSendNs;
      deliver(number, each.destination, each.step, static_cast<std::uint16_t>(each.slot), ns);
    }
    if (pattern_.sends_stranger(number, step)) {
      ns += kSendNs;
      const std::uint32_t to = (number + pattern_.stranger_distance(step)) % pattern_.ranks;
      deliver(number, to, step, kStranger, ns);
    }
    return ns;
  }

  void deliver(std::uint32_t from, std::uint32_t to, std::uint32_t step, std::uint16_t slot,
               std::uint64_t ns) {
    ++messages_;
    const double jitter = exponential(hash(from ^ to << 11, step, slot), kJitterNs);
    const std::uint64_t late = std::min(static_cast<std::uint64_t>(jitter), kMostJitterNs);
    wheel_.push({ns + kLatencyNs + late, to, static_cast<std::uint16_t>(step), slot});
  }

  void arrive(const Event& event) {
    Rank& rank = ranks_[event.rank];
    if (rank.trace != nullptr) record_arrival(rank, event);
    if (event.slot == kStranger) {
      ++rank.strangers;
      unexpected_.count(event.rank, rank.unexpected());
    } else if (rank.begun && rank.step == event.step) {
      posted_.count(event.rank, --rank.posted);
      if (--rank.missing > 0) return;
      if (ready(event.rank, event.ns) == 0) go_on(event.rank, event.ns);
    } else {
      rank.early.push_back({event.step, event.slot});
      unexpected_.count(event.rank, rank.unexpected());
    }
  }

  SimulatedSide side_of(const Counter& counter) const {
    SimulatedSide side;
    side.samples = counter.samples;
    side.ranks.resize(side.samples.size());
    for (const std::uint16_t longest : counter.longest) ++side.ranks[longest];
    return side;
  }

  // ---- Traces of some ranks ----

  void trace(std::uint32_t number) {
    if (number >= pattern_.ranks) {
      throw std::runtime_error("there is no rank " + std::to_string(number) +
                               " to trace: they are 0 to " + std::to_string(pattern_.ranks - 1));
    }
    Rank& rank = ranks_[number];
    if (rank.trace != nullptr) return;
    TraceHeader header;
    header.origin = TraceOrigin::simulated;
    header.rank = number;
    header.ranks = pattern_.ranks;
    header.world = 1;
    std::snprintf(header.library, sizeof header.library, "tagline simulate");
    const std::filesystem::path path =
        options_.folder / ("rank-" + std::to_string(number) + kTraceSuffix);
    writers_.push_back(std::make_unique<TraceWriter>());
    rank.trace = writers_.back().get();
    if (!rank.trace->open(path.c_str(), header, 0)) {
      throw std::runtime_error(path.string() + " cannot be written: " + std::strerror(errno));
    }
    rank.trace->record_at(0, TraceKind::context, 0u, 0u, 1u, pattern_.ranks, number, 0u);
  }

  static void record(Rank& rank, std::uint64_t ns, TraceKind kind, std::int32_t source,
                     std::int32_t tag) {
    constexpr std::uint64_t kContext = 0;
    constexpr std::uint64_t kBytes = 8;
    rank.trace->record_at(ns, kind, 0u, kContext, trace_source(source, TAGLINE_ANY_SOURCE),
                          trace_tag(tag, TAGLINE_ANY_TAG), kBytes);
  }

  void record_arrival(Rank& rank, const Event& event) {
    if (event.slot == kStranger) {
      const std::uint32_t distance = pattern_.stranger_distance(event.step);
      const std::uint32_t from = (event.rank + pattern_.ranks - distance) % pattern_.ranks;
      strangers_.emplace_back(&rank, from);
      record(rank, event.ns, TraceKind::arrive, static_cast<std::int32_t>(from),
             Pattern::kStrangerTag);
      return;
    }
    pattern_.receives(event.rank, event.step, receives_);
    const SimulatedReceive receive = receives_[event.slot];
    // Who fills a receive from anybody does not change the lists.
    const std::int32_t source = receive.source == TAGLINE_ANY_SOURCE
                                    ? static_cast<std::int32_t>((event.rank + 1) % pattern_.ranks)
                                    : receive.source;
    record(rank, event.ns, TraceKind::arrive, source, receive.tag);
  }

  void take_stranger(Rank& rank, std::uint64_t ns) {
    const auto oldest = std::find_if(strangers_.begin(), strangers_.end(),
                                     [&](const auto& each) { return each.first == &rank; });
    const auto from = static_cast<std::int32_t>(oldest->second);
    strangers_.erase(oldest);
    rank.trace->record_at(ns, TraceKind::probe, kTraceFound, 0u, std::uint64_t{0},
                          trace_tag(Pattern::kStrangerTag, TAGLINE_ANY_TAG), 1u);
    record(rank, ns, TraceKind::post, from, Pattern::kStrangerTag);
  }

  const Pattern& pattern_;
  const SimulateOptions& options_;
  EventWheel wheel_;
  std::vector<Rank> ranks_;
  Counter posted_;
  Counter unexpected_;
  std::uint64_t messages_ = 0;
  std::uint64_t steps_done_ = 0;
  std::uint32_t ended_ = 0;
  std::vector<SimulatedReceive> receives_;
  std::vector<bool> present_;
  std::vector<SimulatedSend> sends_;
  std::vector<std::unique_ptr<TraceWriter>> writers_;
  std::vector<std::pair<Rank*, std::uint32_t>> strangers_;  // of traced ranks, and their senders
};

}  // namespace

std::uint64_t SimulatedSide::total() const {
  return std::accumulate(samples.begin(), samples.end(), std::uint64_t{0});
}

std::uint32_t SimulatedSide::percentile(double share) const {
  const double wanted = share * static_cast<double>(total());
  double sum = 0;
  for (std::uint32_t length = 0; length < samples.size(); ++length) {
    sum += static_cast<double>(samples[length]);
    if (sum >= wanted) return length;
  }
  return longest();
}

Simulated simulate(const Pattern& pattern, const SimulateOptions& options) {
  return Simulation(pattern, options).run();
}

}  // namespace tagline::tools
