// SPDX-License-Identifier: BSD-3-Clause
//
// What every program of the suite is made of: options, repetition until the mean is
// known, records with the environment they were taken in, a table, errors.
//
// A program hands run_program() its options and a function of the session, which all
// ranks run. A point is one call of repeat() and one of report():
//
//   const Estimate time = session.repeat([&] { return seconds_of_one_batch() / batch; });
//   Record record = session.record();
//   record["bytes"] = bytes;
//   session.report(record, time, messages);
//
// Time is what is estimated, rates are derived from its mean: the mean of rates would
// favour the lucky batches.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../options.hpp"
#include "estimate.hpp"
#include "frequency.hpp"
#include "record.hpp"

namespace suite {

using bench::Options;

// The options that all programs share.
struct Settings {
  std::string json;                // file, or "-": one record per line on stdout, no table
  std::string csv;                 // file
  std::vector<std::string> notes;  // NAME=VALUE, fields of every record
  Repetition repetition;
  double batch_ms = 1;  // a sample is the mean over a batch at least this long
  bool verify = false;  // compare all data received, outside the timed part
  int cpu_mhz = 0;      // limit of all CPUs; 0: as they are
};

// Found by all ranks alike, before anything is measured: exit code 2.
struct UsageError : std::runtime_error {
  using runtime_error::runtime_error;
};

// Exit code of a program that received other data than were sent.
constexpr int kWrongData = 3;
// This rank has received wrong data: ends the job.
[[noreturn]] void wrong_data(const std::string& what);

inline std::int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}
inline double now() { return static_cast<double>(now_ns()) * 1e-9; }

// The loop that all timed parts consist of. Returns seconds.
template <class Body>
double time_of(long iterations, Body body) {
  const std::int64_t start = now_ns();
  for (long i = 0; i < iterations; ++i) body(i);
  return static_cast<double>(now_ns() - start) * 1e-9;
}

class Session {
 public:
  Session(std::string name, const Settings& settings, int thread_level);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const Settings& settings() const { return settings_; }
  MPI_Comm world() const { return world_; }  // for the measured traffic
  void barrier() const { MPI_Barrier(control_); }
  long from_rank_0(long value) const;
  double maximum(double value) const;
  double sum(double value) const;
  int ranks_per_node() const { return ranks_per_node_; }

  // All ranks call it with the time that they have taken for the same thing; the
  // slowest rank's counts.
  template <class Sample>
  Estimate repeat(Sample sample) {
    Repeater repeater(settings_.repetition, node_leader_);
    while (from_rank_0(repeater.wants_more() ? 1 : 0) != 0) repeater.add(maximum(sample()));
    Estimate estimate = repeater.estimate();
    estimate.joules = energy_of_all_nodes(estimate.joules);
    return estimate;
  }

  // How many iterations of `seconds_of(iterations)` fill a batch. Warms up as well.
  template <class SecondsOf>
  long batch_size(SecondsOf seconds_of) {
    for (long iterations = 1;; iterations *= 2) {
      const double seconds = maximum(seconds_of(iterations));
      if (from_rank_0(seconds * 1e3 >= settings_.batch_ms || iterations >= (1L << 30)) != 0) {
        return iterations;
      }
    }
  }

  // A record with the environment; the caller adds the parameters of its point.
  const Record& record() const { return environment_; }
  // Adds time, confidence, energy and, if a sample holds messages, their rate.
  void report(Record record, const Estimate& time, double messages = 0, double bytes = 0);
  void report(Record record);  // as it is
  // Fields that the table shows, in this order; those that no record has are left out.
  void table(std::string title, std::vector<std::string> fields);
  void progress(const std::string& text) const;
  int points() const { return static_cast<int>(records_.size()); }

  void finish();  // writes what was asked for

 private:
  double energy_of_all_nodes(double joules) const;
  void describe();

  std::string name_;
  const Settings& settings_;
  int rank_ = 0;
  int size_ = 0;
  int threads_provided_ = 0;
  int nodes_ = 1;
  int ranks_per_node_ = 1;
  bool node_leader_ = false;
  std::unique_ptr<CpuLimit> cpu_limit_;  // the node leaders' alone
  MPI_Comm world_ = MPI_COMM_NULL;
  MPI_Comm control_ = MPI_COMM_NULL;  // keeps agreements off the measured queues
  Record environment_;
  std::string title_;
  std::vector<std::string> fields_;
  std::vector<Record> records_;
};

// MPI from start to end around `body`, with the errors told once. The options are
// parsed before `thread_level` is asked.
int run_program(int argc, char** argv, Options& options, const std::function<int()>& thread_level,
                const std::function<void(Session&)>& body);

}  // namespace suite
