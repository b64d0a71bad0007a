// SPDX-License-Identifier: BSD-3-Clause
// Preloaded, it makes any MPI one whose MPI_Put is wrong for messages of 8 bytes, in the
// way that FAULTY_PUT names: what a benchmark of correctness has to notice. Or, with
// FAULTY_THREADS, one that serves only one thread at a time.
#undef NDEBUG
#include <assert.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int MPI_Put(const void* from, int count, MPI_Datatype type, int target, MPI_Aint at,
            int target_count, MPI_Datatype target_type, MPI_Win window) {
  const char* const fault = getenv("FAULTY_PUT");
  if (fault != NULL && count == 8) {
    if (strcmp(fault, "lost") == 0) return MPI_SUCCESS;
    if (strcmp(fault, "crash") == 0) raise(SIGSEGV);
    if (strcmp(fault, "assertion") == 0) assert(!"an invariant of this library");
    if (strcmp(fault, "hang") == 0) {
      for (;;) pause();
    }
  }
  return PMPI_Put(from, count, type, target, at, target_count, target_type, window);
}

int MPI_Query_thread(int* provided) {
  const int result = PMPI_Query_thread(provided);
  if (getenv("FAULTY_THREADS") != NULL && *provided > MPI_THREAD_SERIALIZED) {
    *provided = MPI_THREAD_SERIALIZED;
  }
  return result;
}
