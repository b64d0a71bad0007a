// SPDX-License-Identifier: BSD-3-Clause
#include "simd/find_fingerprint.hpp"
#include "simd/find_lane.hpp"
#include "simd/meeting.hpp"

namespace tagline::simd {

template <>
inline std::uint64_t lane_bits<xsimd::avx2, std::int32_t>(
    const xsimd::batch_bool<std::int32_t, xsimd::avx2>& lanes) noexcept {
  return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
}
template <>
inline std::uint64_t lane_bits<xsimd::avx2, std::int8_t>(
    const xsimd::batch_bool<std::int8_t, xsimd::avx2>& lanes) noexcept {
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(lanes));
}
template <>
inline std::uint64_t lane_bits<xsimd::avx2, std::int16_t>(
    const xsimd::batch_bool<std::int16_t, xsimd::avx2>& lanes) noexcept {
  // Words become bytes within each half of the register, so the halves are joined.
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  return static_cast<std::uint32_t>(_mm_movemask_epi8(bytes));
}
template <>
inline std::uint64_t lane_bits<xsimd::avx2, std::uint64_t>(
    const xsimd::batch_bool<std::uint64_t, xsimd::avx2>& lanes) noexcept {
  return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(lanes)));
}

extern const Kernels kAvx2Kernels;
const Kernels kAvx2Kernels = {"avx2",
                              find_lane<xsimd::avx2>,
                              meeting<xsimd::avx2>,
                              meeting<xsimd::avx2, /*exact=*/true>,
                              find_fingerprint<xsimd::avx2, std::uint8_t>,
                              find_fingerprint<xsimd::avx2, std::uint16_t>,
                              find_fingerprint<xsimd::avx2, std::uint32_t>};

}  // namespace tagline::simd
