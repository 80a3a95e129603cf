"""Reads a shared root, killed before the n-th change of its local copy: python killed_reader.py

Reads lines of `HOME LOG N`, and answers each with `killed`, or `done` where there were fewer changes.
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path

from file_log import FileLog

from jidomem.base import disk
from jidomem.base.clock import Sources
from jidomem.runtime.location import SharedLocation
from jidomem.runtime.root import Jidomem
from jidomem.runtime.settings import Settings

CHANGES = ("create", "write", "fsync", "flush", "rename", "unlink", "overwrite")


def read(home, log, number):
    """Read the facts of the root."""
    calls = count(1)

    def counted(call):
        def counting(*arguments):
            if next(calls) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments)

        return counting

    for name in CHANGES:
        setattr(disk, name, counted(getattr(disk, name)))
    location = SharedLocation(FileLog(log), "s3://as/if", home)
    Jidomem(Settings(home, "p", "here"), Sources(), 10.0, None, location).ask("facts")
    os._exit(0)


if __name__ == "__main__":
    for line in sys.stdin:
        home, log, number = line.split()
        child = os.fork()  # nothing is open yet
        if not child:
            read(Path(home), log, int(number))
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "done" if status == 0 else f"failed: {status}", flush=True)
