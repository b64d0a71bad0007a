// SPDX-License-Identifier: BSD-3-Clause
//
// tagline replay: the histories of a trace through every queue structure.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/report.hpp"
#include "commands.hpp"
#include "replay.hpp"

namespace tagline::tools {

namespace {

struct Options {
  std::filesystem::path trace;
  std::vector<std::uint32_t> ranks;
  ReplayOptions replay;
  std::filesystem::path json;
};

void print(const Replayed& replayed, const TraceSet& traces) {
  std::printf("%zu of %zu ranks, %llu receives, %llu messages of which %s had to wait, %.3f s\n",
              replayed.ranks.size(), traces.ranks().size(),
              static_cast<unsigned long long>(replayed.posts),
              static_cast<unsigned long long>(replayed.arrivals),
              bench::format("%.1f %%", 100 * replayed.unexpected_share()).c_str(),
              replayed.duration_ns / 1e9);
  if (replayed.known > 0) {
    std::printf("The replay gives %.2f %% of the receives the message they got in the run.\n",
                100.0 * static_cast<double>(replayed.known - replayed.otherwise) /
                    static_cast<double>(replayed.known));
  }
  if (replayed.guessed_arrivals > 0) {
    std::printf(
        "%llu arrivals were placed where their receive completed: the sender's trace does "
        "not tell them.\n",
        static_cast<unsigned long long>(replayed.guessed_arrivals));
  }
  if (replayed.lost > 0 || replayed.cut > 0) {
    std::printf(
        "%zu traces end early, %llu records were not written: what follows is about the "
        "part that is there.\n",
        replayed.cut, static_cast<unsigned long long>(replayed.lost));
  }
  if (replayed.left_out > 0) {
    std::printf("The last %llu records of these ranks are left out; --most takes more of them.\n",
                static_cast<unsigned long long>(replayed.left_out));
  }
  bench::Table table(
      "Per rank and structure, hot in the cache; lines are cache lines per post or "
      "arrival");
  table.header({"structure", "ns/operation", "matching", "of the run", "posted depth",
                "unexpected depth", "lines", "false positives", "KiB"});
  for (const ReplayedQueue& queue : replayed.queues) {
    table.row({queue.queue, bench::spread_cell(queue.ns_per_operation, "%.1f"),
               bench::format("%.3f ms", replayed.matching_ms(queue)),
               bench::format("%.3f %%", 100 * replayed.share_of_run(queue)),
               bench::format("%.1f", queue.posted.mean_depth()) + " max " +
                   std::to_string(queue.posted.depth_max),
               bench::format("%.1f", queue.unexpected.mean_depth()) + " max " +
                   std::to_string(queue.unexpected.depth_max),
               queue.lines < 0 ? "-" : bench::format("%.2f", queue.lines),
               std::to_string(queue.false_positives),
               bench::format("%.0f", static_cast<double>(queue.pool_bytes) / 1024)});
  }
  std::fputs(table.text().c_str(), stdout);
  std::printf("\n%s\n", replayed.verdict().c_str());
}

void replay_command(const Options& options, const Context& context) {
  const TraceSet traces(options.trace);
  ReplayOptions wishes = options.replay;
  wishes.ranks = some_ranks(traces, options.ranks);
  wishes.lines_program = context.libraries / "tagline_lines";
  wishes.trace = options.trace;
  const Replayed replayed = replay(traces, wishes);
  print(replayed, traces);
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << to_json(replayed).dump(1) << '\n';
    file.close();
    if (!file) throw Error(options.json.string() + " cannot be written");
  }
}

}  // namespace

void add_replay(CLI::App& app, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "replay", "play a recorded run through every queue structure: time, depth, cache lines");
  command->add_option("trace", options->trace, "folder, one .tagtrace or one .csv")->required();
  command
      ->add_option("--ranks", options->ranks,
                   "ranks to replay, 0,5,7; default: all, or 16 spread over more")
      ->delimiter(',');
  command
      ->add_option("--queue", options->replay.queues,
                   "structures, linear,fuzzy:8,tail@mcs:linear; default: all of the library, and each "
                   "way to serve several threads")
      ->delimiter(',');
  command->add_option("--seconds", options->replay.seconds, "to spend on timing")
      ->capture_default_str();
  command->add_flag("!--no-lines", options->replay.lines, "do not count cache lines");
  command
      ->add_option("--most", options->replay.most,
                   "records of a rank, from its beginning; 0: all, at 200 bytes of memory each")
      ->capture_default_str();
  command->add_option("--json", options->json, "write the figures to a file as well");
  command->footer(
      "Examples:\n"
      "  tagline replay run1\n"
      "  tagline replay run1 --ranks 0,7 --queue linear,adaptive,fuzzy:8 --json out.json\n"
      "  tagline replay history.csv\n"
      "\n"
      "A CSV file has a line with the names of its columns, then one line per event:\n"
      "  rank,time_ns,event,context,source,tag,bytes\n"
      "  0,100,post,0,3,7,8          a receive from rank 3 with tag 7\n"
      "  0,120,post,0,*,*,8          MPI_ANY_SOURCE, MPI_ANY_TAG\n"
      "  0,150,arrive,0,3,7,8        also: probe, claim (matched probe), cancel\n"
      "event, source and tag are needed; # starts a comment.");
  command->callback([options, &context] { replay_command(*options, context); });
}

}  // namespace tagline::tools
