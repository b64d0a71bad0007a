// SPDX-License-Identifier: BSD-3-Clause
#include "tune.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "structures.hpp"
#include "uses.hpp"

namespace tagline::tools {

namespace {

constexpr double kTurn = 0.0004;          // seconds that one figure of one thread takes
constexpr double kThreadedTurn = 0.002;
constexpr std::size_t kBeforeAborting = 3;  // rounds
constexpr double kHopeless = 1.15;          // times the default's, in the best rounds
constexpr std::size_t kFewestRounds = 3;

// ---- Uses: the mean of a few points each, by ratio ----------------------------------------

struct SingleUse {
  Use use;
  std::vector<Work> points;
};

const std::vector<SingleUse>& single_uses() {
  static const std::vector<SingleUse> all = {
      {{"short", "0 to 8 receives or messages wait"},
       {{Work::posted, 0}, {Work::posted, 1}, {Work::posted, 2}, {Work::posted, 8},
        {Work::unexpected, 0}, {Work::unexpected, 1}, {Work::unexpected, 2},
        {Work::unexpected, 8}}},
      {{"posted", "behind 64 and 1024 waiting receives"},
       {{Work::posted, 64}, {Work::posted, 1024}}},
      {{"unexpected", "behind 64 and 1024 waiting messages"},
       {{Work::unexpected, 64}, {Work::unexpected, 1024}}},
      {{"drained", "64 and 1024 receives matched in random order"},
       {{Work::drained, 64}, {Work::drained, 1024}}},
      {{"very-long", "behind 16384 of either"}, {{Work::posted, 16384}, {Work::unexpected, 16384}}},
      {{"wildcards", "8, 64 and 1024 wait; one receive in four has any source"},
       {{Work::wildcards, 8}, {Work::wildcards, 64}, {Work::wildcards, 1024}}}};
  return all;
}

struct ThreadedUse {
  Use use;
  std::vector<ThreadedWork> points;
};

const std::vector<ThreadedUse>& threaded_uses() {
  static const std::vector<ThreadedUse> all = [] {
    const int units = std::min(processing_units(), 8);
    return std::vector<ThreadedUse>{
        {{"alone", "one thread calls, though several might"}, {{1, 0, 8, 0}}},
        {{"own-keys", "threads with sources and tags of their own, empty queues"},
         {{units, 0, 8, 0}}},
        {{"queued", "the same behind 32 and 1024 receives and messages"},
         {{units, 32, 8, 0}, {units, 1024, 8, 0}}},
        {{"one-key", "all threads the same source and tag"}, {{units, 0, 0, 0}}},
        {{"wildcards", "own keys, 32 wait, one receive in a hundred has any source"},
         {{units, 32, 8, 1}}}};
  }();
  return all;
}

// How much a use counts for a kind of matcher. Few ranks seldom make long lists; how long lists
// of many become is what `tagline simulate` shows.
struct Weight {
  const char* use;
  double few;
  double many;
};
constexpr Weight kSingle[] = {{"short", 4, 2},   {"posted", 1, 2},    {"unexpected", 1, 2},
                              {"drained", 1, 2}, {"very-long", 0, 1}, {"wildcards", 1, 2}};
constexpr Weight kThreads[] = {{"alone", 1, 1},
                               {"own-keys", 2, 1},
                               {"queued", 1, 2},
                               {"one-key", 1, 1},
                               {"wildcards", 1, 1}};

struct Kind {
  bool threads;
  bool exact;
  bool many;
  std::string name() const { return profile_kind(threads, exact, many); }
  bool counts(const std::string& use) const { return !exact || use != "wildcards"; }
  double weight(const std::string& use) const {
    const auto find = [&](const auto& weights) {
      for (const Weight& each : weights) {
        if (use == each.use) return many ? each.many : each.few;
      }
      return 0.0;
    };
    if (!counts(use)) return 0;
    return threads ? find(kThreads) : find(kSingle);
  }
};

std::vector<Kind> kinds(bool threads) {
  return {{threads, true, false}, {threads, true, true}, {threads, false, false},
          {threads, false, true}};
}

template <class Points, class Measure>
double geometric_mean(const Points& points, Measure measure) {
  double sum = 0;
  for (const auto& point : points) sum += std::log(measure(point));
  return std::exp(sum / static_cast<double>(points.size()));
}

double measure_use(const Candidate& candidate, const Group& group, const std::string& name) {
  const auto mean = [&](const auto& uses, double seconds) {
    for (const auto& each : uses) {
      if (name != each.use.name) continue;
      return geometric_mean(each.points, [&](const auto& point) {
        return measure(candidate.queue, candidate.isa, point, seconds);
      });
    }
    throw std::logic_error("no use " + name);
  };
  return group.threads ? mean(threaded_uses(), kThreadedTurn) : mean(single_uses(), kTurn);
}

// ---- The model: a search takes a time of its own and a time per entry, and so does a lock ----

double best_of(const Candidate& candidate, const auto& work, double seconds) {
  double best = 1e12;
  for (int i = 0; i < 3; ++i) {
    best = std::min(best, measure(candidate.queue, candidate.isa, work, seconds));
  }
  return best;
}

struct Line {
  double fixed;
  double per_entry;
  double at(double length) const { return fixed + per_entry * length; }
};

Line calibrate(const Candidate& candidate) {
  constexpr int kNear = 8;
  constexpr int kFar = 1024;
  const auto mean = [&](int length) {
    return std::sqrt(best_of(candidate, Work{Work::posted, length}, kTurn / 2) *
                     best_of(candidate, Work{Work::unexpected, length}, kTurn / 2));
  };
  const double near = mean(kNear);
  const double slope = std::max(0.0, (mean(kFar) - near) / (kFar - kNear));
  return {near - slope * kNear, slope};
}

// Over the lengths that the uses of the group have.
double predict(const Line& line, const Group& group) {
  const std::vector<double> lengths =
      group.threads ? std::vector<double>{0, 0, 32, 1024} : std::vector<double>{2, 64, 1024, 16384};
  return geometric_mean(lengths, [&](double length) { return line.at(length); });
}

// Structures with the parameters that are worth a try, on every instruction set.
std::vector<Candidate> structures() {
  constexpr const char* kParameters[] = {"array:4", "array:16", "array:64", "fuzzy:8", "fuzzy:32"};
  std::vector<Candidate> all;
  for (const std::string& name : structure_names()) {
    std::vector<std::string> queues = {name};
    for (const std::string queue : kParameters) {
      if (queue.rfind(name + ":", 0) == 0) queues.push_back(queue);
    }
    for (const std::string& queue : queues) {
      for (unsigned i = 0; tagline_isa_name(i) != nullptr; ++i) {
        all.push_back({queue, tagline_isa_name(i)});
      }
    }
  }
  return all;
}

std::vector<std::string> ways_to_serve_threads() {
  std::vector<std::string> all;
  for (unsigned i = 0; tagline_threading_name(i) != nullptr; ++i) {
    const std::string name = tagline_threading_name(i);
    if (name == "sharded") {
      all.insert(all.end(), {name, name + "@4", name + "@64"});
      continue;
    }
    for (unsigned lock = 0; tagline_lock_name(lock) != nullptr; ++lock) {
      all.push_back(name + "@" + tagline_lock_name(lock));
    }
  }
  return all;
}

void sort_by_model(std::vector<Candidate>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return a.model_ns < b.model_ns;
  });
}

