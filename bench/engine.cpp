// SPDX-License-Identifier: BSD-3-Clause
//
// The matcher in one process, no MPI: nanoseconds per append + match for every
// queue structure over depth, order, keys, holes, wildcards and cache state (see
// engine_point.hpp), by Google Benchmark.
//
// At each point the structures take turns, round after round, so that whatever
// slows the machine for a while slows all of them; `linear` on an empty queue has
// a turn in every round, as the unit of ratios, and with cold caches each structure on an
// empty queue. A structure that would take too long at a point, by its time at the depth
// before, is left out there.
//
// Prints one JSON object per structure and point.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "engine_workload.hpp"
#include "options.hpp"

namespace {

using bench::EnginePoint;
using bench::EngineStructure;
using bench::EngineTask;
using bench::Script;
using bench::Scripts;
using bench::Workload;

struct Effort {
  int rounds;
  int cold_rounds;
  double batch_ms;     // of one structure in one round
  double pass_s;       // a structure with a longer pass is left out of a point
  double slow_s;       // for all rounds of a structure whose pass is longer than a batch
  int growth_repeats;  // for the worst call
  double budget_s;     // behind this schedule, rounds are dropped
  bool again = false;  // of points that were measured before, and so are not too long
};
constexpr Effort kQuick{5, 35, 0.4, 0.03, 0.02, 2, 22};
constexpr Effort kStandard{9, 75, 1, 0.1, 0.05, 3, 200};
constexpr Effort kFull{15, 75, 3, 20, 2, 3, 3600};
// For what is measured again: of so many rounds one finds the machine quiet, most likely.
Effort thorough(Effort effort) {
  constexpr int kTimes = 4;
  effort.rounds *= kTimes;
  effort.cold_rounds *= kTimes;
  effort.slow_s *= kTimes;
  effort.budget_s *= kTimes;
  effort.again = true;
  return effort;
}
constexpr int kLeastRounds = 3;
constexpr int kLeastColdRounds = 5;
constexpr std::size_t kLeastColdWarmUp = 4096;  // searches
constexpr int kRarePairs = 6144;                // a matcher looks how often calls come every 2048
constexpr double kRareNs = 2000;                // between two pairs; it takes 500 for rare
constexpr int kWarmUpPasses = 3;
constexpr double kMostIndexMs = 4000;    // an index or lists of 1 Mi entries take 0.5 to 1.2 s
constexpr double kIndexedMs = 0.2;       // a pass that does not drain takes less, once there is one
constexpr double kLongDrainMs = 2000;    // a second one just to know its time is too much
constexpr double kLongestWarmUpMs = 20;  // of a pass: no cache keeps what a longer one touches

// Points that are goals of their own get more time.
constexpr std::size_t kDrainGoal = 65536;  // in random order, the slow structures included
constexpr double kDrainGoalPassS = 20;
constexpr double kDeepestPassS = 0.6;  // at 1 Mi entries

// Reads memory as fast as the processor can: with its widest registers, and several
// of them, so that no addition waits for another.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
[[gnu::target_clones("avx512f", "avx2", "default")]]
#endif
std::uint64_t
stream(const std::uint64_t* words, std::size_t count) {
  constexpr std::size_t kAtOnce = 64;
  std::uint64_t sum = 0;
  if (count < 2 * kAtOnce) {
    for (std::size_t i = 0; i < count; ++i) sum ^= words[i];
    return sum;
  }
  std::uint64_t sums[kAtOnce] = {};
  std::size_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) {
    for (std::size_t k = 0; k < kAtOnce; ++k) sums[k] ^= words[i + k];
  }
  for (; i < count; ++i) sums[0] ^= words[i];
  for (const std::uint64_t one : sums) sum ^= one;
  return sum;
}

