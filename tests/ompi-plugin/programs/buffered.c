// SPDX-License-Identifier: BSD-3-Clause
// Buffered sends: complete at once, whoever receives and when; detaching the buffer
// waits until all have left it; a full buffer is an error.
#include <unistd.h>

#include "program.h"

static char* incoming;

static void receive(int count, int bytes) {
  for (int i = 0; i < count; ++i) {
    MPI_Status status;
    MPI_Recv(incoming, bytes, MPI_BYTE, partner_rank(), 1, MPI_COMM_WORLD, &status);
    EXPECT_STATUS(status, partner_rank(), 1, bytes);
    EXPECT_CONTENTS(incoming, bytes, partner_rank() + i);
  }
}

// Both partners fill their buffers before either receives; then detach and wipe.
static void complete_without_receive(int count, int bytes) {
  const int size = count * (bytes + MPI_BSEND_OVERHEAD);
  char *attached = allocate((size_t)size), *message = allocate((size_t)bytes);
  MPI_Buffer_attach(attached, size);
  MPI_Request requests[3];
  for (int i = 0; i < count; ++i) {
    fill(message, (size_t)bytes, (uint64_t)(world_rank + i));
    switch (i % 3) {
      case 0:
        MPI_Bsend(message, bytes, MPI_BYTE, partner_rank(), 1, MPI_COMM_WORLD);
        break;
      case 1:
        MPI_Ibsend(message, bytes, MPI_BYTE, partner_rank(), 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        break;
      default:
        MPI_Bsend_init(message, bytes, MPI_BYTE, partner_rank(), 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Start(&requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Request_free(&requests[0]);
    }
    memset(message, 0x33, (size_t)bytes);
  }
  receive(count, bytes);
  void* detached;
  int detached_bytes;
  MPI_Buffer_detach(&detached, &detached_bytes);
  EXPECT(detached == attached && detached_bytes == size, "the attached buffer back");
  memset(attached, 0x44, (size_t)size);
  free(message);
  free(attached);
  MPI_Barrier(MPI_COMM_WORLD);
}

// The sender detaches and wipes while the receiver is still asleep.
static void detach_delivers(int bytes) {
  if (partner_rank() == world_rank) return;
  if (world_rank < partner_rank()) {
    const int size = 4 * (bytes + MPI_BSEND_OVERHEAD);
    char *attached = allocate((size_t)size), *message = allocate((size_t)bytes);
    MPI_Buffer_attach(attached, size);
    for (int i = 0; i < 4; ++i) {
      fill(message, (size_t)bytes, (uint64_t)(world_rank + i));
      MPI_Bsend(message, bytes, MPI_BYTE, partner_rank(), 1, MPI_COMM_WORLD);
    }
    void* detached;
    int detached_bytes;
    MPI_Buffer_detach(&detached, &detached_bytes);
    memset(attached, 0x44, (size_t)size);
    free(message);
    free(attached);
  } else {
    usleep(20000);
    receive(4, bytes);
  }
}

// ob1 of Open MPI 4.1 loses the order of a communicator in which a buffered send has
// failed; with `strict` the communicator must stay usable.
static void full_buffer(bool strict) {
  enum { kBytes = 1000, kTooMuch = 4000000 };
  static char attached[3 * (kBytes + MPI_BSEND_OVERHEAD)], message[kTooMuch];
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  MPI_Buffer_attach(attached, sizeof attached);
  int class = MPI_SUCCESS;
  MPI_Error_class(MPI_Bsend(message, kTooMuch, MPI_BYTE, partner_rank(), 1, copy), &class);
  EXPECT(class == MPI_ERR_BUFFER, "MPI_ERR_BUFFER from a full buffer, got class %d", class);
  fill(message, kBytes, (uint64_t)world_rank);
  const MPI_Comm usable = strict ? copy : MPI_COMM_WORLD;
  MPI_Bsend(message, kBytes, MPI_BYTE, partner_rank(), 1, usable);
  MPI_Recv(incoming, kBytes, MPI_BYTE, partner_rank(), MPI_ANY_TAG, usable, MPI_STATUS_IGNORE);
  EXPECT_CONTENTS(incoming, kBytes, partner_rank());
  void* detached;
  int detached_bytes;
  MPI_Buffer_detach(&detached, &detached_bytes);
  MPI_Comm_free(&copy);
}

// The buffer's room is reused as messages leave.
static void room_is_reused(int rounds) {
  enum { kBytes = 500 };
  static char attached[4 * (kBytes + MPI_BSEND_OVERHEAD)], message[kBytes];
  MPI_Buffer_attach(attached, sizeof attached);
  for (int i = 0; i < rounds; ++i) {
    fill(message, kBytes, (uint64_t)world_rank);
    MPI_Bsend(message, kBytes, MPI_BYTE, partner_rank(), 1, MPI_COMM_WORLD);
    receive(1, kBytes);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  void* detached;
  int detached_bytes;
  MPI_Buffer_detach(&detached, &detached_bytes);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  incoming = allocate(1000000);
  static const int kBytes[] = {0, 10, 1000, 5000, 70000, 500000};
  for (int repeat = 0; repeat < 5; ++repeat)
    for (size_t i = 0; i < sizeof kBytes / sizeof kBytes[0]; ++i) {
      complete_without_receive(kBytes[i] > 1000 ? 12 : 120, kBytes[i]);
      detach_delivers(kBytes[i]);
    }
  full_buffer(argument(argc, argv, "strict", 0) != 0);
  room_is_reused(1000);
  free(incoming);
  return finish();
}
