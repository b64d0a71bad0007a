// SPDX-License-Identifier: BSD-3-Clause
//
// tagline simulate: how long match lists become at a number of ranks nobody has at hand.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/report.hpp"
#include "commands.hpp"
#include "simulation.hpp"
#include "structures.hpp"

namespace tagline::tools {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string pattern;
  std::uint32_t ranks = 0;
  std::uint32_t steps = 0;
  std::uint32_t per_node = 68;
  std::vector<std::uint32_t> traced;
  fs::path traces = "tagline-trace";
  fs::path json;
  fs::path csv;
  fs::path plot;
};

// What an MPI library keeps that has two list heads per peer in every process.
constexpr double kListsPerPeer = 128;  // bytes

// A matcher with the longest lists that were seen, from as many sources as there are entries.
std::uint64_t bytes_of(const std::string& queue, const Simulated& result, std::uint32_t ranks) {
  const OwnedMatcher matcher = make_matcher(queue);
  const auto fill = [&](std::uint32_t length, auto append) {
    for (std::uint32_t i = 0; i < length; ++i) {
      const auto source = static_cast<std::int32_t>(std::uint64_t{i} * ranks / length);
      if (append(tagline_envelope{0, source, static_cast<std::int32_t>(i)}) != TAGLINE_QUEUED) {
        throw Error(tagline_error_message());
      }
    }
  };
  fill(result.posted.longest(), [&](tagline_envelope envelope) {
    return tagline_append_receive(matcher.get(), envelope, nullptr, nullptr);
  });
  fill(result.unexpected.longest(), [&](tagline_envelope envelope) {
    return tagline_append_message(matcher.get(), envelope, nullptr);
  });
  tagline_statistics statistics;
  tagline_get_statistics(matcher.get(), &statistics);
  return statistics.pool_bytes;
}

struct Memory {
  std::string design;
  double per_process;  // bytes
};

std::vector<Memory> memory_of(const Simulated& result, const Options& options) {
  std::vector<Memory> all = {{"two lists per peer (Open MPI)", kListsPerPeer * options.ranks}};
  for (const std::string& queue : structure_names()) {
    all.push_back({queue, static_cast<double>(bytes_of(queue, result, options.ranks))});
  }
  return all;
}

// Lengths 0, 1, 2-3, 4-7 and so on, each with a bar for its share.
std::string histogram_text(const Simulated& result) {
  bench::Table table("Samples by length, one at each entry that comes or goes");
  table.header({"length", "posted", "unexpected", "share of both"});
  const double all = static_cast<double>(result.posted.total() + result.unexpected.total());
  const std::uint32_t longest = std::max(result.posted.longest(), result.unexpected.longest());
  for (std::uint32_t low = 0; low <= longest; low = std::max(1u, low * 2)) {
    const std::uint32_t high = low == 0 ? 0 : low * 2 - 1;
    const auto sum = [&](const SimulatedSide& side) {
      std::uint64_t count = 0;
      for (std::uint32_t i = low; i <= high && i < side.samples.size(); ++i) count += side.samples[i];
      return count;
    };
    const std::uint64_t posted = sum(result.posted);
    const std::uint64_t unexpected = sum(result.unexpected);
    const double share = static_cast<double>(posted + unexpected) / std::max(all, 1.0);
    std::string bar(static_cast<std::size_t>(std::lround(share * 40)), '#');
    bar.resize(40, ' ');
    table.row({low == high ? std::to_string(low) : std::to_string(low) + "-" + std::to_string(high),
               std::to_string(posted), std::to_string(unexpected),
               bench::format("%.2f %% ", 100 * share) + bar});
  }
  return table.text();
}

void print(const Simulated& result, const Options& options, const PatternName& name,
           const std::vector<Memory>& memory, double took) {
  std::printf("%s, %u ranks, %u %s: %llu messages in %.3f s of simulated time (%.1f s of ours)\n",
              name.name, options.ranks, options.steps, name.step_unit,
              static_cast<unsigned long long>(result.messages), result.seconds, took);
  std::printf("posted: median %u, 90 %% up to %u, longest %u; "
              "unexpected: median %u, 90 %% up to %u, longest %u; rank %u has the longest list\n",
              result.posted.percentile(0.5), result.posted.percentile(0.9),
              result.posted.longest(), result.unexpected.percentile(0.5),
              result.unexpected.percentile(0.9), result.unexpected.longest(),
              result.longest_rank);
  std::fputs(histogram_text(result).c_str(), stdout);
  bench::Table table("Memory of a communicator with the longest lists, " +
                     std::to_string(options.per_node) + " processes on a node");
  table.header({"design", "KiB/process", "MiB/node"});
  for (const Memory& each : memory) {
    table.row({each.design, bench::format("%.1f", each.per_process / 1024),
               bench::format("%.1f", each.per_process * options.per_node / 1048576)});
  }
  std::fputs(table.text().c_str(), stdout);
}

nlohmann::ordered_json to_json(const Simulated& result, const Options& options,
                               const std::vector<Memory>& memory, double took) {
  const auto side = [](const SimulatedSide& each) {
    return nlohmann::ordered_json{{"samples", each.total()},
                                  {"median", each.percentile(0.5)},
                                  {"p90", each.percentile(0.9)},
                                  {"longest", each.longest()},
                                  {"samples_by_length", each.samples},
                                  {"ranks_by_longest", each.ranks}};
  };
  nlohmann::ordered_json designs = nlohmann::ordered_json::array();
  for (const Memory& each : memory) {
    designs.push_back({{"design", each.design},
                       {"bytes_per_process", each.per_process},
                       {"bytes_per_node", each.per_process * options.per_node}});
  }
  return {{"pattern", options.pattern},
          {"ranks", options.ranks},
          {"steps", options.steps},
          {"processes_per_node", options.per_node},
          {"messages", result.messages},
          {"simulated_seconds", result.seconds},
          {"seconds", took},
          {"longest_rank", result.longest_rank},
          {"posted", side(result.posted)},
          {"unexpected", side(result.unexpected)},
          {"memory", designs}};
}

