// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "queues/newest_entry.hpp"
#include "queues/node_list.hpp"
#include "queues/resources.hpp"

namespace tagline {

// How entries are packed into nodes of whole cache lines.
struct ArrayParameters {
  int receives = 2;  // in a node; 2 are one line

  // "" or the number of receives.
  static ArrayParameters parse(const std::string& text) {
    if (text.empty()) return {};
    int receives = 0;
    for (const char digit : text) {
      if (digit < '0' || digit > '9' || receives > 1024) refuse();
      receives = 10 * receives + (digit - '0');
    }
    if (receives < 4 || receives > 1024 || !std::has_single_bit(unsigned(receives))) refuse();
    return {receives};
  }

 private:
  [[noreturn]] static void refuse() {
    throw std::invalid_argument(
        "takes a power of two from 4 to 1024 as the receives per node (\"array:64\"), or nothing "
        "for nodes of one cache line");
  }
};

// The head of a node; what follows depends on the side, see ArrayList.
struct ArrayNode {
  // A lane that is a hole. No rank is negative, so this bit of the source is free.
  static constexpr std::uint64_t kHole = 0x80000000u;

  struct Message {
    std::uint64_t bits;
    void* cookie;
  };
  struct Receive : Message {
    std::uint64_t sequence;
  };

  struct Shape {
    Shape(const ArrayParameters& parameters, QueueSide side) noexcept
        : receives(side == QueueSide::posted),
          slots(receives ? slots_behind(parameters.receives) : slots_behind(0)),
          count(receives ? parameters.receives
                         : static_cast<int>((bytes(parameters) - slots) / sizeof(Message))) {}

    // Of a node, whichever side it is on.
    static std::size_t bytes(const ArrayParameters& parameters) noexcept {
      const std::size_t used =
          slots_behind(parameters.receives) + sizeof(Receive) * std::size_t(parameters.receives);
      return (used + kCacheLine - 1) / kCacheLine * kCacheLine;
    }

    const bool receives;      // else messages
    const std::size_t slots;  // where they begin
    const int count;          // of them

   private:
    static std::size_t slots_behind(int kinds) noexcept {
      return (kKinds + static_cast<std::size_t>(kinds) + 7) / 8 * 8;
    }
  };

  ArrayNode* newer;
  std::uint16_t first;
  std::uint16_t used;
  std::uint16_t count;

  static constexpr int kLineReceives = 2;
  static constexpr int kLineMessages = 3;
  static constexpr std::size_t kKinds = 14;  // where they begin

  // What a receive insists on: bit 0 not on the source, bit 1 not on the tag.
  static constexpr std::uint64_t kMasks[4] = {kSourceMask | kTagMask, kTagMask,
                                              kSourceMask | kTagSign, kTagSign};

  std::uint8_t* kinds() noexcept { return reinterpret_cast<std::uint8_t*>(this) + kKinds; }
  const std::uint8_t* kinds() const noexcept {
    return reinterpret_cast<const std::uint8_t*>(this) + kKinds;
  }
  template <class Slot>
  const Slot* slots(const Shape& shape) const noexcept {
    return reinterpret_cast<const Slot*>(reinterpret_cast<const std::byte*>(this) + shape.slots);
  }

  static int lanes(const Shape& shape) noexcept { return shape.count; }

  void put(const Shape& shape, int lane, const QueueEntry& entry) noexcept {
    Message& slot = slot_at(shape, lane);
    slot.bits = entry.key.bits;
    slot.cookie = entry.cookie;
    if (!shape.receives) return;
    static_cast<Receive&>(slot).sequence = entry.sequence;
    kinds()[lane] =
        static_cast<std::uint8_t>(int{key_any_source(entry.key)} + 2 * int{key_any_tag(entry.key)});
  }

  QueueEntry entry(const Shape& shape, int lane) const noexcept {
    const Message& slot = const_cast<ArrayNode*>(this)->slot_at(shape, lane);
    if (!shape.receives) return {{slot.bits, kMasks[0]}, slot.cookie, 0};
    return {{slot.bits, kMasks[kinds()[lane]]},
            slot.cookie,
            static_cast<const Receive&>(slot).sequence};
  }

  void remove(const Shape& shape, int lane) noexcept { slot_at(shape, lane).bits |= kHole; }

  int next_live(const Shape& shape, int lane) noexcept {
    while (lane < used && (slot_at(shape, lane).bits & kHole) != 0) ++lane;
    return lane;
  }

  // Lanes of a one-line node are compared all at once, handed out or not.
  void clear(const Shape& shape) noexcept {
    first = used = count = 0;
    if (shape.count > kLineMessages) return;
    for (int lane = 0; lane < shape.count; ++lane) put(shape, lane, {});
    for (int lane = 0; lane < shape.count; ++lane) remove(shape, lane);
  }

