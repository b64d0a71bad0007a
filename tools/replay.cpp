// SPDX-License-Identifier: BSD-3-Clause
#include "replay.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <sstream>

#include "commands.hpp"
#include "match/operations.hpp"
#include "player.hpp"
#include "structures.hpp"

namespace tagline::tools {

namespace {

constexpr std::size_t kMostRanks = 16;
constexpr std::size_t kMostPasses = 100;
// Counting lines takes tens of nanoseconds per access.
constexpr std::size_t kMostCounted = 100000;

void add(ReplayedSide& sum, const tagline_side_statistics& side) {
  sum.searches += side.searches;
  sum.depth_sum += side.search_depth_sum;
  sum.depth_max = std::max(sum.depth_max, side.search_depth_max);
  sum.high_water = std::max(sum.high_water, side.high_water);
}

// Plays the history once; the time is that of the operations alone.
std::pair<Played, double> timed_pass(const History& history, tagline_matcher* matcher) {
  const auto start = std::chrono::steady_clock::now();
  const Played played = play(history, matcher);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return {played, took.count()};
}

void count_lines(Replayed& replayed, const ReplayOptions& options) {
  if (!options.lines || !std::filesystem::exists(options.lines_program)) return;
  std::string ranks;
  const auto add = [](std::string& list, const std::string& item) {
    if (!list.empty()) list += ',';
    list += item;
  };
  for (const std::uint32_t rank : replayed.ranks) add(ranks, std::to_string(rank));
  std::string queues;
  // What serves several threads is compiled without the hooks that count.
  for (const auto& queue : replayed.queues) {
    if (!queue.is_for_threads) add(queues, queue.queue);
  }
  if (queues.empty()) return;
  progress("counting cache lines");
  std::istringstream lines(output_of({options.lines_program, options.trace, "--ranks", ranks,
                                      "--queue", queues, "--most", std::to_string(kMostCounted)}));
  std::map<std::string, std::pair<double, int>> sums;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    auto& [sum, count] = sums[object["queue"]];
    sum += object["lines"].get<double>() + object["matcher_lines"].get<double>();
    ++count;
  }
  for (auto& queue : replayed.queues) {
    const auto& [sum, count] = sums[queue.queue];
    if (count > 0) queue.lines = sum / count;
  }
}

}  // namespace

std::vector<std::uint32_t> some_ranks(const TraceSet& traces,
                                      const std::vector<std::uint32_t>& asked) {
  const std::vector<std::uint32_t>& all = traces.ranks();
  if (!asked.empty() || all.size() <= kMostRanks) return asked.empty() ? all : asked;
  std::vector<std::uint32_t> some;
  for (std::size_t i = 0; i < kMostRanks; ++i) {
    some.push_back(all[i * (all.size() - 1) / (kMostRanks - 1)]);
  }
  return some;
}

Replayed replay(const TraceSet& traces, const ReplayOptions& options) {
  Replayed replayed;
  std::vector<std::string> names = options.queues;
  if (names.empty()) {
    names = structure_names();
    for (std::string& name : threaded_names()) names.push_back(std::move(name));
  }
  for (const std::string& name : names) {
    // A name that is not known is said before anything takes time.
    const bool is_for_threads = make_matcher(name)->about->is_for_threads;
    replayed.queues.emplace_back().queue = name;
    replayed.queues.back().is_for_threads = is_for_threads;
  }
  const std::size_t count = replayed.queues.size();
  std::vector<std::vector<double>> rank_ns(count);  // by queue and pass, summed over ranks
  const std::vector<std::uint32_t> ranks = options.ranks.empty() ? traces.ranks() : options.ranks;
  std::size_t passes = kMostPasses;
  traces.for_each(ranks, [&](const History& history) {
    progress("replaying rank " + std::to_string(history.rank));
    replayed.ranks.push_back(history.rank);
    replayed.operations += history.operations.size();
    replayed.posts += history.posts;
    replayed.arrivals += history.arrivals;
    replayed.guessed_arrivals += history.guessed_arrivals;
    replayed.lost += history.lost;
    replayed.left_out += history.left_out;
    replayed.cut += history.cut;
    replayed.duration_ns = std::max(replayed.duration_ns, static_cast<double>(history.duration_ns));
    if (history.operations.empty()) return;

    // The first pass of a structure tells the statistics; structures take turns, and the
    // first rank decides how many passes there is time for.
    std::uint64_t pairs = 0;
    double first_ns = 0;
    for (std::size_t pass = 0; pass < passes; ++pass) {
      for (std::size_t i = 0; i < count; ++i) {
        ReplayedQueue& queue = replayed.queues[i];
        const OwnedMatcher matcher = make_matcher(queue.queue);
        const auto [played, ns] = timed_pass(history, matcher.get());
        if (rank_ns[i].size() <= pass) rank_ns[i].resize(pass + 1);
        rank_ns[i][pass] += ns;
        if (pass > 0) continue;
        first_ns += ns;
        tagline_statistics statistics;
        tagline_get_statistics(matcher.get(), &statistics);
        add(queue.posted, statistics.posted);
        add(queue.unexpected, statistics.unexpected);
        queue.false_positives +=
            statistics.posted.false_positives + statistics.unexpected.false_positives;
        queue.pool_bytes = std::max(queue.pool_bytes, statistics.pool_bytes);
        if (i == 0) {
          pairs = played.pairs;
          replayed.unexpected += played.unexpected;
        } else if (played.pairs != pairs) {
          throw Error("the structures " + replayed.queues[0].queue + " and " + queue.queue +
                      " disagree about who gets which message of rank " +
                      std::to_string(history.rank) + " of " + history.source +
                      ": this is a fault of tagline, please report it with the trace");
        }
      }
      if (pass == 0 && passes == kMostPasses) {
        const double for_rank = options.seconds * 1e9 / static_cast<double>(ranks.size());
        passes = static_cast<std::size_t>(
            std::clamp(for_rank / std::max(first_ns, 1.0), 3.0, double{kMostPasses - 1}));
      }
    }
    const OwnedMatcher matcher = make_matcher(replayed.queues[0].queue);
    const Played compared = play(history, matcher.get(), NoWatch(), true);
    replayed.known += compared.known;
    replayed.otherwise += compared.otherwise;
  }, options.most);
  end_progress();
  if (replayed.operations == 0) {
    throw Error(
        "there is nothing to replay: these ranks posted and received no message that the "
        "recorder could see. Messages inside collectives, and those of Fortran programs "
        "under Open MPI, are seen under tagline's component only");
  }
  for (std::size_t i = 0; i < count; ++i) {
    // The first pass has cold caches and is not like the others.
    std::vector<double> samples(rank_ns[i].begin() + (rank_ns[i].size() > 2), rank_ns[i].end());
    for (double& sample : samples) sample /= static_cast<double>(replayed.operations);
    replayed.queues[i].ns_per_operation = bench::spread_of(std::move(samples));
  }
  count_lines(replayed, options);
  end_progress();
  return replayed;
}

