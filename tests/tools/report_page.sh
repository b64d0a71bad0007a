#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The page of `tagline report` in a browser without a screen and without a network:
# report_page.sh TAGLINE CHROMIUM
set -u
tagline=$1 chromium=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
fail() {
  echo "report_page.sh: FAILED: expected $*" >&2
  tail -c 2000 log >&2
  exit 1
}

"$tagline" simulate amr --ranks 512 --steps 4 --trace 0,300 -o traces >log 2>&1 || fail "traces"
# A name that would end the script if it stood there as it is.
mkdir 'a<' && mv traces 'a</script>' || fail "a folder"
"$tagline" report 'a</script>' --seconds 0.2 --no-lines -o page.html >log 2>&1 || fail "a page"
! grep -qE '(src|href)=' page.html || fail "a page that asks for no other file"

HOME=$scratch timeout --kill-after=5 200 "$chromium" --headless --no-sandbox --disable-gpu \
  --disable-dev-shm-usage --user-data-dir="$scratch/profile" --virtual-time-budget=10000 \
  --host-resolver-rules='MAP * ~NOTFOUND' --enable-logging=stderr --dump-dom \
  "file://$scratch/page.html" >dom 2>log || fail "the browser to end well"
! grep -q 'CONSOLE.*Uncaught' log || fail "no error in the page"
grep -q 'data-charts="6"' dom || fail "six charts"
grep -q 'id="verdict">Matching ' dom || fail "a verdict"
for table in structures bits receives; do
  grep -qE "id=\"$table\">.*<td>[0-9]" dom || fail "the table $table"
done
grep -qE '<td>fuzzy:8</td>' dom || fail "a row per structure"
