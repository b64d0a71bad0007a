// SPDX-License-Identifier: BSD-3-Clause
#include "match/processing_unit.hpp"

#include <sched.h>

#include <cstring>
#include <string>

#if TAGLINE_HWLOC
#include <hwloc.h>

#include <cstdlib>
#endif

namespace tagline {

#if TAGLINE_HWLOC

namespace {

class Topology {
 public:
  Topology() {
    if (hwloc_topology_init(&topology_) != 0) throw Unavailable(kUnknown);
    if (hwloc_topology_load(topology_) == 0) return;
    hwloc_topology_destroy(topology_);
    throw Unavailable(kUnknown);
  }
  ~Topology() { hwloc_topology_destroy(topology_); }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
  operator hwloc_topology_t() const noexcept { return topology_; }

 private:
  static constexpr char kUnknown[] = "hwloc cannot read this machine's processing units and caches";
  hwloc_topology_t topology_ = nullptr;
};

class Units {
 public:
  Units() : bitmap_(hwloc_bitmap_alloc()) {
    if (bitmap_ == nullptr) throw std::bad_alloc();
  }
  ~Units() { hwloc_bitmap_free(bitmap_); }
  Units(const Units&) = delete;
  Units& operator=(const Units&) = delete;
  operator hwloc_bitmap_t() const noexcept { return bitmap_; }

  std::string list() const {
    char* text = nullptr;
    if (hwloc_bitmap_list_asprintf(&text, bitmap_) < 0) throw std::bad_alloc();
    const std::string result = text;
    std::free(text);
    return result;
  }

 private:
  const hwloc_bitmap_t bitmap_;
};

int level_of(const hwloc_obj* cache) { return static_cast<int>(cache->attr->cache.depth); }

// The innermost data cache around the object, or around that cache.
hwloc_obj* outer_cache(hwloc_obj* object) {
  do object = object->parent;
  while (object != nullptr && !hwloc_obj_type_is_dcache(object->type));
  return object;
}

ProcessingUnit named_unit(const Topology& topology, hwloc_obj* mine, int number) {
  const std::string name = "processing unit " + std::to_string(number);
  if (hwloc_get_pu_obj_by_os_index(topology, static_cast<unsigned>(number)) == nullptr) {
    Units allowed;
    hwloc_bitmap_copy(allowed, hwloc_topology_get_allowed_cpuset(topology));
    throw Unavailable(name + " does not exist or is not ours to use: the allowed ones are " +
                      allowed.list());
  }
  if (mine->os_index == static_cast<unsigned>(number)) {
    throw Unavailable(name + " is the one that the matching thread runs on: name another one");
  }
  for (hwloc_obj* cache = outer_cache(mine); cache != nullptr; cache = outer_cache(cache)) {
    if (hwloc_bitmap_isset(cache->cpuset, static_cast<unsigned>(number))) {
      return {number, level_of(cache)};
    }
  }
  return {number, 0};
}

}  // namespace

ProcessingUnit unit_beside_this_thread(int wanted, const char* used) {
  const Topology topology;
  Units here, taken, candidates;
  if (used != nullptr && hwloc_bitmap_list_sscanf(taken, used) != 0) {
    throw std::invalid_argument("used_units must be a list of processing units like \"0,2-5\"");
  }
  if (hwloc_get_last_cpu_location(topology, here, HWLOC_CPUBIND_THREAD) != 0) {
    throw Unavailable("hwloc cannot tell which processing unit the matching thread runs on");
  }
  hwloc_obj* const mine =
      hwloc_get_pu_obj_by_os_index(topology, static_cast<unsigned>(hwloc_bitmap_first(here)));
  if (mine == nullptr) {
    throw Unavailable("hwloc does not know processing unit " + here.list() +
                      ", which the matching thread runs on");
  }
  if (wanted >= 0) return named_unit(topology, mine, wanted);

  std::string seen = "none is shared by several units";
  for (hwloc_obj* cache = outer_cache(mine); cache != nullptr; cache = outer_cache(cache)) {
    hwloc_bitmap_andnot(candidates, cache->cpuset, here);
    if (hwloc_bitmap_iszero(candidates)) continue;
    Units around;
    hwloc_bitmap_copy(around, cache->cpuset);
    seen = "units " + around.list() + " share L" + std::to_string(level_of(cache)) +
           ", the thread is on " + here.list() + ", others use " + taken.list();
    hwloc_bitmap_andnot(candidates, candidates, taken);
    const int free = hwloc_bitmap_weight(candidates);
    if (free == 0) continue;
    // As many of the others as come before us in this cache have a choice before us.
    hwloc_bitmap_and(around, around, taken);
    hwloc_bitmap_clr_range(around, mine->os_index, -1);
    int number = hwloc_bitmap_first(candidates);
    for (int skip = hwloc_bitmap_weight(around) % free; skip > 0; --skip) {
      number = hwloc_bitmap_next(candidates, number);
    }
    return {number, level_of(cache)};
  }
  throw Unavailable("no processing unit shares a cache with the matching thread and is free (" +
                    seen + "): leave units free and bind threads, or name a unit");
}

#else

ProcessingUnit unit_beside_this_thread(int, const char*) {
  throw Unavailable(
      "this tagline was built without hwloc, which finds the processing unit for a heater: install "
      "libhwloc-dev and configure with -DTAGLINE_HWLOC=ON");
}

#endif

void bind_thread(pthread_t thread, const ProcessingUnit& unit) {
  const auto number = static_cast<std::size_t>(unit.number);
  cpu_set_t* const set = CPU_ALLOC(number + 1);
  if (set == nullptr) throw std::bad_alloc();
  const std::size_t bytes = CPU_ALLOC_SIZE(number + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(number, bytes, set);
  const int error = pthread_setaffinity_np(thread, bytes, set);
  CPU_FREE(set);
  if (error == 0) return;
  throw Unavailable("the system does not let a thread be bound to processing unit " +
                    std::to_string(unit.number) + ": " + std::strerror(error));
}

}  // namespace tagline
