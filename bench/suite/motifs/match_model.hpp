// SPDX-License-Identifier: BSD-3-Clause
//
// What the match lists of one rank looked like: posts and arrivals in the order of
// their times, through two plain lists that count. Lengths are sampled whenever an
// entry comes or goes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "script.hpp"

namespace suite::motifs {

struct Event {
  double time;
  bool arrival;  // else a post
  int source;    // kAnySource in a post
  int tag;
};

struct ListStatistics {
  std::uint64_t longest = 0;
  std::uint64_t length_sum = 0;
  std::uint64_t length_samples = 0;
  std::uint64_t searches = 0;  // of a list that was not empty
  std::uint64_t depth_sum = 0;
  std::uint64_t depth_most = 0;
};

class MatchModel {
 public:
  void play(std::vector<Event> events) {
    // A stable order: of what happened at one time, what was noted first.
    std::stable_sort(events.begin(), events.end(),
                     [](const Event& a, const Event& b) { return a.time < b.time; });
    for (const Event& event : events) {
      if (event.arrival) {
        if (!take(posted_list_, event, posted)) add(unexpected_list_, event, unexpected);
      } else {
        if (!take(unexpected_list_, event, unexpected)) add(posted_list_, event, posted);
      }
    }
  }
  std::size_t left() const { return posted_list_.size() + unexpected_list_.size(); }

  ListStatistics posted;
  ListStatistics unexpected;

 private:
  using List = std::vector<Event>;

  static bool fits(const Event& a, const Event& b) {
    return a.tag == b.tag &&
           (a.source == b.source || a.source == kAnySource || b.source == kAnySource);
  }
  static void sample(const List& list, ListStatistics& statistics) {
    const std::uint64_t length = list.size();
    statistics.longest = std::max(statistics.longest, length);
    statistics.length_sum += length;
    ++statistics.length_samples;
  }
  static void add(List& list, const Event& event, ListStatistics& statistics) {
    list.push_back(event);
    sample(list, statistics);
  }
  static bool take(List& list, const Event& event, ListStatistics& statistics) {
    if (list.empty()) return false;
    ++statistics.searches;
    std::uint64_t depth = 0;
    for (auto entry = list.begin(); entry != list.end(); ++entry) {
      ++depth;
      if (!fits(*entry, event)) continue;
      list.erase(entry);
      count(depth, statistics);
      sample(list, statistics);
      return true;
    }
    count(depth, statistics);
    return false;
  }
  static void count(std::uint64_t depth, ListStatistics& statistics) {
    statistics.depth_sum += depth;
    statistics.depth_most = std::max(statistics.depth_most, depth);
  }

  List posted_list_;
  List unexpected_list_;
};

}  // namespace suite::motifs
