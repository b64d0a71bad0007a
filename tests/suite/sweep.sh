#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A benchmark of `./run bench` on a few points: it succeeds, its plots are drawn, and every
# record has the fields that its tables are made of, with numbers above zero.
#
#   sweep.sh BENCH_DRIVER SCRATCH FIELD,FIELD... RECORDS NAME OPTION...
set -u
driver=$1 scratch=$2 fields=$3 records=$4 name=$5
shift 5
rm -rf "$scratch"
if ! "$driver" "$name" --quick --output "$scratch" "$@" >"$scratch.log" 2>&1; then
  echo "sweep.sh: $name $* failed"
  cat "$scratch.log"
  exit 1
fi
if grep "is not written" "$scratch.log"; then
  exit 1
fi
python3 - "$scratch/$name.json" "$fields" "$records" <<'EOF'
import json, sys
file, fields, wanted = sys.argv[1:]
with open(file) as text:
    records = json.load(text)
if len(records) != int(wanted):
    sys.exit(f"{len(records)} records instead of {wanted}")
for record in records:
    for field in fields.split(","):
        if not (record.get(field) or 0) > 0:
            sys.exit(f"{field} is {record.get(field)} in {record}")
EOF
