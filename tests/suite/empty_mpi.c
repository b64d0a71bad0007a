// SPDX-License-Identifier: BSD-3-Clause
// Preloaded, it makes any MPI one whose sends, receives and one-sided operations do nothing, in
// no time, and an OpenSHMEM as well: what a benchmark then reports of a message is what the
// benchmark itself takes of it.
#include <mpi.h>
#include <stddef.h>

int MPI_Send(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  (void)data, (void)count, (void)type, (void)to, (void)tag, (void)comm;
  return MPI_SUCCESS;
}
int MPI_Recv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status* status) {
  (void)data, (void)count, (void)type, (void)from, (void)tag, (void)comm, (void)status;
  return MPI_SUCCESS;
}
int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  return MPI_Send(data, count, type, to, tag, comm);
}
int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  return MPI_Recv(data, count, type, from, tag, comm, MPI_STATUS_IGNORE);
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  (void)request, (void)status;
  return MPI_SUCCESS;
}
int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  (void)count, (void)requests, (void)statuses;
  return MPI_SUCCESS;
}

int MPI_Put(const void* from, int count, MPI_Datatype type, int target, MPI_Aint at,
            int target_count, MPI_Datatype target_type, MPI_Win window) {
  (void)from, (void)count, (void)type, (void)target, (void)at, (void)target_count;
  (void)target_type, (void)window;
  return MPI_SUCCESS;
}
int MPI_Get(void* to, int count, MPI_Datatype type, int target, MPI_Aint at, int target_count,
            MPI_Datatype target_type, MPI_Win window) {
  return MPI_Put(to, count, type, target, at, target_count, target_type, window);
}
int MPI_Win_fence(int assertion, MPI_Win window) {
  (void)assertion, (void)window;
  return MPI_SUCCESS;
}
int MPI_Win_post(MPI_Group group, int assertion, MPI_Win window) {
  (void)group;
  return MPI_Win_fence(assertion, window);
}
int MPI_Win_start(MPI_Group group, int assertion, MPI_Win window) {
  return MPI_Win_post(group, assertion, window);
}
int MPI_Win_complete(MPI_Win window) { return MPI_Win_fence(0, window); }
int MPI_Win_wait(MPI_Win window) { return MPI_Win_fence(0, window); }
int MPI_Win_lock(int type, int rank, int assertion, MPI_Win window) {
  (void)type, (void)rank;
  return MPI_Win_fence(assertion, window);
}
int MPI_Win_unlock(int rank, MPI_Win window) { return MPI_Win_fence(rank, window); }
int MPI_Win_lock_all(int assertion, MPI_Win window) { return MPI_Win_fence(assertion, window); }
int MPI_Win_unlock_all(MPI_Win window) { return MPI_Win_fence(0, window); }
int MPI_Win_flush(int rank, MPI_Win window) { return MPI_Win_fence(rank, window); }
int MPI_Win_flush_local(int rank, MPI_Win window) { return MPI_Win_fence(rank, window); }

void shmem_putmem(void* to, const void* from, size_t bytes, int pe) {
  (void)to, (void)from, (void)bytes, (void)pe;
}
void shmem_getmem(void* to, const void* from, size_t bytes, int pe) {
  (void)to, (void)from, (void)bytes, (void)pe;
}
void shmem_quiet(void) {}
