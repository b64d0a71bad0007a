/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CH4's receive queues on tagline, see mpidig_recvq.h.
 *
 * A debugger walks MPICH's lists from their heads along `next`. Built for
 * debuggers (--enable-debuginfo) the lists are kept beside the matchers.
 */
#include "match/tagline.h"
#include "mpidimpl.h" /* includes mpidig_recvq.h where it belongs */

extern unsigned PVAR_LEVEL_posted_recvq_length ATTRIBUTE((unused));
extern unsigned PVAR_LEVEL_unexpected_recvq_length ATTRIBUTE((unused));
extern unsigned long long PVAR_COUNTER_posted_recvq_match_attempts ATTRIBUTE((unused));
extern unsigned long long PVAR_COUNTER_unexpected_recvq_match_attempts ATTRIBUTE((unused));
extern MPIR_T_pvar_timer_t PVAR_TIMER_time_failed_matching_postedq ATTRIBUTE((unused));
extern MPIR_T_pvar_timer_t PVAR_TIMER_time_matching_unexpectedq ATTRIBUTE((unused));

static int message_enqueued_event;
static int message_dequeued_event;

#ifdef HAVE_DEBUGGER_SUPPORT
MPICH_API_PUBLIC MPIR_Request** const MPID_Recvq_posted_head_ptr =
    &MPIDI_global.per_vci[0].posted_list;
MPICH_API_PUBLIC MPIR_Request** const MPID_Recvq_unexpected_head_ptr =
    &MPIDI_global.per_vci[0].unexp_list;
#endif

/* ---- Which matcher ------------------------------------------------------ */

/* A VCI's queues, or those of partitioned communication. */
typedef struct Queues {
  tagline_matcher* matcher; /* made when first used, which may be before MPIDIG_recvq_init() */
  size_t length[2];         /* of what it holds, by tagline_side */
} Queues;

static Queues vci_queues[MPIDI_CH4_MAX_VCIS];
static Queues partitioned_queues;

/* A matcher that writes down what it does (tagline record) has to do everything. */
static bool is_recorded;

static void forget(Queues* queues) {
  tagline_destroy(queues->matcher);
  memset(queues, 0, sizeof *queues);
}

static int forget_all(void* unused) {
  (void)unused;
  for (int vci = 0; vci < MPIDI_CH4_MAX_VCIS; ++vci) forget(&vci_queues[vci]);
  forget(&partitioned_queues);
  return 0;
}

/* CH4 has no way to report it: a queue that has no room is the end. */
ATTRIBUTE((noinline, cold)) static void give_up(void) {
  char text[512];
  snprintf(text, sizeof text, "receive queues: %s", tagline_error_message());
  MPID_Abort(NULL, MPI_SUCCESS, 1, text);
}

ATTRIBUTE((noinline, cold)) static void make_matcher(Queues* queues) {
  if (tagline_create(NULL, &queues->matcher) != TAGLINE_OK) give_up();
}

static Queues* queues_of(MPIR_Request** list, enum MPIDIG_queue_type type) {
  if (type == MPIDIG_PART) return &partitioned_queues;
  MPIR_Request** const first = type == MPIDIG_PT2PT_POSTED ? &MPIDI_global.per_vci[0].posted_list
                                                           : &MPIDI_global.per_vci[0].unexp_list;
  return &vci_queues[(size_t)((char*)list - (char*)first) / sizeof(MPIDI_per_vci_t)];
}

static tagline_side side_of(MPIR_Request** list, enum MPIDIG_queue_type type) {
  return type == MPIDIG_PT2PT_POSTED ||
                 (type == MPIDIG_PART && list == &MPIDI_global.part_posted_list)
             ? TAGLINE_POSTED
             : TAGLINE_UNEXPECTED;
}

/* ---- Envelopes ---------------------------------------------------------- */

static tagline_envelope envelope_of(int source, int tag, MPIR_Context_id_t context_id) {
  const tagline_envelope envelope = {context_id,
                                     source == MPI_ANY_SOURCE ? TAGLINE_ANY_SOURCE : source,
                                     tag == MPI_ANY_TAG ? TAGLINE_ANY_TAG : tag};
  return envelope;
}

