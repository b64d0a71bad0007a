// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "queues/fifo.hpp"
#include "queues/match_key.hpp"
#include "queues/node_pool.hpp"
#include "simd/kernels.hpp"

namespace tagline {

// Messages, as key and sequence number, in the order they arrived. Unlike a Fifo, of which
// there is one for each key, it is long and searched by key, so both are columns.
//
//   oldest_ -> [ next, 63 sequence numbers, 63 keys ] -> ... -> newest_
//                      ^ first_                                 ^ end_
//
// Guarantees: push, pop and clear are O(1); find compares a block's keys at once. Blocks come
// from the pool given, whose nodes have kBlockBytes.
class MessageLog {
  struct Block : NodePool::Link {
    static constexpr std::size_t kItems = 63;
    std::uint64_t sequence[kItems];
    alignas(kCacheLine) std::uint64_t bits[kItems + 1];
  };
  static_assert(sizeof(Block) == 1024, "the link takes the place of one sequence number");

 public:
  static constexpr std::size_t kBlockBytes = sizeof(Block);

  bool empty() const noexcept { return newest_ == nullptr; }
  // Whether push() is possible. reserve() makes it so; false: there is no memory.
  bool has_room(const NodePool& pool) const noexcept {
    return is_room_in_block() || pool.has_node();
  }
  bool reserve(NodePool& pool) const noexcept { return has_room(pool) || pool.grow(); }

  // Wants has_room().
  void push(NodePool& pool, const IndexItem& message) noexcept {
    if (!is_room_in_block()) add_block(pool);
    push_into_block(message);
  }

  // Whether the newest block has room, and push() into that.
  bool is_room_in_block() const noexcept { return end_ != Block::kItems; }
  void push_into_block(const IndexItem& message) noexcept {
    newest_->bits[end_] = message.value;
    newest_->sequence[end_++] = message.sequence;
  }

  // Both want !empty().
  IndexItem front() const noexcept { return {oldest_->bits[first_], oldest_->sequence[first_]}; }
  void pop(NodePool& pool) noexcept {
    if (++first_ == end_of(oldest_)) release_oldest(pool);
  }

  // The key of the message so many behind the oldest, fewer than a block holds; 0: there is none.
  std::uint64_t bits_ahead(std::size_t messages) const noexcept {
    std::size_t i = first_ + messages;
    const Block* block = oldest_;
    if (i >= Block::kItems && block != newest_) {
      i -= Block::kItems;
      block = after(block);
    }
    return i < end_of(block) ? block->bits[i] : 0;
  }

  // The oldest message that meets the key and that found(message) is true for.
  // passed grows by the messages looked at; false: there is none.
  template <class Found>
  bool find(const simd::Kernels& kernels, const MatchKey& key, std::size_t& passed,
            Found found) const {
    std::size_t first = first_;
    for (const Block* block = oldest_; block != nullptr; first = 0) {
      const std::size_t end = end_of(block);
      const std::uint64_t there = (~std::uint64_t{0} << first) & ~(~std::uint64_t{0} << end);
      std::uint64_t met =
          there & kernels.meeting_exact(block->bits, Block::kItems + 1, key.bits, key.mask);
      for (; met != 0; met &= met - 1) {
        const auto i = static_cast<std::size_t>(std::countr_zero(met));
        if (!found(IndexItem{block->bits[i], block->sequence[i]})) continue;
        passed += i + 1 - first;
        return true;
      }
      passed += end - first;
      block = block == newest_ ? nullptr : after(block);
    }
    return false;
  }

  void clear(NodePool& pool) noexcept {
    if (!empty()) pool.release_chain(oldest_, newest_);
    *this = {};
  }

 private:
  static Block* after(const Block* block) noexcept { return static_cast<Block*>(block->next); }
  std::size_t end_of(const Block* block) const noexcept {
    return block == newest_ ? end_ : Block::kItems;
  }
  void add_block(NodePool& pool) noexcept {
    Block* const block = ::new (pool.take()) Block;  // the messages are not there yet
    if (empty()) {
      oldest_ = block;
    } else {
      newest_->next = block;
    }
    newest_ = block;
    end_ = 0;
  }
  void release_oldest(NodePool& pool) noexcept {
    if (oldest_ == newest_) return clear(pool);
    Block* const block = oldest_;
    oldest_ = after(block);
    first_ = 0;
    pool.release(block);
  }

  Block* oldest_ = nullptr;
  Block* newest_ = nullptr;
  std::size_t first_ = 0;            // of the oldest block
  std::size_t end_ = Block::kItems;  // of the newest one
};

}  // namespace tagline
