// SPDX-License-Identifier: BSD-3-Clause
#include "pml_goals.hpp"

#include <functional>

namespace bench {
namespace {

struct Found {
  std::string where;
  Spread value;
};

// Ratios of one goal, and the worst of them.
class Judge {
 public:
  explicit Judge(const Comparison& comparison)
      : comparison_(comparison),
        ours_(comparison.find("tagline")),
        keys_(ours_ == nullptr ? std::set<Key>{} : comparison.keys()) {}

  using Wanted = std::function<bool(const Key&)>;
  using Ratio = std::function<std::optional<Spread>(const Key&)>;

  // The median of every point that is wanted has to be at least (at most) `limit`.
  void limit(const std::string& goal, const Wanted& wanted, const Ratio& ratio, double limit,
             bool at_least) {
    std::vector<Found> missed;
    std::optional<Found> worst;
    std::size_t points = 0;
    for (const Key& key : keys_) {
      if (!wanted(key)) continue;
      const auto value = ratio(key);
      if (!value) continue;
      ++points;
      const Found found{place(key), *value};
      const auto worse = [&](double a, double b) { return at_least ? a < b : a > b; };
      if (!worst || worse(value->median, worst->value.median)) worst = found;
      if (worse(value->median, limit)) missed.push_back(found);
    }
    if (points == 0) {
      goals.push_back({goal, "", "not measured"});
      return;
    }
    const char* const pattern = worst->value.median >= 10 ? "%.0f" : "%.2f";
    std::string text = (points == 1 ? "" : missed.empty() ? "worst " : "missed at ");
    if (missed.empty()) missed.push_back(*worst);
    constexpr std::size_t kMostNamed = 6;
    for (std::size_t i = 0; i < missed.size() && i < kMostNamed; ++i) {
      text += (i == 0 ? "" : "; ") + spread_cell(missed[i].value, pattern) + " " + missed[i].where;
    }
    if (missed.size() > kMostNamed) {
      text += "; and " + std::to_string(missed.size() - kMostNamed) + " more";
    }
    const bool met = at_least ? worst->value.median >= limit : worst->value.median <= limit;
    if (points > 1) text += " of " + std::to_string(points);
    goals.push_back({goal, text, met ? "yes" : "no"});
  }

  // How much better than another pml.
  Ratio against(const std::string& name) const {
    const Runner* const other = comparison_.find(name);
    return [this, other](const Key& key) -> std::optional<Spread> {
      if (other == nullptr || !ours_->results.contains(key) || !other->results.contains(key)) {
        return std::nullopt;
      }
      return ratio(key, other->results.at(key), ours_->results.at(key));
    };
  }

  // Our own time against that of the empty queue, in the same jobs.
  std::optional<Spread> against_empty(const Key& key) const {
    Key empty = key;
    empty.depth = 0;
    if (!ours_->results.contains(key) || !ours_->results.contains(empty)) return std::nullopt;
    return ratio(key, ours_->results.at(key), ours_->results.at(empty));
  }

  std::vector<Goal> goals;

 private:
  static std::string place(const Key& key) {
    if (key.measure == "time") return key.which;
    if (key.depth != 0 || key.which != "posted") {
      return key.which + " " + std::to_string(key.depth);
    }
    return std::to_string(key.message_bytes) + " B";
  }

  const Comparison& comparison_;
  const Runner* ours_;
  std::set<Key> keys_;
};

bool is_stream(const Key& key, const std::string& measure) {
  return key.measure == measure && key.which == "posted" && key.depth == 0 && key.cache == "hot";
}

}  // namespace

std::vector<Goal> judge_pml(const Comparison& streams, const Comparison& queues,
                            const Comparison& programs, const Comparison& tcp) {
  std::vector<Goal> goals;
  const auto take = [&](Judge& judge) {
    goals.insert(goals.end(), judge.goals.begin(), judge.goals.end());
  };
  const auto measure_goals = [](Judge& judge, const std::string& suffix) {
    for (const char* const measure : {"latency", "bandwidth", "bidirectional", "rate"}) {
      judge.limit(
          measure + suffix + ", any size: at least 0.97 of ob1's",
          [measure](const Key& key) { return is_stream(key, measure); }, judge.against("ob1"), 0.97,
          true);
    }
  };

  Judge stream(streams);
  measure_goals(stream, "");
  for (const char* const measure : {"latency", "rate"}) {
    const auto small = [measure](const Key& key) {
      return is_stream(key, measure) && key.message_bytes <= 64;
    };
    stream.limit(std::string(measure) + ", 0 to 64 B: at least 1.05 times as good as ob1's", small,
                 stream.against("ob1"), 1.05, true);
    if (measure == std::string("rate")) {
      stream.limit("rate, 0 to 64 B: at least 1.4 times ucx's", small, stream.against("ucx"), 1.4,
                   true);
    }
  }
  take(stream);

  Judge queue(queues);
  for (const auto& [depth, limit] : {std::pair{1024, 1.05}, std::pair{16384, 1.2}}) {
    queue.limit(
        "hot, time at depth " + std::to_string(depth) + " / depth 0, any queue: at most " +
            format("%g", limit),
        [depth = depth](const Key& key) {
          return key.measure == "latency" && key.cache == "hot" && key.depth == depth &&
                 key.which != "random";
        },
        [&](const Key& key) { return queue.against_empty(key); }, limit, false);
  }
  queue.limit(
      "cold, time at depth 16384 / depth 0, any queue: at most 1.5",
      [](const Key& key) {
        return key.measure == "latency" && key.cache == "cold" && key.depth == 16384 &&
               key.which != "random";
      },
      [&](const Key& key) { return queue.against_empty(key); }, 1.5, false);
  const auto drain = [](const Key& key) {
    return key.which == "random" && key.cache == "hot" && key.depth == 16384;
  };
  queue.limit("draining 16384 receives in random order: at least 150 times faster than ob1", drain,
              queue.against("ob1"), 150, true);
  queue.limit("draining 16384 receives in random order: faster than ucx", drain,
              queue.against("ucx"), 1, true);
  take(queue);

  Judge program(programs);
  for (const char* const name : {"lammps", "halo"}) {
    program.limit(
        std::string(name) + ": not slower than ob1 (within 1 %)",
        [name](const Key& key) { return key.measure == "time" && key.which == name; },
        program.against("ob1"), 0.99, true);
  }
  take(program);

  Judge over_tcp(tcp);
  measure_goals(over_tcp, " over tcp");
  take(over_tcp);
  return goals;
}

}  // namespace bench
