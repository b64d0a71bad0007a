#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Source of a Debian package: tools/debian_source.sh PACKAGE DIRECTORY fetches the
# version that belongs to this machine's distribution and unpacks it, so that
# DIRECTORY holds PACKAGE_VERSION.dsc and PACKAGE-UPSTREAM/. Its words go to stderr;
# the last of them is the reason if it fails.
#
# From wherever this machine gets its packages. apt works in folders of its own: no
# root needed, the system's lists stay as they are.
set -euo pipefail

package=$1
directory=$2

for tool in apt-get dpkg-source; do
  command -v "$tool" >/dev/null || {
    printf '%s is not found (Debian: package dpkg-dev)\n' "$tool" >&2
    exit 1
  }
done
mkdir -p "$directory"
work=$(mktemp -d "$directory/apt.XXXXXX")
work=$(cd "$work" && pwd -P)
trap 'rm -rf "$work"' EXIT

# The machine's entries for packages, read as entries for sources.
mkdir -p "$work"/{sources.d,lists/partial,archives/partial}
for entries in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  [[ ! -r $entries ]] || sed -n 's/^[[:space:]]*deb[[:space:]]/deb-src /p' "$entries"
done >"$work/sources.list"
for entries in /etc/apt/sources.list.d/*.sources; do
  [[ ! -r $entries ]] || sed 's/^Types:.*/Types: deb-src/' "$entries" \
    >"$work/sources.d/${entries##*/}"
done
apt=(apt-get -q -o "Dir::Etc::sourcelist=$work/sources.list"
  -o "Dir::Etc::sourceparts=$work/sources.d" -o "Dir::State::lists=$work/lists"
  -o "Dir::Cache=$work" -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=2
  -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30)

cd "$directory"
# One of several entries may be out of reach; whether the package is, is seen next.
"${apt[@]}" update >/dev/null 2>&1 || true
"${apt[@]}" source --only-source "$package" >&2
