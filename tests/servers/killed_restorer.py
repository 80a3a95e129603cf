"""Restores lost entries from a copy, killed after the n-th write to the log: python killed_restorer.py HOME LOG N."""

import sys
from pathlib import Path

from journal_world import STREAM
from killed_redactor import Fatal

from jidomem.extras.servers.journal import MirroredJournal

if __name__ == "__main__":
    home, log, writes = sys.argv[1:]
    fatal = Fatal(log)
    fatal.writes_left = int(writes)
    MirroredJournal(fatal, Path(home)).restore([STREAM])
