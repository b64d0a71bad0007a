// SPDX-License-Identifier: BSD-3-Clause
//
// The core figures of M. Dosanjh's dissertation (5.7 to 5.22 and 6.8 to 6.11) on two
// ranks of this machine: latency of 1 byte behind short queues, bandwidth by message
// size at two depths, bandwidth by depth at two sizes. Receives are posted before the
// sender starts, caches are swept before each iteration, ranks are bound to their
// CPUs; a point is the mean and the standard deviation of runs.
#include <cmath>
#include <cstdio>

#include "benchmarks.hpp"
#include "comparison.hpp"

namespace bench {
namespace {

using Seconds = Comparison::Seconds;

struct Settings {
  int runs = 0;  // 0: by --quick
  std::vector<std::string> series;
};

// "fuzzy" has 8 bits of tag and 24 of source there; "traditional" is our linear.
const std::vector<std::string> kAllSeries{"ob1",
                                          "ucx",
                                          "tagline:linear",
                                          "tagline:array",
                                          "tagline:vector",
                                          "tagline:fuzzy:8",
                                          "tagline:fuzzy:32:tag8:source24",
                                          "tagline:source",
                                          "tagline:indexed",
                                          "tagline:adaptive"};

struct Figure {
  std::string name;  // of the file, after "depth-sweep-"
  std::string title;
  std::string measure;
  std::string sizes;
  std::string depths;
  bool by_size;  // x; one panel for each value of the other
};

std::vector<Figure> make_figures(bool quick) {
  const std::string some_sizes = "1,64,1024,16384,262144";
  const std::string all_sizes =
      "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536,131072,262144,524288,"
      "1048576";
  return {{"latency", "Latency behind short queues", "latency", "1",
           quick ? "0,4,32,128" : "0,1,2,4,8,16,32,64,128", false},
          {"size", "Bandwidth by message size", "bandwidth", quick ? some_sizes : all_sizes,
           "0,1024", true},
          {"depth", "Bandwidth by queue depth", "bandwidth", "1,4096",
           quick ? "0,16,256,4096" : "0,1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192", false}};
}

struct Mean {
  double mean = 0;
  double deviation = 0;  // standard deviation of the runs
};

// A run's value is the mean of its samples.
Mean mean_of(const Turns& runs) {
  std::vector<double> values;
  for (const auto& [run, sample] : runs) {
    double sum = 0;
    for (const double value : sample.values) sum += value;
    values.push_back(sum / static_cast<double>(sample.values.size()));
  }
  Mean result;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) result.mean += value / count;
  double squares = 0;
  for (const double value : values) squares += std::pow(value - result.mean, 2);
  if (count > 1) result.deviation = std::sqrt(squares / (count - 1));
  return result;
}

int other_axis(const Figure& figure, const Key& key) {
  return figure.by_size ? key.depth : key.message_bytes;
}

int x_of(const Figure& figure, const Key& key) {
  return figure.by_size ? key.message_bytes : key.depth;
}

std::string panel_title(const Figure& figure, int other) {
  if (figure.by_size) return "behind " + std::to_string(other) + " receives";
  return "messages of " + std::to_string(other) + " B";
}

// A structure goes without "tagline:".
std::string short_name(const Runner& runner) {
  const std::string& name = runner.configuration.name;
  const auto colon = name.find(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

void print_tables(const Figure& figure, const Comparison& comparison) {
  std::map<int, std::set<Key>> panels;
  for (const Key& key : comparison.keys()) panels[other_axis(figure, key)].insert(key);
  for (const auto& [other, keys] : panels) {
    Table table(figure.title + ", " + panel_title(figure, other) + ": mean (standard deviation), " +
                (figure.measure == "latency" ? "us" : "MiB/s"));
    std::vector<std::string> header{figure.by_size ? "bytes" : "ahead"};
    for (const Runner& runner : comparison.runners()) {
      header.push_back(short_name(runner));
    }
    table.header(header);
    for (const Key& key : keys) {
      std::vector<std::string> row{std::to_string(x_of(figure, key))};
      for (const Runner& runner : comparison.runners()) {
        const auto found = runner.results.find(key);
        if (found == runner.results.end()) {
          row.emplace_back("-");
          continue;
        }
        const Mean value = mean_of(found->second);
        row.push_back(format("%.3g", value.mean) + " (" + format("%.2g", value.deviation) + ")");
      }
      table.row(row);
    }
    std::printf("%s\n", table.text().c_str());
  }
}

Plot make_plot(const Figure& figure, const Comparison& comparison) {
  Plot plot;
  plot.title = figure.title + ", caches swept";
  plot.x_label = figure.by_size ? "bytes" : "receives ahead";
  plot.y_label = figure.measure == "latency" ? "microseconds" : "MiB/s";
  std::set<int> others;
  for (const Key& key : comparison.keys()) others.insert(other_axis(figure, key));
  for (const int other : others) {
    Panel panel{panel_title(figure, other), {}};
    for (const Runner& runner : comparison.runners()) {
      Series series{short_name(runner), {}};
      for (const auto& [key, runs] : runner.results) {
        if (other_axis(figure, key) != other) continue;
        const Mean value = mean_of(runs);
        // The axis is logarithmic, and a deviation may be larger than the mean.
        const double low = std::max(value.mean - value.deviation, value.mean / 4);
        series.points.push_back({static_cast<double>(x_of(figure, key)), value.mean, low,
                                 value.mean + value.deviation});
      }
      if (!series.points.empty()) panel.series.push_back(std::move(series));
    }
    plot.panels.push_back(std::move(panel));
  }
  return plot;
}

int run_sweep(const Context& context, const Settings& settings) {
  const std::vector<Figure> figures = make_figures(context.quick);
  std::vector<Comparison> comparisons;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    comparisons.emplace_back(context, settings.series);
  }

  watch_for_interrupts();
  const int runs = settings.runs > 0 ? settings.runs : context.quick ? 3 : 10;
  const Seconds limit{120};
  for (int run = 0; run < runs && !interrupted(); ++run) {
    for (std::size_t i = 0; i < figures.size(); ++i) {
      const Figure& figure = figures[i];
      comparisons[i].take_turn(
          {context.programs / "stream", "--cold", "--cold-samples", context.quick ? "2" : "3",
           "--window", "64", "--measures", figure.measure, "--sizes", figure.sizes, "--depths",
           figure.depths},
          "run " + std::to_string(run + 1) + "/" + std::to_string(runs) + ", " + figure.name,
          limit);
    }
  }
  end_progress();
  if (interrupted()) {
    std::fprintf(stderr, "bench: interrupted, nothing written\n");
    return 130;
  }

  bool failed = false;
  const Record common = environment("depth-sweep", context.commit);
  std::vector<Record> records;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    failed = !comparisons[i].finish() || failed;
    for (const Runner& runner : comparisons[i].runners()) {
      for (const auto& [key, samples] : runner.results) {
        Record record = common;
        record["figure"] = figures[i].name;
        record["series"] = runner.configuration.name;
        record["mpi_library"] = runner.library;
        record["measure"] = key.measure;
        record["cache_sweep_bytes"] = runner.sweep_bytes;
        record["depth_entries"] = key.depth;
        record["message_bytes"] = key.message_bytes;
        record["runs"] = samples.size();
        const Mean value = mean_of(samples);
        const std::string field = key.measure == "latency" ? "latency_us" : "bandwidth_mib_per_s";
        record[field + "_mean"] = value.mean;
        record[field + "_deviation"] = value.deviation;
        records.push_back(std::move(record));
      }
    }
  }
  if (records.empty()) {
    std::fprintf(stderr, "bench: no configuration ran, nothing written\n");
    return 1;
  }
  for (std::size_t i = 0; i < figures.size(); ++i) print_tables(figures[i], comparisons[i]);
  write_records(context.output, "depth-sweep", records);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const auto file = context.output / ("depth-sweep-" + figures[i].name + ".svg");
    failed = !write_plot(file, make_plot(figures[i], comparisons[i])) || failed;
  }
  std::printf("%zu records in %s/depth-sweep.json and .csv, plots in depth-sweep-*.svg\n",
              records.size(), context.output.c_str());
  return failed ? 1 : 0;
}

}  // namespace

void add_depth_sweep(CLI::App& app, Context& context) {
  static Settings settings{0, kAllSeries};
  CLI::App* const command = app.add_subcommand(
      "depth-sweep", "the dissertation's figures: latency and bandwidth, every structure");
  command->add_option("--runs", settings.runs, "jobs per point (10; quick: 3)")
      ->check(CLI::Range(1, 1000));
  command->add_option("--series", settings.series, "ob1, ucx, tagline:QUEUE")
      ->delimiter(',')
      ->check([](const std::string& name) {
        const bool known = name == "ob1" || name == "ucx" || name.starts_with("tagline:");
        return known ? std::string() : "a series is ob1, ucx or tagline:QUEUE, not " + name;
      })
      ->capture_default_str();
  command->callback([&context] { context.exit_code = run_sweep(context, settings); });
}

}  // namespace bench
