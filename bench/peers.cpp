// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that a process keeps per peer and communicator: what the C library's allocator hands out
// while rank 0 hears from, and talks to, more and more ranks for the first time on each of some
// communicators. Rank 0 prints one JSON object.
#define OMPI_SKIP_MPICXX 1
#include <malloc.h>
#include <mpi.h>

#include <cstdio>
#include <vector>

namespace {

constexpr int kCommunicators = 32;

// Rank 0 exchanges a message with each of the ranks from `first` to `end`. Its receives come
// first, so that no message has to be stored.
void meet(MPI_Comm communicator, int rank, int first, int end) {
  std::vector<MPI_Request> receives;
  if (rank == 0) {
    receives.resize(static_cast<std::size_t>(end - first));
    for (int peer = first; peer < end; ++peer) {
      MPI_Irecv(nullptr, 0, MPI_BYTE, peer, 0, communicator,
                &receives[static_cast<std::size_t>(peer - first)]);
    }
    for (int peer = first; peer < end; ++peer) {
      MPI_Send(nullptr, 0, MPI_BYTE, peer, 0, communicator);
    }
    MPI_Waitall(end - first, receives.data(), MPI_STATUSES_IGNORE);
  } else if (rank >= first && rank < end) {
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, 0, communicator, MPI_STATUS_IGNORE);
    MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, communicator);
  }
}

std::size_t bytes_for(const std::vector<MPI_Comm>& communicators, int rank, int first, int end) {
  const std::size_t before = mallinfo2().uordblks;
  for (const MPI_Comm communicator : communicators) meet(communicator, rank, first, end);
  return mallinfo2().uordblks - before;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  // Connections, requests and the like, which all communicators share.
  MPI_Comm warm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &warm);
  for (int i = 0; i < 4; ++i) meet(warm, rank, 1, ranks);

  std::vector<MPI_Comm> communicators(kCommunicators);
  for (MPI_Comm& communicator : communicators) MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
  // Whatever a communicator takes once is there when the second half comes.
  bytes_for(communicators, rank, 1, ranks / 2);
  const std::size_t bytes = bytes_for(communicators, rank, ranks / 2, ranks);
  if (rank == 0) {
    std::printf("{\"ranks\": %d, \"communicators\": %d, \"bytes_per_peer\": %.2f}\n", ranks,
                kCommunicators, static_cast<double>(bytes) / kCommunicators / (ranks - ranks / 2));
    std::fflush(stdout);
  }
  for (MPI_Comm& communicator : communicators) MPI_Comm_free(&communicator);
  MPI_Comm_free(&warm);
  MPI_Finalize();
}
