// SPDX-License-Identifier: BSD-3-Clause
#include "match/hot_cache.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <optional>
#include <system_error>

#include "match/control_lines.hpp"

#ifdef __has_feature
#define TAGLINE_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define TAGLINE_ADDRESS_SANITIZER 1
#endif

namespace tagline {

namespace {

// The heater touches words that another thread writes at the same time, without
// any order between them: as loads these would be data races, which the language
// does not allow and ThreadSanitizer reports. A prefetch reads no value, so there
// is no race; it moves the line all the same. Nor can it fault, and it does not make
// pages resident that the queues have not used yet.
inline void touch_line(const std::byte* line) noexcept {
#if TAGLINE_ADDRESS_SANITIZER
  // A load after all: here it is what reports a touch of memory given back.
  static_cast<void>(*static_cast<const volatile std::byte*>(line));
#else
  __builtin_prefetch(line, 0, 3);
#endif
}

// Signals are for the threads of the program.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

HotCache::HotCache(const Settings& settings)
    : settings_(settings), last_active_(std::chrono::steady_clock::now()) {
  try {
    const SignalsBlocked blocked;
    heater_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw Unavailable(std::string("the system starts no thread for the heater: ") + error.what());
  }
  try {
    bind_thread(heater_.native_handle(), settings.unit);
  } catch (...) {
    stop();
    throw;
  }
}

HotCache::~HotCache() {
  stop();
  for (Region *region = first_, *next; region != nullptr; region = next) {
    next = region->next;
    delete region;
  }
}

void HotCache::stop() noexcept {
  {
    const std::lock_guard lock(sleep_);
    is_stopped_ = true;
  }
  awake_.notify_all();
  if (heater_.joinable()) heater_.join();
}

// ---- Regions -------------------------------------------------------------------

bool HotCache::add(const void* begin, std::size_t bytes, const void* owner) {
  const std::lock_guard lock(registry_);
  if (regions_.contains(begin)) return false;
  make_region(begin, bytes, owner);
  return true;
}

void HotCache::share(const void* begin, std::size_t bytes, const void* owner) {
  const std::lock_guard lock(registry_);
  const auto found = regions_.find(begin);
  if (found == regions_.end()) return make_region(begin, bytes, owner);
  std::vector<const void*>& owners = found->second->owners;
  if (std::ranges::count(owners, owner) == 0) owners.push_back(owner);
}

void HotCache::make_region(const void* begin, std::size_t bytes, const void* owner) {
  if (free_ == nullptr) {
    free_ = new Region;
    // release: pairs with the acquire in pass(), which reads the record.
    (last_ == nullptr ? first_ : last_->next).store(free_, std::memory_order_release);
    last_ = free_;
  }
  Region& region = *free_;
  region.owners.assign(1, owner);
  regions_.emplace(begin, &region);
  free_ = region.next_free;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  region.lines = (address % kCacheLine + bytes + kCacheLine - 1) / kCacheLine;
  // release: pairs with the load in touch(), which goes on to read `lines`.
  region.begin.store(static_cast<const std::byte*>(begin), std::memory_order_release);
}

bool HotCache::remove(const void* begin, const void* owner) noexcept {
  const std::lock_guard lock(registry_);
  const auto found = regions_.find(begin);
  if (found == regions_.end() || std::erase(found->second->owners, owner) == 0) return false;
  retire_unowned(found);
  return true;
}

void HotCache::remove_all_of(const void* owner) noexcept {
  const std::lock_guard lock(registry_);
  for (auto place = regions_.begin(); place != regions_.end();) {
    std::erase(place->second->owners, owner);
    place = retire_unowned(place);
  }
}

HotCache::Places::iterator HotCache::retire_unowned(Places::iterator place) noexcept {
  if (!place->second->owners.empty()) return std::next(place);
  retire(*place->second);
  return regions_.erase(place);
}

// seq_cst, this store and load and their mirror images in touch(): the heater says
// where it is, then looks whether the record is free; we free it, then look where
// the heater is. At least one sees the other. The load acquires, too: what the heater
// did before it went on comes before what is done to the region now.
void HotCache::retire(Region& region) noexcept {
  region.begin.store(nullptr, std::memory_order_seq_cst);
  while (touching_.load(std::memory_order_seq_cst) == &region) std::this_thread::yield();
  region.next_free = free_;
  free_ = &region;
}

// ---- The heater ----------------------------------------------------------------

void HotCache::run() noexcept {
  pthread_setname_np(pthread_self(), "tagline-heater");
  // By default the system adds up to 50 us to every sleep.
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  std::optional<ControlLines> control;
  if (watches_the_last_level()) control.emplace();
  // relaxed, here and in is_halted(): seen a pass late, a wish to stop or pause costs that pass.
  // What must not be missed by a sleeper is told under its lock.
  while (!is_stopped_.load(std::memory_order_relaxed)) {
    if (!is_paused_.load(std::memory_order_relaxed)) {
      const bool is_active = note_activity();
      pass(!control || would_be_lost(*control, is_active));
    }
    rest();
  }
}

// Whether there was any since the pass before.
bool HotCache::note_activity() noexcept {
  if (!active_.exchange(false, std::memory_order_relaxed)) return false;
  last_active_ = std::chrono::steady_clock::now();
  return true;
}

// What the last level has lost once it does not get back by itself before it is used. Activity that
// goes on may be waiting, which uses no queue: only where it begins queues and lines are as old.
bool HotCache::would_be_lost(ControlLines& control, bool is_active) noexcept {
  const bool begins = is_active && !was_active_;
  was_active_ = is_active;
  if (begins) {
    control.use();
    is_lost_ = false;
  } else if (!is_lost_) {
    is_lost_ = control.are_lost();
  }
  return is_lost_;
}

// Units that share a cache further in gain from it whenever the last level has kept a line that
// this one has not.
bool HotCache::watches_the_last_level() const noexcept {
  constexpr int kLastLevel = 3;
  return !settings_.always && settings_.unit.shared_cache >= kLastLevel;
}

void HotCache::pass(bool pays) noexcept {
  passes_.fetch_add(1, std::memory_order_relaxed);
  if (!pays) {
    passes_left_out_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::size_t touched = 0;
  for (Region* region = first_.load(std::memory_order_acquire);
       region != nullptr && touched < settings_.max_lines && !is_halted();
       region = region->next.load(std::memory_order_acquire)) {
    touched += touch(*region, settings_.max_lines - touched);
  }
  lines_touched_.fetch_add(touched, std::memory_order_relaxed);
}

std::size_t HotCache::touch(Region& region, std::size_t most) noexcept {
  if (region.begin.load(std::memory_order_relaxed) == nullptr) return 0;
  std::size_t done = 0;
  touching_.store(&region, std::memory_order_seq_cst);
  const std::byte* const begin = region.begin.load(std::memory_order_seq_cst);
  if (begin != nullptr) {
    const std::size_t lines = std::min(region.lines, most);
    // Where a region starts within a line, that line's part of it comes first.
    const std::byte* line = begin;
    const std::size_t into = reinterpret_cast<std::uintptr_t>(begin) % kCacheLine;
    while (done < lines && region.begin.load(std::memory_order_relaxed) == begin && !is_halted()) {
      for (const std::size_t end = std::min(lines, done + kBlockLines); done < end; ++done) {
        touch_line(line);
        line = begin - into + (done + 1) * kCacheLine;
      }
    }
  }
  // release: pairs with the load in retire().
  touching_.store(nullptr, std::memory_order_release);
  return done;
}

void HotCache::rest() noexcept {
  const bool is_idle = settings_.idle.count() > 0 &&
                       std::chrono::steady_clock::now() - last_active_ >= settings_.idle;
  std::unique_lock lock(sleep_);
  if (is_paused_) {
    awake_.wait(lock, [this] { return !is_paused_ || is_stopped_; });
  } else if (is_idle) {
    is_dozing_.store(true, std::memory_order_seq_cst);  // see wake()
    awake_.wait(lock, [this] { return active_ || is_paused_ || is_stopped_; });
    is_dozing_.store(false, std::memory_order_relaxed);
  } else {
    awake_.wait_for(lock, settings_.sleep, [this] { return is_stopped_.load(); });
  }
}

void HotCache::wake_sleeper() noexcept {
  if (!is_dozing_.load(std::memory_order_seq_cst)) return;
  // With the lock the heater is in its wait, or has not yet looked at active_.
  const std::lock_guard lock(sleep_);
  awake_.notify_all();
}

// relaxed: see run().
void HotCache::pause() noexcept { is_paused_.store(true, std::memory_order_relaxed); }

void HotCache::resume() noexcept {
  {
    const std::lock_guard lock(sleep_);
    is_paused_ = false;
    active_ = true;
  }
  awake_.notify_all();
}

HotCache::Counts HotCache::counts() noexcept {
  const std::lock_guard lock(registry_);
  Counts counts = {passes_, passes_left_out_,        lines_touched_, regions_.size(),
                   0,       is_paused_ || is_dozing_};
  for (const auto& [begin, region] : regions_) counts.region_lines += region->lines;
  return counts;
}

// ---- A matcher's memory ----------------------------------------------------------

void HeatedMemory::in_use(const void* block, std::size_t bytes) noexcept try {
  cache_->add(block, bytes, this);
} catch (const std::bad_alloc&) {
}

void HeatedMemory::code_in_use(const void* begin, std::size_t bytes) noexcept try {
  cache_->share(begin, bytes, this);
} catch (const std::bad_alloc&) {
}

}  // namespace tagline