// What the memory traffic alone would cost: behind the whole queue a streaming read
// of one 8-byte key per entry; for a drain, writing and reading 32 bytes per entry.
class Headroom {
 public:
  explicit Headroom(const EnginePoint& point)
      : drains_(!bench::entries_stay(point.order)), words_(point.depth * (drains_ ? 4 : 1)) {
    pairs_ = drains_ ? point.depth : 10;
  }
  std::size_t pairs() const { return pairs_; }
  void pass() {
    if (drains_) {
      for (std::uint64_t& word : words_) word = pairs_;
      benchmark::ClobberMemory();
      read();
    } else {
      for (std::size_t i = 0; i < pairs_; ++i) read();
    }
  }

 private:
  void read() {
    benchmark::DoNotOptimize(stream(words_.data(), words_.size()));
    benchmark::ClobberMemory();
  }
  const bool drains_;
  std::vector<std::uint64_t> words_;
  std::size_t pairs_;
};

double least(const std::vector<double>& samples) {
  return *std::min_element(samples.begin(), samples.end());
}

// Of this thread: other programs on the machine do not count.
double cpu_ms() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

// What takes turns at a point.
struct Subject {
  EngineStructure structure;
  EnginePoint point;
  std::shared_ptr<const Script> script;
  std::unique_ptr<Workload> workload;  // none: headroom
  std::unique_ptr<Headroom> headroom;
  std::string name;
  std::size_t iterations = 1;
  int rounds = 0;
  bool warm_up = true;
  bool is_unit = false;
  const Subject* unit = nullptr;  // what its time is related to
  std::vector<double> samples;

  std::size_t pairs() const {
    return point.cold ? 1 : workload != nullptr ? workload->pairs() : headroom->pairs();
  }
  void pass() { workload != nullptr ? workload->pass() : headroom->pass(); }
};

class Collect : public benchmark::BenchmarkReporter {
 public:
  explicit Collect(std::map<std::string, Subject*> subjects) : subjects_(std::move(subjects)) {}
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      Subject& subject = *subjects_.at(run.run_name.function_name);
      // Processor time, which does not count other programs. One cold match is
      // too short for that clock.
      const double seconds =
          subject.point.cold ? run.real_accumulated_time : run.cpu_accumulated_time;
      subject.samples.push_back(seconds * 1e9 / static_cast<double>(run.iterations) /
                                static_cast<double>(subject.pairs()));
    }
  }

 private:
  std::map<std::string, Subject*> subjects_;
};

void run_passes(benchmark::State& state, Subject& subject) {
  // Its entries come back into the caches, not all at once: where another structure has run through
  // more than these hold, 65536 entries take 60, 13 to 20 and then 12 nanoseconds each.
  for (int i = 0; subject.warm_up && i < kWarmUpPasses; ++i) subject.pass();
  for (auto _ : state) subject.pass();
}

void run_cold(benchmark::State& state, Subject& subject) {
  for (auto _ : state) {
    state.SetIterationTime(subject.workload->cold_pair(/*swept=*/true) * 1e-9);
  }
}

// Remembers the shortest time of each call over several runs from an empty
// matcher on. What one call always costs stays; what the machine was busy with
// once does not. The largest that stays is the worst call.
class WorstCall {
 public:
  void run(Workload& workload) {
    workload_ = &workload;
    call_ = 0;
    bytes_ = 0;
    workload.fill(*this);
    workload.pass(*this);
  }
  template <class Call>
  void append(Call call) {
    time(call);
  }
  template <class Call>
  void match(Call call) {
    if (bytes_ == 0) bytes_ = workload_->pool_bytes();
    time(call);
  }
  double worst_ns() const {
    return shortest_.empty() ? 0 : *std::max_element(shortest_.begin(), shortest_.end());
  }
  // Node memory when the queue was longest.
  std::uint64_t bytes() const { return bytes_; }

 private:
  template <class Call>
  void time(Call call) {
    const double start = bench::now_ns();
    call();
    const auto ns = static_cast<float>(bench::now_ns() - start);
    if (call_ == shortest_.size()) shortest_.push_back(ns);
    shortest_[call_] = std::min(shortest_[call_], ns);
    ++call_;
  }
  Workload* workload_ = nullptr;
  std::vector<float> shortest_;
  std::size_t call_ = 0;
  std::uint64_t bytes_ = 0;
};

