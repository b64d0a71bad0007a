// SPDX-License-Identifier: BSD-3-Clause
// Every collective, blocking and nonblocking, with results checked; several nonblocking
// ones at once, between point-to-point messages on the same communicator.
#include "program.h"

static int n;  // ranks
static int *in, *out, *counts, *places, *again_counts, *again_places;

static int value(int rank, int i) { return rank * 1000003 + i; }

static void fill_ints(int* values, int count, int rank) {
  for (int i = 0; i < count; ++i) values[i] = value(rank, i);
}

static void expect_ints(const char* name, const int* values, int count, int rank, int first) {
  for (int i = 0; i < count; ++i)
    EXPECT(values[i] == value(rank, first + i), "%s: item %d of rank %d to be %d, got %d", name,
           first + i, rank, value(rank, first + i), values[i]);
}

static void expect_sums(const char* name, const int* values, int count, int first, int ranks) {
  for (int i = 0; i < count; ++i) {
    int sum = 0;
    for (int r = 0; r < ranks; ++r) sum += value(r, first + i);
    EXPECT(values[i] == sum, "%s: sum %d of item %d, got %d", name, sum, first + i, values[i]);
  }
}

// Runs the blocking call, then the nonblocking one, and checks after each.
#define BOTH(Call, call, check, ...)       \
  do {                                     \
    memset(out, 0xFF, bytes);              \
    MPI_##Call(__VA_ARGS__);               \
    check;                                 \
    memset(out, 0xFF, bytes);              \
    MPI_I##call(__VA_ARGS__, &request);    \
    MPI_Wait(&request, MPI_STATUS_IGNORE); \
    check;                                 \
  } while (0)

static void expect_all(const char* name, int count) {
  for (int r = 0; r < n; ++r) expect_ints(name, out + r * count, count, r, 0);
}
static void expect_mine_of_all(const char* name, int count) {
  for (int r = 0; r < n; ++r) expect_ints(name, out + r * count, count, r, world_rank * count);
}
// Rank r contributes count + r items.
static void expect_uneven(const char* name, int count) {
  for (int r = 0; r < n; ++r) expect_ints(name, out + places[r], count + r, r, 0);
}
static void expect_uneven_of_all(const char* name, int count) {
  for (int r = 0; r < n; ++r)
    expect_ints(name, out + again_places[r], count + world_rank, r, places[world_rank]);
}

static void rooted(int count, int root) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const size_t bytes = (size_t)(n * (count + n)) * sizeof(int);
  const bool is_root = world_rank == root;
  MPI_Request request;
  for (int nonblocking = 0; nonblocking < 2; ++nonblocking) {
    memset(out, 0xFF, bytes);
    if (is_root) fill_ints(out, count, root);
    if (nonblocking) {
      MPI_Ibcast(out, count, MPI_INT, root, world, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Bcast(out, count, MPI_INT, root, world);
    }
    expect_ints("Bcast", out, count, root, 0);
  }
  fill_ints(in, n * (count + n), world_rank);
  if (is_root)
    BOTH(Gather, gather, expect_all("Gather", count), in, count, MPI_INT, out, count, MPI_INT, root,
         world);
  else
    BOTH(Gather, gather, (void)0, in, count, MPI_INT, NULL, 0, MPI_INT, root, world);
  BOTH(Scatter, scatter, expect_ints("Scatter", out, count, root, world_rank * count), in, count,
       MPI_INT, out, count, MPI_INT, root, world);
  BOTH(Gatherv, gatherv, if (is_root) expect_uneven("Gatherv", count), in, count + world_rank,
       MPI_INT, out, counts, places, MPI_INT, root, world);
  BOTH(Scatterv, scatterv,
       expect_ints("Scatterv", out, count + world_rank, root, places[world_rank]), in, counts,
       places, MPI_INT, out, count + world_rank, MPI_INT, root, world);
  BOTH(Reduce, reduce, if (is_root) expect_sums("Reduce", out, count, 0, n), in, out, count,
       MPI_INT, MPI_SUM, root, world);
}

