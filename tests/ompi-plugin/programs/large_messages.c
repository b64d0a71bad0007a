// SPDX-License-Identifier: BSD-3-Clause
// Messages of 1 MiB to 64 MiB: both directions at once, several in flight, posted
// and late receives. `mebibytes=1024` sends one message of that size instead;
// `beyond_int=1` sends more bytes than an int counts, as three huge elements (`strided=1`:
// that have gaps).
#include "program.h"

enum { kMebibyte = 1 << 20 };

static void both_directions(size_t bytes, bool late) {
  const int partner = partner_rank();
  char *outgoing = allocate(bytes), *incoming = allocate(bytes);
  MPI_Request send;
  MPI_Status status;
  fill(outgoing, bytes, (uint64_t)world_rank);
  MPI_Isend(outgoing, (int)bytes, MPI_BYTE, partner, 5, MPI_COMM_WORLD, &send);
  if (late) MPI_Probe(partner, 5, MPI_COMM_WORLD, &status);
  MPI_Recv(incoming, (int)bytes, MPI_BYTE, partner, 5, MPI_COMM_WORLD, &status);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  EXPECT_STATUS(status, partner, 5, bytes);
  EXPECT_CONTENTS(incoming, bytes, partner);
  free(incoming);
  free(outgoing);
}

static void several_in_flight(size_t bytes, bool reversed) {
  enum { kCount = 8 };
  const int partner = partner_rank();
  char *outgoing[kCount], *incoming[kCount];
  MPI_Request requests[2 * kCount];
  for (int i = 0; i < kCount; ++i) {
    outgoing[i] = allocate(bytes);
    incoming[i] = allocate(bytes);
    fill(outgoing[i], bytes, (uint64_t)(world_rank * kCount + i));
    MPI_Isend(outgoing[i], (int)bytes, MPI_BYTE, partner, i, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = 0; i < kCount; ++i) {
    const int tag = reversed ? kCount - 1 - i : i;
    MPI_Irecv(incoming[tag], (int)bytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD,
              &requests[kCount + tag]);
  }
  MPI_Waitall(2 * kCount, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kCount; ++i) {
    EXPECT_CONTENTS(incoming[i], bytes, partner * kCount + i);
    free(incoming[i]);
    free(outgoing[i]);
  }
}

static void one_way(size_t bytes) {
  const int partner = partner_rank();
  char* buffer = allocate(bytes);
  if (world_rank < partner) {
    fill(buffer, bytes, 99);
    MPI_Send(buffer, (int)bytes, MPI_BYTE, partner, 6, MPI_COMM_WORLD);
  } else {
    MPI_Status status;
    MPI_Recv(buffer, (int)bytes, MPI_BYTE, partner, 6, MPI_COMM_WORLD, &status);
    EXPECT_STATUS(status, partner, 6, bytes);
    EXPECT_CONTENTS(buffer, bytes, 99);
  }
  free(buffer);
}

// The sender's elements lie on top of each other (extent 0), so that it holds one
// of the three that the receiver gets. `strided`: with a gap behind each of their pieces.
static void beyond_int(bool strided) {
  enum { kPieces = 800, kGap = 4096 };
  const int piece = strided ? kMebibyte - kGap : kMebibyte, element = kPieces * piece, count = 3;
  const size_t extent = (size_t)kPieces * kMebibyte;
  const int partner = partner_rank();
  MPI_Datatype pieces, contiguous, stacked;
  MPI_Type_vector(kPieces, piece, kMebibyte, MPI_BYTE, &pieces);
  MPI_Type_create_resized(pieces, 0, (MPI_Aint)extent, &contiguous);
  MPI_Type_free(&pieces);
  MPI_Type_create_resized(contiguous, 0, 0, &stacked);
  MPI_Type_commit(&contiguous);
  MPI_Type_commit(&stacked);
  if (world_rank < partner) {
    char* buffer = allocate(extent);
    for (int i = 0; i < kPieces; ++i)
      fill(buffer + (size_t)i * kMebibyte, (size_t)piece, (uint64_t)i);
    MPI_Send(buffer, count, stacked, partner, 7, MPI_COMM_WORLD);
    free(buffer);
  } else {
    char* buffer = allocate(extent * (size_t)count);
    MPI_Status status;
    MPI_Count elements = -1;
    int items = -1;
    MPI_Recv(buffer, count, contiguous, partner, 7, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, contiguous, &items);
    MPI_Get_elements_x(&status, contiguous, &elements);
    EXPECT(items == count && elements == (MPI_Count)element * count,
           "%d items of %d bytes, got %d items, %lld bytes", count, element, items,
           (long long)elements);
    for (int i = 0; i < count * kPieces; ++i) {
      const char* start = buffer + (size_t)i * kMebibyte;
      EXPECT_CONTENTS(start, piece, i % kPieces);
      for (int gap = piece; gap < kMebibyte; ++gap)
        EXPECT(start[gap] == 0, "nothing written behind piece %d", i);
    }
    free(buffer);
  }
  MPI_Type_free(&stacked);
  MPI_Type_free(&contiguous);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const size_t mebibytes = (size_t)argument(argc, argv, "mebibytes", 0);
  if (argument(argc, argv, "beyond_int", 0) != 0) {
    if (partner_rank() != world_rank) beyond_int(argument(argc, argv, "strided", 0) != 0);
  } else if (mebibytes > 0) {
    if (partner_rank() != world_rank) one_way(mebibytes * kMebibyte);
  } else {
    static const size_t kBytes[] = {kMebibyte - 1, kMebibyte,          2 * kMebibyte + 5,
                                    8 * kMebibyte, 16 * kMebibyte - 3, 64 * kMebibyte};
    for (size_t i = 0; i < sizeof kBytes / sizeof kBytes[0]; ++i) {
      both_directions(kBytes[i], false);
      both_directions(kBytes[i], true);
    }
    several_in_flight(3 * kMebibyte + 1, false);
    several_in_flight(3 * kMebibyte + 1, true);
  }
  return finish();
}
