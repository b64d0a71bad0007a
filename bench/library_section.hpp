// SPDX-License-Identifier: BSD-3-Clause
//
// The part of a report that needs no MPI: library.cpp, run once per turn.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "report.hpp"

namespace bench {

class LibrarySection {
 public:
  // One job of the program; why not, if it failed, else an empty string.
  std::string take_turn(const std::filesystem::path& programs);

  // Adds a record per point to those of the benchmark.
  void add_records(const Record& common, std::vector<Record>& records) const;
  std::string tables() const;
  bool empty() const { return points_.empty(); }

 private:
  struct Key {
    std::string which;
    int depth;
    std::string structure;
    auto operator<=>(const Key&) const = default;
  };
  struct Point {
    std::string isa;
    std::map<int, std::vector<double>> turns;
    std::vector<double> all() const;
  };
  Spread ratio(const Key& key, const std::string& base) const;  // time / time of base

  std::map<Key, Point> points_;
  std::vector<std::string> structures_;  // in the order of the program
  int turns_ = 0;
};

}  // namespace bench
