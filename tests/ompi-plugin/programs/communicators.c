// SPDX-License-Identifier: BSD-3-Clause
// Communicators keep their messages apart: duplicates, splits, groups and
// intercommunicators; freed with messages under way; made and freed thousands of
// times; with assertions about their use.
#include <malloc.h>
#include <unistd.h>

#include "program.h"

static void ring(MPI_Comm communicator, int tag, int bytes) {
  int rank, size;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  char *outgoing = allocate((size_t)bytes), *incoming = allocate((size_t)bytes);
  MPI_Status status;
  fill(outgoing, (size_t)bytes, (uint64_t)rank);
  MPI_Sendrecv(outgoing, bytes, MPI_BYTE, right, tag, incoming, bytes, MPI_BYTE, left, tag,
               communicator, &status);
  EXPECT_STATUS(status, left, tag, bytes);
  EXPECT_CONTENTS(incoming, bytes, left);
  free(incoming);
  free(outgoing);
}

// One tag on many communicators: sent in one order, received in the other.
static void kept_apart(void) {
  enum { kCount = 100 };
  MPI_Comm copies[kCount];
  MPI_Request sends[kCount];
  int numbers[kCount];
  const int partner = partner_rank();
  for (int i = 0; i < kCount; ++i) {
    MPI_Comm_dup(i == 0 ? MPI_COMM_WORLD : copies[i - 1], &copies[i]);
    numbers[i] = i;
  }
  for (int i = 0; i < kCount; ++i)
    MPI_Isend(&numbers[i], 1, MPI_INT, partner, 7, copies[i], &sends[i]);
  for (int i = kCount - 1; i >= 0; --i) {
    int number = -1;
    MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, copies[i], MPI_STATUS_IGNORE);
    EXPECT(number == i, "message %d on its communicator, got %d", i, number);
  }
  MPI_Waitall(kCount, sends, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kCount; ++i) MPI_Comm_free(&copies[(i * 37) % kCount]);
}

static void splits_and_groups(void) {
  for (int round = 0; round < 50; ++round) {
    MPI_Comm part, reversed, created;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &part);
    ring(part, round, 100 * round);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &reversed);
    int rank;
    MPI_Comm_rank(reversed, &rank);
    EXPECT(rank == world_size - 1 - world_rank, "rank %d, got %d", world_size - 1 - world_rank,
           rank);
    ring(reversed, round, 100 * round);
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    const int leaders = (world_size + 1) / 2;
    int range[1][3] = {{0, leaders - 1, 1}};
    MPI_Group_range_incl(world, 1, range, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &created);
    EXPECT((created != MPI_COMM_NULL) == (world_rank < leaders),
           "members only in a new communicator");
    if (created != MPI_COMM_NULL) {
      ring(created, round, 1000);
      MPI_Comm_free(&created);
      MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, &created);
      ring(created, round, 1000);
      MPI_Comm_free(&created);
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&part);
  }
}

