// SPDX-License-Identifier: BSD-3-Clause
//
// Tables and plot of depth.cpp under several configurations.
#pragma once

#include <string>
#include <vector>

#include "comparison.hpp"

namespace bench {

// What a run of depth.cpp was asked for, beside the depths.
struct DepthAxes {
  std::vector<std::string> cases;
  std::vector<std::string> caches;
};

void print_depth_tables(const Comparison& comparison, const DepthAxes& axes);
Plot depth_plot(const Comparison& comparison, const DepthAxes& axes);

}  // namespace bench
