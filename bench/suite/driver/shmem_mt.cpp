// SPDX-License-Identifier: BSD-3-Clause
#include <set>

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

}  // namespace

Sweep shmem_mt() {
  const auto of = [](const std::set<std::string>& patterns) {
    return [=](std::vector<Record> records) {
      std::erase_if(records, [&](const Record& record) {
        return !patterns.contains(record["pattern"].get<std::string>());
      });
      return records;
    };
  };
  const auto by_size = [&](const std::string& title, const std::string& pattern,
                           const std::string& field, const std::string& unit) {
    return View{title,   {"operation"}, {"threads"},
                "bytes", field,         "bytes of a message, all threads together",
                unit,    true,          of({pattern})};
  };
  return {"shmem-mt",
          "OpenSHMEM's one-sided communication by many threads, mini-applications over it",
          {by_size("SHMEM-MT, latency", "latency", "time_us", "us"),
           by_size("SHMEM-MT, bandwidth", "bandwidth", "MB_per_s", "MB/s"),
           by_size("SHMEM-MT, message rate of a halo", "halo", "messages_per_s", "messages/s"),
           {"SHMEM-MT, time of a solution as PEs and problem grow",
            {},
            {"pattern"},
            "ranks",
            "time_us",
            "PEs",
            "us",
            true,
            of({"hpccg", "minife"})}},
          jobs,
          {"oshmem"}};
}

}  // namespace bench
