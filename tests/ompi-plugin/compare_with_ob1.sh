#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs a program under Open MPI's own ob1 and under another component, and compares the
# lines that it prints from each line that matches the first pattern to the next that
# matches the second (that one excluded). There must be such lines.
#
#   compare_with_ob1.sh PML DIR FIRST LAST OPTION... -- program [argument...]
#
# DIR is the folder of the component; each OPTION is one of run_program.sh.
set -u

pml=$1 component=$2 first=$3 last=$4
shift 4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for each in ob1 "$pml"; do
  where=()
  [ "$each" = ob1 ] || where=(--component "$component")
  TAGLINE_EXPECT_PML=$each "$(dirname "$0")/run_program.sh" --pml "$each" \
    ${where[@]+"${where[@]}"} "$@" >"$scratch/$each.all" || { cat "$scratch/$each.all"; exit 1; }
  awk -v first="$first" -v last="$last" \
    '$0 ~ first { on = 1 } $0 ~ last { on = 0 } on' "$scratch/$each.all" >"$scratch/$each"
  if [ ! -s "$scratch/$each" ]; then
    cat "$scratch/$each.all"
    echo "compare_with_ob1.sh: FAILED: expected lines from '$first' on under $each" >&2
    exit 1
  fi
done
if ! diff -u "$scratch/ob1" "$scratch/$pml"; then
  echo "compare_with_ob1.sh: FAILED: expected the output of $pml to equal that of ob1" >&2
  exit 1
fi
echo "$(wc -l <"$scratch/ob1") lines are the same under ob1 and $pml"
