// SPDX-License-Identifier: BSD-3-Clause
//
// The CPUs' frequency, read and limited through the kernel's cpufreq folders, where this
// machine has them and we may.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace suite {

// Mean of the CPUs that this process may run on, now; negative: not to be had here.
double cpu_mhz();

// Why there is none, or governor and range.
std::string cpu_frequency_description();

// All CPUs run at most this fast until the limit goes; then they get back what they had.
class CpuLimit {
 public:
  explicit CpuLimit(int mhz);  // 0: none
  ~CpuLimit();
  CpuLimit(const CpuLimit&) = delete;
  CpuLimit& operator=(const CpuLimit&) = delete;
  const std::string& refused() const { return refused_; }  // why; empty: it holds

 private:
  void restore();

  std::vector<std::pair<std::string, std::string>> before_;  // file and content
  std::string refused_;
};

}  // namespace suite
