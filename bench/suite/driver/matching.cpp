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

// The modified message rate of M. Dosanjh's section 6.4.1: queues of one length on both
// sides, several threads, more of both than a small machine has cores.
std::vector<Job> tail_queue_jobs(Effort effort) {
  std::vector<long> lengths{1, 4, 16, 64, 256, 1024};
  if (effort == Effort::quick) lengths = {1, 256};
  if (effort == Effort::full) lengths = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  std::vector<Job> all;
  for (const long length : lengths) {
    Job job{"msgrate", 8, {}, {}};
    job.arguments = {"--threads",           "2", "--posted", std::to_string(length), "--unexpected",
                     std::to_string(length)};
    job.parameters["threads"] = 2;
    job.parameters["posted"] = length;
    job.parameters["unexpected"] = length;
    all.push_back(std::move(job));
  }
  return all;
}

constexpr const char* kSingleLock = "tagline:locked@mcs:linear";

// Beside the single lock's at the same queue length.
void add_rate_over_single_lock(std::vector<Record>& records) {
  for (Record& record : records) {
    if (!record.contains("messages_per_s")) continue;
    for (const Record& other : records) {
      if (!other.contains("messages_per_s") || other["mpi"] != kSingleLock ||
          other["posted"] != record["posted"]) {
        continue;
      }
      record["rate_over_single_lock"] =
          record["messages_per_s"].get<double>() / other["messages_per_s"].get<double>();
    }
  }
}

std::vector<Job> queue_depth_jobs(Effort effort) {
  std::string depths = "0,1,16,64,256,1024,4096";
  std::string bytes = "1,64,1024,16384,262144";
  if (effort == Effort::quick) depths = "0,64,1024", bytes = "1,4096";
  if (effort == Effort::full) depths += ",16000", bytes += ",1048576";
  std::vector<Job> all;
  for (const std::string test : {"latency", "bandwidth"}) {
    for (const std::string ahead : {"posted", "unexpected", "any_source", "any_tag", "random"}) {
      Job job{"queue_depth", 2, {}, {}};
      job.arguments = {"--test",   test,   "--ahead", ahead,
                       "--depths", depths, "--bytes", test == "latency" ? "1" : bytes};
      job.parameters["test"] = test;
      job.parameters["ahead"] = ahead;
      all.push_back(std::move(job));
    }
  }
  return all;
}

// Each test in a field of its own, for tables and plots of its own.
void part_tests(std::vector<Record>& records) {
  for (Record& record : records) {
    if (!record.contains("time_us")) continue;
    if (record["test"] == "latency") {
      record["latency_us"] = record["time_us"];
    } else {
      record["bandwidth_MB_per_s"] = record["MB_per_s"];
    }
  }
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

Sweep tail_queues() {
  const auto view = [](const std::string& title, const std::string& field,
                       const std::string& unit) {
    return View{title, {}, {}, "posted", field, "entries in both queues", unit};
  };
  return {"tail-queues",
          "message rate of 8 ranks x 2 threads: a single lock, tail queues, binned ones",
          {view("Message rate of 8 ranks x 2 threads", "messages_per_s", "messages/s"),
           view("The same, over that of a single lock", "rate_over_single_lock", "ratio")},
          tail_queue_jobs,
          {kSingleLock, "tagline:tail@mcs:linear", "tagline:binned@mcs:linear"},
          {},
          add_rate_over_single_lock};
}

Sweep queue_depth() {
  return {"queue-depth",
          "latency and bandwidth behind queues of some depth, caches swept",
          {{"Latency behind a queue of 1-byte messages",
            {"ahead"},
            {},
            "depth",
            "latency_us",
            "entries ahead",
            "us"},
           {"Bandwidth behind a queue",
            {"ahead", "bytes"},
            {},
            "depth",
            "bandwidth_MB_per_s",
            "entries ahead",
            "MB/s"}},
          queue_depth_jobs,
          {"ob1", "tagline", "mpich"},
          {},
          part_tests};
}

}  // namespace bench
