// SPDX-License-Identifier: BSD-3-Clause
// Threads make random calls on one matcher, a few at a time; after each round it is decided
// whether what came of them can have come of the same calls in some order, one by one.
//
// Runs for a minute, which all shapes share; TAGLINE_THREADS_SECONDS says otherwise.
#include "tests/support/rounds.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "tests/support/all_matchers.hpp"
#include "tests/support/effort.hpp"

namespace tagline::test {
namespace {

using Kind = Operation::Kind;
using Clock = std::chrono::steady_clock;

double seconds_in_all() {
  const char* wanted = std::getenv("TAGLINE_THREADS_SECONDS");
  return wanted != nullptr ? std::atof(wanted) : effort(60);
}

// Ends a program that hangs.
class TimeLimit : public testing::Environment {
  void SetUp() override { alarm(540 + static_cast<unsigned>(seconds_in_all())); }
  void TearDown() override { alarm(0); }
};
[[maybe_unused]] const auto* const kTimeLimit = testing::AddGlobalTestEnvironment(new TimeLimit);

struct Shape {
  std::string queue;
  int threads;
  int calls;  // of each thread in a round
  int sources = 2;
  int tags = 2;
  double wildcards = 0.2;
  unsigned ahead = 0;  // about so many receives and messages that wait before
  int bystanders = 0;  // receives and messages of another context
  std::string name() const {
    std::string text = queue + "_" + std::to_string(threads) + "_threads_" +
                       std::to_string(static_cast<int>(wildcards * 100)) + "_wildcards" +
                       (ahead > 0 ? "_deep" : "") + (bystanders > 0 ? "_read" : "");
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == ':' || c == '@'; }, '_');
    return text;
  }
  friend void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name(); }
};

std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes;
  for (const char* queue :
       {"locked@mcs:linear", "locked@ticket:adaptive", "locked@patient:adaptive",
        "tail@patient:linear", "locked@mutex:linear", "tail:linear", "tail@mcs:adaptive",
        "tail@ticket:linear", "tail@mutex:linear", "binned:linear", "binned@mcs:linear",
        "sharded:adaptive", "sharded@4:linear", "sharded@64:adaptive"}) {
    shapes.push_back({queue, 2, 8});
    shapes.push_back({queue, 3, 5, 2, 3, 0.05});
  }
  // Bins are for long lists.
  shapes.push_back({"binned:linear", 2, 8, 2, 2, 0.05, 90});
  // Long queues are read by all threads together until one finds something.
  for (const char* queue : {"tail:linear", "tail@mcs:linear", "tail:source"}) {
    shapes.push_back({queue, 2, 8, 2, 2, 0.2, 0, 100});
    shapes.push_back({queue, 3, 5, 2, 3, 0.05, 0, 100});
  }
  // As it turns out: more shards, and fewer when wildcards keep them shut.
  shapes.push_back({"sharded:linear", 2, 8, 4, 4, 0});
  shapes.push_back({"sharded:linear", 2, 8, 4, 4, 0.5});
  return shapes;
}

class Rounds : public testing::TestWithParam<Shape> {
 protected:
  static constexpr std::uintptr_t kStart = 1000000;  // cookies of what is there before

  // Meets all threads; yields, for there may be more of them than cores.
  class Barrier {
   public:
    explicit Barrier(int threads) : threads_(threads) {}
    void wait() {
      const int turn = turn_.load();
      if (waiting_.fetch_add(1) + 1 == threads_) {
        waiting_.store(0);
        turn_.store(turn + 1);
        return;
      }
      for (int spins = 0; turn_.load() == turn; ++spins) {
        if (spins > 200) sched_yield();
      }
    }

   private:
    const int threads_;
    std::atomic<int> waiting_{0};
    std::atomic<int> turn_{0};
  };

