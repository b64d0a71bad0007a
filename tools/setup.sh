# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# What ./run and ./check share: packages, compiler, build. Sourced, not run.
# Nothing here writes to stdout: that belongs to the program the user runs.

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd -P)

# shellcheck disable=SC2034  # used by the scripts that source this file
build_packages=(
  g++                # C++20 compiler, 12 or newer
  cmake ninja-build  # build
  libxsimd-dev       # vector code of the matcher
  dpkg-dev           # fetches and unpacks jemalloc's source, which tools/jemalloc.sh builds
  openmpi-bin        # mpirun and the Open MPI that tagline is loaded into
  libopenmpi-dev     # its headers, the internal ones included
  libhwloc-dev libevent-dev  # which those headers include
  libgtest-dev libbenchmark-dev  # configured with the rest, so that ./run and ./check share a build
  libcli11-dev nlohmann-json3-dev  # benchmark driver, the command tagline
  libjs-chart.js     # charts of tagline report
)
# shellcheck disable=SC2034
bench_packages=(
  gnuplot-nox  # plots
  mpich libmpich-dev  # the other MPI of the suite; Open MPI stays the default
)
# shellcheck disable=SC2034
check_packages=(
  lammps netpipe-openmpi python3-mpi4py  # unmodified MPI programs for the tests
)

# shellcheck disable=SC2034
optional_packages=(  # whose tests are skipped without them
  clang libclang-rt-14-dev              # fuzzing
  g++-aarch64-linux-gnu qemu-user       # NEON
  mpich libmpich-dev                    # tagline record for MPICH
  make patch libfabric-dev              # MPICH with tagline
  spin gcc                              # models of the matchers for several threads
  chromium                              # tagline report
)

minimum_gcc=12
minimum_clang=14
minimum_cmake=3.22

say() { printf 'tagline: %s\n' "$*" >&2; }

# die WHAT [LINE...]: what is wrong, then why and what to do about it.
die() {
  say "$1"
  shift
  local line
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit 1
}

# Run a step. quiet=1 keeps its words in a log and shows the end of it on failure.
quiet=0
step() {
  local what=$1
  shift
  if [[ $quiet == 0 ]]; then
    "$@" >&2
    return
  fi
  local log=$root/build/setup.log
  mkdir -p "$root/build" || return
  if ! "$@" >"$log" 2>&1; then
    say "$what failed; the end of $log:"
    tail -n 25 "$log" >&2
    return 1
  fi
}

# ---- packages ----------------------------------------------------------------

missing_packages() {
  local package status
  for package in "$@"; do
    # shellcheck disable=SC2016  # a dpkg format, not a shell variable
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=
    [[ $status == installed ]] || printf '%s\n' "$package"
  done
}

apt_install() {
  local -a as_root=()
  ((EUID == 0)) || as_root=(sudo)
  local -a apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get
    -o Acquire::Retries=2 -o Acquire::http::Timeout=30 -o DPkg::Lock::Timeout=300)
  # The index of a fresh machine is empty or old. If it cannot be renewed an old
  # one may still do; the installation decides.
  "${apt[@]}" -q update || true
  "${apt[@]}" -q install -y --no-install-recommends "$@"
}

# The part of the packages that can be seen without a package manager.
missing_commands() {
  command -v "${CXX:-c++}" >/dev/null || echo "a C++20 compiler (g++ $minimum_gcc or newer)"
  command -v cmake >/dev/null || echo "cmake $minimum_cmake or newer"
  command -v ninja >/dev/null || echo "ninja"
  command -v "$(open_mpi_command mpicc)" >/dev/null ||
    echo "Open MPI 4.1 with its development headers (mpicc)"
  command -v "$(open_mpi_command mpirun)" >/dev/null || echo "Open MPI's mpirun"
}

install_packages() {
  local -a missing
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    mapfile -t missing < <(missing_commands)
    ((${#missing[@]} > 0)) || return 0
    local system=unknown
    # shellcheck disable=SC1091
    [[ ! -r /etc/os-release ]] || system=$(. /etc/os-release && echo "${PRETTY_NAME:-unknown}")
    die "packages can be installed for you on Debian 12 only, and this is: $system" \
      "Not found here: $(printf '%s; ' "${missing[@]}")" \
      "Install by hand what corresponds to these Debian packages, then start again:" \
      "$*"
  fi

  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} > 0)) || return 0
  local -a by_hand=("Install them by hand and start again:"
    "apt-get update && apt-get install --no-install-recommends ${missing[*]}")
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    die "${#missing[@]} packages are missing, and installing them needs root or sudo" \
      "${by_hand[@]}"
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  if ! step "installing packages" apt_install "${missing[@]}"; then
    die "the packages could not be installed (apt's reason stands above)" \
      "No network, a wrong entry in /etc/apt, no right to sudo, or a distribution that is not" \
      "Debian 12 are the usual causes." "${by_hand[@]}"
  fi
}

