/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * CH4's receive queues on tagline: takes the place of MPICH's file of this name.
 *
 * The device names a queue by the address of a list head, MPIDI_global's
 * per_vci[i].posted_list and unexp_list, and part_posted_list and
 * part_unexp_list. Entries are in the tagline_matcher of the VCI, or of
 * partitioned communication, and the head says so. But most searches are of an
 * empty queue, or of one whose only entry is what they want: an entry that comes
 * to an empty queue waits in the head until it is taken or a second one comes.
 * For that there is no call.
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

/* What a head holds: NULL for a queue that is empty, its only entry, or this. */
#define MPIDIG_IN_MATCHER ((MPIR_Request*)1)

/* Built for tools, MPICH makes every queue go through the calls below, which tell them. */
#if defined(HAVE_DEBUGGER_SUPPORT) || defined(HAVE_MPIT_EVENTS)
#define MPIDIG_USES_HEAD false
#else
#define MPIDIG_USES_HEAD (!ENABLE_PVAR_RECVQ)
#endif

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

MPL_STATIC_INLINE_PREFIX MPIR_Request* MPIDIG_recvq_look(int source, int tag,
                                                         MPIR_Context_id_t context_id,
                                                         MPIR_Request** list,
                                                         enum MPIDIG_queue_type type, bool takes) {
  MPIR_Request* const only = *list;
  if (MPIDIG_USES_HEAD && only == NULL) return NULL;
  if (!MPIDIG_USES_HEAD || only == MPIDIG_IN_MATCHER || type == MPIDIG_PART) {
    return MPIDIG_recvq_search(source, tag, context_id, list, type, takes);
  }
  const int only_source = MPIDIG_REQUEST(only, u.recv.source);
  const int only_tag = MPIDIG_plain_tag(MPIDIG_REQUEST(only, u.recv.tag));
  if (MPIDIG_REQUEST(only, u.recv.context_id) != context_id ||
      !(type == MPIDIG_PT2PT_POSTED ? MPIDIG_accepts(only_source, only_tag, source, tag)
                                    : MPIDIG_accepts(source, tag, only_source, only_tag))) {
    return NULL;
  }
  if (takes) *list = NULL;
  return only;
}

/** Append. Envelopes are in the request: u.recv of MPIDIG_REQUEST or MPIDI_PART_REQUEST. */
MPL_STATIC_INLINE_PREFIX void MPIDIG_enqueue_request(MPIR_Request* request, MPIR_Request** list,
                                                     enum MPIDIG_queue_type type) {
  if (MPIDIG_USES_HEAD && *list == NULL && type != MPIDIG_PART) {
    *list = request;
  } else {
    MPIDIG_recvq_append(request, list, type);
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
