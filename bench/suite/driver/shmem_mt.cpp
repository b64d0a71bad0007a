// SPDX-License-Identifier: BSD-3-Clause
#include "sweep.hpp"

namespace bench {
namespace {

Job transfer_job(const std::string& pattern, const std::string& operation, int threads, long bytes,
                 int neighbours) {
  const bool halo = pattern == "halo";
  Job job{"shmem_mt", halo ? neighbours + 1 : 2, {}, {}};
  job.arguments = {"--pattern", pattern, "--operation", operation, "--threads",
                   std::to_string(threads), "--bytes", std::to_string(bytes), "--window",
                   // A window of large messages would take seconds and tell no more.
                   std::to_string(bytes >= 65536 ? 16 : 64)};
  if (halo) {
    job.arguments.insert(job.arguments.end(), {"--neighbours", std::to_string(neighbours)});
  }
  job.parameters["pattern"] = pattern;
  job.parameters["operation"] = operation;
  job.parameters["threads"] = threads;
  job.parameters["bytes"] = bytes;
  return job;
}

std::vector<Job> jobs(Effort effort) {
  const bool quick = effort == Effort::quick;
  std::vector<int> threads = quick ? std::vector<int>{1, 2} : std::vector<int>{1, 4};
  std::vector<long> sizes =
      quick ? std::vector<long>{16, 65536} : std::vector<long>{16, 1024, 65536, 1 << 20};
  std::vector<int> pes{2};
  if (!quick) pes.insert(pes.end(), {4, 8});
  if (effort == Effort::full) {
    threads = {1, 2, 4, 8, 16};
    sizes.clear();
    for (long bytes = 16; bytes <= 4 << 20; bytes *= 2) sizes.push_back(bytes);
    pes.push_back(16);
  }
  std::vector<Job> all;
  for (const std::string pattern : {"latency", "bandwidth", "halo"}) {
    for (const std::string operation : {"put", "get"}) {
      for (const long bytes : sizes) {
        for (const int n : threads) {
          all.push_back(transfer_job(pattern, operation, n, bytes, quick ? 2 : 6));
        }
      }
    }
  }
  for (const std::string app : {"hpccg", "minife"}) {
    for (const int n : pes) {
      Job job{"shmem_mt", n, {}, {}};
      job.arguments = {"--pattern", app, "--edge",
                       quick                        ? "10"
                       : effort == Effort::standard ? "20"
                                                    : "60"};
      job.parameters["pattern"] = app;
      all.push_back(std::move(job));
    }
  }
  return all;
}

// Weak scaling is a figure of its own, beside the times by size.
void name_times(std::vector<Record>& records) {
  for (Record& record : records) {
    if (!record.contains("time_us")) continue;
    record[record.contains("iterations") ? "solution_us" : "epoch_us"] = record["time_us"];
  }
}

}  // namespace

Sweep shmem_mt() {
  const auto by_size = [](const std::string& title, const std::string& field,
                          const std::string& unit) {
    return View{title,       {"pattern", "operation"},
                {"threads"}, "bytes",
                field,       "bytes of a message, all threads together",
                unit};
  };
  return {"shmem-mt",
          "OpenSHMEM's one-sided communication by many threads, mini-applications over it",
          {by_size("SHMEM-MT, time of an epoch", "epoch_us", "us"),
           by_size("SHMEM-MT, all messages", "MB_per_s", "MB/s"),
           {"SHMEM-MT, time of a solution as PEs and problem grow",
            {},
            {"pattern"},
            "ranks",
            "solution_us",
            "PEs",
            "us"}},
          jobs,
          {"oshmem"},
          {},
          name_times};
}

}  // namespace bench
