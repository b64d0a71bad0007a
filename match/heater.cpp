// SPDX-License-Identifier: BSD-3-Clause
// The C contract of the hot cache: arguments are checked here.
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>

#include "match/hot_cache.hpp"
#include "match/matcher.hpp"
#include "match/tagline.h"

// Matchers that are attached keep the cache's records when the heater is gone.
struct tagline_heater {
  std::shared_ptr<tagline::HotCache> cache;
};

namespace {

constexpr std::uint64_t kDefaultSleep = 1000000;
constexpr std::uint64_t kLongestSleep = 1000000000;
constexpr std::size_t kDefaultLines = 8192;

constexpr char kNoHeater[] = "heater is NULL";

tagline_status fail(tagline_status status, const char* sentence) noexcept {
  tagline::set_error_message(sentence);
  return status;
}

tagline_status invalid(const char* sentence) noexcept { return fail(TAGLINE_INVALID, sentence); }

// The statuses of whatever may throw.
template <class Action>
tagline_status guarded(Action action) noexcept try {
  return action();
} catch (const tagline::Unavailable& error) {
  return fail(TAGLINE_UNAVAILABLE, error.what());
} catch (const std::invalid_argument& error) {
  return invalid(error.what());
} catch (const std::bad_alloc&) {
  return fail(TAGLINE_NO_MEMORY, "no memory for a heater or its regions");
}

template <class Value>
Value or_default(Value value, Value by_default) noexcept {
  return value == 0 ? by_default : value;
}

// Of attaching and detaching: both look at a matcher's observer before they change it, and several
// threads may call. Seldom enough for one lock for all.
std::mutex attaching;

// Most of these are shorter than that. What lies behind is touched for nothing, or is one of the
// ways in match/matcher_ways.hpp, which an operation ends in by a jump.
constexpr std::size_t kBytesOfACall = 2 * tagline::kCacheLine;
constexpr std::size_t kBytesOfAnOperation = 11 * tagline::kCacheLine;

// The calls of this library that lead to an operation. GCC may make one of them hold that of the
// default's matcher, which is short.
void tell_of_calls(tagline::MemoryObserver& observer) noexcept {
  const auto tell = [&](auto* call, std::size_t bytes = kBytesOfACall) {
    observer.code_in_use(reinterpret_cast<const void*>(call), bytes);
  };
  tell(&tagline_post_receive);
  tell(&tagline_arrive);
  tell(&tagline_claim);
  tell(&tagline_append_receive);
  tell(&tagline_match_message, kBytesOfAnOperation);
  tell(&tagline_append_message);
}

bool is_attached(const tagline_heater& heater, const tagline_matcher& matcher) noexcept {
  const auto* memory =
      static_cast<const tagline::HeatedMemory*>(matcher.about->memory_observer.get());
  return memory != nullptr && memory->is_of(*heater.cache);
}

}  // namespace

// The language does not tell where a virtual function's code is, but its table does, whose
// layout the Itanium C++ ABI sets, which all compilers on Linux follow: behind the two
// destructors come the functions in the order of their declaration.
void tagline_matcher::tell_of_code(tagline::MemoryObserver& observer) const noexcept {
  constexpr std::size_t kDestructors = 2;
  constexpr std::size_t kOperations = 6;
  const void* const* table;
  std::memcpy(&table, static_cast<const void*>(this), sizeof table);
  observer.code_in_use(table, (kDestructors + kOperations) * sizeof *table);
  for (std::size_t i = 0; i < kOperations; ++i) {
    observer.code_in_use(table[kDestructors + i], kBytesOfAnOperation);
  }
}

