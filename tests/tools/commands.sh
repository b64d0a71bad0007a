#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The commands that need no MPI, as a user types them: commands.sh TAGLINE
set -u
tagline=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

# expect STATUS PATTERN COMMAND...: the exit status, and a line of what it says.
expect() {
  local status=$1 pattern=$2 got
  shift 2
  timeout 200 "$@" >out 2>&1
  got=$?
  if [ "$got" -ne "$status" ] || ! grep -qE -e "$pattern" out; then
    echo "commands.sh: FAILED: $*: expected exit status $status and \"$pattern\", got $got and:" >&2
    cat out >&2
    exit 1
  fi
}

expect 0 'Exit status: 0 done' "$tagline" --help
expect 2 'subcommand is required' "$tagline"
expect 2 '"simulat" is no command: did you mean simulate\?' "$tagline" simulat
expect 2 'did you mean replay\?' "$tagline" repaly trace
expect 2 '"dance" is no command \(' "$tagline" dance
expect 2 'effrot' "$tagline" tune --effrot low
expect 2 'not in' "$tagline" tune --effort heroic
for command in info record replay report simulate tune completion; do
  expect 0 'Examples:' "$tagline" "$command" --help
done

# What bash offers: complete_words WORD..., the last one being under the cursor.
cat >complete_words <<'TEXT'
eval "$("$1" completion bash)"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_tagline
echo "${COMPREPLY[@]}"
TEXT
complete_words=(bash complete_words "$tagline")
expect 0 '^record replay report$' "${complete_words[@]}" re
expect 0 '^low medium high$' "${complete_words[@]}" tune --effort ''
expect 0 '^amr sweep3d halo3d$' "${complete_words[@]}" simulate ''
expect 0 '--ranks' "${complete_words[@]}" simulate halo3d -
expect 0 '^$' "${complete_words[@]}" report trace -o ''
expect 0 'true' "${complete_words[@]}" record -o trace -- tru
expect 0 '_tagline tagline' cat "$(dirname "$tagline")/../share/bash-completion/completions/tagline"

# Measuring this machine, in less time than it takes to be right.
export XDG_CONFIG_HOME=$scratch/config
profile=$XDG_CONFIG_HOME/tagline/profile
expect 0 'profile +none' "$tagline" info
expect 0 'What to use' "$tagline" tune --seconds 0.1
expect 0 "^choose single/any/many .* [a-z0-9]+$" cat "$profile"
expect 0 'profile: 2 runs on this machine' "$tagline" tune --seconds 0.1
expect 0 'profile, not in use.*2 runs' "$tagline" info
expect 0 'a matcher now .*\(profile .* for single/any/many\)' env TAGLINE_PROFILE="$profile" "$tagline" info
expect 0 '"in_use": true' env TAGLINE_PROFILE="$profile" "$tagline" info --json
# One that is interrupted leaves what is there.
before=$(md5sum "$profile")
"$tagline" tune --seconds 60 >out 2>&1 &
until grep -q effort out; do sleep 0.1; done
kill -INT $!
wait $!
[ $? -eq 130 ] && grep -q 'nothing was written' out && [ "$before" = "$(md5sum "$profile")" ] &&
  [ "$(ls "$XDG_CONFIG_HOME/tagline")" = profile ] ||
  { echo "commands.sh: FAILED: an interrupted tune ends with 130, the profile as it was" >&2; exit 1; }
{ cat "$profile"; echo choose single/any/many; } >damaged
expect 1 'damaged in line [0-9]+' "$tagline" tune --seconds 0.1 -o damaged
expect 1 'damaged in line [0-9]+' env TAGLINE_PROFILE=damaged "$tagline" info
expect 1 'missing cannot be read' env TAGLINE_PROFILE=missing "$tagline" info
expect 1 'cannot be written' "$tagline" tune --seconds 0.1 -o /dev/null/profile

expect 0 'instruction sets +.*scalar' "$tagline" info
expect 0 '"structures"' "$tagline" info --json
expect 0 'vector on ' env TAGLINE_QUEUE=vector "$tagline" info
expect 1 'nonsense' env TAGLINE_QUEUE=nonsense "$tagline" info
# Where the MPI and the component are, they fit: they were built for each other.
if command -v ompi_info >/dev/null && [ -e "$(dirname "$tagline")/../lib/openmpi/mca_pml_tagline.so" ]; then
  expect 0 'Open MPI .* fits and loads' "$tagline" info
fi

expect 0 'Traces of 2 ranks' "$tagline" simulate halo3d --ranks 512 --steps 4 \
  --trace 0,511 -o traces --json halo.json --csv halo.csv
expect 0 '^length,posted,unexpected' cat halo.csv
expect 0 '"longest": 26' cat halo.json
# Open MPI's two lists per peer, by arithmetic: 2.26 GiB half of table 6.2's machine.
expect 0 'two lists per peer .* 2312\.0' "$tagline" simulate halo3d --ranks 278528 --steps 1 --per-node 68
expect 0 '2 of 2 ranks' "$tagline" replay traces --seconds 0.2 --no-lines
expect 0 '1 of 2 ranks' "$tagline" replay traces --ranks 511 --queue linear,vector --seconds 0.1
# Of a long trace the beginning, so that memory has a bound.
expect 0 'The last [0-9]+ records of these ranks are left out' "$tagline" replay traces --seconds 0.1 \
  --no-lines --most 100 --json replay.json
expect 0 '"duration_ns": [1-9]' cat replay.json
# Matchers for several threads are among what is compared.
expect 0 'sharded:adaptive' "$tagline" replay traces --seconds 0.1 --no-lines --json replay.json
for name in sharded:adaptive tail:adaptive binned:linear locked:adaptive; do
  expect 0 "\"queue\": \"$name\"" cat replay.json
done
expect 0 'tail@mcs:linear' "$tagline" replay traces --queue linear,tail@mcs:linear --seconds 0.1

expect 2 'not in' "$tagline" simulate ring
expect 1 '8 to [0-9]+ ranks' "$tagline" simulate amr --ranks 3
expect 2 'ranks' "$tagline" simulate amr --ranks 0
expect 1 'no rank 64' "$tagline" simulate halo3d --ranks 64 --steps 1 --trace 64
expect 1 'cannot be written' "$tagline" simulate halo3d --ranks 64 --steps 1 --csv no/such/folder.csv
expect 1 'no such file or folder' "$tagline" replay nothing
head -c 100 "$(ls traces/* | head -n 1)" >short.tagtrace
expect 1 'cut before its first record' "$tagline" replay short.tagtrace
expect 1 'rank 7 is not in the trace' "$tagline" replay traces --ranks 7
expect 1 'queue|structure' "$tagline" replay traces --queue nonsense

# Built without Chart.js it says what is missing.
if [ -e "$(dirname "$tagline")/../lib/tagline/chart.min.js" ]; then
  expect 0 'page.html: 2 ranks' "$tagline" report traces --seconds 0.1 --no-lines -o page.html
  expect 1 'cannot be written' "$tagline" report traces --seconds 0.1 --no-lines -o no/such/page.html
else
  expect 1 'libjs-chart.js' "$tagline" report traces
fi
