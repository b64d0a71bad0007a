// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into the programs under test, so that a silent fallback cannot pass for
// success: after MPI_Init the selected point-to-point component must be the one that
// TAGLINE_EXPECT_PML names, in every process, or the job is aborted.
//
// TAGLINE_OPEN_LINKS=1 also has every pair of processes open its connections, one side at a
// time: Open MPI's tcp transport loses a link that both sides open at the same moment when
// there are several per pair (btl_tcp_links), whatever component matches.
//
// TAGLINE_FORBID_SINGLE_COPY=1 has the kernel refuse to read another process's memory, after
// MPI_Init has found that it may.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <opal_config.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "opal/mca/mca.h"

// Open MPI's copy of the selected component's description; it begins with the base part.
extern mca_base_component_t mca_pml_base_selected_component;

static void check_selection(void) {
  const char* expected = getenv("TAGLINE_EXPECT_PML");
  const char* selected = mca_pml_base_selected_component.mca_component_name;
  if (expected == NULL || strcmp(expected, selected) == 0) return;
  fprintf(stderr, "expect_pml: expected component %s to be selected, got %s\n", expected, selected);
  PMPI_Abort(MPI_COMM_WORLD, 1);
}

static int asked_for(const char* name) {
  const char* value = getenv(name);
  return value != NULL && strcmp(value, "1") == 0;
}

// Long messages use every link, unless they are written straight to the receiver's memory: what
// is received with gaps is not. Each direction may have connections of its own.
static void open_links(void) {
  enum { kBlocks = 300, kBytes = 1000, kMessages = 4 };
  static char message[kBlocks * (kBytes + 1)];
  MPI_Datatype gaps;
  PMPI_Type_vector(kBlocks, kBytes, kBytes + 1, MPI_BYTE, &gaps);
  PMPI_Type_commit(&gaps);
  int rank, size;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int from = 0; from < size; ++from)
    for (int to = 0; to < size; ++to)
      for (int i = 0; i < kMessages && from != to; ++i) {
        if (rank == from)
          PMPI_Ssend(message, kBlocks * kBytes, MPI_BYTE, to, 0, MPI_COMM_WORLD);
        if (rank == to) PMPI_Recv(message, 1, gaps, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
  PMPI_Type_free(&gaps);
}

static void forbid_single_copy(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
    return;
  perror("expect_pml: forbidding single copies");
  PMPI_Abort(MPI_COMM_WORLD, 77);
}

static void after_init(void) {
  check_selection();
  if (asked_for("TAGLINE_OPEN_LINKS")) open_links();
  if (asked_for("TAGLINE_FORBID_SINGLE_COPY")) forbid_single_copy();
}

int MPI_Init(int* argc, char*** argv) {
  const int result = PMPI_Init(argc, argv);
  after_init();
  return result;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int result = PMPI_Init_thread(argc, argv, required, provided);
  after_init();
  return result;
}
