// SPDX-License-Identifier: BSD-3-Clause
// Many nonblocking sends in a row, more than the transport has room for, while every one differs
// from the last in what a sender may have kept of it: size, count, datatype, where the data begins
// and whether it has to be packed. To a peer that receives and to one that does not listen.
#include <unistd.h>

#include "program.h"

enum { kMessages = 1500, kRounds = 6, kElements = 600, kPackedPercent = 20 };

// A few ints behind a gap, so that the data does not begin at the address that is sent.
static MPI_Datatype behind_a_gap(int gap) {
  const int one = 1;
  const MPI_Aint offset = gap * (MPI_Aint)sizeof(int);
  MPI_Datatype type, resized;
  MPI_Type_create_hindexed(1, &one, &offset, MPI_INT, &type);
  MPI_Type_create_resized(type, offset, sizeof(int), &resized);
  MPI_Type_free(&type);
  MPI_Type_commit(&resized);
  return resized;
}

struct message {
  int elements;
  int gap;  // 0: MPI_INT, 1 and 2: behind a gap, 3: every second int
};

static struct message random_message(uint64_t* random) {
  static const int sizes[] = {0, 1, 2, 4, 16, 60, 64, 65, 128, 256, 300, kElements};
  const int size = sizes[random_below(random, (int)(sizeof sizes / sizeof sizes[0]))];
  const bool packed = random_below(random, 100) < kPackedPercent;
  return (struct message){size, packed ? 3 : random_below(random, 3)};
}

static int value_of(int round, int message, int element) {
  return round * 7919 + message * 1031 + element;
}

static void one_burst(int round, bool listening, MPI_Datatype types[4]) {
  const int partner = partner_rank();
  static int outgoing[kMessages][2 * kElements + 2];
  static int incoming[kElements];
  static MPI_Request requests[kMessages];
  uint64_t random = 4711 + (uint64_t)round;
  if (world_rank % 2 == 0) {
    for (int m = 0; m < kMessages; ++m) {
      const struct message message = random_message(&random);
      const bool strided = message.gap == 3;
      const int gap = strided ? 0 : message.gap;
      for (int i = 0; i < message.elements; ++i)
        outgoing[m][gap + (strided ? 2 * i : i)] = value_of(round, m, i);
      const int count = strided ? message.elements / 2 * 2 : message.elements;
      MPI_Isend(outgoing[m], strided ? count / 2 : count, types[message.gap], partner, 5,
                MPI_COMM_WORLD, &requests[m]);
    }
    MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE);
    return;
  }
  if (!listening) usleep(20000);
  for (int m = 0; m < kMessages; ++m) {
    const struct message message = random_message(&random);
    const int count = message.gap == 3 ? message.elements / 2 * 2 : message.elements;
    MPI_Status status;
    int got = -1;
    MPI_Recv(incoming, kElements, MPI_INT, partner, 5, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &got);
    EXPECT(got == count, "%d ints in message %d of round %d, got %d", count, m, round, got);
    for (int i = 0; i < got; ++i)
      EXPECT(incoming[i] == value_of(round, m, i),
             "%d in element %d of message %d of round %d, got %d", value_of(round, m, i), i, m,
             round, incoming[i]);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Datatype pair_of_two;  // two of four ints
  MPI_Type_vector(2, 1, 2, MPI_INT, &pair_of_two);
  MPI_Datatype strided;
  MPI_Type_create_resized(pair_of_two, 0, 4 * sizeof(int), &strided);
  MPI_Type_free(&pair_of_two);
  MPI_Type_commit(&strided);
  MPI_Datatype types[4] = {MPI_INT, behind_a_gap(1), behind_a_gap(2), strided};
  for (int round = 0; round < kRounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    one_burst(round, round % 2 == 0, types);
  }
  for (int i = 1; i < 4; ++i) MPI_Type_free(&types[i]);
  return finish();
}
