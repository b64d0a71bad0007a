// SPDX-License-Identifier: BSD-3-Clause
// What the queues hold and have done, read as a tool would through MPI_T: per communicator and for
// the process, for queues whose contents are known here.
#include "variables.h"

enum {
  kPosted = 40,
  kMessages = 30,
  kBytes = 100,
  kHeader = 16,  // what each stored message has in front of its payload
  kLast = 999,
};

static MPI_T_pvar_session session;

// A variable of a communicator, or of the process (NULL). A counter counts from here on.
typedef struct Reader {
  MPI_T_pvar_handle handle;
  char name[128];
} Reader;

static Reader observe(const char* name, const MPI_Comm* communicator) {
  Reader reader;
  snprintf(reader.name, sizeof reader.name, "pml_tagline_%s%s",
           communicator == NULL ? "total_" : "", name);
  int count = 0;
  const int error = MPI_T_pvar_handle_alloc(session, find_variable(reader.name),
                                            (void*)communicator, &reader.handle, &count);
  EXPECT(error == MPI_SUCCESS && count == 1, "a handle of one %s, error %d", reader.name, error);
  return reader;
}

static unsigned long long value(const Reader* reader) {
  unsigned long long number = ~0ull;
  const int error = MPI_T_pvar_read(session, reader->handle, &number);
  EXPECT(error == MPI_SUCCESS, "to read %s, error %d", reader->name, error);
  return number;
}

static double fraction(const Reader* reader) {
  double number = -1;
  const int error = MPI_T_pvar_read(session, reader->handle, &number);
  EXPECT(error == MPI_SUCCESS, "to read %s, error %d", reader->name, error);
  return number;
}

#define EXPECT_VALUE(reader, expected)                                                  \
  EXPECT(value(&(reader)) == (unsigned long long)(expected), "%s to be %llu, got %llu", \
         (reader).name, (unsigned long long)(expected), value(&(reader)))

