#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Checks the models of the concurrent matchers with spin: every order of the steps of a few
# processes, for lost matches, double matches, overtaking and deadlock. Of each model there
# are variants that are wrong in one step, and spin has to find that.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd -P)
for tool in spin gcc; do
  if ! command -v "$tool" >/dev/null; then
    echo "models: skipped, $tool is not installed (Debian: apt-get install spin gcc)"
    exit 77
  fi
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

failed=0

# check right|wrong MODEL [DEFINE...]
check() {
  local verdict=$1 model=$2
  shift 2
  local -a defines=()
  local define
  # spin hands them to a shell.
  for define in "$@"; do defines+=("-D'$define'"); done
  rm -f pan* ./*.trail
  spin "${defines[@]}" -a "$here/$model.pml" >spin.log || { cat spin.log; exit 1; }
  # To compile it well takes longer than to run it, and to pack its states (-DCOLLAPSE) as well: the
  # most of them, ten million, take a gigabyte.
  gcc -O0 -DSAFETY -w -o pan pan.c
  # Depth beyond what three processes can do; truncated searches prove nothing.
  ./pan -m200000 >pan.log || { cat pan.log; exit 1; }
  local errors states
  errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
  states=$(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
  local found=right
  [[ $errors == 0 ]] || found=wrong
  if grep -q "max search depth too small\|out of memory" pan.log; then found=truncated; fi
  if [[ $found == "$verdict" ]]; then
    echo "models: $model $*: $verdict, as expected, $states states"
  else
    echo "models: $model $*: expected $verdict, found $found"
    cat pan.log
    failed=1
  fi
}

check right biased_lock
check wrong biased_lock BROKEN
check wrong biased_lock BROKEN_END
check wrong biased_lock BROKEN_WORD
check wrong biased_lock BROKEN_GATE
check wrong biased_lock BROKEN_AGAIN
check wrong biased_lock BROKEN_LEAVE

check right tail_queue
check wrong tail_queue BROKEN
check wrong tail_queue BROKEN_CANCEL
check right tail_queue READERS
check wrong tail_queue READERS BROKEN_CLOSE
check wrong tail_queue READERS BROKEN_ENTER

# What three threads do. A wildcard against exact receives and messages of two keys; order
# of a wildcard and an exact receive of one thread, both ways; order of two messages.
posts='OPERATIONS_1=post(0);post(1)'
later='OPERATIONS_1=post(1);post(0)'
mixed='OPERATIONS_1=post(0);arrive(1)'
check right sharded "$posts" 'OPERATIONS_2=arrive(0);arrive(1)' 'OPERATIONS_3=arrive(2);post(2)'
check right sharded "$later" 'OPERATIONS_2=arrive(0);arrive(1)' 'OPERATIONS_3=post(2);arrive(2)'
check right sharded "$mixed" 'OPERATIONS_2=arrive(0);arrive(2)' 'OPERATIONS_3=post(1);post(2)'
check right sharded "$mixed" 'OPERATIONS_2=post(2);arrive(0)' 'OPERATIONS_3=arrive(2);post(1)'
check wrong sharded BROKEN "$mixed" 'OPERATIONS_2=arrive(0);arrive(2)' \
  'OPERATIONS_3=post(1);post(2)'
check wrong sharded BROKEN_ORDER "$later" 'OPERATIONS_2=arrive(0);arrive(1)' \
  'OPERATIONS_3=post(2);arrive(2)'
# Receives that are cancelled while messages come, one of them with wildcards.
cancels='OPERATIONS_1=post(1);cancel(1)'
check right sharded "$cancels" 'OPERATIONS_2=arrive(0);arrive(1)' \
  'OPERATIONS_3=arrive(2);post(2);post(0)'
check wrong sharded BROKEN_CANCEL "$cancels" 'OPERATIONS_2=arrive(0);arrive(1)' \
  'OPERATIONS_3=arrive(2);post(2);post(0)'
# Shards that are chosen by less of the key from some moment on.
longer='OPERATIONS_1=post(0);post(1);arrive(2)'
check right sharded CHANGE "$longer" 'OPERATIONS_2=arrive(0);arrive(1);post(2)' OPERATIONS_3=skip
check right sharded CHANGE "$longer" 'OPERATIONS_2=post(2);arrive(1);arrive(0)' OPERATIONS_3=skip
check right sharded CHANGE "$cancels;post(0);arrive(2)" \
  'OPERATIONS_2=arrive(0);arrive(1);post(2);cancel(2)' OPERATIONS_3=skip
check wrong sharded CHANGE BROKEN_CHANGE "$longer" 'OPERATIONS_2=arrive(0);arrive(1);post(2)' \
  OPERATIONS_3=skip
exit "$failed"
