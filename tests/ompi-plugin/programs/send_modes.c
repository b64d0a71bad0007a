// SPDX-License-Identifier: BSD-3-Clause
// Every send mode in every style (blocking, nonblocking, persistent), over sizes
// around the transports' eager limits, to a receive that is posted before the
// message and to one that is posted after it; MPI_Sendrecv and its kin.
#include "program.h"

struct mode {
  const char* name;
  int (*send)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
  int (*start)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  int (*init)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  bool needs_posted_receive;
  bool waits_for_receive;
};

static const struct mode kModes[] = {
    {"standard", MPI_Send, MPI_Isend, MPI_Send_init, false, false},
    {"ready", MPI_Rsend, MPI_Irsend, MPI_Rsend_init, true, false},
    {"synchronous", MPI_Ssend, MPI_Issend, MPI_Ssend_init, false, true},
    {"buffered", MPI_Bsend, MPI_Ibsend, MPI_Bsend_init, false, false},
};
enum { kModeCount = sizeof kModes / sizeof kModes[0] };
enum style { kBlocking, kNonblocking, kPersistent, kStyleCount };

// Eager limits (4 KiB vader, 64 KiB tcp), vader's largest fragment (32 KiB) and the
// start of pipelining, each approached from below by more than any header.
static const int kLimits[] = {4096, 32768, 65536, 131072};
static const int kAround[] = {-96, -65, -64, -48, -33, -17, -8, -1, 0, 1, 7};
static const int kSmall[] = {0, 1, 2, 3, 7, 8, 63, 64, 65, 255, 256, 1000, 1024, 2048};
static const int kLarge[] = {262144, 1000003, 1048576, 4194309};

enum { kMaxBytes = 4194309, kToken = 900 };

static char *outgoing, *incoming;