bool can_be_made(const Candidate& candidate) {
  try {
    make_matcher(candidate.queue, candidate.isa.c_str());
    return true;
  } catch (const std::runtime_error&) {
    return false;  // tail queues of two bins are lists only
  }
}

// The first is the default.
std::vector<Candidate> all_candidates(const Group& group) {
  std::vector<Candidate> plain = structures();
  if (!group.threads) {
    for (Candidate& candidate : plain) candidate.model_ns = predict(calibrate(candidate), group);
    return plain;
  }
  // A lock's time is what it adds to a short queue of the default structure.
  std::vector<Candidate> all;
  const Candidate first = plain[0];
  const double bare = best_of(first, Work{Work::posted, 0}, kTurn / 2);
  const int units = std::min(processing_units(), 8);
  std::erase_if(plain, [&](const auto& each) { return each.isa != first.isa; });
  std::vector<Line> lines;
  for (const Candidate& each : plain) lines.push_back(calibrate(each));
  for (const std::string& way : ways_to_serve_threads()) {
    // Two bins are there for lists alone.
    const std::string structure = way.rfind("binned", 0) == 0 ? "linear" : first.queue;
    const double served = best_of({way + ":" + structure, first.isa}, ThreadedWork{units, 0, 8, 0},
                                  kThreadedTurn / 2);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      Candidate candidate{way + ":" + plain[i].queue, first.isa};
      if (!can_be_made(candidate)) continue;
      Line line = lines[i];
      line.fixed += std::max(0.0, served - bare);
      candidate.model_ns = predict(line, group);
      all.push_back(std::move(candidate));
    }
  }
  return all;
}

