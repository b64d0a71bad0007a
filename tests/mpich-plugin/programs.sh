#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Our own MPI programs under MPICH with tagline: programs.sh PREFIX BUILD [SECONDS]. Each
# runs where CH4 matches: over shared memory, and over the netmod without either shared
# memory or the netmod's own matching. Programs that run out of SECONDS are left out.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd -P)
sources=$here/../ompi-plugin/programs
prefix=$1 build=$2 seconds=${3:-600}
limit=60
netmod=(MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_CH4_OFI_ENABLE_TAGGED=0)

# Program, ranks, queue structure (- is the default), arguments.
runs=(
  "deep_queues 2 - depth=16384"
  "ordering 2 -"
  "probe 2 -"
  "cancel 2 -"
  "communicators 2 -"
  "soak 2 -"
  "threads 2 -"
  "persistent 2 -"
  "send_modes 2 -"
  "flood 2 -"
  "leftovers 2 -"
  "early_arrival 2 -"
  "deep_queues 2 linear depth=2048"
  "ordering 2 linear"
  "soak 2 vector"
  "cancel 2 fuzzy"
  "probe 2 source"
  "requests 2 -"
)

mkdir -p "$build"
"$prefix/bin/mpicc" -show >"$build/mpicc"
failed=0 left_out=0
for path in shm netmod; do
  environment=()
  [[ $path == shm ]] || environment=("${netmod[@]}")
  for run in "${runs[@]}"; do
    read -r program ranks queue arguments <<<"$run"
    what="$program -n $ranks $path ${queue/#-/default} $arguments"
    if ((SECONDS > seconds)); then
      left_out=$((left_out + 1))
      continue
    fi
    if [[ ! $build/$program -nt $sources/$program.c ]]; then
      "$prefix/bin/mpicc" -std=gnu11 -O1 -w -pthread -o "$build/$program" "$sources/$program.c"
    fi
    read -ra words <<<"$arguments"
    for attempt in 1 2; do
      code=0
      env "${environment[@]}" TAGLINE_QUEUE="${queue/#-/}" LD_LIBRARY_PATH="$prefix/lib" \
        timeout -k 5 "$limit" "$prefix/bin/mpiexec" -n "$ranks" "$build/$program" "${words[@]}" \
        >"$build/log" 2>&1 </dev/null || code=$?
      # A busy machine: once more.
      ((code == 124 && attempt == 1)) || break
    done
    if ((code == 0)) && grep -q ": ok on $ranks ranks" "$build/log"; then
      printf 'ok      %s\n' "$what"
    else
      failed=$((failed + 1))
      printf 'FAILED  %s (exit code %d)\n' "$what" "$code"
      tail -n 15 "$build/log"
    fi
  done
done
((left_out == 0)) || printf 'the machine is slow or busy: %d runs left out\n' "$left_out"
((failed == 0))
