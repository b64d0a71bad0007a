// SPDX-License-Identifier: BSD-3-Clause
// Jobs that must end with an error and leave no process behind: the last rank does what
// the first argument says while the others wait for a message from it.
#include <signal.h>
#include <unistd.h>

#include "program.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const char* how = argc > 1 ? argv[1] : "";
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
