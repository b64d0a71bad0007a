// SPDX-License-Identifier: BSD-3-Clause
#include "uses.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>

#include "structures.hpp"

namespace tagline::tools {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int32_t kPeers = 16;          // of what waits
constexpr std::int32_t kMatched = 1000000;   // tags of what is matched
constexpr std::int32_t kMessages = 2000000;  // tags of messages that wait
constexpr int kBatch = 16;                   // matches between two looks at the clock
constexpr int kSettling = 64;                // entries that wait, for each match of practice

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

void expect(bool matched) {
  if (!matched) throw std::runtime_error("a matcher has lost a match: this is a fault of tagline");
}

class Worker {
 public:
  explicit Worker(tagline_matcher* matcher) : matcher_(matcher) {}

  // Receives and messages that stay; one receive in so many has any source, 0: none.
  void fill(int receives, int messages, int wildcard_every = 0) {
    for (int i = 0; i < receives; ++i) {
      const bool any = wildcard_every != 0 && i % wildcard_every == 0;
      tagline_post_receive(matcher_, {0, any ? TAGLINE_ANY_SOURCE : i % kPeers, i}, this, &out_,
                           nullptr);
    }
    for (int i = 0; i < messages; ++i) {
      tagline_arrive(matcher_, {0, i % kPeers, kMessages + i}, this, &out_);
    }
  }

  void post_and_arrive(tagline_envelope message, bool any_source = false) {
    tagline_envelope receive = message;
    if (any_source) receive.source = TAGLINE_ANY_SOURCE;
    tagline_post_receive(matcher_, receive, this, &out_, nullptr);
    last_ = tagline_arrive(matcher_, message, this, &out_);
  }
  void arrive_and_post(tagline_envelope message, bool any_source = false) {
    tagline_envelope receive = message;
    if (any_source) receive.source = TAGLINE_ANY_SOURCE;
    tagline_arrive(matcher_, message, this, &out_);
    last_ = tagline_post_receive(matcher_, receive, this, &out_, nullptr);
  }
  void drain(const std::vector<int>& order) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      tagline_post_receive(matcher_, drained(static_cast<int>(i)), this, &out_, nullptr);
    }
    for (const int i : order) last_ = tagline_arrive(matcher_, drained(i), this, &out_);
  }
  void check() const { expect(last_ == TAGLINE_MATCHED); }

 private:
  static tagline_envelope drained(int i) { return {0, i % kPeers, kMatched + i}; }

  tagline_matcher* const matcher_;
  void* out_ = nullptr;
  tagline_status last_ = TAGLINE_MATCHED;
};

OwnedMatcher make(const std::string& queue, const std::string& isa) {
  return make_matcher(queue, isa.c_str());
}

// Nanoseconds per match, `matches` of which batch() makes while so many entries wait.
template <class Batch>
double repeat(double seconds, int matches, int waiting, Batch batch) {
  // What a matcher makes when it is first used that much is not part of the time, nor how a long
  // queue comes to its index, of which each match does a bounded part.
  const int practice = std::max(2, waiting / kSettling / matches);
  for (int i = 0; i < practice; ++i) batch();
  const double limit = seconds * 1e9;
  double took = 0;
  std::uint64_t batches = 0;
  const Clock::time_point start = Clock::now();
  do {
    batch();
    ++batches;
    took = since(start);
  } while (took < limit);
  return took / static_cast<double>(batches) / matches;
}

// Each thread keeps to a unit while there are enough of them.
void keep_on_unit(int number, int threads) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < threads) return;
  for (int unit = 0, skip = number; unit < CPU_SETSIZE; ++unit) {
    if (!CPU_ISSET(unit, &allowed) || skip-- > 0) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(unit, &own);
    sched_setaffinity(0, sizeof own, &own);
    return;
  }
}

}  // namespace

