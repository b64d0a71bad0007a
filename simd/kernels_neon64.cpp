// SPDX-License-Identifier: BSD-3-Clause
#include "simd/find_fingerprint.hpp"
#include "simd/find_lane.hpp"
#include "simd/meeting.hpp"

namespace tagline::simd {

// Each lane keeps its own bit of the comparison; the lanes then add up to the mask.
template <>
inline std::uint64_t lane_bits<xsimd::neon64, std::int32_t, 1>(
    const xsimd::batch_bool<std::int32_t, xsimd::neon64> (&lanes)[1]) noexcept {
  const uint32x4_t bit = {1, 2, 4, 8};
  return vaddvq_u32(vandq_u32(lanes[0], bit));
}
template <>
inline std::uint64_t lane_bits<xsimd::neon64, std::int16_t, 1>(
    const xsimd::batch_bool<std::int16_t, xsimd::neon64> (&lanes)[1]) noexcept {
  const uint16x8_t bit = {1, 2, 4, 8, 16, 32, 64, 128};
  return vaddvq_u16(vandq_u16(lanes[0], bit));
}
template <>
inline std::uint64_t lane_bits<xsimd::neon64, std::int8_t, 1>(
    const xsimd::batch_bool<std::int8_t, xsimd::neon64> (&lanes)[1]) noexcept {
  const uint8x16_t bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t bits = vandq_u8(lanes[0], bit);
  return static_cast<std::uint64_t>(vaddv_u8(vget_low_u8(bits))) |
         static_cast<std::uint64_t>(vaddv_u8(vget_high_u8(bits))) << 8;
}
template <>
inline std::uint64_t lane_bits<xsimd::neon64, std::uint64_t, 1>(
    const xsimd::batch_bool<std::uint64_t, xsimd::neon64> (&lanes)[1]) noexcept {
  const uint64x2_t bit = {1, 2};
  return vaddvq_u64(vandq_u64(lanes[0], bit));
}

extern const Kernels kNeon64Kernels;
const Kernels kNeon64Kernels = {"neon64",
                                find_lane<xsimd::neon64>,
                                meeting<xsimd::neon64>,
                                meeting<xsimd::neon64, /*exact=*/true>,
                                find_fingerprint<xsimd::neon64, std::uint8_t>,
                                find_fingerprint<xsimd::neon64, std::uint16_t>,
                                find_fingerprint<xsimd::neon64, std::uint32_t>};

}  // namespace tagline::simd
