// SPDX-License-Identifier: BSD-3-Clause
// A random mixture of everything: sizes, modes, layouts, wildcards, matched probes,
// collectives. All ranks draw the same plan from one seed (`seed=N`, printed), so that
// every rank knows what it must get. `rounds=N` rounds of `messages=N` each.
//
// Receives are posted in layers: exact ones first, then any source or any tag, then
// both. As each takes the oldest that fits, no receive starves whatever the timing.
#include <time.h>

#include "program.h"

enum { kTags = 5, kSizes = 5, kMostMessages = 400 };
static const int kMaxBytes[kSizes] = {8, 200, 5000, 70000, 300000};

enum layer { kExact, kAnySource, kAnyTag, kAnything, kProbed };

struct message {
  int from, to, tag, bytes, mode;
  bool strided;
};

struct arrival {
  MPI_Request request;
  char* buffer;
  int source, tag;
};

static struct message plan[kMostMessages];
static struct arrival arrivals[kMostMessages];

static uint64_t identity(int round, int number) {
  return (uint64_t)round * 100003u + (uint64_t)number;
}

static void draw_plan(int messages, uint64_t* random) {
  for (int i = 0; i < messages; ++i) {
    const int size = random_below(random, 20);
    const int class = size < 8 ? 0 : size < 14 ? 1 : size < 17 ? 2 : size < 19 ? 3 : 4;
    plan[i] = (struct message){
        random_below(random, world_size), random_below(random, world_size),
        random_below(random, kTags),      8 + 8 * random_below(random, kMaxBytes[class] / 8),
        random_below(random, 4),          random_below(random, 4) == 0};
  }
}

// The first 8 bytes tell the message's number; the rest is its pattern.
static char* compose(int round, int number) {
  const struct message* message = &plan[number];
  char* buffer = allocate((size_t)message->bytes * 2);
  fill(buffer, (size_t)message->bytes, identity(round, number));
  const int64_t header = number;
  memcpy(buffer, &header, 8);
  if (!message->strided) return buffer;
  for (int i = message->bytes / 8 - 1; i > 0; --i) memmove(buffer + 16 * i, buffer + 8 * i, 8);
  return buffer;
}

static void send(int number, char* buffer, MPI_Request* request) {
  static int (*const kStart[])(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = {
      MPI_Isend, MPI_Issend, MPI_Ibsend, MPI_Send_init};
  const struct message* message = &plan[number];
  MPI_Datatype layout;
  if (message->strided)
    MPI_Type_vector(message->bytes / 8, 8, 16, MPI_BYTE, &layout);
  else
    MPI_Type_contiguous(message->bytes, MPI_BYTE, &layout);
  MPI_Type_commit(&layout);
  kStart[message->mode](buffer, 1, layout, message->to, message->tag, MPI_COMM_WORLD, request);
  if (message->mode == 3) MPI_Start(request);
  MPI_Type_free(&layout);
}

static void post(struct arrival* arrival, enum layer layer, const struct message* message) {
  arrival->buffer = allocate(kMaxBytes[kSizes - 1] + 8);
  arrival->source = layer == kExact || layer == kAnyTag ? message->from : MPI_ANY_SOURCE;
  arrival->tag = layer == kExact || layer == kAnySource ? message->tag : MPI_ANY_TAG;
  if (layer == kProbed) {
    MPI_Message matched;
    MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &matched, MPI_STATUS_IGNORE);
    MPI_Imrecv(arrival->buffer, kMaxBytes[kSizes - 1] + 8, MPI_BYTE, &matched, &arrival->request);
  } else {
    MPI_Irecv(arrival->buffer, kMaxBytes[kSizes - 1] + 8, MPI_BYTE, arrival->source, arrival->tag,
              MPI_COMM_WORLD, &arrival->request);
  }
}

static int post_layer(enum layer layer, int messages, int posted, const enum layer* layers) {
  for (int i = 0; i < messages; ++i)
    if (plan[i].to == world_rank && layers[i] == layer) post(&arrivals[posted++], layer, &plan[i]);
  return posted;
}

