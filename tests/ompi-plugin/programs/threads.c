// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE: threads of one rank send and receive at the same time, each on
// its own communicator, by tag on a shared one, through any source, and by matched
// probes that compete for the same messages; each also sends long and short messages that must
// stay in order, cancels, restarts persistent requests, runs collectives and makes and frees
// communicators while the others do the same. All threads send out of one attached buffer, which
// comes back when it is detached. Then threads come and go, and complete the requests of others.
#include <pthread.h>

#include "program.h"

enum { kThreads = 4, kMaxBytes = 100000, kBufferedAtOnce = 64, kSkipped = 77 };
static int rounds;
static bool compete;
static MPI_Comm own[kThreads], shared, overtaking;
static int received_once;  // guarded by tally_lock
static pthread_mutex_t tally_lock = PTHREAD_MUTEX_INITIALIZER;

static void in_short_thread(void* (*use)(void*), void* argument_pointer) {
  pthread_t thread;
  pthread_create(&thread, NULL, use, argument_pointer);
  pthread_join(thread, NULL);
}

static int bytes_of(int round) { return round % 16 == 15 ? kMaxBytes : (round * 37) % 5000; }

static void ping_pong(int thread, MPI_Comm communicator, int tag, bool any_source) {
  const int partner = partner_rank();
  char *out = allocate(kMaxBytes), *in = allocate(kMaxBytes);
  for (int round = 0; round < rounds; ++round) {
    const int bytes = bytes_of(round);
    MPI_Status status;
    MPI_Request request;
    // The partner may be a round ahead, and that message may come first.
    const int its_tag = communicator == overtaking ? tag + 10 * (round % 2) : tag;
    fill(out, (size_t)bytes, (uint64_t)(round * kThreads + thread));
    MPI_Isend(out, bytes, MPI_BYTE, partner, its_tag, communicator, &request);
    MPI_Recv(in, kMaxBytes, MPI_BYTE, any_source ? MPI_ANY_SOURCE : partner, its_tag, communicator,
             &status);
    EXPECT_STATUS(status, partner, its_tag, bytes);
    EXPECT_CONTENTS(in, bytes, round * kThreads + thread);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  free(in);
  free(out);
}

// Messages of one tag come in the order in which their thread has sent them, or one after the
// other, short and long, synchronous or not, whatever the other threads have on their way
// meanwhile.
enum { kMessages = 24, kLongest = 30000 };
static int kind_of(int message, int round) { return (message * 7 + round) % 5; }
static int bytes_in_order(int message, int round) {
  const int kind = kind_of(message, round);
  return kind == 0 ? kLongest : kind == 1 ? 5000 : message;
}

struct Share {
  int round, tag, first, end;  // of the messages
  char** out;
  MPI_Request* sends;
};

static void* send_share(void* argument_pointer) {
  const struct Share* share = argument_pointer;
  for (int i = share->first; i < share->end; ++i) {
    const int bytes = bytes_in_order(i, share->round);
    if (kind_of(i, share->round) == 2) {
      MPI_Issend(share->out[i], bytes, MPI_BYTE, partner_rank(), share->tag, shared,
                 &share->sends[i]);
    } else {
      MPI_Isend(share->out[i], bytes, MPI_BYTE, partner_rank(), share->tag, shared,
                &share->sends[i]);
    }
  }
  return NULL;
}

static void in_order(int thread) {
  const int partner = partner_rank(), tag = 100 + thread;
  char *out[kMessages], *in[kMessages];
  MPI_Request receives[kMessages], sends[kMessages];
  for (int i = 0; i < kMessages; ++i) {
    out[i] = allocate(kLongest);
    in[i] = allocate(kLongest);
    memset(out[i], i, kLongest);
  }
  for (int round = 0; round < rounds; ++round) {
    for (int step = 0; step < 2; ++step) {
      if (step == round % 2) {
        for (int i = 0; i < kMessages; ++i) {
          MPI_Irecv(in[i], kLongest, MPI_BYTE, i % 8 == 5 ? MPI_ANY_SOURCE : partner, tag, shared,
                    &receives[i]);
        }
        continue;
      }
      struct Share first = {round, tag, 0, kMessages / 2, out, sends};
      struct Share second = {round, tag, kMessages / 2, kMessages, out, sends};
      send_share(&first);
      if (round % 4 < 2) {
        send_share(&second);
      } else {
        in_short_thread(send_share, &second);
      }
    }
    MPI_Waitall(kMessages, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kMessages; ++i) {
      MPI_Status status;
      int bytes = -1;
      MPI_Wait(&receives[i], &status);
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      const int expected = bytes_in_order(i, round);
      EXPECT(bytes == expected, "message %d of %d bytes, got %d", i, expected, bytes);
      if (bytes > 0) EXPECT(in[i][bytes - 1] == i, "message %d, got %d", i, in[i][bytes - 1]);
    }
  }
  for (int i = 0; i < kMessages; ++i) {
    free(out[i]);
    free(in[i]);
  }
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

// A receive that nobody sends to is cancelled among those of the other threads.
static void cancelled(int thread) {
  MPI_Request request;
  MPI_Status status;
  int value = 0, was_cancelled = 0;
  MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 70 + thread, shared, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &was_cancelled);
  EXPECT(was_cancelled, "a receive that nothing was sent to to be cancelled");
}

// Requests of which some are started and one is freed while active; collectives beside them.
static void persistent(int thread) {
  enum { kRequests = 3 };
  const int partner = partner_rank();
  MPI_Comm mine;
  MPI_Comm_dup(own[thread], &mine);
  MPI_Request receives[kRequests], sends[kRequests], extra;
  char* in[kRequests];
  char* out = allocate(kMaxBytes);
  fill(out, kMaxBytes, (uint64_t)thread);
  for (int i = 0; i < kRequests; ++i) {
    in[i] = allocate(kMaxBytes);
    MPI_Recv_init(in[i], kMaxBytes, MPI_BYTE, partner, i, mine, &receives[i]);
    MPI_Send_init(out, bytes_of(15 - i), MPI_BYTE, partner, i, mine, &sends[i]);
  }
  for (int round = 0; round < rounds / 10; ++round) {
    const int idle = round % kRequests;
    for (int i = 0; i < kRequests; ++i)
      if (i != idle) MPI_Start(&receives[i]);
    for (int i = 0; i < kRequests; ++i)
      if (i != idle) MPI_Start(&sends[i]);
    int sum = 0;
    MPI_Isend(out, 1, MPI_BYTE, partner, 9, mine, &extra);
    MPI_Request_free(&extra);
    MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, mine);
    EXPECT(sum == round * world_size, "the sum %d, got %d", round * world_size, sum);
    MPI_Recv(in[idle], 1, MPI_BYTE, MPI_ANY_SOURCE, 9, mine, MPI_STATUS_IGNORE);
    MPI_Waitall(kRequests, receives, MPI_STATUSES_IGNORE);
    MPI_Waitall(kRequests, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kRequests; ++i)
      if (i != idle) EXPECT_CONTENTS(in[i], bytes_of(15 - i), thread);
    cancelled(thread);
  }
  for (int i = 0; i < kRequests; ++i) {
    MPI_Request_free(&receives[i]);
    MPI_Request_free(&sends[i]);
    free(in[i]);
  }
  free(out);
  MPI_Comm_free(&mine);
}

