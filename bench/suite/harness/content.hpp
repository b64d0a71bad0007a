// SPDX-License-Identifier: BSD-3-Clause
//
// Data that tell where they come from: each message's bytes follow from its seed, so a
// receiver knows what it must have got, and a byte too old, too new or from elsewhere
// differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace suite {

inline std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9U;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

inline std::uint64_t seed_of(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t seed = 0x9e3779b97f4a7c15U;
  for (const std::uint64_t part : parts) seed = mixed(seed + part);
  return seed;
}

inline void fill(void* data, std::size_t bytes, std::uint64_t seed) {
  auto* const to = static_cast<unsigned char*>(data);
  std::size_t at = 0;
  std::uint64_t word = seed;
  for (; at < bytes; at += sizeof word, word += 0x9e3779b97f4a7c15U) {
    const std::uint64_t value = word ^ (word >> 29);
    std::memcpy(to + at, &value, bytes - at < sizeof value ? bytes - at : sizeof value);
  }
}

// Index of the first byte that is not what fill() writes, or `bytes`.
inline std::size_t first_difference(const void* data, std::size_t bytes, std::uint64_t seed) {
  const auto* const from = static_cast<const unsigned char*>(data);
  std::uint64_t word = seed;
  for (std::size_t at = 0; at < bytes; at += sizeof word, word += 0x9e3779b97f4a7c15U) {
    const std::uint64_t value = word ^ (word >> 29);
    const std::size_t length = bytes - at < sizeof value ? bytes - at : sizeof value;
    if (std::memcmp(from + at, &value, length) == 0) continue;
    unsigned char wanted[sizeof value];
    std::memcpy(wanted, &value, sizeof value);
    for (std::size_t i = 0; i < length; ++i) {
      if (from[at + i] != wanted[i]) return at + i;
    }
  }
  return bytes;
}

}  // namespace suite
