// SPDX-License-Identifier: BSD-3-Clause
// More messages than the transports can hold at once: the receiver comes late, everyone
// sends to everyone, small and large ones mixed. Nothing is lost or reordered.
#include <unistd.h>

#include "program.h"

// The others send to rank 0, which sleeps first.
static void late_receiver(int count, int bytes, bool blocking) {
  MPI_Barrier(MPI_COMM_WORLD);
  char* buffer = allocate((size_t)bytes * (blocking ? 1 : 64));
  if (world_rank == 0) {
    usleep(50000);
    for (int i = 0; i < count; ++i)
      for (int from = 1; from < world_size; ++from) {
        MPI_Status status;
        MPI_Recv(buffer, bytes, MPI_BYTE, from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        EXPECT_STATUS(status, from, i % 1000, bytes);
        EXPECT_CONTENTS(buffer, bytes, from + i % 64);
      }
  } else if (blocking) {
    for (int i = 0; i < count; ++i) {
      fill(buffer, (size_t)bytes, (uint64_t)(world_rank + i % 64));
      MPI_Send(buffer, bytes, MPI_BYTE, 0, i % 1000, MPI_COMM_WORLD);
    }
  } else {
    MPI_Request* requests = allocate((size_t)count * sizeof *requests);
    for (int i = 0; i < 64; ++i)
      fill(buffer + (size_t)i * bytes, (size_t)bytes, (uint64_t)(world_rank + i));
    for (int i = 0; i < count; ++i)
      MPI_Isend(buffer + (size_t)(i % 64) * bytes, bytes, MPI_BYTE, 0, i % 1000, MPI_COMM_WORLD,
                &requests[i]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    free(requests);
  }
  free(buffer);
}

static void all_to_all(int count, int bytes) {
  const int total = count * world_size;
  MPI_Request* requests = allocate((size_t)(2 * total) * sizeof *requests);
  char* incoming = allocate((size_t)total * (size_t)bytes);
  char* outgoing = allocate((size_t)bytes);
  fill(outgoing, (size_t)bytes, (uint64_t)world_rank);
  for (int i = 0; i < count; ++i)
    for (int to = 0; to < world_size; ++to)
      MPI_Isend(outgoing, bytes, MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[i * world_size + to]);
  for (int i = 0; i < count; ++i)
    for (int from = 0; from < world_size; ++from)
      MPI_Irecv(incoming + (size_t)(i * world_size + from) * bytes, bytes, MPI_BYTE, from, i,
                MPI_COMM_WORLD, &requests[total + i * world_size + from]);
  MPI_Waitall(2 * total, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < total; ++i)
    EXPECT_CONTENTS(incoming + (size_t)i * bytes, bytes, i % world_size);
  free(outgoing);
  free(incoming);
  free(requests);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int count = (int)argument(argc, argv, "count", 30000);
  late_receiver(count, 1, true);
  late_receiver(count, 64, false);
  late_receiver(count / 10, 4000, true);
  late_receiver(count / 10, 4000, false);
  late_receiver(count / 100, 70000, true);
  late_receiver(count / 100, 70000, false);
  all_to_all(count / 5, 8);
  all_to_all(count / 100, 5000);
  all_to_all(count / 300, 150000);
  return finish();
}
