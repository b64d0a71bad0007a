// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE: threads of one rank send and receive at the same time, each on
// its own communicator, by tag on a shared one, through any source, and by matched
// probes that compete for the same messages.
#include <pthread.h>

#include "program.h"

enum { kThreads = 4, kMaxBytes = 100000, kSkipped = 77 };
static int rounds;
static bool compete;
static MPI_Comm own[kThreads], shared;
static int received_once;  // guarded by tally_lock
static pthread_mutex_t tally_lock = PTHREAD_MUTEX_INITIALIZER;

static int bytes_of(int round) { return round % 16 == 15 ? kMaxBytes : (round * 37) % 5000; }

static void ping_pong(int thread, MPI_Comm communicator, int tag, bool any_source) {
  const int partner = partner_rank();
  char *out = allocate(kMaxBytes), *in = allocate(kMaxBytes);
  for (int round = 0; round < rounds; ++round) {
    const int bytes = bytes_of(round);
    MPI_Status status;
    MPI_Request request;
    fill(out, (size_t)bytes, (uint64_t)(round * kThreads + thread));
    MPI_Isend(out, bytes, MPI_BYTE, partner, tag, communicator, &request);
    MPI_Recv(in, kMaxBytes, MPI_BYTE, any_source ? MPI_ANY_SOURCE : partner, tag, communicator,
             &status);
    EXPECT_STATUS(status, partner, tag, bytes);
    EXPECT_CONTENTS(in, bytes, round * kThreads + thread);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  free(in);
  free(out);
}

// All threads of a rank draw from one stream of messages, each message once.
static void competing(int thread) {
  const int partner = partner_rank();
  for (int sent = 0;;) {
    if (sent < rounds) {
      const int value = thread * rounds + sent++;
      MPI_Send(&value, 1, MPI_INT, partner, 50, shared);
    }
    // Who gets how many is open; together the threads get them all.
    MPI_Message message;
    int found = 0;
    MPI_Improbe(MPI_ANY_SOURCE, 50, shared, &found, &message, MPI_STATUS_IGNORE);
    if (found) {
      int value = -1;
      MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
      EXPECT(value >= 0 && value < kThreads * rounds, "a value that was sent, got %d", value);
      pthread_mutex_lock(&tally_lock);
      ++received_once;
      pthread_mutex_unlock(&tally_lock);
    }
    if (sent == rounds) {
      pthread_mutex_lock(&tally_lock);
      const bool all = received_once == kThreads * rounds;
      pthread_mutex_unlock(&tally_lock);
      if (all) break;
    }
  }
}

static void* run(void* argument_pointer) {
  const int thread = *(int*)argument_pointer;
  ping_pong(thread, own[thread], 1, false);
  ping_pong(thread, shared, 10 + thread, false);
  ping_pong(thread, shared, 20 + thread, true);
  if (compete) competing(thread);
  return NULL;
}

int main(int argc, char** argv) {
  int provided = 0;
  begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  rounds = (int)argument(argc, argv, "rounds", 200);
  // Everybody sends before anybody receives: only with enough room for messages nobody waits for.
  compete = argument(argc, argv, "competing", 1) != 0;
  if (provided < MPI_THREAD_MULTIPLE) {
    if (world_rank == 0) printf("%s: skipped: MPI_THREAD_MULTIPLE is not provided\n", program_name);
    MPI_Finalize();
    return kSkipped;
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &shared);
  for (int i = 0; i < kThreads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
  pthread_t threads[kThreads];
  int numbers[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    numbers[i] = i;
    pthread_create(&threads[i], NULL, run, &numbers[i]);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; ++i) MPI_Comm_free(&own[i]);
  MPI_Comm_free(&shared);
  return finish();
}
