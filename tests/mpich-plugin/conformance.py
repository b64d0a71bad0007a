#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs MPICH's own test suite under MPICH as it is and under MPICH with tagline, and
compares test by test. Exit status 1: a test that passes unmodified fails with tagline.

The test programs are built once; both libraries have the same ABI and are swapped by
LD_LIBRARY_PATH. Paths:
  shm      as users run it: shared memory, where CH4 matches
  netmod   between nodes that are none: shared memory off, and the netmod's own tag
           matching off, so that CH4 matches what the network brings
  nodes    odd ranks on one node that is none and even ones on another, and the netmod's
           matching off: both at once, and a receive from any source waits for both

Where tagline fails and unmodified passes both run twice more, alone on the machine. With
--quick and --observed only tagline runs, without the tests that the suite expects to fail,
and what fails must pass when it runs once more.
"""
import argparse
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/conformance"))
import suites  # noqa: E402  (found by the line above)
from machine import Jobs, Machine  # noqa: E402
from suites import Case, Suite, Unavailable, say  # noqa: E402

LIBRARIES = ("unmodified", "tagline")
PATHS = {"shm": {},
         "netmod": {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_OFI_ENABLE_TAGGED": "0"},
         "nodes": {"MPIR_CVAR_NUM_CLIQUES": "2", "MPIR_CVAR_CH4_OFI_ENABLE_TAGGED": "0"}}
DIRECTORIES = "pt2pt part comm coll rma threads datatype attr group info init mpi_t topo errhan spawn errors"
QUICK_DIRECTORIES = "pt2pt part mpi_t"
QUICK_PATHS = ("shm", "netmod")
QUICK_SECONDS = 20
OBSERVED_DIRECTORIES = "threads pt2pt part mpi_t"
# Asks for an event's data with NULL where MPICH 4.0.2, once it has events, wants an address.
OBSERVED_LEFT_OUT = ("getindex",)
# MPICH 4.0.2 meets processes that it has started by the netmod's own matching alone, and ends
# on an assertion without it: unmodified as well, but nobody asks it where only tagline runs.
SPAWN_DIRECTORY = "spawn"
XFAIL_LIMIT = 15
SKIPPED = 77


def make_case(directory, folder, words, options):
    """A line of a test list: program, ranks, name=value... None: not for this run."""
    values = [word.split("=", 1) for word in words[2:] if "=" in word]
    known = dict(values)
    ranks = int(words[1])
    settings = [value for key, value in values if key == "env"]
    if ranks > options.ranks or any(key == "mpiexecarg" for key, _ in values):
        return None
    if options.observed and words[0] in OBSERVED_LEFT_OUT:
        return None
    if options.longest and int(known.get("timeLimit", 0)) > options.longest:
        return None
    if options.alone and "xfail" in known:
        return None
    if options.quick and ("timeLimit" in known or "mem" in known or settings):
        return None
    arguments = [value for key, value in values if key == "arg"]
    rule = known.get("resultTest", "")
    return Case(
        directory=directory, folder=folder, command=(f"./{words[0]}", *arguments), ranks=ranks,
        name=" ".join([str((folder / words[0]).relative_to(folder.parents[0])
                           if folder.name != directory else words[0]),
                       f"-n {words[1]}", *settings, *arguments]),
        limit=XFAIL_LIMIT if "xfail" in known else max(int(known.get("timeLimit", 0)), options.limit),
        environment=tuple(settings), exit_status="0" if rule == "" else "nonzero",
        output="" if rule in ("TestStatus", "TestErrFatal") else "No Errors",
        memory_gb=float(known.get("mem", 0)))


def run(case, library, path, options, limit=None):
    """pass, fail or timeout, and the output, of one run."""
    command = [options.mpiexec, "-genv", "LD_PRELOAD", str(options.give_way),
               "-n", str(case.ranks), *case.command]
    environment = dict(os.environ, LD_LIBRARY_PATH=str(options.mpich / library / "lib"))
    environment.update(PATHS[path])
    environment.update(setting.split("=", 1) for setting in case.environment)
    with jobs.start(command, cwd=case.folder, env=environment) as job:
        try:
            output = job.communicate(timeout=limit or case.limit)[0]
            outcome = None
        except subprocess.TimeoutExpired:
            outcome = "timeout"
            os.killpg(job.pid, signal.SIGTERM)  # mpiexec ends its ranks
            try:
                output = job.communicate(timeout=5)[0]
            except subprocess.TimeoutExpired:
                jobs.signal(job, signal.SIGKILL)
                output = job.communicate()[0]
        finally:
            jobs.signal(job, signal.SIGKILL)  # what the launcher has left behind
            jobs.done(job)
    text = output.decode(errors="replace")
    if outcome is None:
        ended_well = (job.returncode == 0) == (case.exit_status == "0")
        outcome = "pass" if ended_well and case.output in text else "fail"
    return outcome, text


jobs = Jobs()


def end_jobs(*_):
    """Ends what is under way, all processes of it, and this one."""
    running = jobs.close()
    for job in running:
        os.killpg(job.pid, signal.SIGTERM)
    for job in running:
        try:
            job.wait(5)
        except subprocess.TimeoutExpired:
            pass
        jobs.signal(job, signal.SIGKILL)
    os._exit(130)


def compare(case, path, options, machine):
    alone = case.memory_gb >= 1
    runs = {"unmodified": [], "tagline": []}
    if not options.alone:
        unmodified = machine(alone, lambda: run(case, "unmodified", path, options))
        # What hangs unmodified is not waited for as long again.
        limit = XFAIL_LIMIT if unmodified[0] == "timeout" else case.limit
        tagline = machine(alone, lambda: run(case, "tagline", path, options, limit))
        runs = {"unmodified": [unmodified], "tagline": [tagline]}
        if unmodified[0] == "pass" and tagline[0] != "pass":
            for _ in range(2):
                for library in LIBRARIES:
                    runs[library].append(
                        machine(True, lambda library=library: run(case, library, path, options)))
    else:
        runs["tagline"].append(machine(alone, lambda: run(case, options.alone, path, options)))
        if runs["tagline"][0][0] != "pass":
            runs["tagline"].append(machine(True, lambda: run(case, options.alone, path, options)))
    outcomes = {library: [outcome for outcome, _ in results] for library, results in runs.items()}
    return {"directory": case.directory, "test": case.name, "path": path, **outcomes,
            "verdict": verdict(outcomes, options.alone), "output": runs["tagline"][-1][1][-4000:]}


def compare_all(cases, path, options, results):
    """Adds to the results, and keeps them in their file as they come: it may be cut short."""
    machine = Machine()
    end = time.monotonic() + (QUICK_SECONDS if options.quick else float("inf"))

    def compare_in_time(case):
        return compare(case, path, options, machine) if time.monotonic() < end else None

    left_out = 0
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(compare_in_time, case) for case in cases]
        for done in concurrent.futures.as_completed(waiting):
            result = done.result()
            if result is None:
                left_out += 1
                continue
            results.append(result)
            options.results.write_text(json.dumps(results, indent=1))
            if result["verdict"] != "same":
                say(f"{path} {result['directory']}/{result['test']}: {result['verdict']}, "
                    f"unmodified {result['unmodified']}, tagline {result['tagline']}")
    if left_out:
        say(f"{path}: the machine is slow or busy, {left_out} tests left out")


def verdict(outcomes, alone):
    first = {library: outcomes[library][0] for library in LIBRARIES if outcomes[library]}
    if alone:
        if first["tagline"] == "pass":
            return "same"
        return "flaky" if outcomes["tagline"][-1] == "pass" else "different"
    if first["unmodified"] != "pass":
        return "fixed" if first["tagline"] == "pass" else "same"
    if first["tagline"] == "pass":
        return "same"
    if any(outcome != "pass" for outcome in outcomes["unmodified"]):
        return "flaky"
    # A time limit that two more runs kept to: the machine was busy.
    slow = first["tagline"] == "timeout" and set(outcomes["tagline"][1:]) == {"pass"}
    return "flaky" if slow else "different"


def table(results, alone):
    lines = ["| directory | path | tests | unmodified pass, fail, time limit "
             "| tagline pass, fail, time limit | flaky | tagline alone passes | differences |",
             "|---|---|---|---|---|---|---|---|"]
    rows = {}
    for result in results:
        rows.setdefault((result["directory"], result["path"]), []).append(result)
    for (directory, path), row in rows.items():
        counts = {library: Counter(result[library][-1] for result in row if result[library])
                  for library in LIBRARIES}
        verdicts = Counter(result["verdict"] for result in row)
        cells = [directory, path, len(row)]
        cells += ["-" if alone and library == "unmodified" else
                  ", ".join(str(counts[library][name]) for name in ("pass", "fail", "timeout"))
                  for library in LIBRARIES]
        cells += [verdicts[name] for name in ("flaky", "fixed", "different")]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def parse():
    parser = argparse.ArgumentParser(prog="tests/mpich-plugin/run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="*", metavar="DIRECTORY",
                        help=f"of the suite (default: {DIRECTORIES})")
    parser.add_argument("--quick", action="store_true",
                        help=f"tagline alone: {QUICK_DIRECTORIES}, no settings, at most 2 ranks")
    parser.add_argument("--observed", action="store_true",
                        help="tagline alone, built with several VCIs and everything that tools "
                        f"can see: {OBSERVED_DIRECTORIES}")
    parser.add_argument("--path", choices=PATHS, action="append",
                        help="all if none is named; with --quick " + ", ".join(QUICK_PATHS))
    parser.add_argument("--ranks", type=int, help="most ranks of a test (4; with --quick 2)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() + 1,
                        help="tests at a time (one more than processors)")
    parser.add_argument("--limit", type=int, default=60, metavar="SECONDS",
                        help="least time limit of a test (%(default)s)")
    parser.add_argument("--longest", type=int, metavar="SECONDS",
                        help="leave out the tests to which the suite gives more time")
    parser.add_argument("--mpich", type=Path, default=ROOT / ".cache/mpich",
                        help="folder of both installations (%(default)s)")
    parser.add_argument("--results", type=Path, default=ROOT / "out/mpich-conformance.json")
    options = parser.parse_args()
    options.ranks = options.ranks or (2 if options.quick else 4)
    options.mpich = options.mpich.resolve()
    options.alone = "observed" if options.observed else "tagline" if options.quick else None
    options.path = options.path or (QUICK_PATHS if options.quick else tuple(PATHS))
    options.directories = options.directories or (
        QUICK_DIRECTORIES if options.quick else
        OBSERVED_DIRECTORIES if options.observed else DIRECTORIES).split()
    options.mpiexec, options.mpicc = (
        str(options.mpich / "tagline/bin" / name) for name in ("mpiexec", "mpicc"))
    return options


def build_give_way():
    """Why it is loaded is said in its source."""
    source = Path(__file__).resolve().parent / "give_way.c"
    library = ROOT / ".cache/mpich/give_way.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        library.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", source,
                        "-o", library], check=True)
    return library


def read_suite(options):
    with suites.Locked():
        tree = suites.mpich_build(options.mpicc, options.directories)
    suite = Suite(suites.version_of(tree, "mpich"))
    for directory in options.directories:
        suites.mpich_read(suite, directory, tree / directory, ["testlist"], options, make_case)
    return suite


def can_run(case, path, options):
    return not (options.alone and case.folder.name == SPAWN_DIRECTORY
                and PATHS[path].get("MPIR_CVAR_CH4_OFI_ENABLE_TAGGED") == "0")


def main():
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, end_jobs)
    options = parse()
    try:
        options.give_way = build_give_way()
        suite = read_suite(options)
    except Unavailable as reason:
        say(f"SKIPPED: {reason}")
        return SKIPPED
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    cases = [case for case in suite.cases if case.memory_gb < memory / 2]
    say(f"MPICH {suite.version}: {len(cases)} tests"
        + (f"; not built: {' '.join(suite.absent)}" if suite.absent else ""))
    results = []
    for path in options.path:
        start = time.monotonic()
        compare_all([case for case in cases if can_run(case, path, options)], path, options,
                    results)
        say(f"{path}: {time.monotonic() - start:.0f} s")
    print(table(results, options.alone))
    different = [result for result in results if result["verdict"] == "different"]
    for result in different:
        print(f"\n{result['path']} {result['directory']}/{result['test']}:\n{result['output']}")
    print(f"{len(results)} tests, {len(different)} differences")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
