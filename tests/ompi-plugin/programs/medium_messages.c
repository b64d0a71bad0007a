// SPDX-License-Identifier: BSD-3-Clause
// Messages between what every transport sends at once and what is large for all: they leave at
// once as well between processes of a node, and as large ones do where packets run out. Both ways
// keep one order with small and large messages.
#include <unistd.h>

#include "program.h"

enum { kTag = 3 };
static const int kSizes[] = {0, 8, 4000, 4096, 5000, 16384, 32000, 32752, 32753, 32768, 100000};
enum { kNumberOfSizes = sizeof kSizes / sizeof kSizes[0], kLargest = 100000 };

// A blocking send returns before anybody receives: with rendezvous these would wait for each other.
static void head_to_head(int bytes) {
  const int partner = partner_rank();
  char* outgoing = allocate((size_t)bytes);
  char* incoming = allocate((size_t)bytes);
  fill(outgoing, (size_t)bytes, (uint64_t)world_rank);
  MPI_Send(outgoing, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD);
  memset(outgoing, 0, (size_t)bytes);  // the data has left
  MPI_Status status;
  MPI_Recv(incoming, bytes, MPI_BYTE, partner, kTag, MPI_COMM_WORLD, &status);
  EXPECT_STATUS(status, partner, kTag, bytes);
  EXPECT_CONTENTS(incoming, bytes, partner);
  free(incoming);
  free(outgoing);
}

// More than there are packets for, of all sizes with one tag, to somebody who is not there yet.
static void mixed(int count) {
  const int partner = partner_rank();
  uint64_t random = 7;
  int* sizes = allocate((size_t)count * sizeof *sizes);
  for (int i = 0; i < count; ++i) sizes[i] = kSizes[random_below(&random, kNumberOfSizes)];
  if (world_rank % 2 == 0) {
    char** outgoing = allocate((size_t)count * sizeof *outgoing);
    MPI_Request* requests = allocate((size_t)count * sizeof *requests);
    for (int i = 0; i < count; ++i) {
      outgoing[i] = allocate((size_t)sizes[i]);
      fill(outgoing[i], (size_t)sizes[i], (uint64_t)i);
      MPI_Isend(outgoing[i], sizes[i], MPI_BYTE, partner, kTag, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; ++i) free(outgoing[i]);
    free(requests);
    free(outgoing);
  } else {
    usleep(20000);
    char* incoming = allocate(kLargest);
    for (int i = 0; i < count; ++i) {
      MPI_Status status;
      MPI_Recv(incoming, kLargest, MPI_BYTE, partner, kTag, MPI_COMM_WORLD, &status);
      EXPECT_STATUS(status, partner, kTag, sizes[i]);
      EXPECT_CONTENTS(incoming, sizes[i], i);
    }
    free(incoming);
  }
  free(sizes);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Every other int of a field, packed on one side and unpacked on the other.
static void strided(int ints) {
  const int partner = partner_rank();
  int* field = allocate((size_t)(2 * ints) * sizeof *field);
  MPI_Datatype every_other = MPI_DATATYPE_NULL;
  MPI_Type_vector(ints, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  if (world_rank % 2 == 0) {
    for (int i = 0; i < 2 * ints; ++i) field[i] = i;
    MPI_Send(field, 1, every_other, partner, kTag, MPI_COMM_WORLD);
  } else {
    MPI_Recv(field, 1, every_other, partner, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2 * ints; ++i) {
      const int expected = i % 2 == 0 ? i : 0;
      EXPECT(field[i] == expected, "%d at %d, got %d", expected, i, field[i]);
    }
  }
  MPI_Type_free(&every_other);
  free(field);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int eager = (int)argument(argc, argv, "eager", 0);  // bytes that leave at once
  for (int i = 0; i < kNumberOfSizes && kSizes[i] <= eager; ++i) head_to_head(kSizes[i]);
  const int rounds = (int)argument(argc, argv, "rounds", 20);
  for (int round = 0; round < rounds; ++round) mixed(400);
  for (int ints = 500; ints < 20000; ints = ints * 3 / 2) strided(ints);
  return finish();
}
