#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd -P)
# shellcheck source=tools/setup.sh
. "$here/../tools/setup.sh"

usage() {
  cat <<'TEXT'
Usage: mpich-plugin/build.sh (--source DIR | --fetch) --prefix DIR [option...] [-- configure options]

Builds MPICH with tagline in place of the receive queues of its CH4 device, and installs it.

  --source DIR       an MPICH source tree; it is only read
  --fetch            the distribution's source package instead, kept in .cache/mpich
  --prefix DIR       where to install
  --device DEVICE    ch4:ofi (default) or ch4:ucx, over the system's libfabric or UCX
  --without-tagline  the same tree as it is, to compare with
  --build DIR        folder of the object files (default: one in .cache/mpich per kind of build)
  -- OPTION...       for MPICH's configure; they come last and so win over ours, which are
                     C only (--disable-fortran --disable-cxx), shared libraries, -O2

Run it again after a change: only what has changed is built. CC is honoured.
TEXT
}

# ---- The MPICH releases that the plugin fits ----------------------------------

# What takes the place of a file of MPICH's knows what that file was like: version and
# the checksums of mpidig_recvq.h and mpidig_recvq.c.
known_releases=(
  "4.0.2 cbefe8efd734b5d618e7f787cd7db941774c699a12ab5376a5f8fdbe0d2a8876 dec70a11677e40082c3fe016209fb9865c0d2a868a7255e6da25df8b2a37ed5c"
)
queues=src/mpid/ch4/src
patched_files=(
  "src/mpid/common/genq/mpidu_genq_private_pool.c request_pool.patch"
  "src/mpid/ch4/netmod/ofi/ofi_events.c pipeline_header.patch"
)

check_source() {
  local version known release expected actual
  version=$(sed -n 's/.*MPICH_VERSION_m4\],\[\([^]]*\)\].*/\1/p' "$source/maint/version.m4" \
    2>/dev/null) || true
  [[ -n $version ]] ||
    die "$source is not an MPICH source tree: it has no maint/version.m4" \
      "Name the folder that a release unpacks to (mpich-4.0.2), or use --fetch."
  [[ -x $source/configure ]] ||
    die "$source has no configure script" \
      "A checkout of MPICH's repository gets one from its ./autogen.sh; a release has it."
  [[ ! -e $source/config.status ]] ||
    die "$source has been configured in place, so it cannot be built elsewhere" \
      "Run 'make distclean' in it, or unpack it once more."
  known=$(printf '%s, ' "${known_releases[@]%% *}")
  for release in "${known_releases[@]}"; do
    [[ ${release%% *} == "$version" ]] || continue
    expected=${release#* }
    actual=$(sha256sum "$source/$queues"/mpidig_recvq.{h,c} | cut -d' ' -f1 | paste -sd' ')
    [[ $actual == "$expected" ]] ||
      die "$source is MPICH $version, but its receive queues have been changed" \
        "$queues/mpidig_recvq.h or .c is not the release's. tagline would replace somebody's" \
        "work without knowing what it was: take the release's own tree, or use --fetch."
    return
  done
  die "$source is MPICH $version, for which there is no plugin" \
    "Known: ${known%, }." \
    "The distribution's package is one of them: mpich-plugin/build.sh --fetch"
}

# ---- Steps --------------------------------------------------------------------

parse() {
  while (($# > 0)); do
    case $1 in
      --source | --prefix | --device | --build)
        (($# > 1)) || die "$1 wants a value" "mpich-plugin/build.sh --help tells what it takes."
        case $1 in
          --source) source=$2 ;;
          --prefix) prefix=$2 ;;
          --device) device=$2 ;;
          --build) objects=$2 ;;
        esac
        shift
        ;;
      --fetch) fetch=1 ;;
      --without-tagline) with_tagline=0 ;;
      -h | --help)
        usage
        exit
        ;;
      --)
        shift
        configure_options=("$@")
        return
        ;;
      *) die "unknown option: $1" "mpich-plugin/build.sh --help lists them; MPICH's own follow --" ;;
    esac
    shift
  done
}