class Bench {
 public:
  Bench(const Effort& effort, const std::string& filter, const std::vector<EngineTask>& tasks)
      : effort_(effort), filter_(filter), known_(bench::known_structures()) {
    tasks_ = static_cast<std::size_t>(
        std::count_if(tasks.begin(), tasks.end(),
                      [this](const EngineTask& task) { return !structures(task).empty(); }));
  }

  void run(const EngineTask& task);
  void list(const EngineTask& task) const {
    for (const EngineStructure& structure : structures(task)) {
      std::printf("%s\n", benchmark_name(structure, task.point).c_str());
    }
  }
  // Nothing but that many passes of each structure, for a simulator to count (instructions.sh).
  void pass(const EngineTask& task, std::size_t passes) const {
    Scripts scripts(task.point);
    for (const EngineStructure& structure : structures(task)) {
      Workload workload(structure, scripts.of(structure));
      workload.fill();
      if (task.point.cold) {  // these match in an order of their own
        for (std::size_t i = 0; i < passes * workload.pairs(); ++i)
          workload.cold_pair(/*swept=*/false);
      } else {
        for (std::size_t i = 0; i < passes; ++i) workload.pass();
      }
      std::printf("%s %zu\n", benchmark_name(structure, task.point).c_str(), workload.pairs());
    }
  }

 private:
  std::vector<EngineStructure> structures(const EngineTask& task) const;
  double expected_ns(const EngineStructure& structure, const EnginePoint& point) const;
  double pass_limit_s(const EngineStructure& structure, const EnginePoint& point) const {
    if (bench::entries_stay(point.order)) return effort_.pass_s;
    const bool plain = point.wildcard_percent == 0 && point.keys == bench::Keys::one_source;
    if (point.order == bench::Order::random && point.depth == kDrainGoal && plain &&
        point.side == TAGLINE_POSTED && structure.structure == "linear") {
      return std::max(effort_.pass_s, kDrainGoalPassS);
    }
    return point.depth > kDrainGoal ? std::max(effort_.pass_s, kDeepestPassS) : effort_.pass_s;
  }
  void prepare(Subject& subject, double expected_pass_s);
  void print(const Subject& subject) const;
  // By the share of tasks done and of time spent.
  bool is_late() const {
    const double share = static_cast<double>(done_) / static_cast<double>(tasks_);
    return bench::now_ns() - start_ns_ > share * effort_.budget_s * 1e9;
  }

  // A line of one structure over the depths.
  static std::string line_of(const EngineStructure& structure, EnginePoint point) {
    point.depth = 0;
    return benchmark_name(structure, point);
  }
  struct Last {
    std::size_t depth;
    double ns;      // per pair; expected if it was left out
    double growth;  // over the depth before
  };
  void remember(const EngineStructure& structure, const EnginePoint& point, double ns) {
    Last& last = last_.try_emplace(line_of(structure, point), Last{0, ns, 1}).first->second;
    last = {point.depth, ns, ns / last.ns};
  }

  const Effort effort_;
  const std::regex filter_;
  const std::vector<EngineStructure> known_;
  std::size_t tasks_;  // that the filter leaves something of
  std::size_t done_ = 0;
  const double start_ns_ = bench::now_ns();
  std::map<std::string, Last> last_;
};

std::vector<EngineStructure> Bench::structures(const EngineTask& task) const {
  std::vector<EngineStructure> chosen;
  const auto consider = [&](const EngineStructure& structure) {
    if (can_do(structure, task.point) &&
        std::regex_search(benchmark_name(structure, task.point), filter_)) {
      chosen.push_back(structure);
    }
  };
  for (const EngineStructure& structure : known_) {
    consider(structure);
    if (!task.all_isas || structure.is_comparator) continue;
    for (unsigned i = 1; tagline_isa_name(i) != nullptr; ++i) {
      EngineStructure other = structure;
      other.isa = tagline_isa_name(i);
      consider(other);
    }
  }
  return chosen;
}

