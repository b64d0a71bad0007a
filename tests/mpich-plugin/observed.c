// SPDX-License-Identifier: BSD-3-Clause
// What tools see of CH4's receive queues: MPI_T's variables and events, and the heads of the
// lists that a debugger walks, for queues whose contents are known here. Wants an MPICH built with
// --enable-mpit-pvars=recvq --enable-mpit-events --enable-debuginfo (tools/mpich.sh observed).
//
//   observed [NEXT SOURCE TAG]   where the library's debug information has these in an element of a
//                                list; without them only the heads are looked at
#define _GNU_SOURCE
#include <dlfcn.h>

#include "program.h"

enum { kPosted = 40, kMessages = 30, kPostedTag = 100, kMessageTag = 200, kLast = 900 };

// ---- Variables --------------------------------------------------------------------------

typedef struct Variable {
  const char* name;
  MPI_T_pvar_handle handle;
  MPI_Datatype type;
} Variable;

static MPI_T_pvar_session session;

static Variable variable(const char* name) {
  Variable found = {name, MPI_T_PVAR_HANDLE_NULL, MPI_DATATYPE_NULL};
  int number = 0;
  MPI_T_pvar_get_num(&number);
  for (int i = 0; i < number; ++i) {
    char text[256];
    int length = sizeof text, verbosity, kind, bind, readonly, continuous, atomic, count = 0;
    MPI_T_pvar_get_info(i, text, &length, &verbosity, &kind, &found.type, NULL, NULL, NULL, &bind,
                        &readonly, &continuous, &atomic);
    if (strcmp(text, name) != 0) continue;
    const int error = MPI_T_pvar_handle_alloc(session, i, NULL, &found.handle, &count);
    EXPECT(error == MPI_SUCCESS && count == 1, "a handle of one %s, error %d", name, error);
    return found;
  }
  EXPECT(false, "a performance variable %s", name);
  return found;
}

static double value(const Variable* of) {
  unsigned level = 0;
  unsigned long long counter = 0;
  double seconds = 0;
  const bool is_level = of->type == MPI_UNSIGNED, is_timer = of->type == MPI_DOUBLE;
  void* const where = is_level ? (void*)&level : is_timer ? (void*)&seconds : (void*)&counter;
  const int error = MPI_T_pvar_read(session, of->handle, where);
  EXPECT(error == MPI_SUCCESS, "to read %s, error %d", of->name, error);
  return is_level ? level : is_timer ? seconds : (double)counter;
}

#define EXPECT_VALUE(variable, expected)                                           \
  EXPECT(value(&(variable)) == (expected), "%s to be %g, got %g", (variable).name, \
         (double)(expected), value(&(variable)))

// ---- Events -----------------------------------------------------------------------------

// The tags of the messages that were queued, and of those that were taken.
typedef struct Seen {
  int count, tag[kMessages];
} Seen;

static void note(MPI_T_event_instance instance, MPI_T_event_registration registration,
                 MPI_T_cb_safety safety, void* user_data) {
  (void)registration, (void)safety;
  Seen* const seen = user_data;
  int source = -1, tag = -1;
  MPI_T_event_read(instance, 0, &source);
  MPI_T_event_read(instance, 1, &tag);
  // The library's own messages and the last one may wait too.
  if (tag < kMessageTag || tag >= kMessageTag + kMessages) return;
  EXPECT(source == partner_rank(), "an event of rank %d, got %d", partner_rank(), source);
  EXPECT(seen->count < kMessages, "%d events, got more", kMessages);
  seen->tag[seen->count++] = tag;
}

static void watch(const char* name, Seen* seen) {
  int event = -1;
  MPI_T_event_registration registration;
  EXPECT(MPI_T_event_get_index(name, &event) == MPI_SUCCESS, "an event %s", name);
  MPI_T_event_handle_alloc(event, NULL, MPI_INFO_NULL, &registration);
  const int error = MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
                                                  MPI_INFO_NULL, seen, note);
  EXPECT(error == MPI_SUCCESS, "to watch %s, error %d", name, error);
}

// ---- Debuggers --------------------------------------------------------------------------

// MPICH publishes where the first element of a list is found.
static const void* first_of(const char* symbol) {
  void*** const published = dlsym(RTLD_DEFAULT, symbol);
  EXPECT(published != NULL && *published != NULL, "%s for debuggers", symbol);
  return **published;
}

static const char kPostedHead[] = "MPID_Recvq_posted_head_ptr";
static const char kUnexpectedHead[] = "MPID_Recvq_unexpected_head_ptr";

static size_t next_at, source_at, tag_at;

static int number_at(const char* element, size_t at) {
  int number;
  memcpy(&number, element + at, sizeof number);
  return number;
}

