// SPDX-License-Identifier: BSD-3-Clause
#include "engine_goals.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

namespace bench {
namespace {

// Nanoseconds of Open MPI 4.1's custommatch engines behind the whole queue, and
// of its own linked list in the same runs (2-core AMD EPYC, AVX-512): the ratio to
// the list is what the structures of the same idea have to beat.
struct Custommatch {
  std::size_t depth;
  double list, arrays, vector, fuzzy_word, fuzzy_short, fuzzy_byte;
};
constexpr Custommatch kCustommatch[] = {
    {0, 4.9, 8.3, 21, 16, 17, 20},
    {8, 11, 15, 17, 14, 14, 15},
    {32, 36, 37, 21, 19, 18, 25},
    {128, 149, 129, 24, 19, 18, 23},
    {512, 617, 505, 60, 70, 29, 77},
    {1024, 1283, 1054, 113, 130, 49, 144},
    {4096, 4931, 3983, 1394, 1544, 198, 555},
    {16384, 19924, 15852, 5620, 6434, 2376, 2904},
    {65536, 79240, 63270, 48827, 34585, 9480, 11727},
};

const std::set<std::string> kOurs{"plain_list", "hash_bins", "exact_hash", "headroom"};

std::string where(const EngineRow& row) {
  std::string text = row.side + ", " + row.order + ", depth " + std::to_string(row.depth);
  if (row.keys != "one_source") text += ", " + row.keys;
  if (row.wildcard_percent > 0) text += ", " + std::to_string(row.wildcard_percent) + " % wild";
  return text;
}

class Judge {
 public:
  Judge(const std::vector<std::vector<EngineRow>>& runs, const std::string& best_isa) {
    for (const std::vector<EngineRow>& rows : runs) {
      Run run;
      for (const EngineRow& row : rows) {
        if (row.isa == best_isa || row.isa.empty()) run.rows.push_back(row);
      }
      for (const EngineRow& row : run.rows) run.by_name[name(row.queue(), row)] = &row;
      runs_.push_back(std::move(run));
    }
  }

  using Condition = std::function<bool(const EngineRow&)>;
  using Figure = std::function<std::optional<double>(const EngineRow&)>;

  // The largest figure of one structure where the condition holds.
  void limit(const std::string& goal, const std::string& queue, const Condition& condition,
             const Figure& figure, double most, const char* unit = "x") {
    const EngineRow* worst = nullptr;
    double largest = 0;
    int missed = 0;
    int count = 0;
    for (const EngineRow& row : runs_.front().rows) {
      if (row.queue() != queue || !condition(row)) continue;
      const std::optional<double> value = over_runs(row, figure);
      if (!value) continue;
      ++count;
      if (*value > most) {
        ++missed;
        verdict.in_doubt.merge(asked_for_);
      }
      if (worst == nullptr || *value > largest) {
        worst = &row;
        largest = *value;
      }
    }
    if (worst == nullptr) {
      verdict.goals.push_back({goal, "", "not measured"});
      return;
    }
    std::string measured = format(largest < 100 ? "%.2f" : "%.0f", largest) + unit + " at most (" +
                           where(*worst) + ")";
    if (missed > 0) {
      measured += "; missed at " + std::to_string(missed) + " of " + std::to_string(count);
    }
    verdict.goals.push_back({goal, measured, missed == 0 ? "yes" : "no"});
  }
  // What is no time, or takes long: it is not measured again.
  void limit_once(const std::string& goal, const std::string& queue, const Condition& condition,
                  const Figure& figure, double most, const char* unit) {
    std::set<std::string> in_doubt = verdict.in_doubt;
    limit(goal, queue, condition, figure, most, unit);
    verdict.in_doubt = std::move(in_doubt);
  }

  // Time / time of another structure at the same point.
  Figure against(const std::string& queue) const {
    return [this, queue](const EngineRow& row) -> std::optional<double> {
      const EngineRow* other = find(queue, row);
      if (other == nullptr) return std::nullopt;
      return ratio_by_rounds(row.rounds, other->rounds);
    };
  }

  // Time / time of the fastest other structure of the library at the same point.
  std::optional<double> against_best(const EngineRow& row) const {
    const EngineRow* best = nullptr;
    double largest = 0;
    for (const EngineRow& other : run_->rows) {
      if (other.queue() == row.queue() || kOurs.count(other.structure) != 0) continue;
      if (!same_point(other, row)) continue;
      const double ratio = ratio_by_rounds(row.rounds, other.rounds);
      if (ratio > largest) best = &other, largest = ratio;
    }
    if (best == nullptr) return std::nullopt;
    asked_for_.insert(best->benchmark);
    return largest;
  }

