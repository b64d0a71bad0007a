// SPDX-License-Identifier: BSD-3-Clause
//
// What the one-sided and the two-sided form of a pattern share.
#pragma once

#include <memory>

#include "../harness/session.hpp"
#include "options.hpp"

namespace suite::rma_mt {

// A sample's number of epochs. Bandwidth is not warmed up: its first sample begins with
// buffers that nobody has sent yet, so the number follows from the size alone.
template <class SecondsPerEpoch>
long epochs_per_sample(Session& session, const Options& options, std::size_t bytes,
                       SecondsPerEpoch seconds_per_epoch) {
  if (options.pattern == "bandwidth" || options.pattern == "bibandwidth") {
    const std::size_t per_epoch = bytes * static_cast<std::size_t>(options.window) *
                                  static_cast<std::size_t>(options.issuers());
    return static_cast<long>(std::clamp<std::size_t>((std::size_t{8} << 20) / per_epoch, 1, 20));
  }
  return session.batch_size(
      [&](long epochs) { return seconds_per_epoch(epochs) * static_cast<double>(epochs); });
}

// `time` is one epoch: all threads' operations and their synchronisation.
inline void report_point(Session& session, const Options& options, std::size_t bytes,
                         const Estimate& time, Record record) {
  const Peers peers = peers_of(options, session.rank(), session.size());
  const double messages =
      session.sum(static_cast<double>(peers.targets.size())) * options.issuers() * options.count();
  record["pattern"] = options.pattern;
  record["operation"] = options.operation;
  record["synchronisation"] = options.two_sided() ? "two-sided" : options.synchronisation;
  record["threads"] = options.threads;
  record["bytes"] = bytes;
  record["operations_per_epoch"] = options.count() * options.issuers();
  if (options.pattern == "halo") record["neighbours"] = options.neighbours;
  if (!options.two_sided()) record["memory"] = options.memory;
  record["verified"] = session.settings().verify;
  session.report(std::move(record), time, messages, messages * static_cast<double>(bytes));
}

void measure_one_sided(Session& session, const Options& options);
void measure_two_sided(Session& session, const Options& options);

}  // namespace suite::rma_mt
