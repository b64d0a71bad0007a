#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds the library and its unit tests for 64-bit ARM (preset neon) and runs them
# under qemu-user, which has the vector instructions; with -O1, which takes less time to
# compile: tests/neon/run.sh [CTEST ARGUMENT...]
#
# Ends with 77 (a skipped test) where the cross compiler or the emulator is missing.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd -P)
build=$root/build/neon

for command in aarch64-linux-gnu-g++ qemu-aarch64; do
  if ! command -v "$command" >/dev/null; then
    echo "SKIPPED: no $command: install the packages g++-aarch64-linux-gnu and qemu-user" >&2
    exit 77
  fi
done
# An x86 library would not do: GoogleTest is built from the source beside it.
if [[ ! -f /usr/src/googletest/CMakeLists.txt ]]; then
  echo "SKIPPED: no source of GoogleTest in /usr/src/googletest: install the package googletest" >&2
  exit 77
fi

mkdir -p "$build"
exec {lock}>"$build/.lock"  # two runs at a time would build the same files
flock "$lock"
[[ -f $build/build.ninja ]] || (cd "$root" && cmake --preset neon)
cmake --build "$build"
exec {lock}>&-

# One process per program rather than per test: starting is what costs here.
# Whatever the host's environment chooses is not for these.
unset TAGLINE_ISA TAGLINE_QUEUE
# Histories on a thousand shards, each searched for every wildcard: three quarters of the time
# that all matchers for several threads take here.
export GTEST_FILTER=${GTEST_FILTER--Threaded/History.*/sharded_1024_*}
ctest --test-dir "$build" --output-on-failure --no-tests=error "$@"
