/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * Open MPI's internal headers, for C and for C++, and every difference between the Open MPI
 * versions this component knows. No other file includes an Open MPI header or asks for a version.
 */
#ifndef TAGLINE_OMPI_PLUGIN_COMPAT_H
#define TAGLINE_OMPI_PLUGIN_COMPAT_H

/* What the headers below include themselves must not land inside extern "C". */
#ifdef __cplusplus
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#else
#include <stddef.h>
#include <stdint.h>
#endif
#include <pthread.h>
#include <sys/types.h>
#include <sys/uio.h>

#define OMPI_SKIP_MPICXX 1
/* Distributions leave the PERUSE headers out of their packages, and PERUSE off. */
#define _PERUSE_INTERNAL_H_

#ifdef __cplusplus
extern "C" {
#endif

#include "ompi_config.h"
#ifdef __cplusplus
/* All of it is extern "C" here; a header of Open MPI 5.0 opens that twice and closes it once. */
#undef BEGIN_C_DECLS
#undef END_C_DECLS
#define BEGIN_C_DECLS
#define END_C_DECLS
#endif
/* Open MPI 5 keeps it among its components. */
#if __has_include("opal/mca/threads/thread_usage.h")
#include "opal/mca/threads/thread_usage.h"
#else
#include "opal/threads/thread_usage.h"
#endif

#include "mpi.h"

/* C converts void* to void** without a word, C++ does not: once in Open MPI 4, once in 5. */
#if defined(__cplusplus) && OMPI_MAJOR_VERSION == 4
#undef OPAL_THREAD_COMPARE_EXCHANGE_STRONG_PTR
#define OPAL_THREAD_COMPARE_EXCHANGE_STRONG_PTR(x, y, z) \
  opal_thread_compare_exchange_strong_ptr((volatile intptr_t*)(x), (void**)(y), (void*)(z))
#elif defined(__cplusplus)
#include "opal/class/opal_hash_table.h"
#define opal_hash_table_get_value_ptr(table, key, bytes, value) \
  opal_hash_table_get_value_ptr(table, key, bytes, (void**)(value))
#endif

#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/bml/bml.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/base/pml_base_bsend.h"
#include "ompi/mca/pml/base/pml_base_recvreq.h"
#include "ompi/mca/pml/base/pml_base_sendreq.h"
#include "ompi/mca/pml/pml.h"
#if __has_include("ompi/runtime/ompi_rte.h")
#include "ompi/runtime/ompi_rte.h" /* 5 */
#else
#include "ompi/mca/rte/rte.h"
#endif
#include "ompi/message/message.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/class/opal_bitmap.h"
#include "opal/class/opal_free_list.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"
#include "opal/prefetch.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/info_subscriber.h"
#include "opal/util/output.h"

#undef opal_hash_table_get_value_ptr

#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1
#define TAGLINE_OMPI_4_1 1
#elif OMPI_MAJOR_VERSION == 5
#define TAGLINE_OMPI_5 1
#else
#error "The tagline component knows Open MPI 4.1 and 5.0; these headers are of another version."
#endif

#if OPAL_ENABLE_HETEROGENEOUS_SUPPORT
#error \
    "The tagline component exchanges headers in native byte order; configure Open MPI without heterogeneous support."
#endif

/* ---- Module and component types ---------------------------------------- */

#if TAGLINE_OMPI_5
typedef mca_pml_base_component_2_1_0_t tagline_pml_component_t;
#define TAGLINE_PML_VERSION MCA_PML_BASE_VERSION_2_1_0
#else
typedef mca_pml_base_component_2_0_0_t tagline_pml_component_t;
#define TAGLINE_PML_VERSION MCA_PML_BASE_VERSION_2_0_0
#endif

extern tagline_pml_component_t mca_pml_tagline_component;

/* Called by the component structure in component.c, defined in component.cpp. */
int tagline_component_register(void);
int tagline_component_open(void);
int tagline_component_close(void);
mca_pml_base_module_t* tagline_component_init(int* priority, bool progress_threads,
                                              bool mpi_threads);
int tagline_component_finalize(void);

/* ---- Communicators ------------------------------------------------------ */

/** What travels in headers and finds the communicator at the receiver. */
static inline uint32_t tagline_context_id(const ompi_communicator_t* comm) {
#if TAGLINE_OMPI_5
  /* The same in all processes, because the module does not claim to know extended ids. */
  return comm->c_index;
#else
  return comm->c_contextid;
#endif
}

/** The BTL between processes of a node. */
#if TAGLINE_OMPI_5
#define TAGLINE_LOCAL_BTL "sm"
#else
#define TAGLINE_LOCAL_BTL "vader"
#endif

/** A key or value of an info object, as its callbacks get and return it. */
#if TAGLINE_OMPI_5
typedef const char* tagline_info_text;
#else
typedef char* tagline_info_text;
#endif

/* ---- What processes of a job tell each other at the start -------------- */

#if TAGLINE_OMPI_5
#include "opal/mca/pmix/pmix-internal.h"
#define TAGLINE_LOCAL_SCOPE PMIX_LOCAL
#else
#include "opal/mca/pmix/pmix.h"
#define TAGLINE_LOCAL_SCOPE OPAL_PMIX_LOCAL
#endif

/** To the processes of this machine; only before Open MPI exchanges it, at selection. */
static inline void tagline_publish(const void* data, size_t bytes) {
  int status;
  OPAL_MODEX_SEND(status, TAGLINE_LOCAL_SCOPE, &mca_pml_tagline_component.pmlm_version,
                  (void*)data, bytes);
  (void)status;
}

/** What a process has published, to be freed; NULL if nothing. */
static inline char* tagline_published_by(const ompi_proc_t* proc) {
  int status;
  size_t bytes = 0;
  uint8_t* data = NULL;
  OPAL_MODEX_RECV(status, &mca_pml_tagline_component.pmlm_version, &proc->super.proc_name, &data,
                  &bytes);
  return status == OPAL_SUCCESS && bytes > 0 ? (char*)data : NULL;
}

/* ---- Receive callbacks of a BTL ----------------------------------------- */

#if TAGLINE_OMPI_5
#define TAGLINE_BTL_CALLBACK(name) \
  void name(mca_btl_base_module_t* btl, const mca_btl_base_receive_descriptor_t* descriptor)
#define TAGLINE_BTL_SEGMENTS(descriptor) ((descriptor)->des_segments)
#else
#define TAGLINE_BTL_CALLBACK(name)                                    \
  void name(mca_btl_base_module_t* btl, mca_btl_base_tag_t /* tag */, \
            mca_btl_base_descriptor_t* descriptor, void* /* cbdata */)
#define TAGLINE_BTL_SEGMENTS(descriptor) ((descriptor)->des_segments)
#endif

#ifdef __cplusplus
}
#endif

#endif /* TAGLINE_OMPI_PLUGIN_COMPAT_H */
