# SPDX-License-Identifier: BSD-3-Clause
"""Other people's test suites: where they come from, how they are built, what they run.

Sources are the distribution's source packages, kept with what is built from them in
.cache/conformance, in one folder per version and way to build. Nothing of them is copied
into the project.
"""
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "conformance"
NAMES = Path(__file__).resolve().parent / "names.h"


class Unavailable(Exception):
    """A suite cannot be had on this machine, and why."""


@dataclass(frozen=True)
class Case:
    """One program, as its suite wants it run."""

    directory: str  # row of the table
    name: str  # unique in its row
    folder: Path  # where it runs
    command: tuple
    ranks: int
    limit: int  # seconds
    environment: tuple = ()
    exit_status: str = "0"
    output: str = ""  # a regular expression that must be found
    memory_gb: float = 0  # that it needs


@dataclass
class Suite:
    version: str
    cases: list = field(default_factory=list)
    absent: list = field(default_factory=list)  # programs that cannot be built here


def say(text):
    print(f"conformance: {text}", file=sys.stderr, flush=True)


def run_logged(command, log, **options):
    """True if it succeeded; its words are in the log."""
    with open(log, "wb") as file:
        return subprocess.run(command, stdout=file, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, check=False, **options).returncode == 0


def last_line(log):
    lines = [line for line in Path(log).read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def reason_of(words):
    """The first of apt's errors says why, the last one only that it gives up."""
    lines = words.strip().splitlines() or ["no reason given"]
    return next((line for line in lines if line.startswith("E:")), lines[-1])


class Locked:
    """One of several runs at a time works on the cache."""

    def __enter__(self):
        CACHE.mkdir(parents=True, exist_ok=True)
        self.file = open(CACHE / ".lock", "w", encoding="utf-8")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


def source_tree(package, wanted, stamp):
    """The folder `wanted` of a source package, unpacked once; stamp: how it is used."""
    present = sorted(CACHE.glob(f"{package}-*-{stamp}"))
    if present:
        return present[-1]
    work = CACHE / f"{package}.new"
    shutil.rmtree(work, ignore_errors=True)
    source = ROOT / ".cache" / package / "source"  # where mpich-plugin/build.sh keeps it
    if not any(source.glob(f"{package}_*.dsc")):
        source = work
        say(f"fetching the source package {package}")
        fetched = subprocess.run([ROOT / "tools/debian_source.sh", package, source],
                                 capture_output=True, text=True, check=False)
        if fetched.returncode != 0:
            shutil.rmtree(work, ignore_errors=True)
            raise Unavailable(f"the source package {package} cannot be fetched: "
                              + reason_of(fetched.stderr))
    version = next(source.glob(f"{package}_*.dsc")).stem.removeprefix(f"{package}_")
    upstream = next(folder for folder in source.glob(f"{package}-*") if folder.is_dir())
    tree = CACHE / f"{package}-{version}-{stamp}"
    shutil.copytree(upstream / wanted, work / "wanted", symlinks=True)
    # A name that is there is complete.
    (work / "wanted").rename(tree)
    shutil.rmtree(work)
    return tree


def version_of(tree, package):
    return tree.name.removeprefix(f"{package}-").rsplit("-", 1)[0]


# ---- MPICH's own tests ----------------------------------------------------------------

# Against another MPI, as far as Open MPI 4.1 has what they test.
MPICH_DIRECTORIES = ("pt2pt comm datatype coll rma threads attr group info init topo "
                     "errors errhan part spawn").split()
MPICH_MAKE = ["make", "-k", f"-j{os.cpu_count()}"]
# The tarball's own generated files are good; without autotools make must not renew them.
MPICH_MAKE += [f"{tool}=:" for tool in ("ACLOCAL", "AUTOCONF", "AUTOHEADER", "AUTOMAKE")]
MPICH_FLAGS = "-O1 -w"
QUICK_RANKS = 4
QUICK_COUNT = 1 << 20  # of elements; more are gigabytes in all
QUICK_ITERATIONS = 10000  # more take ob1 longer than the time limit
# Hang under ob1 of 4.1.4, always or by chance, and each is waited for, and run again.
QUICK_LEFT_OUT = ("idup_deadlock", "idup_nb", "idup_comm_gen")


def mpich_build(mpicc, directories):
    mpi = subprocess.run([mpicc, "--showme:version"], capture_output=True, text=True, check=False)
    recipe = (mpicc, mpi.stdout, MPICH_FLAGS, NAMES.read_text())
    stamp = hashlib.sha1("\n".join(recipe).encode()).hexdigest()[:8]
    tree = source_tree("mpich", "test/mpi", stamp)
    if not (tree / "configured").exists():
        say("configuring MPICH's tests")
        configure = ["./configure", f"CC={mpicc}", f"CFLAGS={MPICH_FLAGS} -include {NAMES}",
                     f"--with-mpi={Path(shutil.which(mpicc)).parents[1]}",
                     "--disable-fortran", "--disable-cxx", "--disable-romio",
                     "--disable-dependency-tracking"]
        if not run_logged(configure, tree / "configure.log", cwd=tree):
            raise Unavailable(f"configuring MPICH's tests failed: {last_line(tree / 'configure.log')}")
        (tree / "configured").touch()
    for directory in directories:
        if (tree / directory / "built").exists():
            continue
        say(f"building MPICH's tests: {directory}")
        # What tests a later MPI than this one does not build: -k, and no word about it here.
        run_logged(MPICH_MAKE + ["-C", directory], tree / f"{directory}.log", cwd=tree)
        (tree / directory / "built").touch()
    return tree


def mpich_case(directory, folder, words, options):
    """A line of a test list: program, number of ranks, then name=value. None: not for us."""
    values = [word.split("=", 1) for word in words[2:] if "=" in word]
    known = dict(values)
    if known.get("mpix") == "true" or any(key == "mpiexecarg" for key, _ in values):
        return None  # MPICH's own extensions, options of its mpiexec
    if options.longest and int(known.get("timeLimit", 0)) > options.longest:
        return None
    arguments = [value for key, value in values if key == "arg"]
    counts = [int(value.removeprefix("-count=")) for value in arguments if "-count=" in value]
    iterations = [int(value.removeprefix("-iter=")) for value in arguments if "-iter=" in value]
    # xfail: cancelled sends, mostly, that hang until their time limit
    if options.quick and ("xfail" in known or words[0] in QUICK_LEFT_OUT
                          or int(words[1]) > QUICK_RANKS
                          or max(counts, default=0) > QUICK_COUNT
                          or max(iterations, default=0) > QUICK_ITERATIONS):
        return None
    environment = [value for key, value in values
                   if key == "env" and not value.startswith("MPIR_")]
    rule = known.get("resultTest", "")
    return Case(
        directory=directory,
        name=" ".join([str((folder / words[0]).relative_to(folder.parents[0])
                           if folder.name != directory else words[0])]
                      + [f"-n {words[1]}"] + environment + arguments),
        folder=folder, command=(f"./{words[0]}", *arguments), ranks=int(words[1]),
        # What is known to fail hangs, mostly.
        limit=20 if "xfail" in known else max(int(known.get("timeLimit", 0)), options.limit),
        environment=tuple(environment),
        exit_status="0" if rule == "" else "nonzero",
        output="" if rule in ("TestStatus", "TestErrFatal") else "^ *No Errors",
        memory_gb=float(known.get("mem", 0)))


def mpich_read(suite, directory, folder, lists, options, make_case=mpich_case):
    for name in lists:
        if not (folder / name).exists():
            continue
        for line in (folder / name).read_text().splitlines():
            words = line.split("#")[0].split()
            if not words:
                continue
            if (folder / words[0]).is_dir():
                mpich_read(suite, directory, folder / words[0], lists, options, make_case)
                continue
            if not os.access(folder / words[0], os.X_OK):
                if words[0] not in suite.absent:
                    suite.absent.append(words[0])
                continue
            case = make_case(directory, folder, words + ["2"] * (len(words) == 1), options)
            # Lines that differ in MPICH's own settings only are one test here.
            if case and all(case.name != other.name or case.directory != other.directory
                            for other in suite.cases):
                suite.cases.append(case)


def mpich(options):
    directories = [row for row in MPICH_DIRECTORIES
                   if not options.directories or row in options.directories]
    with Locked():
        tree = mpich_build(options.mpicc, directories)
    suite = Suite(version_of(tree, "mpich"))
    for directory in directories:
        lists = ["testlist"] if options.quick else ["testlist", "testlist.dtp"]
        mpich_read(suite, directory, tree / directory, lists, options)
    return suite


# ---- mpi4py's tests -------------------------------------------------------------------

MPI4PY_ROWS = {f"mpi4py -n {ranks}": ranks for ranks in (1, 2, 4)}


def mpi4py(options):
    if options.mpi4py_source:
        tree = Path(options.mpi4py_source).resolve() / "test"
        if not (tree / "runtests.py").exists():
            raise Unavailable(f"{tree} has no runtests.py: --mpi4py-source is no source tree of it")
        suite = Suite("of " + str(tree.parent))
    else:
        try:
            with Locked():
                tree = source_tree("mpi4py", "test", "test")
        except Unavailable as reason:
            raise Unavailable(f"{reason} (a source tree of mpi4py that is here already: "
                              "--mpi4py-source FOLDER)") from None
        suite = Suite(version_of(tree, "mpi4py"))
    for row, ranks in MPI4PY_ROWS.items():
        if options.directories and row not in options.directories:
            continue
        for script in sorted(tree.glob("test_*.py")):
            suite.cases.append(Case(
                directory=row, name=script.stem, folder=tree, ranks=ranks,
                limit=max(options.limit, 120),
                command=("/usr/bin/python3", "-m", "mpi4py", "runtests.py", "-v", "--no-builddir",
                         "-i", f"^{script.stem}$"),
                output="^(OK|.*Ran 0 tests)"))
    return suite


SUITES = {"mpich": mpich, "mpi4py": mpi4py}
ROWS = {"mpich": MPICH_DIRECTORIES, "mpi4py": list(MPI4PY_ROWS)}