 private:
  Message& slot_at(const Shape& shape, int lane) noexcept {
    std::byte* slots = reinterpret_cast<std::byte*>(this) + shape.slots;
    return *reinterpret_cast<Message*>(
        slots + std::size_t(lane) * (shape.receives ? sizeof(Receive) : sizeof(Message)));
  }
};
static_assert(sizeof(ArrayNode) == 16 && offsetof(ArrayNode, count) + 2 == ArrayNode::kKinds,
              "the kinds of two receives fill up the head");
static_assert(sizeof(ArrayNode) + ArrayNode::kLineReceives * sizeof(ArrayNode::Receive) ==
                      kCacheLine &&
                  sizeof(ArrayNode) + ArrayNode::kLineMessages * sizeof(ArrayNode::Message) ==
                      kCacheLine,
              "two receives or three messages are one line");

// A linked list of arrays: entries side by side in whole cache lines, so that one
// line, and one step along the list, serve several of them.
//
//   two receives in a line       [ newer counts kinds | receive receive ]
//   three messages in a line     [ newer counts       | message message message ]
//
//   receive   source and tag, cookie, sequence   24 bytes, and its kind (which
//   message   source and tag, cookie             16 bytes  wildcards) in the head
//
// A message has no wildcard, and nothing asks for its sequence number: nobody
// cancels a message. That is what makes room for the third.
//
// "array" has nodes of one line. "array:N" has nodes of N receives, or of the
// messages that fill as many lines: fewer links, and memory in longer runs.
//
// Holes are marked in the entries and handled as in queues/node_list.hpp; the
// newest entry stays outside of the nodes as in queues/newest_entry.hpp.
//
// Guarantees: append and erase are O(1) amortised (at most one node's entries
// move); find touches one line per 2 receives or 3 messages, with larger nodes
// 8 per 21 or 32; entries keep their order; only append takes memory.
class ArrayList : public NodeList<ArrayNode> {
 public:
  static constexpr const char* kName = "array";
  using Parameters = ArrayParameters;
  static std::size_t node_bytes(const Parameters& parameters) noexcept {
    return Shape::bytes(parameters);
  }

  ArrayList(QueueResources& resources, const Parameters& parameters, QueueSide side) noexcept
      : NodeList(resources.pool, Shape(parameters, side)) {}

  Hit find(const MatchKey& key, std::uint64_t& depth) const noexcept {
    const bool lines = shape().count <= ArrayNode::kLineMessages;
    if (shape().receives) {
      return lines ? search_lines<ArrayNode::Receive, ArrayNode::kLineReceives>(key, depth)
                   : search<ArrayNode::Receive>(key, depth);
    }
    return lines ? search_lines<ArrayNode::Message, ArrayNode::kLineMessages>(key, depth)
                 : search<ArrayNode::Message>(key, depth);
  }

 private:
  // What both sides insist on, by the kind of the receive; of a message that is
  // what the key insists on. Never on a hole: that bit is set in holes alone.
  struct Masks {
    explicit Masks(const MatchKey& key) noexcept {
      for (int kind = 0; kind < 4; ++kind) {
        by_kind[kind] = (key.mask & ArrayNode::kMasks[kind]) | ArrayNode::kHole;
      }
    }
    template <class Slot>
    std::uint64_t of(const ArrayNode& node, int lane) const noexcept {
      return by_kind[std::is_same_v<Slot, ArrayNode::Receive> ? node.kinds()[lane] : 0];
    }
    std::uint64_t by_kind[4];
  };

  template <class Slot>
  Hit search(const MatchKey& key, std::uint64_t& depth) const noexcept {
    const Masks masks(key);
    std::uint64_t searched = 0;
    ArrayNode* older = nullptr;
    for (ArrayNode* node = oldest(); node != nullptr; older = node, node = newer(node)) {
      const Slot* slots = node->template slots<Slot>(shape());
      const int end = node->used;
      for (int lane = node->first; lane < end; ++lane) {
        if (((slots[lane].bits ^ key.bits) & masks.of<Slot>(*node, lane)) == 0) {
          depth += searched + static_cast<unsigned>(lane - node->first) + 1;
          return {older, lane};
        }
      }
      searched += static_cast<unsigned>(end - node->first);
    }
    depth += searched;
    return {};
  }

  // All lanes of a line before one branch, which is what a line costs anyway.
  template <class Slot, int lanes>
  Hit search_lines(const MatchKey& key, std::uint64_t& depth) const noexcept {
    const Masks masks(key);
    std::uint64_t searched = 0;
    ArrayNode* older = nullptr;
    for (ArrayNode* node = oldest(); node != nullptr; older = node, node = newer(node)) {
      const Slot* slots = reinterpret_cast<const Slot*>(node + 1);
      unsigned hits = 0;
      for (int lane = 0; lane < lanes; ++lane) {
        const std::uint64_t differs = (slots[lane].bits ^ key.bits) & masks.of<Slot>(*node, lane);
        hits |= unsigned{differs == 0} << lane;
      }
      if (hits != 0) {
        const int lane = std::countr_zero(hits);
        depth += searched + static_cast<unsigned>(lane) + 1;
        return {older, lane};
      }
      searched += lanes;
    }
    depth += searched;
    return {};
  }
};

using ArrayQueue = NewestEntry<ArrayList>;

}  // namespace tagline
