"""A process that opens, rebuilds or follows an index with small limits, repeatedly, until it is killed."""

import sys
from pathlib import Path

from index_world import STREAM, commit_on, index_triples, journal_triples, open_tail

from jidomem.index import follower
from jidomem.index import follower as limits


def main(root, action):
    limits.ON_DISK_BYTES, limits.SNAPSHOT_COMMITS = 3_000, 0
    limits.WRITER_SNAPSHOT_BYTES, limits.MAX_TRIPLES_IN_MEMORY = 0, 30
    follower.STEP = 2_000
    while True:
        tail = open_tail(root)
        if action == "reindex":
            tail.rebuild()
        else:
            assert index_triples(tail) <= journal_triples(root)
        for number in range(3 if action == "write" else 0):
            with tail.journal.lock(STREAM) as version:
                commit = commit_on(version, f"{version.position}-{number}")
                tail.journal.append(STREAM, version, commit)
                tail.apply(STREAM, commit)
        print(".", end="", flush=True)
        if action != "write":
            tail.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
