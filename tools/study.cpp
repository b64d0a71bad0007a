// SPDX-License-Identifier: BSD-3-Clause
#include "study.hpp"

#include <algorithm>
#include <bit>

#include "player.hpp"
#include "structures.hpp"

namespace tagline::tools {

namespace {

void count(std::vector<std::uint64_t>& counts, std::uint64_t value) {
  if (counts.size() <= value) counts.resize(value + 1);
  ++counts[value];
}

}  // namespace

void BitUse::add(const std::map<std::int32_t, std::uint64_t>& values) {
  most_values = std::max(most_values, values.size());
  double all = 0;
  double alike = 0;  // pairs of equal values
  for (const auto& [value, times] : values) {
    const auto n = static_cast<double>(times);
    all += n;
    alike += n * n;
    const int bits = std::bit_width(static_cast<std::uint32_t>(value));
    used_bits = std::max(used_bits, bits);
  }
  for (int bits = kWindows - 1; bits >= 0; --bits) {
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    std::map<std::uint64_t, double> seen;
    for (const auto& [value, times] : values) {
      seen[static_cast<std::uint32_t>(value) & mask] += static_cast<double>(times);
    }
    if (seen.size() < values.size()) minimum = std::max(minimum, bits + 1);
    double look_alike = 0;
    for (const auto& [window, times] : seen) look_alike += times * times;
    if (all > 0) {
      const auto at = static_cast<std::size_t>(bits);
      overlap[at] = std::max(overlap[at], (look_alike - alike) / (all * all));
    }
  }
}

// Looks at a matcher after each operation.
class StudyWatch {
 public:
  StudyWatch(Study& study, const History& history, const tagline_matcher* matcher)
      : study_(study), history_(history), matcher_(matcher) {
    tagline_get_statistics(matcher, &before_);
  }

  template <class Call>
  void match(Call call) {
    while (!is_match(history_.operations[at_].kind)) ++at_;
    const Operation& operation = history_.operations[at_++];
    call();
    const tagline_statistics now = look();
    const double share = study_.duration_ns_ <= 0
                             ? 0
                             : static_cast<double>(operation.ns) / study_.duration_ns_;
    Study::Bin& bin = study_.over_time[static_cast<std::size_t>(
        std::clamp(share, 0.0, 0.999999) * Study::kBins)];
    const bool waits = now.unexpected.length > before_.unexpected.length;
    if (operation.kind == Operation::Kind::arrive) {
      ++bin.arrivals;
      bin.unexpected += waits;
      Study::Peer& peer = study_.peers[operation.source];
      ++peer.messages;
      peer.unexpected += waits;
      peer.bytes += operation.bytes;
      ++sources_[operation.source];
      if (operation.tag >= 0) ++tags_[operation.tag];
    }
    // Which one leaves is the matcher's affair: it takes its share of the bytes with it.
    if (waits) {
      waiting_bytes_ += operation.bytes;
    } else if (now.unexpected.length < before_.unexpected.length) {
      waiting_bytes_ -= waiting_bytes_ / before_.unexpected.length;
    }
    study_.most_waiting_bytes = std::max(study_.most_waiting_bytes, waiting_bytes_);
    bin.most_posted = std::max(bin.most_posted, now.posted.length);
    bin.most_unexpected = std::max(bin.most_unexpected, now.unexpected.length);
    before_ = now;
  }

  template <class Call>
  void other(Call call) {
    call();
    before_ = look();
  }

  void end() {
    study_.tags.add(tags_);
    study_.sources.add(sources_);
  }

 private:
  static bool is_match(Operation::Kind kind) {
    return kind == Operation::Kind::post || kind == Operation::Kind::arrive;
  }

  tagline_statistics look() {
    tagline_statistics now;
    tagline_get_statistics(matcher_, &now);
    const auto side = [](StudiedSide& studied, const tagline_side_statistics& is,
                         const tagline_side_statistics& was) {
      if (is.length != was.length) count(studied.lengths, is.length);
      if (is.searches == was.searches + 1) {
        count(studied.depths, is.search_depth_sum - was.search_depth_sum);
      }
    };
    side(study_.posted, now.posted, before_.posted);
    side(study_.unexpected, now.unexpected, before_.unexpected);
    return now;
  }

  Study& study_;
  const History& history_;
  const tagline_matcher* matcher_;
  tagline_statistics before_;
  std::size_t at_ = 0;
  std::uint64_t waiting_bytes_ = 0;
  std::map<std::int32_t, std::uint64_t> tags_;
  std::map<std::int32_t, std::uint64_t> sources_;
};

void Study::add(const History& history) {
  for (const Operation& operation : history.operations) {
    switch (operation.kind) {
      case Operation::Kind::post:
        ++posts;
        any_source += operation.source == TAGLINE_ANY_SOURCE;
        any_tag += operation.tag == TAGLINE_ANY_TAG;
        break;
      case Operation::Kind::probe:
        probes += operation.number;
        break;
      case Operation::Kind::cancel:
      case Operation::Kind::cancel_envelope:
        ++cancels;
        break;
      default:
        break;
    }
  }
  const OwnedMatcher matcher = make_matcher("linear");
  StudyWatch watch(*this, history, matcher.get());
  play(history, matcher.get(), watch);
  watch.end();
}

}  // namespace tagline::tools
