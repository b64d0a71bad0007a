#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds the history fuzzer with Clang and runs it: tests/fuzz/run.sh [SECONDS]
#
#   tests/fuzz/run.sh                   a minute, as ./check does
#   tests/fuzz/run.sh 36000             overnight
#   build/fuzz/tests/fuzz/history_fuzzer build/fuzz/crash-...
#                                       one input again, as the run names it
#
# What the runs find interesting is kept in build/fuzz/corpus: a later run goes
# on from there. Ends with 77 (a skipped test) where Clang or its runtime is missing.
set -euo pipefail
seconds=${1:-60}
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd -P)
build=$root/build/fuzz

skip() {
  echo "SKIPPED: $*" >&2
  exit 77
}

compiler=${TAGLINE_CLANG:-clang++}
command -v "$compiler" >/dev/null ||
  skip "no $compiler: install the packages clang and libclang-rt-14-dev, or set TAGLINE_CLANG"
mkdir -p "$build/corpus"
echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' \
  >"$build/probe.cpp"
"$compiler" -fsanitize=fuzzer,address,undefined "$build/probe.cpp" -o "$build/probe" ||
  skip "$compiler cannot build with -fsanitize=fuzzer: install the package libclang-rt-14-dev"

# Two runs at a time would build the same files.
exec {lock}>"$build/.lock"
flock "$lock"
if [[ ! -f $build/build.ninja ]]; then
  (cd "$root" && cmake --preset fuzz -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_C_COMPILER="${compiler/clang++/clang}")
fi
cmake --build "$build" --target history_fuzzer
exec {lock}>&-

# -error_exitcode: its own is 77, which means skipped here.
# -timeout: an input that takes that long is a search that never ends.
# -entropic=0: its books cost more than they earn with inputs this small.
cd "$build"
"$build/tests/fuzz/history_fuzzer" -max_total_time="$seconds" -error_exitcode=1 \
  -max_len=512 -len_control=20 -timeout=25 -entropic=0 -rss_limit_mb=2048 \
  -print_final_stats=1 -artifact_prefix="$build/" "$build/corpus" "$root/tests/fuzz/seeds"
