// SPDX-License-Identifier: BSD-3-Clause
// Processes that join later: MPI_Comm_spawn, and MPI_Comm_accept with MPI_Comm_connect
// between two halves of the job; messages of all sizes over the new communicators.
#include "program.h"

static void exchange(MPI_Comm inter) {
  int rank, remote;
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_remote_size(inter, &remote);
  for (int bytes = 0; bytes < 400000 && rank < remote; bytes = bytes * 6 + 1) {
    char *out = allocate((size_t)bytes), *in = allocate((size_t)bytes);
    MPI_Request request;
    MPI_Status status;
    fill(out, (size_t)bytes, (uint64_t)bytes);
    MPI_Isend(out, bytes, MPI_BYTE, rank, 4, inter, &request);
    MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, inter, &status);
    EXPECT_STATUS(status, rank, 4, bytes);
    EXPECT_CONTENTS(in, bytes, bytes);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(in);
    free(out);
  }
  MPI_Comm merged;
  MPI_Intercomm_merge(inter, 0, &merged);
  int one = 1, sum = 0, size = 0;
  MPI_Comm_size(merged, &size);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged);
  EXPECT(sum == size, "%d processes counted, got %d", size, sum);
  MPI_Comm_free(&merged);
}

static void accept_and_connect(void) {
  if (world_size < 2) return;
  const int side = world_rank % 2;
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm half, inter;
  MPI_Comm_split(MPI_COMM_WORLD, side, world_rank, &half);
  if (world_rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (side == 0)
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
  else
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
  exchange(inter);
  MPI_Comm_disconnect(&inter);
  if (world_rank == 0) MPI_Close_port(port);
  MPI_Comm_free(&half);
}

// All ranks together, then one alone, then two programs at once.
static void spawn(char* program) {
  MPI_Comm children;
  MPI_Comm_spawn(program, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                 MPI_ERRCODES_IGNORE);
  exchange(children);
  MPI_Comm_disconnect(&children);
  if (world_rank == world_size - 1) {
    MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children,
                   MPI_ERRCODES_IGNORE);
    exchange(children);
    MPI_Comm_disconnect(&children);
  }
  char* programs[] = {program, program};
  const int counts[] = {1, 1};
  MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
  MPI_Comm_spawn_multiple(2, programs, MPI_ARGVS_NULL, counts, infos, 0, MPI_COMM_WORLD, &children,
                          MPI_ERRCODES_IGNORE);
  exchange(children);
  MPI_Comm_disconnect(&children);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL) {
    accept_and_connect();
    spawn(argv[0]);
    return finish();
  }
  exchange(parent);
  MPI_Comm_disconnect(&parent);
  MPI_Finalize();
  return 0;
}
