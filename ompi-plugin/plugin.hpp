// SPDX-License-Identifier: BSD-3-Clause
// State that belongs to the process: parameters, free lists, and how to lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "compat.h"
#include "copy_choice.hpp"
#include "match/tagline.h"

namespace tagline::pml {

// MCA parameters, written by Open MPI between registration and open.
struct Parameters {
  int priority = 10;
  const char* queue = nullptr;
  const char* isa = nullptr;
  const char* threading = nullptr;
  const char* profile = nullptr;
  int free_list_num = 4;
  int free_list_max = -1;
  int free_list_inc = 64;
  unsigned send_pipeline_depth = 4;
  unsigned receive_pipeline_depth = 4;
  unsigned unexpected_inline = 128;
  unsigned local_eager_limit = 32768;
  bool shared_copy = true;
  unsigned send_inline_limit = 32768;
  unsigned send_box_limit = 512;
  unsigned local_box_size = 16384;
  bool hot_cache = false;
  bool hot_cache_always = false;
  bool hot_cache_paused = false;  // may change at any time
  unsigned hot_cache_sleep_ns = 1000000;
  unsigned hot_cache_idle_us = 10000;
  unsigned hot_cache_max_lines = 8192;
  int hot_cache_unit = TAGLINE_AUTOMATIC_UNIT;
  std::size_t unexpected_limit = 0;
  bool match_time = false;
  unsigned report_leftovers = 0;
};

struct Plugin {
  Parameters parameters;
  bool enabled = false;         // this component won the selection
  bool threads = false;         // several threads may be inside the component at once
  bool keeps_requests = false;  // for the thread that has let go of them, see request_pool.hpp
  bool plain = false;           // neither threads, nor credit, nor parameters.match_time
  CopyChoice copy_choice;
  // The BTL to the process itself, which delivers within the call that sends; NULL: none.
  const mca_btl_base_module_t* self_btl = nullptr;
  tagline_heater* heater = nullptr;
  bool credit = false;         // memory for unexpected messages is bounded, see credit.hpp
  opal_free_list_t messages;   // StoredArrival
  opal_free_list_t transfers;  // RemoteTransfer
};

extern Plugin plugin;
extern mca_pml_base_module_t module;

// Locks and atomics cost nothing in a process with a single communicating thread.
template <class Mutex>
class Guard {
 public:
  explicit Guard(Mutex& mutex) : Guard(&mutex) {}
  // NULL: there is nothing to guard.
  explicit Guard(Mutex* mutex) : mutex_(plugin.threads ? mutex : nullptr) {
    if (mutex_ != nullptr) mutex_->lock();
  }
  ~Guard() { unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  void unlock() {
    if (mutex_ != nullptr) mutex_->unlock();
    mutex_ = nullptr;
  }

 private:
  Mutex* mutex_;
};

// Counters that several threads may change. Acquire-release: who brings a counter to its final
// value sees everything the other threads did before they changed it.
template <class T>
T add_fetch(T& value, T amount) {
  if (plugin.threads) return std::atomic_ref<T>(value).fetch_add(amount) + amount;
  return value += amount;
}

template <class T>
T subtract_fetch(T& value, T amount) {
  if (plugin.threads) return std::atomic_ref<T>(value).fetch_sub(amount) - amount;
  return value -= amount;
}

template <class T>
T fetch_or(T& value, T bits) {
  if (plugin.threads) return std::atomic_ref<T>(value).fetch_or(bits);
  const T before = value;
  value |= bits;
  return before;
}

template <class T>
T load(T& value) {
  return std::atomic_ref<T>(value).load(std::memory_order_acquire);
}

// The job cannot go on: says why and ends it, as Open MPI does for a failing BTL.
[[noreturn]] void abort_job(const char* reason);

// The same for a transport that has lost its peer. A process that died ends the job by itself,
// with its own exit status, as soon as mpirun sees it: mpirun gets a moment for that.
[[noreturn]] void end_job_for_lost_peer(const char* reason);

}  // namespace tagline::pml
