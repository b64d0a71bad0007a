// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/ordered_oracle.hpp"

#include <algorithm>

namespace tagline::test {

using Kind = Operation::Kind;

bool OrderedOracle::Equal::operator()(const tagline_envelope& a, const tagline_envelope& b) const {
  return a.context_id == b.context_id && a.source == b.source && a.tag == b.tag;
}

std::size_t OrderedOracle::Hash::operator()(const tagline_envelope& envelope) const {
  std::uint64_t hash = envelope.context_id;
  for (const std::int32_t part : {envelope.source, envelope.tag}) {
    hash = (hash ^ static_cast<std::uint32_t>(part)) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

unsigned OrderedOracle::kind_of(const tagline_envelope& envelope) {
  return (envelope.source == TAGLINE_ANY_SOURCE ? 1u : 0u) |
         (envelope.tag == TAGLINE_ANY_TAG ? 2u : 0u);
}

tagline_envelope OrderedOracle::as_kind(tagline_envelope envelope, unsigned kind) {
  if ((kind & 1) != 0) envelope.source = TAGLINE_ANY_SOURCE;
  if ((kind & 2) != 0) envelope.tag = TAGLINE_ANY_TAG;
  return envelope;
}

OrderedOracle::Entry* OrderedOracle::oldest_in(Side& side, unsigned kind,
                                               const tagline_envelope& envelope) {
  const auto found = side.files[kind].find(as_kind(envelope, kind));
  if (found == side.files[kind].end()) return nullptr;
  Number& first = found->second.first;
  while (first != kNone && side.entries[first].gone) first = side.entries[first].next[kind];
  if (first != kNone) return &side.entries[first];
  side.files[kind].erase(found);
  return nullptr;
}

OrderedOracle::Entry* OrderedOracle::find_message(const tagline_envelope& envelope) {
  Side& side = sides_[TAGLINE_UNEXPECTED];
  count_search(side, envelope);
  const unsigned kind = kind_of(envelope);
  if (!side.filed[kind]) {
    side.filed[kind] = true;
    for (std::size_t i = 0; i < side.entries.size(); ++i) {
      if (!side.entries[i].gone) file_message(static_cast<Number>(i), kind);
    }
  }
  return oldest_in(side, kind, envelope);
}

OrderedOracle::Entry* OrderedOracle::find_receive(const tagline_envelope& envelope) {
  Side& side = sides_[TAGLINE_POSTED];
  count_search(side, envelope);
  Entry* oldest = nullptr;
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    if ((kind & 2) != 0 && envelope.tag < 0) continue;
    Entry* entry = oldest_in(side, kind, envelope);
    // The vector is in order, so of two entries the lower address is the older one.
    if (entry != nullptr && (oldest == nullptr || entry < oldest)) oldest = entry;
  }
  return oldest;
}

void OrderedOracle::file(Side& side, Number number, unsigned kind) {
  File& file = side.files[kind][as_kind(side.entries[number].envelope, kind)];
  if (file.first == kNone) {
    file.first = number;
  } else {
    side.entries[file.last].next[kind] = number;
  }
  file.last = number;
}

void OrderedOracle::file_message(Number number, unsigned kind) {
  Side& side = sides_[TAGLINE_UNEXPECTED];
  if ((kind & 2) == 0 || side.entries[number].envelope.tag >= 0) file(side, number, kind);
}

void OrderedOracle::append(Side& side, const Operation& operation) {
  const auto number = static_cast<Number>(side.entries.size());
  side.entries.push_back({operation.envelope, operation.cookie});
  ++side.length;
  ++side.alive[operation.envelope.context_id];
  side.counts.high_water = std::max<std::uint64_t>(side.counts.high_water, side.length);
  if (&side == &sides_[TAGLINE_POSTED]) {
    file(side, number, kind_of(operation.envelope));
    if (receives_.size() <= operation.cookie) receives_.resize(2 * operation.cookie + 1, kNone);
    receives_[operation.cookie] = number;
    return;
  }
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    if (side.filed[kind]) file_message(number, kind);
  }
}

void OrderedOracle::remove(Side& side, Entry& entry) {
  entry.gone = true;
  --side.length;
  --side.alive[entry.envelope.context_id];
}

void OrderedOracle::count_search(Side& side, const tagline_envelope& envelope) {
  if (side.alive[envelope.context_id] != 0) ++side.counts.searches;
}

Outcome OrderedOracle::play(const Operation& operation) {
  Outcome outcome{};
  const tagline_envelope& envelope = operation.envelope;
  const auto match = [&](Side& side, Entry& entry) {
    outcome.status = TAGLINE_MATCHED;
    outcome.cookie = entry.cookie;
    ++side.counts.matches;
    remove(side, entry);
  };
  switch (operation.kind) {
    case Kind::post_receive:
    case Kind::claim_then_append:
      if (Entry* message = find_message(envelope)) {
        match(sides_[TAGLINE_UNEXPECTED], *message);
      } else {
        outcome.status = TAGLINE_QUEUED;
        append(sides_[TAGLINE_POSTED], operation);
      }
      break;
    case Kind::arrive:
    case Kind::match_then_append:
      if (Entry* receive = find_receive(envelope)) {
        match(sides_[TAGLINE_POSTED], *receive);
      } else {
        outcome.status = TAGLINE_QUEUED;
        append(sides_[TAGLINE_UNEXPECTED], operation);
      }
      break;
    case Kind::probe:
    case Kind::claim:
      if (Entry* message = find_message(envelope)) {
        outcome = {TAGLINE_MATCHED, message->cookie, message->envelope, 0, 0, {}};
        if (operation.kind == Kind::claim) match(sides_[TAGLINE_UNEXPECTED], *message);
      } else {
        outcome.status = TAGLINE_NOT_FOUND;
      }
      break;
    case Kind::cancel_receive:
    case Kind::cancel_handle: {
      Side& side = sides_[TAGLINE_POSTED];
      const Number number =
          operation.cookie < receives_.size() ? receives_[operation.cookie] : kNone;
      const bool waits = number != kNone && !side.entries[number].gone;
      outcome.status = waits ? TAGLINE_OK : TAGLINE_NOT_FOUND;
      if (waits) remove(side, side.entries[number]);
      break;
    }
    case Kind::set_hints:  // Deep histories have none: overtaking is not this oracle's order.
    case Kind::append_receive:
    case Kind::append_message:
    case Kind::inspect:
    case Kind::statistics:
      break;
    case Kind::drop_context:
    case Kind::drop_source:
      for (Side& side : sides_) {
        for (Entry& entry : side.entries) {
          if (entry.gone || entry.envelope.context_id != envelope.context_id) continue;
          if (operation.kind == Kind::drop_source && entry.envelope.source != envelope.source) {
            continue;
          }
          outcome.dropped.push_back(entry.cookie);
          remove(side, entry);
        }
      }
      break;
  }
  outcome.posted = sides_[TAGLINE_POSTED].length;
  outcome.unexpected = sides_[TAGLINE_UNEXPECTED].length;
  return outcome;
}

Outcome OrderedOracle::remains(std::uint64_t context) const {
  const auto of_context = [&](const Side& side) {
    std::vector<std::uintptr_t> cookies;
    for (const Entry& entry : side.entries) {
      if (!entry.gone && entry.envelope.context_id == context) cookies.push_back(entry.cookie);
    }
    return cookies;
  };
  return remains_outcome(of_context(sides_[TAGLINE_POSTED]),
                         of_context(sides_[TAGLINE_UNEXPECTED]));
}

}  // namespace tagline::test
