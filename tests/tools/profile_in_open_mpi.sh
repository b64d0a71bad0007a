#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a profile chooses is what the component's communicators get:
#   profile_in_open_mpi.sh TAGLINE MPIRUN FOLDER_OF_THE_COMPONENT PROMISES
set -u
tagline=$1 mpirun=$2 component=$3 program=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

"$tagline" tune --seconds 0.1 -o measured >out 2>&1 || { cat out >&2; exit 1; }
# Its machine, and choices that nobody would make.
{ sed '/^choose/d' measured
  echo "choose single/any/few array:4 scalar"
  echo "choose single/exact/few vector scalar"
  echo "choose threads/exact/few locked@mcs:fuzzy:8 scalar"
} >profile

# expect PATTERN [option of mpirun...] -- [argument]: in what a job says that ends well.
expect() {
  local pattern=$1 options=()
  shift
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  timeout --kill-after=5 60 "$mpirun" -n 2 --bind-to none --oversubscribe --mca mpi_yield_when_idle 1 \
    --mca btl self,vader --mca oob_tcp_if_include lo \
    --mca mca_base_component_path "$component:SYSTEM_DEFAULT" --mca pml tagline \
    --mca pml_base_verbose 10 ${options[@]+"${options[@]}"} "$program" "$@" >out 2>&1 </dev/null
  local status=$?
  if [ $status -ne 0 ] || ! grep -qE -e "$pattern" out; then
    echo "profile_in_open_mpi.sh: FAILED: expected exit status 0 and \"$pattern\", got $status and:" >&2
    cat out >&2
    exit 1
  fi
}
with=(--mca pml_tagline_profile "$scratch/profile")

expect '2 ranks: queue [a-z]+ on [a-z0-9]+ \(default\)' --
expect 'queue array:4 on scalar \(profile .*/profile for single/any/few\)' "${with[@]}" --
expect 'queue vector on scalar \(profile .*/profile for single/exact/few\)' "${with[@]}" --
expect 'queue locked@mcs:fuzzy:8 on scalar .* for threads/exact/few\)' "${with[@]}" -- threads
# Not measured.
expect 'queue sharded:[a-z]+ on [a-z0-9]+ \(default\)' "${with[@]}" -- threads
# What is named wins, and the environment.
expect 'queue linear on [a-z0-9]+ \(asked for\)' "${with[@]}" --mca pml_tagline_queue linear --
expect 'queue array:4 on scalar' --mca pml_tagline_profile nothing -x TAGLINE_PROFILE="$scratch/profile" --
expect 'the defaults are used: the profile nothing cannot be read' --mca pml_tagline_profile nothing --
if [ "$(grep -c 'the defaults are used' out)" != 1 ]; then
  echo "profile_in_open_mpi.sh: FAILED: expected one process to speak for both, got:" >&2
  cat out >&2
  exit 1
fi
sed 's/^run/ran/' measured >damaged
expect 'damaged is damaged in line' --mca pml_tagline_profile "$scratch/damaged" --
