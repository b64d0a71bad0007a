// SPDX-License-Identifier: BSD-3-Clause
//
// A matcher and the calls of one point. A pass leaves the queue as long as it
// found it, so that passes can be repeated; every status and cookie is checked.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "comparator.hpp"
#include "engine_point.hpp"

namespace bench {

// What a pass tells about its calls; this one wants to know nothing.
struct NoWatch {
  template <class Call>
  void append(Call call) {
    call();
  }
  template <class Call>
  void match(Call call) {
    call();
  }
};

// What to call at a point, the same for every structure there, but that one entry per node
// depends on the nodes.
class Script {
 public:
  Script(const EnginePoint& point, const EngineStructure& structure);

  // A pass makes so many appends and as many matches (probes, cancels).
  std::size_t pairs() const noexcept { return pairs_; }

 private:
  friend class Workload;
  // Small: each pass reads all steps again, and they share the caches with the queue.
  struct Step {
    std::int32_t source;
    std::int32_t tag;
    std::uint32_t request;  // to be queued, or expected from the match
    tagline_envelope envelope() const noexcept { return {kContext, source, tag}; }
  };
  // Without a request.
  struct Envelopes {
    Step receive;
    Step message;
  };
  static constexpr std::uint64_t kContext = 1;

  Envelopes envelopes(std::size_t index) const;
  Step queued(std::size_t index) const;
  Step searching(std::size_t index) const;
  std::size_t stride() const;
  bool drains() const;
  bool rotates() const;

  const EnginePoint point_;
  const std::size_t entries_per_node_;
  std::size_t requests_ = 0;
  std::size_t pairs_ = 0;
  std::vector<std::size_t> before_;  // drained before the first pass, in this order
  std::vector<Step> appends_;        // of a pass, or of each of its drains
  std::vector<Step> matches_;        // of a pass
};

// The scripts of a point, which structures share where they can.
class Scripts {
 public:
  explicit Scripts(const EnginePoint& point) : point_(point) {}
  std::shared_ptr<const Script> of(const EngineStructure& structure);

 private:
  const EnginePoint point_;
  std::map<std::size_t, std::shared_ptr<const Script>> by_node_;
};

class Workload {
 public:
  Workload(const EngineStructure& structure, std::shared_ptr<const Script> script);
  ~Workload() { tagline_destroy(matcher_); }
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  // Drains what comes before and queues the entries that stay; call it once.
  template <class Watch>
  void fill(Watch& watch);
  void fill() {
    NoWatch watch;
    fill(watch);
  }

  std::size_t pairs() const noexcept { return script_->pairs(); }
  template <class Watch>
  void pass(Watch& watch);
  void pass() {
    NoWatch watch;
    pass(watch);
  }

  // One match of a cold point: nanoseconds of the two calls alone. swept: once the caches hold
  // nothing of what a match has to fetch, nor where its pages are.
  double cold_pair(bool swept);

  // Node memory that the matcher holds now.
  std::uint64_t pool_bytes() const;

 private:
  using Step = Script::Step;
  // A request as hosts have it: a line of its own.
  struct alignas(64) Request {
    std::byte bytes[kRequestBytes];
  };

  void* cookie(const Step& step) const noexcept { return &requests_[step.request]; }

  template <tagline_side side, class Watch>
  void append(const Step& step, Watch& watch);
  template <tagline_side side, class Watch>
  void match(const Step& step, Watch& watch);
  template <tagline_side side, class Watch>
  void pass_of(Watch& watch);
  void drain_before();
  template <class Watch>
  void probe_pass(Watch& watch);
  template <class Watch>
  void cancel_pass(Watch& watch);

  // Where entries take turns: the one matched last is appended, then the next one is the match.
  Step rotated(Step step) const noexcept {
    step.request = turn_;
    return step;
  }
  void rotate() noexcept { turn_ = turn_ + 1 == script_->requests_ ? 0 : turn_ + 1; }

  [[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "engine: %s\n", what);
    std::abort();
  }

