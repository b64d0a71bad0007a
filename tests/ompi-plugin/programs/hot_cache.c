// SPDX-License-Identifier: BSD-3-Clause
// The heater's thread (heater=1): it is bound, it works while there is communication and
// rests while there is none, a tool can pause it, and messages match as ever. Without the
// argument there must be no such thread.
#include <dirent.h>
#include <sched.h>
#include <unistd.h>

#include "program.h"

static int heater_thread(void) {
  DIR* tasks = opendir("/proc/self/task");
  EXPECT(tasks != NULL, "a list of threads");
  int found = 0;
  for (struct dirent* task; (task = readdir(tasks)) != NULL;) {
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE* file = fopen(path, "r");
    if (file == NULL) continue;
    if (fgets(name, sizeof name, file) != NULL && strcmp(name, "tagline-heater\n") == 0)
      found = atoi(task->d_name);
    fclose(file);
  }
  closedir(tasks);
  return found;
}

// How often it has gone to sleep: once a pass.
static long sleeps_of(int thread) {
  char path[64], line[128];
  long sleeps = -1;
  snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
  FILE* file = fopen(path, "r");
  EXPECT(file != NULL, "the heater's thread to exist still");
  while (fgets(line, sizeof line, file) != NULL)
    sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
  fclose(file);
  return sleeps;
}

// Receives that are matched in the order of their tags, the reverse, or some other.
static void communicate(double seconds) {
  enum { kMessages = 500 };
  static int received[kMessages];
  static MPI_Request requests[kMessages];
  const double end = MPI_Wtime() + seconds;
  for (int round = 0; round == 0 || MPI_Wtime() < end; ++round) {
    for (int i = 0; i < kMessages; ++i)
      MPI_Irecv(&received[i], 1, MPI_INT, world_rank, i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < kMessages; ++i) {
      const int tag = round % 3 == 0 ? i : round % 3 == 1 ? kMessages - 1 - i : i * 7 % kMessages;
      const int value = round + tag;
      MPI_Send(&value, 1, MPI_INT, world_rank, tag, MPI_COMM_WORLD);
    }
    MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kMessages; ++i)
      EXPECT(received[i] == round + i, "%d, got %d", round + i, received[i]);
  }
}

// Whether the heater works during communication, given enough of it.
static bool works(int thread) {
  const long before = sleeps_of(thread);
  for (int i = 0; i < 200 && sleeps_of(thread) < before + 20; ++i) communicate(0.01);
  return sleeps_of(thread) >= before + 20;
}

// Whether it stays asleep from some time on, during communication or without any.
static bool rests(int thread, bool communicating) {
  for (int i = 0; i < 100; ++i) {
    const long before = sleeps_of(thread);
    if (communicating) {
      communicate(0.05);
    } else {
      usleep(50000);
    }
    if (sleeps_of(thread) == before) return true;
  }
  return false;
}

static void set_paused(bool paused) {
  int provided, index, count;
  MPI_T_cvar_handle handle;
  EXPECT(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS, "the tool interface");
  EXPECT(MPI_T_cvar_get_index("pml_tagline_hot_cache_paused", &index) == MPI_SUCCESS,
         "the parameter");
  EXPECT(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS, "its handle");
  int value = paused;
  EXPECT(MPI_T_cvar_write(handle, &value) == MPI_SUCCESS, "to be allowed to write it");
  MPI_T_cvar_handle_free(&handle);
  MPI_T_finalize();
}

// A heater needs a unit that shares a cache with another one.
static bool caches_are_shared(void) {
  for (int index = 0; index < 8; ++index) {
    char path[100], list[100] = "";
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/shared_cpu_list",
             index);
    FILE* file = fopen(path, "r");
    if (file == NULL) continue;
    const bool shared = fgets(list, sizeof list, file) != NULL && strpbrk(list, ",-") != NULL;
    fclose(file);
    if (shared) return true;
  }
  return false;
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  int thread = heater_thread();
  communicate(0.1);
  if (argc > 1 && strcmp(argv[1], "heater=1") == 0) {
    // A thread that has just been made gives itself its name when it first runs.
    for (int i = 0; i < 250 && thread == 0 && caches_are_shared(); ++i) {
      usleep(20000);
      thread = heater_thread();
    }
    if (thread == 0 && !caches_are_shared()) {
      printf("no units share a cache here\n");
      MPI_Finalize();
      return 77;
    }
    EXPECT(thread != 0, "a heater");
    cpu_set_t units;
    EXPECT(sched_getaffinity(thread, sizeof units, &units) == 0 && CPU_COUNT(&units) == 1,
           "the heater to be bound to one unit");
    EXPECT(works(thread), "the heater to work during communication");
    EXPECT(rests(thread, false), "the heater to rest without communication");
    EXPECT(works(thread), "the heater to wake up");
    set_paused(true);
    EXPECT(rests(thread, true), "the heater to rest while it is paused");
    set_paused(false);
    EXPECT(works(thread), "the heater to work again");
  } else {
    EXPECT(thread == 0, "no heater");
  }
  return finish();
}
