#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A faulty MPI is tabled as such, point by point, and the sweep goes on: of two points
# the one with the fault has the outcome named, the other one a result.
#
#   faults.sh BENCH_DRIVER FAULTY_MPI_LIBRARY MPI SCRATCH
set -u
driver=$1 library=$2 mpi=$3 scratch=$4
result=0
for pair in "lost:wrong data" "crash:crash" "assertion:assertion" "hang:hang"; do
  fault=${pair%%:*} outcome=${pair#*:}
  # Who waits for a hang has to wait; the limit grows by itself where much waits for CPUs.
  limits=(30)
  [[ $fault != hang ]] || limits=(10 30)
  told=
  for limit in "${limits[@]}"; do
    table=$(LD_PRELOAD=$library FAULTY_PUT=$fault "$driver" rma-mt --quick --verify --mpi "$mpi" \
      --only latency,put,fence,"1 threads" --seconds 0.02 --limit "$limit" --output "$scratch" 2>&1)
    status=$?
    if [[ $status == 0 ]] &&
      grep -Eq "^ +$mpi +latency +put +fence +1 +8 +$outcome\$" <<<"$table" &&
      grep -Eq "^ +fence +65536 +[0-9.]+" <<<"$table"; then
      told=yes
      break
    fi
  done
  if [[ -z $told ]]; then
    echo "faults.sh: a put that is $fault was not told as: $outcome (exit status $status)"
    echo "$table"
    result=1
  fi
done
exit $result
