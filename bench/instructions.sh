#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Instructions per append + match, counted by valgrind's callgrind in the two calls of the
# library (AVX2: valgrind 3.19 knows no AVX-512):
#
#   bench/instructions.sh [--rare] [--misses | --code] [REGEX...]
#
# --rare: of calls that are rare, for which a matcher does more (match/contexts.hpp). All are under
# valgrind, so without it a clock that hardly moves (Debian's faketime) makes them frequent.
# --misses: also what a simulated processor misses: branches foretold wrongly, and lines of data not
# in a first-level cache of 32 KiB, not in a second-level one of 512 KiB.
# --code: also the lines (64 bytes) and pages (4 KiB) of code that most of the calls run through.
# REGEX: one benchmark of `build/release/bench/engine --list`, its isa left out; without one, what
# README shows. What only the first passes cost (growth, the first wildcards) is not
# counted: a run of 12 passes is taken off one of 20 (--rare: 92 and 100).
set -euo pipefail
simulate=()
code=
clock=(faketime -f '+0 x0.0001')
few_passes=12
if [ "${1:-}" = --rare ]; then
  clock=()
  few_passes=92  # a matcher sees it after some thousand appends
  shift
fi
many_passes=$((few_passes + 8))
case "${1:-}" in
  --misses)
    simulate=(--cache-sim=yes --branch-sim=yes --D1=32768,8,64 --LL=524288,8,64)
    shift ;;
  --code)
    simulate=(--dump-instr=yes --dump-line=no --compress-pos=no)
    code=yes
    shift ;;
esac
engine=$(dirname "$(readlink -f "$0")")/../build/release/bench/engine
for tool in valgrind "${clock[0]:-valgrind}"; do
  if ! command -v "$tool" >/dev/null; then
    echo "instructions.sh: wants $tool: apt-get install $tool" >&2
    exit 1
  fi
done
if [ ! -x "$engine" ]; then
  echo "instructions.sh: $engine is not built: ./run bench engine --quick builds it" >&2
  exit 1
fi

# point STRUCTURE DEPTH ORDER SIDE KEYS WILDCARDS
point() {
  echo "post_and_match/structure:$1/depth:$2/order:$3/isa:(avx2|none)/side:$4/keys:$5/holes:dense/wildcards:$6/cache:hot"
}
if [ "$#" -eq 0 ]; then
  points=()
  for side in posted unexpected; do
    for list in linear plain_list; do
      points+=("$(point $list 0 last $side one_source 0)" "$(point $list 1 last $side one_source 0)")
    done
    points+=("$(point adaptive 0 last $side one_source 0)"
             "$(point adaptive 1 last $side one_source 0)" "$(point adaptive 1024 last $side one_source 0)"
             "$(point adaptive 1024 last $side all_equal 0)" "$(point adaptive 1024 first $side one_source 0)"
             "$(point adaptive 8 random $side one_source 0)" "$(point adaptive 1024 random $side one_source 0)"
             "$(point adaptive 16384 random $side one_source 0)"
             "$(point exact_hash 1024 random $side one_source 0)"
             "$(point exact_hash 16384 random $side one_source 0)"
             "$(point exact_hash:32 16384 random $side one_source 0)")
    for share in 10 100; do
      for keys in one_source grid; do
        points+=("$(point adaptive 1024 random $side $keys $share)")
      done
    done
  done
  set -- "${points[@]}"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# count PASSES REGEX: what callgrind sums up; leaves the benchmark's own line in $work/name
count() {
  if ! "${clock[@]}" valgrind --tool=callgrind --callgrind-out-file="$work/out" --collect-atstart=no \
    --toggle-collect=tagline_post_receive --toggle-collect=tagline_arrive \
    "${simulate[@]}" \
    "$engine" --subset full --filter "$2" --passes "$1" >"$work/name" 2>"$work/log"; then
    tail -5 "$work/log" >&2
    exit 1
  fi
  if [ "$(wc -l <"$work/name")" -ne 1 ]; then
    echo "instructions.sh: not one benchmark but $(wc -l <"$work/name") match $2" >&2
    exit 1
  fi
  if [ -n "$code" ]; then
    # Address and times run; what follows a `calls=` is the cost of what is called.
    awk '/^calls=/ { getline; next } /^0x/ { print $1, $2 }' "$work/out" >"$work/run.$1"
  fi
  sed -n 's/^summary: //p' "$work/out"
}
# lines_and_pages MATCHES: of the code that was run for at least half of so many, which are what the
# second run had more than the first.
lines_and_pages() {
  awk -v least="$(($1 / 2))" '
    FNR == NR { run[$1] -= $2; next }
    { run[$1] += $2 }
    END {
      for (address in run) {
        if (run[address] < least) continue
        digits = length(address)
        quarter = int((index("0123456789abcdef", substr(address, digits - 1, 1)) - 1) / 4)
        lines[substr(address, 1, digits - 2) quarter] = 1
        pages[substr(address, 1, digits - 3)] = 1
      }
      for (line in lines) ++number_of_lines
      for (page in pages) ++number_of_pages
      printf "%6d %6d", number_of_lines, number_of_pages
    }' "$work/run.$few_passes" "$work/run.$many_passes"
}
if [ -n "$code" ]; then
  echo "instructions, lines and pages of code"
elif [ "${#simulate[@]}" -gt 0 ]; then
  echo "instructions, branches missed, lines missed in 32 KiB, in 512 KiB"
fi
for regex in "$@"; do
  few=$(count "$few_passes" "$regex")
  many=$(count "$many_passes" "$regex")
  read -r name pairs <"$work/name"
  if [ -n "$code" ]; then
    name="$(lines_and_pages $((8 * pairs)))  $name"
  fi
  # Of the misses callgrind tells reads and writes, conditional and computed jumps apart.
  echo "$few $many" | awk -v pairs="$pairs" -v name="$name" '{
    for (i = 1; i <= NF / 2; ++i) per[i] = ($(i + NF / 2) - $i) / (8 * pairs)
    if (NF == 2) printf "%6d  %s\n", per[1], name
    else printf "%6d %6.2f %6.2f %6.2f  %s\n", per[1], per[11] + per[13], per[5] + per[6], per[8] + per[9], name
  }'
done
