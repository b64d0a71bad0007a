// SPDX-License-Identifier: BSD-3-Clause
//
// Counts the cache lines that the matches of a history touch, for `tagline replay`: the
// library with hooks is another program. Prints one JSON object per rank and structure.
#include <cstdio>
#include <exception>

#include "bench/line_watch.hpp"
#include "bench/options.hpp"
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
  std::vector<std::uint64_t> ranks;
  std::vector<std::string> queues;
  std::uint64_t most = UINT64_MAX;
  bench::Options options("tagline_lines", "Cache lines per post or arrival");
  options.text("trace", trace, "what tagline record wrote");
  options.numbers("--ranks", ranks, 0, UINT32_MAX, "of the trace; default: all");
  options.list("--queue", queues, "queue structures");
  options.number("--most", most, 1, UINT64_MAX, "operations of a rank");
  if (const std::optional<int> ended = options.parse(argc, argv)) return *ended;
  try {
    const tagline::tools::TraceSet traces(trace);
    traces.for_each({ranks.begin(), ranks.end()}, [&](tagline::tools::History history) {
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
