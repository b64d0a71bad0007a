// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "simd/lane_block.hpp"

namespace tagline::simd {

// The comparison kernels of one instruction set. A queue keeps a reference and
// dispatches once per search.
struct Kernels {
  const char* isa;  // "avx512bw", "avx2", "sse2", "neon64" or "scalar"

  // The oldest lane, from `oldest` on along `newer`, that is live and meets the key.
  LaneHit (*find_lane)(LaneBlock* oldest, LaneKey key, LaneCounts& counts) noexcept;

  // Bit i: keys_meet() of keys[i] and the query, for all i below count. The column begins on a
  // cache line; count: 8, 16, 32 or 64. The second one wants a column without wildcards.
  std::uint64_t (*meeting)(const std::uint64_t* keys, std::size_t count, std::uint64_t query_bits,
                           std::uint64_t query_mask) noexcept;
  std::uint64_t (*meeting_exact)(const std::uint64_t* keys, std::size_t count,
                                 std::uint64_t query_bits, std::uint64_t query_mask) noexcept;

  // The oldest lane that meets the key, by fingerprints of 8, 16 and 32 bits.
  LaneHit (*find_fingerprint8)(FingerprintBlock<std::uint8_t>* oldest,
                               const FingerprintKey<std::uint8_t>& key,
                               LaneCounts& counts) noexcept;
  LaneHit (*find_fingerprint16)(FingerprintBlock<std::uint16_t>* oldest,
                                const FingerprintKey<std::uint16_t>& key,
                                LaneCounts& counts) noexcept;
  LaneHit (*find_fingerprint32)(FingerprintBlock<std::uint32_t>* oldest,
                                const FingerprintKey<std::uint32_t>& key,
                                LaneCounts& counts) noexcept;
};

// The instruction sets compiled in that this processor can run, best first, by
// index; nullptr behind the last. "scalar" is always the last one.
const Kernels* available_kernels(unsigned index) noexcept;

}  // namespace tagline::simd
