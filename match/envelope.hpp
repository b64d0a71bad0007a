// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

// The part of an envelope that a queue compares; the context chose the queue.
inline constexpr MatchKey receive_key(const MatchEnvelope& envelope) noexcept {
  const std::uint64_t source_mask = envelope.source == kAnySource ? 0 : kSourceMask;
  const std::uint64_t tag_mask = envelope.tag == kAnyTag ? kTagSign : kTagMask;
  const std::uint64_t bits = static_cast<std::uint64_t>(static_cast<std::uint32_t>(envelope.source))
                                 << 32 |
                             static_cast<std::uint32_t>(envelope.tag);
  // kAnyTag is the sign bit alone, which a tag wildcard wants clear.
  const std::uint64_t clear_sign = envelope.tag == kAnyTag ? kTagSign : 0;
  return {bits & (source_mask | tag_mask) & ~clear_sign, source_mask | tag_mask};
}

inline constexpr MatchKey message_key(const MatchEnvelope& envelope) noexcept {
  return {static_cast<std::uint64_t>(static_cast<std::uint32_t>(envelope.source)) << 32 |
              static_cast<std::uint32_t>(envelope.tag),
          kSourceMask | kTagMask};
}

inline constexpr MatchEnvelope key_envelope(std::uint32_t context_id,
                                            const MatchKey& key) noexcept {
  return {context_id, key_any_source(key) ? kAnySource : key_source(key),
          key_any_tag(key) ? kAnyTag : key_tag(key)};
}

}  // namespace tagline
