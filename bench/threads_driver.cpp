// SPDX-License-Identifier: BSD-3-Clause
//
// Runs threads.cpp in several processes and reports: the prototype figures of M. Dosanjh,
// 2017 (6.2 to 6.6), every matcher against the single lock, with the same lock and with the
// best one, and how far shards scale. Ratios are taken within a turn, of points that run next to
// each other there: the machine's speed may change between turns, and the best of one thread's
// turns are found sooner than those in which two had all of their cores.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <tuple>

#include "benchmarks.hpp"
#include "mpirun.hpp"
#include "report.hpp"

namespace bench {
namespace {

struct Point {
  std::string threading;  // empty: none, for one thread; apart: a matcher for each thread
  std::string lock;
  std::string structure;
  int threads;
  int length;
  int umq_length;
  int wildcard_percent = 0;
  int keys = 1;  // of each thread; 0: one for all
  bool arrive_first = false;
  std::string wildcards = {};  // t: of two kinds in turns; l: one that waits, see threads.cpp
  auto operator<=>(const Point&) const = default;

  std::string matcher() const {
    return threading + (lock.empty() ? "" : "@" + lock) + (threading.empty() ? "" : ":") +
           structure;
  }
  std::string text() const {
    std::string text = matcher();
    for (const int number : {threads, length, umq_length, wildcard_percent}) {
      text += "," + std::to_string(number);
    }
    return text + wildcards + "," + std::to_string(keys) + (arrive_first ? ",arrive" : ",post");
  }
  Point with(const std::string& its_threading, const std::string& its_lock,
             const std::string& its_structure) const {
    Point point = *this;
    point.threading = its_threading;
    point.lock = its_lock;
    point.structure = its_structure;
    return point;
  }
};

constexpr const char* kManyShards = "sharded@1024";
// Of each shard, see BiasedLock in match/biased_lock.hpp.
constexpr const char* kShardLock = "patient, biased to a thread";
constexpr const char* kLocks[] = {"mcs", "spin", "patient", "ticket", "mutex"};

// By process, and by turn of it.
using Rates = std::map<Point, std::vector<std::vector<double>>>;

// What is compared stands together.
void sort_points(std::vector<Point>& points) {
  const auto place = [](const Point& point) {
    return std::tie(point.length, point.umq_length, point.wildcards, point.wildcard_percent,
                    point.keys, point.arrive_first);
  };
  std::sort(points.begin(), points.end(), [&](const Point& a, const Point& b) {
    return place(a) != place(b) ? place(a) < place(b) : a < b;
  });
  points.erase(std::unique(points.begin(), points.end()), points.end());
}

// A single lock and what replaces it.
std::vector<Point> figure_points(bool quick, const std::vector<int>& lengths) {
  std::vector<Point> points;
  const auto lists = [&](int threads, int length, int umq_length, int wildcards, bool all_locks) {
    for (const char* lock : kLocks) {
      if (!all_locks && lock != kLocks[0] && lock != kLocks[1]) continue;
      points.push_back({"locked", lock, "linear", threads, length, umq_length, wildcards});
      points.push_back({"tail", lock, "linear", threads, length, umq_length, wildcards});
      if (threads <= 2 && (lock == kLocks[0] || lock == kLocks[1])) {
        points.push_back({"binned", lock, "linear", threads, length, umq_length, wildcards});
      }
    }
  };
  const auto adaptive = [&](Point at) {
    for (const char* lock : {"mcs", "spin", "patient"}) {
      points.push_back(at.with("locked", lock, "adaptive"));
    }
    points.push_back(at.with("tail", "spin", "adaptive"));
    points.push_back(at.with("sharded", "", "adaptive"));
  };
  for (const int length : lengths) {
    lists(2, length, length, 0, true);  // figure 6.2, 6.3
    lists(2, length, 0, 0, false);      // figure 6.6
    adaptive({"", "", "", 2, length, length});
    points.push_back({"apart", "", "linear", 2, length, length});
    // Figures 6.4, 6.5 and beyond, where there are cores for them or not.
    if (quick) continue;
    for (const int threads : {4, 8, 16}) {
      lists(threads, length, length, 0, false);
      adaptive({"", "", "", threads, length, length});
    }
  }
  for (const int length : {1, 32, 1024}) {
    for (const int wildcards : {1, 100}) {
      lists(2, length, length, wildcards, false);
      adaptive({"", "", "", 2, length, length, wildcards});
    }
    for (const int wildcards : {1, 10, 100}) {
      adaptive({"", "", "", 2, length, length, wildcards, 1, false, "t"});
    }
    adaptive({"", "", "", 2, length, length, 0, 1, false, "l"});
    // Shards well above the keys from the start.
    Point at{"", "", "", 1, length, length};
    points.push_back(at.with("", "", "adaptive"));
    points.push_back(at.with("locked", "spin", "adaptive"));
    for (const int threads : {1, 2}) {
      at.threads = threads;
      points.push_back(at.with(kManyShards, "", "adaptive"));
      points.push_back(at.with("apart", "", "adaptive"));
    }
  }
  sort_points(points);
  return points;
}

// Shards: one thread and two.
std::vector<Point> shard_points() {
  std::vector<Point> points;
  for (const Point& at : std::vector<Point>{{"", "", "", 1, 0, 0, 0, 1, false},
                                            {"", "", "", 1, 0, 0, 0, 8, false},
                                            {"", "", "", 1, 0, 0, 0, 0, false},
                                            {"", "", "", 1, 0, 0, 1, 8, false},
                                            {"", "", "", 1, 0, 0, 0, 8, true},
                                            {"", "", "", 1, 1024, 1024, 0, 8, false}}) {
    points.push_back(at.with("", "", "adaptive"));
    for (const int threads : {1, 2}) {
      Point point = at;
      point.threads = threads;
      points.push_back(point.with("locked", "spin", "adaptive"));
      points.push_back(point.with("sharded", "", "adaptive"));
      points.push_back(point.with("apart", "", "adaptive"));
      if (at.wildcard_percent != 0) points.push_back(point.with(kManyShards, "", "adaptive"));
    }
  }
  sort_points(points);
  return points;
}

// Of the medians of the processes.
Spread spread_over(const std::vector<std::vector<double>>& processes) {
  std::vector<double> medians;
  for (const std::vector<double>& turns : processes) medians.push_back(spread_of(turns).median);
  return spread_of(medians);
}

// Nothing of points that ran in different commands: these have other numbers of turns.
std::optional<Spread> ratio(const Rates& rates, const Point& ours, const Point& base) {
  const auto a = rates.find(ours);
  const auto b = rates.find(base);
  if (a == rates.end() || b == rates.end()) return std::nullopt;
  std::vector<std::vector<double>> ratios(std::min(a->second.size(), b->second.size()));
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    const std::vector<double>&of_ours = a->second[i], &of_base = b->second[i];
    if (of_ours.size() != of_base.size()) return std::nullopt;
    std::transform(of_ours.begin(), of_ours.end(), of_base.begin(), std::back_inserter(ratios[i]),
                   std::divides<>());
  }
  return ratios.empty() ? std::nullopt : std::optional(spread_over(ratios));
}

// The single lock around the structure, with the lock that is fastest there.
Point best_lock(const Rates& rates, const Point& point, const std::string& structure) {
  Point best = point.with("locked", "spin", structure);
  double most = 0;
  for (const char* lock : kLocks) {
    const Point candidate = point.with("locked", lock, structure);
    const auto found = rates.find(candidate);
    if (found == rates.end()) continue;
    const double rate = spread_over(found->second).median;
    if (rate <= most) continue;
    most = rate;
    best = candidate;
  }
  return best;
}

std::vector<Record> make_records(const Rates& rates, const Record& common) {
  std::vector<Record> records;
  for (const auto& [point, samples] : rates) {
    Record record = common;
    record["matcher"] = point.threading.empty() ? "unlocked" : point.threading;
    const bool locks = !point.threading.empty() && point.threading != "apart";
    record["lock"] = !locks ? "none" : point.lock.empty() ? kShardLock : point.lock;
    record["structure"] = point.structure;
    record["threads"] = point.threads;
    record["length"] = point.length;
    record["umq_length"] = point.umq_length;
    record["wildcard_percent"] = point.wildcard_percent;
    record["wildcards"] = point.wildcards == "t"   ? "any_source and any_tag in turns"
                          : point.wildcards == "l" ? "any_source, and one that waits"
                                                   : "any_source";
    record["keys_per_thread"] = point.keys;
    record["first"] = point.arrive_first ? "arrival" : "receive";
    record["cores"] = std::thread::hardware_concurrency();
    record["processes"] = samples.size();
    const Spread all = spread_over(samples);
    record["matches_per_second"] = all.median;
    set_spread(record, "matches_per_second", all);
    const auto set_ratio = [&](const char* name, const Point& base) {
      if (const auto found = ratio(rates, point, base)) {
        record[name] = found->median;
        set_spread(record, name, *found);
      }
    };
    // What has no lock by name: the lock that is used by default.
    const std::string lock = point.lock.empty() ? "spin" : point.lock;
    set_ratio("ratio_to_single_lock", point.with("locked", lock, point.structure));
    if (!point.threading.empty()) {
      set_ratio("ratio_to_best_lock", best_lock(rates, point, point.structure));
      set_ratio("ratio_to_mcs_list", point.with("locked", "mcs", "linear"));
      Point alone = point;
      alone.threads = 1;
      set_ratio("ratio_to_one_thread", alone);
      if (point.threads == 1) set_ratio("ratio_to_unlocked", point.with("", "", point.structure));
    }
    records.push_back(std::move(record));
  }
  return records;
}

std::string cell(const std::optional<Spread>& spread) {
  return spread ? spread_cell(*spread, "%.2f") + "x" : "-";
}

std::string rate_cell(const Rates& rates, const Point& point) {
  const auto found = rates.find(point);
  if (found == rates.end()) return "-";
  return format("%.2f", spread_over(found->second).median / 1e6);
}

// What two threads, or a thread alone, are meant to reach. A cost of 20 % more time is 0.833 of the
// rate.
std::vector<Goal> make_goals(const Rates& rates) {
  std::vector<Goal> goals;
  // of(point): the ratio at a point that the goal is about, nothing at any other.
  const auto at_least = [&](double least, const std::string& text, auto of) {
    Floor floor(text + format(": at least %g", least), least);
    for (const auto& [point, samples] : rates) {
      if (const std::optional<Spread> found = of(point)) floor.note(point.text(), *found);
    }
    goals.push_back(floor.goal());
  };
  const auto over = [&](const Point& point, const char* threading, const char* lock,
                        const char* structure) {
    return ratio(rates, point, point.with(threading, lock, structure));
  };
  const auto alone = [&](Point point) {
    const Point two = point;
    point.threads = 1;
    return ratio(rates, two, point);
  };
  // Two threads that post first, with both queues filled and no wildcards.
  const auto is_plain = [](const Point& point) {
    return point.threads == 2 && point.umq_length == point.length && point.keys == 1 &&
           point.wildcard_percent == 0 && point.wildcards.empty() && !point.arrive_first;
  };
  const auto is_tail_list = [&](const Point& point) {
    return is_plain(point) && point.threading == "tail" && point.structure == "linear";
  };
  // Of the locks the one with which the ratio is largest: the other points count for nothing.
  const auto with_best = [&](int length, auto of_lock) {
    return [&, length, of_lock](const Point& point) -> std::optional<Spread> {
      if (!is_tail_list(point) || point.length != length || point.lock != kLocks[0]) return {};
      std::optional<Spread> best;
      for (const char* lock : kLocks) {
        const auto found = of_lock(point.with("tail", lock, "linear"), lock);
        if (found && (!best || found->median > best->median)) best = found;
      }
      return best;
    };
  };
  const auto over_same = [&](const Point& point, const char* lock) {
    return over(point, "locked", lock, "linear");
  };

  at_least(1.5, "tail queues / list, MCS lock, length 32", [&](const Point& point) {
    return is_tail_list(point) && point.lock == "mcs" && point.length == 32
               ? over_same(point, "mcs")
               : std::nullopt;
  });
  at_least(1, "tail queues / list, MCS lock, any length", [&](const Point& point) {
    return is_tail_list(point) && point.lock == "mcs" ? over_same(point, "mcs") : std::nullopt;
  });
  at_least(1.9, "tail queues / list, same lock, the best of them, length 1024",
           with_best(1024, over_same));
  at_least(1.9, "tail queues / list, each with its own best lock, length 1024",
           with_best(1024, [&](const Point& point, const char*) {
             return ratio(rates, point, best_lock(rates, point, "linear"));
           }));
  at_least(1.95, "tail queues, best lock / list, MCS lock, length 32",
           with_best(32, [&](const Point& point, const char*) { return over_same(point, "mcs"); }));
  const auto is_default = [](const Point& point) {
    return point.threading == "sharded" && point.structure == "adaptive";
  };
  for (const auto& [length, least] : {std::pair{1, 2.0}, {1024, 20.0}}) {
    at_least(least, "shards / list, MCS lock, length " + std::to_string(length),
             [&, length = length](const Point& point) {
               return is_plain(point) && is_default(point) && point.length == length
                          ? over(point, "locked", "mcs", "linear")
                          : std::nullopt;
             });
  }
  at_least(1, "shards, 2 threads / one spin lock around the same queue", [&](const Point& point) {
    return is_default(point) && point.threads == 2 ? over(point, "locked", "spin", "adaptive")
                                                   : std::nullopt;
  });
  at_least(1.8, "many shards, different keys, 2 threads / 1", [&](const Point& point) {
    return is_plain(point) && point.threading == kManyShards ? alone(point) : std::nullopt;
  });
  at_least(1.2, "many shards, 1 % wildcards, 2 threads / 1", [&](const Point& point) {
    const bool is_it =
        point.threading == kManyShards && point.threads == 2 && point.wildcard_percent == 1;
    return is_it ? alone(point) : std::nullopt;
  });
  at_least(0.833, "shards, 1 thread / the matcher for one thread", [&](const Point& point) {
    return is_default(point) && point.threads == 1 ? over(point, "", "", "adaptive") : std::nullopt;
  });
  return goals;
}

void print_tables(const Rates& rates, const std::vector<int>& lengths) {
  const auto lists = [&](const char* title, bool umq, int wildcards,
                         const std::vector<int>& its_lengths) {
    Table table(title);
    table.header({"length", "mcs M/s", "spin M/s", "tail mcs / mcs", "tail spin / spin",
                  "tail best / best", "tail spin / mcs", "binned mcs / mcs", "apart / best"});
    for (const int length : its_lengths) {
      const Point at{"", "", "", 2, length, umq ? length : 0, wildcards};
      const auto of = [&](const char* threading, const char* lock) {
        return at.with(threading, lock, "linear");
      };
      const Point best = best_lock(rates, at, "linear");
      std::optional<Spread> best_tail;
      for (const char* lock : kLocks) {
        const auto tail = ratio(rates, of("tail", lock), best);
        if (tail && (!best_tail || tail->median > best_tail->median)) best_tail = tail;
      }
      table.row({std::to_string(length), rate_cell(rates, of("locked", "mcs")),
                 rate_cell(rates, of("locked", "spin")),
                 cell(ratio(rates, of("tail", "mcs"), of("locked", "mcs"))),
                 cell(ratio(rates, of("tail", "spin"), of("locked", "spin"))), cell(best_tail),
                 cell(ratio(rates, of("tail", "spin"), of("locked", "mcs"))),
                 cell(ratio(rates, of("binned", "mcs"), of("locked", "mcs"))),
                 cell(ratio(rates, of("apart", ""), best))});
    }
    std::printf("%s\n", table.text().c_str());
  };
  lists("Lists, 2 threads, both queues filled: matches per second of a single lock, and ratios",
        true, 0, lengths);
  lists("Lists, 2 threads, no unexpected messages", false, 0, lengths);
  lists("Lists, 2 threads, ANY_SOURCE receives", true, 100, {1, 32, 1024});

  Table table("What a user gets: adaptive queues, 2 threads");
  table.header({"length", "wildcards %", "sharded M/s", "/ list, mcs", "/ adaptive, spin",
                "/ adaptive, patient", "tail / adaptive, spin"});
  const std::map<std::string, std::string> kinds = {
      {"", ""}, {"t", ", two kinds"}, {"l", ", one waits"}};
  for (const auto& [wildcards, kind] :
       {std::pair{0, ""}, {1, ""}, {100, ""}, {1, "t"}, {10, "t"}, {100, "t"}, {0, "l"}}) {
    for (const int length : lengths) {
      const Point at{"sharded", "", "adaptive", 2, length, length, wildcards, 1, false, kind};
      if (!rates.contains(at)) continue;
      const Point spin = at.with("locked", "spin", "adaptive");
      table.row({std::to_string(length), std::to_string(wildcards) + kinds.at(kind),
                 rate_cell(rates, at), cell(ratio(rates, at, at.with("locked", "mcs", "linear"))),
                 cell(ratio(rates, at, spin)),
                 cell(ratio(rates, at, at.with("locked", "patient", "adaptive"))),
                 cell(ratio(rates, at.with("tail", "spin", "adaptive"), spin))});
    }
  }
  std::printf("%s\n", table.text().c_str());

  std::printf("%s\n",
              goal_table("Goals (medians of ratios within a turn)", make_goals(rates)).c_str());

  Table shards("Shards, adaptive queues");
  shards.header({"matcher", "length", "keys a thread", "wildcards %", "first", "1 thread M/s",
                 "1 thread / unlocked", "2 threads / 1", "2 / 1, a matcher each",
                 "2 threads / single lock"});
  for (const auto& [one, samples] : rates) {
    if ((one.threading != "sharded" && one.threading != kManyShards) || one.threads != 1) continue;
    Point two = one;
    two.threads = 2;
    shards.row(
        {one.threading, std::to_string(one.length),
         one.keys == 0 ? "all one" : std::to_string(one.keys), std::to_string(one.wildcard_percent),
         one.arrive_first ? "arrival" : "receive", rate_cell(rates, one),
         cell(ratio(rates, one, one.with("", "", "adaptive"))), cell(ratio(rates, two, one)),
         cell(ratio(rates, two.with("apart", "", "adaptive"), one.with("apart", "", "adaptive"))),
         cell(ratio(rates, two, two.with("locked", "spin", "adaptive")))});
  }
  std::printf("%s\n", shards.text().c_str());
}

Plot make_plot(const Rates& rates) {
  Plot plot{"Matches per second of several threads",
            "entries in the queues",
            "matches per second",
            3,
            {}};
  const auto add = [&](const std::string& title, int threads, bool umq) {
    Panel panel{title, {}};
    for (const char* matcher : {"locked@mcs:linear", "tail@mcs:linear", "binned@mcs:linear",
                                "locked@spin:linear", "tail@spin:linear", "sharded:adaptive"}) {
      Series series{matcher, {}};
      for (const auto& [point, samples] : rates) {
        if (point.matcher() != matcher || point.threads != threads || point.length == 0 ||
            point.umq_length != (umq ? point.length : 0) || point.wildcard_percent != 0 ||
            point.keys != 1 || point.arrive_first || !point.wildcards.empty()) {
          continue;
        }
        const Spread all = spread_over(samples);
        series.points.push_back({static_cast<double>(point.length), all.median, all.low, all.high});
      }
      std::sort(series.points.begin(), series.points.end(),
                [](const auto& a, const auto& b) { return a.x < b.x; });
      if (!series.points.empty()) panel.series.push_back(std::move(series));
    }
    if (!panel.series.empty()) plot.panels.push_back(std::move(panel));
  };
  add("2 threads (figures 6.2, 6.3)", 2, true);
  add("2 threads, no unexpected (6.6)", 2, false);
  add("4 threads (6.4)", 4, true);
  add("8 threads (6.5)", 8, true);
  add("16 threads", 16, true);
  return plot;
}

int run_threads(const Context& context, int processes) {
  if (processes == 0) processes = context.quick ? 3 : 10;
  const std::vector<int> lengths =
      context.quick ? std::vector<int>{1, 8, 32, 128, 1024}
                    : std::vector<int>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  std::map<std::string, Point> by_text;
  const auto command = [&](const std::vector<Point>& points, int turns) {
    std::vector<std::string> words{(context.programs / "threads").string(), "--ms",
                                   context.quick ? "3" : "4", "--turns", std::to_string(turns)};
    for (const Point& point : points) {
      by_text[point.text()] = point;
      words.push_back(point.text());
    }
    return words;
  };
  // How far shards scale differs less from its goals than what replaces a lock. Of a number each,
  // see ratio().
  const std::vector<std::string> commands[] = {
      command(figure_points(context.quick, lengths), context.quick ? 2 : 3),
      command(shard_points(), context.quick ? 3 : 15)};
  watch_for_interrupts();
  Rates rates;
  for (int i = 0; i < processes; ++i) {
    progress("process " + std::to_string(i + 1) + "/" + std::to_string(processes));
    for (const std::vector<std::string>& words : commands) {
      const JobResult job = run_job(words, std::chrono::seconds(120), [&](const std::string& line) {
        const Record record = Record::parse(line);
        rates[by_text.at(record["point"])].push_back(record["matches_per_second"]);
      });
      if (job.ok) continue;
      end_progress();
      std::fprintf(stderr, "bench: threads: %s\n", job.reason.c_str());
      return interrupted() ? 130 : 1;
    }
  }
  end_progress();
  print_tables(rates, lengths);
  if (std::thread::hardware_concurrency() < 16) {
    std::printf("More threads than the %u cores here are in the records; their rates say little.\n",
                std::thread::hardware_concurrency());
  }
  const std::vector<Record> records = make_records(rates, environment("threads", context.commit));
  write_records(context.output, "threads", records);
  const bool plotted = write_plot(context.output / "threads.svg", make_plot(rates));
  std::printf("%zu records in %s/threads.json and threads.csv, plot in threads.svg\n",
              records.size(), context.output.c_str());
  return plotted ? 0 : 1;
}

}  // namespace

void add_threads(CLI::App& app, Context& context) {
  static int processes = 0;
  CLI::App* const command = app.add_subcommand(
      "threads", "several threads on one matcher: single lock, tail queues, shards");
  command->footer("Every benchmark takes --quick and --output too: ./run bench --help");
  command->add_option("--processes", processes, "runs, of which the median counts")
      ->check(CLI::Range(1, 1000));
  command->callback([&context] { context.exit_code = run_threads(context, processes); });
}

}  // namespace bench
