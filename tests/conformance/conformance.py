#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs other people's MPI test suites under Open MPI's own ob1 and under tagline, and
compares test by test. Exit status 1: a test that passes under ob1 fails under tagline.

Each test runs once under each. Where tagline fails and ob1 passes, both run twice more,
alone on the machine and with twice the time: what fails under ob1 as well is flaky, and
said to be; what does not is a difference, but for a time limit that two more runs kept to
(the machine was busy).
"""
import argparse
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from machine import Jobs, Machine
from suites import ROOT, ROWS, SUITES, Unavailable, say

PMLS = ("ob1", "tagline")
TRANSPORTS = ("vader", "tcp", "tcp-links")
RUN_PROGRAM = ROOT / "tests/ompi-plugin/run_program.sh"
RERUNS = 2
SKIPPED = 77
HANGING_LIMIT = 15
QUICK_HANGING_LIMIT = 3
QUICK_LONGEST = 60

# Verdicts about one test over all its runs.
SAME, FLAKY, SLOW, FIXED, DIFFERENT = "same", "flaky", "slow", "fixed", "different"


jobs = Jobs()


def end_jobs(*_):
    """Ends what is under way, all processes of it, and this one."""
    for job in jobs.close():
        jobs.signal(job, signal.SIGTERM)
    os._exit(130)


def run(case, pml, options, limit=None):
    """(outcome, output) of one run; outcome: pass, fail or timeout."""
    command = [str(RUN_PROGRAM), "--mpirun", options.mpirun, "--pml", pml,
               "--transport", options.transport, "--ranks", str(case.ranks),
               "--timeout", str(limit or case.limit), "--preload", str(options.expect_pml),
               "--expect-exit", case.exit_status]
    if case.output:
        command += ["--expect-output", case.output]
    if pml == "tagline":
        command += ["--component", str(options.component)]
    for name, value in options.mca:
        command += ["--mca", name, value]
    # Of Open MPI's ways to one-sided communication only this one makes windows over tcp alone.
    if options.transport != "vader" and "osc" not in dict(options.mca):
        command += ["--mca", "osc", "pt2pt"]
    environment = dict(os.environ, TAGLINE_EXPECT_PML=pml)
    environment.update(setting.split("=", 1) for setting in case.environment)
    with jobs.start(command + ["--", *case.command], cwd=case.folder, env=environment) as job:
        output = job.communicate()[0].decode(errors="replace")
        jobs.done(job)
    # 110 is mpirun's own time limit, 124 and 137 are the one around it.
    late = re.search("got (110|124|137)$|time limit", output, re.MULTILINE)
    if job.returncode == 0:
        return "pass", output
    return ("timeout" if late else "fail"), output


def failed_parts(output):
    """Failed tests within a program that has many (unittest). Whole names only: ranks that
    write at the same time cut each other's lines."""
    return set(re.findall(r"^(?:FAIL|ERROR): (\w+ \([\w.]+\))$", output, re.MULTILINE))


def worse(ob1, tagline):
    """Has one run under tagline failed where one under ob1 has not?"""
    if tagline[0] == "pass":
        return False
    if ob1[0] == "pass":
        return True
    return bool(failed_parts(tagline[1]) - failed_parts(ob1[1])) and ob1[0] != "timeout"


def compare(case, options, machine):
    alone = case.memory_gb >= 1
    # Quick: ob1 is asked about what fails alone.
    if options.quick and machine(alone, lambda: run(case, "tagline", options))[0] == "pass":
        return {"directory": case.directory, "test": case.name, "verdict": SAME,
                "ob1": [], "tagline": ["pass"], "output": ""}
    ob1 = machine(alone, lambda: run(case, "ob1", options))
    # What hangs under ob1 is not waited for as long again.
    hanging = QUICK_HANGING_LIMIT if options.quick else HANGING_LIMIT
    limit = hanging if ob1[0] == "timeout" else case.limit
    runs = {"ob1": [ob1],
            "tagline": [machine(alone, lambda: run(case, "tagline", options, limit))]}
    verdict = SAME
    if worse(runs["ob1"][0], runs["tagline"][0]):
        for _ in range(RERUNS):
            for pml in PMLS:
                runs[pml].append(
                    machine(True, lambda pml=pml: run(case, pml, options, 2 * case.limit)))
        if runs["ob1"][0][0] == "pass" and any(outcome != "pass" for outcome, _ in runs["ob1"]):
            verdict = FLAKY
        elif runs["tagline"][0][0] == "timeout" and not any(
                worse(ob1, tagline) for ob1, tagline in zip(runs["ob1"][1:], runs["tagline"][1:])):
            verdict = SLOW
        else:
            verdict = DIFFERENT
    elif runs["ob1"][0][0] != "pass" and runs["tagline"][0][0] == "pass":
        verdict = FIXED
    failing = [output for outcome, output in runs["tagline"] if outcome != "pass"]
    return {"directory": case.directory, "test": case.name, "verdict": verdict,
            "ob1": [outcome for outcome, _ in runs["ob1"]],
            "tagline": [outcome for outcome, _ in runs["tagline"]],
            "output": failing[-1][-4000:] if failing and verdict in (DIFFERENT, FLAKY) else ""}