# The distribution's source, unpacked once.
fetch_source() {
  local cache=$root/.cache/mpich/source
  mkdir -p "$root/.cache/mpich"
  exec {fetch_lock}>"$root/.cache/mpich/.lock"
  flock "$fetch_lock"
  if ! compgen -G "$cache/mpich_*.dsc" >/dev/null; then
    say "fetching MPICH's source package"
    rm -rf "$cache" "$cache.new"
    step "fetching it" "$root/tools/debian_source.sh" mpich "$cache.new" ||
      die "MPICH's source package could not be fetched (the reason stands above)" \
        "Without a network, unpack a release by hand and name it: --source mpich-4.0.2"
    mv "$cache.new" "$cache"
  fi
  exec {fetch_lock}>&-
  source=$(compgen -G "$cache/mpich-*/" | head -n 1)
  source=${source%/}
}

# A tree of links to the source in which some files are ours: folders on the way to such a
# file are real, everything else is a link.
overlay() {
  local each
  mkdir -p "$tree"
  make_real "$queues"
  ln -sfn -t "$tree/$queues" "$here"/mpidig_recvq.{h,c} "$root/match"
  for each in "${patched_files[@]}"; do overlay_patched "${each% *}" "${each#* }"; done
}

# overlay_patched FILE PATCH: written only if it has changed, or make would compile it again.
overlay_patched() {
  local file=$tree/$1 patched
  make_real "$(dirname "$1")"
  patched=$(patch --silent --output=- "$source/$1" "$here/$2") ||
    die "$source/$1 is not the release's: $2 does not fit" \
      "Take the release's own tree, or use --fetch."
  if [[ -L $file || $(<"$file") != "$patched" ]]; then
    rm "$file"
    printf '%s\n' "$patched" >"$file"
  fi
}

