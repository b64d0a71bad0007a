// SPDX-License-Identifier: BSD-3-Clause
// Receives and their communicator, freed before the messages come: the last message delivered ends
// the communicator, in the middle of the component's work. Where there are several links, small
// messages overtake large ones, wait for them and are then delivered one after the other.
#include <unistd.h>

#include "program.h"

enum {
  kRounds = 8,
  kGroups = 150,  // more than what one connection holds
  kPerGroup = 3,  // a large message, small ones
  kMessages = kGroups * kPerGroup,
  kLargeBytes = 60000,
  kTag = 5,
};

static int bytes_of(int i) { return i % kPerGroup == 0 ? kLargeBytes : 1; }

static volatile char incoming[kMessages][kLargeBytes];

// Carries no messages: probing here makes progress.
static MPI_Comm quiet;

static void receive(MPI_Comm copy) {
  for (int i = 0; i < kMessages; ++i) {
    MPI_Request request;
    incoming[i][bytes_of(i) - 1] = 0;
    MPI_Irecv((void*)incoming[i], bytes_of(i), MPI_BYTE, 0, kTag, copy, &request);
    MPI_Request_free(&request);
  }
  MPI_Comm_free(&copy);
  MPI_Barrier(MPI_COMM_WORLD);
  usleep(20000);
  for (int i = 0; i < kMessages; ++i)
    while (incoming[i][bytes_of(i) - 1] != 1) {
      int found = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, 0, quiet, &found, MPI_STATUS_IGNORE);
    }
}

static void send(MPI_Comm copy) {
  static char outgoing[kLargeBytes];
  static MPI_Request requests[kMessages];
  memset(outgoing, 1, sizeof outgoing);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kMessages; ++i)
    MPI_Isend(outgoing, bytes_of(i), MPI_BYTE, 1, kTag, copy, &requests[i]);
  MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE);
  MPI_Comm_free(&copy);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
  for (int round = 0; round < kRounds; ++round) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    (world_rank == 0 ? send : receive)(copy);
  }
  MPI_Comm_free(&quiet);
  return finish();
}
