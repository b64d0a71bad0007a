// SPDX-License-Identifier: BSD-3-Clause
//
// What `tagline tune` lets matchers do.
#pragma once

#include <string>
#include <vector>

#include "match/tagline.h"

namespace tagline::tools {

// Work of one thread on a matcher of its own.
struct Work {
  enum Kind {
    posted,      // a receive is posted and its message comes, behind receives that wait
    unexpected,  // a message comes and its receive is posted, behind messages that wait
    drained,     // receives are posted, and their messages come in random order
    wildcards    // both in turns; one receive in four, of those that wait too, has any source
  } kind;
  int length;  // of what waits
};

// Work of several threads on one.
struct ThreadedWork {
  int threads;
  int length;            // receives and messages that wait, of each
  int keys;              // of each thread; 0: one for all
  int wildcard_percent;
};

// Nanoseconds per match of a new matcher, measured for so long after some practice.
double measure(const std::string& queue, const std::string& isa, const Work& work, double seconds);
double measure(const std::string& queue, const std::string& isa, const ThreadedWork& work,
               double seconds);

int processing_units();  // that this process may use

}  // namespace tagline::tools
