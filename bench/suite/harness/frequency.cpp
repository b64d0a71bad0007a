// SPDX-License-Identifier: BSD-3-Clause
#include "frequency.hpp"

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace suite {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCpus = "/sys/devices/system/cpu";

fs::path folder_of(int cpu) { return fs::path(kCpus) / ("cpu" + std::to_string(cpu)) / "cpufreq"; }

std::string content(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// True if the kernel took it; else errno says why not.
bool write(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  return static_cast<bool>(out << text << std::flush);
}

}  // namespace

double cpu_mhz() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return -1;
  double sum = 0;
  int count = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    double khz = 0;
    if (!CPU_ISSET(cpu, &set)) continue;
    std::ifstream in(folder_of(cpu) / "scaling_cur_freq");
    if (!(in >> khz)) return -1;
    sum += khz;
    ++count;
  }
  return count > 0 ? sum / count / 1e3 : -1;
}

std::string cpu_frequency_description() {
  const fs::path folder = folder_of(0);
  std::error_code none;
  if (!fs::exists(folder, none)) return "not available here: there is no " + folder.string();
  return "governor " + content(folder / "scaling_governor") + ", " +
         content(folder / "cpuinfo_min_freq") + " to " + content(folder / "cpuinfo_max_freq") +
         " kHz";
}

CpuLimit::CpuLimit(int mhz) {
  if (mhz == 0) return;
  const std::string khz = std::to_string(1000L * mhz);
  for (int cpu = 0; fs::exists(fs::path(kCpus) / ("cpu" + std::to_string(cpu))); ++cpu) {
    const fs::path file = folder_of(cpu) / "scaling_max_freq";
    const std::string before = content(file);
    if (before.empty() || !write(file, khz)) {
      refused_ = "cannot write " + khz + " to " + file.string() + ": " + std::strerror(errno);
      break;
    }
    before_.emplace_back(file.string(), before);
    // The kernel takes any number and keeps to what the CPU can do.
    if (content(file) != khz) {
      refused_ = "the CPU does not run at " + std::to_string(mhz) + " MHz: asked for " + khz +
                 " kHz, " + file.string() + " says " + content(file);
      break;
    }
  }
  if (refused_.empty() && before_.empty()) {
    refused_ = std::string("there is no CPU in ") + kCpus;
  }
  if (!refused_.empty()) restore();
}

CpuLimit::~CpuLimit() { restore(); }

void CpuLimit::restore() {
  for (const auto& [file, text] : before_) write(file, text);
  before_.clear();
}

}  // namespace suite
