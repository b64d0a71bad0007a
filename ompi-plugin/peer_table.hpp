// SPDX-License-Identifier: BSD-3-Clause
// What a communicator keeps per peer, and how it is found.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "match/locks.hpp"

namespace tagline::pml {

// Both count messages with a number, see kUnordered, and wrap; only their order within 2^31
// messages counts.
struct Peer {
  std::uint32_t sent = 0;     // messages sent to the peer
  std::uint32_t arrived = 0;  // messages of the peer handed to the matcher, in order
};
static_assert(sizeof(Peer) == 8, "memory per peer and communicator is what limits scale");

// The peers of a large communicator, of which a process may talk to few, whichever these are.
//
// They are the entries of a hash table, in the order of first contact, in rows that stay where they
// are:
//
//   top_ -> part -> Row*[8] ->  row:  peer[8]  8 bytes each
//           part -> ..                tag[8]   2 bytes: which rank
//           ..                        next[8]  2 bytes: the next entry of the same bucket
//                                     head[4]  2 bytes: the first entry of a bucket
//
// A row is 104 bytes, 112 with the allocator's; what leads to it is less than 16 more: at most 16
// bytes per peer, and the places of the last row that are free yet.
//
// A row brings four buckets, which take over entries of four earlier ones (linear hashing): a
// bucket has two entries on average, and no entry is ever copied. A rank's hash is a permutation of
// all ranks. Its upper 16 bits are the tag, and the lower ones choose the bucket. A communicator of
// more ranks than 16 bits tell has as many buckets from the start as the other bits can: so ranks
// with equal tags are never in one chain.
//
// Threads: any. Who finds a rank takes no lock. Who does not, because it is new or because its
// entry is just changing chains, looks again with the lock. An entry that changes chains leads
// readers astray, but to an end, and past no entry whose tag means another rank than in the chain
// they come from: both chains began as one of those that were there from the start.
//
// The 65536th peer and later ones are in further lists, chosen by their tags.
class PeerList {
 public:
  PeerList() = default;
  ~PeerList();
  PeerList(const PeerList&) = delete;
  PeerList& operator=(const PeerList&) = delete;

  // Before all else. False when memory is exhausted.
  bool resize(std::int32_t ranks, bool threads) noexcept;

  // NULL when memory is exhausted.
  Peer* find(std::int32_t rank) noexcept {
    if (Peer* const peer = find_at_hand(rank)) [[likely]]
      return peer;
    return find_listed(rank);
  }
  // If it is one of those found lately; otherwise NULL.
  Peer* find_at_hand(std::int32_t rank) noexcept {
    const Recent& recent = recent_of(rank);
    return recent.rank == rank ? recent.peer : nullptr;
  }

 private:
  static constexpr std::uint32_t kRowPeers = 8;
  static constexpr std::uint32_t kRowBuckets = 4;
  static constexpr std::uint32_t kPartRows = 8;
  static constexpr std::uint32_t kTopParts = 4;  // at first; a later top has four times as many
  static constexpr std::uint32_t kLaterTops = 4;
  static constexpr std::uint32_t kMostPeers = 65535;
  static constexpr unsigned kTagBits = 16;
  static constexpr unsigned kFurtherBits = 4;  // of the tag, to choose one of the further lists
  static constexpr unsigned kRecentBits = 3;

  // Of an entry: how many were there before it, plus one; 0: none.
  using Place = std::uint16_t;
  static_assert(kMostPeers <= Place(-1));

  struct Row {
    Peer peer[kRowPeers];
    std::uint16_t tag[kRowPeers];
    Place next[kRowPeers];
    Place head[kRowBuckets];
  };
  static_assert(sizeof(Row) == 104, "as much as fits the allocator's block of 112 bytes");

  // How many buckets there are, and a mask that has the bits of the last one's number.
  struct Buckets {
    std::uint32_t count;
    std::uint32_t mask;

    std::uint32_t of(std::uint32_t hash) const noexcept {
      const std::uint32_t bucket = hash & mask;
      return bucket < count ? bucket : bucket & mask >> 1;
    }
  };

  // A process mostly talks to the same few. With a single thread it need not search for them.
  struct Recent {
    std::int32_t rank = -1;
    Peer* peer = nullptr;
  };

  static constexpr std::uint32_t kFactor = 0x9e3779b1u;  // 2^32 divided by the golden ratio, odd

