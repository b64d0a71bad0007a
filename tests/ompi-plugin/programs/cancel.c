// SPDX-License-Identifier: BSD-3-Clause
// Cancelling receives: an unmatched one leaves the queue without a trace, a matched one
// completes as if nothing had happened, and the order of the others is kept.
#include "program.h"

enum { kMaxBytes = 300000 };

static bool was_cancelled(const MPI_Status* status) {
  int cancelled = 0;
  MPI_Test_cancelled(status, &cancelled);
  return cancelled != 0;
}

static void unmatched_then_same_tag(int source, int tag) {
  const int partner = partner_rank();
  int first = -7, second = -7;
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Irecv(&first, 1, MPI_INT, source, tag, MPI_COMM_WORLD, &requests[0]);
  MPI_Cancel(&requests[0]);
  MPI_Wait(&requests[0], &status);
  EXPECT(was_cancelled(&status), "an unmatched receive to be cancelled");
  MPI_Irecv(&second, 1, MPI_INT, source, tag, MPI_COMM_WORLD, &requests[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&world_rank, 1, MPI_INT, partner, 12, MPI_COMM_WORLD);
  MPI_Wait(&requests[1], &status);
  EXPECT(!was_cancelled(&status), "the second receive not to be cancelled");
  EXPECT_STATUS(status, partner, 12, sizeof(int));
  EXPECT(second == partner && first == -7, "%d in the second receive only, got %d and %d", partner,
         second, first);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void matched(int bytes) {
  const int partner = partner_rank();
  char *outgoing = allocate((size_t)bytes), *incoming = allocate((size_t)bytes);
  MPI_Request send, receive;
  MPI_Status status;
  fill(outgoing, (size_t)bytes, (uint64_t)world_rank);
  MPI_Isend(outgoing, bytes, MPI_BYTE, partner, 13, MPI_COMM_WORLD, &send);
  // The message is here, so that the receive matches as it is posted.
  MPI_Probe(partner, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Irecv(incoming, bytes, MPI_BYTE, partner, 13, MPI_COMM_WORLD, &receive);
  MPI_Cancel(&receive);
  MPI_Wait(&receive, &status);
  EXPECT(!was_cancelled(&status), "a matched receive of %d bytes not to be cancelled", bytes);
  EXPECT_STATUS(status, partner, 13, bytes);
  EXPECT_CONTENTS(incoming, bytes, partner);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  free(incoming);
  free(outgoing);
}

// Random half of a queue is cancelled in random order; the rest must be filled in the
// order posted. Receives alternate between exact and wildcard.
static void out_of_a_queue(int depth, uint64_t seed) {
  const int partner = partner_rank();
  int* values = allocate((size_t)depth * sizeof(int));
  MPI_Request* requests = allocate((size_t)depth * sizeof *requests);
  bool* kept = allocate((size_t)depth * sizeof *kept);
  uint64_t random = seed;
  int* order = random_order(depth, &random);
  for (int i = 0; i < depth; ++i) {
    values[i] = -7;
    kept[i] = true;
    MPI_Irecv(&values[i], 1, MPI_INT, i % 3 == 0 ? MPI_ANY_SOURCE : partner,
              i % 5 == 0 ? MPI_ANY_TAG : 14, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = 0; i < depth / 2; ++i) {
    MPI_Status status;
    kept[order[i]] = false;
    MPI_Cancel(&requests[order[i]]);
    MPI_Wait(&requests[order[i]], &status);
    EXPECT(was_cancelled(&status), "receive %d to be cancelled", order[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const int remaining = depth - depth / 2;
  for (int i = 0; i < remaining; ++i) MPI_Send(&i, 1, MPI_INT, partner, 14, MPI_COMM_WORLD);
  int next = 0;
  for (int i = 0; i < depth; ++i) {
    if (!kept[i]) {
      EXPECT(values[i] == -7, "cancelled receive %d to stay untouched, got %d", i, values[i]);
      continue;
    }
    MPI_Status status;
    MPI_Wait(&requests[i], &status);
    EXPECT(!was_cancelled(&status) && values[i] == next, "message %d in receive %d, got %d", next,
           i, values[i]);
    ++next;
  }
  free(order);
  free(kept);
  free(requests);
  free(values);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Receives that race with their message: whichever way it goes, the message is
// received exactly once.
static void racing(int rounds, int bytes) {
  const int partner = partner_rank();
  char *outgoing = allocate((size_t)bytes), *incoming = allocate((size_t)bytes);
  for (int round = 0; round < rounds; ++round) {
    MPI_Request send, receive;
    MPI_Status status;
    fill(outgoing, (size_t)bytes, (uint64_t)(round + world_rank));
    MPI_Irecv(incoming, bytes, MPI_BYTE, partner, 15, MPI_COMM_WORLD, &receive);
    MPI_Isend(outgoing, bytes, MPI_BYTE, partner, 15, MPI_COMM_WORLD, &send);
    MPI_Cancel(&receive);
    MPI_Wait(&receive, &status);
    if (was_cancelled(&status))
      MPI_Recv(incoming, bytes, MPI_BYTE, partner, 15, MPI_COMM_WORLD, &status);
    EXPECT_STATUS(status, partner, 15, bytes);
    EXPECT_CONTENTS(incoming, bytes, round + partner);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
  free(incoming);
  free(outgoing);
}

// Cancel, then free without waiting: the receive must be gone all the same.
static void freed_after_cancel(void) {
  const int partner = partner_rank();
  int dropped = -7, value = -7;
  MPI_Request request;
  MPI_Irecv(&dropped, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Request_free(&request);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Sendrecv(&world_rank, 1, MPI_INT, partner, 16, &value, 1, MPI_INT, partner, 16,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT(value == partner && dropped == -7, "%d in the live receive, got %d and %d", partner, value,
         dropped);
  MPI_Barrier(MPI_COMM_WORLD);
}

// A send that cannot be cancelled must be delivered.
static void cancelled_send(int bytes) {
  const int partner = partner_rank();
  char *outgoing = allocate((size_t)bytes), *incoming = allocate((size_t)bytes);
  MPI_Request request;
  MPI_Status status;
  fill(outgoing, (size_t)bytes, (uint64_t)world_rank);
  MPI_Issend(outgoing, bytes, MPI_BYTE, partner, 17, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  int theirs_cancelled = 0, mine_cancelled = 0, done = 0;
  MPI_Request_get_status(request, &done, &status);
  if (done) mine_cancelled = was_cancelled(&status);
  MPI_Sendrecv(&mine_cancelled, 1, MPI_INT, partner, 18, &theirs_cancelled, 1, MPI_INT, partner, 18,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!theirs_cancelled) {
    MPI_Recv(incoming, bytes, MPI_BYTE, partner, 17, MPI_COMM_WORLD, &status);
    EXPECT_CONTENTS(incoming, bytes, partner);
  }
  MPI_Wait(&request, &status);
  EXPECT(was_cancelled(&status) == (mine_cancelled != 0),
         "one answer to whether a send is cancelled");
  free(incoming);
  free(outgoing);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int partner = partner_rank();
  for (int i = 0; i < 20; ++i) {
    unmatched_then_same_tag(partner, 12);
    unmatched_then_same_tag(MPI_ANY_SOURCE, 12);
    unmatched_then_same_tag(partner, MPI_ANY_TAG);
    unmatched_then_same_tag(MPI_ANY_SOURCE, MPI_ANY_TAG);
    freed_after_cancel();
  }
  static const int kBytes[] = {0, 8, 4000, 40000, kMaxBytes};
  for (size_t i = 0; i < sizeof kBytes / sizeof kBytes[0]; ++i) {
    matched(kBytes[i]);
    racing(200, kBytes[i]);
    cancelled_send(kBytes[i]);
  }
  for (int depth = 1; depth <= 3000; depth = depth * 2 + 1) out_of_a_queue(depth, (uint64_t)depth);
  return finish();
}
