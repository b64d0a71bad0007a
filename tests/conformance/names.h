/* SPDX-License-Identifier: BSD-3-Clause */
/* Included ahead of every program of MPICH's test suite: names that Open MPI 4.1 has
 * elsewhere. MPI 3.0 removed some that only helpers of the suite use, and persistent
 * collectives are an extension there. */
#ifndef TAGLINE_TESTS_CONFORMANCE_NAMES_H
#define TAGLINE_TESTS_CONFORMANCE_NAMES_H

#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#undef MPI_Type_hvector
#undef MPI_Type_hindexed
#undef MPI_Type_struct
#undef MPI_Address
#undef MPI_Errhandler_create
#undef MPI_Errhandler_set
#undef MPI_Errhandler_get
#define MPI_Type_hvector MPI_Type_create_hvector
#define MPI_Type_hindexed MPI_Type_create_hindexed
#define MPI_Type_struct MPI_Type_create_struct
#define MPI_Address MPI_Get_address
#define MPI_Errhandler_create MPI_Comm_create_errhandler
#define MPI_Errhandler_set MPI_Comm_set_errhandler
#define MPI_Errhandler_get MPI_Comm_get_errhandler

#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
#define MPI_Allgather_init MPIX_Allgather_init
#define MPI_Allgatherv_init MPIX_Allgatherv_init
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Alltoall_init MPIX_Alltoall_init
#define MPI_Alltoallv_init MPIX_Alltoallv_init
#define MPI_Alltoallw_init MPIX_Alltoallw_init
#define MPI_Barrier_init MPIX_Barrier_init
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Exscan_init MPIX_Exscan_init
#define MPI_Gather_init MPIX_Gather_init
#define MPI_Gatherv_init MPIX_Gatherv_init
#define MPI_Reduce_init MPIX_Reduce_init
#define MPI_Reduce_scatter_block_init MPIX_Reduce_scatter_block_init
#define MPI_Reduce_scatter_init MPIX_Reduce_scatter_init
#define MPI_Scan_init MPIX_Scan_init
#define MPI_Scatter_init MPIX_Scatter_init
#define MPI_Scatterv_init MPIX_Scatterv_init
#endif

#endif /* TAGLINE_TESTS_CONFORMANCE_NAMES_H */
