// SPDX-License-Identifier: BSD-3-Clause
#include <set>
#include <tuple>

#include "sweep.hpp"

namespace bench {
namespace {

struct Axes {
  std::vector<std::string> patterns{"latency", "bandwidth", "bibandwidth", "rate", "halo"};
  std::vector<std::string> operations{"put", "get"};
  std::vector<std::string> synchronisations{"fence", "pscw", "lock", "lock_all"};
  std::vector<int> threads{1, 4};
  std::vector<long> bytes{8, 1024, 65536, 1 << 20};
};

Axes axes_of(Effort effort) {
  Axes axes;
  if (effort == Effort::quick) {
    axes.patterns = {"latency", "bandwidth", "halo"};
    axes.operations = {"put"};
    axes.threads = {1, 2};
    axes.bytes = {8, 65536};
  } else {
    axes.synchronisations.insert(axes.synchronisations.end(),
                                 {"flush", "flush_local", "notify_weak_send", "notify_strict_send",
                                  "notify_weak_counter", "notify_strict_counter"});
  }
  if (effort == Effort::full) {
    axes.threads = {1, 2, 4, 8, 16};
    axes.bytes.clear();
    for (long bytes = 1; bytes <= 4 << 20; bytes *= 2) axes.bytes.push_back(bytes);
  }
  return axes;
}

std::vector<Job> jobs(Effort effort) {
  const Axes axes = axes_of(effort);
  const bool quick = effort == Effort::quick;
  std::vector<Job> all;
  const auto add = [&](const std::string& pattern, const std::string& operation,
                       const std::string& synchronisation, int threads, long bytes) {
    Job job{"rma_mt", 2, {}, {}};
    const bool two_sided = operation == "send";
    job.arguments = {"--pattern",   pattern,
                     "--operation", operation,
                     "--threads",   std::to_string(threads),
                     "--bytes",     std::to_string(bytes)};
    if (!two_sided) {
      job.arguments.insert(job.arguments.end(), {"--sync", synchronisation});
    }
    if (pattern == "rate") job.ranks = 4;
    if (pattern == "halo") {
      const int neighbours = quick ? 2 : 6;
      job.ranks = neighbours + 1;
      job.arguments.insert(job.arguments.end(), {"--neighbours", std::to_string(neighbours)});
    }
    // A window of large messages would take seconds and tell no more.
    const int window = bytes >= 65536 ? 16 : 64;
    job.arguments.insert(job.arguments.end(), {"--window", std::to_string(window)});
    job.parameters["pattern"] = pattern;
    job.parameters["operation"] = operation;
    job.parameters["synchronisation"] = two_sided ? "two-sided" : synchronisation;
    job.parameters["threads"] = threads;
    job.parameters["bytes"] = bytes;
    all.push_back(std::move(job));
  };
  for (const std::string& pattern : axes.patterns) {
    for (const long bytes : axes.bytes) {
      add(pattern, "send", "", 1, bytes);
      for (const std::string& operation : axes.operations) {
        for (const std::string& synchronisation : axes.synchronisations) {
          for (const int threads : axes.threads) {
            add(pattern, operation, synchronisation, threads, bytes);
          }
        }
      }
    }
  }
  return all;
}

// The records of these patterns, the two-sided baseline beside each operation and number of
// threads that there is of its pattern.
std::vector<Record> with_baseline(const std::vector<Record>& records,
                                  const std::set<std::string>& patterns) {
  std::vector<Record> shown;
  std::set<std::tuple<std::string, std::string, int>> panels;
  for (const Record& record : records) {
    if (!patterns.contains(record["pattern"]) || record["operation"] == "send") continue;
    panels.emplace(record["pattern"], record["operation"], record["threads"]);
    shown.push_back(record);
  }
  for (const Record& record : records) {
    if (record["operation"] != "send") continue;
    for (const auto& [pattern, operation, threads] : panels) {
      if (record["pattern"] != pattern) continue;
      Record& copy = shown.emplace_back(record);
      copy["operation"] = operation;
      copy["threads"] = threads;
    }
  }
  return shown;
}

}  // namespace

Sweep rma_mt() {
  const auto view = [](const std::string& title, const std::set<std::string>& patterns,
                       const std::string& field, const std::string& unit) {
    return View{
        title,
        {"pattern", "operation", "threads"},
        {"synchronisation"},
        "bytes",
        field,
        "bytes of a transfer",
        unit,
        true,
        [=](const std::vector<Record>& records) { return with_baseline(records, patterns); }};
  };
  return {"rma-mt",
          "one-sided communication by many threads: latency, bandwidth, message rate",
          {view("RMA-MT, latency", {"latency"}, "time_us", "us"),
           view("RMA-MT, bandwidth", {"bandwidth", "bibandwidth"}, "MB_per_s", "MB/s"),
           view("RMA-MT, message rate", {"rate", "halo"}, "messages_per_s", "messages/s")},
          jobs};
}

}  // namespace bench
