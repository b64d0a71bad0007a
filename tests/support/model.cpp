// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "tests/support/players.hpp"

namespace tagline::test {

using Kind = Operation::Kind;

Outcome remains_outcome(const std::vector<std::uintptr_t>& posted,
                        const std::vector<std::uintptr_t>& unexpected) {
  Outcome outcome{TAGLINE_OK, 0, {}, posted.size(), unexpected.size(), posted};
  outcome.dropped.insert(outcome.dropped.end(), unexpected.begin(), unexpected.end());
  return outcome;
}

bool accepts(const tagline_envelope& receive, const tagline_envelope& message) {
  if (receive.context_id != message.context_id) return false;
  if (receive.source != TAGLINE_ANY_SOURCE && receive.source != message.source) return false;
  return receive.tag == TAGLINE_ANY_TAG ? message.tag >= 0 : receive.tag == message.tag;
}

Outcome Model::play(const Operation& operation, std::uintptr_t taken) {
  Outcome outcome{};
  const tagline_envelope& envelope = operation.envelope;
  Entries& posted = queue_[TAGLINE_POSTED];
  Entries& unexpected = queue_[TAGLINE_UNEXPECTED];
  switch (operation.kind) {
    case Kind::post_receive:
    case Kind::claim_then_append:
      count_search(TAGLINE_UNEXPECTED, envelope);
      if (const auto hit = find(TAGLINE_UNEXPECTED, envelope, taken); hit != unexpected.end()) {
        outcome = {TAGLINE_MATCHED, hit->cookie, {}, 0, 0, {}};
        ++counts_[TAGLINE_UNEXPECTED].matches;
        unexpected.erase(hit);
      } else {
        outcome.status = TAGLINE_QUEUED;
        append(TAGLINE_POSTED, operation);
      }
      break;
    case Kind::arrive:
    case Kind::match_then_append: {
      count_search(TAGLINE_POSTED, envelope);
      const auto hit = find(TAGLINE_POSTED, envelope, taken);
      if (hit != posted.end()) {
        outcome = {TAGLINE_MATCHED, hit->cookie, {}, 0, 0, {}};
        ++counts_[TAGLINE_POSTED].matches;
        posted.erase(hit);
      } else {
        outcome.status = TAGLINE_QUEUED;
        append(TAGLINE_UNEXPECTED, operation);
      }
      break;
    }
    case Kind::append_receive:
    case Kind::append_message:
      outcome.status = TAGLINE_QUEUED;
      append(operation.kind == Kind::append_receive ? TAGLINE_POSTED : TAGLINE_UNEXPECTED,
             operation);
      break;
    case Kind::statistics:
      outcome.status = TAGLINE_OK;
      break;
    case Kind::probe:
    case Kind::inspect:
    case Kind::claim:
      count_search(TAGLINE_UNEXPECTED, envelope);
      if (const auto hit = find(TAGLINE_UNEXPECTED, envelope, taken); hit != unexpected.end()) {
        outcome = {TAGLINE_MATCHED, hit->cookie, hit->envelope, 0, 0, {}};
        if (operation.kind == Kind::claim) {
          ++counts_[TAGLINE_UNEXPECTED].matches;
          unexpected.erase(hit);
        }
      } else {
        outcome.status = TAGLINE_NOT_FOUND;
      }
      break;
    case Kind::cancel_receive:
    case Kind::cancel_handle: {
      const auto hit = std::find_if(posted.begin(), posted.end(), [&](const Entry& receive) {
        return receive.cookie == operation.cookie;
      });
      outcome.status = hit == posted.end() ? TAGLINE_NOT_FOUND : TAGLINE_OK;
      if (hit != posted.end()) posted.erase(hit);
      break;
    }
    case Kind::set_hints:
      hints_[envelope.context_id] = static_cast<unsigned>(envelope.tag);
      outcome.status = TAGLINE_OK;
      break;
    case Kind::drop_context:
      hints_.erase(envelope.context_id);
      drop(outcome, envelope.context_id, nullptr);
      break;
    case Kind::drop_source:
      drop(outcome, envelope.context_id, &envelope.source);
      break;
  }
  return lengths(outcome);
}

Outcome Model::take_back(const Operation& operation) {
  const bool receive =
      operation.kind == Kind::post_receive || operation.kind == Kind::claim_then_append;
  const tagline_side side = receive ? TAGLINE_POSTED : TAGLINE_UNEXPECTED;
  queue_[side].pop_back();
  counts_[side].high_water = high_water_before_;
  return lengths({TAGLINE_NO_MEMORY, 0, {}, 0, 0, {}});
}

Outcome Model::remains(std::uint64_t context) const {
  const auto of_context = [&](const Entries& entries) {
    std::vector<std::uintptr_t> cookies;
    for (const Entry& entry : entries) {
      if (entry.envelope.context_id == context) cookies.push_back(entry.cookie);
    }
    return cookies;
  };
  return remains_outcome(of_context(queue_[TAGLINE_POSTED]),
                         of_context(queue_[TAGLINE_UNEXPECTED]));
}

Outcome Model::lengths(Outcome outcome) const {
  outcome.posted = queue_[TAGLINE_POSTED].size();
  outcome.unexpected = queue_[TAGLINE_UNEXPECTED].size();
  return outcome;
}

Model::Entries::iterator Model::find(tagline_side side, const tagline_envelope& envelope,
                                     std::uintptr_t taken) {
  Entries& entries = queue_[side];
  const auto fits = [&](const Entry& entry) {
    return side == TAGLINE_POSTED ? accepts(entry.envelope, envelope)
                                  : accepts(envelope, entry.envelope);
  };
  const auto oldest = std::find_if(entries.begin(), entries.end(), fits);
  const auto hints = hints_.find(envelope.context_id);
  if (hints == hints_.end() || (hints->second & TAGLINE_ALLOW_OVERTAKING) == 0) return oldest;
  const auto chosen = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
    return entry.cookie == taken && fits(entry);
  });
  return chosen != entries.end() ? chosen : oldest;
}

// A context's queue that is empty is not searched.
void Model::count_search(tagline_side side, const tagline_envelope& envelope) {
  const auto same_context = [&](const Entry& entry) {
    return entry.envelope.context_id == envelope.context_id;
  };
  counts_[side].searches += std::any_of(queue_[side].begin(), queue_[side].end(), same_context);
}

void Model::append(tagline_side side, const Operation& operation) {
  queue_[side].push_back({operation.envelope, operation.cookie});
  high_water_before_ = counts_[side].high_water;
  counts_[side].high_water = std::max<std::uint64_t>(high_water_before_, queue_[side].size());
}

void Model::drop(Outcome& outcome, std::uint64_t context, const std::int32_t* source) {
  const auto wanted = [&](const Entry& entry) {
    return entry.envelope.context_id == context &&
           (source == nullptr || entry.envelope.source == *source);
  };
  for (Entries& queue : queue_) {
    for (const Entry& entry : queue) {
      if (wanted(entry)) outcome.dropped.push_back(entry.cookie);
    }
    std::erase_if(queue, wanted);
  }
}

}  // namespace tagline::test