static void intercommunicators(void) {
  if (world_size < 2) return;
  for (int round = 0; round < 50; ++round) {
    const int side = world_rank % 2;
    MPI_Comm local, inter, merged;
    MPI_Comm_split(MPI_COMM_WORLD, side, world_rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - side, 3, &inter);
    int rank, remote;
    MPI_Comm_rank(inter, &rank);
    MPI_Comm_remote_size(inter, &remote);
    // Ranks name members of the other group.
    if (rank < remote) {
      int number = -1;
      MPI_Status status;
      MPI_Request request;
      MPI_Isend(&world_rank, 1, MPI_INT, rank, 9, inter, &request);
      MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 9, inter, &status);
      EXPECT(number == (world_rank ^ 1) && status.MPI_SOURCE == rank,
             "%d from remote rank %d, got %d from %d", world_rank ^ 1, rank, number,
             status.MPI_SOURCE);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(inter);
    int sum = 0, expected = 0;
    for (int r = 1 - side; r < world_size; r += 2) expected += r;
    MPI_Allreduce(&world_rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    EXPECT(sum == expected, "the remote group's sum %d, got %d", expected, sum);
    MPI_Intercomm_merge(inter, side, &merged);
    ring(merged, 1, 5000);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
  }
}

// The requests outlive the handle.
static void freed_with_messages_under_way(int bytes) {
  const int partner = partner_rank();
  char *outgoing = allocate((size_t)bytes), *incoming = allocate((size_t)bytes);
  fill(outgoing, (size_t)bytes, (uint64_t)world_rank);
  for (int round = 0; round < 50; ++round) {
    MPI_Comm copy;
    MPI_Request requests[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    memset(incoming, 0, (size_t)bytes);
    if (round % 2 == 0) MPI_Irecv(incoming, bytes, MPI_BYTE, MPI_ANY_SOURCE, 3, copy, &requests[0]);
    MPI_Issend(outgoing, bytes, MPI_BYTE, partner, 3, copy, &requests[1]);
    if (round % 2 != 0) MPI_Irecv(incoming, bytes, MPI_BYTE, partner, 3, copy, &requests[0]);
    MPI_Comm_free(&copy);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT_CONTENTS(incoming, bytes, partner);
  }
  free(incoming);
  free(outgoing);
}

// Context ids are reused: no message and no queue may survive in them, and no memory
// once the first cycles have filled the caches.
static void made_and_freed(int cycles) {
  enum { kWarm = 500, kBytesPerCycle = 32 };
  const int partner = partner_rank();
  size_t bytes_when_warm = 0;
  for (int i = 0; i < cycles; ++i) {
    MPI_Comm copy;
    int number = -1;
    if (i == kWarm) bytes_when_warm = mallinfo2().uordblks;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (i % 3 != 0) {
      MPI_Sendrecv(&i, 1, MPI_INT, partner, 1, &number, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
                   copy, MPI_STATUS_IGNORE);
      EXPECT(number == i, "%d on communicator %d, got %d", i, i, number);
    }
    MPI_Comm_free(&copy);
  }
  if (cycles <= kWarm) return;
  const long long growth = (long long)mallinfo2().uordblks - (long long)bytes_when_warm;
  EXPECT(growth < (long long)kBytesPerCycle * (cycles - kWarm),
         "no memory kept for %d communicators made and freed, got %lld bytes", cycles - kWarm,
         growth);
}

static void expect_hint(MPI_Comm communicator, const char* key, const char* expected) {
  MPI_Info used;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int told = 0;
  MPI_Comm_get_info(communicator, &used);
  MPI_Info_get(used, key, MPI_MAX_INFO_VAL, value, &told);
  EXPECT(told && strcmp(value, expected) == 0, "%s to be %s, got %s", key, expected,
         told ? value : "nothing");
  MPI_Info_free(&used);
}

// Messages of one collective after another have one tag; the last rank comes late to all of them.
static void collectives_in_order(MPI_Comm communicator) {
  if (world_rank == world_size - 1) usleep(20000);
  for (int i = 0; i < 50; ++i) {
    int number = world_rank == 0 ? i : -1;
    MPI_Bcast(&number, 1, MPI_INT, 0, communicator);
    EXPECT(number == i, "%d from broadcast %d, got %d", i, i, number);
  }
}

static void with_assertions(const char* key, bool strict) {
  MPI_Comm copy;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, key, "true");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &copy);
  // ob1 of 4.1 knows two of the four.
  if (strict) expect_hint(copy, key, "true");
  collectives_in_order(copy);
  // Distinct tags name each message, so that overtaking changes nothing.
  for (int bytes = 0, tag = 1000; bytes < 300000; bytes = bytes * 5 + 1) ring(copy, tag++, bytes);
  enum { kCount = 200 };
  const int partner = partner_rank();
  MPI_Request requests[2 * kCount];
  int sent[kCount], received[kCount];
  for (int i = 0; i < kCount; ++i) {
    sent[i] = i;
    MPI_Isend(&sent[i], 1, MPI_INT, partner, i, copy, &requests[i]);
  }
  for (int i = kCount - 1; i >= 0; --i)
    MPI_Irecv(&received[i], 1, MPI_INT, partner, i, copy, &requests[kCount + i]);
  MPI_Waitall(2 * kCount, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kCount; ++i) EXPECT(received[i] == i, "%d, got %d", i, received[i]);
  // Open MPI's own barrier uses any source, whatever the user asserted, and ob1 of 4.1
  // may then hang: `strict=1` asks for it.
  MPI_Barrier(strict ? copy : MPI_COMM_WORLD);
  // Taken back, with messages of before still to be received.
  MPI_Request request;
  int number = -1;
  MPI_Isend(&world_rank, 1, MPI_INT, partner, 1, copy, &request);
  MPI_Info_set(info, key, "false");
  MPI_Comm_set_info(copy, info);
  if (strict) expect_hint(copy, key, "false");
  MPI_Recv(&number, 1, MPI_INT, partner, 1, copy, MPI_STATUS_IGNORE);
  EXPECT(number == partner, "%d, got %d", partner, number);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  ring(copy, 4, 10000);
  MPI_Comm_free(&copy);
  MPI_Info_free(&info);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int cycles = (int)argument(argc, argv, "cycles", 3000);
  const bool strict = argument(argc, argv, "strict", 0) != 0;
  kept_apart();
  splits_and_groups();
  intercommunicators();
  static const int kBytes[] = {0, 100, 5000, 100000, 1000000};
  for (size_t i = 0; i < sizeof kBytes / sizeof kBytes[0]; ++i)
    freed_with_messages_under_way(kBytes[i]);
  with_assertions("mpi_assert_no_any_source", strict);
  with_assertions("mpi_assert_no_any_tag", strict);
  with_assertions("mpi_assert_allow_overtaking", strict);
  with_assertions("mpi_assert_exact_length", strict);
  made_and_freed(cycles);
  return finish();
}
