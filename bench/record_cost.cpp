// SPDX-License-Identifier: BSD-3-Clause
//
// What `tagline record` costs per MPI call: every call by its MPI_ name, in front of which the
// recorder stands, and by its PMPI_ name, turn by turn in one process. One rank, messages to
// itself.
//
//   tagline record -o DIRECTORY -- mpirun -n 1 record_cost
//
// Without a recorder the figures are around 0: what the difference of two equal loops is.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "report.hpp"

namespace {

constexpr int kRounds = 200;
constexpr int kCalls = 500;  // per round

double now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <class Operation>
double mean_ns(Operation operation) {
  const double start = now_ns();
  for (int i = 0; i < kCalls; ++i) operation();
  return (now_ns() - start) / kCalls;
}

// calls: MPI calls per operation.
template <class Recorded, class Bare>
void compare(bench::Table& table, const char* what, int calls, Recorded recorded, Bare bare) {
  std::vector<double> more;
  std::vector<double> alone;
  for (int round = 0; round < kRounds; ++round) {
    double with = 0;
    double without = 0;
    if (round % 2 == 0) {
      with = mean_ns(recorded);
      without = mean_ns(bare);
    } else {
      without = mean_ns(bare);
      with = mean_ns(recorded);
    }
    more.push_back((with - without) / calls);
    alone.push_back(without / calls);
  }
  table.row({what, bench::spread_cell(bench::spread_of(std::move(more)), "%.0f"),
             bench::format("%.0f", bench::spread_of(std::move(alone)).median)});
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const MPI_Comm self = MPI_COMM_SELF;
  char in[8] = {};
  const char out[8] = {};
  MPI_Request requests[2];
  int flag = 0;
  bench::Table table("Nanoseconds per MPI call (10th .. 90th percentile of rounds)");
  table.header({"call", "more with the recorder", "without"});
  compare(
      table, "Irecv + Isend + Waitall", 3,
      [&] {
        MPI_Irecv(in, 8, MPI_CHAR, 0, 7, self, &requests[0]);
        MPI_Isend(out, 8, MPI_CHAR, 0, 7, self, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      },
      [&] {
        PMPI_Irecv(in, 8, MPI_CHAR, 0, 7, self, &requests[0]);
        PMPI_Isend(out, 8, MPI_CHAR, 0, 7, self, &requests[1]);
        PMPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      });
  compare(
      table, "Irecv + Isend + Wait + Wait", 4,
      [&] {
        MPI_Irecv(in, 8, MPI_CHAR, 0, 7, self, &requests[0]);
        MPI_Isend(out, 8, MPI_CHAR, 0, 7, self, &requests[1]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
      },
      [&] {
        PMPI_Irecv(in, 8, MPI_CHAR, 0, 7, self, &requests[0]);
        PMPI_Isend(out, 8, MPI_CHAR, 0, 7, self, &requests[1]);
        PMPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        PMPI_Wait(&requests[1], MPI_STATUS_IGNORE);
      });
  compare(
      table, "Sendrecv", 1,
      [&] { MPI_Sendrecv(out, 8, MPI_CHAR, 0, 7, in, 8, MPI_CHAR, 0, 7, self, MPI_STATUS_IGNORE); },
      [&] {
        PMPI_Sendrecv(out, 8, MPI_CHAR, 0, 7, in, 8, MPI_CHAR, 0, 7, self, MPI_STATUS_IGNORE);
      });
  compare(
      table, "Iprobe that finds nothing", 1,
      [&] { MPI_Iprobe(0, 7, self, &flag, MPI_STATUS_IGNORE); },
      [&] { PMPI_Iprobe(0, 7, self, &flag, MPI_STATUS_IGNORE); });
  std::fputs(table.text().c_str(), stdout);
  MPI_Finalize();
  return 0;
}