double measure(const std::string& queue, const std::string& isa, const Work& work, double seconds) {
  const OwnedMatcher matcher = make(queue, isa);
  Worker worker(matcher.get());
  const auto message = [](int i) { return tagline_envelope{0, i % 4, kMatched + i}; };
  double ns = 0;
  switch (work.kind) {
    case Work::posted:
      worker.fill(work.length, 0);
      ns = repeat(seconds, kBatch, work.length, [&] {
        for (int i = 0; i < kBatch; ++i) worker.post_and_arrive(message(i));
      });
      break;
    case Work::unexpected:
      worker.fill(0, work.length);
      ns = repeat(seconds, kBatch, work.length, [&] {
        for (int i = 0; i < kBatch; ++i) worker.arrive_and_post(message(i));
      });
      break;
    case Work::drained: {
      std::vector<int> order(static_cast<std::size_t>(work.length));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), std::mt19937(4711));
      ns = repeat(seconds, work.length, 0, [&] { worker.drain(order); });
      break;
    }
    case Work::wildcards:
      worker.fill(work.length, work.length, 4);
      ns = repeat(seconds, kBatch, 2 * work.length, [&] {
        for (int i = 0; i < kBatch; i += 2) {
          worker.post_and_arrive(message(i), i % 8 == 0);
          worker.arrive_and_post(message(i + 1), i % 8 == 4);
        }
      });
      break;
  }
  worker.check();
  return ns;
}

namespace {

// 0: the system has not let the threads run in this time.
double turn(const std::string& queue, const std::string& isa, const ThreadedWork& work,
            double seconds) {
  const OwnedMatcher matcher = make(queue, isa);
  Worker(matcher.get()).fill(work.length, work.length);
  // A matcher that adapts to its threads does so in the practice.
  enum Phase { waiting, practice, timed, over };
  std::atomic<int> ready{0};
  std::atomic<Phase> phase{waiting};
  std::atomic<std::uint64_t> matches{0};
  const auto run = [&](int number) {
    keep_on_unit(number, work.threads);
    Worker worker(matcher.get());
    const auto batch = [&](int wild) {
      for (int i = 0; i < kBatch; ++i) {
        const int key = work.keys == 0 ? 0 : number * work.keys + i % work.keys;
        wild += work.wildcard_percent;
        worker.post_and_arrive({0, 1, kMatched + key}, wild >= 100);
        if (wild >= 100) wild -= 100;
      }
      return wild;
    };
    int wild = number * 37 % 100;
    std::uint64_t own = 0;
    ready.fetch_add(1);
    while (phase.load(std::memory_order_acquire) == waiting) sched_yield();
    for (Phase now = practice; now != over; now = phase.load(std::memory_order_relaxed)) {
      wild = batch(wild);
      if (now == timed) own += kBatch;
    }
    matches.fetch_add(own);
  };
  std::vector<std::thread> threads;
  for (int number = 0; number < work.threads; ++number) threads.emplace_back(run, number);
  while (ready.load() < work.threads) sched_yield();
  phase.store(practice, std::memory_order_release);
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * seconds));
  const Clock::time_point start = Clock::now();
  phase.store(timed);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double took = since(start);
  phase.store(over);
  for (std::thread& thread : threads) thread.join();
  tagline_statistics statistics;
  tagline_get_statistics(matcher.get(), &statistics);
  expect(statistics.posted.length == static_cast<std::uint64_t>(work.length) &&
         statistics.unexpected.length == static_cast<std::uint64_t>(work.length));
  return matches.load() == 0 ? 0 : took / static_cast<double>(matches.load());
}

}  // namespace

double measure(const std::string& queue, const std::string& isa, const ThreadedWork& work,
               double seconds) {
  constexpr int kTries = 10;
  for (int i = 0; i < kTries; ++i) {
    if (const double ns = turn(queue, isa, work, seconds); ns > 0) return ns;
  }
  return seconds * 1e9;  // at least
}

int processing_units() {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) != 0 ? 1 : CPU_COUNT(&allowed);
}

}  // namespace tagline::tools