def compare_all(cases, options, keep):
    """Each result is kept as it comes: a run of hours may be cut short."""
    machine = Machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    fits = [case for case in cases if case.memory_gb < memory / 2]
    for case in cases:
        if case not in fits:
            say(f"left out: {case.directory}/{case.name} needs {case.memory_gb} GB of memory")
    results = []
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(compare, case, options, machine) for case in fits]
        for done in concurrent.futures.as_completed(waiting):
            result = done.result()
            results.append(result)
            keep(results)
            if result["verdict"] != SAME or options.verbose:
                say(f"{result['directory']}/{result['test']}: {result['verdict']}, "
                    f"ob1 {result['ob1']}, tagline {result['tagline']}")
    say(f"{options.transport}: {len(fits)} tests in {time.monotonic() - start:.0f} s")
    return results


# ---- The report ------------------------------------------------------------------------

def table(records):
    lines = ["| suite | transport | directory | tests | ob1 pass, fail, time limit "
             "| tagline pass, fail, time limit | flaky | tagline alone passes | differences |",
             "|---|---|---|---|---|---|---|---|---|"]
    for record in records:
        rows = {}
        for result in record["results"]:
            rows.setdefault(result["directory"], []).append(result)
        for directory, results in rows.items():
            verdicts = Counter(result["verdict"] for result in results)
            # A row counts the last run of each: the one alone on the machine.
            counts = {pml: Counter(result[pml][-1] for result in results if result[pml])
                      for pml in PMLS}
            cells = [record["suite"], record["transport"], directory, len(results)]
            cells += ["{pass}, {fail}, {timeout}".format_map(
                {name: counts[pml][name] for name in ("pass", "fail", "timeout")}) for pml in PMLS]
            cells += [verdicts[FLAKY] + verdicts[SLOW], verdicts[FIXED], verdicts[DIFFERENT]]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def notes(records):
    lines = []
    for record in records:
        for result in record["results"]:
            if result["verdict"] in (SAME, FIXED):
                continue
            what = {FLAKY: "fails now and then under ob1 as well",
                    SLOW: "went over its time limit once, and kept to it twice",
                    DIFFERENT: "FAILS UNDER TAGLINE ONLY"}[result["verdict"]]
            lines.append(f"{record['transport']} {result['directory']}/{result['test']}: {what}; "
                         f"ob1 {', '.join(result['ob1'])}; tagline {', '.join(result['tagline'])}")
            lines += ["    " + line for line in result["output"].splitlines()]
    return "\n".join(lines)


def report(records):
    """Prints it; the exit status that follows from it."""
    different = sum(r["verdict"] == DIFFERENT for record in records for r in record["results"])
    compared = sum(len(record["results"]) for record in records)
    print(table(records), notes(records), f"{compared} comparisons, {different} differences",
          sep="\n")
    return 1 if different else 0


def results_before(path, suite, transport):
    """What a file of results has of a suite over a transport."""
    records = json.loads(path.read_text()) if path.exists() else []
    return [result for record in records
            if (record["suite"], record["transport"]) == (suite, transport)
            for result in record["results"]]


def remember(record, path):
    """Adds a run to the file of results, in place of older ones of the same rows."""
    records = json.loads(path.read_text()) if path.exists() else []
    rows = {result["directory"] for result in record["results"]}
    for old in records:
        if (old["suite"], old["transport"]) == (record["suite"], record["transport"]):
            old["results"] = [r for r in old["results"] if r["directory"] not in rows]
            old["results"] += record["results"]
            break
    else:
        records.append(record)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Whoever ends this while it writes loses no result of hours before.
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(records, indent=1))
    unfinished.replace(path)
    return records


