// SPDX-License-Identifier: BSD-3-Clause
#include "simd/find_key.hpp"
#include "simd/find_lane.hpp"

namespace tagline::simd {

template <>
inline std::uint32_t lane_bits<xsimd::sse2>(
    const xsimd::batch_bool<std::int32_t, xsimd::sse2>& lanes) noexcept {
  return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(lanes)));
}

extern const Kernels kSse2Kernels;
const Kernels kSse2Kernels = {"sse2", find_lane<xsimd::sse2>, find_key<xsimd::sse2>};

}  // namespace tagline::simd
