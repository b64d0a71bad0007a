// SPDX-License-Identifier: BSD-3-Clause
// A rank that leaves the creation of a communicator first sends on it at once: the
// messages may reach ranks that do not know the communicator yet, must wait there, and
// keep their order.
#include <unistd.h>

#include "program.h"

enum { kBurst = 6, kLarge = 70000 };

static MPI_Comm create(int round, uint64_t* random) {
  MPI_Comm made;
  MPI_Request request;
  switch (round % 4) {
    case 0:
      MPI_Comm_dup(MPI_COMM_WORLD, &made);
      break;
    case 1:
      MPI_Comm_split(MPI_COMM_WORLD, 0, world_rank, &made);
      break;
    case 2:
      MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
      // One rank is slow to notice that the communicator is ready.
      if (random_below(random, world_size) == world_rank && round % 16 == 2) usleep(500);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    default: {
      MPI_Group group;
      MPI_Comm_group(MPI_COMM_WORLD, &group);
      MPI_Comm_create_group(MPI_COMM_WORLD, group, 1, &made);
      MPI_Group_free(&group);
    }
  }
  return made;
}

static void hammer(int rounds) {
  char *large = allocate(kLarge), *incoming = allocate(kLarge);
  uint64_t random = 5;
  const int receives = kBurst * (world_size - 1);
  int(*numbers)[3] = allocate((size_t)(receives + 1) * sizeof *numbers);
  MPI_Request* sends = allocate((size_t)(2 * world_size) * kBurst * sizeof *sends);
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm made = create(round, &random);
    int sent = 0, messages[kBurst][3];
    // Everyone sends to everyone else first, so that the last to arrive is met by all.
    for (int i = 0; i < kBurst; ++i) {
      messages[i][0] = world_rank, messages[i][1] = round, messages[i][2] = i;
      for (int to = 0; to < world_size; ++to)
        if (to != world_rank) MPI_Isend(messages[i], 3, MPI_INT, to, i % 2, made, &sends[sent++]);
    }
    const bool with_large = round % 8 == 0 && world_size > 1;
    const int right = (world_rank + 1) % world_size;
    const int left = (world_rank + world_size - 1) % world_size;
    if (with_large) {
      fill(large, kLarge, (uint64_t)(round + world_rank));
      MPI_Isend(large, kLarge, MPI_BYTE, right, 2, made, &sends[sent++]);
    }
    bool large_taken = false;
    int* next = calloc((size_t)world_size, sizeof *next);
    for (int i = 0; i < receives; ++i) {
      MPI_Status status;
      int flag = 0;
      while (!flag) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, made, &flag, &status);
        if (flag && status.MPI_TAG == 2) {  // the large one: taken out of turn
          MPI_Recv(incoming, kLarge, MPI_BYTE, left, 2, made, MPI_STATUS_IGNORE);
          large_taken = true;
          flag = 0;
        }
      }
      MPI_Recv(numbers[i], 3, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, made, &status);
      const int source = numbers[i][0];
      EXPECT(source == status.MPI_SOURCE && numbers[i][1] == round && numbers[i][2] == next[source],
             "message %d of round %d from %d, got %d of round %d from %d", next[source], round,
             status.MPI_SOURCE, numbers[i][2], numbers[i][1], source);
      ++next[source];
    }
    free(next);
    if (with_large) {
      if (!large_taken) MPI_Recv(incoming, kLarge, MPI_BYTE, left, 2, made, MPI_STATUS_IGNORE);
      EXPECT_CONTENTS(incoming, kLarge, round + left);
    }
    MPI_Waitall(sent, sends, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&made);
  }
  free(sends);
  free(numbers);
  free(incoming);
  free(large);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  hammer((int)argument(argc, argv, "rounds", 2000));
  return finish();
}