static void buffered(int thread) {
  const int partner = partner_rank();
  for (int sent = 0; sent < 4 * rounds; sent += kBufferedAtOnce) {
    for (int i = 0; i < kBufferedAtOnce; ++i) {
      const int value = sent + i;
      MPI_Bsend(&value, 1, MPI_INT, partner, 80 + thread, shared);
    }
    for (int i = 0; i < kBufferedAtOnce; ++i) {
      int value = -1;
      MPI_Recv(&value, 1, MPI_INT, partner, 80 + thread, shared, MPI_STATUS_IGNORE);
      EXPECT(value == sent + i, "the value %d, got %d", sent + i, value);
    }
  }
}

static void* run(void* argument_pointer) {
  const int thread = *(int*)argument_pointer;
  ping_pong(thread, own[thread], 1, false);
  ping_pong(thread, shared, 10 + thread, false);
  ping_pong(thread, shared, 20 + thread, true);
  ping_pong(thread, overtaking, 30 + thread, true);
  if (compete) competing(thread);
  in_order(thread);
  persistent(thread);
  buffered(thread);
  return NULL;
}

static void together(void) {
  int buffer_bytes = 4 * kThreads * kBufferedAtOnce * ((int)sizeof(int) + MPI_BSEND_OVERHEAD);
  void* buffer = allocate((size_t)buffer_bytes);
  MPI_Buffer_attach(buffer, buffer_bytes);
  pthread_t threads[kThreads];
  int numbers[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    numbers[i] = i;
    pthread_create(&threads[i], NULL, run, &numbers[i]);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  MPI_Buffer_detach(&buffer, &buffer_bytes);
  free(buffer);
}

enum { kWindow = 100 };  // more than a component might keep for a thread
static MPI_Request window[kWindow];
static int window_values[kWindow];

static void* post_window(void* unused) {
  (void)unused;
  for (int i = 0; i < kWindow; ++i) {
    window_values[i] = -1;
    MPI_Irecv(&window_values[i], 1, MPI_INT, partner_rank(), 90, shared, &window[i]);
  }
  return NULL;
}

static void* complete_window(void* unused) {
  (void)unused;
  MPI_Waitall(kWindow, window, MPI_STATUSES_IGNORE);
  return NULL;
}

// Whoever has posted receives is gone when they complete, or whoever completes them is new.
static void handed_over(void) {
  for (int round = 0; round < rounds / 4; ++round) {
    const bool poster_leaves = round % 4 < 2;
    if (poster_leaves) {
      in_short_thread(post_window, NULL);
    } else {
      post_window(NULL);
    }
    for (int i = 0; i < kWindow; ++i) MPI_Send(&i, 1, MPI_INT, partner_rank(), 90, shared);
    if (poster_leaves) {
      complete_window(NULL);
    } else {
      in_short_thread(complete_window, NULL);
    }
    for (int i = 0; i < kWindow; ++i) {
      EXPECT(window_values[i] == i, "the value %d, got %d", i, window_values[i]);
    }
  }
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
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_allow_overtaking", "true");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &overtaking);
  MPI_Info_free(&info);
  if (argument(argc, argv, "together", 1) != 0) together();
  handed_over();
  for (int i = 0; i < kThreads; ++i) MPI_Comm_free(&own[i]);
  MPI_Comm_free(&overtaking);
  MPI_Comm_free(&shared);
  return finish();
}
