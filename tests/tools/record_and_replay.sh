#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Records a program under a real mpirun, checks the trace, replays it.
#
#   record_and_replay.sh TAGLINE MPIRUN CASE -- [mpirun option...] program [argument...]
#
# CASE: calls      every receive of the replay gets the message that it got in the run
#       matching   recorded inside the matcher: as calls, with arrivals that are not guessed
#       loose      as calls, for programs whose receives with wildcards race
#       killed     the job ends by a signal; what was recorded before is there
#       full       the trace does not fit its limit and says so
set -u

tagline=$1 mpirun=$2 case=$3
shift 4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
  echo "record_and_replay.sh: FAILED: expected $*" >&2
  cat "$scratch"/*.out >&2
  exit 1
}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
options=()
if "$mpirun" --version | grep -qE "Open (MPI|RTE)|OpenRTE"; then
  options=(--bind-to none --oversubscribe --mca oob_tcp_if_include lo --mca btl_tcp_if_include lo
           --mca mpi_yield_when_idle 1)
fi
limit=64
[ "$case" = full ] && limit=1
timeout --kill-after=5 100 "$tagline" record -o "$scratch/trace" --limit "$limit" -- \
  "$mpirun" ${options[@]+"${options[@]}"} "$@" >"$scratch/run.out" 2>&1 </dev/null
status=$?
if [ "$case" = killed ]; then
  [ "$status" -ne 0 ] || fail "the command's exit status to be that of the job, got 0"
else
  [ "$status" -eq 0 ] || fail "exit status 0, got $status"
fi
grep -q "^tagline: .* records" "$scratch/run.out" || fail "a line about what was recorded"

"$tagline" replay "$scratch/trace" --seconds 0.2 --json "$scratch/replay.json" \
  >"$scratch/replay.out" 2>&1 || fail "the replay to succeed"
value() { sed -n "s/^ \"$1\": \([0-9.e+-]*\).*/\1/p" "$scratch/replay.json"; }
at_least() { awk -v a="$(value "$1")" -v b="$2" 'BEGIN { exit !(a + 0 >= b && a != "") }' ||
  fail "$1 of at least $2, got $(value "$1")"; }
at_most() { awk -v a="$(value "$1")" -v b="$2" 'BEGIN { exit !(a + 0 <= b && a != "") }' ||
  fail "$1 of at most $2, got $(value "$1")"; }
at_least posts 1
at_least arrivals 1
case $case in
  calls)
    at_least receives_compared_with_the_run 1
    at_most receives_that_got_another_message 0
    at_most guessed_arrivals 0
    at_most cut_traces 0
    ;;
  loose) at_most guessed_arrivals 0 ;;
  matching)
    ls "$scratch"/trace/matching-*.tagtrace >/dev/null || fail "a trace of the matcher"
    at_most guessed_arrivals 0
    at_most cut_traces 0
    ;;
  killed) at_least cut_traces 1 ;;
  full) at_least lost_records 1 ;;
esac
cat "$scratch/replay.out"
