// SPDX-License-Identifier: BSD-3-Clause
//
// What a heater does for a match after a compute phase, and what it costs. In one
// process, with the heater paused and running in turns, so that whatever slows the
// machine for a while slows both.
//
//   cold       this thread fills its caches with other data, then matches the entry
//              behind `depth` others; between rounds the heater's own core does the
//              same, or what it kept from one round would serve the next
//   hot        append + match again and again: what a heater costs that is not needed
//   neighbour  a thread that computes on the heater's own processing unit
//
// Whether two units that the system reports to share a cache do so can be seen from
// the time in which a line goes from one to the other: on virtual machines they may
// not, and change within a second. It is measured beside every sample. Prints one JSON object a
// line.
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "match/tagline.h"
#include "options.hpp"

namespace {

constexpr int kMeasuredTag = 1;
constexpr int kAheadTag = 1000;  // + index of the entry
constexpr std::size_t kMiB = std::size_t{1} << 20;

[[noreturn]] void fail(const char* message) {
  std::fprintf(stderr, "hotcache: %s\n", message);
  std::exit(1);
}

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

void bind_this_thread(int unit) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(unit), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail("cannot bind a thread to its unit");
}

// Of this machine by sysfs, or what is usual; on a virtual machine the last level
// may be the whole host's.
std::size_t cache_bytes(int level, std::size_t usual) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder =
        "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    int its_level = 0;
    std::size_t kib = 0;
    if (std::ifstream(folder + "level") >> its_level && its_level == level &&
        std::ifstream(folder + "size") >> kib) {
      return kib << 10;
    }
  }
  return usual;
}

// A compute phase, as the caches see it.
class Work {
 public:
  explicit Work(std::size_t bytes) : data_(bytes) {}
  void sweep() noexcept {
    volatile char* const bytes = data_.data();
    for (std::size_t i = 0; i < data_.size(); i += 64) bytes[i] = static_cast<char>(bytes[i] + 1);
  }

 private:
  std::vector<char> data_;
};

// A thread on the heater's unit that does what it is told, else waits without a sleep:
// spinning would keep the heater from its unit.
class Neighbour {
 public:
  explicit Neighbour(int unit)
      : thread_([this, unit] {
          bind_this_thread(unit);
          for (int done = 0; !stop_; done_ = done) {
            asked_.wait(done);
            if (stop_) return;
            task_();
            done = asked_;
          }
        }) {}
  ~Neighbour() {
    stop_ = true;
    ++asked_;
    asked_.notify_one();
    thread_.join();
  }
  void start(std::function<void()> task) {
    task_ = std::move(task);
    ++asked_;
    asked_.notify_one();
  }
  bool is_done() const { return done_ == asked_; }
  void finish() const {
    while (!is_done()) std::this_thread::yield();
  }
  void run(std::function<void()> task) {
    start(std::move(task));
    finish();
  }

 private:
  std::function<void()> task_;
  std::atomic<int> asked_{0}, done_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// ns for a line to go from one core to the other.
double core_to_core_ns(Neighbour& neighbour) {
  constexpr int kTurns = 400;
  alignas(64) static std::atomic<int> ball;
  ball = 0;
  neighbour.start([] {
    for (int i = 0; i < kTurns; ++i) {
      while (ball.load(std::memory_order_acquire) != 2 * i + 1) {
      }
      ball.store(2 * i + 2, std::memory_order_release);
    }
  });
  double start = 0;
  for (int i = 0; i < kTurns; ++i) {
    if (i == kTurns / 2) start = now_ns();  // both are there by now
    ball.store(2 * i + 1, std::memory_order_release);
    while (ball.load(std::memory_order_acquire) != 2 * i + 2) {
    }
  }
  const double ns = (now_ns() - start) / kTurns;  // half of them, back and forth
  neighbour.finish();
  return ns;
}

struct Machine {
  tagline_heater* heater;
  std::uint64_t sleep_ns;  // of the heater
  Neighbour& neighbour;
  Work neighbours_work{4 * cache_bytes(2, kMiB)};

