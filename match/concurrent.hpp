// SPDX-License-Identifier: BSD-3-Clause
// The matchers for several threads, by name.
#pragma once

#include <iterator>
#include <stdexcept>
#include <string>

#include "match/locks.hpp"
#include "match/operations.hpp"
#include "simd/kernels.hpp"

namespace tagline {

// structure, parameter: as for any matcher. argument: what stands behind "@", or "".
// Throws std::invalid_argument with a sentence, or std::bad_alloc.
using MakeThreaded = tagline_matcher* (*)(const std::string& structure,
                                          const std::string& parameter, const std::string& argument,
                                          const simd::Kernels& kernels,
                                          const tagline_options& options);

// Each in a file of its own, which is compiled for every structure.
tagline_matcher* make_sharded(const std::string&, const std::string&, const std::string&,
                              const simd::Kernels&, const tagline_options&);
tagline_matcher* make_tail_queues(const std::string&, const std::string&, const std::string&,
                                  const simd::Kernels&, const tagline_options&);
tagline_matcher* make_binned_tail_queues(const std::string&, const std::string&, const std::string&,
                                         const simd::Kernels&, const tagline_options&);
tagline_matcher* make_locked(const std::string&, const std::string&, const std::string&,
                             const simd::Kernels&, const tagline_options&);

struct Threading {
  const char* name;
  MakeThreaded make;
};

// The first one is the default.
inline constexpr Threading kThreadings[] = {{"sharded", make_sharded},
                                            {"tail", make_tail_queues},
                                            {"binned", make_binned_tail_queues},
                                            {"locked", make_locked}};

inline const Threading& threading(const std::string& name) {
  for (const Threading& known : kThreadings) {
    if (name == known.name) return known;
  }
  throw std::invalid_argument("unknown threading \"" + name + "\"");
}

// The lock that "@" names; "" is a spin lock.
inline LockKind parse_lock(const std::string& name) {
  if (name.empty()) return LockKind::spin;
  std::string names;
  for (unsigned i = 0; i < std::size(kLockNames); ++i) {
    if (name == kLockNames[i]) return static_cast<LockKind>(i);
    names.append(i == 0 ? "" : ", ").append(kLockNames[i]);
  }
  throw std::invalid_argument("unknown lock \"" + name + "\" behind @: valid here are " + names);
}

}  // namespace tagline
