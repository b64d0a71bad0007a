// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of one matcher by queue structure and number of receives or messages that wait: node
// memory as the library counts it, and all else that it asks operator new for. And that of a
// communicator's peers in the Open MPI component, with more ranks than a machine has room for, as
// the C library's allocator counts it. Prints one JSON object per point.
#include <malloc.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "match/tagline.h"
#include "ompi-plugin/peer_table.hpp"

namespace {

std::size_t allocated = 0;  // by operator new, bytes

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  void* block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (block != nullptr) allocated += malloc_usable_size(block);
  return block;
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* block = allocate(bytes, alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void release(void* block) noexcept {
  allocated -= malloc_usable_size(block);
  std::free(block);
}

constexpr std::size_t kAlignment = alignof(std::max_align_t);

}  // namespace

// The library is linked in, so these serve it too. The forms for arrays end up here as well.
void* operator new(std::size_t n) { return allocate_or_throw(n, kAlignment); }
void* operator new(std::size_t n, std::align_val_t a) {
  return allocate_or_throw(n, std::size_t(a));
}
void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  return allocate(n, kAlignment);
}
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, std::size_t(a));
}
void operator delete(void* block) noexcept { release(block); }
void operator delete(void* block, std::size_t) noexcept { release(block); }
void operator delete(void* block, std::align_val_t) noexcept { release(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { release(block); }

namespace {

// 8196 is the dissertation's.
constexpr int kEntries[] = {0, 1, 16, 64, 1024, 8196, 65536};
constexpr int kSources = 512;
constexpr int kSearches = 256;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "memory: %s: %s\n", what, tagline_error_message());
  std::exit(1);
}

void append(tagline_matcher* matcher, tagline_side side, int tag) {
  const tagline_envelope envelope = {1, tag % kSources, tag};
  const tagline_status status = side == TAGLINE_POSTED
                                    ? tagline_append_receive(matcher, envelope, nullptr, nullptr)
                                    : tagline_append_message(matcher, envelope, nullptr);
  if (status != TAGLINE_QUEUED) fail("append");
}

void match(tagline_matcher* matcher, tagline_side side, int tag) {
  const tagline_envelope envelope = {1, tag % kSources, tag};
  void* found = nullptr;
  const tagline_status status = side == TAGLINE_POSTED
                                    ? tagline_match_message(matcher, envelope, &found)
                                    : tagline_claim(matcher, envelope, &found, nullptr);
  if (status != TAGLINE_MATCHED) fail("match");
}

// searched: entries have been matched in random order. What a queue builds for that belongs to it.
void measure(const char* queue, tagline_side side, int entries, bool searched) {
  tagline_options options = TAGLINE_OPTIONS_DEFAULT;
  options.queue = queue;
  const std::size_t before = allocated;
  tagline_matcher* matcher = nullptr;
  if (tagline_create(&options, &matcher) != TAGLINE_OK) fail("create");
  for (int i = 0; i < entries; ++i) append(matcher, side, i);
  if (searched && entries > 0) {
    std::mt19937 random(1);
    std::uniform_int_distribution<int> any(0, entries - 1);
    for (int i = 0; i < kSearches; ++i) {
      const int tag = any(random);
      match(matcher, side, tag);
      append(matcher, side, tag);
    }
  }
  tagline_statistics statistics;
  tagline_get_statistics(matcher, &statistics);
  std::printf("{\"structure\": \"%s%s\", \"side\": \"%s\", \"entries\": %d, \"bytes\": %llu}\n",
              queue, searched ? "" : ", in order", side == TAGLINE_POSTED ? "posted" : "unexpected",
              entries, static_cast<unsigned long long>(allocated - before + statistics.pool_bytes));
  tagline_destroy(matcher);
}

constexpr int kPeers[] = {1, 8, 20, 64, 1000, 10000};

// The first so many of the ranks that one pattern makes a process talk to.
std::vector<int> ranks_of(const std::string& pattern, int ranks, int peers) {
  std::vector<int> chosen;
  if (pattern == "random") {
    std::mt19937 random(1);
    std::uniform_int_distribution<int> any(0, ranks - 1);
    std::set<int> unlike;
    while (static_cast<int>(unlike.size()) < peers) {
      const int rank = any(random);
      if (unlike.insert(rank).second) chosen.push_back(rank);
    }
  } else if (pattern == "doubling") {
    // As far as the communicator goes, ahead and behind.
    for (int distance = 1; distance <= ranks / 2 && static_cast<int>(chosen.size()) < peers;
         distance *= 2) {
      chosen.push_back(distance);
      chosen.push_back(ranks - distance);
    }
  } else {
    const int step = pattern == "adjacent" ? 1 : 32;
    for (int i = 0; i < peers && i <= (ranks - 1) / step; ++i) chosen.push_back(i * step);
  }
  return chosen;
}

void measure_peers(const std::string& pattern, int ranks, int peers) {
  const std::vector<int> chosen = ranks_of(pattern, ranks, peers);
  if (static_cast<int>(chosen.size()) != peers) return;
  const std::size_t before = mallinfo2().uordblks;
  tagline::pml::PeerTable table;
  if (!table.resize(ranks, true)) fail("peers");
  const std::size_t ready = mallinfo2().uordblks;
  for (const int rank : chosen) {
    if (table.find(rank) == nullptr) fail("peers");
  }
  std::printf(
      "{\"pattern\": \"%s\", \"ranks\": %d, \"peers\": %d, \"bytes_per_communicator\": %zu, "
      "\"bytes_per_peer\": %.2f}\n",
      pattern.c_str(), ranks, peers, sizeof(table) + ready - before,
      static_cast<double>(mallinfo2().uordblks - ready) / peers);
}

}  // namespace

int main() {
  unsetenv("TAGLINE_QUEUE");  // it would override the structures
  std::vector<std::string> queues;
  for (unsigned i = 0; tagline_queue_name(i) != nullptr; ++i) {
    queues.push_back(tagline_queue_name(i));
  }
  for (const char* const variant : {"array:8", "array:64", "array:1024"}) queues.push_back(variant);
  queues.push_back("fuzzy:32:tag8:source24");  // the dissertation's
  for (const std::string& queue : queues) {
    for (const bool searched : {true, false}) {
      if (!searched && queue != "adaptive") continue;
      for (const tagline_side side : {TAGLINE_POSTED, TAGLINE_UNEXPECTED}) {
        for (const int entries : kEntries) measure(queue.c_str(), side, entries, searched);
      }
    }
  }
  for (const int ranks : {16, 1024, 1 << 20}) {
    for (const char* pattern : {"adjacent", "32 apart", "random", "doubling"}) {
      for (const int peers : kPeers) {
        if (peers <= ranks) measure_peers(pattern, ranks, peers);
      }
    }
  }
}