static tagline_envelope envelope_of_request(MPIR_Request* request, enum MPIDIG_queue_type type) {
  return type == MPIDIG_PART
             ? envelope_of(MPIDI_PART_REQUEST(request, u.recv.source),
                           MPIDIG_plain_tag(MPIDI_PART_REQUEST(request, u.recv.tag)),
                           MPIDI_PART_REQUEST(request, u.recv.context_id))
             : envelope_of(MPIDIG_REQUEST(request, u.recv.source),
                           MPIDIG_plain_tag(MPIDIG_REQUEST(request, u.recv.tag)),
                           MPIDIG_REQUEST(request, u.recv.context_id));
}

/* ---- What tools see ----------------------------------------------------- */

/* Timing a search and asking how far it went cost as much as the search: done only
 * where MPICH is built with these variables (--enable-mpit-pvars=recvq). */
typedef struct Search {
  tagline_matcher* matcher;
  enum MPIDIG_queue_type type;
  uint64_t depth_before;
} Search;

static uint64_t depth_so_far(const Search* search) {
  tagline_statistics statistics;
  tagline_get_statistics(search->matcher, &statistics);
  return search->type == MPIDIG_PT2PT_POSTED ? statistics.posted.search_depth_sum
                                             : statistics.unexpected.search_depth_sum;
}

static Search begin_search(tagline_matcher* matcher, enum MPIDIG_queue_type type) {
  Search search = {matcher, type, 0};
  if (ENABLE_PVAR_RECVQ && type != MPIDIG_PART) {
    search.depth_before = depth_so_far(&search);
    if (type == MPIDIG_PT2PT_POSTED) {
      MPIR_T_PVAR_TIMER_START(RECVQ, time_failed_matching_postedq);
    } else {
      MPIR_T_PVAR_TIMER_START(RECVQ, time_matching_unexpectedq);
    }
  }
  return search;
}

static void end_search(const Search* search, bool found) {
  if (!ENABLE_PVAR_RECVQ || search->type == MPIDIG_PART) return;
  if (search->type == MPIDIG_PT2PT_POSTED) {
    if (!found) MPIR_T_PVAR_TIMER_END(RECVQ, time_failed_matching_postedq);
    MPIR_T_PVAR_COUNTER_INC(RECVQ, posted_recvq_match_attempts,
                            depth_so_far(search) - search->depth_before);
  } else {
    MPIR_T_PVAR_TIMER_END(RECVQ, time_matching_unexpectedq);
    MPIR_T_PVAR_COUNTER_INC(RECVQ, unexpected_recvq_match_attempts,
                            depth_so_far(search) - search->depth_before);
  }
}

static void note_enqueued(MPIR_Request* request, enum MPIDIG_queue_type type) {
  if (type == MPIDIG_PT2PT_POSTED) {
    MPIR_T_PVAR_LEVEL_INC(RECVQ, posted_recvq_length, 1);
  } else if (type == MPIDIG_PT2PT_UNEXP) {
    MPIR_T_DO_EVENT(message_enqueued_event, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
                    &MPIDIG_REQUEST(request, u.recv.source));
    MPIR_T_PVAR_LEVEL_INC(RECVQ, unexpected_recvq_length, 1);
  }
}

static void note_dequeued(MPIR_Request* request, enum MPIDIG_queue_type type) {
  if (type == MPIDIG_PT2PT_POSTED) {
    MPIR_T_PVAR_LEVEL_DEC(RECVQ, posted_recvq_length, 1);
  } else if (type == MPIDIG_PT2PT_UNEXP) {
    MPIR_T_DO_EVENT(message_dequeued_event, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
                    &MPIDIG_REQUEST(request, u.recv.source));
    MPIR_T_PVAR_LEVEL_DEC(RECVQ, unexpected_recvq_length, 1);
  }
}

#ifdef HAVE_DEBUGGER_SUPPORT
#define LIST_APPEND(list, request) DL_APPEND(*(list), request)
#define LIST_DELETE(list, request) DL_DELETE(*(list), request)
#else
#define LIST_APPEND(list, request) ((void)0)
#define LIST_DELETE(list, request) ((void)0)
#endif

_Static_assert(_Alignof(MPIR_Request) >= MPIDIG_MOST_LISTED, "a head has room for the number");

/* ---- The queues --------------------------------------------------------- */

