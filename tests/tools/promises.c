// SPDX-License-Identifier: BSD-3-Clause
// A communicator that is made with the promise of no wildcards, beside MPI_COMM_WORLD. An
// argument asks for MPI_THREAD_MULTIPLE.
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int provided = 0, rank = 0, ranks = 0, sum = 0;
  MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_no_any_source", "true");
  MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
  MPI_Comm promised;
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &promised);
  MPI_Info_free(&info);
  MPI_Comm_rank(promised, &rank);
  MPI_Comm_size(promised, &ranks);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, promised);
  if (sum != ranks * (ranks - 1) / 2) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Comm_free(&promised);
  MPI_Finalize();
  return EXIT_SUCCESS;
}