// Each message once, as sent, and those of one source and tag in the order sent.
static void check(int round, int posted) {
  static int last[64][kTags];
  memset(last, 0xFF, sizeof last);
  bool seen[kMostMessages] = {false};
  for (int i = 0; i < posted; ++i) {
    MPI_Status status;
    int64_t number = -1;
    MPI_Wait(&arrivals[i].request, &status);
    memcpy(&number, arrivals[i].buffer, 8);
    EXPECT(number >= 0 && number < kMostMessages && !seen[number],
           "a message of round %d not seen before, got %lld", round, (long long)number);
    const struct message* message = &plan[number];
    seen[number] = true;
    EXPECT(message->to == world_rank, "a message to this rank, got one to %d", message->to);
    EXPECT_STATUS(status, message->from, message->tag, message->bytes);
    EXPECT((arrivals[i].source == MPI_ANY_SOURCE || arrivals[i].source == message->from) &&
               (arrivals[i].tag == MPI_ANY_TAG || arrivals[i].tag == message->tag),
           "a message that fits its receive in round %d", round);
    EXPECT(last[message->from][message->tag] < number,
           "round %d: message %d of rank %d and tag %d before %d", round, (int)number,
           message->from, message->tag, last[message->from][message->tag]);
    last[message->from][message->tag] = (int)number;
    const uint64_t word = pattern_word(identity(round, (int)number), 0);
    memcpy(arrivals[i].buffer, &word, 8);
    EXPECT_CONTENTS(arrivals[i].buffer, message->bytes, identity(round, (int)number));
    free(arrivals[i].buffer);
  }
}

static void run_round(int round, int messages, uint64_t* random) {
  MPI_Request sends[kMostMessages];
  char* buffers[kMostMessages];
  enum layer layers[kMostMessages];
  draw_plan(messages, random);
  const enum layer middle = random_below(random, 2) == 0 ? kAnySource : kAnyTag;
  const enum layer top = random_below(random, 3) == 0 ? kProbed : kAnything;
  const int percent_wild = random_below(random, 101);
  for (int i = 0; i < messages; ++i) {
    const bool wild = random_below(random, 100) < percent_wild;
    layers[i] = !wild ? kExact : random_below(random, 2) == 0 ? middle : top;
  }
  const bool receive_first = random_below(random, 2) == 0;
  const bool with_barrier = random_below(random, 3) == 0;
  const int reduced = random_below(random, 1000);

  int posted = 0, sent = 0;
  if (receive_first) posted = post_layer(kExact, messages, posted, layers);
  if (with_barrier) MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < messages; ++i)
    if (plan[i].from == world_rank) {
      buffers[sent] = compose(round, i);
      send(i, buffers[sent], &sends[sent]);
      ++sent;
    }
  int sum = -1;
  MPI_Allreduce(&reduced, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(sum == reduced * world_size, "the sum %d in round %d, got %d", reduced * world_size, round,
         sum);
  if (!receive_first) posted = post_layer(kExact, messages, posted, layers);
  posted = post_layer(middle, messages, posted, layers);
  posted = post_layer(top, messages, posted, layers);
  check(round, posted);
  for (int i = 0, s = 0; i < messages; ++i)
    if (plan[i].from == world_rank) {
      MPI_Wait(&sends[s], MPI_STATUS_IGNORE);
      if (plan[i].mode == 3) MPI_Request_free(&sends[s]);
      free(buffers[s++]);
    }
  // Wildcards of the next round must not take what belongs to this one.
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  long seed = argument(argc, argv, "seed", 0);
  if (seed == 0) seed = (long)time(NULL);
  MPI_Bcast(&seed, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  const int rounds = (int)argument(argc, argv, "rounds", 150);
  const int messages = (int)argument(argc, argv, "messages", 60 * world_size);
  if (world_rank == 0)
    printf("%s: seed=%ld rounds=%d messages=%d\n", program_name, seed, rounds, messages);
  EXPECT(messages <= kMostMessages && world_size <= 64, "at most %d messages", kMostMessages);
  const int attached_bytes = kMostMessages * (kMaxBytes[kSizes - 1] + 8 + MPI_BSEND_OVERHEAD);
  void* attached = allocate((size_t)attached_bytes);
  MPI_Buffer_attach(attached, attached_bytes);
  uint64_t random = (uint64_t)seed;
  for (int round = 0; round < rounds; ++round) run_round(round, messages, &random);
  void* detached;
  int detached_bytes;
  MPI_Buffer_detach(&detached, &detached_bytes);
  free(attached);
  return finish();
}
