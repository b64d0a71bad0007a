// SPDX-License-Identifier: BSD-3-Clause
//
// Counts the cache lines that a match touches (line_watch.hpp says how). Prints one
// JSON object per structure and point, means over the matches of a pass.
#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "engine_workload.hpp"
#include "line_watch.hpp"
#include "options.hpp"

namespace {

// What a matcher takes before it holds an entry: as it is made, and after one
// receive has been matched (its context stays).
void print_memory(const bench::EngineStructure& structure) {
  const bench::EnginePoint point;
  const auto script = bench::Scripts(point).of(structure);
  bench::remember_new();
  bench::Workload workload(structure, script);
  const std::size_t made = bench::bytes_of_new() + workload.pool_bytes();
  workload.pass();
  const std::size_t used = bench::bytes_of_new() + workload.pool_bytes();
  bench::forget_new();
  std::printf(
      "{\"memory\":true,%s,\"bytes_per_new_matcher\":%zu,\"bytes_per_empty_matcher\":%zu}\n",
      json_fields(structure, point).c_str(), made, used);
}

}  // namespace

int main(int argc, char** argv) {
  bench::find_stack();
  std::string subset = "standard";
  std::string filter;
  std::size_t deepest = std::size_t{1} << 20;
  bench::Options options("engine_lines", "Cache lines of queue memory that a match touches");
  options.text("--subset", subset, "as in the program engine");
  options.text("--filter", filter, "regular expression on the names of benchmarks");
  options.number("--deepest", deepest, 0, std::uint64_t{1} << 32, "deepest queue to count in");
  if (const std::optional<int> ended = options.parse(argc, argv)) return *ended;
  unsetenv("TAGLINE_QUEUE");
  unsetenv("TAGLINE_ISA");

  const std::regex wanted(filter);
  const auto structures = bench::known_structures();
  for (const bench::EngineStructure& structure : structures) print_memory(structure);
  for (const bench::EngineTask& task : bench::tasks_of(subset)) {
    const bench::EnginePoint& point = task.point;
    // What is touched does not depend on whether it is in the cache.
    if (point.cold || point.depth > deepest) continue;
    if (point.operation != bench::Operation::post_and_match) continue;
    // Of the deepest queues exact matches alone: their lines have a goal.
    constexpr std::size_t kDeep = 65536;
    if (point.depth > kDeep && point.wildcard_percent > 0) continue;
    const bool drains = !bench::entries_stay(point.order);
    bench::Scripts scripts(point);
    for (const bench::EngineStructure& structure : structures) {
      if (!can_do(structure, point)) continue;
      if (!std::regex_search(benchmark_name(structure, point), wanted)) continue;
      // Draining a deep list takes as long as in engine.cpp, times ten.
      const bool is_index = structure.structure == "adaptive" || structure.structure == "indexed" ||
                            structure.structure == "exact_hash";
      if (point.depth > (drains ? 1024 : 4096) && !is_index) continue;

      bench::remember_new();
      bench::Workload workload(structure, scripts.of(structure));
      bench::LineWatch watch(workload.pairs());
      workload.fill();
      // Contexts come with the first call, an index with the first searches, a hundred entries
      // in each: what is counted is what it is like from then on.
      constexpr std::size_t kIndexedBySearch = 64;
      for (std::size_t searches = 0; searches <= point.depth / kIndexedBySearch;
           searches += workload.pairs()) {
        workload.pass();
      }
      bench::forget_new();
      workload.pass(watch);
      std::printf("{%s,\"lines_per_match\":%.4g,\"matcher_lines_per_match\":%.4g}\n",
                  json_fields(structure, point).c_str(), watch.queue_lines(),
                  watch.matcher_lines());
    }
  }
  return 0;
}
