// SPDX-License-Identifier: BSD-3-Clause
// Persistent requests: started in part, all at once, again and again; waited for
// while inactive; cancelled and restarted; with changing contents under a send
// that MPI has completed but the transport may still hold.
#include "program.h"

enum { kPairs = 8, kMaxBytes = 200000 };
static const int kBytes[kPairs] = {0, 4, 1000, 4040, 5000, 33000, 66000, kMaxBytes};

static char *outgoing[kPairs], *incoming[kPairs];
static MPI_Request requests[2 * kPairs];  // receives, then sends

static uint64_t contents(int rank, int pair, int round) {
  return (uint64_t)rank * 1000003u + (uint64_t)pair * 1009u + (uint64_t)round;
}

static void expect_empty(const MPI_Status* status) {
  EXPECT_STATUS(*status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
}

static void expect_pair(const MPI_Status* status, int partner, int pair, int round) {
  EXPECT_STATUS(*status, partner, pair, kBytes[pair]);
  EXPECT_CONTENTS(incoming[pair], kBytes[pair], contents(partner, pair, round));
}

static void prepare(int pair, int round) {
  fill(outgoing[pair], (size_t)kBytes[pair], contents(world_rank, pair, round));
  memset(incoming[pair], 0xEE, (size_t)kBytes[pair]);
}

static void inactive_requests_are_complete(void) {
  MPI_Status statuses[2 * kPairs];
  int flag = 0, index = 0;
  MPI_Wait(&requests[0], &statuses[0]);
  expect_empty(&statuses[0]);
  MPI_Test(&requests[kPairs], &flag, &statuses[0]);
  EXPECT(flag, "an inactive request to test as complete");
  expect_empty(&statuses[0]);
  MPI_Waitall(2 * kPairs, requests, statuses);
  for (int i = 0; i < 2 * kPairs; ++i) expect_empty(&statuses[i]);
  MPI_Waitany(2 * kPairs, requests, &index, &statuses[0]);
  EXPECT(index == MPI_UNDEFINED, "MPI_UNDEFINED from inactive requests, got %d", index);
}

// Both partners draw the same subset; the rest stays inactive inside the list.
static void partly_started(int rounds) {
  const int partner = partner_rank();
  uint64_t random = 42;
  for (int round = 0; round < rounds; ++round) {
    const int chosen = random_below(&random, 1 << kPairs);
    const bool send_first = random_below(&random, 2) != 0;
    for (int half = 0; half < 2; ++half) {
      const int offset = ((half == 0) == send_first) ? kPairs : 0;
      for (int pair = 0; pair < kPairs; ++pair) {
        if ((chosen >> pair & 1) == 0) continue;
        if (half == 0) prepare(pair, round);
        MPI_Start(&requests[offset + pair]);
      }
    }
    MPI_Status statuses[2 * kPairs];
    MPI_Waitall(2 * kPairs, requests, statuses);
    for (int pair = 0; pair < kPairs; ++pair) {
      if (chosen >> pair & 1)
        expect_pair(&statuses[pair], partner, pair, round);
      else
        expect_empty(&statuses[pair]);
    }
  }
}

static void all_started(int rounds) {
  const int partner = partner_rank();
  for (int round = 0; round < rounds; ++round) {
    MPI_Status statuses[2 * kPairs];
    for (int pair = 0; pair < kPairs; ++pair) prepare(pair, round);
    MPI_Startall(2 * kPairs, requests);
    MPI_Waitall(2 * kPairs, requests, statuses);
    for (int pair = 0; pair < kPairs; ++pair) expect_pair(&statuses[pair], partner, pair, round);
  }
}

static void drained_by_waitsome(int rounds) {
  const int partner = partner_rank();
  for (int round = 0; round < rounds; ++round) {
    for (int pair = 0; pair < kPairs; ++pair) prepare(pair, round);
    MPI_Startall(2 * kPairs, requests);
    for (int remaining = 2 * kPairs; remaining > 0;) {
      int count = 0, indices[2 * kPairs];
      MPI_Status statuses[2 * kPairs];
      MPI_Waitsome(2 * kPairs, requests, &count, indices, statuses);
      EXPECT(count > 0 && count <= remaining, "1 to %d completions, got %d", remaining, count);
      for (int i = 0; i < count; ++i)
        if (indices[i] < kPairs) expect_pair(&statuses[i], partner, indices[i], round);
      remaining -= count;
    }
  }
}

// A send is complete for MPI once its data is buffered; restarting it at once with
// new contents must neither change nor delay the message still under way.
static void restarted_at_once(int bytes, int rounds) {
  const int partner = partner_rank();
  if (partner == world_rank) return;
  char* buffer = allocate((size_t)bytes);
  MPI_Request request;
  if (world_rank < partner) {
    MPI_Send_init(buffer, bytes, MPI_BYTE, partner, 77, MPI_COMM_WORLD, &request);
    for (int round = 0; round < rounds; ++round) {
      fill(buffer, (size_t)bytes, (uint64_t)round);
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      memset(buffer, 0x55, (size_t)bytes);
    }
  } else {
    MPI_Recv_init(buffer, bytes, MPI_BYTE, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &request);
    for (int round = 0; round < rounds; ++round) {
      MPI_Status status;
      MPI_Start(&request);
      MPI_Wait(&request, &status);
      EXPECT_STATUS(status, partner, 77, bytes);
      EXPECT_CONTENTS(buffer, bytes, round);
    }
  }
  MPI_Request_free(&request);
  free(buffer);
}

static void cancelled_and_restarted(void) {
  int value = -1;
  MPI_Request request;
  MPI_Recv_init(&value, 1, MPI_INT, MPI_ANY_SOURCE, 88, MPI_COMM_SELF, &request);
  for (int round = 0; round < 20; ++round) {
    MPI_Status status;
    int cancelled = 0;
    MPI_Start(&request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    EXPECT(cancelled, "an unmatched persistent receive to be cancelled in round %d", round);
    MPI_Start(&request);
    MPI_Send(&round, 1, MPI_INT, 0, 88, MPI_COMM_SELF);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    EXPECT(!cancelled && value == round, "%d in a restarted receive, got %d (cancelled: %d)", round,
           value, cancelled);
  }
  MPI_Request_free(&request);
}

// Freeing an active request lets it finish.
static void freed_while_active(void) {
  const int partner = partner_rank();
  int value = world_rank, got = -1;
  MPI_Request request;
  MPI_Ssend_init(&value, 1, MPI_INT, partner, 99, MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  MPI_Request_free(&request);
  MPI_Recv(&got, 1, MPI_INT, partner, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT(got == partner, "%d from a freed active send, got %d", partner, got);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int partner = partner_rank();
  for (int pair = 0; pair < kPairs; ++pair) {
    outgoing[pair] = allocate(kMaxBytes);
    incoming[pair] = allocate(kMaxBytes);
    const int source = pair % 3 == 2 ? MPI_ANY_SOURCE : partner;
    MPI_Recv_init(incoming[pair], kBytes[pair], MPI_BYTE, source, pair, MPI_COMM_WORLD,
                  &requests[pair]);
    // Self-sends of synchronous mode work too: every start is nonblocking.
    (pair % 2 == 0 ? MPI_Send_init : MPI_Ssend_init)(outgoing[pair], kBytes[pair], MPI_BYTE,
                                                     partner, pair, MPI_COMM_WORLD,
                                                     &requests[kPairs + pair]);
  }
  inactive_requests_are_complete();
  partly_started(200);
  all_started(100);
  drained_by_waitsome(50);
  inactive_requests_are_complete();
  for (int i = 0; i < 2 * kPairs; ++i) {
    MPI_Request_free(&requests[i]);
    EXPECT(requests[i] == MPI_REQUEST_NULL, "MPI_REQUEST_NULL after MPI_Request_free");
  }
  restarted_at_once(8, 2000);
  restarted_at_once(3000, 1000);
  restarted_at_once(60000, 300);
  restarted_at_once(500000, 30);
  cancelled_and_restarted();
  freed_while_active();
  for (int pair = 0; pair < kPairs; ++pair) {
    free(outgoing[pair]);
    free(incoming[pair]);
  }
  return finish();
}