# What only some tests need: they say so themselves if it is not there.
install_optional_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} > 0)) || return 0
  say "installing ${#missing[@]} packages: ${missing[*]}"
  if ((EUID != 0)) && ! command -v sudo >/dev/null ||
    ! step "installing packages" apt_install "${missing[@]}"; then
    say "not installed: ${missing[*]}; the tests that need them are skipped"
  fi
}

# ---- Open MPI ----------------------------------------------------------------

# Debian's alternatives may point mpirun and mpicc at another MPI: take the names
# that can only be Open MPI's where they exist.
open_mpi_command() {
  if command -v "$1.openmpi" >/dev/null; then echo "$1.openmpi"; else echo "$1"; fi
}

# open_mpi_version COMMAND OPTION: the version, or nothing if COMMAND is not Open MPI's.
open_mpi_version() {
  local text
  text=$("$@" 2>/dev/null </dev/null) || return 0
  if [[ $text =~ \(Open\ ?(MPI|RTE)\)\ ([0-9][^[:space:]]*) ]] ||
    [[ $text =~ Open\ MPI\ ([0-9][^[:space:]]*) ]]; then
    echo "${BASH_REMATCH[-1]}"
  fi
}

allow_root() {
  if ((EUID == 0)); then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  fi
}

# ---- build -------------------------------------------------------------------

check_tools() {
  local compiler=${CXX:-c++} version major
  command -v "$compiler" >/dev/null || die "the C++ compiler $compiler is not found" \
    "Install g++ (package g++) or set CXX to another one."
  if "$compiler" --version 2>/dev/null | grep -qi clang; then
    major=$("$compiler" -dumpversion) && major=${major%%.*}
    ((major >= minimum_clang)) || die "$compiler is Clang $major, which is too old for C++20" \
      "Install clang-$minimum_clang or newer, or g++-$minimum_gcc, and set CXX and CC to it."
  else
    major=$("$compiler" -dumpversion) && major=${major%%.*}
    ((major >= minimum_gcc)) || die "$compiler is GCC $major, which is too old for C++20" \
      "Install g++-$minimum_gcc or newer (the default of Debian 12) and start again with" \
      "CXX=g++-$minimum_gcc CC=gcc-$minimum_gcc in the environment."
  fi
  version=$(cmake --version | sed -n '1s/.* //p')
  printf '%s\n' "$minimum_cmake" "$version" | sort -C -V ||
    die "CMake $version is too old: $minimum_cmake or newer is needed (package cmake)"
}

# The value of TAGLINE_JEMALLOC for a preset. Whether there is a jemalloc of our own
# is decided when a build is configured, not at each start: where there is none, to
# try again takes its time.
jemalloc_for() {
  local was prefix
  was=$(sed -n 's/^TAGLINE_JEMALLOC:[A-Z]*=//p' "$root/build/$1/CMakeCache.txt" 2>/dev/null) || was=
  if [[ $was == OFF || ( -n $was && -f $was/lib/tagline_jemalloc.o ) ]]; then
    printf '%s' "$was"
  elif [[ $1 == release ]] && prefix=$("$root/tools/jemalloc.sh" "${CC:-cc}"); then
    printf '%s' "$prefix"
  else
    printf OFF  # a sanitizer sees what goes through the system's
  fi
}

# build PRESET TARGET...: configures on first use; afterwards ninja sees for itself
# what has changed.
build() {
  local preset=$1 directory=$root/build/$1
  shift
  mkdir -p "$directory" || die "$root/build cannot be written" "Is the source tree yours?"
  # Two of us at a time (tests start ./run) take turns.
  local lock
  exec {lock}>"$root/build/.lock"
  flock "$lock"
  local cache=$directory/CMakeCache.txt
  if [[ -f $cache ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"; then
    rm -rf "$directory"  # a copied tree: the cache speaks of another place
  fi
  local jemalloc
  jemalloc=$(jemalloc_for "$preset")
  if [[ ! -f $directory/build.ninja ]] ||
    ! grep -q "^TAGLINE_JEMALLOC:[A-Z]*=$jemalloc\$" "$cache"; then
    check_tools
    say "configuring $directory"
    (cd "$root" && step configuring cmake --preset "$preset" -DTAGLINE_JEMALLOC="$jemalloc" \
      -DMPI_C_COMPILER="$(command -v "$(open_mpi_command mpicc)")") ||
      die "configuring failed (CMake's reason stands above)"
  fi
  local target
  local -a targets=()
  for target in "$@"; do targets+=(--target "$target"); done
  step building cmake --build "$directory" "${targets[@]}" ||
    die "building failed (the reason stands above)"
  exec {lock}>&-
}