int main(int argc, char** argv) {
  int provided;
  begin_with_threads(
      &argc, &argv,
      argument(argc, argv, "threads", 0) != 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  const bool timed = argument(argc, argv, "timed", 0) != 0;
  const bool linear = argument(argc, argv, "linear", 0) != 0;
  const bool fuzzy = argument(argc, argv, "fuzzy", 0) != 0;
  const int partner = partner_rank();
  MPI_Comm busy, idle;
  MPI_Comm_dup(MPI_COMM_WORLD, &busy);
  MPI_Comm_dup(MPI_COMM_WORLD, &idle);
  // Every variable that the process has must be there for a communicator as well.
  const Reader length = observe("posted_length", &busy),
               total_length = observe("posted_length", NULL),
               idle_length = observe("posted_length", &idle);
  const Reader mark = observe("posted_high_water", &busy);
  const Reader matches = observe("posted_matches", &busy),
               total_matches = observe("posted_matches", NULL);
  const Reader searches = observe("posted_searches", &busy);
  const Reader depth_mean = observe("posted_search_depth_mean", &busy);
  const Reader depth_max = observe("posted_search_depth_max", &busy);
  const Reader false_positives = observe("posted_false_positives", &busy);
  const Reader waiting = observe("unexpected_length", &busy),
               waiting_idle = observe("unexpected_length", &idle);
  const Reader waiting_mark = observe("unexpected_high_water", &busy);
  const Reader found = observe("unexpected_matches", &busy);
  const Reader looked = observe("unexpected_searches", &busy);
  const Reader unexpected_mean = observe("unexpected_search_depth_mean", &busy);
  const Reader unexpected_max = observe("unexpected_search_depth_max", &busy);
  const Reader unexpected_false = observe("unexpected_false_positives", &busy);
  const Reader bytes = observe("unexpected_bytes", &busy),
               total_bytes = observe("unexpected_bytes", NULL);
  const Reader memory = observe("queue_bytes", &busy);
  const Reader posted_time = observe("posted_match_time", &busy);
  const Reader unexpected_time = observe("unexpected_match_time", &busy);
  const Reader time = observe("match_time", &busy);

  static char buffer[kBytes];
  MPI_Request receives[kPosted];
  const unsigned long long others = value(&total_length);  // none of ours, but never mind whose
  // With 16 tag bits in a fingerprint these tags look alike.
  const int stride = fuzzy ? 1 << 16 : 1;
  for (int i = 0; i < kPosted; ++i)
    MPI_Irecv(buffer, kBytes, MPI_BYTE, partner, i * stride, busy, &receives[i]);
  EXPECT_VALUE(length, kPosted);
  EXPECT_VALUE(total_length, others + kPosted);
  EXPECT_VALUE(idle_length, 0);
  EXPECT_VALUE(mark, kPosted);
  EXPECT_VALUE(matches, 0);
  EXPECT(value(&memory) > 0, "memory for the receives");
  // Nothing has come yet on this communicator.
  EXPECT_VALUE(posted_time, 0);
  EXPECT((value(&unexpected_time) > 0) == timed, "time of receives to be counted if asked for");

  // Last posted, first sent: each search goes through all that are left.
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = kPosted - 1; i >= 0; --i) MPI_Send(buffer, 1, MPI_BYTE, partner, i * stride, busy);
  MPI_Waitall(kPosted, receives, MPI_STATUSES_IGNORE);
  EXPECT_VALUE(length, 0);
  EXPECT_VALUE(mark, kPosted);
  EXPECT_VALUE(matches, kPosted);
  EXPECT_VALUE(searches, kPosted);
  EXPECT(value(&total_matches) >= kPosted, "the total to count the matches");
  EXPECT(fraction(&depth_mean) > 0, "a mean search depth, got %g", fraction(&depth_mean));
  EXPECT(value(&depth_max) >= (unsigned long long)fraction(&depth_mean),
         "a maximum above the mean");
  if (linear) {
    EXPECT_VALUE(depth_max, kPosted);
    EXPECT(fraction(&depth_mean) == (kPosted + 1) / 2.0, "a mean depth of %g, got %g",
           (kPosted + 1) / 2.0, fraction(&depth_mean));
  }
  if (fuzzy)
    EXPECT(value(&false_positives) > 0, "fingerprints that look alike");
  else
    EXPECT_VALUE(false_positives, 0);

  // Messages nobody waits for; the last one on the same communicator says that all are here.
  for (int i = 0; i < kMessages; ++i) MPI_Send(buffer, kBytes, MPI_BYTE, partner, i, busy);
  MPI_Send(buffer, 0, MPI_BYTE, partner, kLast, busy);
  MPI_Status status;
  MPI_Probe(partner, kLast, busy, &status);
  EXPECT_VALUE(waiting, kMessages + 1);
  EXPECT_VALUE(waiting_idle, 0);
  EXPECT_VALUE(waiting_mark, kMessages + 1);
  EXPECT_VALUE(bytes, kMessages * (kBytes + kHeader) + kHeader);
  EXPECT(value(&total_bytes) >= value(&bytes), "the total to hold these bytes");
  EXPECT_VALUE(found, 0);
  for (int i = kMessages - 1; i >= 0; --i)
    MPI_Recv(buffer, kBytes, MPI_BYTE, partner, i, busy, &status);
  MPI_Recv(buffer, 0, MPI_BYTE, partner, kLast, busy, &status);
  EXPECT_VALUE(waiting, 0);
  EXPECT_VALUE(bytes, 0);
  EXPECT_VALUE(found, kMessages + 1);
  EXPECT(value(&looked) > kMessages, "probes and receives to count as searches");
  EXPECT(fraction(&unexpected_mean) > 0 &&
             value(&unexpected_max) >= (unsigned long long)fraction(&unexpected_mean),
         "a mean and a maximum of searches among messages");
  EXPECT_VALUE(unexpected_false, 0);
  EXPECT((value(&posted_time) > 0) == timed, "time of messages to be counted if asked for");
  EXPECT_VALUE(time, value(&posted_time) + value(&unexpected_time));

  // What a communicator that is gone has done still counts.
  const unsigned long long total_after = value(&total_matches);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_free(&busy);
  EXPECT(value(&total_matches) >= total_after, "the total not to shrink");
  MPI_Comm_free(&idle);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  return finish();
}
