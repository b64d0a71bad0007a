#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs one MPI program under mpirun with a time limit, and checks how it ends: the exit
# status, what it prints, and that no process of the job is left behind.
#
#   run_program.sh --mpirun M --pml P --ranks N [--transport T] [--timeout S]
#                  [--component DIR] [--preload LIB] [--expect-exit CODE|nonzero]
#                  [--expect-output REGEX] [--mca NAME VALUE]... [--attempts N]
#                  -- program [argument...]
#
# --attempts: how many runs, as long as they reach their time limit (1).
# Transports: vader, tcp, vader-copy (no single copy), vader-refused (the kernel refuses single
# copies, and nobody knows before), tcp-links (three connections per pair), vader-tcp (both at
# once, so that messages overtake each other).
set -u

pml='' ranks=1 transport=vader limit=60 attempts=1 component='' preload='' mpirun=mpirun
expect_exit=0 expect_output='' mca=()
while [ "$#" -gt 0 ]; do
  case $1 in
    --mpirun) mpirun=$2 ;;
    --pml) pml=$2 ;;
    --ranks) ranks=$2 ;;
    --transport) transport=$2 ;;
    --timeout) limit=$2 ;;
    --attempts) attempts=$2 ;;
    --component) component=$2 ;;
    --preload) preload=$2 ;;
    --expect-exit) expect_exit=$2 ;;
    --expect-output) expect_output=$2 ;;
    --mca) mca+=(--mca "$2" "$3"); shift ;;
    --) shift; break ;;
    *) echo "run_program.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done

options=(--bind-to none --oversubscribe -n "$ranks" --timeout "$limit"
         --mca oob_tcp_if_include lo --mca btl_tcp_if_include lo
         --mca mpi_yield_when_idle 1)  # tests share the machine
case $transport in
  vader) options+=(--mca btl "self,vader") ;;
  vader-copy) options+=(--mca btl "self,vader" --mca btl_vader_single_copy_mechanism none) ;;
  vader-refused) options+=(--mca btl "self,vader" -x TAGLINE_FORBID_SINGLE_COPY=1) ;;
  tcp) options+=(--mca btl "self,tcp") ;;
  tcp-links) options+=(--mca btl "self,tcp" --mca btl_tcp_links 3 -x TAGLINE_OPEN_LINKS=1) ;;
  vader-tcp) options+=(--mca btl "self,vader,tcp" --mca btl_tcp_exclusivity 65536
                       --mca btl_tcp_latency 1 -x TAGLINE_OPEN_LINKS=1) ;;
  *) echo "run_program.sh: unknown transport $transport" >&2; exit 2 ;;
esac
[ -n "$pml" ] && options+=(--mca pml "$pml")
# Without SYSTEM_DEFAULT mpirun would not find its own components.
[ -n "$component" ] && options+=(--mca mca_base_component_path "$component:SYSTEM_DEFAULT")
[ -n "$preload" ] && options+=(-x "LD_PRELOAD=$preload")

# Every process of the job inherits this, so that stragglers can be told by it.
run_id=tagline-test-$$-$RANDOM
job_processes() {
  grep -lszx "TAGLINE_RUN_ID=$run_id" /proc/[0-9]*/environ | cut -d/ -f3
}
end_stragglers() {
  local process
  for process in $(job_processes); do kill -KILL "$process" 2>/dev/null; done
}
output=$(mktemp)
trap 'end_stragglers; rm -f "$output"' EXIT
trap 'exit 1' INT TERM HUP

# mpirun's own limit (110) comes first; the outer one is for mpirun itself.
for ((attempt = 1; attempt <= attempts; ++attempt)); do
  TAGLINE_RUN_ID=$run_id OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    timeout --kill-after=5 "$((limit + 10))" \
    "$mpirun" "${options[@]}" ${mca[@]+"${mca[@]}"} "$@" >"$output" 2>&1 </dev/null
  status=$?
  cat "$output"
  [ "$status" -eq 110 ] || break
done

fail() {
  echo "run_program.sh: FAILED: expected $*" >&2
  exit 1
}
for _ in 1 2 3 4 5 6 7 8 9 10; do  # processes that were told to end get a moment to do so
  left=$(job_processes)
  [ -z "$left" ] && break
  sleep 0.3
done
if [ -n "$left" ]; then
  ps -o pid,stat,args -p "$(echo "$left" | paste -sd,)"
  fail "no process of the job to be left behind"
fi
if [ "$expect_exit" = nonzero ]; then
  [ "$status" -ne 0 ] || fail "a nonzero exit status, got 0"
elif [ "$expect_exit" = 0 ] && [ "$status" -eq 77 ]; then
  exit 77  # the program cannot run here and says why
else
  [ "$status" -eq "$expect_exit" ] || fail "exit status $expect_exit, got $status"
fi
if [ -n "$expect_output" ]; then
  grep -Eq -- "$expect_output" "$output" || fail "output that matches '$expect_output'"
fi