  tagline_envelope message_envelope(std::mt19937& random) const {
    const Shape& shape = GetParam();
    return {0, static_cast<std::int32_t>(random() % static_cast<unsigned>(shape.sources)),
            static_cast<std::int32_t>(random() % static_cast<unsigned>(shape.tags)) - 1};
  }
  tagline_envelope receive_envelope(std::mt19937& random) const {
    tagline_envelope envelope = message_envelope(random);
    std::bernoulli_distribution wild(GetParam().wildcards);
    if (wild(random)) envelope.source = TAGLINE_ANY_SOURCE;
    if (wild(random)) envelope.tag = TAGLINE_ANY_TAG;
    return envelope;
  }

  // Calls that take all of a matcher, or leave a half of the usual ones out.
  void plan_rare(Operation& operation, std::mt19937& random) const {
    constexpr Kind kinds[] = {Kind::drop_context,   Kind::drop_source,    Kind::set_hints,
                              Kind::append_receive, Kind::append_message, Kind::inspect,
                              Kind::statistics};
    operation.kind = kinds[random() % std::size(kinds)];
    const bool is_receive =
        operation.kind == Kind::append_receive || operation.kind == Kind::inspect;
    operation.envelope = is_receive ? receive_envelope(random) : message_envelope(random);
    if (operation.kind == Kind::set_hints) operation.envelope.tag = static_cast<int>(random() % 8);
  }

  // The calls of a thread; cookies tell threads and rounds apart.
  void plan(std::vector<Call>& calls, std::uintptr_t cookie, std::mt19937& random) const {
    calls.assign(static_cast<std::size_t>(GetParam().calls), {});
    const Operation* post = nullptr;
    const unsigned rare = random() % 2 == 0 ? 20 : 0;
    for (Call& call : calls) {
      const unsigned choice = random() % 100;
      Operation& operation = call.operation;
      operation.cookie = cookie++;
      if (random() % 100 < rare) {
        plan_rare(operation, random);
      } else if (choice < 40) {
        operation.kind = Kind::post_receive;
        operation.envelope = receive_envelope(random);
        post = &operation;
      } else if (choice < 80) {
        operation.kind = choice % 2 == 0 ? Kind::arrive : Kind::match_then_append;
        operation.envelope = message_envelope(random);
      } else if (choice < 90 || post == nullptr) {
        operation.kind = choice % 2 == 0 ? Kind::claim : Kind::probe;
        operation.envelope = receive_envelope(random);
      } else {
        operation.kind = choice % 2 == 0 ? Kind::cancel_receive : Kind::cancel_handle;
        operation.envelope = post->envelope;
        operation.cookie = post->cookie;
        post = nullptr;
      }
    }
  }

  static void note_inspected(void* user, tagline_side, tagline_envelope, void* cookie) {
    *static_cast<void**>(user) = cookie;
  }
  static void note_dropped(void* user, tagline_side, tagline_envelope, void* cookie) {
    static_cast<std::vector<std::uintptr_t>*>(user)->push_back(
        reinterpret_cast<std::uintptr_t>(cookie));
  }

