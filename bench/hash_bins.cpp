// SPDX-License-Identifier: BSD-3-Clause
#include "hash_bins.hpp"

namespace bench {
namespace {

struct Entry;
struct Links {
  Entry* newer = nullptr;
  Entry* older = nullptr;
};
struct Entry {
  Links links[2];  // in the bin or the wildcard list; among all messages
  tagline_envelope envelope;
  std::uint64_t sequence;
};
static_assert(sizeof(Entry) <= kRequestBytes);

enum Which { kBin = 0, kAll = 1 };

struct List {
  Entry* first = nullptr;
  Entry* last = nullptr;

  void append(Entry* entry, Which which) noexcept {
    entry->links[which] = {nullptr, last};
    (last != nullptr ? last->links[which].newer : first) = entry;
    last = entry;
  }
  void erase(Entry* entry, Which which) noexcept {
    const Links& links = entry->links[which];
    (links.older != nullptr ? links.older->links[which].newer : first) = links.newer;
    (links.newer != nullptr ? links.newer->links[which].older : last) = links.older;
  }
  template <class Fits>
  Entry* find(Which which, Fits fits) const noexcept {
    Entry* entry = first;
    while (entry != nullptr && !fits(entry->envelope)) entry = entry->links[which].newer;
    return entry;
  }
};

class HashBins final : public Comparator {
 public:
  HashBins() : Comparator("hash_bins") {}

  tagline_status post_receive(Envelope envelope, void* receive, void** message,
                              tagline_handle*) noexcept override {
    if (messages_.first != nullptr) {
      if (Entry* entry = find_message(envelope)) {
        bin(unexpected_, entry->envelope).erase(entry, kBin);
        messages_.erase(entry, kAll);
        --length_;
        *message = entry;
        return TAGLINE_MATCHED;
      }
    }
    Entry* entry = ::new (receive) Entry{{}, envelope, ++sequence_};
    (is_wild(envelope) ? wild_ : bin(posted_, envelope)).append(entry, kBin);
    ++length_;
    return TAGLINE_QUEUED;
  }

  tagline_status arrive(Envelope envelope, void* message, void** receive) noexcept override {
    const auto fits = [&](const Envelope& posted) { return accepts(posted, envelope); };
    List* list = &bin(posted_, envelope);
    Entry* entry = list->find(kBin, fits);
    if (wild_.first != nullptr) {
      Entry* wild = wild_.find(kBin, fits);
      if (wild != nullptr && (entry == nullptr || wild->sequence < entry->sequence)) {
        entry = wild;
        list = &wild_;
      }
    }
    if (entry != nullptr) {
      list->erase(entry, kBin);
      --length_;
      *receive = entry;
      return TAGLINE_MATCHED;
    }
    entry = ::new (message) Entry{{}, envelope, 0};
    bin(unexpected_, envelope).append(entry, kBin);
    messages_.append(entry, kAll);
    ++length_;
    return TAGLINE_QUEUED;
  }

  tagline_status probe(Envelope envelope, void** message, Envelope* found) noexcept override {
    Entry* entry = find_message(envelope);
    if (entry == nullptr) return TAGLINE_NOT_FOUND;
    *message = entry;
    if (found != nullptr) *found = entry->envelope;
    return TAGLINE_MATCHED;
  }

  tagline_statistics statistics() const noexcept override {
    tagline_statistics result{};
    result.pool_bytes = length_ * sizeof(Entry);
    return result;
  }

 private:
  static constexpr std::size_t kBins = 1021;  // a prime: any stride of tags spreads
  using Bins = List[kBins];

  static bool is_wild(const Envelope& envelope) noexcept {
    return envelope.source == TAGLINE_ANY_SOURCE || envelope.tag == TAGLINE_ANY_TAG;
  }

  static List& bin(Bins& bins, const Envelope& envelope) noexcept {
    const auto tag = static_cast<std::uint32_t>(envelope.tag);
    const auto source = static_cast<std::uint32_t>(envelope.source);
    return bins[((std::uint64_t{tag} << 32 | source) ^ envelope.context_id << 20) % kBins];
  }

  Entry* find_message(const Envelope& envelope) noexcept {
    const auto fits = [&](const Envelope& message) { return accepts(envelope, message); };
    return is_wild(envelope) ? messages_.find(kAll, fits)
                             : bin(unexpected_, envelope).find(kBin, fits);
  }

  Bins posted_;
  Bins unexpected_;
  List wild_;
  List messages_;
  std::uint64_t sequence_ = 0;
  std::size_t length_ = 0;
};

}  // namespace

tagline_matcher* make_hash_bins() { return new HashBins; }

}  // namespace bench