static void send_token(int partner) {
  MPI_Send(NULL, 0, MPI_BYTE, partner, kToken, MPI_COMM_WORLD);
}
static void await_token(int partner) {
  MPI_Recv(NULL, 0, MPI_BYTE, partner, kToken, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void expect_arrival(const MPI_Status* status, int partner, int tag, int bytes) {
  EXPECT_STATUS(*status, partner, tag, bytes);
  EXPECT_CONTENTS(incoming, bytes, partner + 7 * tag);
}

static void start(const struct mode* mode, enum style style, int bytes, int partner, int tag,
                  MPI_Request* request) {
  if (style == kNonblocking) {
    mode->start(outgoing, bytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD, request);
  } else {
    mode->init(outgoing, bytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD, request);
    MPI_Start(request);
  }
}

static void complete(enum style style, MPI_Request* request) {
  MPI_Wait(request, MPI_STATUS_IGNORE);
  if (style == kPersistent) MPI_Request_free(request);
}

static void to_posted_receive(const struct mode* mode, enum style style, int bytes, int tag) {
  const int partner = partner_rank();
  MPI_Request receive, send;
  MPI_Status status;
  memset(incoming, 0xEE, (size_t)bytes);
  fill(outgoing, (size_t)bytes, (uint64_t)(world_rank + 7 * tag));
  MPI_Irecv(incoming, kMaxBytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD, &receive);
  MPI_Sendrecv(NULL, 0, MPI_BYTE, partner, kToken, NULL, 0, MPI_BYTE, partner, kToken,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (style == kBlocking) {
    mode->send(outgoing, bytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD);
  } else {
    start(mode, style, bytes, partner, tag, &send);
    complete(style, &send);
  }
  MPI_Wait(&receive, &status);
  expect_arrival(&status, partner, tag, bytes);
}

static void to_late_receive(const struct mode* mode, enum style style, int bytes, int tag) {
  const int partner = partner_rank();
  MPI_Request send;
  MPI_Status status;
  memset(incoming, 0xEE, (size_t)bytes);
  fill(outgoing, (size_t)bytes, (uint64_t)(world_rank + 7 * tag));
  start(mode, style, bytes, partner, tag, &send);
  if (mode->waits_for_receive) {
    for (int i = 0; i < 50; ++i) {
      int done = 0;
      MPI_Request_get_status(send, &done, MPI_STATUS_IGNORE);
      EXPECT(!done, "a synchronous send of %d bytes to wait for its receive", bytes);
    }
  }
  // The token overtakes nothing: when it is here, the partner's message is too.
  if (partner != world_rank) {
    send_token(partner);
    await_token(partner);
  }
  MPI_Recv(incoming, kMaxBytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD, &status);
  expect_arrival(&status, partner, tag, bytes);
  complete(style, &send);
}

static int next_tag = 0;

static void exercise(int bytes) {
  for (int m = 0; m < kModeCount; ++m) {
    for (enum style style = kBlocking; style < kStyleCount; ++style) {
      next_tag = (next_tag + 1) % kToken;
      to_posted_receive(&kModes[m], style, bytes, next_tag);
      if (style != kBlocking && !kModes[m].needs_posted_receive)
        to_late_receive(&kModes[m], style, bytes, next_tag);
    }
  }
}

static void exchange(int bytes) {
  const int right = (world_rank + 1) % world_size;
  const int left = (world_rank + world_size - 1) % world_size;
  MPI_Status status;
  fill(outgoing, (size_t)bytes, (uint64_t)world_rank);
  MPI_Sendrecv(outgoing, bytes, MPI_BYTE, right, 1, incoming, kMaxBytes, MPI_BYTE, left, 1,
               MPI_COMM_WORLD, &status);
  EXPECT_STATUS(status, left, 1, bytes);
  EXPECT_CONTENTS(incoming, bytes, left);

  MPI_Sendrecv_replace(outgoing, bytes, MPI_BYTE, right, 2, left, MPI_ANY_TAG, MPI_COMM_WORLD,
                       &status);
  EXPECT_STATUS(status, left, 2, bytes);
  EXPECT_CONTENTS(outgoing, bytes, left);

  // A chain that ends in MPI_PROC_NULL on both sides.
  const int above = world_rank + 1 < world_size ? world_rank + 1 : MPI_PROC_NULL;
  const int below = world_rank > 0 ? world_rank - 1 : MPI_PROC_NULL;
  fill(outgoing, (size_t)bytes, (uint64_t)world_rank);
  memset(incoming, 0xEE, (size_t)bytes);
  MPI_Sendrecv(outgoing, bytes, MPI_BYTE, above, 3, incoming, kMaxBytes, MPI_BYTE, below, 3,
               MPI_COMM_WORLD, &status);
  if (below == MPI_PROC_NULL) {
    EXPECT_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    EXPECT(all_bytes_are(incoming, (size_t)bytes, 0xEE), "an untouched buffer from MPI_PROC_NULL");
  } else {
    EXPECT_STATUS(status, below, 3, bytes);
    EXPECT_CONTENTS(incoming, bytes, below);
  }
}

static void proc_null(void) {
  for (int m = 0; m < kModeCount; ++m) {
    MPI_Request request;
    kModes[m].send(outgoing, 10, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    kModes[m].start(outgoing, 10, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    kModes[m].init(outgoing, 10, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 3; ++i) {
      MPI_Start(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  outgoing = allocate(kMaxBytes);
  incoming = allocate(kMaxBytes);
  const int attached_bytes = 2 * (kMaxBytes + MPI_BSEND_OVERHEAD);
  void* attached = allocate((size_t)attached_bytes);
  MPI_Buffer_attach(attached, attached_bytes);

  for (size_t i = 0; i < sizeof kSmall / sizeof kSmall[0]; ++i) exercise(kSmall[i]);
  for (size_t i = 0; i < sizeof kLimits / sizeof kLimits[0]; ++i)
    for (size_t j = 0; j < sizeof kAround / sizeof kAround[0]; ++j)
      exercise(kLimits[i] + kAround[j]);
  for (size_t i = 0; i < sizeof kLarge / sizeof kLarge[0]; ++i) exercise(kLarge[i]);
  for (int bytes = 0; bytes < 300000; bytes = bytes * 3 + 1) exchange(bytes);
  proc_null();

  void* detached;
  int detached_bytes;
  MPI_Buffer_detach(&detached, &detached_bytes);
  EXPECT(detached == attached && detached_bytes == attached_bytes, "the attached buffer back");
  free(attached);
  free(incoming);
  free(outgoing);
  return finish();
}