static void append(Queues* queues, MPIR_Request* request, MPIR_Request** list,
                   enum MPIDIG_queue_type type) {
  const tagline_side side = side_of(list, type);
  const tagline_envelope envelope = envelope_of_request(request, type);
  if (unlikely(queues->matcher == NULL)) make_matcher(queues);
  const tagline_status status =
      side == TAGLINE_POSTED ? tagline_append_receive(queues->matcher, envelope, request, NULL)
                             : tagline_append_message(queues->matcher, envelope, request);
  if (unlikely(status != TAGLINE_QUEUED)) give_up();
  ++queues->length[side];
}

void MPIDIG_recvq_append(MPIR_Request* request, MPIR_Request** list, enum MPIDIG_queue_type type) {
  Queues* const queues = queues_of(list, type);
  if (MPIDIG_recvq_is_listed(*list, type)) {
    MPIR_Request* entry = MPIDIG_recvq_oldest(*list);
    for (int i = 0; i < MPIDIG_MOST_LISTED; ++i, entry = entry->next) {
      append(queues, entry, list, type);
    }
  }
  if (MPIDIG_USES_HEAD) *list = MPIDIG_IN_MATCHER;
  append(queues, request, list, type);
  LIST_APPEND(list, request);
  note_enqueued(request, type);
}

static void note_taken(Queues* queues, MPIR_Request* request, MPIR_Request** list,
                       enum MPIDIG_queue_type type) {
  const bool is_last = --queues->length[side_of(list, type)] == 0;
  if (MPIDIG_USES_HEAD && is_last && !is_recorded) *list = NULL;
  LIST_DELETE(list, request);
  note_dequeued(request, type);
}

MPIR_Request* MPIDIG_recvq_search(int source, int tag, MPIR_Context_id_t context_id,
                                  MPIR_Request** list, enum MPIDIG_queue_type type, bool takes) {
  Queues* const queues = queues_of(list, type);
  const tagline_side side = side_of(list, type);
  MPIR_Assert(takes || side == TAGLINE_UNEXPECTED);
  if (queues->length[side] == 0) return NULL;
  const tagline_envelope envelope = envelope_of(source, tag, context_id);
  const Search search = begin_search(queues->matcher, type);
  void* found = NULL;
  if (side == TAGLINE_POSTED) {
    tagline_match_message(queues->matcher, envelope, &found);
  } else if (takes) {
    tagline_claim(queues->matcher, envelope, &found, NULL);
  } else {
    tagline_probe(queues->matcher, envelope, &found, NULL);
  }
  end_search(&search, found != NULL);
  if (takes && found != NULL) note_taken(queues, found, list, type);
  return found;
}

static int delete_listed(MPIR_Request** list, MPIR_Request* request) {
  if (*list == NULL) return 0;
  MPIR_Request* before = NULL;
  MPIR_Request* entry = MPIDIG_recvq_oldest(*list);
  unsigned left = MPIDIG_recvq_followers(*list);
  while (entry != request) {
    if (left-- == 0) return 0;
    before = entry;
    entry = entry->next;
  }
  MPIDIG_recvq_unlist(list, before, entry);
  return 1;
}

int MPIDIG_delete_posted(MPIR_Request* request, MPIR_Request** list) {
  if (MPIDIG_recvq_is_listed(*list, MPIDIG_PT2PT_POSTED)) return delete_listed(list, request);
  Queues* const queues = queues_of(list, MPIDIG_PT2PT_POSTED);
  /* By its envelope rather than a handle: a request that has been dequeued holds that of
   * its message, or of what it is used for now, and is merely not found. */
  const tagline_envelope envelope = envelope_of_request(request, MPIDIG_PT2PT_POSTED);
  if (queues->length[TAGLINE_POSTED] == 0 ||
      tagline_cancel_receive(queues->matcher, envelope, request) != TAGLINE_OK) {
    return 0;
  }
  note_taken(queues, request, list, MPIDIG_PT2PT_POSTED);
  return 1;
}

/* ---- Start -------------------------------------------------------------- */

