// SPDX-License-Identifier: BSD-3-Clause
// Rank 0 is flooded with messages that it does not receive, only makes progress, until the flood
// has come in or stands still; then it receives all of them, in order and probing now and then. Its
// memory never exceeds the limit and a header per outstanding send.
//
//   bytes=N     of a message
//   total=N     bytes that are sent to rank 0 altogether
//   window=N    nonblocking sends that each sender has outstanding; 0: blocking sends
//   limit=N     pml_tagline_unexpected_limit in bytes; 0: memory has to grow with the flood instead
//   patience=N  milliseconds after which a flood that does not grow stands still
#include <time.h>

#include "program.h"

enum {
  kTags = 1000,
  kHeaderBytes = 512,  // what a stored header may cost, its place in the queue included
};

// Carries no messages: probing here makes progress and searches nothing.
static MPI_Comm quiet;

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Memory of this process alone: shared segments of the transports do not count.
static long resident_bytes(void) {
  FILE* status = fopen("/proc/self/status", "r");
  EXPECT(status != NULL, "/proc/self/status to read");
  char line[256];
  long kibibytes = -1;
  while (fgets(line, sizeof line, status) != NULL)
    if (sscanf(line, "RssAnon: %ld", &kibibytes) == 1) break;
  fclose(status);
  EXPECT(kibibytes >= 0, "RssAnon in /proc/self/status");
  return kibibytes * 1024;
}

static long most_resident;

static void watch_memory(void) {
  const long now = resident_bytes();
  if (now > most_resident) most_resident = now;
}

static void send_flood(long count, int bytes, int window) {
  const int kept = window > 0 ? window : 1;
  char* buffers = allocate((size_t)kept * (size_t)bytes);
  MPI_Request* requests = allocate((size_t)kept * sizeof *requests);
  for (int i = 0; i < kept; ++i) requests[i] = MPI_REQUEST_NULL;
  for (long i = 0; i < count; ++i) {
    const int slot = (int)(i % kept);
    char* buffer = buffers + (size_t)slot * (size_t)bytes;
    MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
    fill(buffer, (size_t)bytes, (uint64_t)(world_rank + i));
    if (window > 0)
      MPI_Isend(buffer, bytes, MPI_BYTE, 0, (int)(i % kTags), MPI_COMM_WORLD, &requests[slot]);
    else
      MPI_Send(buffer, bytes, MPI_BYTE, 0, (int)(i % kTags), MPI_COMM_WORLD);
  }
  MPI_Waitall(kept, requests, MPI_STATUSES_IGNORE);
  free(requests);
  free(buffers);
}

// Returns when nothing more comes in.
static void let_it_come(double patience) {
  double last_growth = seconds();
  while (seconds() < last_growth + patience) {
    int found = 0;
    for (int i = 0; i < 200; ++i) MPI_Iprobe(MPI_ANY_SOURCE, 0, quiet, &found, MPI_STATUS_IGNORE);
    EXPECT(!found, "no message on a communicator that nobody uses");
    const long before = most_resident;
    watch_memory();
    if (most_resident > before) last_growth = seconds();
  }
}

static void receive_one(char* buffer, int bytes, int from, long i) {
  MPI_Status status;
  const int tag = (int)(i % kTags);
  if (i % 97 == 0) {
    MPI_Probe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    EXPECT_STATUS(status, from, tag, bytes);
  }
  if (i % 89 == 0) {
    MPI_Message message;
    MPI_Mprobe(from, tag, MPI_COMM_WORLD, &message, &status);
    EXPECT_STATUS(status, from, tag, bytes);
    MPI_Mrecv(buffer, bytes, MPI_BYTE, &message, &status);
  } else {
    MPI_Recv(buffer, bytes, MPI_BYTE, from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  }
  EXPECT_STATUS(status, from, tag, bytes);
  EXPECT_CONTENTS(buffer, bytes, from + i);
}

static void receive_flood(long count, int bytes) {
  char* buffer = allocate((size_t)bytes);
  for (long i = 0; i < count; ++i) {
    for (int from = 1; from < world_size; ++from) receive_one(buffer, bytes, from, i);
    if (i % 64 == 0) watch_memory();
  }
  free(buffer);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int bytes = (int)argument(argc, argv, "bytes", 1024);
  const long total = argument(argc, argv, "total", 64L << 20);
  const int window = (int)argument(argc, argv, "window", 0);
  const long limit = argument(argc, argv, "limit", 0);
  const long count = total / bytes / (world_size - 1);
  MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank != 0) {
    send_flood(count, bytes, window);
    return finish();
  }
  const long first_resident = most_resident = resident_bytes();
  let_it_come((double)argument(argc, argv, "patience", 400) / 1000);
  receive_flood(count, bytes);
  const long grown = most_resident - first_resident;
  const long outstanding = (world_size - 1) * (window > 0 ? (window < count ? window : count) : 1L);
  const long bound = limit + outstanding * kHeaderBytes + (4L << 20);
  printf("%.1f MiB of flood, %d bytes each: rank 0 grew by %.1f MiB", (double)total / (1 << 20),
         bytes, (double)grown / (1 << 20));
  if (limit > 0) {
    printf(", the bound is %.1f MiB\n", (double)bound / (1 << 20));
    EXPECT(grown <= bound, "memory to grow by %ld bytes at most, got %ld", bound, grown);
  } else {
    printf(" without a limit\n");
    EXPECT(grown >= total / 2, "memory to grow with the flood of %ld bytes, got %ld", total, grown);
  }
  return finish();
}
