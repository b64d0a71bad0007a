/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * CH4's receive queues on tagline: takes the place of MPICH's file of this name.
 *
 * The device names a queue by the address of a list head, MPIDI_global's
 * per_vci[i].posted_list and unexp_list, and part_posted_list and
 * part_unexp_list. Here the heads only say which queue is meant; entries are in
 * the tagline_matcher of the VCI, or of partitioned communication.
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

/** Append. Envelopes are in the request: u.recv of MPIDIG_REQUEST or MPIDI_PART_REQUEST. */
void MPIDIG_enqueue_request(MPIR_Request* request, MPIR_Request** list,
                            enum MPIDIG_queue_type type);

/** Take the oldest match, or NULL. In a posted queue entries may have wildcards, in an
 *  unexpected queue the arguments may. */
MPIR_Request* MPIDIG_rreq_dequeue(int source, int tag, MPIR_Context_id_t context_id,
                                  MPIR_Request** list, enum MPIDIG_queue_type type);

/** The same, and leave it there. For MPIDIG_PT2PT_UNEXP. */
MPIR_Request* MPIDIG_rreq_find(int source, int tag, MPIR_Context_id_t context_id,
                               MPIR_Request** list, enum MPIDIG_queue_type type);

/** Take back a posted receive. 0 if it is not in the queue: the partner of an
 *  ANY_SOURCE receive may be cancelled after it has been matched. */
int MPIDIG_delete_posted(MPIR_Request* request, MPIR_Request** list);

#endif /* MPIDIG_RECVQ_H_INCLUDED */
