// SPDX-License-Identifier: BSD-3-Clause
#include "simd/find_key.hpp"
#include "simd/find_lane.hpp"

namespace tagline::simd {

template <>
inline std::uint32_t lane_bits<xsimd::neon64>(
    const xsimd::batch_bool<std::int32_t, xsimd::neon64>& lanes) noexcept {
  // Each lane keeps its own bit of the comparison; the lanes then add up to the mask.
  const uint32x4_t bit = {1, 2, 4, 8};
  return vaddvq_u32(vandq_u32(lanes, bit));
}

extern const Kernels kNeon64Kernels;
const Kernels kNeon64Kernels = {"neon64", find_lane<xsimd::neon64>, find_key<xsimd::neon64>};

}  // namespace tagline::simd
