// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/rounds.hpp"

#include <algorithm>
#include <sstream>

namespace tagline::test {
namespace {

class Search {
 public:
  Search(const Round& round, Outcome after, std::uint64_t others)
      : round_(round), next_(round.size(), 0), after_(std::move(after)), others_(others) {
    std::sort(after_.dropped.begin(), after_.dropped.end());
  }

  bool from(const Model& model) {
    // Only calls that began before every other one that is left has ended can be next.
    Call::Time first_end = Call::Time::max();
    for (std::size_t t = 0; t < round_.size(); ++t) {
      if (next_[t] < round_[t].size()) first_end = std::min(first_end, round_[t][next_[t]].end);
    }
    if (first_end == Call::Time::max()) return is_what_was_left(model);
    for (std::size_t t = 0; t < round_.size(); ++t) {
      if (next_[t] == round_[t].size() || round_[t][next_[t]].begin > first_end) continue;
      const Call& call = round_[t][next_[t]];
      Model copy = model;
      if (!is_what_came(copy.play(call.operation, call.cookie), call)) continue;
      ++next_[t];
      if (from(copy)) return true;
      --next_[t];
    }
    return false;
  }

 private:
  bool is_what_came(Outcome outcome, const Call& call) const {
    if (outcome.status != call.status || outcome.cookie != call.cookie) return false;
    if (call.operation.kind == Operation::Kind::statistics) {
      return call.unexpected == outcome.unexpected && call.posted >= outcome.posted &&
             call.posted - outcome.posted <= others_;
    }
    std::vector<std::uintptr_t> dropped = call.dropped;
    std::sort(dropped.begin(), dropped.end());
    std::sort(outcome.dropped.begin(), outcome.dropped.end());
    return dropped == outcome.dropped;
  }
  bool is_what_was_left(const Model& model) const {
    Outcome left = model.remains(0);
    std::sort(left.dropped.begin(), left.dropped.end());
    return left.posted == after_.posted && left.unexpected == after_.unexpected &&
           left.dropped == after_.dropped;
  }

  const Round& round_;
  std::vector<std::size_t> next_;
  Outcome after_;
  const std::uint64_t others_;
};

}  // namespace

std::string explain(const Model& before, const Round& round, const Outcome& after,
                    std::uint64_t others) {
  if (Search(round, after, others).from(before)) return {};
  std::ostringstream text;
  text << "no order of these calls follows MPI's rules (kinds as in history.hpp, ns)";
  const auto list = [&](const char* title, const Outcome& outcome) {
    text << "\n  " << title << " " << outcome.posted << " receives, " << outcome.unexpected
         << " messages:";
    for (const std::uintptr_t cookie : outcome.dropped) text << " " << cookie;
  };
  list("before", before.remains(0));
  Call::Time start = Call::Time::max();
  for (const auto& calls : round) {
    for (const Call& call : calls) start = std::min(start, call.begin);
  }
  for (std::size_t t = 0; t < round.size(); ++t) {
    for (const Call& call : round[t]) {
      text << "\n  thread " << t << " [" << (call.begin - start).count() << ", "
           << (call.end - start).count() << "] kind " << static_cast<int>(call.operation.kind)
           << " source " << call.operation.envelope.source << " tag " << call.operation.envelope.tag
           << " cookie " << call.operation.cookie << ": status " << call.status << " cookie "
           << call.cookie;
      for (const std::uintptr_t cookie : call.dropped) text << ", dropped " << cookie;
      if (call.operation.kind == Operation::Kind::statistics) {
        text << ", " << call.posted << " receives, " << call.unexpected << " messages";
      }
    }
  }
  list("after", after);
  return text.str();
}

}  // namespace tagline::test
