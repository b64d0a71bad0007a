#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the harness takes of a message is a few nanoseconds, 10 at most on the machine it was
# made on: measured as any message is, under an MPI whose operations do nothing. The best sample
# counts, so that a busy machine may be, and it fails beyond five times that: slower machines
# pass, a look at the clock or a system call for each message does not.
#
#   harness.sh FOLDER EMPTY_MPI_LIBRARY LAUNCHER...
set -u
folder=$1 library=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
result=0
# Messages of what is timed, and the program.
while read -r messages program arguments; do
  # shellcheck disable=SC2086
  record=$(LD_PRELOAD=$library timeout --kill-after=5 240 "$@" -n 2 "$folder/$program" $arguments \
    --seconds 0.2 --json - </dev/null 2>&1)
  nanoseconds=$(sed -n 's/.*"time_us_lowest":\([0-9.e+-]*\).*/\1/p' <<<"$record" |
    awk -v n="$messages" '{printf "%.2f", $1 * 1000 / n}')
  echo "$program $arguments: ${nanoseconds:-?} ns of a message"
  if ! awk -v ns="${nanoseconds:-99}" 'BEGIN {exit !(ns > 0 && ns <= 50)}'; then
    echo "harness.sh: more than 50 ns, or no result"
    echo "$record" | head -n 5
    result=1
  fi
done <<'EOF'
1 pingpong --test latency
64 pingpong --test bandwidth --window 64
128 pingpong --test bidirectional --window 64
10000 msgrate --messages 10000 --cache-mib 0
EOF
exit $result
