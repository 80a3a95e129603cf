"""Maintenance beside the writers, repeated until killed: seals packs, rebuilds the index, or opens the root.

python maintenance.py ROOT seal|reindex|open
"""

import sys
import time
from contextlib import suppress
from pathlib import Path

import jidomem
from jidomem.errors import Busy
from jidomem.journal.journal import FileJournal, Stream


def seal(root):
    with suppress(Busy):
        FileJournal(Path(root)).seal(Stream("p"))
    time.sleep(0.02)


def reindex(root):
    with jidomem.open(root) as memory:
        memory.follower.rebuild()


def ask(root):
    with jidomem.open(root) as memory:
        memory.reader.list_facts_with_confidence("p", limit=1)


def main(root, role):
    work = {"seal": seal, "reindex": reindex, "open": ask}[role]
    print("begun", flush=True)
    while True:
        work(root)


if __name__ == "__main__":
    main(*sys.argv[1:])
