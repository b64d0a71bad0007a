#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The component has these parameters, and says about every one that it has what it does.
#   check_parameters.sh OMPI_INFO parameter...
set -u
ompi_info=$1
shift
shown=$("$ompi_info" --param pml tagline --level 9 --parsable) || exit 1
registered=$(sed -n 's/^mca:pml:tagline:param:\(pml_tagline_[a-z0-9_]*\):help:.*/\1/p' <<<"$shown")
failed=0
for parameter in "$@" $registered; do
  help=$(sed -n "s/^mca:pml:tagline:param:$parameter:help://p" <<<"$shown")
  [ "${#help}" -ge 25 ] && continue
  echo "FAILED: expected an explanation of $parameter, got '$help'"
  failed=1
done
exit $failed
