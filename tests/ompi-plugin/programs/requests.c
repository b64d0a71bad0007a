// SPDX-License-Identifier: BSD-3-Clause
// Completing requests in every way: Wait, Test, all, any, some, in mixtures with null
// requests; freeing requests that are still active.
#include "program.h"

enum { kCount = 48, kMaxBytes = 100000 };
static char *outgoing[kCount], *incoming[kCount];
static MPI_Request requests[2 * kCount + 2];  // receives, sends, two nulls
static bool done[2 * kCount + 2];

static int bytes_of(int i) { return i % 4 == 3 ? kMaxBytes - i : 64 * i; }

static void start_all(uint64_t seed) {
  uint64_t random = seed;
  int* order = random_order(kCount, &random);
  for (int i = 0; i < kCount; ++i) {
    memset(incoming[i], 0xEE, (size_t)bytes_of(i));
    fill(outgoing[i], (size_t)bytes_of(i), seed * 100 + (uint64_t)(i + world_rank));
    MPI_Irecv(incoming[i], bytes_of(i), MPI_BYTE, i % 2 == 0 ? partner_rank() : MPI_ANY_SOURCE, i,
              MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = 0; i < kCount; ++i)
    (order[i] % 5 == 0 ? MPI_Issend : MPI_Isend)(outgoing[order[i]], bytes_of(order[i]), MPI_BYTE,
                                                 partner_rank(), order[i], MPI_COMM_WORLD,
                                                 &requests[kCount + order[i]]);
  requests[2 * kCount] = requests[2 * kCount + 1] = MPI_REQUEST_NULL;
  memset(done, 0, sizeof done);
  free(order);
}

static void completed(int index, const MPI_Status* status, uint64_t seed) {
  EXPECT(index >= 0 && index < 2 * kCount && !done[index], "a request not seen before, got %d",
         index);
  EXPECT(requests[index] == MPI_REQUEST_NULL, "request %d to become null", index);
  done[index] = true;
  if (index >= kCount) return;
  EXPECT_STATUS(*status, partner_rank(), index, bytes_of(index));
  EXPECT_CONTENTS(incoming[index], bytes_of(index),
                  seed * 100 + (uint64_t)(index + partner_rank()));
}

enum way { kWait, kTest, kWaitany, kTestany, kWaitsome, kTestsome, kTestall, kWays };

static void complete_by(enum way way, uint64_t seed) {
  enum { kAll = 2 * kCount + 2 };
  int indices[kAll];
  MPI_Status statuses[kAll];
  start_all(seed);
  for (int remaining = 2 * kCount; remaining > 0;) {
    int index = 2 * kCount - remaining, flag = 1, count = 0;
    switch (way) {
      case kWait:
        MPI_Wait(&requests[index], &statuses[0]);
        break;
      case kTest:
        MPI_Test(&requests[index], &flag, &statuses[0]);
        break;
      case kWaitany:
        MPI_Waitany(kAll, requests, &index, &statuses[0]);
        break;
      case kTestany:
        MPI_Testany(kAll, requests, &index, &flag, &statuses[0]);
        break;
      case kWaitsome:
        MPI_Waitsome(kAll, requests, &count, indices, statuses);
        EXPECT(count > 0, "MPI_Waitsome to complete something, got %d", count);
        break;
      case kTestsome:
        MPI_Testsome(kAll, requests, &count, indices, statuses);
        break;
      default:
        MPI_Testall(kAll, requests, &flag, statuses);
        if (!flag) continue;
        for (index = 0; index < 2 * kCount; ++index) completed(index, &statuses[index], seed);
        return;
    }
    if (way == kWaitsome || way == kTestsome) {
      for (int i = 0; i < count; ++i) completed(indices[i], &statuses[i], seed);
      remaining -= count;
    } else if (flag) {
      completed(index, &statuses[0], seed);
      --remaining;
    }
  }
  int index = 0;
  MPI_Waitany(kAll, requests, &index, MPI_STATUS_IGNORE);
  EXPECT(index == MPI_UNDEFINED, "MPI_UNDEFINED once all are complete, got %d", index);
}

// MPI_Request_get_status tells without completing.
static void status_without_completion(void) {
  int value = -1, flag = 0;
  MPI_Request receive, send;
  MPI_Status status;
  MPI_Irecv(&value, 1, MPI_INT, partner_rank(), 1, MPI_COMM_WORLD, &receive);
  MPI_Request_get_status(receive, &flag, &status);
  EXPECT(!flag, "an incomplete receive");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Isend(&world_rank, 1, MPI_INT, partner_rank(), 1, MPI_COMM_WORLD, &send);
  while (!flag) MPI_Request_get_status(receive, &flag, &status);
  EXPECT(receive != MPI_REQUEST_NULL, "the request to stay after MPI_Request_get_status");
  EXPECT_STATUS(status, partner_rank(), 1, sizeof(int));
  MPI_Wait(&receive, &status);
  EXPECT_STATUS(status, partner_rank(), 1, sizeof(int));
  MPI_Wait(&send, MPI_STATUS_IGNORE);
}

// A freed send still delivers; a reply shows when its buffer may go.
static void freed_sends(int bytes) {
  enum { kFreed = 100 };
  const int partner = partner_rank();
  char *out = allocate((size_t)bytes), *in = allocate((size_t)bytes);
  fill(out, (size_t)bytes, (uint64_t)world_rank);
  for (int i = 0; i < kFreed; ++i) {
    MPI_Request request;
    (i % 2 == 0 ? MPI_Isend : MPI_Issend)(out, bytes, MPI_BYTE, partner, i, MPI_COMM_WORLD,
                                          &request);
    MPI_Request_free(&request);
    EXPECT(request == MPI_REQUEST_NULL, "MPI_REQUEST_NULL after MPI_Request_free");
  }
  for (int i = kFreed - 1; i >= 0; --i) {
    memset(in, 0, (size_t)bytes);
    MPI_Recv(in, bytes, MPI_BYTE, partner, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_CONTENTS(in, bytes, partner);
  }
  MPI_Sendrecv(NULL, 0, MPI_BYTE, partner, kFreed, NULL, 0, MPI_BYTE, partner, kFreed,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  free(in);
  free(out);
}

// A freed receive is still filled, in its turn.
static void freed_receive(int bytes) {
  const int partner = partner_rank();
  char* out = allocate((size_t)bytes);
  volatile char* in = allocate((size_t)bytes);
  MPI_Request request;
  MPI_Irecv((void*)in, bytes, MPI_BYTE, partner, 5, MPI_COMM_WORLD, &request);
  MPI_Request_free(&request);
  MPI_Barrier(MPI_COMM_WORLD);
  memset(out, 0x77, (size_t)bytes);
  MPI_Isend(out, bytes, MPI_BYTE, partner, 5, MPI_COMM_WORLD, &request);
  while (in[bytes - 1] != 0x77 || in[0] != 0x77) {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(all_bytes_are((const void*)in, (size_t)bytes, 0x77), "a freed receive to be filled");
  free((void*)in);
  free(out);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  for (int i = 0; i < kCount; ++i) {
    outgoing[i] = allocate(kMaxBytes);
    incoming[i] = allocate(kMaxBytes);
  }
  uint64_t seed = 1;
  for (int repeat = 0; repeat < 15; ++repeat)
    for (enum way way = kWait; way < kWays; ++way) complete_by(way, seed++);
  for (int i = 0; i < 100; ++i) status_without_completion();
  freed_sends(0);
  freed_sends(100);
  freed_sends(20000);
  freed_sends(200000);
  freed_receive(8);
  freed_receive(3000);
  freed_receive(200000);
  for (int i = 0; i < kCount; ++i) {
    free(outgoing[i]);
    free(incoming[i]);
  }
  return finish();
}
