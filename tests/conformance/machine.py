# SPDX-License-Identifier: BSD-3-Clause
"""Who runs now: several tests at a time, or one alone."""
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
