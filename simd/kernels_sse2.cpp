// SPDX-License-Identifier: BSD-3-Clause
#include "simd/find_fingerprint.hpp"
#include "simd/find_lane.hpp"
#include "simd/meeting.hpp"

namespace tagline::simd {

template <>
inline std::uint64_t lane_bits<xsimd::sse2, std::int32_t, 1>(
    const xsimd::batch_bool<std::int32_t, xsimd::sse2> (&lanes)[1]) noexcept {
  return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(lanes[0])));
}
template <>
inline std::uint64_t lane_bits<xsimd::sse2, std::int8_t, 1>(
    const xsimd::batch_bool<std::int8_t, xsimd::sse2> (&lanes)[1]) noexcept {
  return static_cast<std::uint32_t>(_mm_movemask_epi8(lanes[0]));
}
// Comparisons are narrowed to bytes, of which one instruction tells 16.
template <>
inline constexpr int kJoinedRegisters<xsimd::sse2, std::int16_t> = 2;
template <>
inline std::uint64_t lane_bits<xsimd::sse2, std::int16_t, 2>(
    const xsimd::batch_bool<std::int16_t, xsimd::sse2> (&lanes)[2]) noexcept {
  return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(lanes[0], lanes[1])));
}
template <>
inline constexpr int kJoinedRegisters<xsimd::sse2, std::int32_t> = 4;
template <>
inline std::uint64_t lane_bits<xsimd::sse2, std::int32_t, 4>(
    const xsimd::batch_bool<std::int32_t, xsimd::sse2> (&lanes)[4]) noexcept {
  return static_cast<std::uint32_t>(_mm_movemask_epi8(
      _mm_packs_epi16(_mm_packs_epi32(lanes[0], lanes[1]), _mm_packs_epi32(lanes[2], lanes[3]))));
}
// Of each comparison of 64 bits one half says all.
inline __m128i halves(__m128i first, __m128i second) noexcept {
  return _mm_castps_si128(
      _mm_shuffle_ps(_mm_castsi128_ps(first), _mm_castsi128_ps(second), _MM_SHUFFLE(2, 0, 2, 0)));
}
template <>
inline constexpr int kJoinedRegisters<xsimd::sse2, std::uint64_t> = 8;
template <>
inline std::uint64_t lane_bits<xsimd::sse2, std::uint64_t, 8>(
    const xsimd::batch_bool<std::uint64_t, xsimd::sse2> (&lanes)[8]) noexcept {
  return static_cast<std::uint32_t>(_mm_movemask_epi8(
      _mm_packs_epi16(_mm_packs_epi32(halves(lanes[0], lanes[1]), halves(lanes[2], lanes[3])),
                      _mm_packs_epi32(halves(lanes[4], lanes[5]), halves(lanes[6], lanes[7])))));
}
template <>
inline std::uint64_t lane_bits<xsimd::sse2, std::uint64_t, 1>(
    const xsimd::batch_bool<std::uint64_t, xsimd::sse2> (&lanes)[1]) noexcept {
  return static_cast<std::uint32_t>(_mm_movemask_pd(_mm_castsi128_pd(lanes[0])));
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
