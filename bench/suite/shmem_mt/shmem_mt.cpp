// SPDX-License-Identifier: BSD-3-Clause
//
// SHMEM-MT: one-sided communication of OpenSHMEM issued by many threads.
//
//   pattern    who             what is timed (an epoch)
//   latency    PE 0 -> 1       one message of --bytes, split evenly over the threads
//   bandwidth  PE 0 -> 1       --window such messages
//   halo       every PE to     --window messages of --bytes to each of --neighbours PEs on a
//              its neighbours  ring, shared out among the threads
//   hpccg,     every PE to     a solution by conjugate gradients, see miniapps/system.hpp; a
//   minife     its neighbours  thread per neighbour, --edge points per PE and axis
//
// The parent lets its children go, joins them and waits by shmem_quiet until all is
// complete: no thread synchronises. Threads are started before anything is timed. With
// --threads 0 the parent issues all by itself, without a handover.
//
// An epoch is timed where it is issued. Set-up and agreement between samples are MPI's,
// in the same job: Open MPI's OpenSHMEM starts MPI by itself.
#include <shmem.h>

#include "../miniapps/system.hpp"
#include "exchange.hpp"
#include "transfers.hpp"

namespace {

using suite::Estimate;
using suite::Record;
using suite::Session;
using suite::UsageError;
using suite::shmem_mt::Options;

bool is_app(const Options& options) {
  return options.pattern == "hpccg" || options.pattern == "minife";
}

// All PEs agree on what is wrong.
void check(const Options& options, const Session& session, int thread_level) {
  if (thread_level < SHMEM_THREAD_MULTIPLE) {
    throw UsageError(
        "this OpenSHMEM does not give SHMEM_THREAD_MULTIPLE, and threads issue all transfers");
  }
  if (shmem_my_pe() != session.rank() || shmem_n_pes() != session.size()) {
    throw UsageError("PEs and ranks of MPI are numbered differently here");
  }
  const auto have = ", and there are " + std::to_string(session.size());
  if (options.pattern == "halo") {
    if (options.neighbours % 2 != 0) {
      throw UsageError("--neighbours lie on both sides of a ring: give an even number, not " +
                       std::to_string(options.neighbours));
    }
    if (session.size() <= options.neighbours) {
      throw UsageError("halo with " + std::to_string(options.neighbours) +
                       " neighbours needs at least " + std::to_string(options.neighbours + 1) +
                       " PEs" + have + ": start more, or lower --neighbours");
    }
    if (options.window % options.issuers() != 0) {
      throw UsageError("--window " + std::to_string(options.window) +
                       " messages cannot be shared out evenly among " +
                       std::to_string(options.threads) + " threads");
    }
  } else if (!is_app(options)) {
    if (session.size() != 2) throw UsageError(options.pattern + " needs exactly 2 PEs" + have);
    for (const std::uint64_t bytes : options.bytes) {
      if (bytes % static_cast<std::uint64_t>(options.issuers()) == 0) continue;
      throw UsageError("a message of " + std::to_string(bytes) + " bytes cannot be split into " +
                       std::to_string(options.threads) + " equal parts");
    }
  }
}

void measure(Session& session, const Options& options, std::size_t bytes) {
  session.progress(options.pattern + ", " + std::to_string(bytes) + " bytes");
  suite::shmem_mt::Transfers transfers(session, options, bytes);
  const long epochs =
      session.batch_size([&](long n) { return transfers.sample(n) * static_cast<double>(n); });
  const Estimate time = session.repeat([&] { return transfers.sample(epochs); });
  const suite::rma_mt::Peers peers =
      suite::rma_mt::peers_of(options, session.rank(), session.size());
  const double messages = session.sum(static_cast<double>(peers.targets.size())) * options.count();
  Record record = session.record();
  record["pattern"] = options.pattern;
  record["operation"] = options.operation;
  record["threads"] = options.threads;
  record["bytes"] = bytes;
  record["messages_per_epoch"] = options.count();
  if (options.pattern == "halo") record["neighbours"] = options.neighbours;
  record["verified"] = session.settings().verify;
  session.report(std::move(record), time, messages, messages * static_cast<double>(bytes));
}

void measure_app(Session& session, const Options& options, int edge) {
  const auto system = suite::miniapps::System::make(options.pattern, session, edge);
  const auto side = static_cast<std::size_t>(edge);
  const auto halo = suite::shmem_mt::make_exchange(session, system.links(), side * side);
  int iterations = 0;
  const auto solve = [&] { return system.seconds_of_solution(session, *halo, iterations); };
  solve();
  halo->seconds = 0;
  const Estimate time = session.repeat(solve);
  Record record = session.record();
  record["pattern"] = options.pattern;
  record["threads"] = session.maximum(static_cast<double>(halo->links.size()));
  record["edge"] = edge;
  record["iterations"] = iterations;
  record["exchange_part"] =
      session.maximum(halo->seconds) / static_cast<double>(time.samples) / time.mean;
  record["verified"] = true;
  session.report(std::move(record), time);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::vector<std::string> operations{options.operation};
  int edge = 16;
  suite::Options line("shmem_mt", "One-sided communication of OpenSHMEM by many threads");
  line.choice("--pattern", options.pattern, {"latency", "bandwidth", "halo", "hpccg", "minife"},
              "what is exchanged");
  line.choices("--operation", operations, {"put", "get"}, "of the transfers");
  line.number("--threads", options.threads, 0, 1024,
              "children that issue transfers; 0: the parent does, without a handover");
  line.numbers("--bytes", options.bytes, 1, 1 << 30, "sizes of a message, one point each");
  line.number("--window", options.window, 1, 1 << 20, "messages per peer in an epoch");
  line.number("--neighbours", options.neighbours, 2, 1024, "of the halo exchange");
  line.number("--edge", edge, 1, 1000, "points along each axis of a PE's part of hpccg, minife");

  int thread_level = 0;
  shmem_init_thread(SHMEM_THREAD_MULTIPLE, &thread_level);
  const int result = suite::run_program(
      argc, argv, line, [] { return MPI_THREAD_MULTIPLE; },
      [&](Session& session) {
        session.table(
            "SHMEM-MT: time of an epoch or a solution (time_us), all PEs' rates",
            {"pattern", "operation", "threads", "bytes", "iterations", "time_us", "time_us_ci95",
             "exchange_part", "messages_per_s", "MB_per_s", "samples", "stopped_by"});
        check(options, session, thread_level);
        if (is_app(options)) {
          measure_app(session, options, edge);
          return;
        }
        for (const std::string& operation : operations) {
          options.operation = operation;
          for (const std::uint64_t bytes : options.bytes) measure(session, options, bytes);
        }
      });
  shmem_finalize();
  return result;
}
