#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs programs of the benchmark suite under one MPI, all data verified, and counts their
# records. Exit status 77: that MPI is not there.
#
#   programs.sh FOLDER LAUNCHER... -- RECORDS RANKS PROGRAM ARGUMENT... [-- RECORDS ...]
set -u
folder=$1
shift
launcher=()
while [[ $1 != -- ]]; do
  launcher+=("$1")
  shift
done
[[ ${launcher[0]} != */* || -x ${launcher[0]} ]] || exit 77
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
quickly=(--verify --seconds 0.01 --batch-ms 0.1 --least 2 --json -)
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
result=0
while (($# > 0)); do
  shift  # --
  wanted=$1 ranks=$2 program=$3
  shift 3
  arguments=()
  while (($# > 0)) && [[ $1 != -- ]]; do
    arguments+=("$1")
    shift
  done
  records=$(timeout --kill-after=5 240 "${launcher[@]}" -n "$ranks" "$folder/$program" \
    "${arguments[@]}" "${quickly[@]}" 2>"$errors" </dev/null)
  status=$?
  got=$(grep -c '^{"benchmark"' <<<"$records")
  if [[ $status != 0 || $got != "$wanted" ]]; then
    echo "programs.sh: $program ${arguments[*]} on $ranks ranks: exit status $status," \
      "$got records instead of $wanted"
    cat "$errors"
    result=1
  fi
  # What the harness itself takes of every operation.
  if ! awk -F'"harness_ns_per_operation":' 'NF > 1 && $2 + 0 > 10 {exit 1}' <<<"$records"; then
    echo "programs.sh: $program: the harness takes more than 10 ns per operation"
    result=1
  fi
done
exit $result
