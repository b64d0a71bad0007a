// SPDX-License-Identifier: BSD-3-Clause
//
// Matches per second of several threads on one matcher, no MPI: the prototype benchmark of
// M. Dosanjh, 2017, chapter 6.4.1. Both queues hold entries that nobody matches; each thread
// alternates posting a receive and delivering the message for it, with tags of its own.
// With --first arrive the message comes before the receive.
//
// Prints one JSON object per point on stdout. A point is
//   MATCHER,THREADS,LENGTH,UMQ_LENGTH,WILDCARD_PERCENT,KEYS,FIRST
// MATCHER as tagline.h names it, or apart:STRUCTURE: a matcher for each thread, which is what
// the machine gives to threads that share nothing. Wildcards are ANY_SOURCE; with a t behind
// WILDCARD_PERCENT they are ANY_SOURCE and ANY_TAG in turns; with an l one more receive waits
// from the start, from any source with a tag that never comes. Points come from the command line,
// so that what is compared runs in turns, in one process, and next to each other: --turns of --ms
// each for every point, behind a warm-up of 4 ms. The rates are told by turn.
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "match/tagline.h"
#include "options.hpp"

namespace {

using Clock = std::chrono::steady_clock;

struct Point {
  std::string text;
  std::string matcher;
  bool apart = false;  // one for each thread
  int threads = 1;
  int length = 0;      // posted receives that wait
  int umq_length = 0;  // messages that wait
  int wildcard_percent = 0;
  bool any_tag = false;   // every other wildcard
  bool listener = false;  // a receive with a wildcard that nobody matches
  int keys = 1;           // of each thread; 0: all threads share one
  bool arrive_first = false;
};

struct alignas(64) Thread {
  std::atomic<std::uint64_t> matches{0};
  std::thread thread;
};

struct alignas(64) Signal {
  std::atomic<bool> on{false};
};
struct alignas(64) Count {
  std::atomic<std::size_t> value{0};
};

constexpr std::int32_t kAhead = 1000000;  // tags of the entries that wait
constexpr std::int32_t kSource = 1;
// In which a matcher finds out how many shards it needs, and moves what waits there.
constexpr std::chrono::milliseconds kWarmUp{4};
const std::string kApart = "apart:";

[[noreturn]] void fail(const std::string& text) {
  std::fprintf(stderr, "threads: %s\n", text.c_str());
  std::exit(1);
}

Point parse(const std::string& text) {
  Point point;
  std::vector<std::string> fields;
  std::istringstream stream(text);
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  if (fields.size() != 7) fail("a point has 7 fields: " + text);
  point.text = text;
  point.apart = fields[0].starts_with(kApart);
  point.matcher = point.apart ? fields[0].substr(kApart.size()) : fields[0];
  int* const numbers[] = {&point.threads, &point.length, &point.umq_length, &point.wildcard_percent,
                          &point.keys};
  for (std::size_t i = 0; i < std::size(numbers); ++i) *numbers[i] = std::stoi(fields[i + 1]);
  point.any_tag = fields[4].ends_with('t');
  point.listener = fields[4].ends_with('l');
  point.arrive_first = fields[6] == "arrive";
  return point;
}

// Threads that have a core each get it for good: a system that is busy with something else
// may leave two of them on one for longer than a turn.
void keep_on_core(int number, int threads) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < threads) return;
  for (int core = 0, skip = number; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || skip-- > 0) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    sched_setaffinity(0, sizeof own, &own);
    return;
  }
}

// The entries that wait.
void fill(tagline_matcher* matcher, const Point& point) {
  void* out = nullptr;
  for (int i = 0; i < point.length; ++i) {
    tagline_post_receive(matcher, {0, kSource, kAhead + i}, nullptr, &out, nullptr);
  }
  for (int i = 0; i < point.umq_length; ++i) {
    tagline_arrive(matcher, {0, kSource, 2 * kAhead + i}, nullptr, &out);
  }
  if (point.listener) {
    tagline_post_receive(matcher, {0, TAGLINE_ANY_SOURCE, 3 * kAhead}, nullptr, &out, nullptr);
  }
}

