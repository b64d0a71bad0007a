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
// Every call's status and cookie are checked. Prints one JSON object per point.
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
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

// One structure under test, with `depth` entries in the queue that is searched.
class Subject {
 public:
  Subject(tagline_matcher* matcher, int depth)
      : name(tagline_matcher_queue(matcher)),
        isa(tagline_matcher_isa(matcher)),
        matcher_(matcher),
        requests_(static_cast<std::size_t>(depth) + 2) {}
  ~Subject() { tagline_destroy(matcher_); }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  void fill(bool posted) {
    for (std::size_t i = 0; i + 2 < requests_.size(); ++i) {
      const tagline_envelope e = envelope(kAheadTag + static_cast<int>(i));
      void* none = nullptr;
      const tagline_status status =
          posted ? tagline_post_receive(matcher_, e, &requests_[i], &none, nullptr)
                 : tagline_arrive(matcher_, e, &requests_[i], &none);
      if (status != TAGLINE_QUEUED) fail("an entry was not queued");
    }
  }

  // ns per append + match, mean of a batch
  double batch(bool posted, int pairs) {
    void* const receive = &requests_[requests_.size() - 2];
    void* const message = &requests_[requests_.size() - 1];
    const tagline_envelope e = envelope(kMeasuredTag);
    const double start = now_ns();
    if (posted) {
      for (int i = 0; i < pairs; ++i) {
        void* partner = nullptr;
        const bool ok =
            tagline_post_receive(matcher_, e, receive, &partner, nullptr) == TAGLINE_QUEUED &&
            tagline_arrive(matcher_, e, message, &partner) == TAGLINE_MATCHED;
        if (!ok || partner != receive) fail("a wrong match");
      }
    } else {
      for (int i = 0; i < pairs; ++i) {
        void* partner = nullptr;
        const bool ok =
            tagline_arrive(matcher_, e, message, &partner) == TAGLINE_QUEUED &&
            tagline_post_receive(matcher_, e, receive, &partner, nullptr) == TAGLINE_MATCHED;
        if (!ok || partner != message) fail("a wrong match");
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

  tagline_matcher* const matcher_;
  // The last two are the measured receive and the measured message.
  std::vector<Request> requests_;
};

void measure(bool posted, int depth, double budget_ms) {
  constexpr double kBatchNs = 100e3;
  std::vector<std::unique_ptr<Subject>> subjects;
  subjects.push_back(std::make_unique<Subject>(bench::make_plain_list(), depth));
  for (unsigned i = 0; tagline_queue_name(i) != nullptr; ++i) {
    tagline_options options = TAGLINE_OPTIONS_DEFAULT;
    options.queue = tagline_queue_name(i);
    tagline_matcher* matcher = nullptr;
    if (tagline_create(&options, &matcher) != TAGLINE_OK) fail(tagline_error_message());
    subjects.push_back(std::make_unique<Subject>(matcher, depth));
  }

  std::vector<int> pairs;
  for (auto& subject : subjects) {
    subject->fill(posted);
    // Until a structure that moves its entries little by little has moved them all.
    subject->batch(posted, 200);
    const double once = subject->batch(posted, 10);
    pairs.push_back(static_cast<int>(std::clamp(kBatchNs / once, 5.0, 20000.0)));
  }
  const double end = now_ns() + budget_ms * 1e6 * static_cast<double>(subjects.size());
  for (int batches = 0; batches < 7 || (now_ns() < end && batches < 200); ++batches) {
    for (std::size_t i = 0; i < subjects.size(); ++i) {
      subjects[i]->batch(posted, 1);  // its entries come back into the caches
      subjects[i]->samples.push_back(subjects[i]->batch(posted, pairs[i]));
    }
  }
  for (const auto& subject : subjects) {
    std::printf(R"({"structure":"%s","isa":"%s","case":"%s","depth":%d,"samples_ns":[)",
                subject->name.c_str(), subject->isa.c_str(), posted ? "posted" : "unexpected",
                depth);
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
  double budget_ms = 5;
  bench::Options options("library",
                         "Time of append + match in tagline's queue structures and a plain list");
  options.numbers("--depths", depths, 0, 1 << 20, "entries ahead of the match");
  options.number("--budget-ms", budget_ms, 0.001, 1e6,
                 "time per point and structure, milliseconds");
  if (const std::optional<int> ended = options.parse(argc, argv)) return *ended;
  // It would override the structure of every matcher made here.
  unsetenv("TAGLINE_QUEUE");
  for (const bool posted : {true, false}) {
    for (const int depth : depths) measure(posted, depth, budget_ms);
  }
  return 0;
}
