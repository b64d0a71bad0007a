// SPDX-License-Identifier: BSD-3-Clause
#include "plain_list.hpp"

namespace bench {
namespace {

bool accepts(const tagline_envelope& receive, const tagline_envelope& message) {
  // Negative tags belong to the host's own traffic: ANY_TAG does not see them.
  return receive.context_id == message.context_id &&
         (receive.source == message.source || receive.source == TAGLINE_ANY_SOURCE) &&
         (receive.tag == message.tag || (receive.tag == TAGLINE_ANY_TAG && message.tag >= 0));
}

void append(PlainQueue& queue, PlainEntry* entry) {
  entry->next = nullptr;
  entry->previous = queue.last;
  (queue.last != nullptr ? queue.last->next : queue.first) = entry;
  queue.last = entry;
}

void erase(PlainQueue& queue, PlainEntry* entry) {
  (entry->previous != nullptr ? entry->previous->next : queue.first) = entry->next;
  (entry->next != nullptr ? entry->next->previous : queue.last) = entry->previous;
}

}  // namespace

tagline_status plain_post_receive(PlainMatcher* matcher, tagline_envelope envelope, void* receive,
                                  void** message, tagline_handle*) {
  for (PlainEntry* entry = matcher->unexpected.first; entry != nullptr; entry = entry->next) {
    if (!accepts(envelope, entry->envelope)) continue;
    erase(matcher->unexpected, entry);
    *message = entry;
    return TAGLINE_MATCHED;
  }
  auto* const mine = static_cast<PlainEntry*>(receive);
  mine->envelope = envelope;
  append(matcher->posted, mine);
  return TAGLINE_QUEUED;
}

tagline_status plain_arrive(PlainMatcher* matcher, tagline_envelope envelope, void* message,
                            void** receive) {
  for (PlainEntry* entry = matcher->posted.first; entry != nullptr; entry = entry->next) {
    if (!accepts(entry->envelope, envelope)) continue;
    erase(matcher->posted, entry);
    *receive = entry;
    return TAGLINE_MATCHED;
  }
  auto* const mine = static_cast<PlainEntry*>(message);
  mine->envelope = envelope;
  append(matcher->unexpected, mine);
  return TAGLINE_QUEUED;
}

}  // namespace bench
