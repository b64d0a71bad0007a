# SPDX-License-Identifier: BSD-3-Clause
"""Who runs now: several tests at a time, or one alone; and how all of them end."""
import subprocess
import threading


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
    """What is under way, each in a session of its own."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = set()

    def start(self, command, **options):
        """Its output is one pipe."""
        with self.lock:
            job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True, **options)
            self.running.add(job)
        return job

    def done(self, job):
        self.running.discard(job)

    def close(self):
        """Nothing starts any more. What is under way."""
        self.lock.acquire()  # for good
        return list(self.running)
