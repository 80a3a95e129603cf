"""Threads that write memories and read them at once, while snapshots are made and the index is rebuilt.

python concurrent_writers.py ROOT SECONDS
"""

import random
import sys
import time
from pathlib import Path
from threading import Thread

import jidomem
from jidomem.index import follower, store

SMALL = {
    "ON_DISK_BYTES": 20_000,
    "SNAPSHOT_COMMITS": 5,
    "WRITER_SNAPSHOT_BYTES": 30_000,
    "MAX_TRIPLES_IN_MEMORY": 3_000,
    "PENDING_BYTES": 20_000,
}


def work(memory, name, end, results):
    rng, count = random.Random(name), 0
    while time.monotonic() < end:
        count += 1
        receipt = memory.writer.remember("p", f"thing {name} {count}")
        if rng.random() < 0.5:
            results.append(memory.reader.get_memory("p", receipt.iri)["iri"] == receipt.iri)
        else:
            results.append(memory.reader.select("p", f"SELECT ?o WHERE {{ <{receipt.iri}> a ?o }}") != [])


def rebuild(memory, end):
    while time.monotonic() < end:
        time.sleep(1)
        memory.follower.rebuild()


def main(root, seconds):
    for name, value in SMALL.items():
        setattr(follower, name, value)
    store.BULK_LOAD_BYTES, store.MAX_BUFFERED_BYTES = 3_000, 20_000
    end, results = time.monotonic() + float(seconds), []
    with jidomem.open(Path(root)) as memory, jidomem.open(Path(root)) as other:
        memory.writer.remember("p", "the first")
        threads = [Thread(target=work, args=(at, name, end, results)) for name, at in enumerate([memory] * 3 + [other])]
        threads.append(Thread(target=rebuild, args=(memory, end)))
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    print(len(results), all(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