// As many elements, whose tags count up, all for the partner.
static void expect_list(const char* symbol, int count, int first_tag) {
  const char* element = first_of(symbol);
  if (next_at == 0) {
    EXPECT((element != NULL) == (count > 0), "%d elements of %s", count, symbol);
    return;
  }
  for (int i = 0; i < count; ++i) {
    EXPECT(element != NULL, "%d elements of %s, got %d", count, symbol, i);
    EXPECT(number_at(element, source_at) == partner_rank(), "element %d of %s for rank %d, got %d",
           i, symbol, partner_rank(), number_at(element, source_at));
    EXPECT(number_at(element, tag_at) == first_tag + i, "element %d of %s with tag %d, got %d", i,
           symbol, first_tag + i, number_at(element, tag_at));
    memcpy(&element, element + next_at, sizeof element);
  }
  EXPECT(element == NULL, "no more than %d elements of %s", count, symbol);
}

// ---- The queues -------------------------------------------------------------------------

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (argc == 4) {
    next_at = strtoul(argv[1], NULL, 0);
    source_at = strtoul(argv[2], NULL, 0);
    tag_at = strtoul(argv[3], NULL, 0);
  }
  int provided;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  EXPECT(world_size == 2, "2 ranks, got %d", world_size);
  const int partner = partner_rank();

  const Variable posted = variable("posted_recvq_length");
  const Variable unexpected = variable("unexpected_recvq_length");
  const Variable posted_attempts = variable("posted_recvq_match_attempts");
  const Variable unexpected_attempts = variable("unexpected_recvq_match_attempts");
  const Variable failing_time = variable("time_failed_matching_postedq");
  const Variable unexpected_time = variable("time_matching_unexpectedq");
  Seen queued = {0}, taken = {0};
  watch("unexp_message_enqueued", &queued);
  watch("unexp_message_dequeued", &taken);
  MPI_Barrier(MPI_COMM_WORLD);  // what starting left behind is gone
  // MPICH's timers start somewhere below zero: differences count.
  const double failing_before = value(&failing_time);

  // Receives that wait, then messages that nothing waits for; the last one tells that the
  // others are there.
  int incoming[kPosted], outgoing = world_rank;
  MPI_Request requests[kPosted];
  for (int i = 0; i < kPosted; ++i)
    MPI_Irecv(&incoming[i], 1, MPI_INT, partner, kPostedTag + i, MPI_COMM_WORLD, &requests[i]);
  EXPECT_VALUE(posted, kPosted);
  expect_list(kPostedHead, kPosted, kPostedTag);
  for (int i = 0; i < kMessages; ++i)
    MPI_Send(&outgoing, 1, MPI_INT, partner, kMessageTag + i, MPI_COMM_WORLD);
  MPI_Sendrecv(&outgoing, 1, MPI_INT, partner, kLast, incoming, 1, MPI_INT, partner, kLast,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_VALUE(unexpected, kMessages);
  expect_list(kPostedHead, kPosted, kPostedTag);
  expect_list(kUnexpectedHead, kMessages, kMessageTag);
  EXPECT(value(&posted_attempts) > 0, "searches of the posted receives to be counted");
  EXPECT(value(&failing_time) > failing_before, "time of searches that found nothing");

  // The newest first: each search looks at something.
  const double attempts_before = value(&unexpected_attempts);
  const double time_before = value(&unexpected_time);
  for (int i = kMessages - 1; i >= 0; --i) {
    int received = -1;
    MPI_Recv(&received, 1, MPI_INT, partner, kMessageTag + i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(received == partner, "%d, got %d", partner, received);
    expect_list(kUnexpectedHead, i, kMessageTag);
  }
  EXPECT_VALUE(unexpected, 0);
  EXPECT(value(&unexpected_attempts) >= attempts_before + kMessages,
         "at least %d looks at unexpected messages, got %g", kMessages,
         value(&unexpected_attempts) - attempts_before);
  EXPECT(value(&unexpected_time) > time_before, "time of searches among unexpected messages");
  EXPECT(queued.count == kMessages && taken.count == kMessages,
         "%d events of each kind, got %d, %d", kMessages, queued.count, taken.count);
  for (int i = 0; i < kMessages; ++i) {
    EXPECT(queued.tag[i] == kMessageTag + i, "tag %d as event %d, got %d", kMessageTag + i, i,
           queued.tag[i]);
    EXPECT(taken.tag[i] == kMessageTag + kMessages - 1 - i,
           "the newest first, got tag %d as event %d", taken.tag[i], i);
  }

  for (int i = 0; i < kPosted; ++i)
    MPI_Send(&outgoing, 1, MPI_INT, partner, kPostedTag + i, MPI_COMM_WORLD);
  MPI_Waitall(kPosted, requests, MPI_STATUSES_IGNORE);
  EXPECT_VALUE(posted, 0);
  expect_list(kPostedHead, 0, 0);

  MPI_T_pvar_session_free(&session);
  const int code = finish();
  MPI_T_finalize();
  return code;
}
