// SPDX-License-Identifier: BSD-3-Clause
#include "simd/find_fingerprint.hpp"
#include "simd/find_lane.hpp"
#include "simd/meeting.hpp"

namespace tagline::simd {

template <>
inline std::uint64_t lane_bits<xsimd::avx2, std::int32_t, 1>(
    const xsimd::batch_bool<std::int32_t, xsimd::avx2> (&lanes)[1]) noexcept {
  return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes[0])));
}
template <>
inline std::uint64_t lane_bits<xsimd::avx2, std::int8_t, 1>(
    const xsimd::batch_bool<std::int8_t, xsimd::avx2> (&lanes)[1]) noexcept {
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(lanes[0]));
}
// Comparisons are narrowed to bytes, of which one instruction tells 32. Words are narrowed within
// each half of a register, so the order of what comes out is mended last.
template <>
inline constexpr int kJoinedRegisters<xsimd::avx2, std::int16_t> = 2;
template <>
inline std::uint64_t lane_bits<xsimd::avx2, std::int16_t, 2>(
    const xsimd::batch_bool<std::int16_t, xsimd::avx2> (&lanes)[2]) noexcept {
  const __m256i bytes = _mm256_packs_epi16(lanes[0], lanes[1]);
  return static_cast<std::uint32_t>(
      _mm256_movemask_epi8(_mm256_permute4x64_epi64(bytes, _MM_SHUFFLE(3, 1, 2, 0))));
}
template <>
inline constexpr int kJoinedRegisters<xsimd::avx2, std::int32_t> = 4;
template <>
inline std::uint64_t lane_bits<xsimd::avx2, std::int32_t, 4>(
    const xsimd::batch_bool<std::int32_t, xsimd::avx2> (&lanes)[4]) noexcept {
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(lanes[0], lanes[1]),
                                           _mm256_packs_epi32(lanes[2], lanes[3]));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return static_cast<std::uint32_t>(
      _mm256_movemask_epi8(_mm256_permutevar8x32_epi32(bytes, order)));
}
// Of each comparison of 64 bits one half says all.
inline __m256i halves(__m256i first, __m256i second) noexcept {
  return _mm256_castps_si256(_mm256_shuffle_ps(
      _mm256_castsi256_ps(first), _mm256_castsi256_ps(second), _MM_SHUFFLE(2, 0, 2, 0)));
}
template <>
inline constexpr int kJoinedRegisters<xsimd::avx2, std::uint64_t> = 8;
template <>
inline std::uint64_t lane_bits<xsimd::avx2, std::uint64_t, 8>(
    const xsimd::batch_bool<std::uint64_t, xsimd::avx2> (&lanes)[8]) noexcept {
  const __m256i bytes = _mm256_packs_epi16(
      _mm256_packs_epi32(halves(lanes[0], lanes[1]), halves(lanes[2], lanes[3])),
      _mm256_packs_epi32(halves(lanes[4], lanes[5]), halves(lanes[6], lanes[7])));
  // Two bytes of each register lie in either half.
  const __m256i order = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(
      _mm256_shuffle_epi8(_mm256_permute4x64_epi64(bytes, _MM_SHUFFLE(3, 1, 2, 0)), order)));
}
template <>
inline std::uint64_t lane_bits<xsimd::avx2, std::uint64_t, 1>(
    const xsimd::batch_bool<std::uint64_t, xsimd::avx2> (&lanes)[1]) noexcept {
  return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(lanes[0])));
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
