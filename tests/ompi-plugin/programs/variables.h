// SPDX-License-Identifier: BSD-3-Clause
// MPI_T performance variables, as a tool finds them.
#ifndef TAGLINE_TESTS_OMPI_PLUGIN_VARIABLES_H
#define TAGLINE_TESTS_OMPI_PLUGIN_VARIABLES_H

#include "program.h"

// Index of the variable; it has to be there, with an explanation.
static inline int find_variable(const char* name) {
  int count = 0;
  MPI_T_pvar_get_num(&count);
  for (int i = 0; i < count; ++i) {
    char found[256], help[1024] = "";
    int found_length = sizeof found, help_length = sizeof help;
    int verbosity, kind, bind, readonly, continuous, atomic;
    MPI_Datatype type;
    MPI_T_enum values;
    if (MPI_T_pvar_get_info(i, found, &found_length, &verbosity, &kind, &type, &values, help,
                            &help_length, &bind, &readonly, &continuous, &atomic) != MPI_SUCCESS)
      continue;
    if (strcmp(found, name) != 0) continue;
    EXPECT(strlen(help) > 10, "an explanation of %s, got '%s'", name, help);
    return i;
  }
  EXPECT(false, "a performance variable %s", name);
  return -1;
}

#endif
