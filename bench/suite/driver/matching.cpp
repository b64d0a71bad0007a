// SPDX-License-Identifier: BSD-3-Clause
#include "sweep.hpp"

namespace bench {
namespace {

std::string list(const std::vector<long>& values) {
  std::string text;
  for (const long value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return text;
}

std::vector<long> sizes(long least, long most, long factor) {
  std::vector<long> all;
  for (long bytes = least; bytes <= most; bytes *= factor) all.push_back(bytes);
  return all;
}

// Sizes stay in one job here: Hockney's model is fitted through them.
std::vector<Job> pingpong_jobs(Effort effort) {
  const bool quick = effort == Effort::quick;
  const long factor = effort == Effort::full ? 2 : quick ? 64 : 8;
  const long most = effort == Effort::full ? 16 << 20 : 1 << 20;
  std::vector<Job> all;
  for (const int pairs : quick ? std::vector<int>{1} : std::vector<int>{1, 2, 4}) {
    for (const std::string test : {"latency", "bandwidth", "bidirectional"}) {
      std::vector<int> depths{0};
      if (test == "bandwidth") depths = quick ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 8};
      for (const int depth : depths) {
        Job job{"pingpong", 2 * pairs, {}, {}};
        std::vector<long> bytes = sizes(1, most, factor);
        // The fit wants two sizes on either side of its bounds.
        if (test == "latency")
          bytes = quick ? std::vector<long>{1, 8, 1024, 65536, 131072, 1 << 20}
                        : sizes(1, most, factor / 2 > 0 ? factor / 2 : 1);
        if (effort == Effort::full) bytes = sizes(1, most, 2);
        job.arguments = {"--test",  test,        "--pairs",     std::to_string(pairs),
                         "--bytes", list(bytes), "--preposted", std::to_string(depth)};
        job.parameters["test"] = test;
        job.parameters["pairs"] = pairs;
        if (test != "latency") job.parameters["preposted"] = depth == 0 ? 64 : depth;
        all.push_back(std::move(job));
      }
    }
  }
  return all;
}

std::vector<Job> msgrate_jobs(Effort effort) {
  const bool quick = effort == Effort::quick;
  std::vector<long> lengths =
      quick ? std::vector<long>{0, 256} : std::vector<long>{0, 16, 64, 256, 1024};
  if (effort == Effort::full) lengths.insert(lengths.end(), {4096, 16384});
  std::vector<Job> all;
  for (const int threads : {1, 2}) {
    for (const std::string queue : {"both", "posted"}) {
      if (quick && queue != "both") continue;
      for (const long length : lengths) {
        Job job{"msgrate", quick ? 2 : 8, {}, {}};
        job.arguments = {"--threads",    std::to_string(threads),
                         "--posted",     std::to_string(length),
                         "--unexpected", std::to_string(queue == "both" ? length : 0)};
        job.parameters["threads"] = threads;
        job.parameters["posted"] = length;
        job.parameters["unexpected"] = queue == "both" ? length : 0;
        all.push_back(std::move(job));
      }
    }
  }
  return all;
}

}  // namespace

Sweep pingpong() {
  return {"pingpong",
          "parallel ping-pong, receives posted ahead, Hockney's model fitted",
          {{"Ping-pong, time of a round",
            {"test", "pairs"},
            {"preposted"},
            "bytes",
            "time_us",
            "bytes of a message",
            "us"},
           {"Ping-pong, all pairs",
            {"test", "pairs"},
            {"preposted"},
            "bytes",
            "MB_per_s",
            "bytes of a message",
            "MB/s"},
           {"Hockney's model", {"test"}, {}, "pairs", "alpha_us", "pairs", "alpha, us"},
           {"Hockney's model",
            {"test"},
            {},
            "pairs",
            "bandwidth_MB_per_s",
            "pairs",
            "bandwidth, MB/s"}},
          pingpong_jobs};
}

Sweep msgrate() {
  return {"msgrate",
          "message rate of many pairs with threads behind queues of some length",
          {{"Message rate, single direction",
            {"ranks", "threads"},
            {"unexpected"},
            "posted",
            "messages_per_s",
            "receives ahead",
            "messages/s"}},
          msgrate_jobs};
}

}  // namespace bench
