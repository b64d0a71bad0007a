// SPDX-License-Identifier: BSD-3-Clause
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of the registers that its intrinsics leave undefined on purpose (bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include "simd/find_fingerprint.hpp"
#include "simd/find_lane.hpp"
#include "simd/meeting.hpp"

namespace tagline::simd {

// AVX-512 compares into a mask register.
template <>
inline std::uint64_t lane_bits<xsimd::avx512bw, std::int32_t, 1>(
    const xsimd::batch_bool<std::int32_t, xsimd::avx512bw> (&lanes)[1]) noexcept {
  return lanes[0].data;
}
template <>
inline std::uint64_t lane_bits<xsimd::avx512bw, std::int16_t, 1>(
    const xsimd::batch_bool<std::int16_t, xsimd::avx512bw> (&lanes)[1]) noexcept {
  return lanes[0].data;
}
template <>
inline std::uint64_t lane_bits<xsimd::avx512bw, std::int8_t, 1>(
    const xsimd::batch_bool<std::int8_t, xsimd::avx512bw> (&lanes)[1]) noexcept {
  return lanes[0].data;
}
template <>
inline std::uint64_t lane_bits<xsimd::avx512bw, std::uint64_t, 1>(
    const xsimd::batch_bool<std::uint64_t, xsimd::avx512bw> (&lanes)[1]) noexcept {
  return lanes[0].data;
}

extern const Kernels kAvx512bwKernels;
const Kernels kAvx512bwKernels = {"avx512bw",
                                  find_lane<xsimd::avx512bw>,
                                  meeting<xsimd::avx512bw>,
                                  meeting<xsimd::avx512bw, /*exact=*/true>,
                                  find_fingerprint<xsimd::avx512bw, std::uint8_t>,
                                  find_fingerprint<xsimd::avx512bw, std::uint16_t>,
                                  find_fingerprint<xsimd::avx512bw, std::uint32_t>};

}  // namespace tagline::simd
