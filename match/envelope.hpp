// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "match/tagline.h"
#include "queues/match_key.hpp"

namespace tagline {

using MatchEnvelope = tagline_envelope;
inline constexpr std::int32_t kAnySource = TAGLINE_ANY_SOURCE;
inline constexpr std::int32_t kAnyTag = TAGLINE_ANY_TAG;

// Messages come from a rank and never carry a wildcard.
inline constexpr bool is_message(const MatchEnvelope& envelope) noexcept {
  return envelope.source >= 0 && envelope.tag != kAnyTag;
}

inline constexpr bool is_receive(const MatchEnvelope& envelope) noexcept {
  return envelope.source >= 0 || envelope.source == kAnySource;
}

// No wildcard: a message, or a receive that names source and tag.
inline constexpr bool is_exact(const MatchEnvelope& envelope) noexcept {
  return is_message(envelope);
}
// The same without a branch between the two, for receives of which nobody can foresee whether
// source or tag is the one that is open.
inline constexpr bool is_exact_in_one(const MatchEnvelope& envelope) noexcept {
  // Of kAnyTag alone the lowest bit that is set is the sign.
  static_assert(kAnyTag == std::numeric_limits<std::int32_t>::min() && kAnySource < 0);
  const auto tag = static_cast<std::uint32_t>(envelope.tag);
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(envelope.source) | (tag & -tag)) >= 0;
}

// The part of an envelope that a queue compares; the context chose the queue.
inline constexpr MatchKey exact_key(const MatchEnvelope& envelope) noexcept {
  return {key_bits(envelope.source, envelope.tag), kSourceMask | kTagMask};
}

// The bits of exact_key(), which is how an envelope lies in memory. For whoever passes the envelope
// on: the compiler takes apart what is looked at by members, and puts it together again.
inline std::uint64_t packed_bits(const MatchEnvelope& envelope) noexcept {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t bits;
  std::memcpy(&bits,
              reinterpret_cast<const unsigned char*>(&envelope) + offsetof(MatchEnvelope, source),
              sizeof bits);
  return bits;
}

static_assert(key_bits(kAnySource, 0) == kOpenSource && key_bits(0, kAnyTag) == kOpenTag);

inline constexpr MatchKey receive_key(const MatchEnvelope& envelope) noexcept {
  return unpacked(key_bits(envelope.source, envelope.tag));
}

inline constexpr MatchEnvelope key_envelope(std::uint64_t context_id,
                                            const MatchKey& key) noexcept {
  return {context_id, key_any_source(key) ? kAnySource : key_source(key),
          key_any_tag(key) ? kAnyTag : key_tag(key)};
}

}  // namespace tagline