def parse():
    parser = argparse.ArgumentParser(prog="tests/conformance/run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="*", metavar="DIRECTORY",
                        help="rows of the table; all of them if none is named: "
                             + ", ".join(repr(row) if " " in row else row
                                         for rows in ROWS.values() for row in rows))
    parser.add_argument("--suite", choices=SUITES, action="append",
                        help="those that have the rows if none is named")
    parser.add_argument("--transport", choices=TRANSPORTS, action="append",
                        help="all of them if none is named; tcp-links: several connections per pair")
    parser.add_argument("--quick", action="store_true",
                        help="the parts that ./check runs: pt2pt, comm and threads over vader; "
                             "under ob1 only what fails under tagline")
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time (2)")
    parser.add_argument("--limit", type=int, default=0, metavar="SECONDS",
                        help="least time limit of a test (60; with --quick 30)")
    parser.add_argument("--longest", type=int, metavar="SECONDS",
                        help="leave out the tests to which the suite gives more time (with --quick 60)")
    parser.add_argument("--mca", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
                        help="an Open MPI parameter for every run")
    parser.add_argument("--mpi4py-source", metavar="FOLDER",
                        help="mpi4py's source tree, instead of the distribution's source package")
    parser.add_argument("--results", type=Path, default=ROOT / "out/conformance.json",
                        help="file that keeps the results of all runs (%(default)s)")
    parser.add_argument("--resume", action="store_true",
                        help="go on where a run was cut short: keep what the file of results "
                             "has, run the other tests")
    parser.add_argument("--report", action="store_true",
                        help="run nothing, show the table of that file")
    parser.add_argument("--verbose", action="store_true", help="a line for every test")
    parser.add_argument("--mpirun", default="mpirun.openmpi")
    parser.add_argument("--mpicc", default="mpicc.openmpi")
    parser.add_argument("--component", type=Path, default=ROOT / "build/release/lib/openmpi",
                        help="folder of mca_pml_tagline.so")
    parser.add_argument("--expect-pml", type=Path, help="library that checks the selection",
                        default=ROOT / "build/release/tests/ompi-plugin/libexpect_pml.so")
    options = parser.parse_args()
    options.limit = options.limit or (30 if options.quick else 60)
    if options.quick:
        options.longest = options.longest or QUICK_LONGEST
        options.suite = options.suite or ["mpich"]
        options.transport = options.transport or ["vader"]
        if options.suite == ["mpich"] and not options.directories:
            options.directories = ["pt2pt", "comm", "threads"]
    wanted = set(options.directories)
    options.suite = options.suite or [name for name, rows in ROWS.items()
                                      if not wanted or wanted & set(rows)]
    for row in wanted - {row for name in options.suite for row in ROWS[name]}:
        parser.error(f"no row {row!r} in {' and '.join(options.suite or ROWS)}; there are: "
                     + "; ".join(f"{name}: {', '.join(rows)}" for name, rows in ROWS.items()))
    if options.report and not options.results.exists():
        parser.error(f"{options.results} is not there: nothing has been run, or --results is due")
    return options


def main():
    options = parse()
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, end_jobs)
    if options.report:
        return report(json.loads(options.results.read_text()))
    here = []
    unavailable = 0
    for name in options.suite:
        try:
            suite = SUITES[name](options)
        except Unavailable as reason:
            say(f"SKIPPED: {name}: {reason}")
            unavailable += 1
            continue
        say(f"{name} {suite.version}: {len(suite.cases)} tests"
            + (f"; not buildable with this MPI: {' '.join(suite.absent)}" if suite.absent else ""))
        for transport in options.transport or TRANSPORTS:
            options.transport = transport
            label = f"{name} {suite.version}"
            before = results_before(options.results, label, transport) if options.resume else []
            known = {(result["directory"], result["test"]) for result in before}
            rows = {}
            for case in suite.cases:
                rows.setdefault(case.directory, []).append(case)
            for directory, cases in rows.items():
                say(f"{transport}: {directory}")
                record = {"suite": label, "transport": transport}
                old = [result for result in before if result["directory"] == directory]
                record["results"] = old + compare_all(
                    [case for case in cases if (directory, case.name) not in known], options,
                    lambda results, record=record, old=old: remember(
                        {**record, "results": old + results}, options.results))
                here.append(record)
    if not here:
        return SKIPPED if unavailable else 2
    return report(here)


if __name__ == "__main__":
    sys.exit(main())
