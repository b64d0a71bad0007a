// SPDX-License-Identifier: BSD-3-Clause
#include "simd/kernels.hpp"

namespace tagline::simd {

extern const Kernels kScalarKernels;
#if defined(__x86_64__)
extern const Kernels kAvx512bwKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kSse2Kernels;
#elif defined(__aarch64__)
extern const Kernels kNeon64Kernels;
#endif

const Kernels* available_kernels(unsigned index) noexcept {
#if defined(__x86_64__)
  // The builtins ask the operating system too: a processor's wide registers are
  // of no use where the kernel does not save them.
  const bool avx512bw = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512cd");
  if (avx512bw && index-- == 0) return &kAvx512bwKernels;
  if (__builtin_cpu_supports("avx2") && index-- == 0) return &kAvx2Kernels;
  if (index-- == 0) return &kSse2Kernels;
#elif defined(__aarch64__)
  if (index-- == 0) return &kNeon64Kernels;
#endif
  return index == 0 ? &kScalarKernels : nullptr;
}

}  // namespace tagline::simd
