// SPDX-License-Identifier: BSD-3-Clause
//
// The library alone, no MPI: nanoseconds per append + match of the newest entry
// behind `depth` others, hot, for every queue structure of tagline and for a
// plain intrusive list. Batches of the structures take turns, so that whatever
// slows the machine for a while slows all of them.
//
//   posted      post_receive() queues behind `depth` receives, arrive() matches it
//   unexpected  arrive() queues behind `depth` messages, post_receive() matches it
//
// With --matchers, as where a program has as many communicators, the calls take turns among that
// many, each pair with another one that lies elsewhere in memory.
//
// Every call's status and cookie are checked. Prints one JSON object per point.
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "match/tagline.h"
#include "options.hpp"
#include "plain_list.hpp"

namespace {

constexpr int kMeasuredTag = 1;
constexpr int kAheadTag = 1000;  // + index of the entry

[[noreturn]] void fail(const char* message) {
  std::fprintf(stderr, "library: %s\n", message);
  std::exit(1);
}

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

tagline_envelope envelope(int tag) {
  tagline_envelope result{};
  result.context_id = 1;
  result.source = 0;
  result.tag = tag;
  return result;
}

// One structure under test, with `depth` entries in each queue that is searched.
class Subject {
 public:
  Subject(std::vector<tagline_matcher*> matchers, int depth)
      : name(tagline_matcher_queue(matchers[0])),
        isa(tagline_matcher_isa(matchers[0])),
        matchers_(std::move(matchers)),
        depth_(static_cast<std::size_t>(depth)),
        requests_(matchers_.size() * (depth_ + 2)) {}
  ~Subject() {
    for (tagline_matcher* const matcher : matchers_) tagline_destroy(matcher);
  }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  void fill(bool posted) {
    for (std::size_t m = 0; m < matchers_.size(); ++m) {
      for (std::size_t i = 0; i < depth_; ++i) {
        const tagline_envelope e = envelope(kAheadTag + static_cast<int>(i));
        void* none = nullptr;
        void* const request = &requests_of(m)[i];
        const tagline_status status =
            posted ? tagline_post_receive(matchers_[m], e, request, &none, nullptr)
                   : tagline_arrive(matchers_[m], e, request, &none);
        if (status != TAGLINE_QUEUED) fail("an entry was not queued");
      }
    }
  }

  // ns per append + match, mean of a batch
  double batch(bool posted, int pairs) {
    const double start = now_ns();
    if (matchers_.size() == 1) {
      for (int i = 0; i < pairs; ++i) pair(posted, 0);
    } else {
      for (int i = 0; i < pairs; ++i) {
        pair(posted, turn_);
        turn_ = (turn_ + kStride) % matchers_.size();
      }
    }
    return (now_ns() - start) / pairs;
  }

  const std::string name;
  const std::string isa;
  std::vector<double> samples;

 private:
  // A request as hosts have it: a line of its own.
  struct alignas(64) Request {
    std::byte bytes[bench::kRequestBytes];
  };

  // A prime above any number of matchers, so that all have their turn, and mostly far from the one
  // before.
  static constexpr std::size_t kStride = 2147483647;

  // The last two of a matcher are the measured receive and the measured message.
  Request* requests_of(std::size_t m) { return &requests_[m * (depth_ + 2)]; }

  [[gnu::always_inline]] void pair(bool posted, std::size_t m) {
    tagline_matcher* const matcher = matchers_[m];
    void* const receive = &requests_of(m)[depth_];
    void* const message = &requests_of(m)[depth_ + 1];
    const tagline_envelope e = envelope(kMeasuredTag);
    void* partner = nullptr;
    const bool ok =
        posted
            ? tagline_post_receive(matcher, e, receive, &partner, nullptr) == TAGLINE_QUEUED &&
                  tagline_arrive(matcher, e, message, &partner) == TAGLINE_MATCHED
            : tagline_arrive(matcher, e, message, &partner) == TAGLINE_QUEUED &&
                  tagline_post_receive(matcher, e, receive, &partner, nullptr) == TAGLINE_MATCHED;
    if (!ok || partner != (posted ? receive : message)) fail("a wrong match");
  }

  const std::vector<tagline_matcher*> matchers_;
  const std::size_t depth_;
  std::size_t turn_ = 0;
  std::vector<Request> requests_;
};

std::vector<tagline_matcher*> make_matchers(const char* queue, int matchers) {
  std::vector<tagline_matcher*> made;
  for (int i = 0; i < matchers; ++i) {
    tagline_options options = TAGLINE_OPTIONS_DEFAULT;
    options.queue = queue;
    tagline_matcher* matcher = queue == nullptr ? bench::make_plain_list() : nullptr;
    if (matcher == nullptr && tagline_create(&options, &matcher) != TAGLINE_OK) {
      fail(tagline_error_message());
    }
    made.push_back(matcher);
  }
  return made;
}

void measure(bool posted, int depth, int matchers, double budget_ms) {
  constexpr double kBatchNs = 100e3;
  std::vector<std::unique_ptr<Subject>> subjects;
  subjects.push_back(std::make_unique<Subject>(make_matchers(nullptr, matchers), depth));
  for (unsigned i = 0; const char* const queue = tagline_queue_name(i); ++i) {
    subjects.push_back(std::make_unique<Subject>(make_matchers(queue, matchers), depth));
  }

  std::vector<int> pairs;
  for (auto& subject : subjects) {
    subject->fill(posted);
    // Until a structure that moves its entries little by little has moved them all.
    subject->batch(posted, 200 * matchers);
    const double once = subject->batch(posted, 10 * matchers);
    pairs.push_back(
        std::max(matchers, static_cast<int>(std::clamp(kBatchNs / once, 5.0, 20000.0))));
  }
  const double end = now_ns() + budget_ms * 1e6 * static_cast<double>(subjects.size());
  for (int batches = 0; batches < 7 || (now_ns() < end && batches < 200); ++batches) {
    for (std::size_t i = 0; i < subjects.size(); ++i) {
      subjects[i]->batch(posted, matchers);  // its entries come back into the caches
      subjects[i]->samples.push_back(subjects[i]->batch(posted, pairs[i]));
    }
  }
  for (const auto& subject : subjects) {
    std::printf(
        R"({"structure":"%s","isa":"%s","case":"%s","depth":%d,"matchers":%d,"samples_ns":[)",
        subject->name.c_str(), subject->isa.c_str(), posted ? "posted" : "unexpected", depth,
        matchers);
    for (std::size_t i = 0; i < subject->samples.size(); ++i) {
      std::printf("%s%.5g", i == 0 ? "" : ",", subject->samples[i]);
    }
    std::printf("]}\n");
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> depths{0, 1, 8, 64, 1024, 16384};
  int matchers = 1;
  double budget_ms = 5;
  bench::Options options("library",
                         "Time of append + match in tagline's queue structures and a plain list");
  options.numbers("--depths", depths, 0, 1 << 20, "entries ahead of the match");
  options.number("--matchers", matchers, 1, 100000, "matchers that take turns");
  options.number("--budget-ms", budget_ms, 0.001, 1e6,
                 "time per point and structure, milliseconds");
  if (const std::optional<int> ended = options.parse(argc, argv)) return *ended;
  // It would override the structure of every matcher made here.
  unsetenv("TAGLINE_QUEUE");
  for (const bool posted : {true, false}) {
    for (const int depth : depths) measure(posted, depth, matchers, budget_ms);
  }
  return 0;
}
