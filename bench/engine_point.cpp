// SPDX-License-Identifier: BSD-3-Clause
#include "engine_point.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "exact_hash.hpp"
#include "hash_bins.hpp"
#include "plain_list.hpp"

namespace bench {
namespace {

struct ComparatorName {
  const char* name;
  const char* variant;
  tagline_matcher* (*make)();
};
constexpr ComparatorName kComparators[] = {{"plain_list", "", make_plain_list},
                                           {"hash_bins", "", make_hash_bins},
                                           {"exact_hash", "", make_exact_hash},
                                           {"exact_hash", "32", make_exact_hash_of_32_bytes}};

// Tried as they are; the library says which of them it knows.
constexpr const char* kVariants[] = {"array:4",    "array:64",
                                     "array:1024", "fuzzy:8",
                                     "fuzzy:16",   "fuzzy:16:tag8:source8",
                                     "fuzzy:32",   "fuzzy:32:tag8:source24"};

tagline_matcher* make(const EngineStructure& structure) {
  for (const ComparatorName& comparator : kComparators) {
    if (structure.structure == comparator.name && structure.variant == comparator.variant)
      return comparator.make();
  }
  const std::string queue = structure.queue();
  tagline_options options = TAGLINE_OPTIONS_DEFAULT;
  options.queue = queue.c_str();
  options.isa = structure.isa.empty() ? nullptr : structure.isa.c_str();
  tagline_matcher* matcher = nullptr;
  return tagline_create(&options, &matcher) == TAGLINE_OK ? matcher : nullptr;
}

bool is_known(const EngineStructure& structure) {
  tagline_matcher* const matcher = make(structure);
  tagline_destroy(matcher);
  return matcher != nullptr;
}

}  // namespace

std::size_t EngineStructure::entries_per_node() const {
  constexpr std::size_t kLanes = 256;  // of vector and fuzzy
  if (structure == "vector" || structure == "fuzzy") return kLanes;
  // So many receives, or the messages that take as much room: less than twice as many.
  if (structure == "array" && !variant.empty()) return 2 * std::stoul(variant);
  return 64;
}

const char* name_of(Operation operation) {
  constexpr const char* kNames[] = {"post_and_match", "probe", "cancel", "cancel_handle"};
  return kNames[static_cast<int>(operation)];
}
const char* name_of(Order order) {
  constexpr const char* kNames[] = {
      "last", "first", "random", "reverse", "random_once_deep", "last_once_deep", "random_again"};
  return kNames[static_cast<int>(order)];
}
const char* name_of(tagline_side side) { return side == TAGLINE_POSTED ? "posted" : "unexpected"; }
const char* name_of(Keys keys) {
  constexpr const char* kNames[] = {"one_source", "one_tag", "grid", "irregular", "all_equal"};
  return kNames[static_cast<int>(keys)];
}
const char* name_of(Holes holes) {
  constexpr const char* kNames[] = {"dense", "every_other", "one_per_node"};
  return kNames[static_cast<int>(holes)];
}

std::vector<EngineStructure> known_structures() {
  const std::string isa = tagline_isa_name(0);
  std::vector<EngineStructure> structures;
  for (unsigned i = 0; tagline_queue_name(i) != nullptr; ++i) {
    const std::string name = tagline_queue_name(i);
    structures.push_back({name, "", isa});
    for (const std::string variant : kVariants) {
      const std::size_t colon = variant.find(':');
      if (variant.substr(0, colon) != name) continue;
      const EngineStructure structure{name, variant.substr(colon + 1), isa};
      if (is_known(structure)) structures.push_back(structure);
    }
  }
  for (const ComparatorName& comparator : kComparators) {
    structures.push_back({comparator.name, comparator.variant, "", true});
  }
  return structures;
}

bool can_do(const EngineStructure& structure, const EnginePoint& point) {
  if (!structure.is_comparator) return true;
  if (structure.structure == "exact_hash" &&
      (point.wildcard_percent > 0 || point.keys == Keys::all_equal)) {
    return false;
  }
  // The limit of the index, only where adaptive is measured against the bare table.
  if (structure.structure == "exact_hash" && !structure.variant.empty() &&
      (point.depth <= 1024 || point.cold || point.order == Order::last ||
       point.operation != Operation::post_and_match)) {
    return false;
  }
  switch (point.operation) {
    case Operation::post_and_match:
    case Operation::probe:
      return true;
    case Operation::cancel:
      return structure.structure == "plain_list";
    case Operation::cancel_handle:
      return false;
  }
  return false;
}

tagline_matcher* make_matcher(const EngineStructure& structure) {
  tagline_matcher* const matcher = make(structure);
  if (matcher == nullptr) {
    std::fprintf(stderr, "engine: no matcher %s: %s\n", structure.queue().c_str(),
                 tagline_error_message());
    std::exit(1);
  }
  return matcher;
}

std::string benchmark_name(const EngineStructure& structure, const EnginePoint& point) {
  return std::string(name_of(point.operation)) + "/structure:" + structure.queue() +
         "/depth:" + std::to_string(point.depth) + "/order:" + name_of(point.order) +
         "/isa:" + (structure.isa.empty() ? "none" : structure.isa) +
         "/side:" + name_of(point.side) + "/keys:" + name_of(point.keys) +
         "/holes:" + name_of(point.holes) + "/wildcards:" + std::to_string(point.wildcard_percent) +
         "/cache:" + (point.cold ? "cold" : "hot");
}

std::string json_fields(const EngineStructure& structure, const EnginePoint& point) {
  const auto text = [](const char* field, const std::string& value) {
    return std::string("\"") + field + "\":\"" + value + "\",";
  };
  return text("structure", structure.structure) + text("variant", structure.variant) +
         text("isa", structure.isa) + text("side", name_of(point.side)) +
         "\"depth\":" + std::to_string(point.depth) + "," + text("order", name_of(point.order)) +
         text("keys", name_of(point.keys)) + text("holes", name_of(point.holes)) +
         "\"wildcard_percent\":" + std::to_string(point.wildcard_percent) + "," +
         text("cache", point.cold ? "cold" : "hot") + "\"operation\":\"" +
         name_of(point.operation) + "\"";
}

// ---- subsets -----------------------------------------------------------------

namespace {

using Depths = std::vector<std::size_t>;
constexpr std::size_t kMi = std::size_t{1} << 20;

class Tasks {
 public:
  // One axis at a time: `change` turns the plain point into the one wanted.
  template <class Change>
  void add(const Depths& depths, Change change, bool all_isas = false) {
    for (const std::size_t depth : depths) {
      for (const tagline_side side : {TAGLINE_POSTED, TAGLINE_UNEXPECTED}) {
        EnginePoint point;
        point.depth = depth;
        point.side = side;
        change(point);
        const auto same = [&](const EngineTask& task) { return task.point == point; };
        const auto found = std::find_if(tasks_.begin(), tasks_.end(), same);
        if (found == tasks_.end()) {
          tasks_.push_back({point, all_isas});
        } else {
          found->all_isas = found->all_isas || all_isas;
        }
      }
    }
  }
  std::vector<EngineTask> take() { return std::move(tasks_); }

