// SPDX-License-Identifier: BSD-3-Clause
// MPI_Finalize with receives that were never matched and messages that were never
// received, on the world and on a duplicate of it: the job still ends cleanly.
#include "program.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  enum { kCount = 500, kBytes = 100 };  // eager on every transport
  static char never_filled[kCount], sent[kBytes];
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  for (int i = 0; i < kCount; ++i) {
    const MPI_Comm communicator = i % 2 == 0 ? MPI_COMM_WORLD : copy;
    MPI_Request receive, send;
    MPI_Irecv(&never_filled[i], 1, MPI_BYTE, i % 3 == 0 ? MPI_ANY_SOURCE : partner_rank(), 1000 + i,
              communicator, &receive);
    MPI_Isend(sent, kBytes, MPI_BYTE, partner_rank(), 5000 + i, communicator, &send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
  return finish();
}
