#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs a command and expects each of the given texts somewhere in its output, or, with "not:" in
# front, nowhere.
#
#   expect_lines.sh TEXT... -- command [argument...]
set -u

expected=()
while [ "$1" != -- ]; do
  expected+=("$1")
  shift
done
shift
output=$("$@" 2>&1)
status=$?
echo "$output"
[ "$status" -eq 0 ] || exit "$status"
failed=0
for text in "${expected[@]}"; do
  if [ "${text#not:}" != "$text" ]; then
    grep -qF -- "${text#not:}" <<<"$output" || continue
    echo "expect_lines.sh: FAILED: expected no line with '${text#not:}'" >&2
  else
    grep -qF -- "$text" <<<"$output" && continue
    echo "expect_lines.sh: FAILED: expected a line with '$text'" >&2
  fi
  failed=1
done
exit $failed
