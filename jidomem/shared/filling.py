"""Put many commits into the folder of a stream that nobody writes to, as packs where they are many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jidomem.journal import disk
from jidomem.journal.commit import Commit
from jidomem.journal.names import file_name
from jidomem.journal.packs import Entry, prepare_pack, write_pack
from jidomem.journal.sealing import BYTES, COMMITS, SEALING
from jidomem.journal.writing import INCOMING, flush_above, make_folders, move, prepare, writing


def fill(folder: str, commits: Iterable[Commit], *, packed: bool = True) -> None:
    """Keep *commits*, parents first, in *folder*, which is made; raises Failed where it cannot be written.

    What is cut short holds the first of them. Where it may be *packed*, every full 2,000 become a pack.
    """
    with writing(folder):
        make_folders(folder)
        flush_above(folder)
        for batch, is_full in _batches(commits):
            if is_full and packed:
                ordered = sorted(batch, key=lambda commit: commit.head)
                name, data = write_pack([(Entry(c.head, c.parents), c.redacted, c.data) for c in ordered])
                prepare_pack(f"{folder}/{SEALING}", name, data)
                move(f"{folder}/{SEALING}", f"{folder}/{name}")
            else:
                for commit in batch:
                    _put(folder, file_name(commit.head, redacted=commit.redacted), commit.data)
            disk.flush(folder)


def _batches(commits: Iterable[Commit]) -> Iterator[tuple[Sequence[Commit], bool]]:
    """Yield *commits* some at a time, and whether that is as many as a pack takes."""
    batch, size = list[Commit](), 0
    for commit in commits:
        batch.append(commit)
        size += len(commit.data)
        if len(batch) == COMMITS or size >= BYTES:
            yield batch, True
            batch, size = [], 0
    if batch:
        yield batch, False


def _put(folder: str, name: str, data: bytes) -> None:
    prepare(f"{folder}/{INCOMING}", data)
    move(f"{folder}/{INCOMING}", f"{folder}/{name}")
