#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The MPICHs that tests and benchmarks use, built once and brought up to date after a
# change of ours: tools/mpich.sh KIND..., where KIND is tagline, unmodified, or both,
# installs them in .cache/mpich/KIND. Same source, same flags.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd -P)
cache=$root/.cache/mpich

for kind in "$@"; do
  options=(--fetch --prefix "$cache/$kind")
  [[ $kind == tagline ]] || options+=(--without-tagline)
  "$root/mpich-plugin/build.sh" "${options[@]}" -- --disable-romio
done
