// SPDX-License-Identifier: BSD-3-Clause
#include "plain_list.hpp"

namespace bench {
namespace {

struct Entry {
  Entry* next;
  Entry* previous;
  tagline_envelope envelope;
};
static_assert(sizeof(Entry) <= kRequestBytes);

struct List {
  Entry* first = nullptr;
  Entry* last = nullptr;
  std::size_t length = 0;  // a list that reports nothing else; one register of work

  void append(void* request, const tagline_envelope& envelope) noexcept {
    Entry* entry = ::new (request) Entry{nullptr, last, envelope};
    (last != nullptr ? last->next : first) = entry;
    last = entry;
    ++length;
  }

  void erase(Entry* entry) noexcept {
    (entry->previous != nullptr ? entry->previous->next : first) = entry->next;
    (entry->next != nullptr ? entry->next->previous : last) = entry->previous;
    --length;
  }
};

class PlainList final : public Comparator {
 public:
  PlainList() : Comparator("plain_list") {}

  tagline_status post_receive(Envelope envelope, void* receive, void** message,
                              tagline_handle*) noexcept override {
    if (Entry* entry = find_message(envelope)) {
      unexpected_.erase(entry);
      *message = entry;
      return TAGLINE_MATCHED;
    }
    posted_.append(receive, envelope);
    return TAGLINE_QUEUED;
  }

  tagline_status arrive(Envelope envelope, void* message, void** receive) noexcept override {
    for (Entry* entry = posted_.first; entry != nullptr; entry = entry->next) {
      if (!accepts(entry->envelope, envelope)) continue;
      posted_.erase(entry);
      *receive = entry;
      return TAGLINE_MATCHED;
    }
    unexpected_.append(message, envelope);
    return TAGLINE_QUEUED;
  }

  tagline_status probe(Envelope envelope, void** message, Envelope* found) noexcept override {
    Entry* entry = find_message(envelope);
    if (entry == nullptr) return TAGLINE_NOT_FOUND;
    *message = entry;
    if (found != nullptr) *found = entry->envelope;
    return TAGLINE_MATCHED;
  }

  // The request knows its place: what an intrusive list is best at.
  tagline_status cancel_receive(Envelope, void* receive) noexcept override {
    posted_.erase(static_cast<Entry*>(receive));
    return TAGLINE_OK;
  }

  tagline_statistics statistics() const noexcept override {
    tagline_statistics result{};
    result.posted.length = posted_.length;
    result.unexpected.length = unexpected_.length;
    result.pool_bytes = (posted_.length + unexpected_.length) * sizeof(Entry);
    return result;
  }

 private:
  Entry* find_message(const Envelope& envelope) const noexcept {
    Entry* entry = unexpected_.first;
    while (entry != nullptr && !accepts(envelope, entry->envelope)) entry = entry->next;
    return entry;
  }

  List posted_;
  List unexpected_;
};

}  // namespace

tagline_matcher* make_plain_list() { return new PlainList; }

}  // namespace bench
