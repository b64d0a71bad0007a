// SPDX-License-Identifier: BSD-3-Clause
// Collectives travel on the user's communicator with negative tags. A receive or a
// probe with MPI_ANY_SOURCE and MPI_ANY_TAG must never see them, nor may it hold them
// up.
#include <unistd.h>

#include "program.h"

static void run_collectives(MPI_Comm communicator) {
  int rank, size;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  MPI_Barrier(communicator);
  for (int root = 0; root < size; ++root) {
    int value = rank == root ? 100 + root : -1;
    MPI_Bcast(&value, 1, MPI_INT, root, communicator);
    EXPECT(value == 100 + root, "%d from MPI_Bcast, got %d", 100 + root, value);
  }
  int sum = -1;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, communicator);
  EXPECT(sum == size * (size - 1) / 2, "the sum of ranks, got %d", sum);
  int *sent = allocate((size_t)size * sizeof(int)), *got = allocate((size_t)size * sizeof(int));
  for (int i = 0; i < size; ++i) sent[i] = rank * 100 + i;
  MPI_Alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, communicator);
  for (int i = 0; i < size; ++i)
    EXPECT(got[i] == i * 100 + rank, "%d from MPI_Alltoall, got %d", i * 100 + rank, got[i]);
  MPI_Gather(&rank, 1, MPI_INT, got, 1, MPI_INT, size - 1, communicator);
  MPI_Request request;
  MPI_Ibarrier(communicator, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm copy;
  MPI_Comm_dup(communicator, &copy);
  MPI_Barrier(copy);
  MPI_Comm_free(&copy);
  free(got);
  free(sent);
}

static void waiting_wildcards(MPI_Comm communicator, int receives, int large) {
  int rank, size;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Request* requests = allocate((size_t)receives * sizeof *requests);
  char* buffers = allocate((size_t)receives * (size_t)large);
  // Kinds by turns: any/any, any tag from one source, any source with one tag.
  for (int i = 0; i < receives; ++i)
    MPI_Irecv(buffers + (size_t)i * large, large, MPI_BYTE, i % 3 == 1 ? left : MPI_ANY_SOURCE,
              i % 3 == 2 ? i : MPI_ANY_TAG, communicator, &requests[i]);
  run_collectives(communicator);
  for (int i = 0; i < receives; ++i) {
    int done = 0;
    MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
    EXPECT(!done, "wildcard receive %d to wait through the collectives", i);
  }
  MPI_Barrier(communicator);  // Nobody sends before all have looked.
  char* outgoing = allocate((size_t)large);
  for (int i = 0; i < receives; ++i) {
    fill(outgoing, (size_t)large, (uint64_t)(rank + i));
    MPI_Send(outgoing, large, MPI_BYTE, right, i, communicator);
    MPI_Status status;
    MPI_Wait(&requests[i], &status);
    EXPECT_STATUS(status, left, i, large);
    EXPECT_CONTENTS(buffers + (size_t)i * large, large, left + i);
  }
  run_collectives(communicator);
  free(outgoing);
  free(buffers);
  free(requests);
}

// The others are already inside the barrier: their messages have arrived here
// unexpected, and still a wildcard probe finds nothing.
static void probe_sees_no_collective(MPI_Comm communicator) {
  int rank, size;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  for (int late = 0; late < size; ++late) {
    if (rank == late) {
      usleep(20000);
      for (int i = 0; i < 200; ++i) {
        int found = 0;
        MPI_Message message;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator, &found, MPI_STATUS_IGNORE);
        EXPECT(!found, "MPI_Iprobe to overlook the barrier's messages");
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator, &found, &message, MPI_STATUS_IGNORE);
        EXPECT(!found, "MPI_Improbe to overlook the barrier's messages");
      }
    }
    MPI_Barrier(communicator);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  const MPI_Comm communicators[] = {MPI_COMM_WORLD, copy, MPI_COMM_SELF};
  for (int c = 0; c < 3; ++c) {
    waiting_wildcards(communicators[c], 1, 4);
    // Blocking sends to oneself need no buffering: the receive is posted.
    waiting_wildcards(communicators[c], 40, 64);
    waiting_wildcards(communicators[c], 6, 100000);
    probe_sees_no_collective(communicators[c]);
  }
  MPI_Comm_free(&copy);
  return finish();
}