// Structures, or ways to serve threads, of which the model does not see apart what is alike.
std::string family(const Candidate& candidate, const Group& group) {
  return group.threads ? candidate.queue.substr(0, candidate.queue.find(':')) : candidate.queue;
}

// Keeps the default and the first of the others, of a family two at most as long as there are
// other families.
void pass_over(Tuned& tuned, std::size_t measured) {
  constexpr int kAlike = 2;
  std::vector<Candidate> kept = {tuned.candidates[0]};
  std::map<std::string, int> alike = {{family(kept[0], tuned.group), 1}};
  for (const bool any : {false, true}) {
    std::vector<Candidate> rest;
    for (std::size_t i = any ? 0 : 1; i < tuned.candidates.size(); ++i) {
      Candidate& candidate = tuned.candidates[i];
      const bool wanted = any || alike[family(candidate, tuned.group)]++ < kAlike;
      (wanted && kept.size() <= measured ? kept : rest).push_back(std::move(candidate));
    }
    tuned.candidates = std::move(rest);
  }
  tuned.passed_over = std::move(tuned.candidates);
  tuned.candidates = std::move(kept);
}

// ---- Scores --------------------------------------------------------------------------

double ratio_in(const Candidate& candidate, const Candidate& usual, const std::string& use,
                std::size_t round) {
  return candidate.ns.at(use)[round] / usual.ns.at(use)[round];
}

// Of each round.
std::vector<double> ratios(const Candidate& candidate, const Candidate& usual, const Group& group,
                           const Kind& kind) {
  std::vector<double> all;
  for (std::size_t round = 0; round < candidate.rounds(); ++round) {
    double sum = 0;
    double weights = 0;
    for (const Use& use : group.uses) {
      const double weight = kind.weight(use.name);
      if (weight == 0) continue;
      sum += weight * std::log(ratio_in(candidate, usual, use.name, round));
      weights += weight;
    }
    all.push_back(std::exp(sum / weights));
  }
  return all;
}

double worst_ratio(const Candidate& candidate, const Candidate& usual, const Group& group,
                   const Kind& kind) {
  double worst = 0;
  for (const Use& use : group.uses) {
    if (!kind.counts(use.name)) continue;
    std::vector<double> of_use;
    for (std::size_t round = 0; round < candidate.rounds(); ++round) {
      of_use.push_back(ratio_in(candidate, usual, use.name, round));
    }
    worst = std::max(worst, bench::spread_of(std::move(of_use)).median);
  }
  return worst;
}

// In no kind does it come near the default, not even in its best rounds.
bool is_hopeless(const Candidate& candidate, const Candidate& usual, const Group& group) {
  for (const Kind& kind : kinds(group.threads)) {
    if (bench::spread_of(ratios(candidate, usual, group, kind)).low < kHopeless) return false;
  }
  return true;
}

}  // namespace

std::vector<Group> groups() {
  std::vector<Group> all(2);
  for (const SingleUse& each : single_uses()) all[0].uses.push_back(each.use);
  all[0].threads = false;
  for (const ThreadedUse& each : threaded_uses()) all[1].uses.push_back(each.use);
  all[1].threads = true;
  return all;
}

