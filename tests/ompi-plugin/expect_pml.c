// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into the programs under test, so that a silent fallback cannot pass for
// success: after MPI_Init the selected point-to-point component must be the one that
// TAGLINE_EXPECT_PML names, in every process, or the job is aborted.
#include <mpi.h>
#include <opal_config.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int MPI_Init(int* argc, char*** argv) {
  const int result = PMPI_Init(argc, argv);
  check_selection();
  return result;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int result = PMPI_Init_thread(argc, argv, required, provided);
  check_selection();
  return result;
}
