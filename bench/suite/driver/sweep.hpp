// SPDX-License-Identifier: BSD-3-Clause
//
// A sweep: the points of a benchmark under several configurations of MPI, each point a
// job of its own with a time limit. A job that crashes, hangs or receives wrong data
// is a result like any other, and the sweep goes on.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "../../benchmarks.hpp"
#include "../../mpirun.hpp"
#include "../../report.hpp"

namespace bench {

enum class Effort { quick, standard, full };

// One point: what a program of the suite is started with.
struct Job {
  std::string program;
  int ranks = 2;
  std::vector<std::string> arguments;
  // What its record will say of it, for the case that there is none.
  Record parameters;
};

// Fields of the records that tables and plots are made of.
struct View {
  std::string title;
  std::vector<std::string> panel;   // one table and one panel per value of these
  std::vector<std::string> series;  // one line in the plot per value of these and MPI
  std::string x;
  std::string y;
  std::string x_label;
  std::string y_label;
  bool plotted = true;
  // The records that it shows; all, if there is none.
  std::function<std::vector<Record>(const std::vector<Record>&)> select{};
};

struct Sweep {
  std::string name;  // ./run bench NAME
  std::string about;
  std::vector<View> views;
  std::function<std::vector<Job>(Effort)> jobs;
  std::vector<std::string> mpis{"ob1", "tagline", "mpich"};
  std::vector<std::string> tagline_options{};  // of mpirun, for tagline alone
  // Fields that follow from several records, where there are any.
  std::function<void(std::vector<Record>&)> derive{};
  // Fields that hold for all points and are told once, below the tables.
  std::vector<std::string> told{};
};

// What the user says about a sweep.
struct SweepSettings {
  std::vector<std::string> mpis;
  std::vector<std::string> launches;  // NAME=FOLDER=COMMAND
  std::filesystem::path mpich;        // of the MPICHs that tools/mpich.sh has built; or empty
  std::vector<std::string> only;
  bool full = false;
  bool verify = false;
  bool strict = false;
  double seconds = 0;  // of a point; 0: by effort
  int limit = 20;      // of a job, seconds
};

struct SweepResult {
  std::vector<Record> records;
  std::vector<Record> failures;  // a part of the records
  std::string tables;
  std::vector<std::filesystem::path> plots;
  bool interrupted = false;
};

// Runs it, prints tables, writes OUTPUT/NAME.json, NAME.csv and NAME-N.svg.
SweepResult run_sweep(const Sweep& sweep, const SweepSettings& settings, const Context& context);

void add_sweep_options(CLI::App& command, SweepSettings& settings);

// The suite's benchmarks, in the order of the report.
const std::vector<Sweep>& sweeps();
Sweep rma_mt();
Sweep shmem_mt();
Sweep pingpong();
Sweep msgrate();
Sweep tail_queues();
Sweep queue_depth();
Sweep motifs();
Sweep miniapps();
Sweep structures();
Sweep power();

void add_agreement(CLI::App& app, Context& context);

// One self-contained file: plots, tables, failures, records.
void write_html(const std::filesystem::path& file, const std::string& commit,
                const std::vector<std::pair<const Sweep*, SweepResult>>& results);

}  // namespace bench
