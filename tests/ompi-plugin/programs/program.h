// SPDX-License-Identifier: BSD-3-Clause
// What the test programs share: start and finish, expectations that say what was
// expected, recognisable message contents and a reproducible random sequence.
#ifndef TAGLINE_TESTS_OMPI_PLUGIN_PROGRAM_H
#define TAGLINE_TESTS_OMPI_PLUGIN_PROGRAM_H

#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* program_name = "?";
static int world_rank = -1;
static int world_size = 0;

// One line per failure, then the job ends: no rank is left waiting for this one.
__attribute__((noreturn, format(printf, 3, 4))) static inline void fail(int line,
                                                                        const char* condition,
                                                                        const char* expected, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, expected);
  vsnprintf(text, sizeof text, expected, arguments);
  va_end(arguments);
  fprintf(stderr, "%s:%d: rank %d of %d: FAILED (%s): expected %s\n", program_name, line,
          world_rank, world_size, condition, text);
  fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  abort();
}

// EXPECT(got == 4, "4 items, got %d", got): the text completes "expected ...".
#define EXPECT(condition, ...)                                 \
  do {                                                         \
    if (!(condition)) fail(__LINE__, #condition, __VA_ARGS__); \
  } while (0)

static inline void begin_with_threads(int* argc, char*** argv, int required, int* provided) {
  const char* slash = strrchr((*argv)[0], '/');
  program_name = slash != NULL ? slash + 1 : (*argv)[0];
  MPI_Init_thread(argc, argv, required, provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
}

// Number of the command line's argument `name=VALUE`, else `otherwise`.
static inline long argument(int argc, char** argv, const char* name, long otherwise) {
  const size_t length = strlen(name);
  for (int i = 1; i < argc; ++i)
    if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
      return strtol(argv[i] + length + 1, NULL, 0);
  return otherwise;
}

// Argument level=1: MPI_THREAD_FUNNELED, 2: MPI_THREAD_SERIALIZED, 3: MPI_THREAD_MULTIPLE.
static inline void begin(int* argc, char*** argv) {
  static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                               MPI_THREAD_MULTIPLE};
  const int level = levels[argument(*argc, *argv, "level", 0) & 3];
  int provided = 0;
  begin_with_threads(argc, argv, level, &provided);
  EXPECT(provided >= level, "thread level %d, provided %d", level, provided);
}

// The last barrier shows that nothing of the test blocks later traffic.
static inline int finish(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank == 0) printf("%s: ok on %d ranks\n", program_name, world_size);
  MPI_Finalize();
  return 0;
}

// Ranks 0 and 1, 2 and 3, ... talk to each other; a rank without a neighbour to itself.
static inline int partner_rank(void) {
  const int partner = world_rank ^ 1;
  return partner < world_size ? partner : world_rank;
}

static inline void* allocate(size_t bytes) {
  void* memory = calloc(bytes > 0 ? bytes : 1, 1);
  EXPECT(memory != NULL, "%zu bytes of memory", bytes);
  return memory;
}

// ---- Random sequence (splitmix64): the same on every rank for the same seed ----

static inline uint64_t random_next(uint64_t* state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static inline int random_below(uint64_t* state, int bound) {
  return (int)(random_next(state) % (uint64_t)bound);
}

static inline void shuffle(int* values, int count, uint64_t* state) {
  for (int i = count - 1; i > 0; --i) {
    const int j = random_below(state, i + 1);
    const int value = values[i];
    values[i] = values[j];
    values[j] = value;
  }
}

// A shuffled 0 .. count-1; the caller frees it.
static inline int* random_order(int count, uint64_t* state) {
  int* order = allocate((size_t)count * sizeof *order);
  for (int i = 0; i < count; ++i) order[i] = i;
  shuffle(order, count, state);
  return order;
}

// ---- Message contents: every 8 bytes depend on the seed and on their place ----

static inline uint64_t pattern_word(uint64_t seed, size_t index) {
  return (seed * 0xD1342543DE82EF95u + index + 1) * 0x9E3779B97F4A7C15u;
}

static inline void fill(void* buffer, size_t bytes, uint64_t seed) {
  const size_t words = bytes / 8;
  for (size_t i = 0; i < words; ++i) {
    const uint64_t word = pattern_word(seed, i);
    memcpy((char*)buffer + i * 8, &word, 8);
  }
  const uint64_t last = pattern_word(seed, words);
  memcpy((char*)buffer + words * 8, &last, bytes % 8);
}

static inline bool holds(const void* buffer, size_t bytes, uint64_t seed) {
  const size_t words = bytes / 8;
  for (size_t i = 0; i < words; ++i) {
    const uint64_t word = pattern_word(seed, i);
    if (memcmp((const char*)buffer + i * 8, &word, 8) != 0) return false;
  }
  const uint64_t last = pattern_word(seed, words);
  return memcmp((const char*)buffer + words * 8, &last, bytes % 8) == 0;
}

static inline bool all_bytes_are(const void* buffer, size_t bytes, unsigned char value) {
  for (size_t i = 0; i < bytes; ++i)
    if (((const unsigned char*)buffer)[i] != value) return false;
  return true;
}

#define EXPECT_CONTENTS(buffer, bytes, seed)                                                       \
  EXPECT(holds((buffer), (size_t)(bytes), (seed)), "the contents sent with seed %llu (%zu bytes)", \
         (unsigned long long)(seed), (size_t)(bytes))

static inline int received_bytes(const MPI_Status* status) {
  int bytes = -1;
  MPI_Get_count(status, MPI_BYTE, &bytes);
  return bytes;
}

#define EXPECT_STATUS(status, source, tag, bytes)                                         \
  EXPECT((status).MPI_SOURCE == (source) && (status).MPI_TAG == (tag) &&                  \
             received_bytes(&(status)) == (int)(bytes),                                   \
         "source %d, tag %d, %d bytes; got source %d, tag %d, %d bytes", (source), (tag), \
         (int)(bytes), (status).MPI_SOURCE, (status).MPI_TAG, received_bytes(&(status)))

#endif  // TAGLINE_TESTS_OMPI_PLUGIN_PROGRAM_H
