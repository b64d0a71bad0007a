// SPDX-License-Identifier: BSD-3-Clause
//
// RMA-MT: one-sided communication issued by many threads.
//
//   pattern      who             what is timed (an epoch)
//   latency      rank 0 -> 1     one transfer per thread and its synchronisation
//   bandwidth    rank 0 -> 1     --window transfers per thread and one synchronisation;
//                                not warmed up
//   bibandwidth  both            the same in both directions at once
//   rate         first half of   the same between many pairs; with lock_all, flush and
//                the ranks ->    flush_local a child completes each transfer by itself
//                second half
//   halo         everybody to    the same to --neighbours ranks on a ring
//                its neighbours
//
// The parent thread opens the epoch, lets its children go, waits for them and closes
// the epoch. Children are started before anything is timed and issue the transfers,
// each in a part of the window of its own. Without children, --threads 0, the parent
// issues them itself and no handover from thread to thread is in the time. --operation
// send is the two-sided baseline under MPI_THREAD_SINGLE, where latency is half a round
// trip.
#include "../harness/session.hpp"
#include "epochs.hpp"
#include "measure.hpp"

namespace {

using suite::Session;
using suite::UsageError;
using suite::rma_mt::Options;

// All ranks agree on what is wrong.
void check(const Options& options, const Session& session) {
  const int size = session.size();
  const auto have = " ranks, and there are " + std::to_string(size);
  if (options.pattern == "halo") {
    if (options.neighbours % 2 != 0) {
      throw UsageError("--neighbours lie on both sides of a ring: give an even number, not " +
                       std::to_string(options.neighbours));
    }
    if (size <= options.neighbours) {
      throw UsageError("halo with " + std::to_string(options.neighbours) +
                       " neighbours needs at least " + std::to_string(options.neighbours + 1) +
                       have + ": start more, or lower --neighbours");
    }
  } else if (options.pattern == "rate") {
    if (size < 2 || size % 2 != 0) throw UsageError("rate needs an even number of" + have);
  } else if (size != 2) {
    throw UsageError(options.pattern + " needs exactly 2" + have);
  }
  if (options.two_sided() && options.threads > 1) {
    throw UsageError("--operation send is the baseline under MPI_THREAD_SINGLE: it has one thread");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::vector<std::string> operations{options.operation};
  std::vector<std::string> synchronisations{options.synchronisation};
  suite::Options line("rma_mt",
                      "One-sided communication by many threads: latency, bandwidth, message rate");
  line.choice("--pattern", options.pattern, {"latency", "bandwidth", "bibandwidth", "rate", "halo"},
              "what is exchanged");
  line.choices("--operation", operations, {"put", "get", "send"},
               "send: the two-sided baseline, one thread");
  line.choices("--sync", synchronisations, suite::rma_mt::synchronisations(),
               "how the window is synchronised");
  line.number("--threads", options.threads, 0, 1024,
              "children that issue transfers; 0: the parent does, without a handover");
  line.numbers("--bytes", options.bytes, 1, 1 << 30, "sizes of a transfer, one point each");
  line.number("--window", options.window, 1, 1 << 20, "transfers per thread and peer in an epoch");
  line.number("--neighbours", options.neighbours, 2, 1024, "of the halo exchange");
  line.number("--slots", options.slots, 0, 1 << 20,
              "messages per thread and peer that have memory of their own, further ones use it "
              "again; 0: as many as fit into 32 MiB");
  line.choice("--clock", options.clock, {"batch", "epoch"},
              "what the clock is read around: many epochs, or each by itself");
  line.choice("--memory", options.memory, {"allocate", "create"},
              "of the window: MPI_Win_allocate or MPI_Win_create");

  // The baseline alone needs no threads; beside others it runs at their level.
  const auto two_sided = [&] { return operations == std::vector<std::string>{"send"}; };
  const auto thread_level = [&] { return two_sided() ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE; };
  return suite::run_program(argc, argv, line, thread_level, [&](Session& session) {
    session.table("RMA-MT: time of an epoch (time_us), all ranks' rates",
                  {"pattern", "operation", "synchronisation", "threads", "bytes", "time_us",
                   "time_us_ci95", "messages_per_s", "MB_per_s", "samples", "stopped_by"});
    for (const std::string& operation : operations) {
      options.operation = operation;
      check(options, session);
      if (options.two_sided()) {
        measure_two_sided(session, options);
        continue;
      }
      for (const std::string& synchronisation : synchronisations) {
        options.synchronisation = synchronisation;
        measure_one_sided(session, options);
      }
    }
  });
}
