// SPDX-License-Identifier: BSD-3-Clause
#include "engine_workload.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>
#include <string>

namespace bench {
namespace {

// Beyond every tag and source of the plain keys.
constexpr std::int32_t kFar = 1 << 28;
constexpr std::size_t kGrid = 64;  // sources of a grid

// A source between 0 and 2^22 - 1 that is not foretold by those before it.
std::int32_t scattered(std::int32_t index) {
  auto x = static_cast<std::uint32_t>(index);
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return static_cast<std::int32_t>((x ^ x >> 16) >> 10);
}

// Steps of one pass: enough for a whole share of 1 % wildcards.
constexpr std::size_t kPairs = 100;
// A drain of a few entries is repeated within a pass, each time in another
// order, so that no branch predictor learns it. With 4096 one did: a list of 8 took 7
// nanoseconds instead of 13 (8192: 8, 16384: 11, from 32768 on 13).
constexpr std::size_t kLeastDrained = 32768;

// The largest cache by sysfs: what sysconf() says on a virtual machine may be
// the whole host's.
std::size_t last_level_cache_bytes() {
  std::size_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) +
                       "/size");
    std::size_t kib = 0;
    if (file >> kib) largest = std::max(largest, kib << 10);
  }
  return largest;
}

// Writes and reads more than the caches hold.
void sweep() {
  constexpr std::size_t kLeast = std::size_t{48} << 20;
  static std::vector<char> buffer(std::max(kLeast, last_level_cache_bytes() * 3 / 2));
  volatile char* const bytes = buffer.data();
  for (std::size_t i = 0; i < buffer.size(); i += 64) bytes[i] = static_cast<char>(bytes[i] + 1);
}

// One of the two calls of a cold match, and what came of it.
struct Call {
  bool is_receive;
  tagline_envelope envelope;
  void* cookie;
  void* partner = nullptr;
  tagline_status status = TAGLINE_OK;
};
// Who is called.
struct Api {
  decltype(&tagline_post_receive) post_receive;
  decltype(&tagline_arrive) arrive;
};
tagline_status no_receive(tagline_matcher*, tagline_envelope, void*, void**, tagline_handle*) {
  return TAGLINE_OK;
}
tagline_status no_message(tagline_matcher*, tagline_envelope, void*, void**) { return TAGLINE_OK; }

// Nanoseconds of two calls. Whatever they are, the code that calls is the same.
[[gnu::noinline]] double time_calls(const Api& api, tagline_matcher* matcher, Call& first,
                                    Call& second) {
  now_ns();
  const double start = now_ns();
  for (Call* const call : {&first, &second}) {
    call->status =
        call->is_receive
            ? api.post_receive(matcher, call->envelope, call->cookie, &call->partner, nullptr)
            : api.arrive(matcher, call->envelope, call->cookie, &call->partner);
  }
  return now_ns() - start;
}

}  // namespace

bool Script::drains() const {
  return !entries_stay(point_.order) && !point_.cold &&
         point_.operation == Operation::post_and_match;
}

// Of equal keys the oldest is the match, so each append makes another entry the next one.
bool Script::rotates() const {
  return !drains() && point_.keys == Keys::all_equal &&
         point_.operation == Operation::post_and_match;
}

// Every stride-th entry of the queue stays.
std::size_t Script::stride() const {
  switch (point_.holes) {
    case Holes::dense:
      return 1;
    case Holes::every_other:
      return 2;
    case Holes::one_per_node:
      return entries_per_node_;
  }
  return 1;
}

Script::Envelopes Script::envelopes(std::size_t index) const {
  const auto i = static_cast<std::int32_t>(index);
  const auto share = static_cast<std::size_t>(point_.wildcard_percent);
  const bool wild = index * share % 100 < share;  // evenly spread
  const auto both = [](std::int32_t source, std::int32_t tag, bool any_source, bool any_tag) {
    return Envelopes{{any_source ? TAGLINE_ANY_SOURCE : source, any_tag ? TAGLINE_ANY_TAG : tag, 0},
                     {source, tag, 0}};
  };
  switch (point_.keys) {
    case Keys::one_source:
      return both(0, i, wild, false);
    case Keys::one_tag:
      return both(i, 7, false, wild);
    case Keys::grid: {
      const std::int32_t source = i % static_cast<std::int32_t>(kGrid);
      const std::int32_t tag = i / static_cast<std::int32_t>(kGrid);
      // A wildcard gets a tag or a source of its own, so that every message has one
      // receive that fits and any order can be asked for. Both kinds take turns.
      if (!wild) return both(source, tag, false, false);
      const bool any_source = index / (100 / share) % 2 == 0;
      return any_source ? both(source, kFar + i, true, false) : both(kFar + i, tag, false, true);
    }
    case Keys::irregular:
      return both(scattered(i), i, wild, false);
    case Keys::all_equal:
      return both(3, 7, wild, wild);
  }
  return {};
}

Script::Step Script::queued(std::size_t index) const {
  const Envelopes e = envelopes(index);
  Step step = point_.side == TAGLINE_POSTED ? e.receive : e.message;
  step.request = static_cast<std::uint32_t>(index);
  return step;
}

