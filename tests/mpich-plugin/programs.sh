#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Our own MPI programs under MPICH with tagline: programs.sh PREFIX BUILD [SECONDS]. Each
# runs where CH4 matches: over shared memory, over the netmod without either shared memory or
# the netmod's own matching, and some over both at once, as if odd and even ranks had a node
# each: a receive from any source then waits for both. Programs that run out of SECONDS are
# left out.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd -P)
programs=$here/../ompi-plugin/programs
prefix=$1 build=$2 seconds=${3:-600}
limit=120

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
  "dynamic_processes 2 -"
)
# MPICH 4.0.2 itself, without tagline too, takes a message of the netmod's that a receive or a
# probe from any source finds for one of shared memory's, and answers a large one there: the
# assertion "Invalid GenQ flag". Its netmod starts no processes while it matches no tags.
shm_only="soak|requests|communicators|dynamic_processes"
node_runs=(
  "ordering 4 -"
  "probe 4 -"
  "cancel 3 -"
)

# Where a debugger finds an element's successor, source and tag.
fields() {
  local field
  command -v gdb >/dev/null || return 0
  for field in next dev.ch4.am.u.recv.{source,tag}; do
    gdb -nx -batch -ex "print/d (long)&((MPIR_Request*)0)->$field" "$prefix/lib/libmpi.so" 2>/dev/null |
      sed -n 's/.* = //p'
  done | paste -sd' '
}

# Of a build that shows everything to tools (tools/mpich.sh observed).
if [[ -e $prefix/lib/libtvmpich.so ]]; then runs=("observed 2 - $(fields)" "${runs[@]}"); fi

failed=0 left_out=0

# run PATH "PROGRAM RANKS QUEUE ARGUMENTS" VARIABLE=VALUE...
run() {
  local program ranks queue arguments what source code attempt
  local -a words
  read -r program ranks queue arguments <<<"$2"
  what="$program -n $ranks $1 ${queue/#-/default} $arguments"
  if ((SECONDS > seconds)); then
    left_out=$((left_out + 1))
    return
  fi
  source=$programs/$program.c
  [[ -e $source ]] || source=$here/$program.c
  if [[ ! $build/$program -nt $source ]]; then
    "$prefix/bin/mpicc" -std=gnu11 -O1 -w -pthread -I"$programs" -o "$build/$program" "$source"
  fi
  read -ra words <<<"$arguments"
  for attempt in 1 2; do
    code=0
    env "${@:3}" TAGLINE_QUEUE="${queue/#-/}" LD_LIBRARY_PATH="$prefix/lib" \
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
}

mkdir -p "$build"
"$prefix/bin/mpicc" -show >"$build/mpicc"
for each in "${runs[@]}"; do
  run shm "$each"
  [[ $each =~ ^($shm_only)\  ]] ||
    run netmod "$each" MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_CH4_OFI_ENABLE_TAGGED=0
done
for each in "${node_runs[@]}"; do
  run nodes "$each" MPIR_CVAR_NUM_CLIQUES=2 MPIR_CVAR_CH4_OFI_ENABLE_TAGGED=0
done
((left_out == 0)) || printf 'the machine is slow or busy: %d runs left out\n' "$left_out"
((failed == 0))
