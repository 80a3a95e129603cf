"""Redacts a memory, killed after the n-th write to the log: python killed_redactor.py.

Reads lines of `HOME LOG ITEM N`, and answers each with `killed`, or `done` where there were fewer writes.
"""

import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

from file_log import FileLog

from jidomem.base.clock import Sources
from jidomem.runtime.location import SharedLocation
from jidomem.runtime.root import Jidomem
from jidomem.runtime.settings import Settings

WRITES = ("append", "rewrite", "put", "remove", "mark", "restore")


class Fatal(FileLog):
    """A log whose process is killed right after the n-th write."""

    writes_left = 0

    @contextmanager
    def _transaction(self, operation):
        with super()._transaction(operation) as store:
            yield store
        self.writes_left -= operation in WRITES
        if not self.writes_left:
            os.kill(os.getpid(), signal.SIGKILL)


def redact(home, log, item, writes):
    """Redact *item*."""
    fatal = Fatal(log)
    fatal.writes_left = writes
    memory = Jidomem(Settings(home, "p", "here"), Sources(), 10.0, None, SharedLocation(fatal, "s3://as/if", home))
    fatal.writes_left = writes  # not counting the writes of the opening
    memory.maintenance.redact(memory.maintenance.plan("p", item=item), agent="architect", reason="it is a secret")
    os._exit(0)


if __name__ == "__main__":
    for line in sys.stdin:
        home, log, item, writes = line.split()
        child = os.fork()  # nothing is open yet
        if not child:
            redact(Path(home), log, item, int(writes))
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "done" if status == 0 else f"failed: {status}", flush=True)
