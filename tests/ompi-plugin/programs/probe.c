// SPDX-License-Identifier: BSD-3-Clause
// The probe family: what is found is the oldest fitting message, a matched probe takes
// it out of reach of everything else, and MPI_PROC_NULL answers at once.
#include "program.h"

enum { kLarge = 300000 };
static char *outgoing, *incoming;

static void send_numbered(int count, int bytes, MPI_Request* requests) {
  for (int i = 0; i < count; ++i)
    MPI_Isend(outgoing + i, bytes, MPI_BYTE, partner_rank(), i, MPI_COMM_WORLD, &requests[i]);
}

static void expect_bytes(int number, int bytes) {
  EXPECT(memcmp(incoming, outgoing + number, (size_t)bytes) == 0, "the contents of message %d",
         number);
}

// Nothing may be found once everything sent has been received.
static void expect_nothing(void) {
  int found = 0;
  MPI_Message message;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  EXPECT(!found, "MPI_Iprobe to find nothing");
  MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &message, MPI_STATUS_IGNORE);
  EXPECT(!found, "MPI_Improbe to find nothing");
}

static void probe_then_receive(int bytes) {
  const int partner = partner_rank(), count = 6;
  MPI_Request requests[6];
  MPI_Status status;
  send_numbered(count, bytes, requests);
  // Exact probes out of order, twice each: a probe leaves the message where it is.
  for (int i = count - 1; i >= 3; --i) {
    for (int twice = 0; twice < 2; ++twice) {
      MPI_Probe(twice == 0 ? MPI_ANY_SOURCE : partner, i, MPI_COMM_WORLD, &status);
      EXPECT_STATUS(status, partner, i, bytes);
    }
    MPI_Recv(incoming, bytes, MPI_BYTE, partner, i, MPI_COMM_WORLD, &status);
    EXPECT_STATUS(status, partner, i, bytes);
    expect_bytes(i, bytes);
  }
  // Wildcard probes see the oldest.
  for (int i = 0; i < 3; ++i) {
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    EXPECT_STATUS(status, partner, i, bytes);
    int found = 0;
    MPI_Iprobe(partner, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &status);
    EXPECT(found, "MPI_Iprobe to find message %d", i);
    EXPECT_STATUS(status, partner, i, bytes);
    MPI_Recv(incoming, bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
    EXPECT_STATUS(status, partner, i, bytes);
    expect_bytes(i, bytes);
  }
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  expect_nothing();
  MPI_Barrier(MPI_COMM_WORLD);
}

static void matched_probes(int bytes) {
  enum { kCount = 6 };
  const int partner = partner_rank();
  MPI_Request requests[kCount], receives[2];
  MPI_Message messages[kCount];
  MPI_Status status;
  send_numbered(kCount, bytes, requests);
  for (int i = 0; i < kCount; ++i) {
    if (i % 2 == 0) {
      MPI_Mprobe(i < 3 ? MPI_ANY_SOURCE : partner, MPI_ANY_TAG, MPI_COMM_WORLD, &messages[i],
                 &status);
    } else {
      int found = 0;
      while (!found)
        MPI_Improbe(MPI_ANY_SOURCE, i < 3 ? MPI_ANY_TAG : i, MPI_COMM_WORLD, &found, &messages[i],
                    &status);
    }
    EXPECT_STATUS(status, partner, i, bytes);
  }
  // All are taken: no probe and no receive can see them any more.
  expect_nothing();
  for (int i = kCount - 1; i >= 2; --i) {
    MPI_Mrecv(incoming, bytes, MPI_BYTE, &messages[i], &status);
    EXPECT(messages[i] == MPI_MESSAGE_NULL, "MPI_MESSAGE_NULL after MPI_Mrecv");
    EXPECT_STATUS(status, partner, i, bytes);
    expect_bytes(i, bytes);
  }
  char* buffers[2] = {allocate((size_t)bytes), allocate((size_t)bytes)};
  for (int i = 0; i < 2; ++i) {
    MPI_Imrecv(buffers[i], bytes, MPI_BYTE, &messages[i], &receives[i]);
    EXPECT(messages[i] == MPI_MESSAGE_NULL, "MPI_MESSAGE_NULL after MPI_Imrecv");
  }
  MPI_Status statuses[2];
  MPI_Waitall(2, receives, statuses);
  for (int i = 0; i < 2; ++i) {
    EXPECT_STATUS(statuses[i], partner, i, bytes);
    EXPECT(memcmp(buffers[i], outgoing + i, (size_t)bytes) == 0, "the contents of message %d", i);
    free(buffers[i]);
  }
  MPI_Waitall(kCount, requests, MPI_STATUSES_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

// A synchronous send is complete only when the matched message is received.
static void synchronous_send_waits_for_mrecv(int bytes) {
  const int partner = partner_rank();
  MPI_Request request;
  MPI_Message message;
  MPI_Status status;
  MPI_Issend(outgoing, bytes, MPI_BYTE, partner, 3, MPI_COMM_WORLD, &request);
  MPI_Mprobe(partner, 3, MPI_COMM_WORLD, &message, &status);
  MPI_Mrecv(incoming, bytes, MPI_BYTE, &message, &status);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_STATUS(status, partner, 3, bytes);
  expect_bytes(0, bytes);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Matched receive into a strided layout.
static void mrecv_into_layout(void) {
  enum { kInts = 5000 };
  const int partner = partner_rank();
  int *numbers = allocate(kInts * sizeof(int)), *spread = allocate(2 * kInts * sizeof(int));
  for (int i = 0; i < kInts; ++i) numbers[i] = i;
  MPI_Datatype layout;
  MPI_Type_vector(kInts, 1, 2, MPI_INT, &layout);
  MPI_Type_commit(&layout);
  MPI_Request request;
  MPI_Message message;
  MPI_Isend(numbers, kInts, MPI_INT, partner, 4, MPI_COMM_WORLD, &request);
  MPI_Mprobe(partner, 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(spread, 1, layout, &message, MPI_STATUS_IGNORE);
  for (int i = 0; i < kInts; ++i)
    EXPECT(spread[2 * i] == i, "%d in place %d, got %d", i, 2 * i, spread[2 * i]);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Type_free(&layout);
  free(spread);
  free(numbers);
}

static void proc_null(void) {
  MPI_Status status;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Request request;
  int found = 0;
  MPI_Probe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &status);
  EXPECT_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
  MPI_Iprobe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &found, &status);
  EXPECT(found, "MPI_Iprobe of MPI_PROC_NULL to succeed");
  EXPECT_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
  MPI_Mprobe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &message, &status);
  EXPECT(message == MPI_MESSAGE_NO_PROC, "MPI_MESSAGE_NO_PROC from MPI_Mprobe");
  EXPECT_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
  MPI_Mrecv(incoming, 10, MPI_BYTE, &message, &status);
  EXPECT(message == MPI_MESSAGE_NULL, "MPI_MESSAGE_NULL after MPI_Mrecv");
  EXPECT_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
  found = 0;
  MPI_Improbe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &found, &message, &status);
  EXPECT(found && message == MPI_MESSAGE_NO_PROC, "MPI_MESSAGE_NO_PROC from MPI_Improbe");
  MPI_Imrecv(incoming, 10, MPI_BYTE, &message, &request);
  MPI_Wait(&request, &status);
  EXPECT(message == MPI_MESSAGE_NULL, "MPI_MESSAGE_NULL after MPI_Imrecv");
  EXPECT_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  outgoing = allocate(kLarge + 64);
  incoming = allocate(kLarge + 64);
  fill(outgoing, kLarge + 64, 1);
  static const int kBytes[] = {0, 1, 100, 4090, 40000, kLarge};
  for (size_t i = 0; i < sizeof kBytes / sizeof kBytes[0]; ++i) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      probe_then_receive(kBytes[i]);
      matched_probes(kBytes[i]);
      synchronous_send_waits_for_mrecv(kBytes[i]);
    }
  }
  mrecv_into_layout();
  proc_null();
  free(incoming);
  free(outgoing);
  return finish();
}
