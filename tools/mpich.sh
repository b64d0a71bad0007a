#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The MPICHs that tests and benchmarks use, built once and brought up to date after a
# change of ours: tools/mpich.sh KIND... installs them in .cache/mpich/KIND. `tagline` and
# `unmodified`: same source, same flags; `observed`: tagline with several VCIs, with
# variables and events of the receive queues, and for debuggers.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd -P)
cache=$root/.cache/mpich
starter=$(command -v mpiexec.hydra) || starter=

for kind in "$@"; do
  # Without its tests, which are built elsewhere (tests/conformance/suites.py).
  ours=() theirs=(--disable-romio --no-recursion)
  case $kind in
    tagline) ;;
    unmodified) ours=(--without-tagline) ;;
    observed)
      ours=(--build "$cache/build-observed")
      theirs+=(--enable-thread-cs=per-vci --with-ch4-max-vcis=4 --enable-mpit-pvars=recvq
        --enable-mpit-events --enable-debuginfo)
      ;;
    *)
      echo "tools/mpich.sh: there is no $kind: tagline, unmodified, observed" >&2
      exit 1
      ;;
  esac
  # The distribution's own starts the programs of any MPICH; half a minute less to build.
  [[ -z $starter ]] || theirs+=(--with-pm=no)
  "$root/mpich-plugin/build.sh" --fetch --prefix "$cache/$kind" "${ours[@]}" -- "${theirs[@]}"
  if [[ -n $starter ]]; then
    ln -sf "$starter" "$cache/$kind/bin/mpiexec"
    ln -sf "${starter%/*}/hydra_pmi_proxy" "$cache/$kind/bin/"
  fi
  # By the name that Debian's programs ask for: they run with this one as well.
  ln -sf libmpi.so.12 "$cache/$kind/lib/libmpich.so.12"
done