  // In the run that is looked at.
  const EngineRow* find(const std::string& queue, const EngineRow& point) const {
    const auto found = run_->by_name.find(name(queue, point));
    if (found == run_->by_name.end()) return nullptr;
    asked_for_.insert(found->second->benchmark);
    return found->second;
  }

  Verdict verdict;

 private:
  struct Run {
    std::vector<EngineRow> rows;
    std::map<std::string, const EngineRow*> by_name;
  };

  static auto axes(const EngineRow& row) {
    return std::tie(row.side, row.order, row.keys, row.holes, row.cache, row.operation, row.depth,
                    row.wildcard_percent);
  }
  static bool same_point(const EngineRow& a, const EngineRow& b) { return axes(a) == axes(b); }
  static std::string name(const std::string& queue, const EngineRow& row) {
    return queue + "/" + row.side + row.order + row.keys + row.holes + row.cache + row.operation +
           std::to_string(row.depth) + "/" + std::to_string(row.wildcard_percent);
  }

  // The median of the runs that have it; asked_for_ is then what it is made of.
  std::optional<double> over_runs(const EngineRow& row, const Figure& figure) {
    asked_for_.clear();
    std::vector<double> values;
    for (const Run& run : runs_) {
      run_ = &run;
      const EngineRow* const same = find(row.queue(), row);
      const std::optional<double> value = same == nullptr ? std::nullopt : figure(*same);
      if (value) values.push_back(*value);
    }
    if (values.empty()) return std::nullopt;
    return spread_of(values).median;
  }

  std::vector<Run> runs_;
  const Run* run_ = nullptr;
  mutable std::set<std::string> asked_for_;  // benchmarks
};

bool is_plain(const EngineRow& row) {
  return row.operation == "post_and_match" && row.cache == "hot" && row.holes == "dense";
}
bool is_exact(const EngineRow& row) { return is_plain(row) && row.wildcard_percent == 0; }
// Of equal keys the oldest matches, so nothing lies ahead of the match.
bool is_behind_queue(const EngineRow& row) {
  return is_exact(row) && (row.order == "last" || row.order == "last_once_deep") &&
         row.keys != "all_equal";
}
std::optional<double> to_l0(const EngineRow& row) { return row.relative_to_l0; }

// How much the time grows when the depth does, as an exponent: 1 is linear.
std::optional<double> exponent(const Judge& judge, const EngineRow& row) {
  EngineRow shallow = row;
  shallow.depth = 1024;
  const EngineRow* from = judge.find(row.queue(), shallow);
  if (from == nullptr || row.depth <= shallow.depth) return std::nullopt;
  return std::log(row.ns / from->ns) /
         std::log(static_cast<double>(row.depth) / static_cast<double>(shallow.depth));
}

void judge_packed(Judge& judge, const std::string& queue, double Custommatch::*engine) {
  judge.limit(
      queue + " / plain_list against custommatch's / its list, every depth: below 1", queue,
      [](const EngineRow& row) {
        return is_exact(row) && row.order == "last" && row.keys == "one_source" &&
               row.side == "posted";
      },
      [&judge, engine](const EngineRow& row) -> std::optional<double> {
        const EngineRow* list = judge.find("plain_list", row);
        const auto* theirs =
            std::find_if(std::begin(kCustommatch), std::end(kCustommatch),
                         [&](const Custommatch& entry) { return entry.depth == row.depth; });
        if (list == nullptr || theirs == std::end(kCustommatch)) return std::nullopt;
        return ratio_by_rounds(row.rounds, list->rounds) / ((*theirs).*engine / theirs->list);
      },
      1);
  judge.limit(
      queue + " / linear, depth 0 and 1: at most 1.5", queue,
      [](const EngineRow& row) { return is_behind_queue(row) && row.depth <= 1; },
      judge.against("linear"), 1.5);
}

}  // namespace

double ratio_by_rounds(const std::vector<double>& times, const std::vector<double>& to) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(times.size(), to.size()); ++i)
    ratios.push_back(times[i] / to[i]);
  return spread_of(std::move(ratios)).median;
}

EngineRow engine_row(const Record& record) {
  EngineRow row;
  row.benchmark = record["benchmark"];
  row.structure = record["structure"];
  row.variant = record["variant"];
  row.isa = record["isa"];
  row.side = record["side"];
  row.order = record["order"];
  row.keys = record["keys"];
  row.holes = record["holes"];
  row.cache = record["cache"];
  row.operation = record["operation"];
  row.depth = record["depth"];
  row.wildcard_percent = record["wildcard_percent"];
  const auto number = [&](const char* field) -> std::optional<double> {
    const auto found = record.find(field);
    if (found == record.end() || found->is_null()) return std::nullopt;
    return found->get<double>();
  };
  row.ns = number("ns_per_match").value_or(0);
  row.rounds = record[kRoundsField].get<std::vector<double>>();
  row.relative_to_l0 = number("relative_to_linear_at_depth_0");
  row.relative_to_cold_empty = number("relative_to_cold_depth_0");
  row.ns_max = number("ns_max");
  row.lines = number("lines_per_match");
  if (row.lines) row.all_lines = *row.lines + number("matcher_lines_per_match").value_or(0);
  return row;
}

