// SPDX-License-Identifier: BSD-3-Clause
// Both queues of a communicator with known contents, through the call that Open MPI has for it;
// the test compares what is printed. Then it all stays where it is for the report at the end.
#include "ompi-plugin/compat.h"
#include "program.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm pair;
  MPI_Comm_dup(MPI_COMM_WORLD, &pair);
  MPI_Comm_set_name(pair, "the pair");
  static char buffer[4][1000];
  MPI_Request requests[3];
  if (world_rank == 0) {
    MPI_Irecv(buffer[0], 10, MPI_BYTE, 1, 100, pair, &requests[0]);
    MPI_Irecv(buffer[1], 20, MPI_BYTE, MPI_ANY_SOURCE, 101, pair, &requests[1]);
    MPI_Irecv(buffer[2], 30, MPI_BYTE, 0, MPI_ANY_TAG, pair, &requests[2]);
    MPI_Probe(1, 204, pair, MPI_STATUS_IGNORE);
    mca_pml.pml_dump(pair, 1);
  } else {
    MPI_Send(buffer[0], 400, MPI_BYTE, 0, 203, pair);
    MPI_Send(buffer[0], 0, MPI_BYTE, 0, 204, pair);
  }
  return finish();
}
