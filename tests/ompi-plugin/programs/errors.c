// SPDX-License-Identifier: BSD-3-Clause
// Erroneous calls return their error class and harm nothing: truncation leaves the rest
// of the buffer and the following messages intact, bad arguments send nothing.
#include "program.h"

enum { kGuard = 64, kMaxBytes = 400000 };
static char *outgoing, *incoming;

// ob1 of Open MPI 4.1 writes a long message in full into a buffer that is too short,
// and overlooks truncation of messages to oneself: `strict=1` asks for both.
static bool strict;

static int error_class(int code) {
  int class = -1;
  MPI_Error_class(code, &class);
  return class;
}

#define EXPECT_CLASS(code, class) \
  EXPECT(error_class(code) == (class), #class ", got error class %d", error_class(code))

enum receive_call { kRecv, kIrecv, kLateRecv, kWaitall, kMrecv, kPersistent, kReceiveCalls };

// A message of `bytes` into `room`; then an intact one under the same tag.
static void truncated(int bytes, int room, enum receive_call call, MPI_Comm communicator,
                      bool synchronous) {
  const int partner = communicator == MPI_COMM_SELF ? 0 : partner_rank();
  const int tag = 21;
  MPI_Request sends[2], receives[2];
  MPI_Status status, statuses[2];
  MPI_Message message;
  int code = MPI_SUCCESS;
  memset(incoming, 0xEE, kMaxBytes);
  if (!strict && (communicator == MPI_COMM_SELF || partner == world_rank)) return;
  const bool early = call == kIrecv || call == kWaitall || call == kPersistent;
  if (early) {
    if (call == kPersistent) {
      MPI_Recv_init(incoming, room, MPI_BYTE, partner, tag, communicator, &receives[0]);
      MPI_Start(&receives[0]);
    } else {
      MPI_Irecv(incoming, room, MPI_BYTE, partner, tag, communicator, &receives[0]);
    }
    MPI_Irecv(incoming + kMaxBytes / 2, bytes, MPI_BYTE, partner, tag, communicator, &receives[1]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  (synchronous ? MPI_Issend : MPI_Isend)(outgoing, bytes, MPI_BYTE, partner, tag, communicator,
                                         &sends[0]);
  MPI_Isend(outgoing + 1, bytes, MPI_BYTE, partner, tag, communicator, &sends[1]);
  if (call == kLateRecv) MPI_Probe(partner, tag, communicator, MPI_STATUS_IGNORE);
  switch (call) {
    case kRecv:
    case kLateRecv:
      code = MPI_Recv(incoming, room, MPI_BYTE, partner, tag, communicator, &status);
      break;
    case kMrecv:
      MPI_Mprobe(partner, tag, communicator, &message, MPI_STATUS_IGNORE);
      code = MPI_Mrecv(incoming, room, MPI_BYTE, &message, &status);
      break;
    case kWaitall:
      code = MPI_Waitall(2, receives, statuses);
      EXPECT_CLASS(code, MPI_ERR_IN_STATUS);
      if (error_class(statuses[1].MPI_ERROR) != MPI_ERR_PENDING)
        EXPECT_CLASS(statuses[1].MPI_ERROR, MPI_SUCCESS);
      code = statuses[0].MPI_ERROR;
      status = statuses[0];
      break;
    default:
      code = MPI_Wait(&receives[0], &status);
  }
  EXPECT_CLASS(code, MPI_ERR_TRUNCATE);
  EXPECT(status.MPI_SOURCE == partner && status.MPI_TAG == tag,
         "the truncated message's source %d and tag %d, got %d and %d", partner, tag,
         status.MPI_SOURCE, status.MPI_TAG);
  EXPECT(!strict || all_bytes_are(incoming + room, kGuard, 0xEE),
         "nothing written behind a buffer of %d bytes", room);
  if (early)
    MPI_Wait(&receives[1], MPI_STATUS_IGNORE);
  else
    MPI_Recv(incoming + kMaxBytes / 2, bytes, MPI_BYTE, partner, tag, communicator,
             MPI_STATUS_IGNORE);
  EXPECT(memcmp(incoming + kMaxBytes / 2, outgoing + 1, (size_t)bytes) == 0,
         "the message behind a truncated one of %d bytes intact", bytes);
  MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
  if (call == kPersistent) MPI_Request_free(&receives[0]);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void truncation(void) {
  static const int kSizes[][2] = {{1, 0},         {8, 4},        {1000, 999},     {4000, 100},
                                  {5000, 4500},   {5000, 1},     {40000, 39999},  {70000, 0},
                                  {70000, 60000}, {190000, 100}, {190000, 180000}};
  for (size_t i = 0; i < sizeof kSizes / sizeof kSizes[0]; ++i)
    for (enum receive_call call = kRecv; call < kReceiveCalls; ++call)
      for (int synchronous = 0; synchronous < 2; ++synchronous) {
        truncated(kSizes[i][0], kSizes[i][1], call, MPI_COMM_WORLD, synchronous != 0);
        truncated(kSizes[i][0], kSizes[i][1], call, MPI_COMM_SELF, synchronous != 0);
      }
}

static void bad_arguments(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  const int partner = partner_rank();
  int value = 0, flag = 0, *limit = NULL;
  MPI_Request request;
  MPI_Message message;
  MPI_Status status;
  static const int kBadRanks[] = {-77, 1 << 20};
  for (int i = 0; i < 3; ++i) {
    const int rank = i < 2 ? kBadRanks[i] : world_size;
    EXPECT_CLASS(MPI_Send(&value, 1, MPI_INT, rank, 1, world), MPI_ERR_RANK);
    EXPECT_CLASS(MPI_Isend(&value, 1, MPI_INT, rank, 1, world, &request), MPI_ERR_RANK);
    EXPECT_CLASS(MPI_Recv(&value, 1, MPI_INT, rank, 1, world, &status), MPI_ERR_RANK);
    EXPECT_CLASS(MPI_Irecv(&value, 1, MPI_INT, rank, 1, world, &request), MPI_ERR_RANK);
    EXPECT_CLASS(MPI_Probe(rank, 1, world, &status), MPI_ERR_RANK);
    EXPECT_CLASS(MPI_Iprobe(rank, 1, world, &flag, &status), MPI_ERR_RANK);
    EXPECT_CLASS(MPI_Mprobe(rank, 1, world, &message, &status), MPI_ERR_RANK);
    EXPECT_CLASS(MPI_Send_init(&value, 1, MPI_INT, rank, 1, world, &request), MPI_ERR_RANK);
  }
  EXPECT_CLASS(MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, world), MPI_ERR_RANK);
  EXPECT_CLASS(MPI_Send(&value, 1, MPI_INT, partner, -5, world), MPI_ERR_TAG);
  EXPECT_CLASS(MPI_Send(&value, 1, MPI_INT, partner, MPI_ANY_TAG, world), MPI_ERR_TAG);
  EXPECT_CLASS(MPI_Recv(&value, 1, MPI_INT, partner, -5, world, &status), MPI_ERR_TAG);
  EXPECT_CLASS(MPI_Send(&value, -1, MPI_INT, partner, 1, world), MPI_ERR_COUNT);
  EXPECT_CLASS(MPI_Recv(&value, -1, MPI_INT, partner, 1, world, &status), MPI_ERR_COUNT);
  EXPECT_CLASS(MPI_Send(&value, 1, MPI_DATATYPE_NULL, partner, 1, world), MPI_ERR_TYPE);

  MPI_Comm_get_attr(world, MPI_TAG_UB, &limit, &flag);
  EXPECT(flag && *limit >= 32767, "MPI_TAG_UB of at least 32767, got %d", flag ? *limit : -1);
  if (*limit < INT32_MAX)
    EXPECT_CLASS(MPI_Send(&value, 1, MPI_INT, partner, *limit + 1, world), MPI_ERR_TAG);
  // The largest tag itself is as good as any.
  value = -1;
  MPI_Sendrecv(&world_rank, 1, MPI_INT, partner, *limit, &value, 1, MPI_INT, partner, *limit, world,
               &status);
  EXPECT(value == partner && status.MPI_TAG == *limit, "%d under the largest tag, got %d", partner,
         value);
}

static void bad_arguments_of_every_mode(void) {
  const MPI_Comm world = MPI_COMM_WORLD;
  int value = 0;
  MPI_Request request;
  int (*const send[])(const void*, int, MPI_Datatype, int, int, MPI_Comm) = {MPI_Ssend, MPI_Rsend,
                                                                             MPI_Bsend};
  int (*const start[])(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = {
      MPI_Issend,     MPI_Irsend,     MPI_Ibsend,    MPI_Ssend_init,
      MPI_Rsend_init, MPI_Bsend_init, MPI_Send_init, MPI_Isend};
  for (size_t i = 0; i < sizeof send / sizeof send[0]; ++i) {
    EXPECT_CLASS(send[i](&value, 1, MPI_INT, world_size, 1, world), MPI_ERR_RANK);
    EXPECT_CLASS(send[i](&value, 1, MPI_INT, 0, -5, world), MPI_ERR_TAG);
    EXPECT_CLASS(send[i](&value, -1, MPI_INT, 0, 1, world), MPI_ERR_COUNT);
  }
  for (size_t i = 0; i < sizeof start / sizeof start[0]; ++i) {
    EXPECT_CLASS(start[i](&value, 1, MPI_INT, world_size, 1, world, &request), MPI_ERR_RANK);
    EXPECT_CLASS(start[i](&value, 1, MPI_INT, 0, -5, world, &request), MPI_ERR_TAG);
    EXPECT_CLASS(start[i](&value, -1, MPI_INT, 0, 1, world, &request), MPI_ERR_COUNT);
  }
}

// Erroneous, with an outcome that the standard leaves open: under Open MPI a ready send that
// finds no receive is a message as any other. It is neither lost nor does it harm the next one.
static void ready_without_receive(void) {
  static const int kSizes[] = {0, 1, 4000, 5000, 70000, 190000};
  const int partner = partner_rank(), tag = 23;
  for (size_t i = 0; i < sizeof kSizes / sizeof kSizes[0]; ++i)
    for (int persistent = 0; persistent < 2; ++persistent) {
      const int bytes = kSizes[i];
      MPI_Request sends[2];
      MPI_Barrier(MPI_COMM_WORLD);
      if (persistent != 0) {
        MPI_Rsend_init(outgoing, bytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD, &sends[0]);
        MPI_Start(&sends[0]);
      } else {
        MPI_Irsend(outgoing, bytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD, &sends[0]);
      }
      MPI_Isend(outgoing + 1, bytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD, &sends[1]);
      MPI_Probe(partner, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int number = 0; number < 2; ++number) {
        memset(incoming, 0xEE, kMaxBytes);
        EXPECT_CLASS(
            MPI_Recv(incoming, bytes, MPI_BYTE, partner, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
            MPI_SUCCESS);
        EXPECT(memcmp(incoming, outgoing + number, (size_t)bytes) == 0,
               "message %d of %d bytes as sent", number, bytes);
      }
      MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
      if (persistent != 0) MPI_Request_free(&sends[0]);
    }
}

static void nothing_was_sent(void) {
  int found = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  EXPECT(!found, "no message left over from a call that failed");
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  strict = argument(argc, argv, "strict", 0) != 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  outgoing = allocate(kMaxBytes);
  incoming = allocate(kMaxBytes);
  fill(outgoing, kMaxBytes, 1);
  truncation();
  ready_without_receive();
  bad_arguments();
  bad_arguments_of_every_mode();
  nothing_was_sent();
  free(incoming);
  free(outgoing);
  return finish();
}
