// SPDX-License-Identifier: BSD-3-Clause
#include "simd/find_fingerprint.hpp"
#include "simd/find_lane.hpp"
#include "simd/meeting.hpp"

namespace tagline::simd {

template <>
inline std::uint64_t lane_bits<xsimd::sse2, std::int32_t>(
    const xsimd::batch_bool<std::int32_t, xsimd::sse2>& lanes) noexcept {
  return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(lanes)));
}
template <>
inline std::uint64_t lane_bits<xsimd::sse2, std::int8_t>(
    const xsimd::batch_bool<std::int8_t, xsimd::sse2>& lanes) noexcept {
  return static_cast<std::uint32_t>(_mm_movemask_epi8(lanes));
}
template <>
inline std::uint64_t lane_bits<xsimd::sse2, std::int16_t>(
    const xsimd::batch_bool<std::int16_t, xsimd::sse2>& lanes) noexcept {
  return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(lanes, _mm_setzero_si128())));
}
template <>
inline std::uint64_t lane_bits<xsimd::sse2, std::uint64_t>(
    const xsimd::batch_bool<std::uint64_t, xsimd::sse2>& lanes) noexcept {
  return static_cast<std::uint32_t>(_mm_movemask_pd(_mm_castsi128_pd(lanes)));
}

extern const Kernels kSse2Kernels;
const Kernels kSse2Kernels = {"sse2",
                              find_lane<xsimd::sse2>,
                              meeting<xsimd::sse2>,
                              meeting<xsimd::sse2, /*exact=*/true>,
                              find_fingerprint<xsimd::sse2, std::uint8_t>,
                              find_fingerprint<xsimd::sse2, std::uint16_t>,
                              find_fingerprint<xsimd::sse2, std::uint32_t>};

}  // namespace tagline::simd
