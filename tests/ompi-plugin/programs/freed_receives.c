// SPDX-License-Identifier: BSD-3-Clause
// Receives and their communicator, freed before the messages come: the last message delivered ends
// the communicator, in the middle of the component's work. Where there are several links, messages
// overtake each other, wait for their turn and are then delivered one after the other.
#include "program.h"

enum { kRounds = 300, kMessages = 8, kTag = 5 };

static volatile char incoming[kMessages];

// Carries no messages: probing here makes progress.
static MPI_Comm quiet;

static void receive(MPI_Comm copy) {
  for (int i = 0; i < kMessages; ++i) {
    MPI_Request request;
    incoming[i] = 0;
    MPI_Irecv((void*)&incoming[i], 1, MPI_BYTE, 0, kTag, copy, &request);
    MPI_Request_free(&request);
  }
  MPI_Comm_free(&copy);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kMessages; ++i)
    while (incoming[i] != 1) {
      int found = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, 0, quiet, &found, MPI_STATUS_IGNORE);
    }
}

// Synchronous sends take the links in turn.
static void send(MPI_Comm copy) {
  const char outgoing = 1;
  MPI_Request requests[kMessages];
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < kMessages; ++i)
    MPI_Issend(&outgoing, 1, MPI_BYTE, 1, kTag, copy, &requests[i]);
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
