// SPDX-License-Identifier: BSD-3-Clause
//
// Counts the cache lines that the matches of a history touch, for `tagline replay`: the
// library with hooks is another program. Prints one JSON object per rank and structure.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "bench/line_watch.hpp"
#include "player.hpp"
#include "structures.hpp"

namespace {

class Watch : public bench::LineWatch {
 public:
  using bench::LineWatch::LineWatch;
  template <class Call>
  void other(Call call) {
    append(call);
  }
};

}  // namespace

int main(int argc, char** argv) {
  bench::find_stack();
  std::string trace;
  std::vector<std::uint32_t> ranks;
  std::vector<std::string> queues;
  std::size_t most = 0;
  CLI::App app{"Cache lines per post or arrival"};
  app.add_option("trace", trace)->required();
  app.add_option("--ranks", ranks)->delimiter(',');
  app.add_option("--queue", queues)->delimiter(',')->required();
  app.add_option("--most", most, "operations of a rank")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    const tagline::tools::TraceSet traces(trace);
    traces.for_each(ranks, [&](tagline::tools::History history) {
      if (history.operations.size() > most) history.operations.resize(most);
      for (const std::string& queue : queues) {
        bench::remember_new();
        const auto matcher = tagline::tools::make_matcher(queue);
        Watch watch(history.operations.size());
        tagline::tools::play(history, matcher.get(), watch);
        bench::forget_new();
        std::printf("{\"rank\":%u,\"queue\":\"%s\",\"lines\":%.4g,\"matcher_lines\":%.4g}\n",
                    history.rank, queue.c_str(), watch.queue_lines(), watch.matcher_lines());
      }
    });
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
