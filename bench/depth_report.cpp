// SPDX-License-Identifier: BSD-3-Clause
#include "depth_report.hpp"

#include <cstdio>
#include <map>

namespace bench {
namespace {

std::string title_of(const std::string& which, const std::string& cache) {
  static const std::map<std::string, std::string> kTitles{
      {"posted", "posted receives ahead"},
      {"unexpected", "unexpected messages ahead"},
      {"any_source", "ANY_SOURCE receives ahead"},
      {"any_tag", "ANY_TAG receives ahead"},
      {"mixed", "receives and messages of all kinds ahead"},
      {"random", "random order"}};
  return kTitles.at(which) + ", " + (cache == "hot" ? "hot" : "caches swept");
}

}  // namespace

void print_depth_tables(const Comparison& comparison, const DepthAxes& axes) {
  const std::set<Key> keys = comparison.keys();
  const char* const base_name = comparison.base_name().c_str();
  std::printf(
      "\nMedian (10th .. 90th percentile). \"vs %s\": time of %s / time, or bandwidth / "
      "bandwidth\n"
      "of %s, paired by turn and placement: above 1 is better than %s.\n\n",
      base_name, base_name, base_name, base_name);

  Table base("Depth 0: half a round trip of 1 byte, and a stream of 1 MiB messages");
  base.header(comparison.table_header("measure", ""));
  for (const Key& key : keys) {
    if (key.depth != 0 || key.which != "posted" || key.cache != "hot") continue;
    base.row(comparison.table_row(
        key.measure == "bandwidth" ? "1 MiB bandwidth, MiB/s" : "1 B latency, us", key));
  }
  std::printf("%s\n", base.text().c_str());

  for (const std::string& cache : axes.caches) {
    for (const std::string& which : axes.cases) {
      Table table(title_of(which, cache) + (which == "random" && cache == "hot"
                                                ? ": us per message"
                                                : ": half a round trip of 1 byte, us"));
      table.header(comparison.table_header(which == "random" ? "receives" : "depth", "us"));
      bool any = false;
      for (const Key& key : keys) {
        if (key.measure != "latency" || key.which != which || key.cache != cache) continue;
        table.row(comparison.table_row(std::to_string(key.depth), key));
        any = true;
      }
      if (any) std::printf("%s\n", table.text().c_str());
    }
  }
}

Plot depth_plot(const Comparison& comparison, const DepthAxes& axes) {
  Plot plot;
  plot.title = "1-byte message whose match lies behind others in the queue";
  plot.x_label = "entries in the queue";
  plot.y_label = "microseconds";
  plot.columns = axes.cases.size();
  for (const std::string& cache : axes.caches) {
    for (const std::string& which : axes.cases) {
      Panel panel{title_of(which, cache), {}};
      for (const Runner& runner : comparison.runners()) {
        Series series{runner.configuration.name, {}};
        for (const auto& [key, samples] : runner.results) {
          if (key.measure != "latency" || key.which != which || key.cache != cache) continue;
          const Spread all = spread_of(all_samples(samples));
          series.points.push_back({static_cast<double>(key.depth), all.median, all.low, all.high});
        }
        if (!series.points.empty()) panel.series.push_back(std::move(series));
      }
      plot.panels.push_back(std::move(panel));
    }
  }
  return plot;
}

}  // namespace bench
