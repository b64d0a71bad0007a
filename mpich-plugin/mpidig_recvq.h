/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * CH4's receive queues on tagline: takes the place of MPICH's file of this name.
 *
 * The device names a queue by the address of a list head, MPIDI_global's
 * per_vci[i].posted_list and unexp_list, and part_posted_list and
 * part_unexp_list. Entries are in the tagline_matcher of the VCI, or of
 * partitioned communication, and the head says so. But most queues are short, and
 * the way into a library and back takes as long as a look at a few requests: up to
 * MPIDIG_MOST_LISTED of them are a list, as in MPICH itself, for which there is no
 * call. It becomes the matcher's when one more comes, until that has been emptied.
 *
 * Threads: calls for a VCI hold its lock, those for partitioned communication
 * that of VCI 0.
 *
 * Nothing of tagline is seen in this header, so that a change of the library or
 * of mpidig_recvq.c does not build the whole of MPICH again.
 */
#ifndef MPIDIG_RECVQ_H_INCLUDED
#define MPIDIG_RECVQ_H_INCLUDED

#include "mpidimpl.h"
#include "utlist.h"
#include "ch4_impl.h"

enum MPIDIG_queue_type {
  MPIDIG_PT2PT_POSTED,
  MPIDIG_PT2PT_UNEXP,
  MPIDIG_PART /* either queue of partitioned communication; the list says which */
};

/** Performance variables and events; says so if the environment asks for a queue
 *  structure or an instruction set that there is not. */
int MPIDIG_recvq_init(void);

/* What a head holds: NULL for a queue that is empty, this, or the oldest entry and, in the
 * bits that are zero in its address, how many follow it. The list goes along `next`; the oldest
 * entry's `prev` is the newest one, if there are two or more. */
#define MPIDIG_IN_MATCHER ((MPIR_Request*)1)
#define MPIDIG_MOST_LISTED 8
#define MPIDIG_FOLLOWERS_MASK ((uintptr_t)(MPIDIG_MOST_LISTED - 1))

/* Built for tools, MPICH makes every queue go through the calls below, which tell them. */
#if defined(HAVE_DEBUGGER_SUPPORT) || defined(HAVE_MPIT_EVENTS)
#define MPIDIG_USES_HEAD false
#else
#define MPIDIG_USES_HEAD (!ENABLE_PVAR_RECVQ)
#endif

/* Of a list that is full, or in the matcher: see MPIDIG_enqueue_request(). */
void MPIDIG_recvq_append(MPIR_Request* request, MPIR_Request** list, enum MPIDIG_queue_type type);
MPIR_Request* MPIDIG_recvq_search(int source, int tag, MPIR_Context_id_t context_id,
                                  MPIR_Request** list, enum MPIDIG_queue_type type, bool takes);

/* Of a receive and a message, source and tag. */
MPL_STATIC_INLINE_PREFIX bool MPIDIG_accepts(int source, int tag, int message_source,
                                             int message_tag) {
  return (source == message_source || source == MPI_ANY_SOURCE) &&
         (tag == message_tag || tag == MPI_ANY_TAG);
}

/* A tag may carry bits that say the sender's collective has failed; they are no part of it. */
MPL_STATIC_INLINE_PREFIX int MPIDIG_plain_tag(int tag) {
  return tag == MPI_ANY_TAG ? tag : MPIR_TAG_MASK_ERROR_BITS(tag);
}

/* Whether an entry is the other side of an envelope. Not for MPIDIG_PART. */
MPL_STATIC_INLINE_PREFIX bool MPIDIG_recvq_meets(MPIR_Request* entry, int source, int tag,
                                                 MPIR_Context_id_t context_id,
                                                 enum MPIDIG_queue_type type) {
  const int its_source = MPIDIG_REQUEST(entry, u.recv.source);
  const int its_tag = MPIDIG_plain_tag(MPIDIG_REQUEST(entry, u.recv.tag));
  return MPIDIG_REQUEST(entry, u.recv.context_id) == context_id &&
         (type == MPIDIG_PT2PT_POSTED ? MPIDIG_accepts(its_source, its_tag, source, tag)
                                      : MPIDIG_accepts(source, tag, its_source, its_tag));
}

/* ---- A short queue is a list ---- */

