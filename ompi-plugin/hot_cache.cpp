// SPDX-License-Identifier: BSD-3-Clause
#include "hot_cache.hpp"

#include <sched.h>

#include <atomic>
#include <string>

#include "match/locks.hpp"

namespace tagline::pml {
namespace {

// Changes together with what the heater is told, behind the lock: several threads may be here.
std::atomic<bool> is_told_to_pause{false};
SpinLock telling;

// Written at any time through MPI's tool interface.
bool is_to_pause() { return load(plugin.parameters.hot_cache_paused); }

[[gnu::cold]] void tell_heater() {
  const LockGuard guard(telling);
  const bool paused = is_to_pause();
  if (paused == is_told_to_pause.load(std::memory_order_relaxed)) return;
  if (paused) {
    tagline_heater_pause(plugin.heater);
  } else {
    tagline_heater_resume(plugin.heater);
  }
  // relaxed: a thread that still sees the old value looks again behind the lock.
  is_told_to_pause.store(paused, std::memory_order_relaxed);
}

// Waiting is communication, too.
extern "C" int tagline_heater_progress() {
  say_communication();
  return 0;
}

// "0,2,3": where the system lets this process run; empty if it does not tell.
std::string own_units() {
  cpu_set_t set;
  std::string list;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return list;
  for (std::size_t unit = 0; unit < CPU_SETSIZE; ++unit) {
    if (!CPU_ISSET(unit, &set)) continue;
    if (!list.empty()) list += ',';
    list += std::to_string(unit);
  }
  return list;
}

}  // namespace

void say_communication() {
  if (is_to_pause() != is_told_to_pause.load(std::memory_order_relaxed)) [[unlikely]]
    tell_heater();
  tagline_heater_wake(plugin.heater);
}

void publish_units() {
  if (!plugin.parameters.hot_cache) return;
  const std::string units = own_units();
  // Whoever cannot read it takes no account of it.
  if (!units.empty()) tagline_publish(units.c_str(), units.size() + 1);
}

void start_heater(ompi_proc_t** procs, std::size_t count) {
  const Parameters& parameters = plugin.parameters;
  if (!parameters.hot_cache || plugin.heater != nullptr) return;
  std::string used;
  for (std::size_t i = 0; i < count; ++i) {
    if (procs[i] == ompi_proc_local() || !OPAL_PROC_ON_LOCAL_NODE(procs[i]->super.proc_flags)) {
      continue;
    }
    char* const units = tagline_published_by(procs[i]);
    if (units == nullptr) continue;
    if (!used.empty()) used += ',';
    used += units;
    std::free(units);
  }
  tagline_heater_options options = TAGLINE_HEATER_OPTIONS_DEFAULT;
  options.sleep_ns = parameters.hot_cache_sleep_ns;
  options.idle_ns = std::uint64_t{parameters.hot_cache_idle_us} * 1000;
  options.max_lines = parameters.hot_cache_max_lines;
  options.processing_unit = parameters.hot_cache_unit;
  options.always = parameters.hot_cache_always ? 1 : 0;
  options.used_units = used.empty() ? nullptr : used.c_str();
  if (tagline_heater_create(&options, &plugin.heater) != TAGLINE_OK) {
    plugin.heater = nullptr;
    opal_output(0, "pml tagline: pml_tagline_hot_cache is set, but there is no heater: %s",
                tagline_error_message());
    return;
  }
  opal_progress_register(tagline_heater_progress);
}

void stop_heater() {
  if (plugin.heater == nullptr) return;
  opal_progress_unregister(tagline_heater_progress);
  tagline_heater_destroy(plugin.heater);
  plugin.heater = nullptr;
}

void keep_hot(tagline_matcher* matcher) {
  if (plugin.heater == nullptr) return;
  if (tagline_heater_attach(plugin.heater, matcher) == TAGLINE_OK) return;
  static bool is_said = false;
  if (!is_said) opal_output(0, "pml tagline: match queues stay cold: %s", tagline_error_message());
  is_said = true;
}

}  // namespace tagline::pml
