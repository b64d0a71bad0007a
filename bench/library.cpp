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

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "match/tagline.h"
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

// A request as hosts have it: a line or more of its own.
struct alignas(64) Request {
  bench::PlainEntry entry;
};

struct Tagline {
  tagline_matcher* matcher;
  tagline_status post(tagline_envelope e, void* cookie, void** partner) const {
    return tagline_post_receive(matcher, e, cookie, partner, nullptr);
  }
  tagline_status arrive(tagline_envelope e, void* cookie, void** partner) const {
    return tagline_arrive(matcher, e, cookie, partner);
  }
};

struct Plain {
  bench::PlainMatcher* matcher;
  tagline_status post(tagline_envelope e, void* cookie, void** partner) const {
    return bench::plain_post_receive(matcher, e, cookie, partner, nullptr);
  }
  tagline_status arrive(tagline_envelope e, void* cookie, void** partner) const {
    return bench::plain_arrive(matcher, e, cookie, partner);
  }
};

// One structure under test, with `depth` entries in the queue that is searched.
class Subject {
 public:
  Subject(std::string label, std::string set, int depth)
      : name(std::move(label)),
        isa(std::move(set)),
        requests_(static_cast<std::size_t>(depth) + 2) {}
  virtual ~Subject() = default;
  virtual void fill(bool posted) = 0;
  // ns per append + match, mean of a batch
  virtual double batch(bool posted, int pairs) = 0;

  const std::string name;
  const std::string isa;
  std::vector<double> samples;

 protected:
  // The last two are the measured receive and the measured message.
  std::vector<Request> requests_;
};

template <class Engine>
class SubjectOf : public Subject {
 public:
  SubjectOf(std::string label, std::string set, int depth, Engine engine)
      : Subject(std::move(label), std::move(set), depth), engine_(engine) {}

  void fill(bool posted) override {
    for (std::size_t i = 0; i + 2 < requests_.size(); ++i) {
      const tagline_envelope e = envelope(kAheadTag + static_cast<int>(i));
      void* none = nullptr;
      const tagline_status status = posted ? engine_.post(e, &requests_[i].entry, &none)
                                           : engine_.arrive(e, &requests_[i].entry, &none);
      if (status != TAGLINE_QUEUED) fail("an entry was not queued");
    }
  }

  double batch(bool posted, int pairs) override {
    void* const receive = &requests_[requests_.size() - 2].entry;
    void* const message = &requests_[requests_.size() - 1].entry;
    const tagline_envelope e = envelope(kMeasuredTag);
    const double start = now_ns();
    if (posted) {
      for (int i = 0; i < pairs; ++i) {
        void* partner = nullptr;
        const bool ok = engine_.post(e, receive, &partner) == TAGLINE_QUEUED &&
                        engine_.arrive(e, message, &partner) == TAGLINE_MATCHED;
        if (!ok || partner != receive) fail("a wrong match");
      }
    } else {
      for (int i = 0; i < pairs; ++i) {
        void* partner = nullptr;
        const bool ok = engine_.arrive(e, message, &partner) == TAGLINE_QUEUED &&
                        engine_.post(e, receive, &partner) == TAGLINE_MATCHED;
        if (!ok || partner != message) fail("a wrong match");
      }
    }
    return (now_ns() - start) / pairs;
  }

 private:
  Engine engine_;
};

void measure(bool posted, int depth, double budget_ms) {
  constexpr double kBatchNs = 100e3;
  std::vector<std::unique_ptr<Subject>> subjects;
  std::vector<tagline_matcher*> matchers;
  bench::PlainMatcher plain;
  subjects.push_back(std::make_unique<SubjectOf<Plain>>("plain_list", "", depth, Plain{&plain}));
  for (unsigned i = 0; tagline_queue_name(i) != nullptr; ++i) {
    tagline_options options = TAGLINE_OPTIONS_DEFAULT;
    options.queue = tagline_queue_name(i);
    tagline_matcher* matcher = nullptr;
    if (tagline_create(&options, &matcher) != TAGLINE_OK) fail(tagline_error_message());
    matchers.push_back(matcher);
    subjects.push_back(std::make_unique<SubjectOf<Tagline>>(
        options.queue, tagline_matcher_isa(matcher), depth, Tagline{matcher}));
  }

  std::vector<int> pairs;
  for (auto& subject : subjects) {
    subject->fill(posted);
    subject->batch(posted, 10);
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
  for (tagline_matcher* matcher : matchers) tagline_destroy(matcher);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> depths{0, 1, 8, 64, 1024, 16384};
  double budget_ms = 5;
  CLI::App app{"Time of append + match in tagline's queue structures and a plain list"};
  app.add_option("--depths", depths, "entries ahead of the match")
      ->delimiter(',')
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--budget-ms", budget_ms, "time per point and structure, milliseconds")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  // It would override the structure of every matcher made here.
  unsetenv("TAGLINE_QUEUE");
  for (const bool posted : {true, false}) {
    for (const int depth : depths) measure(posted, depth, budget_ms);
  }
  return 0;
}
