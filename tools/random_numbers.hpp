// SPDX-License-Identifier: BSD-3-Clause
//
// Numbers that look random and are functions of where they are used: the same simulation every
// time, and no generator to store per rank.
#pragma once

#include <cmath>
#include <cstdint>

namespace tagline::tools {

inline std::uint64_t hash(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xc2b2ae3d27d4eb4fu + c * 0x165667b19e3779f9u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// In (0, 1].
inline double unit(std::uint64_t random) noexcept {
  return (static_cast<double>(random >> 11) + 1) * 0x1p-53;
}

inline double exponential(std::uint64_t random, double mean) noexcept {
  return -mean * std::log(unit(random));
}

// Mean 0, standard deviation 1, never beyond 3.5: the sum of twelve.
inline double normal(std::uint64_t random) noexcept {
  double sum = -6;
  for (std::uint64_t i = 0; i < 12; ++i) sum += unit(hash(random, i, 0));
  return sum < -3.5 ? -3.5 : sum > 3.5 ? 3.5 : sum;
}

}  // namespace tagline::tools
