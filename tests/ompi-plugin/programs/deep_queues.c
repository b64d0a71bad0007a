// SPDX-License-Identifier: BSD-3-Clause
// Queues of many thousand entries, posted and unexpected, drained in random order: each
// message must find its own receive. `depth=N` entries; every kind of receive.
#include "program.h"

enum receive_kind { kExact, kAnySource, kAnyTag, kMixed, kKinds };

// Entry i comes from one of the senders 1 .. n-1 (0 when alone) and carries its number
// as tag. With kAnyTag the tag says nothing, so that the order of each sender decides.
static int sender_of(int entry) { return world_size == 1 ? 0 : 1 + entry % (world_size - 1); }

static void post(int entry, enum receive_kind kind, int* value, MPI_Request* request) {
  const bool any_source = kind == kAnySource || (kind == kMixed && entry % 2 == 0);
  MPI_Irecv(value, 1, MPI_INT, any_source ? MPI_ANY_SOURCE : sender_of(entry),
            kind == kAnyTag ? MPI_ANY_TAG : entry, MPI_COMM_WORLD, request);
}

// My entries in a shuffled order, or in order where the order decides.
static void send_mine(int depth, enum receive_kind kind, uint64_t seed) {
  uint64_t random = seed;
  int* order = random_order(depth, &random);
  for (int i = 0; i < depth; ++i) {
    const int entry = kind == kAnyTag ? i : order[i];
    if (sender_of(entry) != world_rank) continue;
    MPI_Request request;
    MPI_Isend(&entry, 1, MPI_INT, 0, entry, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  free(order);
}

static void posted(int depth, enum receive_kind kind) {
  int* values = allocate((size_t)depth * sizeof(int));
  MPI_Request* requests = allocate((size_t)depth * sizeof *requests);
  if (world_rank == 0) {
    memset(values, 0xFF, (size_t)depth * sizeof(int));
    for (int i = 0; i < depth; ++i) post(i, kind, &values[i], &requests[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  send_mine(depth, kind, 11);
  if (world_rank == 0) {
    for (int i = 0; i < depth; ++i) {
      MPI_Status status;
      MPI_Wait(&requests[i], &status);
      EXPECT_STATUS(status, sender_of(i), i, sizeof(int));
      EXPECT(values[i] == i, "entry %d in its posted receive, got %d", i, values[i]);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  free(requests);
  free(values);
}

static void unexpected(int depth, enum receive_kind kind) {
  MPI_Barrier(MPI_COMM_WORLD);
  send_mine(depth, kind, 12);
  const int last = depth;  // a message behind all others of its sender
  if (world_rank != 0 || world_size == 1) MPI_Send(&last, 1, MPI_INT, 0, last, MPI_COMM_WORLD);
  if (world_rank == 0) {
    int value = -1;
    for (int from = world_size == 1 ? 0 : 1; from < world_size; ++from)
      MPI_Recv(&value, 1, MPI_INT, from, last, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    uint64_t random = 13;
    int* order = random_order(depth, &random);
    for (int i = 0; i < depth; ++i) {
      const int entry = kind == kAnyTag ? i : order[i];
      MPI_Request request;
      MPI_Status status;
      if (i % 64 == 0 && kind != kAnyTag) {
        MPI_Probe(MPI_ANY_SOURCE, entry, MPI_COMM_WORLD, &status);
        EXPECT_STATUS(status, sender_of(entry), entry, sizeof(int));
      }
      post(entry, kind, &value, &request);
      MPI_Wait(&request, &status);
      EXPECT_STATUS(status, sender_of(entry), entry, sizeof(int));
      EXPECT(value == entry, "unexpected entry %d, got %d", entry, value);
    }
    free(order);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int depth = (int)argument(argc, argv, "depth", 16384);
  for (enum receive_kind kind = kExact; kind < kKinds; ++kind) {
    posted(depth, kind);
    unexpected(depth, kind);
  }
  return finish();
}
