// SPDX-License-Identifier: BSD-3-Clause
#include "estimate.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace suite {
namespace {

double seconds_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Two-sided 95 % quantile of Student's t. Beyond the table it falls from 2.04 to 1.96,
// and this approximation is within 0.1 %.
double student_t(std::size_t degrees) {
  static constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                      2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                      2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                      2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees <= std::size(kTable)) return kTable[degrees - 1];
  return 1.960 + 2.45 / static_cast<double>(degrees);
}

double half_width(std::size_t n, double mean, double sum_of_squares) {
  if (n < 2) return HUGE_VAL;
  const double count = static_cast<double>(n);
  const double variance = std::max(0.0, (sum_of_squares - count * mean * mean) / (count - 1));
  return student_t(n - 1) * std::sqrt(variance / count);
}

}  // namespace

Estimate estimate_of(const std::vector<double>& samples) {
  Estimate result;
  double sum = 0;
  double sum_of_squares = 0;
  for (const double sample : samples) {
    sum += sample;
    sum_of_squares += sample * sample;
  }
  result.samples = samples.size();
  result.mean = sum / static_cast<double>(samples.size());
  result.half_width = half_width(samples.size(), result.mean, sum_of_squares);
  const auto [lowest, highest] = std::minmax_element(samples.begin(), samples.end());
  result.lowest = *lowest;
  result.highest = *highest;
  return result;
}

Repeater::Repeater(const Repetition& rule, bool reads_energy)
    : rule_(rule), start_(seconds_now()), energy_(reads_energy) {}

bool Repeater::wants_more() {
  const auto n = samples_.size();
  if (n == 0) return true;
  // One sample is owed whatever the time; the least number is waived only by it.
  if (n >= static_cast<std::size_t>(rule_.least) &&
      half_width(n, sum_ / static_cast<double>(n), sum_of_squares_) <=
          rule_.precision * sum_ / static_cast<double>(n)) {
    stopped_by_ = "confidence";
  } else if (n >= static_cast<std::size_t>(rule_.most)) {
    stopped_by_ = "sample limit";
  } else if (seconds_now() - start_ >= rule_.seconds) {
    stopped_by_ = "time limit";
  } else {
    return true;
  }
  return false;
}

void Repeater::add(double sample) {
  samples_.push_back(sample);
  sum_ += sample;
  sum_of_squares_ += sample * sample;
}

Estimate Repeater::estimate() const {
  Estimate result = estimate_of(samples_);
  result.stopped_by = stopped_by_;
  result.joules = energy_.joules();
  result.seconds = seconds_now() - start_;
  return result;
}

}  // namespace suite
