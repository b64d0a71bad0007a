// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <fstream>

#include "sweep.hpp"

namespace bench {
namespace {

// MHz from the slowest to the fastest that the CPUs run at; one 0 where they cannot be
// limited.
std::vector<int> frequencies(Effort effort) {
  const auto khz = [](const char* name) {
    std::ifstream in(std::string("/sys/devices/system/cpu/cpu0/cpufreq/") + name);
    int number = 0;
    return in >> number ? number : 0;
  };
  const int low = khz("cpuinfo_min_freq") / 1000;
  const int high = khz("cpuinfo_max_freq") / 1000;
  if (geteuid() != 0 || low == 0 || high <= low) return {0};
  const int steps = effort == Effort::quick ? 1 : effort == Effort::standard ? 2 : 5;
  std::vector<int> all;
  for (int i = 0; i <= steps; ++i) all.push_back(low + (high - low) * i / steps);
  return all;
}

std::vector<Job> jobs(Effort effort) {
  std::string bytes = "1,16,256,4096,65536,1048576";
  if (effort == Effort::quick) bytes = "8,65536";
  if (effort == Effort::full) {
    bytes = "1";
    for (long size = 2; size <= 4 << 20; size *= 2) bytes += "," + std::to_string(size);
  }
  std::vector<Job> all;
  for (const std::string test : {"stream", "uncached stream", "ping-pong"}) {
    for (const int mhz : frequencies(effort)) {
      Job job{"pingpong", 2, {}, {}};
      job.arguments = {"--test",    test == "ping-pong" ? "latency" : "bandwidth",
                       "--bytes",   bytes,
                       "--window",  "16",
                       "--cpu-mhz", std::to_string(mhz),
                       "--note",    "power_test=" + test};
      if (test == "uncached stream") {
        job.arguments.insert(job.arguments.end(), {"--uncached", "256"});
      }
      job.parameters["power_test"] = test;
      if (mhz > 0) job.parameters["cpu_mhz_limit"] = mhz;
      all.push_back(std::move(job));
    }
  }
  return all;
}

}  // namespace

Sweep power() {
  const auto view = [](const std::string& title, const std::string& field,
                       const std::string& unit) {
    return View{title, {"power_test"}, {"cpu_mhz_limit"}, "bytes", field, "bytes of a message",
                unit};
  };
  return {"power",
          "stream, uncached stream and ping-pong: speed and energy by CPU frequency",
          {view("Power, all messages", "MB_per_s", "MB/s"),
           view("Power, drawn by CPUs and memory", "watts", "W"),
           view("Power, energy", "energy_uj_per_message", "uJ per message")},
          jobs,
          {"ob1", "tagline", "mpich"},
          {},
          {},
          {"cpu_frequency", "energy_counters"}};
}

}  // namespace bench
