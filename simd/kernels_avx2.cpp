// SPDX-License-Identifier: BSD-3-Clause
#include "simd/find_key.hpp"
#include "simd/find_lane.hpp"

namespace tagline::simd {

template <>
inline std::uint32_t lane_bits<xsimd::avx2>(
    const xsimd::batch_bool<std::int32_t, xsimd::avx2>& lanes) noexcept {
  return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
}

extern const Kernels kAvx2Kernels;
const Kernels kAvx2Kernels = {"avx2", find_lane<xsimd::avx2>, find_key<xsimd::avx2>};

}  // namespace tagline::simd