// A matcher's first thread fills its queues, so that a thread alone is the only one that
// ever calls. Alternates until it is told to stop.
void work(tagline_matcher* matcher, const Point& point, int number, Count& filled, const Signal& go,
          const Signal& stop, Thread& self) {
  keep_on_core(number, point.threads);
  if (number == 0 || point.apart) {
    fill(matcher, point);
    filled.value.fetch_add(1, std::memory_order_release);
  }
  while (!go.on.load(std::memory_order_acquire)) sched_yield();
  std::uint64_t matches = 0;
  // A wildcard at equal distances, in each thread at another time.
  int wild = number * 37 % 100;
  bool any_tag = false;
  while (!stop.on.load(std::memory_order_relaxed)) {
    self.matches.store(matches, std::memory_order_relaxed);
    for (int i = 0; i < 16; ++i, ++matches) {
      const int key =
          point.keys == 0 ? 0 : number * point.keys + static_cast<int>(matches) % point.keys;
      // With ANY_TAG a source of the thread's own, of which nothing waits.
      const tagline_envelope message = {0, point.any_tag ? kSource + 1 + number : kSource, key};
      tagline_envelope receive = message;
      if ((wild += point.wildcard_percent) >= 100) {
        wild -= 100;
        any_tag = point.any_tag && !any_tag;
        (any_tag ? receive.tag : receive.source) = any_tag ? TAGLINE_ANY_TAG : TAGLINE_ANY_SOURCE;
      }
      void* out = nullptr;
      if (point.arrive_first) {
        tagline_arrive(matcher, message, &self, &out);
        tagline_post_receive(matcher, receive, &self, &out, nullptr);
      } else {
        tagline_post_receive(matcher, receive, &self, &out, nullptr);
        tagline_arrive(matcher, message, &self, &out);
      }
    }
  }
  self.matches.store(matches, std::memory_order_relaxed);
}

// Matches per second.
double measure(const Point& point, double ms) {
  tagline_options options = TAGLINE_OPTIONS_DEFAULT;
  options.queue = point.matcher.c_str();
  std::vector<tagline_matcher*> matchers(point.apart ? static_cast<std::size_t>(point.threads) : 1);
  for (tagline_matcher*& matcher : matchers) {
    if (tagline_create(&options, &matcher) != TAGLINE_OK) fail(tagline_error_message());
  }
  Count filled;
  Signal go, stop;
  std::vector<Thread> threads(static_cast<std::size_t>(point.threads));
  for (std::size_t t = 0; t < threads.size(); ++t) {
    tagline_matcher* const matcher = matchers[t % matchers.size()];
    Thread& thread = threads[t];
    thread.thread = std::thread(
        [&, t, matcher] { work(matcher, point, static_cast<int>(t), filled, go, stop, thread); });
  }
  while (filled.value.load(std::memory_order_acquire) < matchers.size()) sched_yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto count = [&threads] {
    std::uint64_t matches = 0;
    for (const Thread& thread : threads) matches += thread.matches.load(std::memory_order_relaxed);
    return matches;
  };
  go.on.store(true, std::memory_order_release);
  std::this_thread::sleep_for(kWarmUp);
  const std::uint64_t before = count();
  const auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(ms));
  stop.on.store(true, std::memory_order_relaxed);
  for (Thread& thread : threads) thread.thread.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const std::uint64_t matches = count();

  std::uint64_t seen = 0;
  for (tagline_matcher* matcher : matchers) {
    tagline_statistics all;
    tagline_get_statistics(matcher, &all);
    seen += all.posted.matches + all.unexpected.matches;
    if (all.posted.length != static_cast<std::uint64_t>(point.length + point.listener) ||
        all.unexpected.length != static_cast<std::uint64_t>(point.umq_length)) {
      fail("lost or invented an entry: " + point.text);
    }
    tagline_destroy(matcher);
  }
  if (seen != matches) fail("lost or invented a match: " + point.text);
  return static_cast<double>(matches - before) / seconds;
}

}  // namespace

int main(int argc, char** argv) {
  unsetenv("TAGLINE_QUEUE");  // it would override the structures
  bench::Options options("threads", "Matches per second of several threads on one matcher");
  std::vector<std::string> texts;
  double ms = 4;
  int turns = 3;
  options.texts("points", texts, "points to measure");
  options.number("--ms", ms, 0.001, 1e6, "length of a turn");
  options.number("--turns", turns, 1, 1000, "of each point");
  if (const std::optional<int> ended = options.parse(argc, argv)) return *ended;
  if (texts.empty()) fail("no points: see the head of bench/threads.cpp");

  std::vector<Point> points;
  for (const std::string& text : texts) points.push_back(parse(text));
  std::vector<std::string> rates(points.size());
  for (int turn = 0; turn < turns; ++turn) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (turn > 0) rates[i] += ",";
      rates[i] += std::to_string(std::llround(measure(points[i], ms)));
    }
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::printf("{\"point\":\"%s\",\"matches_per_second\":[%s]}\n", points[i].text.c_str(),
                rates[i].c_str());
  }
  return 0;
}
