// SPDX-License-Identifier: BSD-3-Clause
// Non-overtaking: exact and wildcard receives share one order, posted or late, for
// eager and rendezvous messages alike. With one sender the outcome is determined, so
// that a list of receives and a list of messages foretell who gets what.
#include "program.h"

enum { kMessages = 400, kTags = 3, kMaxBytes = 200000 };

struct receive {
  int source, tag;
  int gets;  // message foretold
  bool posted_early;
};

static int message_tag[kMessages], message_bytes[kMessages];
static struct receive receives[kMessages];

static bool accepts(const struct receive* receive, int message) {
  return receive->tag == MPI_ANY_TAG || receive->tag == message_tag[message];
}

// Early receives are all posted before the first message is sent, late ones after the
// last has arrived.
static void foretell(int early) {
  bool taken[kMessages] = {false};
  for (int i = 0; i < kMessages; ++i) receives[i].gets = -1;
  for (int m = 0; m < kMessages; ++m)
    for (int r = 0; r < early && !taken[m]; ++r)
      if (receives[r].gets < 0 && accepts(&receives[r], m)) {
        receives[r].gets = m;
        taken[m] = true;
      }
  for (int r = early; r < kMessages; ++r)
    for (int m = 0; m < kMessages && receives[r].gets < 0; ++m)
      if (!taken[m] && accepts(&receives[r], m)) {
        receives[r].gets = m;
        taken[m] = true;
      }
}

static void one_sender(uint64_t seed, int early, int large_percent) {
  const int partner = partner_rank();
  uint64_t random = seed;
  for (int i = 0; i < kMessages; ++i) {
    message_tag[i] = random_below(&random, kTags);
    message_bytes[i] = random_below(&random, 100) < large_percent ? random_below(&random, kMaxBytes)
                                                                  : 4 + random_below(&random, 60);
    receives[i].source = random_below(&random, 2) == 0 ? MPI_ANY_SOURCE : partner;
    receives[i].tag = random_below(&random, 2) == 0 ? MPI_ANY_TAG : random_below(&random, kTags);
  }
  foretell(early);
  // A receive that would starve takes anything instead, until all are satisfied.
  for (bool starved = true; starved;) {
    starved = false;
    for (int r = 0; r < kMessages; ++r)
      if (receives[r].gets < 0) {
        receives[r].tag = MPI_ANY_TAG;
        starved = true;
      }
    if (starved) foretell(early);
  }

  static MPI_Request posted[kMessages], sent[kMessages];
  static char *incoming[kMessages], *outgoing[kMessages];
  for (int r = 0; r < kMessages; ++r) incoming[r] = allocate(kMaxBytes);
  for (int r = 0; r < early; ++r)
    MPI_Irecv(incoming[r], kMaxBytes, MPI_BYTE, receives[r].source, receives[r].tag, MPI_COMM_WORLD,
              &posted[r]);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int m = 0; m < kMessages; ++m) {
    outgoing[m] = allocate((size_t)message_bytes[m]);
    fill(outgoing[m], (size_t)message_bytes[m], (uint64_t)m);
    MPI_Isend(outgoing[m], message_bytes[m], MPI_BYTE, partner, message_tag[m], MPI_COMM_WORLD,
              &sent[m]);
  }
  // The barrier's messages follow the others on the same path only where there is one;
  // an extra message of the same communicator is ordered in every case.
  MPI_Sendrecv(NULL, 0, MPI_BYTE, partner, kTags, NULL, 0, MPI_BYTE, partner, kTags, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (int r = early; r < kMessages; ++r)
    MPI_Irecv(incoming[r], kMaxBytes, MPI_BYTE, receives[r].source, receives[r].tag, MPI_COMM_WORLD,
              &posted[r]);
  for (int r = 0; r < kMessages; ++r) {
    MPI_Status status;
    const int m = receives[r].gets;
    MPI_Wait(&posted[r], &status);
    EXPECT_STATUS(status, partner, message_tag[m], message_bytes[m]);
    EXPECT_CONTENTS(incoming[r], message_bytes[m], m);
  }
  MPI_Waitall(kMessages, sent, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kMessages; ++i) free(incoming[i]), free(outgoing[i]);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Every other rank sends a numbered sequence to rank 0, which takes them through any
// source: of each source in order.
static void many_senders(int count, bool any_tag) {
  if (world_rank == 0) {
    const int total = count * (world_size - 1);
    int* next = calloc((size_t)world_size, sizeof *next);
    int(*numbers)[2] = allocate((size_t)total * sizeof *numbers);
    MPI_Request* requests = allocate((size_t)total * sizeof *requests);
    for (int i = 0; i < total; ++i)
      MPI_Irecv(numbers[i], 2, MPI_INT, MPI_ANY_SOURCE, any_tag ? MPI_ANY_TAG : 1, MPI_COMM_WORLD,
                &requests[i]);
    for (int i = 0; i < total; ++i) {
      MPI_Status status;
      MPI_Wait(&requests[i], &status);
      const int source = numbers[i][0];
      EXPECT(status.MPI_SOURCE == source, "status to name source %d, got %d", source,
             status.MPI_SOURCE);
      EXPECT(numbers[i][1] == next[source], "message %d of source %d, got %d", next[source], source,
             numbers[i][1]);
      ++next[source];
    }
    free(requests);
    free(numbers);
    free(next);
  } else {
    for (int i = 0; i < count; ++i) {
      const int number[2] = {world_rank, i};
      MPI_Send(number, 2, MPI_INT, 0, any_tag ? i % 7 : 1, MPI_COMM_WORLD);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  uint64_t seed = 1;
  for (int early = 0; early <= kMessages; early += kMessages / 4)
    for (int large_percent = 0; large_percent <= 60; large_percent += 30)
      one_sender(seed++, early, large_percent);
  many_senders(3000, false);
  many_senders(3000, true);
  return finish();
}