static void register_variables(void) {
  const int flags = MPIR_T_PVAR_FLAG_READONLY | MPIR_T_PVAR_FLAG_CONTINUOUS;
  (void)flags; /* unless the variables are built in */
  MPIR_T_PVAR_LEVEL_REGISTER_STATIC(RECVQ, MPI_UNSIGNED, posted_recvq_length, 0,
                                    MPI_T_VERBOSITY_USER_DETAIL, MPI_T_BIND_NO_OBJECT, flags, "CH4",
                                    "receives that wait for a message");
  MPIR_T_PVAR_LEVEL_REGISTER_STATIC(RECVQ, MPI_UNSIGNED, unexpected_recvq_length, 0,
                                    MPI_T_VERBOSITY_USER_DETAIL, MPI_T_BIND_NO_OBJECT, flags, "CH4",
                                    "messages that wait for a receive");
  MPIR_T_PVAR_COUNTER_REGISTER_STATIC(RECVQ, MPI_UNSIGNED_LONG_LONG, posted_recvq_match_attempts,
                                      MPI_T_VERBOSITY_USER_DETAIL, MPI_T_BIND_NO_OBJECT, flags,
                                      "CH4", "posted receives that searches have looked at");
  MPIR_T_PVAR_COUNTER_REGISTER_STATIC(
      RECVQ, MPI_UNSIGNED_LONG_LONG, unexpected_recvq_match_attempts, MPI_T_VERBOSITY_USER_DETAIL,
      MPI_T_BIND_NO_OBJECT, flags, "CH4", "unexpected messages that searches have looked at");
  MPIR_T_PVAR_TIMER_REGISTER_STATIC(RECVQ, MPI_DOUBLE, time_failed_matching_postedq,
                                    MPI_T_VERBOSITY_USER_DETAIL, MPI_T_BIND_NO_OBJECT, flags, "CH4",
                                    "time of searches for a posted receive that found none");
  MPIR_T_PVAR_TIMER_REGISTER_STATIC(RECVQ, MPI_DOUBLE, time_matching_unexpectedq,
                                    MPI_T_VERBOSITY_USER_DETAIL, MPI_T_BIND_NO_OBJECT, flags, "CH4",
                                    "time of searches for an unexpected message");
}

static void register_events(void) {
  int source = 0;
  MPIR_T_register_source("RECVQ", "receive queues of active messages", MPI_T_SOURCE_ORDERED, NULL,
                         -1, -1, &source);
  /* An event's data are rank and tag of the message, where u.recv has them. */
  MPI_Datatype types[] = {MPI_INT, MPI_INT};
  MPI_Aint displacements[] = {
      0, offsetof(MPIDIG_req_t, u.recv.tag) - offsetof(MPIDIG_req_t, u.recv.source)};
  MPIR_T_register_event(source, "unexp_message_enqueued", MPI_T_VERBOSITY_USER_BASIC, types,
                        displacements, 2, "an unexpected message has been queued",
                        MPI_T_BIND_NO_OBJECT, "CH4", &message_enqueued_event);
  MPIR_T_register_event(source, "unexp_message_dequeued", MPI_T_VERBOSITY_USER_BASIC, types,
                        displacements, 2, "an unexpected message has been received",
                        MPI_T_BIND_NO_OBJECT, "CH4", &message_dequeued_event);
}

int MPIDIG_recvq_init(void) {
  int mpi_errno = MPI_SUCCESS;
  register_variables();
  register_events();

  const char* const trace = getenv("TAGLINE_TRACE");
  is_recorded = trace != NULL && trace[0] != '\0';
  if (MPIDIG_USES_HEAD && is_recorded) {
    for (int vci = 0; vci < MPIDI_CH4_MAX_VCIS; ++vci) {
      MPIDI_global.per_vci[vci].posted_list = MPIDIG_IN_MATCHER;
      MPIDI_global.per_vci[vci].unexp_list = MPIDIG_IN_MATCHER;
    }
  }

  tagline_matcher* trial = NULL;
  MPIR_ERR_CHKANDJUMP1(tagline_create(NULL, &trial) != TAGLINE_OK, mpi_errno, MPI_ERR_OTHER,
                       "**fail", "**fail %s", tagline_error_message());
  tagline_destroy(trial);
  /* After MPID_Finalize(), where the queues are used last. */
  MPIR_Add_finalize(forget_all, NULL, MPIR_FINALIZE_CALLBACK_PRIO - 1);

fn_fail:
  return mpi_errno;
}