  void heat(bool on) const { on ? tagline_heater_resume(heater) : tagline_heater_pause(heater); }
};

tagline_heater_statistics statistics_of(tagline_heater* heater) {
  tagline_heater_statistics statistics;
  tagline_heater_get_statistics(heater, &statistics);
  return statistics;
}

struct Eviction {
  const char* name;
  Work work;
};

// A queue structure with entries in the queue that is searched.
class Subject {
 public:
  Subject(tagline_heater* heater, const char* structure, bool posted, int depth, bool scattered)
      : posted_(posted), requests_(static_cast<std::size_t>(depth) + 1) {
    tagline_options options = TAGLINE_OPTIONS_DEFAULT;
    options.queue = structure;
    if (tagline_create(&options, &matcher_) != TAGLINE_OK) fail(tagline_error_message());
    // Before there are entries: attaching moves them, in order.
    if (tagline_heater_attach(heater, matcher_) != TAGLINE_OK) fail(tagline_error_message());
    std::vector<std::size_t> order(requests_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (const std::size_t i : order) append(i);
    if (!scattered) return;
    // Entries that left in random order: the next ones take their nodes.
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (const std::size_t i : order) match(i);
    for (std::size_t i = 0; i < requests_.size(); ++i) append(i);
  }
  ~Subject() { tagline_destroy(matcher_); }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  // The entry behind all others, and back again.
  double match_ns() {
    now_ns();  // brings the clock into the cache
    const double start = now_ns();
    match(requests_.size() - 1);
    const double ns = now_ns() - start;
    append(requests_.size() - 1);
    return ns;
  }
  double pair_ns(int pairs) {
    const double start = now_ns();
    for (int i = 0; i < pairs; ++i) {
      match(requests_.size() - 1);
      append(requests_.size() - 1);
    }
    return (now_ns() - start) / pairs;
  }

  tagline_matcher* matcher() const { return matcher_; }

 private:
  struct alignas(64) Request {
    std::byte bytes[64];
  };

  tagline_envelope envelope(std::size_t i) const {
    return {1, 0, i + 1 == requests_.size() ? kMeasuredTag : kAheadTag + static_cast<int>(i)};
  }
  void append(std::size_t i) {
    const tagline_status status =
        posted_ ? tagline_append_receive(matcher_, envelope(i), &requests_[i], nullptr)
                : tagline_append_message(matcher_, envelope(i), &requests_[i]);
    if (status != TAGLINE_QUEUED) fail("an entry was not queued");
  }
  void match(std::size_t i) {
    void* partner = nullptr;
    const tagline_status status =
        posted_ ? tagline_arrive(matcher_, envelope(i), nullptr, &partner)
                : tagline_post_receive(matcher_, envelope(i), nullptr, &partner, nullptr);
    if (status != TAGLINE_MATCHED || partner != &requests_[i]) fail("a wrong match");
  }

  tagline_matcher* matcher_ = nullptr;
  const bool posted_;
  std::vector<Request> requests_;
};

struct Samples {
  // line_ns: from core to core just then.
  void add(bool heated, double ns, Neighbour& neighbour) {
    (heated ? with_ns : without_ns).push_back(ns);
    (heated ? with_line_ns : without_line_ns).push_back(core_to_core_ns(neighbour));
  }
  // Two rounds in a row have the same place in all four.
  std::vector<double> without_ns, with_ns, without_line_ns, with_line_ns;
};

void print(const std::string& fields, const Samples& samples) {
  const auto list = [](const std::vector<double>& values) {
    std::string text;
    for (const double value : values) {
      char number[32];
      std::snprintf(number, sizeof number, "%s%.5g", text.empty() ? "" : ",", value);
      text += number;
    }
    return text;
  };
  std::printf(
      "{%s,\"without_ns\":[%s],\"with_ns\":[%s],\"without_line_ns\":[%s],\"with_line_ns\":[%s]}\n",
      fields.c_str(), list(samples.without_ns).c_str(), list(samples.with_ns).c_str(),
      list(samples.without_line_ns).c_str(), list(samples.with_line_ns).c_str());
  std::fflush(stdout);
}

struct Place {
  const char* structure;
  bool posted;
  int depth;
  bool scattered;
};

void measure_matches(const Machine& machine, const Place& place, std::vector<Eviction>& evictions,
                     int rounds) {
  constexpr double kComputePhaseNs = 3e6;  // the heater's default sleep fits in
  Subject subject(machine.heater, place.structure, place.posted, place.depth, place.scattered);
  const std::string fields =
      std::string("\"structure\":\"") + tagline_matcher_queue(subject.matcher()) + "\",\"isa\":\"" +
      tagline_matcher_isa(subject.matcher()) + "\",\"side\":\"" +
      (place.posted ? "posted" : "unexpected") + "\",\"depth\":" + std::to_string(place.depth) +
      ",\"nodes\":\"" + (place.scattered ? "scattered" : "in_order") +
      "\",\"region_lines\":" + std::to_string(statistics_of(machine.heater).region_lines) +
      ",\"sleep_ns\":" + std::to_string(machine.sleep_ns);
  for (Eviction& eviction : evictions) {
    Samples samples;
    const tagline_heater_statistics before = statistics_of(machine.heater);
    for (int i = 0; i < 2 * rounds; ++i) {
      const bool heated = (i + i / 2) % 2 != 0;  // off on, on off, ...
      machine.neighbour.run([&] { const_cast<Work&>(machine.neighbours_work).sweep(); });
      machine.heat(heated);
      const double end = now_ns() + kComputePhaseNs;
      do eviction.work.sweep();
      while (now_ns() < end);
      const double ns = subject.match_ns();
      machine.heat(false);
      samples.add(heated, ns, machine.neighbour);
    }
    const tagline_heater_statistics after = statistics_of(machine.heater);
    print("\"measure\":\"cold_match\",\"evicted\":\"" + std::string(eviction.name) +
              "\",\"passes\":" + std::to_string(after.passes - before.passes) +
              ",\"passes_left_out\":" +
              std::to_string(after.passes_left_out - before.passes_left_out) + "," + fields,
          samples);
  }
  Samples samples;
  const double once = (subject.pair_ns(10), subject.pair_ns(10));
  const int pairs = static_cast<int>(std::clamp(300e3 / once, 10.0, 20000.0));
  for (int i = 0; i < 2 * rounds; ++i) {
    const bool heated = (i + i / 2) % 2 != 0;
    machine.heat(heated);
    subject.pair_ns(pairs / 4);
    const double ns = subject.pair_ns(pairs);
    machine.heat(false);
    samples.add(heated, ns, machine.neighbour);
  }
  print("\"measure\":\"hot_pair\",\"evicted\":\"none\"," + fields, samples);
}

// Time of a fixed piece of work on the heater's unit: sums over data that fit into
// half of its second level cache, as the heater's lines do. Meanwhile this thread computes, with
// all caches, or the heater would have nothing to do.
void measure_neighbour(const Machine& machine, Work& computing, std::size_t lines, int rounds) {
  std::vector<std::uint64_t> data(cache_bytes(2, kMiB) / 2 / sizeof(std::uint64_t), 1);
  std::vector<char> region(lines * 64);
  if (tagline_heater_register(machine.heater, region.data(), region.size()) != TAGLINE_OK) {
    fail(tagline_error_message());
  }
  Samples samples;
  for (int i = 0; i < 2 * rounds; ++i) {
    const bool heated = (i + i / 2) % 2 != 0;
    machine.heat(heated);
    double ns = 0;
    machine.neighbour.start([&] {
      const double start = now_ns();
      volatile std::uint64_t sum = 0;
      for (int turn = 0; turn < 250; ++turn) {
        sum = sum + std::accumulate(data.begin(), data.end(), std::uint64_t{0});
      }
      ns = now_ns() - start;
    });
    do computing.sweep();
    while (!machine.neighbour.is_done());
    machine.heat(false);
    samples.add(heated, ns, machine.neighbour);
  }
  tagline_heater_deregister(machine.heater, region.data());
  print("\"measure\":\"neighbour_compute\",\"region_lines\":" + std::to_string(lines) +
            ",\"sleep_ns\":" + std::to_string(machine.sleep_ns),
        samples);
}

tagline_heater* make_heater(const tagline_heater_options& options) {
  tagline_heater* heater = nullptr;
  if (tagline_heater_create(&options, &heater) != TAGLINE_OK) fail(tagline_error_message());
  tagline_heater_pause(heater);
  return heater;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> depths{1, 8, 64, 256, 1024, 4096};
  std::vector<std::string> structures;
  tagline_heater_options options = TAGLINE_HEATER_OPTIONS_DEFAULT;
  int rounds = 15;
  bool posted_only = false, always = false;
  bench::Options line("hotcache",
                      "What a heater does for a match after a compute phase, and what it costs");
  line.numbers("--depths", depths, 0, 1 << 16, "entries ahead of the match");
  line.list("--structures", structures, "queue structures; default: all");
  line.number("--rounds", rounds, 3, 1000, "with and without the heater, each");
  line.number("--sleep-ns", options.sleep_ns, 0, 1000000000, "of the heater, 0: its default");
  line.number("--unit", options.processing_unit, -1, 1 << 20, "of the heater, -1: automatic");
  line.yes("--always", always, "the heater leaves no pass out");
  line.yes("--posted-only", posted_only, "leave the unexpected queue out");
  if (const std::optional<int> ended = line.parse(argc, argv)) return *ended;
  options.always = always ? 1 : 0;
  unsetenv("TAGLINE_QUEUE");  // it would override the structures

  bind_this_thread(sched_getcpu());
  tagline_heater* heater = make_heater(options);
  const tagline_heater_statistics statistics = statistics_of(heater);
  std::printf("{\"heater_unit\":%d,\"matching_unit\":%d,\"shared_cache_level\":%d}\n",
              statistics.processing_unit, sched_getcpu(), statistics.shared_cache);
  Neighbour neighbour(statistics.processing_unit);
  std::vector<Eviction> evictions;
  evictions.push_back({"l1_l2", Work(4 * cache_bytes(2, kMiB))});
  evictions.push_back(
      {"l1_l2_l3", Work(std::max(48 * kMiB, std::min(cache_bytes(3, 0) * 3 / 2, 256 * kMiB)))});
  {
    constexpr std::uint64_t kDefault = 1000000;  // see tagline_heater_options
    const Machine machine{heater, options.sleep_ns == 0 ? kDefault : options.sleep_ns, neighbour};
    if (structures.empty()) {
      for (unsigned i = 0; tagline_queue_name(i) != nullptr; ++i) {
        structures.push_back(tagline_queue_name(i));
      }
    }
    for (const std::string& structure : structures) {
      for (const int depth : depths) {
        for (const bool posted : {true, false}) {
          if (posted_only && !posted) continue;
          for (const bool scattered : {false, true}) {
            measure_matches(machine, {structure.c_str(), posted, depth, scattered}, evictions,
                            rounds);
          }
        }
      }
    }
  }
  tagline_heater_destroy(heater);
  for (const std::uint64_t sleep_ns : {50000, 200000, 1000000, 10000000}) {
    options.sleep_ns = sleep_ns;
    options.processing_unit = statistics.processing_unit;
    const Machine machine{make_heater(options), sleep_ns, neighbour};
    for (const std::size_t lines : {64, 1024, 8192}) {
      measure_neighbour(machine, evictions.back().work, lines, rounds);
    }
    tagline_heater_destroy(machine.heater);
  }
  return 0;
}