Tuned tune(const Group& group, std::size_t measured, double seconds,
           const std::function<void(double)>& tell) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  const auto tell_time = [&] {
    const std::chrono::duration<double> left = end - Clock::now();
    tell(std::clamp(1 - left.count() / seconds, 0.0, 1.0));
  };
  tell(0);
  Tuned tuned{group, all_candidates(group), {}};
  sort_by_model(tuned.candidates);
  const std::string isa = tagline_isa_name(0);
  const std::string queue = (group.threads ? std::string(tagline_threading_name(0)) + ":" : "") +
                            tagline_queue_name(0);
  const auto usual = std::find_if(
      tuned.candidates.begin(), tuned.candidates.end(),
      [&](const Candidate& each) { return each.queue == queue && each.isa == isa; });
  std::rotate(tuned.candidates.begin(), usual, usual + 1);
  pass_over(tuned, measured);

  for (std::size_t round = 0; round < kFewestRounds || Clock::now() < end; ++round) {
    for (const Use& use : group.uses) {
      // The one who comes first is another one in every round.
      const std::size_t count = tuned.candidates.size();
      for (std::size_t i = 0; i < count; ++i) {
        Candidate& candidate = tuned.candidates[(i + round) % count];
        if (candidate.aborted) continue;
        candidate.ns[use.name].push_back(measure_use(candidate, group, use.name));
        tell_time();
      }
    }
    for (Candidate& candidate : tuned.candidates) {
      if (candidate.aborted || candidate.rounds() < kBeforeAborting) continue;
      candidate.aborted = is_hopeless(candidate, tuned.candidates[0], group);
    }
  }
  return tuned;
}

void add_to(ProfileRun& run, const Tuned& tuned) {
  for (const Candidate& candidate : tuned.candidates) {
    for (const Use& use : tuned.group.uses) {
      const bench::Spread ns = bench::spread_of(candidate.ns.at(use.name));
      run.times.push_back({(tuned.group.threads ? "threads/" : "single/") + std::string(use.name),
                           candidate.queue, candidate.isa, ns.median, ns.low, ns.high,
                           static_cast<unsigned>(ns.samples)});
    }
  }
  for (const Kind& kind : kinds(tuned.group.threads)) {
    for (const Candidate& candidate : tuned.candidates) {
      const bench::Spread ratio =
          bench::spread_of(ratios(candidate, tuned.candidates[0], tuned.group, kind));
      run.scores.push_back({kind.name(), candidate.queue, candidate.isa, ratio.median, ratio.low,
                            ratio.high,
                            worst_ratio(candidate, tuned.candidates[0], tuned.group, kind),
                            static_cast<unsigned>(ratio.samples)});
    }
  }
}

std::vector<Advice> advise(const MachineProfile& machine, const std::string& version) {
  std::vector<Advice> all;
  for (const bool threads : {false, true}) {
    for (const Kind& kind : kinds(threads)) {
      // Over all runs: the rounds' mean by ratio, and the worst that any run has seen.
      std::vector<ProfileScore> sums;
      for (const ProfileRun& run : machine.runs) {
        if (run.version != version) continue;
        for (const ProfileScore& score : run.scores) {
          if (score.kind != kind.name()) continue;
          const auto same = std::find_if(sums.begin(), sums.end(), [&](const auto& each) {
            return each.queue == score.queue && each.isa == score.isa;
          });
          if (same == sums.end()) {
            sums.push_back(score);
            continue;
          }
          const double rounds = same->rounds + score.rounds;
          same->median = std::exp((std::log(same->median) * same->rounds +
                                   std::log(score.median) * score.rounds) / rounds);
          same->low = std::min(same->low, score.low);
          same->high = std::max(same->high, score.high);
          same->worst = std::max(same->worst, score.worst);
          same->rounds += score.rounds;
        }
      }
      if (sums.empty()) continue;
      const ProfileScore usual = sums[0];  // each run has it first
      std::stable_sort(sums.begin(), sums.end(),
                       [](const auto& a, const auto& b) { return a.median < b.median; });
      const auto chosen = std::find_if(sums.begin(), sums.end(), [](const ProfileScore& score) {
        return score.median <= kWorthwhile && score.high < 1 && score.worst < kTolerable;
      });
      Advice advice{chosen == sums.end() ? usual : *chosen, {}, chosen == sums.end()};
      for (const ProfileScore& score : sums) {
        if (score.queue == advice.score.queue && score.isa == advice.score.isa) continue;
        advice.next = score;
        break;
      }
      all.push_back(std::move(advice));
    }
  }
  return all;
}

}  // namespace tagline::tools
