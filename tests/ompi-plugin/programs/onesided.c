// SPDX-License-Identifier: BSD-3-Clause
// One-sided communication on top of the component: fence, post/start/complete/wait,
// locks, flush and atomic updates.
#include "program.h"

enum { kInts = 20000 };

static void fence(int* memory, MPI_Win window) {
  const int right = (world_rank + 1) % world_size,
            left = (world_rank + world_size - 1) % world_size;
  int *values = allocate(kInts * sizeof(int)), *fetched = allocate(kInts * sizeof(int));
  for (int i = 0; i < kInts; ++i) values[i] = i + 1000 * world_rank, memory[i] = -1;
  MPI_Win_fence(0, window);
  MPI_Put(values, kInts, MPI_INT, right, 0, kInts, MPI_INT, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < kInts; ++i)
    EXPECT(memory[i] == i + 1000 * left, "%d put by rank %d, got %d", i + 1000 * left, left,
           memory[i]);
  MPI_Win_fence(0, window);
  MPI_Get(fetched, kInts, MPI_INT, right, 0, kInts, MPI_INT, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < kInts; ++i)
    EXPECT(fetched[i] == values[i], "%d fetched back, got %d", values[i], fetched[i]);
  // Everyone adds to everyone.
  for (int i = 0; i < kInts; ++i) memory[i] = 0;
  MPI_Win_fence(0, window);
  for (int to = 0; to < world_size; ++to)
    MPI_Accumulate(values, kInts, MPI_INT, to, 0, kInts, MPI_INT, MPI_SUM, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < kInts; ++i) {
    const int sum = i * world_size + 1000 * (world_size * (world_size - 1) / 2);
    EXPECT(memory[i] == sum, "sum %d, got %d", sum, memory[i]);
  }
  MPI_Win_fence(0, window);
  free(fetched);
  free(values);
}

static void strided(int* memory, MPI_Win window) {
  enum { kColumn = 100 };
  const int right = (world_rank + 1) % world_size,
            left = (world_rank + world_size - 1) % world_size;
  MPI_Datatype column;
  MPI_Type_vector(kColumn, 1, 7, MPI_INT, &column);
  MPI_Type_commit(&column);
  int values[kColumn];
  for (int i = 0; i < kColumn; ++i) values[i] = i * i + world_rank;
  for (int i = 0; i < 7 * kColumn; ++i) memory[i] = -1;
  MPI_Win_fence(0, window);
  MPI_Put(values, kColumn, MPI_INT, right, 0, 1, column, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < 7 * (kColumn - 1); ++i) {
    const int expected = i % 7 == 0 ? (i / 7) * (i / 7) + left : -1;
    EXPECT(memory[i] == expected, "%d at %d, got %d", expected, i, memory[i]);
  }
  MPI_Win_fence(0, window);
  MPI_Type_free(&column);
}

static void post_start_complete_wait(int* memory, MPI_Win window) {
  const int right = (world_rank + 1) % world_size,
            left = (world_rank + world_size - 1) % world_size;
  MPI_Group world, to, from;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &right, &to);
  MPI_Group_incl(world, 1, &left, &from);
  for (int round = 0; round < 100; ++round) {
    int values[50];
    for (int i = 0; i < 50; ++i) values[i] = round + i + world_rank;
    MPI_Win_post(from, 0, window);
    MPI_Win_start(to, 0, window);
    MPI_Put(values, 50, MPI_INT, right, 100, 50, MPI_INT, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    for (int i = 0; i < 50; ++i)
      EXPECT(memory[100 + i] == round + i + left, "%d in round %d, got %d", round + i + left, round,
             memory[100 + i]);
  }
  MPI_Group_free(&from);
  MPI_Group_free(&to);
  MPI_Group_free(&world);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Rank 0's memory holds a counter (fetch-and-add), a cell for compare-and-swap and sums.
static void locks(int* memory, MPI_Win window) {
  enum { kRounds = 100 };
  memory[0] = memory[1] = memory[2] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  int* tickets = allocate(kRounds * sizeof(int));
  for (int i = 0; i < kRounds; ++i) {
    const int one = 1;
    MPI_Win_lock(i % 2 == 0 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Fetch_and_op(&one, &tickets[i], MPI_INT, 0, 0, MPI_SUM, window);
    MPI_Accumulate(&world_rank, 1, MPI_INT, 0, 2, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_unlock(0, window);
    EXPECT(i == 0 || tickets[i] > tickets[i - 1], "rising tickets, got %d", tickets[i]);
  }
  MPI_Win_lock_all(0, window);
  int old = -1;
  const int zero = 0, mark = world_rank + 1;
  MPI_Compare_and_swap(&mark, &zero, &old, MPI_INT, 0, 1, window);
  MPI_Win_flush(0, window);
  int winner = -1;
  MPI_Fetch_and_op(NULL, &winner, MPI_INT, 0, 1, MPI_NO_OP, window);
  MPI_Win_flush(0, window);
  EXPECT(old == 0 ? winner == mark : winner == old, "one winner of compare-and-swap, got %d",
         winner);
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  int total[3] = {-1, -1, -1};
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  MPI_Get(total, 3, MPI_INT, 0, 0, 3, MPI_INT, window);
  MPI_Win_unlock(0, window);
  const int sum = kRounds * world_size * (world_size - 1) / 2;
  EXPECT(total[0] == kRounds * world_size && total[2] == sum,
         "%d tickets and the sum %d, got %d and %d", kRounds * world_size, sum, total[0], total[2]);
  free(tickets);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void exercise(int* memory, MPI_Win window) {
  fence(memory, window);
  strided(memory, window);
  post_start_complete_wait(memory, window);
  locks(memory, window);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Win window;
  int* memory;
  MPI_Win_allocate(kInts * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                   &window);
  exercise(memory, window);
  MPI_Win_free(&window);
  memory = allocate(kInts * sizeof(int));
  MPI_Win_create(memory, kInts * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  exercise(memory, window);
  MPI_Win_free(&window);
  free(memory);
  return finish();
}
