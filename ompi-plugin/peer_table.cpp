// SPDX-License-Identifier: BSD-3-Clause
#include "peer_table.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

namespace tagline::pml {
namespace {

// With zeros.
template <class T>
T* allocate(std::size_t count) noexcept {
  return static_cast<T*>(std::calloc(count, sizeof(T)));
}

}  // namespace

PeerList::~PeerList() {
  for (std::uint32_t i = 0; i * kRowPeers < peers_; ++i) std::free(row_at(i));
  Row*** const top = top_.load();
  std::for_each(top + 1, top + (kTopParts << 2 * later_tops_), [](Row** part) { std::free(part); });
  for (Row*** later : later_top_) std::free(later);
  if (first_heads_ != &first_head_) std::free(first_heads_);
  delete[] further_.load();
}

bool PeerList::resize(std::int32_t ranks, bool threads) noexcept {
  ranks_ = ranks;
  threads_ = threads;
  const unsigned bits =
      std::max<unsigned>(std::bit_width(static_cast<std::uint32_t>(ranks)), kTagBits);
  mask_ = ~std::uint32_t{0} >> (32 - bits);
  half_ = static_cast<std::uint8_t>(bits / 2);
  untagged_ = static_cast<std::uint8_t>(bits - kTagBits);
  if (untagged_ != 0) {
    auto* const heads = allocate<Place>(std::size_t{1} << untagged_);
    if (heads == nullptr) return false;
    first_heads_ = heads;
  }
  buckets_.store({1u << untagged_, (1u << untagged_) - 1});
  return true;
}

Peer* PeerList::find_listed(std::int32_t rank) noexcept {
  Peer* const peer = search(rank);
  if (!threads_ && peer != nullptr) recent_of(rank) = {rank, peer};
  return peer;
}

Peer* PeerList::search(std::int32_t rank) noexcept {
  const std::uint32_t key = hash(rank);
  // Before the look: if there are further lists, this one has seen its last change.
  // acquire: pairs with the release in add_further().
  PeerList* const further = further_.load(std::memory_order_acquire);
  Peer* const found = look(key);
  if (found != nullptr) [[likely]]
    return found;
  if (further == nullptr) return add(rank);
  return further[tag_of(key) >> (kTagBits - kFurtherBits)].find(rank);
}

// NULL: not there, or not seen.
inline Peer* PeerList::look(std::uint32_t hash) noexcept {
  const std::uint16_t tag = tag_of(hash);
  // acquire: pairs with the release in add_bucket().
  const Buckets buckets = buckets_.load(std::memory_order_acquire);
  Place place = read(head_of(buckets.of(hash)));
  while (place != 0) {
    const std::uint32_t entry = place - 1u;
    Row& row = *row_at(entry / kRowPeers);
    if (row.tag[entry % kRowPeers] == tag) return &row.peer[entry % kRowPeers];
    place = read(row.next[entry % kRowPeers]);
  }
  return nullptr;
}

// What is new, or has not been seen.
Peer* PeerList::add(std::int32_t rank) noexcept {
  {
    const std::lock_guard guard(lock_);
    const std::uint32_t key = hash(rank);
    Peer* const found = look(key);
    if (found != nullptr) return found;
    if (peers_ < kMostPeers) return add_peer(key);
    if (!add_further()) return nullptr;
  }
  return search(rank);
}

// The caller of this and of all that follow has the lock, and nobody else writes.
Peer* PeerList::add_peer(std::uint32_t hash) noexcept {
  if (peers_ % kRowPeers == 0 && !add_row()) return nullptr;
  const std::uint32_t entry = peers_++;
  Row& row = *row_at(entry / kRowPeers);
  const std::uint32_t lane = entry % kRowPeers;
  Place& head = head_of(buckets_.load(std::memory_order_relaxed).of(hash));
  row.tag[lane] = tag_of(hash);
  write(row.next[lane], head);
  write(head, static_cast<Place>(entry + 1));
  return &row.peer[lane];
}

bool PeerList::add_row() noexcept {
  const std::uint32_t index = peers_ / kRowPeers;
  if (index / kPartRows == kTopParts << 2 * later_tops_ && !add_top()) return false;
  Row**& part = top_.load(std::memory_order_relaxed)[index / kPartRows];
  if (part == nullptr) part = allocate<Row*>(kPartRows);
  if (part == nullptr) return false;
  Row* const row = allocate<Row>(1);
  if (row == nullptr) return false;
  part[index % kPartRows] = row;
  for (std::uint32_t i = 0; i < kRowBuckets; ++i) add_bucket();
  return true;
}

bool PeerList::add_top() noexcept {
  const std::uint32_t parts = kTopParts << 2 * later_tops_;
  Row*** const top = top_.load(std::memory_order_relaxed);
  Row*** const later = allocate<Row**>(4 * parts);
  if (later == nullptr) return false;
  std::copy(top, top + parts, later);
  later_top_[later_tops_++] = later;
  // release: whoever sees it sees what it leads to.
  top_.store(later, std::memory_order_release);
  return true;
}

// It takes what is its own from the bucket that it extends.
void PeerList::add_bucket() noexcept {
  const auto [bucket, mask] = buckets_.load(std::memory_order_relaxed);
  // release: whoever sees the bucket sees its row.
  buckets_.store({bucket + 1, mask | bucket}, std::memory_order_release);
  const std::uint32_t bit = std::bit_floor(bucket);
  Place& to = head_of(bucket);
  Place* from = &head_of(bucket - bit);
  while (*from != 0) {
    const Place place = *from;
    Row& row = *row_at((place - 1u) / kRowPeers);
    const std::uint32_t lane = (place - 1u) % kRowPeers;
    if ((std::uint32_t{row.tag[lane]} << untagged_ & bit) == 0) {
      from = &row.next[lane];
      continue;
    }
    write(*from, row.next[lane]);
    write(row.next[lane], to);
    write(to, place);
  }
}

bool PeerList::add_further() noexcept {
  if (further_.load(std::memory_order_relaxed) != nullptr) return true;
  constexpr unsigned kLists = 1u << kFurtherBits;
  std::unique_ptr<PeerList[]> further(new (std::nothrow) PeerList[kLists]);
  if (further == nullptr) return false;
  for (unsigned i = 0; i < kLists; ++i) {
    if (!further[i].resize(ranks_, threads_)) return false;
  }
  // release: pairs with the acquire in search().
  further_.store(further.release(), std::memory_order_release);
  return true;
}

PeerTable::~PeerTable() { std::free(all_.load()); }

bool PeerTable::resize(std::int32_t ranks, bool threads) noexcept {
  ranks_ = ranks;
  if (ranks <= kMostInArray) return true;
  list_.reset(new (std::nothrow) PeerList);
  return list_ != nullptr && list_->resize(ranks, threads);
}

Peer* PeerTable::add_all(std::int32_t rank) noexcept {
  auto* const fresh = allocate<Peer>(static_cast<std::size_t>(std::max(ranks_, 1)));
  if (fresh == nullptr) return nullptr;
  Peer* present = nullptr;
  // acq_rel: pairs with the acquire in find(); the loser of a race uses the winner's.
  if (all_.compare_exchange_strong(present, fresh, std::memory_order_acq_rel)) return &fresh[rank];
  std::free(fresh);
  return &present[rank];
}

}  // namespace tagline::pml
