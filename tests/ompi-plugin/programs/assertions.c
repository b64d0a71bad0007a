// SPDX-License-Identifier: BSD-3-Clause
// On a communicator that promises to use no wildcards, when it is made or later, the queues make no
// lists for receives with wildcards; such a receive gets the right message nevertheless.
#include "variables.h"

enum { kMessages = 5000, kLast = kMessages, kProbes = 64 };

static MPI_T_pvar_session session;

static unsigned long long queue_bytes(MPI_Comm communicator) {
  MPI_T_pvar_handle handle;
  int count = 0;
  unsigned long long bytes = 0;
  MPI_T_pvar_handle_alloc(session, find_variable("pml_tagline_queue_bytes"), &communicator, &handle,
                          &count);
  MPI_T_pvar_read(session, handle, &bytes);
  MPI_T_pvar_handle_free(session, &handle);
  return bytes;
}

static void probe_in_vain(MPI_Comm copy, int source) {
  for (int i = 0; i < kProbes; ++i) {
    int found = 0;
    MPI_Iprobe(source, kLast + 1, copy, &found, MPI_STATUS_IGNORE);
    EXPECT(!found, "no message with tag %d", kLast + 1);
  }
}

// Bytes that the queues take for searches with a wildcard among many messages.
static long long bytes_for_wildcards(MPI_Comm copy) {
  const int partner = partner_rank();
  MPI_Status status;
  for (int i = 0; i <= kLast; ++i) MPI_Send(NULL, 0, MPI_BYTE, partner, i, copy);
  MPI_Probe(partner, kLast, copy, &status);
  // What searches without wildcards take is there.
  probe_in_vain(copy, partner);
  const long long before = (long long)queue_bytes(copy);
  probe_in_vain(copy, MPI_ANY_SOURCE);
  const long long bytes = (long long)queue_bytes(copy) - before;
  for (int i = 0; i < kMessages; ++i) {
    const int source = i < 10 ? MPI_ANY_SOURCE : partner;
    MPI_Recv(NULL, 0, MPI_BYTE, source, i < 5 ? MPI_ANY_TAG : i, copy, &status);
    EXPECT_STATUS(status, partner, i, 0);
  }
  MPI_Recv(NULL, 0, MPI_BYTE, partner, kLast, copy, &status);
  MPI_Comm_free(&copy);
  return bytes;
}

int main(int argc, char** argv) {
  int provided;
  begin_with_threads(
      &argc, &argv,
      argument(argc, argv, "threads", 0) != 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_no_any_source", "true");
  MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
  MPI_Comm plain, promised, promised_later;
  MPI_Comm_dup(MPI_COMM_WORLD, &plain);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &promised);
  MPI_Comm_dup(MPI_COMM_WORLD, &promised_later);
  MPI_Comm_set_info(promised_later, info);
  const long long usual = bytes_for_wildcards(plain), at_once = bytes_for_wildcards(promised),
                  later = bytes_for_wildcards(promised_later);
  EXPECT(usual > 8 * kMessages, "lists of %d messages, got %lld bytes", kMessages, usual);
  EXPECT(at_once == 0, "no lists where nobody uses them, got %lld bytes", at_once);
  EXPECT(later == 0, "no lists where nobody uses them any more, got %lld bytes", later);
  MPI_Info_free(&info);
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
  return finish();
}