  // bystanders: of each side, which statistics tell of as well.
  static void make(tagline_matcher* matcher, std::vector<Call>& calls, int bystanders) {
    tagline_handle handle = 0;  // of the last receive that was queued
    for (Call& call : calls) {
      const Operation& operation = call.operation;
      void* const own = reinterpret_cast<void*>(operation.cookie);
      void* cookie = nullptr;
      std::size_t dropped = 0;
      call.begin = Clock::now();
      switch (operation.kind) {
        case Kind::post_receive:
          handle = 0;
          call.status = tagline_post_receive(matcher, operation.envelope, own, &cookie, &handle);
          break;
        case Kind::arrive:
          call.status = tagline_arrive(matcher, operation.envelope, own, &cookie);
          break;
        case Kind::match_then_append:
          // As hosts do that store a message only once nobody waits for it; then somebody may.
          call.status = tagline_match_message(matcher, operation.envelope, &cookie);
          if (call.status == TAGLINE_NOT_FOUND) {
            call.status = tagline_arrive(matcher, operation.envelope, own, &cookie);
          }
          break;
        case Kind::claim:
          call.status = tagline_claim(matcher, operation.envelope, &cookie, nullptr);
          break;
        case Kind::probe:
          call.status = tagline_probe(matcher, operation.envelope, &cookie, nullptr);
          break;
        case Kind::cancel_receive:
          call.status = tagline_cancel_receive(matcher, operation.envelope, own);
          break;
        case Kind::cancel_handle:
          call.status = tagline_cancel_handle(matcher, 0, handle);
          break;
        case Kind::append_receive:
          call.status = tagline_append_receive(matcher, operation.envelope, own, nullptr);
          break;
        case Kind::append_message:
          call.status = tagline_append_message(matcher, operation.envelope, own);
          break;
        case Kind::inspect:
          call.status = tagline_inspect(matcher, operation.envelope, note_inspected, &cookie);
          break;
        case Kind::statistics: {
          tagline_statistics all;
          tagline_get_statistics(matcher, &all);
          call.posted = all.posted.length - static_cast<std::uint64_t>(bystanders);
          call.unexpected = all.unexpected.length - static_cast<std::uint64_t>(bystanders);
          break;
        }
        case Kind::set_hints:
          call.status = tagline_set_hints(matcher, operation.envelope.context_id,
                                          static_cast<unsigned>(operation.envelope.tag));
          break;
        case Kind::drop_context:
          dropped = tagline_drop_context(matcher, 0, note_dropped, &call.dropped);
          break;
        case Kind::drop_source:
          dropped = tagline_drop_source(matcher, 0, operation.envelope.source, note_dropped,
                                        &call.dropped);
          break;
        case Kind::claim_then_append:  // not planned: nobody may come between the halves
          break;
      }
      call.end = Clock::now();
      call.cookie = reinterpret_cast<std::uintptr_t>(cookie);
      EXPECT_EQ(dropped, call.dropped.size()) << "every removal is reported";
    }
  }

  // Takes some of what the threads have left, oldest first: in which order it waits.
  void take_some(tagline_matcher* matcher, std::vector<Call>& calls, std::mt19937& random) const {
    constexpr std::uintptr_t kOwn = 2 * kStart;
    constexpr int kMost = 12;
    const auto take = [&](Kind kind, tagline_envelope envelope) {
      for (int i = 0; i < kMost; ++i) {
        std::vector<Call> one{{{kind, envelope, kOwn + calls.size()}, {}, {}, 0, 0}};
        make(matcher, one, GetParam().bystanders);
        calls.push_back(one.front());
        if (one.front().status != TAGLINE_MATCHED) return;
      }
    };
    take(Kind::claim, {0, TAGLINE_ANY_SOURCE, TAGLINE_ANY_TAG});
    for (int keys = 0; keys < 3; ++keys) take(Kind::arrive, message_envelope(random));
  }

  // Pairs that match at once, with a key of the thread's own, so many that shards become more,
  // or fewer, or are chosen by less of the key, or by all of it again: for all that the other
  // threads get no other answers.
  static void storm(tagline_matcher* matcher, std::size_t thread, int pairs, std::mt19937& random) {
    constexpr int own = 100;
    const unsigned choice = random() % 8;
    // With wildcards in a context of the thread's own; without, others meet it by the tag.
    const tagline_envelope message =
        choice >= 4 ? tagline_envelope{1000, own + static_cast<int>(thread), own}
                    : tagline_envelope{1 + thread, own, own};
    tagline_envelope receive = message;
    if (choice == 1 || choice == 3) receive.source = TAGLINE_ANY_SOURCE;
    if (choice == 2 || choice == 3) receive.tag = TAGLINE_ANY_TAG;
    void* cookie = nullptr;
    for (int i = 0; i < pairs; ++i) {
      ASSERT_EQ(tagline_post_receive(matcher, receive, nullptr, &cookie, nullptr), TAGLINE_QUEUED);
      ASSERT_EQ(i % 2 == 0 ? tagline_arrive(matcher, message, nullptr, &cookie)
                           : tagline_match_message(matcher, message, &cookie),
                TAGLINE_MATCHED);
    }
  }