  Recent& recent_of(std::int32_t rank) noexcept {
    return recent_[static_cast<std::uint32_t>(rank) * kFactor >> (32 - kRecentBits)];
  }

  // Each step can be undone, so no two ranks have the same hash. Where ranks are at large equal
  // distances, only their upper bits tell: the first step brings them to where the product can
  // make use of them, the last one brings the product's to the bucket.
  std::uint32_t hash(std::int32_t rank) const noexcept {
    auto bits = static_cast<std::uint32_t>(rank);
    bits ^= bits >> half_;
    bits = bits * kFactor & mask_;
    return bits ^ bits >> half_;
  }
  std::uint16_t tag_of(std::uint32_t hash) const noexcept {
    return static_cast<std::uint16_t>(hash >> untagged_);
  }

  // acquire: pairs with the release in write(). Whoever sees a place sees what is there.
  static Place read(Place& place) noexcept {
    return std::atomic_ref(place).load(std::memory_order_acquire);
  }
  static void write(Place& place, Place value) noexcept {
    std::atomic_ref(place).store(value, std::memory_order_release);
  }

  Row*& row_at(std::uint32_t row) noexcept {
    // acquire: pairs with the release in add_top().
    return top_.load(std::memory_order_acquire)[row / kPartRows][row % kPartRows];
  }
  Place& head_of(std::uint32_t bucket) noexcept {
    const std::uint32_t first = 1u << untagged_;
    if (bucket < first) return first_heads_[bucket];
    bucket -= first;
    return row_at(bucket / kRowBuckets)->head[bucket % kRowBuckets];
  }

  Peer* look(std::uint32_t hash) noexcept;
  Peer* find_listed(std::int32_t rank) noexcept;
  Peer* search(std::int32_t rank) noexcept;
  Peer* add(std::int32_t rank) noexcept;
  Peer* add_peer(std::uint32_t hash) noexcept;
  bool add_row() noexcept;
  bool add_top() noexcept;
  void add_bucket() noexcept;
  bool add_further() noexcept;

  Recent recent_[1u << kRecentBits];
  std::atomic<Row***> top_{first_top_};
  std::atomic<Buckets> buckets_{};
  static_assert(std::atomic<Buckets>::is_always_lock_free);
  std::uint32_t mask_ = 0;     // as many bits as the ranks have, but not fewer than a tag
  std::uint8_t half_ = 0;      // of those bits
  std::uint8_t untagged_ = 0;  // how many of them are not the tag's
  bool threads_ = false;
  SpinLock lock_;  // for changes
  std::atomic<PeerList*> further_{nullptr};
  Place* first_heads_ = &first_head_;
  std::uint32_t peers_ = 0;
  std::int32_t ranks_ = 0;
  std::uint32_t later_tops_ = 0;
  Place first_head_ = 0;
  Row** first_top_[kTopParts] = {first_part_};
  Row* first_part_[kPartRows] = {};
  Row*** later_top_[kLaterTops] = {};  // a reader may have found any of them
};

// Peers by rank. They appear on first contact and stay where they are.
class PeerTable {
 public:
  PeerTable() = default;
  ~PeerTable();
  PeerTable(const PeerTable&) = delete;
  PeerTable& operator=(const PeerTable&) = delete;

  // threads: several may be inside find() at once. False when memory is exhausted.
  bool resize(std::int32_t ranks, bool threads) noexcept;

  // NULL when memory is exhausted.
  Peer* find(std::int32_t rank) noexcept {
    // acquire: pairs with the release in add_all().
    Peer* const all = all_.load(std::memory_order_acquire);
    if (all != nullptr) [[likely]]
      return &all[rank];
    if (list_ != nullptr) [[likely]]
      return list_->find(rank);
    return add_all(rank);
  }
  // Without any call; NULL: find().
  Peer* find_at_hand(std::int32_t rank) noexcept {
    // acquire: as in find().
    Peer* const all = all_.load(std::memory_order_acquire);
    if (all != nullptr) [[likely]]
      return &all[rank];
    return list_ != nullptr ? list_->find_at_hand(rank) : nullptr;
  }

 private:
  // An array of so few is hardly longer than a row.
  static constexpr std::int32_t kMostInArray = 16;

  Peer* add_all(std::int32_t rank) noexcept;

  std::atomic<Peer*> all_{nullptr};
  std::unique_ptr<PeerList> list_;
  std::int32_t ranks_ = 0;
};

}  // namespace tagline::pml