// A search may get longer with the queue: its time is taken to grow with the depth
// unless it has hardly grown so far. Not of what is measured again: the depth before it may be far
// less, as most between are not.
double Bench::expected_ns(const EngineStructure& structure, const EnginePoint& point) const {
  const auto found = last_.find(line_of(structure, point));
  if (found == last_.end() || point.cold || effort_.again) return 0;
  const Last& last = found->second;
  const bool flat = last.depth >= 1024 && (last.ns < 130 || (last.ns < 400 && last.growth < 2));
  if (flat) return 1.5 * last.ns;
  return last.ns * static_cast<double>(point.depth) /
         static_cast<double>(std::max<std::size_t>(last.depth, 1));
}

void Bench::prepare(Subject& subject, double expected_pass_s) {
  if (subject.point.cold) {
    subject.workload->fill();
    // Searches that pay for a part of an index are not what is asked for here, nor what is found
    // out once most entries have been matched.
    const std::size_t warm_up = std::max(kLeastColdWarmUp, 2 * subject.point.depth);
    const double start = cpu_ms();
    for (std::size_t i = 0; i < warm_up && cpu_ms() - start < effort_.slow_s * 1e3; ++i) {
      subject.workload->cold_pair(/*swept=*/false);
    }
    // A matcher whose caches are swept each time is not called a hundred million times a second,
    // and may have seen that. Without the sweeps here, which would take minutes.
    for (int i = 0; i < kRarePairs; ++i) {
      const double next = bench::now_ns() + kRareNs;
      subject.workload->cold_pair(/*swept=*/false);
      while (bench::now_ns() < next) {
      }
    }
    subject.rounds = is_late() ? kLeastColdRounds : effort_.cold_rounds;
    return;
  }
  if (subject.workload != nullptr) subject.workload->fill();
  if (expected_pass_s > 0.5) {
    // A warm-up would take as long, and change nothing.
    subject.rounds = 1;
    subject.warm_up = false;
    return;
  }
  const auto timed_pass_ms = [&] {
    const double start = cpu_ms();
    subject.pass();
    return std::max(1e-6, cpu_ms() - start);
  };
  double pass_ms = timed_pass_ms();
  // The first passes warm up, unless one is more than enough: each may have paid for a part of an
  // index, as long as the next one takes much less time. The first searches of a long queue, and
  // the first with wildcards, pay for an index or lists of all entries for some hundred searches:
  // their worst call is reported.
  const bool makes_index =
      subject.structure.keeps_index() && bench::entries_stay(subject.point.order);
  const double most_ms = makes_index ? kMostIndexMs : effort_.slow_s * 1e3;
  for (double spent = pass_ms, last = 2 * pass_ms + 1; spent < most_ms;) {
    if (2 * pass_ms > last && !(makes_index && pass_ms > kIndexedMs)) break;
    last = pass_ms;
    pass_ms = timed_pass_ms();
    spent += pass_ms;
  }
  // The first drain of a long queue makes the index, or lets a table grow, and may take ten times
  // as long as the next, by which it is known how many there is time for.
  if (!bench::entries_stay(subject.point.order) && pass_ms > most_ms && pass_ms < kLongDrainMs) {
    pass_ms = timed_pass_ms();
  }
  subject.iterations = static_cast<std::size_t>(std::clamp(effort_.batch_ms / pass_ms, 1.0, 1e6));
  const int all_rounds = is_late() ? kLeastRounds : effort_.rounds;
  // What missed a goal is not to be judged by single passes.
  subject.rounds = std::clamp(static_cast<int>(effort_.slow_s * 1e3 / pass_ms),
                              effort_.again ? kLeastRounds : 1, all_rounds);
  // Not by the length of a batch or by the number of rounds: of two structures whose passes take
  // about as long as these, the faster would find its entries in the caches, the other what was
  // measured before it, and so stay the slower one.
  subject.warm_up = pass_ms < kLongestWarmUpMs;
}