std::string csv_of(const Simulated& result) {
  std::string text = "length,posted,unexpected\n";
  const auto at = [](const SimulatedSide& side, std::size_t i) {
    return std::to_string(i < side.samples.size() ? side.samples[i] : 0);
  };
  const std::size_t end = std::max(result.posted.samples.size(), result.unexpected.samples.size());
  for (std::size_t i = 0; i < end; ++i) {
    text += std::to_string(i) + ',' + at(result.posted, i) + ',' + at(result.unexpected, i) + '\n';
  }
  return text;
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw Error(path.string() + " cannot be written");
}

void plot(const Simulated& result, const Options& options) {
  const auto series = [](const char* name, const SimulatedSide& side) {
    bench::Series line{name, {}};
    for (std::size_t i = 0; i < side.samples.size(); ++i) {
      const auto samples = static_cast<double>(side.samples[i]);
      if (samples > 0) line.points.push_back({static_cast<double>(i), samples, samples, samples});
    }
    return line;
  };
  bench::Plot figure;
  figure.title = options.pattern + ", " + std::to_string(options.ranks) + " ranks";
  figure.x_label = "entries in the list";
  figure.y_label = "samples";
  figure.columns = 1;
  figure.panels = {{"", {series("posted", result.posted), series("unexpected", result.unexpected)}}};
  if (!bench::write_plot(options.plot, figure)) {
    throw Error(options.plot.string() + " was not drawn: gnuplot has to be installed");
  }
}

void simulate_command(Options options) {
  const PatternName* name = kPatterns;
  while (options.pattern != name->name) ++name;
  if (options.ranks == 0) options.ranks = name->ranks;
  if (options.steps == 0) options.steps = name->steps;
  const auto pattern = make_pattern(options.pattern, options.ranks, options.steps);
  SimulateOptions wishes;
  wishes.traced = options.traced;
  wishes.folder = options.traces;
  if (!options.traced.empty()) {
    std::error_code error;
    fs::create_directories(options.traces, error);
    if (error) throw Error(options.traces.string() + " cannot be made: " + error.message());
  }
  wishes.progress = [](double done) { progress_bar("simulating", done); };
  const auto start = std::chrono::steady_clock::now();
  const Simulated result = simulate(*pattern, wishes);
  end_progress();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const std::vector<Memory> memory = memory_of(result, options);
  print(result, options, *name, memory, took.count());
  if (!options.json.empty()) {
    write(options.json, to_json(result, options, memory, took.count()).dump(1) + '\n');
  }
  if (!options.csv.empty()) write(options.csv, csv_of(result));
  if (!options.plot.empty()) plot(result, options);
  if (!options.traced.empty()) {
    std::printf("Traces of %zu ranks are in %s: tagline replay %s\n", options.traced.size(),
                options.traces.c_str(), options.traces.c_str());
  }
}

}  // namespace

void add_simulate(CLI::App& app, Context&) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "simulate", "match lists of a pattern at any number of ranks, without MPI");
  std::vector<std::string> names;
  std::string list = "Patterns (ranks, steps by default):\n";
  for (const PatternName* each = kPatterns; each->name != nullptr; ++each) {
    names.emplace_back(each->name);
    list += "  " + names.back() + std::string(9 - names.back().size(), ' ') + each->what + " (" +
            std::to_string(each->ranks) + ", " + std::to_string(each->steps) + ' ' +
            each->step_unit + ")\n";
  }
  command->add_option("pattern", options->pattern, "one of the patterns below")
      ->required()
      ->check(CLI::IsMember(names));
  command->add_option("--ranks", options->ranks, "how many")->check(CLI::PositiveNumber);
  command->add_option("--steps", options->steps, "exchanges or sweeps")
      ->check(CLI::Range(1u, Pattern::kMostSteps));
  command->add_option("--per-node", options->per_node, "processes on a node, for the memory")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--trace", options->traced, "write the histories of these ranks, 0,5,7")
      ->delimiter(',');
  command->add_option("-o,--output", options->traces, "folder for them")->capture_default_str();
  command->add_option("--json", options->json, "write the figures and both histograms");
  command->add_option("--csv", options->csv, "write length,posted,unexpected");
  command->add_option("--plot", options->plot, "draw the histogram, an SVG (gnuplot)");
  command->footer(list +
                  "\n"
                  "Examples:\n"
                  "  tagline simulate amr\n"
                  "  tagline simulate halo3d --ranks 4096 --plot halo.svg\n"
                  "  tagline simulate sweep3d --ranks 8192 --trace 0,4711 -o sweep && tagline replay "
                  "sweep\n"
                  "\n"
                  "The same ranks and steps give the same figures. Ranks differ in speed, messages\n"
                  "have a latency with jitter; there is no congestion. Memory is measured with real\n"
                  "matchers; that of two lists per peer is 128 bytes a peer, by arithmetic.");
  command->callback([options] { simulate_command(*options); });
}

}  // namespace tagline::tools