Script::Step Script::searching(std::size_t index) const {
  const Envelopes e = envelopes(index);
  Step step = point_.side == TAGLINE_POSTED ? e.message : e.receive;
  step.request = static_cast<std::uint32_t>(index);
  return step;
}

Script::Script(const EnginePoint& point, const EngineStructure& structure)
    : point_(point), entries_per_node_(structure.entries_per_node()) {
  const std::size_t depth = point_.depth;
  const std::size_t ahead = depth * stride();
  std::minstd_rand random(12345);
  if (was_deep(point_.order)) {
    before_.resize(kOnceDeep);
    std::iota(before_.begin(), before_.end(), 0);
    std::shuffle(before_.begin(), before_.end(), random);
  }
  if (drains()) {
    const bool at_random = point_.order == Order::random || point_.order == Order::random_once_deep;
    requests_ = std::max(depth, before_.size());
    std::vector<std::size_t> order(depth);
    std::iota(order.begin(), order.end(), 0);
    if (point_.order == Order::reverse) std::reverse(order.begin(), order.end());
    pairs_ = std::max<std::size_t>(1, kLeastDrained / depth) * depth;
    for (std::size_t i = 0; i < depth; ++i) appends_.push_back(queued(i));
    matches_.reserve(pairs_);
    while (matches_.size() < pairs_) {
      if (at_random) std::shuffle(order.begin(), order.end(), random);
      for (std::size_t i = 0; i < depth; ++i) {
        matches_.push_back(searching(point_.keys == Keys::all_equal ? i : order[i]));
      }
    }
    return;
  }
  if (point_.order == Order::random_again) {
    // One more than `depth`, of which the one matched last is out.
    requests_ = depth + 1;
    pairs_ = std::max(kLeastDrained, 2 * depth);  // most are matched at least once
    std::size_t out = depth;
    for (std::size_t i = 1; i <= pairs_; ++i) {
      appends_.push_back(queued(out));
      out = i < pairs_ ? random() % (depth + 1) : depth;
      matches_.push_back(searching(out));
    }
    return;
  }
  pairs_ = kPairs;
  requests_ = rotates() ? depth + 1 : std::max(ahead, before_.size()) + kPairs;
  if (point_.operation == Operation::probe) {
    appends_.push_back(queued(ahead));
    matches_.push_back(searching(ahead));
    return;
  }
  for (std::size_t i = 0; i < kPairs; ++i) {
    // Cold and in random order: entries from anywhere in the queue, which go back to its end.
    const bool anywhere = point_.cold && point_.order == Order::random;
    const std::size_t index = anywhere ? random() % depth * stride() : ahead + i;
    appends_.push_back(queued(index));
    matches_.push_back(searching(index));
  }
}

std::shared_ptr<const Script> Scripts::of(const EngineStructure& structure) {
  const bool by_node = point_.holes == Holes::one_per_node;
  std::shared_ptr<const Script>& script = by_node_[by_node ? structure.entries_per_node() : 0];
  if (script == nullptr) script = std::make_shared<const Script>(point_, structure);
  return script;
}

Workload::Workload(const EngineStructure& structure, std::shared_ptr<const Script> script)
    : script_(std::move(script)),
      matcher_(make_matcher(structure)),
      requests_(static_cast<Request*>(
                    std::aligned_alloc(alignof(Request), script_->requests_ * sizeof(Request))),
                &std::free),
      turn_(static_cast<std::uint32_t>(script_->point_.depth)) {}

double Workload::cold_pair(bool swept) {
  Step append_step = script_->appends_[next_];
  Step match_step = script_->matches_[next_];
  if (script_->rotates()) {
    append_step = rotated(append_step);
    rotate();
    match_step = rotated(match_step);
  }
  next_ = (next_ + 1) % script_->appends_.size();
  const bool posted = script_->point_.side == TAGLINE_POSTED;
  Call append{posted, append_step.envelope(), cookie(append_step)};
  Call match{!posted, match_step.envelope(), &partner_};
  const bool match_first = script_->point_.order == Order::random;
  Call& first = match_first ? match : append;
  Call& second = match_first ? append : match;
  tagline_matcher* const matcher = matcher_;
  const Api apis[] = {{no_receive, no_message}, {tagline_post_receive, tagline_arrive}};
  double ns = 0;
  if (swept) sweep();
  // From here to the end of the calls nothing is read but what lies on the stack: this workload
  // lies where the matcher does, and to read it would tell the processor where that page is. The
  // first time nothing is called, for the clock and the code that calls.
  for (const Api& api : apis) ns = time_calls(api, matcher, first, second);
  if (append.status != TAGLINE_QUEUED) fail("an entry was not queued");
  if (match.status != TAGLINE_MATCHED || match.partner != cookie(match_step)) fail("a wrong match");
  return ns;
}

std::uint64_t Workload::pool_bytes() const {
  tagline_statistics statistics{};
  tagline_get_statistics(matcher_, &statistics);
  return statistics.pool_bytes;
}

}  // namespace bench
