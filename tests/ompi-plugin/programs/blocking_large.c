// SPDX-License-Identifier: BSD-3-Clause
// Blocking sends of large messages, which the receiver reads by itself or has the sender share in,
// by turns until it knows what is faster: contents, order and ends of messages are the same.
#include <unistd.h>

#include "program.h"

enum { kTag = 5, kRounds = 24, kLargest = 1 << 20 };
static const int kSizes[] = {32752, 32768, 40000, 65536, 100001, 262144, kLargest};
enum { kNumberOfSizes = sizeof kSizes / sizeof kSizes[0] };

static char* outgoing;
static char* incoming;

static void send(int bytes, int round) {
  fill(outgoing, (size_t)bytes, (uint64_t)round);
  MPI_Send(outgoing, bytes, MPI_BYTE, partner_rank(), kTag, MPI_COMM_WORLD);
  memset(outgoing, 0, (size_t)bytes);  // the data has left
}

static void check(const MPI_Status* status, int bytes, int round) {
  EXPECT_STATUS(*status, partner_rank(), kTag, bytes);
  EXPECT_CONTENTS(incoming, bytes, round);
  memset(incoming, 0, (size_t)bytes);
}

static void receive(int bytes, int round) {
  MPI_Status status;
  MPI_Recv(incoming, kLargest, MPI_BYTE, partner_rank(), kTag, MPI_COMM_WORLD, &status);
  check(&status, bytes, round);
}

static void there_and_back(int bytes) {
  for (int round = 0; round < kRounds; ++round) {
    if (world_rank % 2 == 0) {
      send(bytes, round);
      receive(bytes, round);
    } else {
      receive(bytes, round);
      send(bytes, round);
    }
  }
}

// Both send at once, so that each copies for itself and for the other.
static void exchange(int bytes) {
  for (int round = 0; round < kRounds; ++round) {
    fill(outgoing, (size_t)bytes, (uint64_t)round);
    MPI_Status status;
    MPI_Sendrecv(outgoing, bytes, MPI_BYTE, partner_rank(), kTag, incoming, kLargest, MPI_BYTE,
                 partner_rank(), kTag, MPI_COMM_WORLD, &status);
    check(&status, bytes, round);
  }
}

// The receiver takes the message and stays away from MPI, with the sender waiting, before it looks.
static void absent_receiver(int bytes) {
  for (int round = 0; round < kRounds / 4; ++round) {
    if (world_rank % 2 == 0) {
      send(bytes, round);
    } else {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Probe(partner_rank(), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Irecv(incoming, kLargest, MPI_BYTE, partner_rank(), kTag, MPI_COMM_WORLD, &request);
      usleep(2000);
      MPI_Status status;
      MPI_Wait(&request, &status);
      check(&status, bytes, round);
    }
  }
}

// Receives that are too short keep what fits and say so; the next message is whole again.
static void truncated(int bytes) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int round = 0; round < kRounds / 2; ++round) {
    if (world_rank % 2 == 0) {
      send(bytes, round);
      continue;
    }
    if (round % 2 == 0) {
      receive(bytes, round);
      continue;
    }
    const int room = bytes / 2;
    incoming[room] = 'x';
    MPI_Status status;
    const int error =
        MPI_Recv(incoming, room, MPI_BYTE, partner_rank(), kTag, MPI_COMM_WORLD, &status);
    int class = MPI_SUCCESS;
    MPI_Error_class(error, &class);
    EXPECT(class == MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE, got class %d", class);
    EXPECT(incoming[room] == 'x', "nothing written behind the buffer, got %d", incoming[room]);
    incoming[room] = 0;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  outgoing = allocate(kLargest);
  incoming = allocate(kLargest);
  for (int i = 0; i < kNumberOfSizes; ++i) {
    there_and_back(kSizes[i]);
    exchange(kSizes[i]);
    absent_receiver(kSizes[i]);
    truncated(kSizes[i]);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  free(incoming);
  free(outgoing);
  return finish();
}
