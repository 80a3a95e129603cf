"""An append to the journal beside write + fsync + rename + fsync of the same bytes; building and reading a commit.

    python -m bench.journal [--rounds N]

The four calls are what durability costs on this disk, at this moment.  Building a commit (document, digest, strict
read-back) and reading one are measured in triples a second.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path

import jidomem
from bench import harness, load
from bench.harness import Options, Row, Spread, time_calls, time_sides
from jidomem.journal import commit as commits
from jidomem.journal.commit import Commit, parse
from jidomem.journal.journal import FileJournal, Stream
from jidomem.rdf.terms import Triple
from jidomem.records.intent import Version

CALLS = 5
STREAM = Stream(load.PROJECT)


def rows(options: Options) -> Iterator[Row]:
    """Yield an append of one memory, then building and reading a commit of 200 memories."""
    small, block = _memory_and_block(options)
    chain = _chain(small, (options.rounds + 1) * CALLS)
    journal, write_durably = FileJournal(options.folder / "journal"), durable_writer(options.folder / "raw")
    data = iter([commit.data for commit in chain])
    expected, following = Version(), iter(chain)

    def append() -> None:
        nonlocal expected
        after = journal.append(STREAM, expected, next(following))
        assert isinstance(after, Version)
        expected = after

    times = time_sides({"append": append, "raw": lambda: write_durably(next(data))}, options.rounds, CALLS)
    ratio = Spread.ratio(times["append"], times["raw"])
    spread = Spread.of([seconds * 1000 for seconds in times["append"]])
    comparison = f"{ratio} x write + fsync + rename + fsync of the same {len(chain[-1].data):,} bytes"
    yield Row("append of one memory", "-", f"{spread} ms", comparison, figures={"s": times})
    commit_of_block = _build(block, Version(), 0)
    for label, run in (
        ("build of", lambda: _build(block, Version(), 0)),
        ("reading", lambda: parse(commit_of_block.data)),
    ):
        rates = [len(commit_of_block.triples) / time_calls(run) for _ in range(options.rounds)]
        measured = f"{Spread.of(rates)} triples/s"
        yield Row(
            f"{label} a commit of {len(commit_of_block.triples):,} triples", "-", measured, figures={"per_s": rates}
        )


def durable_writer(folder: Path) -> Callable[[bytes], None]:
    """Return a function that writes bytes to a new file of *folder*: write, fsync, rename, fsync of the folder."""
    folder.mkdir()
    names = count()

    def write(data: bytes) -> None:
        target = folder / f"{next(names)}"
        with open(folder / "incoming", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(folder / "incoming", target)
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    return write


def _memory_and_block(options: Options) -> tuple[list[Triple], list[Triple]]:
    """Return the triples of one memory, and of the largest commit of 200 memories."""
    with jidomem.open(options.folder / "source") as memory:
        intents = list(islice(load.intents_after(0), 200))
        memory.writer.submit_many(load.PROJECT, intents)
        bodies = [_body(commit) for commit in memory.journal.read(STREAM)]
    block = max(bodies, key=len)
    return [row for row in block if row[0] == max(row[0] for row in block)], block


def _body(commit: Commit) -> list[Triple]:
    return [row for row in commit.triples if commit.iri not in row[0] and commit.iri not in row[2]]


def _chain(body: list[Triple], length: int) -> list[Commit]:
    """Return a chain of *length* commits, each with the triples *body*."""
    chain: list[Commit] = []
    for number in range(length):
        chain.append(_build(body, Version.of([chain[-1].head]) if chain else Version(), number))
    return chain


def _build(body: list[Triple], parents: Version, number: int) -> Commit:
    moment = f"2026-11-21T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000000Z"
    return commits.build(
        graph=STREAM.graph, parents=parents, recorded_at=moment, committer="urn:bench:writer",
        ontology_version="0", body=body, nonce=number.to_bytes(32, "big"),
    )  # fmt: skip


if __name__ == "__main__":
    harness.main("bench.journal", rows)
