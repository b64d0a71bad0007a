// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that a process keeps per peer and communicator: what the C library's allocator hands out
// while rank 0 hears from, and talks to, other ranks for the first time on each of some
// communicators. Rank 0 prints one JSON object per pattern:
//
//   more      half of all ranks, after the other half
//   adjacent  16 neighbours, the first ones of the communicator
//   apart     every fourth rank
//   random    16 ranks
//   doubling  the ranks at distances 1, 2, 4, ..
//
// In the latter four what is told includes all that a communicator takes for its first peer.
#define OMPI_SKIP_MPICXX 1
#include <malloc.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

namespace {

constexpr int kCommunicators = 32;
constexpr int kPeers = 16;
constexpr int kTurns = 3;

// Rank 0 exchanges a message with each of the peers. Its receives come first, so that no message
// has to be stored.
void meet(MPI_Comm communicator, int rank, const std::vector<int>& peers) {
  if (rank == 0) {
    std::vector<MPI_Request> receives;
    for (const int peer : peers) {
      MPI_Irecv(nullptr, 0, MPI_BYTE, peer, 0, communicator, &receives.emplace_back());
    }
    for (const int peer : peers) MPI_Send(nullptr, 0, MPI_BYTE, peer, 0, communicator);
    MPI_Waitall(static_cast<int>(receives.size()), receives.data(), MPI_STATUSES_IGNORE);
  } else if (std::find(peers.begin(), peers.end(), rank) != peers.end()) {
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, 0, communicator, MPI_STATUS_IGNORE);
    MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, communicator);
  }
}

std::size_t bytes_for(const std::vector<MPI_Comm>& communicators, int rank,
                      const std::vector<int>& peers) {
  const std::size_t before = mallinfo2().uordblks;
  for (const MPI_Comm communicator : communicators) meet(communicator, rank, peers);
  return mallinfo2().uordblks - before;
}

// So many receives wait at a time, from nobody in particular: queues take their memory.
void fill_queues(MPI_Comm communicator, std::size_t receives) {
  std::vector<MPI_Request> all(receives);
  for (MPI_Request& each : all) {
    MPI_Irecv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, communicator, &each);
  }
  for (MPI_Request& each : all) {
    MPI_Cancel(&each);
    MPI_Wait(&each, MPI_STATUS_IGNORE);
  }
}

// On communicators of its own, where `first` have been met before.
std::size_t bytes_anew(int rank, const std::vector<int>& first, const std::vector<int>& peers) {
  std::vector<MPI_Comm> communicators(kCommunicators);
  for (MPI_Comm& communicator : communicators) {
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    if (rank == 0) fill_queues(communicator, peers.size());
    // Nobody's message is here before the receives above have gone.
    MPI_Barrier(MPI_COMM_WORLD);
  }
  bytes_for(communicators, rank, first);
  const std::size_t bytes = bytes_for(communicators, rank, peers);
  for (MPI_Comm& communicator : communicators) MPI_Comm_free(&communicator);
  return bytes;
}

void measure(const char* pattern, int rank, int ranks, const std::vector<int>& first,
             const std::vector<int>& peers) {
  // A rank that is late makes the transport take more memory, which stays: the least counts.
  std::size_t least = bytes_anew(rank, first, peers);
  for (int i = 1; i < kTurns; ++i) least = std::min(least, bytes_anew(rank, first, peers));
  if (rank != 0) return;
  std::printf(
      "{\"pattern\": \"%s\", \"ranks\": %d, \"communicators\": %d, \"peers\": %zu, "
      "\"bytes_per_peer\": %.2f}\n",
      pattern, ranks, kCommunicators, peers.size(),
      static_cast<double>(least) / kCommunicators / static_cast<double>(peers.size()));
  std::fflush(stdout);
}

std::vector<int> from(int first, int end, int step = 1) {
  std::vector<int> ranks;
  for (int rank = first; rank < end; rank += step) ranks.push_back(rank);
  return ranks;
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
  for (int i = 0; i < 4; ++i) meet(warm, rank, from(1, ranks));

  std::vector<int> random = from(1, ranks);
  std::shuffle(random.begin(), random.end(), std::mt19937(1));
  random.resize(std::min<std::size_t>(random.size(), kPeers));
  std::vector<int> doubling;
  for (int distance = 1; distance < ranks; distance *= 2) doubling.push_back(distance);

  measure("more", rank, ranks, from(1, ranks / 2), from(ranks / 2, ranks));
  measure("adjacent", rank, ranks, {}, from(1, std::min(ranks, kPeers + 1)));
  measure("apart", rank, ranks, {}, from(1, ranks, 4));
  measure("random", rank, ranks, {}, random);
  measure("doubling", rank, ranks, {}, doubling);
  MPI_Comm_free(&warm);
  MPI_Finalize();
}