void Bench::run(const EngineTask& task) {
  const EnginePoint& point = task.point;
  std::vector<std::unique_ptr<Subject>> subjects;
  Scripts scripts(point);
  const auto add = [&](const EngineStructure& structure, const EnginePoint& at) -> Subject& {
    auto subject = std::make_unique<Subject>();
    subject->structure = structure;
    subject->point = at;
    subject->name = benchmark_name(structure, at);
    subjects.push_back(std::move(subject));
    return *subjects.back();
  };

  const auto add_unit = [&](const EngineStructure& structure,
                            const EngineStructure& named) -> const Subject& {
    EnginePoint empty;
    empty.side = point.side;
    empty.cold = point.cold;
    Subject& unit = add(named, empty);
    unit.script = Scripts(empty).of(structure);
    unit.workload = std::make_unique<Workload>(structure, unit.script);
    unit.is_unit = true;
    prepare(unit, 0);
    return unit;
  };

  const std::vector<EngineStructure> wanted = structures(task);
  if (wanted.empty()) return;
  ++done_;
  for (const EngineStructure& structure : wanted) {
    const double expected = expected_ns(structure, point);
    const bool drains = !bench::entries_stay(point.order);  // of the short ones a pass makes many
    const double pairs = static_cast<double>(drains ? point.depth : scripts.of(structure)->pairs());
    if (expected * pairs > pass_limit_s(structure, point) * 1e9) {
      std::printf("{\"left_out\":\"%s\"}\n", benchmark_name(structure, point).c_str());
      remember(structure, point, expected);
      continue;
    }
    Subject& subject = add(structure, point);
    subject.script = scripts.of(structure);
    subject.workload = std::make_unique<Workload>(structure, subject.script);
    prepare(subject, expected * pairs * 1e-9);
  }
  if (subjects.empty()) return;
  // Behind all of them: none comes right after another one that has run through the same code.
  if (point.cold && point.depth > 0) {
    const std::size_t measured = subjects.size();
    for (std::size_t i = 0; i < measured; ++i) {
      subjects[i]->unit = &add_unit(subjects[i]->structure, subjects[i]->structure);
    }
  }
  if (!point.cold) {
    const Subject& linear = add_unit({"linear", "", ""}, {"linear", "unit", tagline_isa_name(0)});
    const bool matches = point.operation == bench::Operation::post_and_match;
    if (matches && point.depth > 0 && point.holes == bench::Holes::dense &&
        point.keys == bench::Keys::one_source && point.wildcard_percent == 0) {
      Subject& headroom = add({"headroom", "", "", true}, point);
      headroom.headroom = std::make_unique<Headroom>(point);
      prepare(headroom, 0);
    }
    for (const auto& subject : subjects) {
      if (!subject->is_unit) subject->unit = &linear;
    }
  }

  std::map<std::string, Subject*> by_name;
  int rounds = 0;
  for (const auto& subject : subjects) {
    by_name[subject->name] = subject.get();
    if (!subject->is_unit) rounds = std::max(rounds, subject->rounds);
  }
  Collect collect(by_name);
  for (int round = 0; round < rounds; ++round) {
    for (const auto& subject : subjects) {
      if (round >= subject->rounds) continue;
      Subject* const it = subject.get();
      benchmark::internal::Benchmark* const registered =
          benchmark::RegisterBenchmark(it->name.c_str(), [it](benchmark::State& state) {
            it->point.cold ? run_cold(state, *it) : run_passes(state, *it);
          });
      registered->Iterations(static_cast<benchmark::IterationCount>(it->iterations));
      registered->Repetitions(1);
      if (it->point.cold) registered->UseManualTime();
    }
    benchmark::RunSpecifiedBenchmarks(&collect, "all");
    benchmark::ClearRegisteredBenchmarks();
  }
  for (const auto& subject : subjects) {
    if (subject->is_unit) continue;
    print(*subject);
    remember(subject->structure, point, least(subject->samples));
    subject->workload.reset();  // 1 Mi entries of each structure are a lot of memory
  }
  std::fflush(stdout);
}

