#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the harness takes of a message is a few nanoseconds, 10 at most on the machine it was
# made on: measured as any message is, under an MPI whose operations do nothing. The best sample
# counts, so that a busy machine may be, and it fails beyond five times that: slower machines
# pass, a look at the clock or a system call for each message does not.
#
#   harness.sh mpi|shmem FOLDER EMPTY_MPI_LIBRARY LAUNCHER...
set -u
kind=$1 folder=$2 library=$3
shift 3
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
result=0
# Operations of what is timed, and the program. Of the one-sided ones an epoch with what opens
# and ends it, and one with many transfers.
while read -r which operations program arguments; do
  [[ $which == "$kind" ]] || continue
  # shellcheck disable=SC2086
  record=$(LD_PRELOAD=$library timeout --kill-after=5 240 "$@" -n 2 "$folder/$program" $arguments \
    --seconds 0.2 --json - </dev/null 2>&1)
  nanoseconds=$(sed -n 's/.*"time_us_lowest":\([0-9.e+-]*\).*/\1/p' <<<"$record" |
    awk -v n="$operations" '{printf "%.2f", $1 * 1000 / n}')
  echo "$program $arguments: ${nanoseconds:-?} ns of an operation"
  if ! awk -v ns="${nanoseconds:-99}" 'BEGIN {exit !(ns > 0 && ns <= 50)}'; then
    echo "harness.sh: more than 50 ns, or no result"
    echo "$record" | head -n 5
    result=1
  fi
done <<'EOF'
mpi 1 pingpong --test latency
mpi 64 pingpong --test bandwidth --window 64
mpi 128 pingpong --test bidirectional --window 64
mpi 10000 msgrate --messages 10000 --cache-mib 0
mpi 2 rma_mt --threads 0 --sync flush
mpi 3 rma_mt --threads 0 --sync lock_all
mpi 3 rma_mt --threads 0 --sync fence
mpi 10000 rma_mt --threads 0 --pattern bandwidth --window 10000 --operation put
mpi 10000 rma_mt --threads 0 --pattern bandwidth --window 10000 --operation get
shmem 2 shmem_mt --threads 0
shmem 10000 shmem_mt --threads 0 --pattern bandwidth --window 10000 --operation put
shmem 10000 shmem_mt --threads 0 --pattern bandwidth --window 10000 --operation get
EOF
exit $result
