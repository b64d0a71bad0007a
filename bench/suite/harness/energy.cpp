// SPDX-License-Identifier: BSD-3-Clause
#include "energy.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace suite {
namespace {

namespace fs = std::filesystem;

bool read_number(const fs::path& file, std::uint64_t& number) {
  std::ifstream in(file);
  return static_cast<bool>(in >> number);
}

std::string read_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// Folders of the outermost zones: what lies inside one is part of its count, except
// memory, which is counted apart.
std::vector<fs::path> zones() {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/sys/class/powercap", none)) {
    if (!fs::exists(entry.path() / "energy_uj", none)) continue;
    const std::string name = read_line(entry.path() / "name");
    if (name.rfind("package", 0) == 0 || name == "dram") found.push_back(entry.path());
  }
  return found;
}

}  // namespace

EnergyMeter::EnergyMeter(bool reads) {
  if (!reads) return;
  for (const fs::path& zone : zones()) {
    Counter counter{(zone / "energy_uj").string(), 0, 0};
    if (read_number(counter.file, counter.start) &&
        read_number(zone / "max_energy_range_uj", counter.wraps_at)) {
      counters_.push_back(counter);
    }
  }
}

double EnergyMeter::joules() const {
  if (counters_.empty()) return -1;
  double sum = 0;
  for (const Counter& counter : counters_) {
    std::uint64_t end = 0;
    if (!read_number(counter.file, end)) return -1;
    const std::uint64_t used =
        end >= counter.start ? end - counter.start : end + counter.wraps_at - counter.start;
    sum += static_cast<double>(used) * 1e-6;
  }
  return sum;
}

std::string EnergyMeter::description() {
  const std::vector<fs::path> all = zones();
  if (all.empty()) return "not available here: /sys/class/powercap has no energy counter";
  std::string names;
  for (const fs::path& zone : all) {
    std::uint64_t number = 0;
    if (!read_number(zone / "energy_uj", number)) {
      return "not available here: " + (zone / "energy_uj").string() + ": " + std::strerror(errno);
    }
    names += (names.empty() ? "powercap: " : ", ") + read_line(zone / "name");
  }
  return names;
}

}  // namespace suite