Verdict judge(const std::vector<std::vector<EngineRow>>& runs, const std::string& best_isa) {
  Judge judge(runs, best_isa);
  const char* const adaptive = "adaptive";

  for (const auto& [side, most] : {std::pair{"posted", 1.1}, {"unexpected", 1.3}}) {
    judge.limit(
        format("adaptive / linear, depth 0 and 1, ", 0) + side + format(": at most %.1f", most),
        adaptive,
        [side = std::string(side)](const EngineRow& row) {
          return is_behind_queue(row) && row.depth <= 1 && row.side == side;
        },
        judge.against("linear"), most);
  }
  judge.limit("adaptive / L0, behind the whole queue, any keys, both sides: at most 1.3", adaptive,
              is_behind_queue, to_l0, 1.3);
  judge.limit(
      "adaptive / L0, a queue of equal keys, append and match the oldest: at most 1.3", adaptive,
      [](const EngineRow& row) {
        return is_exact(row) && row.order == "last" && row.keys == "all_equal";
      },
      to_l0, 1.3);
  judge.limit(
      "adaptive / L0, in the order posted up to 4096: at most 1.5", adaptive,
      [](const EngineRow& row) {
        return is_exact(row) && row.order == "first" && row.depth <= 4096;
      },
      to_l0, 1.5);
  judge.limit(
      "adaptive / L0, random order up to 1024: at most 2.5", adaptive,
      [](const EngineRow& row) {
        return is_exact(row) && row.order == "random" && row.depth <= 1024;
      },
      to_l0, 2.5);
  judge.limit(
      "adaptive / L0, random order of a few, once 1024: at most 2.5", adaptive,
      [](const EngineRow& row) { return is_exact(row) && row.order == "random_once_deep"; }, to_l0,
      2.5);
  judge.limit(
      "adaptive / L0, random order, each comes again, up to 1024: at most 2.5", adaptive,
      [](const EngineRow& row) {
        return is_exact(row) && row.order == "random_again" && row.depth <= 1024;
      },
      to_l0, 2.5);
  // Of keys that are spread, of irregular ones, and where each match comes again. The bare table
  // with slots of the size of adaptive's shows what these cost, and is measured again where
  // adaptive is.
  for (const auto& [irregular, again] : {std::pair{false, false}, {true, false}, {false, true}}) {
    const auto is_memory_bound = [irregular = irregular, again = again](const EngineRow& row) {
      return is_exact(row) && (row.keys == "irregular") == irregular &&
             (again ? row.order == "random_again" && row.depth > 1024
                    : (row.order == "first" && row.depth > 4096) ||
                          (row.order == "random" && row.depth > 1024));
    };
    const auto to_bare_table = [&](const EngineRow& row) {
      judge.find("exact_hash:32", row);
      return judge.against("exact_hash")(row);
    };
    const std::string where = std::string(" / exact_hash, ") +
                              (again ? "random, each comes again, beyond 1024"
                                     : "in order beyond 4096 and random beyond 1024") +
                              (irregular ? ", irregular keys" : "");
    judge.limit(adaptive + where + ": at most 1.3", adaptive, is_memory_bound, to_bare_table, 1.3);
    judge.limit(
        "exact_hash with slots of 32 bytes, as adaptive's" + where + " (the limit, no goal)",
        "exact_hash:32", is_memory_bound, to_bare_table, HUGE_VAL);
    judge.verdict.goals.back().met = "-";
  }
  for (const bool again : {false, true}) {
    judge.limit(
        std::string("adaptive / L0, 10 and 100 % wildcards up to 1024, ") +
            (again ? "each comes again" : "every order") + ": at most 4",
        adaptive,
        [again](const EngineRow& row) {
          return is_plain(row) && row.wildcard_percent >= 10 && row.depth <= 1024 &&
                 (row.order == "random_again") == again;
        },
        to_l0, 4);
  }
  judge.limit(
      "adaptive never linear in depth: exponent of growth beyond 1024 (1: linear) at most 0.9",
      adaptive, is_plain, [&](const EngineRow& row) { return exponent(judge, row); }, 0.9, "");
  const auto best = [&](const EngineRow& row) { return judge.against_best(row); };
  judge.limit(
      "adaptive / best other structure, behind the whole queue: at most 1.25", adaptive,
      [](const EngineRow& row) { return is_plain(row) && row.order == "last"; }, best, 1.25);
  for (const bool again : {false, true}) {
    judge.limit(
        std::string("adaptive / best other structure, ") +
            (again ? "each comes again" : "other orders") + ": at most 1.5",
        adaptive,
        [again](const EngineRow& row) {
          return is_plain(row) && row.order != "last" && (row.order == "random_again") == again;
        },
        best, 1.5);
  }
  // The bare table does the same at both depths, for as many lines: what differs is that each
  // match finds its slot on another page. So it shows what can be reached, and is measured again
  // where adaptive is.
  const auto to_cold_empty = [&](const EngineRow& row) -> std::optional<double> {
    judge.find("exact_hash", row);
    return row.relative_to_cold_empty;
  };
  for (const bool is_limit : {false, true}) {
    for (const char* const order : {"last", "random"}) {
      const char* const queue = is_limit ? "exact_hash" : adaptive;
      judge.limit(
          std::string(queue) + " cold, depth 16384 / depth 0, " +
              (order == std::string("last") ? "newest entry" : "any entry") +
              (is_limit ? " (the limit, no goal)" : ": at most 1.5"),
          queue,
          [order = std::string(order)](const EngineRow& row) {
            return row.cache == "cold" && row.depth == 16384 && row.order == order;
          },
          to_cold_empty, is_limit ? HUGE_VAL : 1.5);
      if (is_limit) judge.verdict.goals.back().met = "-";
    }
  }
  judge.limit_once(
      "adaptive, lines of queue memory per exact match (the first searches, which make an index, "
      "apart): at most 4",
      adaptive, [](const EngineRow& row) { return is_exact(row); },
      [](const EngineRow& row) { return row.lines; }, 4, " lines");
  judge.limit_once(
      "the same, with the lines of the matcher itself (no goal)", adaptive,
      [](const EngineRow& row) { return is_exact(row); },
      [](const EngineRow& row) { return row.all_lines; }, HUGE_VAL, " lines");
  judge.verdict.goals.back().met = "-";
  judge_packed(judge, "array", &Custommatch::arrays);
  judge_packed(judge, "vector", &Custommatch::vector);
  judge_packed(judge, "fuzzy:8", &Custommatch::fuzzy_byte);
  judge_packed(judge, "fuzzy:16", &Custommatch::fuzzy_short);
  judge_packed(judge, "fuzzy:32", &Custommatch::fuzzy_word);
  judge.limit(
      "vector, 100 % wildcards / none, behind the whole queue: at most 1.5", "vector",
      [](const EngineRow& row) {
        return is_plain(row) && row.order == "last" && row.wildcard_percent == 100;
      },
      [&](const EngineRow& row) -> std::optional<double> {
        EngineRow exact = row;
        exact.wildcard_percent = 0;
        const EngineRow* base = judge.find(row.queue(), exact);
        if (base == nullptr) return std::nullopt;
        return *row.relative_to_l0 / *base->relative_to_l0;  // they do not take turns
      },
      1.5);
  judge.limit(
      "adaptive / linear, draining 65536 in random order: at most 0.001", adaptive,
      [](const EngineRow& row) {
        return is_exact(row) && row.order == "random" && row.depth == 65536;
      },
      [&](const EngineRow& row) -> std::optional<double> {
        const std::optional<double> ratio = judge.against("linear")(row);
        return ratio ? std::optional(*ratio * 1000) : std::nullopt;
      },
      1, " thousandths");
  judge.limit(
      "linear / plain_list, behind the whole queue up to 1024: at most 1.1", "linear",
      [](const EngineRow& row) {
        return is_behind_queue(row) && row.depth <= 1024 && row.keys == "one_source";
      },
      judge.against("plain_list"), 1.1);
  for (const char* const queue : {"adaptive", "indexed"}) {
    const auto us_max = [](const EngineRow& row) -> std::optional<double> {
      return row.ns_max ? std::optional(*row.ns_max * 1e-3) : std::nullopt;
    };
    const std::string goal =
        std::string(queue) + ", worst single call, growth and first wildcards, at most 100 us: ";
    judge.limit(
        goal + "up to 65536", queue,
        [](const EngineRow& row) { return is_plain(row) && row.depth <= 65536; }, us_max, 100,
        " us");
    judge.limit_once(
        goal + "a million", queue,
        [](const EngineRow& row) { return is_plain(row) && row.depth > 65536; }, us_max, 100,
        " us");
  }
  return judge.verdict;
}

}  // namespace bench