static void unrooted(int count) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const size_t bytes = (size_t)(n * (count + n)) * sizeof(int);
  MPI_Request request;
  fill_ints(in, n * (count + n), world_rank);
  BOTH(Allgather, allgather, expect_all("Allgather", count), in, count, MPI_INT, out, count,
       MPI_INT, world);
  BOTH(Allgatherv, allgatherv, expect_uneven("Allgatherv", count), in, count + world_rank, MPI_INT,
       out, counts, places, MPI_INT, world);
  BOTH(Alltoall, alltoall, expect_mine_of_all("Alltoall", count), in, count, MPI_INT, out, count,
       MPI_INT, world);
  BOTH(Alltoallv, alltoallv, expect_uneven_of_all("Alltoallv", count), in, counts, places, MPI_INT,
       out, again_counts, again_places, MPI_INT, world);
  BOTH(Allreduce, allreduce, expect_sums("Allreduce", out, count, 0, n), in, out, count, MPI_INT,
       MPI_SUM, world);
  BOTH(Reduce_scatter, reduce_scatter,
       expect_sums("Reduce_scatter", out, counts[world_rank], places[world_rank], n), in, out,
       counts, MPI_INT, MPI_SUM, world);
  BOTH(Reduce_scatter_block, reduce_scatter_block,
       expect_sums("Reduce_scatter_block", out, count, world_rank * count, n), in, out, count,
       MPI_INT, MPI_SUM, world);
  BOTH(Scan, scan, expect_sums("Scan", out, count, 0, world_rank + 1), in, out, count, MPI_INT,
       MPI_SUM, world);
  BOTH(Exscan, exscan, if (world_rank > 0) expect_sums("Exscan", out, count, 0, world_rank), in,
       out, count, MPI_INT, MPI_SUM, world);

  // In place, and with one datatype per peer.
  fill_ints(out, count, world_rank);
  MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_INT, MPI_SUM, world);
  expect_sums("Allreduce in place", out, count, 0, n);
  int *byte_places = allocate((size_t)n * sizeof(int)), *back = allocate((size_t)n * sizeof(int));
  MPI_Datatype* types = allocate((size_t)n * sizeof *types);
  for (int r = 0; r < n; ++r) {
    types[r] = MPI_INT;
    byte_places[r] = places[r] * (int)sizeof(int);
    back[r] = again_places[r] * (int)sizeof(int);
  }
  BOTH(Alltoallw, alltoallw, expect_uneven_of_all("Alltoallw", count), in, counts, byte_places,
       types, out, again_counts, back, types, world);
  free(types);
  free(back);
  free(byte_places);
}

static void on_a_ring(int count) {
  MPI_Comm ring;
  const int periodic = 1;
  const size_t bytes = (size_t)(2 * count) * sizeof(int);
  MPI_Request request;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &n, &periodic, 0, &ring);
  const int left = (world_rank + n - 1) % n, right = (world_rank + 1) % n;
  fill_ints(in, 2 * count, world_rank);
  BOTH(Neighbor_allgather, neighbor_allgather,
       (expect_ints("Neighbor_allgather", out, count, left, 0),
        expect_ints("Neighbor_allgather", out + count, count, right, 0)),
       in, count, MPI_INT, out, count, MPI_INT, ring);
  // With two ranks or fewer both neighbours are one, and the order of the two messages
  // between them is left open.
  if (n > 2)
    BOTH(Neighbor_alltoall, neighbor_alltoall,
         (expect_ints("Neighbor_alltoall", out, count, left, count),
          expect_ints("Neighbor_alltoall", out + count, count, right, 0)),
         in, count, MPI_INT, out, count, MPI_INT, ring);
  MPI_Comm_free(&ring);
}

// Many nonblocking collectives at once, between messages of the same communicator.
static void at_once(int count) {
  enum { kAtOnce = 20 };
  const int partner = partner_rank();
  MPI_Request requests[3 * kAtOnce + 1];
  int* sums = allocate((size_t)(kAtOnce * count) * sizeof(int));
  int* messages = allocate((size_t)(kAtOnce * count) * sizeof(int));
  fill_ints(in, count, world_rank);
  for (int i = 0; i < kAtOnce; ++i) {
    MPI_Irecv(messages + i * count, count, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
              &requests[3 * i]);
    MPI_Iallreduce(in, sums + i * count, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                   &requests[3 * i + 1]);
    MPI_Isend(in, count, MPI_INT, partner, i, MPI_COMM_WORLD, &requests[3 * i + 2]);
  }
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[3 * kAtOnce]);
  MPI_Waitall(3 * kAtOnce + 1, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kAtOnce; ++i) {
    expect_sums("Iallreduce", sums + i * count, count, 0, n);
    expect_ints("Irecv", messages + i * count, count, partner, 0);
  }
  free(messages);
  free(sums);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  n = world_size;
  static const int kCounts[] = {1, 7, 300, 5000, 60000};
  const size_t most = (size_t)(2 * n + 2) * (60000 + (size_t)n) * sizeof(int);
  in = allocate(most);
  out = allocate(most);
  counts = allocate((size_t)n * sizeof(int));
  places = allocate((size_t)n * sizeof(int));
  again_counts = allocate((size_t)n * sizeof(int));
  again_places = allocate((size_t)n * sizeof(int));
  for (size_t c = 0; c < sizeof kCounts / sizeof kCounts[0]; ++c) {
    const int count = kCounts[c];
    for (int r = 0; r < n; ++r) {
      counts[r] = count + r;
      places[r] = r == 0 ? 0 : places[r - 1] + counts[r - 1];
      again_counts[r] = count + world_rank;
      again_places[r] = r * (count + world_rank);
    }
    for (int repeat = 0; repeat < (count <= 300 ? 20 : 2); ++repeat) {
      for (int root = 0; root < n; ++root) rooted(count, root);
      unrooted(count);
      on_a_ring(count);
      if (count <= 5000) at_once(count);
    }
  }
  free(again_places);
  free(again_counts);
  free(places);
  free(counts);
  free(out);
  free(in);
  return finish();
}