double Replayed::matching_ms(const ReplayedQueue& queue) const {
  return queue.ns_per_operation.median * static_cast<double>(operations) /
         static_cast<double>(ranks.size()) / 1e6;
}

double Replayed::share_of_run(const ReplayedQueue& queue) const {
  return duration_ns <= 0 ? 0 : matching_ms(queue) * 1e6 / duration_ns;
}

const ReplayedQueue* Replayed::find(const std::string& queue) const {
  for (const ReplayedQueue& each : queues) {
    if (each.queue == queue) return &each;
  }
  return nullptr;
}

const ReplayedQueue& Replayed::best() const {
  // What serves several threads is no advice for one.
  const auto rank = [](const ReplayedQueue& queue) {
    return std::pair(queue.is_for_threads, queue.ns_per_operation.median);
  };
  return *std::min_element(queues.begin(), queues.end(), [&](const auto& a, const auto& b) {
    return rank(a) < rank(b);
  });
}

std::string Replayed::verdict() const {
  // `linear` is what MPI libraries do today; the default is within a few percent of the best
  // nearly always, and then it is what to use.
  const ReplayedQueue* linear = find("linear");
  const ReplayedQueue* usual = find(structure_names()[0]);
  const ReplayedQueue* advised = &best();
  if (usual != nullptr &&
      usual->ns_per_operation.median <= 1.1 * advised->ns_per_operation.median) {
    advised = usual;
  }
  if (linear == nullptr) {
    return "The cheapest of these is " + advised->queue + ".";
  }
  const double gain_ms = matching_ms(*linear) - matching_ms(*advised);
  const double gain = duration_ns <= 0 ? 0 : gain_ms * 1e6 / duration_ns;
  const std::string costs = "A plain list spends " +
                            bench::format("%.3f ms", matching_ms(*linear)) +
                            " per rank on matching, " +
                            bench::format("%.2f %%", 100 * share_of_run(*linear)) + " of the run; ";
  if (gain < 0.01) {
    return "Matching is not your problem. " + costs + "no structure would save as much as 1 %.";
  }
  return "Matching hurts this program. " + costs + advised->queue + " spends " +
         bench::format("%.3f ms", matching_ms(*advised)) + " and would save " +
         bench::format("%.1f %%", 100 * gain) +
         " of the run. Use: --mca pml tagline --mca "
         "pml_tagline_queue " +
         advised->queue + " (or TAGLINE_QUEUE=" + advised->queue + ").";
}

nlohmann::ordered_json to_json(const Replayed& replayed) {
  const auto side = [](const ReplayedSide& each) {
    return nlohmann::ordered_json{{"searches", each.searches},
                                  {"mean_depth", each.mean_depth()},
                                  {"max_depth", each.depth_max},
                                  {"longest", each.high_water}};
  };
  nlohmann::ordered_json queues = nlohmann::ordered_json::array();
  for (const ReplayedQueue& queue : replayed.queues) {
    nlohmann::ordered_json object = {{"queue", queue.queue}};
    bench::set_spread(object, "ns_per_operation", queue.ns_per_operation);
    object["matching_ms_per_rank"] = replayed.matching_ms(queue);
    object["share_of_run"] = replayed.share_of_run(queue);
    object["posted"] = side(queue.posted);
    object["unexpected"] = side(queue.unexpected);
    object["lines_per_operation"] =
        queue.lines < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(queue.lines);
    object["false_positives"] = queue.false_positives;
    object["pool_bytes"] = queue.pool_bytes;
    queues.push_back(std::move(object));
  }
  return {{"ranks", replayed.ranks},
          {"operations", replayed.operations},
          {"posts", replayed.posts},
          {"arrivals", replayed.arrivals},
          {"unexpected_share", replayed.unexpected_share()},
          {"receives_compared_with_the_run", replayed.known},
          {"receives_that_got_another_message", replayed.otherwise},
          {"guessed_arrivals", replayed.guessed_arrivals},
          {"lost_records", replayed.lost},
          {"left_out_records", replayed.left_out},
          {"cut_traces", replayed.cut},
          {"duration_ns", replayed.duration_ns},
          {"queues", queues},
          {"verdict", replayed.verdict()}};
}

}  // namespace tagline::tools