 private:
  std::vector<EngineTask> tasks_;
};

Depths powers_of_two(std::size_t to) {
  Depths depths{0};
  for (std::size_t depth = 1; depth <= to; depth *= 2) depths.push_back(depth);
  return depths;
}

}  // namespace

std::vector<EngineTask> tasks_of(const std::string& subset) {
  const bool quick = subset == "quick";
  const bool full = subset == "full";
  Tasks tasks;

  const Depths whole =
      quick  ? Depths{0, 1, 8, 32, 128, 512, 1024, 4096, 16384, 65536, kMi}
      : full ? powers_of_two(kMi)
             : Depths{0, 1, 2, 4, 8, 16, 32, 64, 128, 512, 1024, 4096, 16384, 65536, 262144, kMi};
  tasks.add(whole, [](EnginePoint&) {});

  const Depths drains =
      quick  ? Depths{8, 128, 1024, 4096, 16384, 65536}
      : full ? whole
             : Depths{1, 2, 4, 8, 16, 32, 128, 1024, 4096, 16384, 32768, 65536, 131072, kMi};
  for (const Order order : {Order::first, Order::random, Order::reverse}) {
    Depths depths = drains;
    if (quick && order == Order::reverse) depths = {1024};
    std::erase(depths, std::size_t{0});  // nothing to drain
    tasks.add(depths, [&](EnginePoint& point) { point.order = order; });
    if (!quick || order != Order::random) continue;
    tasks.add({kMi}, [&](EnginePoint& point) {
      point.order = order;
      point.side = TAGLINE_POSTED;
    });
  }

  tasks.add(quick ? Depths{8, 16, 32, 128} : Depths{1, 2, 4, 8, 16, 32, 64, 128},
            [](EnginePoint& point) { point.order = Order::random_once_deep; });
  tasks.add(quick ? Depths{4, 8, 32, 1024, 16384}
                  : Depths{1, 2, 4, 8, 16, 32, 64, 128, 1024, 16384, 65536},
            [](EnginePoint& point) { point.order = Order::random_again; });
  // The same beside wildcards of two kinds.
  tasks.add(quick ? Depths{8, 32} : Depths{2, 4, 8, 16, 32, 64, 128, 1024}, [](EnginePoint& point) {
    point.order = Order::random_again;
    point.keys = Keys::grid;
    point.wildcard_percent = 10;
  });
  // Where a hash of keys that count up is as even as can be, that of these is not.
  tasks.add(quick ? Depths{1024, 4096} : Depths{64, 128, 512, 1024, 4096, 16384, 65536},
            [](EnginePoint& point) {
              point.order = Order::random;
              point.keys = Keys::irregular;
            });
  // A few more than a table holds: it has begun to move to a larger one.
  tasks.add({1280, 5120}, [](EnginePoint& point) { point.order = Order::last_once_deep; });

  const Depths few = full ? powers_of_two(65536) : Depths{64, 1024, 16384};
  for (const Keys keys : {Keys::one_tag, Keys::grid, Keys::all_equal}) {
    tasks.add(quick  ? Depths{0, 1024, 65536}
              : full ? whole
                     : Depths{0, 1, 8, 64, 1024, 16384, 65536, kMi},
              [&](EnginePoint& point) { point.keys = keys; });
    if (quick) continue;
    for (const Order order : {Order::first, Order::random}) {
      Depths depths = few;
      std::erase(depths, std::size_t{0});
      tasks.add(depths, [&](EnginePoint& point) {
        point.keys = keys;
        point.order = order;
      });
    }
  }

  for (const int share : {1, 10, 100}) {
    for (const Order order : {Order::last, Order::first, Order::random, Order::reverse}) {
      for (const Keys keys : {Keys::one_source, Keys::one_tag, Keys::grid, Keys::all_equal}) {
        const bool plain = keys == Keys::one_source;
        const bool mixed_random = keys == Keys::grid && order == Order::random;
        if (quick && (share == 1 || order == Order::reverse)) continue;
        if (quick && !plain && !mixed_random) continue;
        if (!full && share == 1 && !(plain && order == Order::last)) continue;
        if (!full && !plain && (order == Order::first || order == Order::reverse)) continue;
        Depths depths = few;
        if (quick) depths = {16, 1024, 16384};
        if (!quick && plain) depths = {1, 8, 64, 1024, 16384, kMi};
        std::erase(depths, std::size_t{0});
        tasks.add(depths, [&](EnginePoint& point) {
          point.wildcard_percent = share;
          point.order = order;
          point.keys = keys;
        });
      }
    }
  }
  if (quick) {  // the most that first searches with wildcards have to look at
    tasks.add({kMi}, [](EnginePoint& point) {
      point.wildcard_percent = 100;
      point.order = Order::random;
      point.side = TAGLINE_UNEXPECTED;
    });
  }

  for (const Holes holes : {Holes::every_other, Holes::one_per_node}) {
    tasks.add(quick ? Depths{256} : Depths{8, 64, 256, 1024},
              [&](EnginePoint& point) { point.holes = holes; });
  }

  for (const Order order : {Order::last, Order::random}) {
    const Depths depths = quick  ? (order == Order::last ? Depths{0, 16384} : Depths{16384})
                          : full ? Depths{0, 1, 8, 64, 256, 1024, 4096, 16384, 65536, kMi}
                                 : Depths{0, 64, 1024, 16384, 65536};
    tasks.add(depths, [&](EnginePoint& point) {
      point.cold = true;
      point.order = order;
      // An empty queue has no random entry.
      if (point.depth == 0) point.order = Order::last;
    });
  }

  tasks.add(quick ? Depths{1024} : Depths{0, 16, 1024, 16384}, [](EnginePoint& point) {
    point.operation = Operation::probe;
    point.side = TAGLINE_UNEXPECTED;
  });
  for (const Operation operation : {Operation::cancel, Operation::cancel_handle}) {
    tasks.add(quick ? Depths{1024} : Depths{0, 16, 1024, 16384}, [&](EnginePoint& point) {
      point.operation = operation;
      point.side = TAGLINE_POSTED;
    });
  }

  tasks.add(
      quick  ? Depths{1024}
      : full ? Depths{0, 8, 64, 1024, 16384}
             : Depths{0, 64, 1024},
      [](EnginePoint&) {}, true);
  return tasks.take();
}

}  // namespace bench