extern "C" {

tagline_status tagline_heater_create(const tagline_heater_options* options,
                                     tagline_heater** heater) {
  if (heater == nullptr) return invalid("an output pointer is NULL");
  const tagline_heater_options defaults = TAGLINE_HEATER_OPTIONS_DEFAULT;
  const tagline_heater_options& wanted = options != nullptr ? *options : defaults;
  if (wanted.sleep_ns > kLongestSleep) return invalid("sleep_ns must not exceed 1000000000");
  if (wanted.idle_ns > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    return invalid("idle_ns must not exceed 2^63 - 1");
  }
  return guarded([&] {
    tagline::HotCache::Settings settings{};
    settings.sleep = std::chrono::nanoseconds(or_default(wanted.sleep_ns, kDefaultSleep));
    settings.idle = std::chrono::nanoseconds(wanted.idle_ns);
    settings.max_lines = or_default(wanted.max_lines, kDefaultLines);
    settings.always = wanted.always != 0;
    settings.unit = tagline::unit_beside_this_thread(wanted.processing_unit, wanted.used_units);
    *heater = std::make_unique<tagline_heater>(
                  tagline_heater{std::make_shared<tagline::HotCache>(settings)})
                  .release();
    return TAGLINE_OK;
  });
}

void tagline_heater_destroy(tagline_heater* heater) {
  if (heater == nullptr) return;
  heater->cache->stop();
  delete heater;
}

tagline_status tagline_heater_attach(tagline_heater* heater, tagline_matcher* matcher) {
  if (heater == nullptr) return invalid(kNoHeater);
  if (matcher == nullptr) return invalid("matcher is NULL");
  return guarded([&] {
    const std::lock_guard guard(attaching);
    if (matcher->about->memory_observer != nullptr)
      return invalid("the matcher is attached already");
    auto memory = std::make_unique<tagline::HeatedMemory>(heater->cache);
    tell_of_calls(*memory);
    matcher->tell_of_code(*memory);
    const tagline_status status = matcher->observe_memory(memory.get());
    if (status == TAGLINE_OK) matcher->about->memory_observer = std::move(memory);
    return status;
  });
}

tagline_status tagline_heater_detach(tagline_heater* heater, tagline_matcher* matcher) {
  if (heater == nullptr) return invalid(kNoHeater);
  if (matcher == nullptr) return invalid("matcher is NULL");
  const std::lock_guard guard(attaching);
  if (!is_attached(*heater, *matcher)) return TAGLINE_NOT_FOUND;
  matcher->observe_memory(nullptr);
  matcher->about->memory_observer.reset();
  return TAGLINE_OK;
}

tagline_status tagline_heater_register(tagline_heater* heater, const void* address, size_t bytes) {
  if (heater == nullptr) return invalid(kNoHeater);
  if (address == nullptr || bytes == 0) return invalid("a region needs an address and bytes");
  return guarded([&] {
    if (heater->cache->add(address, bytes, nullptr)) return TAGLINE_OK;
    return invalid("the address is that of a region already: deregister it first");
  });
}

tagline_status tagline_heater_deregister(tagline_heater* heater, const void* address) {
  if (heater == nullptr) return invalid(kNoHeater);
  return heater->cache->remove(address, nullptr) ? TAGLINE_OK : TAGLINE_NOT_FOUND;
}

void tagline_heater_pause(tagline_heater* heater) {
  if (heater != nullptr) heater->cache->pause();
}

void tagline_heater_resume(tagline_heater* heater) {
  if (heater != nullptr) heater->cache->resume();
}

void tagline_heater_wake(tagline_heater* heater) {
  if (heater != nullptr) heater->cache->wake();
}

void tagline_heater_get_statistics(tagline_heater* heater, tagline_heater_statistics* statistics) {
  if (heater == nullptr || statistics == nullptr) return;
  const tagline::HotCache::Counts counts = heater->cache->counts();
  const tagline::ProcessingUnit& unit = heater->cache->unit();
  *statistics = {counts.passes,     counts.passes_left_out,  counts.lines_touched,
                 counts.regions,    counts.region_lines,     unit.number,
                 unit.shared_cache, counts.is_paused ? 1 : 0};
}

}  // extern "C"
