"""A process that appends, and prints the id of each commit once it is acknowledged.

python appender.py files|log PLACE HOME NAME COUNT
"""

import sys
from datetime import datetime
from itertools import count
from pathlib import Path

from journal_world import START, STREAM, commit_on

from jidomem.journal.journal import FileJournal, VersionMismatch


def after(moment: str) -> int:
    """Return the first whole second of the test clock after *moment*."""
    return 1 if not moment else (datetime.fromisoformat(moment) - START).seconds + 1


if __name__ == "__main__":
    kind, place, home, name, amount = sys.argv[1:]
    if kind == "files":
        journal = FileJournal(Path(home))
    else:
        sys.path.insert(0, str(Path(__file__).parents[1] / "servers"))
        from file_log import FileLog

        from jidomem.extras.servers.journal import MirroredJournal

        journal = MirroredJournal(FileLog(place), Path(home))
    for number in range(int(amount)) if int(amount) else count():
        while True:  # compare-and-append without a lock: a lost race is retried
            version = journal.head(STREAM)
            commit = commit_on(version, f"{name}-{number}", second=after(version.recorded_at))
            if not isinstance(journal.append(STREAM, version, commit), VersionMismatch):
                break
        print(commit.id, flush=True)
