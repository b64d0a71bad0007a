# SPDX-License-Identifier: BSD-3-Clause
"""Who runs now: several tests at a time, or one alone; and how all of them end."""
import os
import subprocess
import threading
from pathlib import Path


class Machine:
    """machine(alone, work): work() when it may run, and what it returns."""

    def __init__(self):
        self.condition = threading.Condition()
        self.running = 0
        self.alone = False

    def __call__(self, alone, work):
        with self.condition:
            self.condition.wait_for(lambda: not self.alone and not (alone and self.running))
            self.running += 1
            self.alone = alone
        try:
            return work()
        finally:
            with self.condition:
                self.running -= 1
                self.alone = False
                self.condition.notify_all()


class Jobs:
    """What is under way. All processes of a job have its mark in their environment, those too
    that a launcher gave a session of their own."""

    MARK = "TAGLINE_JOB"

    def __init__(self):
        self.lock = threading.Lock()
        self.running = set()
        self.started = 0

    def start(self, command, env, **options):
        """Its output is one pipe."""
        with self.lock:
            self.started += 1
            mark = f"{os.getpid()}-{self.started}"
            job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True,
                                   env={**env, self.MARK: mark}, **options)
            job.mark = mark
            self.running.add(job)
        return job

    def signal(self, job, number):
        """All that is left of it gets this signal."""
        setting = f"{self.MARK}={job.mark}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if setting in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), number)
            except OSError:
                pass  # it has ended by itself, or is another user's

    def done(self, job):
        self.running.discard(job)

    def close(self):
        """Nothing starts any more. What is under way."""
        self.lock.acquire()  # for good
        return list(self.running)
