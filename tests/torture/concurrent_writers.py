"""Threads that write memories and read them at once, while snapshots are made and the index is rebuilt.

python concurrent_writers.py ROOT ROUNDS
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


def work(memory, name, rounds, results):
    rng = random.Random(name)
    for count in range(rounds):
        receipt = memory.writer.remember("p", f"thing {name} {count}")
        if rng.random() < 0.5:
            results.append(memory.reader.get_memory("p", receipt.iri)["iri"] == receipt.iri)
        else:
            results.append(memory.reader.select("p", f"SELECT ?o WHERE {{ <{receipt.iri}> a ?o }}") != [])


def rebuild(memory, writers):
    while any(writer.is_alive() for writer in writers):
        memory.follower.rebuild()
        time.sleep(0.2)


def main(root, rounds):
    for name, value in SMALL.items():
        setattr(follower, name, value)
    store.MAX_BUFFERED_BYTES = 20_000
    results = []
    with jidomem.open(Path(root)) as memory, jidomem.open(Path(root)) as other:
        memory.writer.remember("p", "the first")
        threads = [
            Thread(target=work, args=(at, name, int(rounds), results)) for name, at in enumerate([memory] * 3 + [other])
        ]
        for each in threads:
            each.start()
        rebuild(memory, threads)
        for each in threads:
            each.join()
    print(len(results), all(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
