// SPDX-License-Identifier: BSD-3-Clause
#include "simd/find_key.hpp"
#include "simd/find_lane.hpp"

namespace tagline::simd {

template <>
inline std::uint32_t lane_bits<xsimd::avx512bw>(
    const xsimd::batch_bool<std::int32_t, xsimd::avx512bw>& lanes) noexcept {
  return lanes.data;  // AVX-512 compares into a mask register
}

extern const Kernels kAvx512bwKernels;
const Kernels kAvx512bwKernels = {"avx512bw", find_lane<xsimd::avx512bw>, find_key<xsimd::avx512bw>};

}  // namespace tagline::simd