  // Receives and messages of a context of their own, and so many searches in vain of both sides
  // that readers are let in.
  static constexpr std::uint64_t kBystanders = 5000;
  static void let_readers_in(tagline_matcher* matcher, int bystanders, bool are_there) {
    void* cookie = nullptr;
    for (int i = 0; i < bystanders && !are_there; ++i) {
      tagline_append_receive(matcher, {kBystanders, 0, i}, nullptr, nullptr);
      tagline_append_message(matcher, {kBystanders, 1, i}, nullptr);
    }
    for (int i = 0; i < bystanders; ++i) {
      tagline_match_message(matcher, {kBystanders, 2, i}, &cookie);
      tagline_probe(matcher, {kBystanders, 2, i}, &cookie, nullptr);
    }
  }

  // What a matcher holds, in no particular order.
  static Outcome contents(tagline_matcher* matcher) {
    std::vector<std::uintptr_t> cookies[2];
    tagline_for_each(
        matcher,
        [](void* user, tagline_side side, tagline_envelope envelope, void* cookie) {
          if (envelope.context_id == kBystanders) return;
          static_cast<std::vector<std::uintptr_t>*>(user)[side].push_back(
              reinterpret_cast<std::uintptr_t>(cookie));
        },
        cookies);
    return remains_outcome(cookies[TAGLINE_POSTED], cookies[TAGLINE_UNEXPECTED]);
  }

  // Fills both queues of an empty matcher and of the model alike.
  void prepare(tagline_matcher* matcher, Model& model, std::mt19937& random) const {
    std::vector<Call> calls;
    plan(calls, kStart, random);
    std::uintptr_t cookie = kStart + calls.size();
    const auto add = [&](Kind kind, std::int32_t source, unsigned times) {
      for (unsigned i = 0; i < times; ++i) {
        calls.push_back({{kind, {0, source, 0}, cookie++}, {}, {}, 0, 0});
      }
    };
    // From one source receives wait, from the other messages; some of each are taken again.
    if (GetParam().ahead > 0) {
      add(Kind::post_receive, 0, GetParam().ahead);
      add(Kind::arrive, 1, GetParam().ahead);
      add(Kind::arrive, 0, random() % GetParam().ahead);
      add(Kind::post_receive, 1, random() % GetParam().ahead);
    }
    make(matcher, calls, GetParam().bystanders);
    for (const Call& call : calls) model.play(call.operation, call.cookie);
  }
};

TEST_P(Rounds, CanHaveBeenMadeOneByOne) {
  const Shape& shape = GetParam();
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                         seconds_in_all() / static_cast<double>(all_shapes().size())));
  const tagline_options options = {shape.queue.c_str(), nullptr, 0, 0, 1, nullptr, 0, 0};
  MatcherPointer matcher = make_matcher(options);
  Model before;
  Round round(static_cast<std::size_t>(shape.threads));
  Barrier barrier(shape.threads);
  std::atomic<bool> stop{false};
  std::uint64_t rounds = 0;
  bool is_new = true;

  const auto run = [&](std::size_t thread) {
    std::mt19937 random(static_cast<std::uint32_t>(thread) + 1);
    std::mt19937 common(0);  // tells all threads the same
    while (true) {
      if (thread == 0) {
        tagline_drop_context(matcher.get(), 0, nullptr, nullptr);
        before = Model();
        prepare(matcher.get(), before, random);
        let_readers_in(matcher.get(), shape.bystanders, !is_new);
        is_new = false;
      }
      plan(round[thread], 1 + thread * 100, random);
      const bool together = common() % 16 == 0;
      const bool storms = shape.queue.starts_with("sharded") && (together || random() % 8 == 0);
      if (storms) {
        round[thread].clear();
        storm(matcher.get(), thread, together ? 1500 : 300, random);
      }
      barrier.wait();
      if (storms) {
        storm(matcher.get(), thread, 30, random);
      } else {
        make(matcher.get(), round[thread], shape.bystanders);
      }
      barrier.wait();
      if (thread == 0) {
        ++rounds;
        // Whoever storms has a receive of its own waiting at most.
        const auto storming = static_cast<std::uint64_t>(std::count_if(
            round.begin(), round.end(), [](const auto& calls) { return calls.empty(); }));
        if (random() % 2 == 0) take_some(matcher.get(), round[0], random);
        const std::string difference = explain(before, round, contents(matcher.get()), storming);
        EXPECT_EQ(difference, "") << shape.name() << ", round " << rounds;
        stop = !difference.empty() || Clock::now() > deadline;
        // Now and then a new one, while nobody calls: how it grows is a part of it.
        is_new = rounds % 512 == 0;
        if (is_new) matcher = make_matcher(options);
      }
      barrier.wait();
      if (stop) return;
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < shape.threads; ++t) others.emplace_back(run, static_cast<std::size_t>(t));
  run(0);
  for (std::thread& other : others) other.join();
  RecordProperty("rounds", static_cast<int>(rounds));
}