  const std::shared_ptr<const Script> script_;
  tagline_matcher* const matcher_;
  // Untouched, and so without memory, but for structures that keep entries in requests.
  const std::unique_ptr<Request[], decltype(&std::free)> requests_;
  Request partner_;       // cookie of the side that searches and is never queued
  std::size_t next_ = 0;  // place in steps that are taken one by one
  std::uint32_t turn_;    // request, where entries take turns
};

inline double now_ns() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// ---- the calls -----------------------------------------------------------------

template <tagline_side side, class Watch>
inline void Workload::append(const Step& step, Watch& watch) {
  void* partner = nullptr;
  tagline_status status = TAGLINE_OK;
  watch.append([&] {
    status = side == TAGLINE_POSTED
                 ? tagline_post_receive(matcher_, step.envelope(), cookie(step), &partner, nullptr)
                 : tagline_arrive(matcher_, step.envelope(), cookie(step), &partner);
  });
  if (status != TAGLINE_QUEUED) [[unlikely]] {
    fail("an entry was not queued");
  }
}

template <tagline_side side, class Watch>
inline void Workload::match(const Step& step, Watch& watch) {
  void* partner = nullptr;
  tagline_status status = TAGLINE_OK;
  watch.match([&] {
    status = side == TAGLINE_POSTED
                 ? tagline_arrive(matcher_, step.envelope(), &partner_, &partner)
                 : tagline_post_receive(matcher_, step.envelope(), &partner_, &partner, nullptr);
  });
  if (status != TAGLINE_MATCHED || partner != cookie(step)) [[unlikely]] {
    fail("a wrong match");
  }
}

inline void Workload::drain_before() {
  NoWatch none;
  const bool posted = script_->point_.side == TAGLINE_POSTED;
  for (std::size_t i = 0; i < script_->before_.size(); ++i) {
    const Step step = script_->queued(i);
    posted ? append<TAGLINE_POSTED>(step, none) : append<TAGLINE_UNEXPECTED>(step, none);
  }
  for (const std::size_t i : script_->before_) {
    const Step step = script_->searching(i);
    posted ? match<TAGLINE_POSTED>(step, none) : match<TAGLINE_UNEXPECTED>(step, none);
  }
}

template <class Watch>
void Workload::fill(Watch& watch) {
  drain_before();
  if (script_->drains()) return;
  const std::size_t entries = script_->point_.depth * script_->stride();
  for (std::size_t i = 0; i < entries; ++i) {
    const Step step = script_->queued(i);
    script_->point_.side == TAGLINE_POSTED ? append<TAGLINE_POSTED>(step, watch)
                                           : append<TAGLINE_UNEXPECTED>(step, watch);
  }
  NoWatch none;
  for (std::size_t i = 0; i < entries; ++i) {
    if (i % script_->stride() == 0) continue;
    const Step step = script_->searching(i);
    script_->point_.side == TAGLINE_POSTED ? match<TAGLINE_POSTED>(step, none)
                                           : match<TAGLINE_UNEXPECTED>(step, none);
  }
  if (script_->point_.operation == Operation::probe)
    append<TAGLINE_UNEXPECTED>(script_->appends_[0], none);
}

template <tagline_side side, class Watch>
inline void Workload::pass_of(Watch& watch) {
  if (script_->rotates()) {
    for (std::size_t pair = 0; pair < script_->pairs_; ++pair) {
      append<side>(rotated(script_->appends_[pair]), watch);
      rotate();
      match<side>(rotated(script_->matches_[pair]), watch);
    }
  } else if (script_->drains()) {
    const std::size_t depth = script_->appends_.size();
    for (std::size_t begin = 0; begin < script_->pairs_; begin += depth) {
      for (std::size_t i = 0; i < depth; ++i) append<side>(script_->appends_[i], watch);
      for (std::size_t i = 0; i < depth; ++i) match<side>(script_->matches_[begin + i], watch);
    }
  } else {
    for (std::size_t i = 0; i < script_->appends_.size(); ++i) {
      append<side>(script_->appends_[i], watch);
      match<side>(script_->matches_[i], watch);
    }
  }
}

template <class Watch>
void Workload::probe_pass(Watch& watch) {
  for (std::size_t i = 0; i < script_->pairs_; ++i) {
    void* message = nullptr;
    tagline_status status = TAGLINE_OK;
    watch.match([&] {
      status = tagline_probe(matcher_, script_->matches_[0].envelope(), &message, nullptr);
    });
    if (status != TAGLINE_MATCHED || message != cookie(script_->matches_[0])) fail("a wrong probe");
  }
}

template <class Watch>
void Workload::cancel_pass(Watch& watch) {
  for (const Step& step : script_->appends_) {
    void* message = nullptr;
    tagline_handle handle = 0;
    tagline_status status = TAGLINE_OK;
    watch.append([&] {
      status = tagline_post_receive(matcher_, step.envelope(), cookie(step), &message, &handle);
    });
    if (status != TAGLINE_QUEUED) fail("an entry was not queued");
    watch.match([&] {
      status = script_->point_.operation == Operation::cancel
                   ? tagline_cancel_receive(matcher_, step.envelope(), cookie(step))
                   : tagline_cancel_handle(matcher_, step.envelope().context_id, handle);
    });
    if (status != TAGLINE_OK) fail("a receive was not cancelled");
  }
}

template <class Watch>
void Workload::pass(Watch& watch) {
  switch (script_->point_.operation) {
    case Operation::post_and_match:
      if (script_->point_.side == TAGLINE_POSTED) {
        pass_of<TAGLINE_POSTED>(watch);
      } else {
        pass_of<TAGLINE_UNEXPECTED>(watch);
      }
      break;
    case Operation::probe:
      probe_pass(watch);
      break;
    case Operation::cancel:
    case Operation::cancel_handle:
      cancel_pass(watch);
      break;
  }
}

}  // namespace bench
