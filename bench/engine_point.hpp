// SPDX-License-Identifier: BSD-3-Clause
//
// What the engine benchmark varies. A point is a place on all axes but the
// structure: every structure that can be measured there is, in turns.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "match/tagline.h"

namespace bench {

enum class Operation {
  post_and_match,  // append an entry and match it, or another one: see Order
  probe,           // look at the entry behind `depth` others
  cancel,          // append a receive and cancel it by envelope and cookie
  cancel_handle    // append a receive and cancel it by its handle
};

enum class Order {
  last,              // `depth` entries stay; one more is appended and matched, behind all of them
  first,             // `depth` entries are appended, then all are matched, the oldest first
  random,            // the same, in random order
  reverse,           // the same, the newest first
  random_once_deep,  // as random, in a queue that kOnceDeep entries were drained from before
  last_once_deep,    // as last, likewise: an index that is there grows with what comes
  random_again       // `depth` entries stay; any one is matched, then appended again
};

constexpr std::size_t kOnceDeep = 1024;

enum class Keys {
  one_source,  // many tags
  one_tag,     // many sources
  grid,        // both
  irregular,   // both, with sources that follow no pattern
  all_equal    // one key: the oldest entry is the match, whatever the order
};

enum class Holes {
  dense,
  every_other,
  one_per_node  // by the structure's own nodes, see EngineStructure::entries_per_node()
};

struct EnginePoint {
  Operation operation = Operation::post_and_match;
  Order order = Order::last;
  tagline_side side = TAGLINE_POSTED;
  Keys keys = Keys::one_source;
  Holes holes = Holes::dense;
  int wildcard_percent = 0;  // of the receives, queued or arriving at the queue
  bool cold = false;         // caches are swept before each match
  std::size_t depth = 0;

  bool operator==(const EnginePoint&) const = default;
};

// `depth` entries are there all the time.
inline bool entries_stay(Order order) {
  return order == Order::last || order == Order::last_once_deep || order == Order::random_again;
}
inline bool was_deep(Order order) {
  return order == Order::random_once_deep || order == Order::last_once_deep;
}

const char* name_of(Operation operation);
const char* name_of(Order order);
const char* name_of(tagline_side side);
const char* name_of(Keys keys);
const char* name_of(Holes holes);

// A structure in a form: "fuzzy", its parameter "8", an instruction set.
struct EngineStructure {
  std::string structure;
  std::string variant;         // "": the structure's default
  std::string isa;             // "": does not matter
  bool is_comparator = false;  // ours, not the library's

  std::string queue() const { return variant.empty() ? structure : structure + ":" + variant; }

  bool keeps_index() const { return structure == "adaptive" || structure == "indexed"; }

  // The most entries that a node of a queue holds. Structures without such nodes: what
  // `adaptive` compares at once.
  std::size_t entries_per_node() const;
};

// The library's structures and their variants with its best instruction set, then
// the comparators.
std::vector<EngineStructure> known_structures();

// Whether the structure is able to do what the point asks for.
bool can_do(const EngineStructure& structure, const EnginePoint& point);

// Owned by the caller: tagline_destroy(). Ends the program if there is none.
tagline_matcher* make_matcher(const EngineStructure& structure);

// "post_and_match/structure:vector/depth:1024/order:last/isa:avx512bw/..."
std::string benchmark_name(const EngineStructure& structure, const EnginePoint& point);

// The fields of a point and a structure as the inside of a JSON object.
std::string json_fields(const EngineStructure& structure, const EnginePoint& point);

struct EngineTask {
  EnginePoint point;
  bool all_isas = false;  // every structure with every instruction set of this processor
};

// The points of "quick", "standard" or "full", a point's depths in ascending order.
std::vector<EngineTask> tasks_of(const std::string& subset);

}  // namespace bench
