// SPDX-License-Identifier: BSD-3-Clause
// The box between two processes of a node is as large as expected (bytes=N), and windows that are
// several times as large come through it, or past it, in order.
#include "program.h"

static int bytes_of_box(void) {
  int provided, index, count, bytes = -1;
  MPI_T_cvar_handle handle;
  EXPECT(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS, "the tool interface");
  EXPECT(MPI_T_cvar_get_index("btl_vader_fbox_size", &index) == MPI_SUCCESS, "vader's parameter");
  EXPECT(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS, "its handle");
  EXPECT(MPI_T_cvar_read(handle, &bytes) == MPI_SUCCESS, "to be allowed to read it");
  MPI_T_cvar_handle_free(&handle);
  MPI_T_finalize();
  return bytes;
}

enum { kWindow = 64, kMostBytes = 8192 };
static unsigned char data[kWindow][kMostBytes];

static void exchange(int bytes, int round) {
  MPI_Request requests[kWindow];
  for (int i = 0; i < kWindow; ++i) {
    if (world_rank == 0) {
      memset(data[i], round + i, bytes);
      MPI_Isend(data[i], bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
    } else {
      memset(data[i], 0, bytes);
      MPI_Irecv(data[i], bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
    }
  }
  MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; world_rank == 1 && i < kWindow; ++i) {
    for (int at = 0; at < bytes; ++at) {
      EXPECT(data[i][at] == (unsigned char)(round + i),
             "byte %d of message %d of %d bytes to be %d, "
             "got %d",
             at, i, bytes, (unsigned char)(round + i), data[i][at]);
    }
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int expected = (int)argument(argc, argv, "bytes", 0);
  const int bytes = bytes_of_box();
  EXPECT(bytes == expected, "a box of %d bytes, got %d", expected, bytes);
  for (int round = 0; round < 200; ++round) {
    for (int size = 1; size <= kMostBytes; size *= 2) {
      exchange(size, round);
      exchange(size - 1, round);
    }
  }
  return finish();
}
