// SPDX-License-Identifier: BSD-3-Clause
//
// How often a measurement is repeated: until the 95 % confidence interval of the mean
// lies within a part of it, or a limit is reached; the estimate says which.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "energy.hpp"

namespace suite {

struct Repetition {
  double precision = 0.05;  // half the interval, as a part of the mean
  int least = 5;            // samples
  int most = 200;
  double seconds = 2;  // no sample is begun after this time
};

struct Estimate {
  double mean = 0;
  double half_width = 0;  // of the 95 % confidence interval, Student's t
  double lowest = 0;
  double highest = 0;
  std::size_t samples = 0;
  std::string stopped_by;  // "confidence", "sample limit" or "time limit"
  double seconds = 0;      // that all samples took
  double joules = -1;      // over all samples; negative: not to be had here
};

Estimate estimate_of(const std::vector<double>& samples);

class Repeater {
 public:
  Repeater(const Repetition& rule, bool reads_energy);
  bool wants_more();
  void add(double sample);
  Estimate estimate() const;

 private:
  const Repetition& rule_;
  std::vector<double> samples_;
  double sum_ = 0;
  double sum_of_squares_ = 0;
  double start_;
  std::string stopped_by_;
  EnergyMeter energy_;
};

}  // namespace suite
