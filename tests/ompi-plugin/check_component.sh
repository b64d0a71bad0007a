#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a component must be so that any mpirun can load it into any program.
#   check_component.sh NM READELF component.so
set -u
nm=$1 readelf=$2 component=$3
failed=0

fail() {
  echo "$component: $1" >&2
  failed=1
}

# Static TLS is a small reserve of the process. Who wants it cannot count on being
# loaded by dlopen.
"$readelf" -dW "$component" | grep -q STATIC_TLS && fail "wants static TLS"
"$readelf" -rW "$component" | grep -E 'TPOFF|TLS_TPREL' && fail "wants static TLS (see above)"

# Of itself it shows the component, and nothing that could take the place of what the
# program calls.
shown=$("$nm" -D --defined-only "$component" | awk '{print $3}')
[ "$shown" = mca_pml_tagline_component ] || fail "exports $(echo "$shown" | tr '\n' ' ')"

# Calls into the C library that no component may make its own.
"$nm" --defined-only "$component" | awk '{print $3}' |
  grep -xE '(malloc|calloc|realloc|free|posix_memalign|aligned_alloc|memalign|valloc|_Znwm|_ZdlPv)' &&
  fail "defines an allocator of the C library (see above)"
exit $failed
