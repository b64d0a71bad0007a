// SPDX-License-Identifier: BSD-3-Clause
#include "simd/find_fingerprint.hpp"
#include "simd/find_lane.hpp"
#include "simd/meeting.hpp"

namespace tagline::simd {

extern const Kernels kScalarKernels;
const Kernels kScalarKernels = {"scalar",
                                find_lane<ScalarArch>,
                                meeting<ScalarArch>,
                                meeting<ScalarArch, /*exact=*/true>,
                                find_fingerprint<ScalarArch, std::uint8_t>,
                                find_fingerprint<ScalarArch, std::uint16_t>,
                                find_fingerprint<ScalarArch, std::uint32_t>};

}  // namespace tagline::simd
