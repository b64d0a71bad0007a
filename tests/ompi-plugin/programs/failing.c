// SPDX-License-Identifier: BSD-3-Clause
// Jobs that must end with an error and leave no process behind: the last rank does what
// the first argument says while the others wait for a message from it.
#include <signal.h>
#include <unistd.h>

#include "program.h"

// The last rank exchanges messages of all protocols with everyone, and dies in the midst of them.
static void die_in_transfer(void) {
  enum { kMessages = 8, kBytes = 1 << 20, kRoundsToLive = 20 };
  const int last = world_size - 1;
  char* buffer = allocate((size_t)kBytes * 2);
  for (int round = 0;; ++round) {
    MPI_Request requests[2 * kMessages * 64];
    int count = 0;
    for (int rank = 0; rank < last; ++rank) {
      if (world_rank != last && world_rank != rank) continue;
      const int partner = world_rank == last ? rank : last;
      for (int i = 0; i < kMessages; ++i) {
        const int bytes = kBytes >> (3 * i % 21);
        MPI_Irecv(buffer, bytes, MPI_BYTE, partner, i, MPI_COMM_WORLD, &requests[count++]);
        MPI_Isend(buffer + kBytes, bytes, MPI_BYTE, partner, i, MPI_COMM_WORLD, &requests[count++]);
      }
    }
    if (world_rank == last && round == kRoundsToLive) raise(SIGKILL);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const char* how = argc > 1 ? argv[1] : "";
  if (strcmp(how, "kill_in_transfer") == 0) die_in_transfer();
  if (world_rank == world_size - 1) {
    usleep(100000);
    if (strcmp(how, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 42);
    if (strcmp(how, "kill") == 0) raise(SIGKILL);
    if (strcmp(how, "segfault") == 0) raise(SIGSEGV);
    if (strcmp(how, "exit") == 0) _exit(5);  // without MPI_Finalize
    if (strcmp(how, "expect") == 0) EXPECT(world_size < 0, "a failure, as asked for");
    if (strcmp(how, "truncate") == 0) {  // the default error handler ends the job
      MPI_Request request;
      int two[2] = {1, 2}, one;
      MPI_Isend(two, 2, MPI_INT, world_rank, 1, MPI_COMM_WORLD, &request);
      MPI_Recv(&one, 1, MPI_INT, world_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (strcmp(how, "hang") != 0) return finish();
  }
  MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return finish();
}