void Bench::print(const Subject& subject) const {
  const auto list = [](const std::vector<double>& values, std::size_t count) {
    std::string text = "[";
    for (std::size_t i = 0; i < std::min(count, values.size()); ++i) {
      char number[32];
      std::snprintf(number, sizeof number, "%s%.5g", i == 0 ? "" : ",", values[i]);
      text += number;
    }
    return text + "]";
  };
  std::string line = "{" + json_fields(subject.structure, subject.point) + ",\"benchmark\":\"" +
                     subject.name +
                     "\",\"samples_ns\":" + list(subject.samples, subject.samples.size());
  if (subject.unit != nullptr) {
    line += ",\"unit_ns\":" + list(subject.unit->samples, subject.samples.size());
  }
  const EnginePoint& point = subject.point;
  const auto field = [&](const char* name, double value) {
    char text[64];
    std::snprintf(text, sizeof text, ",\"%s\":%.5g", name, value);
    line += text;
  };
  if (subject.workload != nullptr && point.operation == bench::Operation::post_and_match) {
    const double pass_s = least(subject.samples) * static_cast<double>(subject.pairs()) * 1e-9;
    double bytes = static_cast<double>(subject.workload->pool_bytes());
    // Of these the worst call is a goal.
    const bool is_index =
        subject.structure.structure == "adaptive" || subject.structure.structure == "indexed";
    if (point.cold) {
      field("ns_max", *std::max_element(subject.samples.begin(), subject.samples.end()));
    } else if (is_index ? pass_s <= kDeepestPassS
                        : point.depth <= kDrainGoal && pass_s <= effort_.pass_s) {
      WorstCall worst;
      for (int i = 0; i < effort_.growth_repeats; ++i) {
        Workload fresh(subject.structure, subject.script);
        worst.run(fresh);
      }
      field("ns_max", worst.worst_ns());
      bytes = static_cast<double>(worst.bytes());
    } else if (!bench::entries_stay(point.order)) {
      bytes = 0;  // the queue is empty between drains
    }
    if (point.depth > 0 && bytes > 0) {
      field("bytes_per_entry", bytes / static_cast<double>(point.depth));
    }
  }
  std::printf("%s}\n", line.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::string subset = "standard";
  std::string filter;
  bool is_thorough = false;
  bool only_list = false;
  std::size_t passes = 0;
  bench::Options options(
      "engine", "Time of append + match in every queue structure of tagline, and in others");
  options.choice("--subset", subset, {"quick", "standard", "full"}, "which points to measure");
  options.text("--filter", filter, "regular expression on the names of benchmarks");
  options.yes("--thorough", is_thorough, "four times as many rounds; none is left out as too long");
  options.yes("--list", only_list, "print the names of the benchmarks and do nothing");
  options.number("--passes", passes, 0, 1000000,
                 "only that many passes of each, not timed; prints name and matches of a pass");
  if (const std::optional<int> ended = options.parse(argc, argv)) return *ended;
  // They would override the structure and the instruction set of every matcher made here.
  unsetenv("TAGLINE_QUEUE");
  unsetenv("TAGLINE_ISA");

  const std::vector<EngineTask> tasks = bench::tasks_of(subset);
  const Effort effort = subset == "quick" ? kQuick : subset == "full" ? kFull : kStandard;
  Bench bench(is_thorough ? thorough(effort) : effort, filter, tasks);
  std::size_t done = 0;
  for (const EngineTask& task : tasks) {
    if (only_list) {
      bench.list(task);
      continue;
    }
    if (passes > 0) {
      bench.pass(task, passes);
      continue;
    }
    std::printf("{\"progress\":\"%zu of %zu\"}\n", ++done, tasks.size());
    bench.run(task);
  }
  return 0;
}