# make_real FOLDER: a folder of the tree, and those above it, hold links instead of being one.
make_real() {
  [[ $1 == . ]] || make_real "$(dirname "$1")"
  # From the top down: what lies under a link would be the source's own.
  if [[ -L $tree/$1 ]]; then rm "$tree/$1"; fi
  if [[ -e $tree/$1 && $1 != . ]]; then return; fi
  mkdir -p "$tree/$1"
  find "$source/$1" -mindepth 1 -maxdepth 1 -print0 | while IFS= read -r -d '' entry; do
    [[ -e $tree/$1/${entry##*/} ]] || ln -s "$entry" "$tree/$1/"
  done
}

configure() {
  local -a options=(
    --prefix="$prefix" --with-device="$device" --with-hwloc=/usr
    --disable-fortran --disable-cxx --disable-static --enable-fast=O2
    --with-datatype-engine=dataloop "$device_library" "${configure_options[@]}")
  local tree=$source
  if ((with_tagline)); then
    tree=$objects/source
    overlay
  fi
  local recipe
  recipe=$(printf '%s\n' "$tree" "$source" "CC=${CC:-cc}" "${options[@]}")
  if [[ -f $objects/recipe && $(<"$objects/recipe") == "$recipe" ]]; then return; fi
  rm -rf "$objects/objects" "$objects/recipe"
  mkdir -p "$objects/objects"
  say "configuring MPICH (a minute)"
  # Debian's libfabric.pc and ucx.pc name libraries of every transport they can use, which
  # need not be installed. bash, configure's first choice, is slower at what it and libtool do.
  (cd "$objects/objects" && PKG_CONFIG_LIBDIR='' CONFIG_SHELL=/bin/sh step "configuring MPICH" \
    "$tree/configure" --silent "${options[@]}") ||
    die "configuring MPICH failed; the end of $objects/objects/config.log tells more"
  printf '%s\n' "$recipe" >"$objects/recipe"
}

# Nearly every file of MPICH's starts with mpiimpl.h and spends most of its time there. The
# compiler takes a precompiled one that it finds on the way to it, if all options are the same;
# for files that include it twice the header itself is beside it.
compile_header() {
  local folder=src/include
  ln -sf "$(sed -n 's/^top_srcdir = //p' "$makefile")/$folder/mpiimpl.h" "$objects/objects/$folder/"
  # shellcheck disable=SC2016  # make's variables
  printf '%s\n' 'include Makefile' '-include $(header).d' \
    '$(header): ; $(CC) $(DEFS) $(DEFAULT_INCLUDES) $(INCLUDES) $(lib_libmpi_la_CPPFLAGS) \' \
    '  $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -fPIC -DPIC -w -MD -MF $@.d -MT $@ \' \
    '  -x c-header $(top_srcdir)/src/include/mpiimpl.h -o $@' |
    step "precompiling a header" make -C "$objects/objects" -f - header=$folder/mpiimpl.h.gch \
      $folder/mpiimpl.h.gch || say "MPICH is built without a precompiled header"
  # The compiler does not tell make what lies in it.
  if [[ -f $objects/objects/$folder/mpiimpl.h.gch ]]; then
    find "$objects/objects" -name 'lib_libmpi_la-*.lo' \
      ! -newer "$objects/objects/$folder/mpiimpl.h.gch" -delete
  fi
}

build_mpich() {
  local makefile=$objects/objects/Makefile library=$objects/objects/lib/libmpi.la
  local -a variables=(V=0)
  if ((with_tagline)); then
    build release tagline
    local archive=$root/build/release/libtagline.a libraries
    libraries=$(sed -n 's/^lib_libmpi_la_LIBADD *= *//p' "$makefile")
    [[ -n $libraries && $libraries != *\\ ]] ||
      die "$makefile does not say what libmpi is linked with, as the releases known do"
    # Nothing of tagline is seen outside; jemalloc's thread hooks want the library to stay.
    variables+=("lib_libmpi_la_LIBADD=$libraries $archive -lstdc++ -Wl,--exclude-libs,libtagline.a -Wl,-z,nodelete")
    # make does not know of the archive.
    if [[ -f $library && $archive -nt $library ]]; then rm "$library"; fi
  fi
  [[ -f $library ]] || say "building MPICH (some minutes the first time)"
  compile_header
  step "building MPICH" make -C "$objects/objects" -j"$(nproc)" "${variables[@]}" ||
    die "building MPICH failed (the reason stands above)"
  step "installing MPICH" make -C "$objects/objects" -j"$(nproc)" "${variables[@]}" install ||
    die "installing MPICH in $prefix failed (the reason stands above)"
}

source='' prefix='' device=ch4:ofi objects='' fetch=0 with_tagline=1
configure_options=()
parse "$@"
case $device in
  ch4:ofi) device_package=libfabric-dev device_library=--with-libfabric=/usr ;;
  ch4:ucx) device_package=libucx-dev device_library=--with-ucx=/usr ;;
  *) die "unknown device: $device" "tagline replaces the queues of CH4: ch4:ofi or ch4:ucx." ;;
esac
[[ -n $prefix ]] || die "--prefix is missing" "It says where the MPICH that is built goes."
((fetch)) || [[ -n $source ]] ||
  die "there is no MPICH to build" "Give a source tree, --source DIR, or let it be fetched: --fetch."
((fetch == 0)) || [[ -z $source ]] || die "--source and --fetch cannot both be meant"

quiet=1
install_packages "${build_packages[@]}" make patch "$device_package"
if ((fetch)); then fetch_source; fi
[[ -d $source ]] || die "there is no folder $source" "--source names an MPICH source tree."
source=$(cd "$source" && pwd -P)
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd -P)
check_source
if [[ -z $objects ]]; then
  kind=tagline
  ((with_tagline)) || kind=unmodified
  objects=$root/.cache/mpich/build-$kind-${device#ch4:}
fi
mkdir -p "$objects"
objects=$(cd "$objects" && pwd -P)
exec {lock}>"$objects/.lock"
flock "$lock"
configure
build_mpich
if ((with_tagline)); then say "MPICH with tagline is in $prefix"; else say "MPICH is in $prefix"; fi