INSTANTIATE_TEST_SUITE_P(Every, Rounds, testing::ValuesIn(all_shapes()),
                         [](const auto& shape) { return shape.param.name(); });

// The judge itself: it accepts what can be, and nothing else.
TEST(Explain, TellsRightFromWrong) {
  const auto at = [](int ns) { return Call::Time(std::chrono::nanoseconds(ns)); };
  const auto post = [&](std::uintptr_t own, int begin, int end, int status, std::uintptr_t got) {
    return Call{{Kind::post_receive, {0, 1, 1}, own}, at(begin), at(end), status, got};
  };
  const auto arrival = [&](std::uintptr_t own, int begin, int end, int status, std::uintptr_t got) {
    return Call{{Kind::arrive, {0, 1, 1}, own}, at(begin), at(end), status, got};
  };
  const Outcome nothing = remains_outcome({}, {});
  const Model empty;
  // At the same time: who is first is open, but one of them has to be.
  EXPECT_EQ(
      explain(empty, {{post(1, 0, 9, TAGLINE_MATCHED, 2)}, {arrival(2, 0, 9, TAGLINE_QUEUED, 0)}},
              nothing),
      "");
  EXPECT_EQ(
      explain(empty, {{post(1, 0, 9, TAGLINE_QUEUED, 0)}, {arrival(2, 0, 9, TAGLINE_MATCHED, 1)}},
              nothing),
      "");
  EXPECT_NE(
      explain(empty, {{post(1, 0, 9, TAGLINE_QUEUED, 0)}, {arrival(2, 0, 9, TAGLINE_QUEUED, 0)}},
              remains_outcome({1}, {2})),
      "")
      << "a lost match";
  EXPECT_NE(
      explain(empty, {{post(1, 0, 9, TAGLINE_MATCHED, 2)}, {arrival(2, 0, 9, TAGLINE_MATCHED, 1)}},
              nothing),
      "")
      << "matched twice";
  EXPECT_NE(
      explain(empty, {{post(1, 0, 3, TAGLINE_MATCHED, 2)}, {arrival(2, 5, 9, TAGLINE_QUEUED, 0)}},
              nothing),
      "")
      << "a message from the future";
  EXPECT_NE(explain(empty,
                    {{post(1, 0, 3, TAGLINE_QUEUED, 0), post(3, 4, 5, TAGLINE_QUEUED, 0)},
                     {arrival(2, 6, 9, TAGLINE_MATCHED, 3)}},
                    remains_outcome({1}, {})),
            "")
      << "a receive that overtakes";
  EXPECT_NE(
      explain(empty, {{post(1, 0, 9, TAGLINE_MATCHED, 2)}, {arrival(2, 0, 9, TAGLINE_QUEUED, 0)}},
              remains_outcome({}, {2})),
      "")
      << "an entry that stays";
}

}  // namespace
}  // namespace tagline::test
