#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# `./run bench all` ends with one report that needs nothing beside it: plots, tables, the
# records, and what could not be measured.
#
#   report.sh BENCH_DRIVER MPI SCRATCH
set -u
driver=$1 mpi=$2 scratch=$3
rm -rf "$scratch"
if ! "$driver" all --quick --mpi "$mpi" --only hpccg --seconds 0.02 --output "$scratch" \
  >"$scratch.log" 2>&1; then
  echo "report.sh: the suite failed"
  cat "$scratch.log"
  exit 1
fi
report=$scratch/report.html
result=0
for wanted in '<svg' 'time / time of two-sided' '"app":"hpccg"' 'not measured: no point of rma-mt' \
  '</html>'; do
  if ! grep -qaF -- "$wanted" "$report"; then
    echo "report.sh: the report lacks: $wanted"
    result=1
  fi
done
# Links inside the report begin with #.
if grep -Eqa "<(script|link|img|iframe)|(src|href)=[\"'][^#]" "$report"; then
  echo "report.sh: the report refers to something outside of it:"
  grep -Eoa "<(script|link|img|iframe).{0,60}|(src|href)=[\"'][^#].{0,60}" "$report" | head -n 5
  result=1
fi
exit $result