MPL_STATIC_INLINE_PREFIX bool MPIDIG_recvq_is_listed(MPIR_Request* head,
                                                     enum MPIDIG_queue_type type) {
  return MPIDIG_USES_HEAD && head != MPIDIG_IN_MATCHER && type != MPIDIG_PART;
}
MPL_STATIC_INLINE_PREFIX MPIR_Request* MPIDIG_recvq_oldest(MPIR_Request* head) {
  return (MPIR_Request*)((uintptr_t)head & ~MPIDIG_FOLLOWERS_MASK);
}
MPL_STATIC_INLINE_PREFIX unsigned MPIDIG_recvq_followers(MPIR_Request* head) {
  return (unsigned)((uintptr_t)head & MPIDIG_FOLLOWERS_MASK);
}
MPL_STATIC_INLINE_PREFIX MPIR_Request* MPIDIG_recvq_head(MPIR_Request* oldest, unsigned followers) {
  return (MPIR_Request*)((uintptr_t)oldest | followers);
}

/* before: the entry that it follows, unless it is the oldest. */
MPL_STATIC_INLINE_PREFIX void MPIDIG_recvq_unlist(MPIR_Request** list, MPIR_Request* before,
                                                  MPIR_Request* request) {
  MPIR_Request* const oldest = MPIDIG_recvq_oldest(*list);
  const unsigned followers = MPIDIG_recvq_followers(*list);
  if (followers == 0) {
    *list = NULL;
  } else if (request == oldest) {
    request->next->prev = oldest->prev;
    *list = MPIDIG_recvq_head(request->next, followers - 1);
  } else {
    if (request == oldest->prev) oldest->prev = before;
    before->next = request->next;
    *list = MPIDIG_recvq_head(oldest, followers - 1);
  }
}

/* ---- The queues ---- */

MPL_STATIC_INLINE_PREFIX MPIR_Request* MPIDIG_recvq_look(int source, int tag,
                                                         MPIR_Context_id_t context_id,
                                                         MPIR_Request** list,
                                                         enum MPIDIG_queue_type type, bool takes) {
  MPIR_Request* const head = *list;
  if (MPIDIG_USES_HEAD && head == NULL) return NULL;
  if (!MPIDIG_recvq_is_listed(head, type)) {
    return MPIDIG_recvq_search(source, tag, context_id, list, type, takes);
  }
  MPIR_Request* before = NULL;
  MPIR_Request* entry = MPIDIG_recvq_oldest(head);
  unsigned left = MPIDIG_recvq_followers(head);
  while (!MPIDIG_recvq_meets(entry, source, tag, context_id, type)) {
    if (left-- == 0) return NULL;
    before = entry;
    entry = entry->next;
  }
  if (takes) MPIDIG_recvq_unlist(list, before, entry);
  return entry;
}

/** Append. Envelopes are in the request: u.recv of MPIDIG_REQUEST or MPIDI_PART_REQUEST. */
MPL_STATIC_INLINE_PREFIX void MPIDIG_enqueue_request(MPIR_Request* request, MPIR_Request** list,
                                                     enum MPIDIG_queue_type type) {
  MPIR_Request* const head = *list;
  const unsigned followers = MPIDIG_recvq_followers(head);
  if (!MPIDIG_recvq_is_listed(head, type) || followers + 1 == MPIDIG_MOST_LISTED) {
    MPIDIG_recvq_append(request, list, type);
  } else if (head == NULL) {
    *list = request;
  } else {
    MPIR_Request* const oldest = MPIDIG_recvq_oldest(head);
    (followers == 0 ? oldest : oldest->prev)->next = request;
    oldest->prev = request;
    *list = MPIDIG_recvq_head(oldest, followers + 1);
  }
}

/** Take the oldest match, or NULL. In a posted queue entries may have wildcards, in an
 *  unexpected queue the arguments may. */
MPL_STATIC_INLINE_PREFIX MPIR_Request* MPIDIG_rreq_dequeue(int source, int tag,
                                                           MPIR_Context_id_t context_id,
                                                           MPIR_Request** list,
                                                           enum MPIDIG_queue_type type) {
  return MPIDIG_recvq_look(source, tag, context_id, list, type, true);
}

/** The same, and leave it there. For MPIDIG_PT2PT_UNEXP. */
MPL_STATIC_INLINE_PREFIX MPIR_Request* MPIDIG_rreq_find(int source, int tag,
                                                        MPIR_Context_id_t context_id,
                                                        MPIR_Request** list,
                                                        enum MPIDIG_queue_type type) {
  return MPIDIG_recvq_look(source, tag, context_id, list, type, false);
}

/** Take back a posted receive. 0 if it is not in the queue: the partner of an
 *  ANY_SOURCE receive may be cancelled after it has been matched. */
int MPIDIG_delete_posted(MPIR_Request* request, MPIR_Request** list);

#endif /* MPIDIG_RECVQ_H_INCLUDED */
