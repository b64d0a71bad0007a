#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds a jemalloc of our own, for TAGLINE_JEMALLOC: tools/jemalloc.sh [compiler]
# prints the folder that it lies in, .cache/jemalloc/VERSION, and builds only if it
# is not there yet. Fails with one line on stderr where it cannot be had.
#
# Why of our own: the distribution's library wants static TLS, so a plugin that
# needs it cannot be loaded by dlopen, and it replaces the program's malloc. This
# one is position independent, has no static TLS, and is one object file whose
# only global symbols are the few functions that we call, prefixed.
#
# The source is the distribution's package, see tools/debian_source.sh.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd -P)
cache=$root/.cache/jemalloc
prefix=tagline_jemalloc_
functions=(mallocx sdallocx mallctl)  # all that is visible of it
# One arena, shared by all threads: they come here once in thousands of messages.
# Pages are given back when we say so: no decay by time, no thread for it.
malloc_conf=narenas:1,tcache:false,dss:disabled,oversize_threshold:0
malloc_conf+=,dirty_decay_ms:-1,muzzy_decay_ms:0
options=(
  --with-jemalloc-prefix="$prefix" --with-private-namespace="${prefix}private_" --without-export
  --disable-initial-exec-tls --disable-cxx --disable-doc --disable-fill --disable-libdl
  --with-malloc-conf="$malloc_conf"
)
export CC=${1:-${CC:-cc}}

# What is there was built by these very lines, by this compiler.
recipe=$(cksum <"$0")-$("$CC" -dumpfullversion 2>/dev/null || "$CC" -dumpversion)
find_built() {
  local stamp
  for stamp in "$cache"/*/recipe; do
    if [[ -f $stamp && $(<"$stamp") == "$recipe" ]]; then
      dirname "$stamp"
      return
    fi
  done
  return 1
}
if find_built; then exit; fi

mkdir -p "$cache"
exec {lock}>"$cache/.lock"
flock "$lock"
if find_built; then exit; fi  # by whoever had the lock

work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
  printf 'tagline: no jemalloc of our own, the system allocator serves: %s\n' "$1" >&2
  exit 1
}
# step WHAT COMMAND...: its words go to a log; the last of them is the reason if it fails.
step() {
  local what=$1
  shift
  "$@" >"$work/log" 2>&1 || fail "$what failed ($(grep -v '^$' "$work/log" | tail -n 1))"
}

for tool in make objcopy; do
  command -v "$tool" >/dev/null || fail "$tool is not found (Debian: package dpkg-dev)"
done

cd "$work"
step "fetching its source package" "$root/tools/debian_source.sh" jemalloc "$work"
printf 'tagline: building jemalloc for the queues (once, a minute)\n' >&2
version=$(sed -n 's/^Version: *//p' jemalloc_*.dsc | head -n 1)
cd jemalloc-*/
step "configuring it" ./configure --prefix="$work/unused" "${options[@]}"
step "building it" make -j"$(nproc)" lib/libjemalloc_pic.a

built=$work/prefix
mkdir -p "$built"/{include,lib}
cp include/jemalloc/jemalloc.h "$built/include/tagline_jemalloc.h"
cp COPYING "$built/COPYING"
step "linking it" "$CC" -nostdlib -r -Wl,--whole-archive lib/libjemalloc_pic.a \
  -o "$built/lib/tagline_jemalloc.o"
step "hiding its symbols" objcopy --strip-debug "${functions[@]/#/--keep-global-symbol=$prefix}" \
  "$built/lib/tagline_jemalloc.o"
printf '%s\n' "$recipe" >"$built/recipe"
rm -rf "${cache:?}/$version"
mv "$built" "$cache/$version"
printf '%s\n' "$cache/$version"
