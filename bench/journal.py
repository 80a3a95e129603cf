"""What the journal adds to the disk: an append beside the four calls it cannot do without, on the same bytes.

Write, fsync, rename, fsync of the folder is what durability costs on this disk, in this minute.  Building a commit
(document, digest, strict read-back) and reading one again are measured in triples a second.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path

import jidomem
from bench import frame, generate, load
from bench.frame import Options, Row, Spread, in_turn, seconds, short
from jidomem.journal import commit as commits
from jidomem.journal.commit import Commit, parse
from jidomem.journal.journal import FileJournal, Stream
from jidomem.rdf.terms import Triple
from jidomem.records.intent import Version

CALLS = 5
STREAM = Stream(load.PROJECT)


def rows(options: Options) -> Iterator[Row]:
    """An append of one memory, then what a full block costs to build and to read."""
    one, block = _bodies(options)
    chain = _chain(one, (options.rounds + 1) * CALLS)
    journal, raw = FileJournal(options.folder / "journal"), four_calls(options.folder / "raw")
    data = iter([commit.data for commit in chain])
    expected, following = Version(), iter(chain)

    def append() -> None:
        nonlocal expected
        after = journal.append(STREAM, expected, next(following))
        assert isinstance(after, Version)
        expected = after

    times = in_turn({"append": append, "raw": lambda: raw(next(data))}, options.rounds, CALLS)
    ratio = Spread.ratio(times["append"], times["raw"])
    middle = Spread.of([each * 1000 for each in times["append"]])
    beside = f"{ratio} x write + fsync + rename + fsync of the same {len(chain[-1].data):,} bytes"
    yield Row("append of one memory", "-", f"{middle} ms", beside, figures={"s": times})
    whole = _built(block, Version(), 0)
    for what, run in (("build of", lambda: _built(block, Version(), 0)), ("reading", lambda: parse(whole.data))):
        rates = [len(whole.triples) / seconds(run) for _ in range(options.rounds)]
        rate = Spread.of(rates)
        measured = f"{short(rate.middle)} triples/s ({short(rate.low)}-{short(rate.high)})"
        yield Row(f"{what} a commit of {len(whole.triples):,} triples", "-", measured, figures={"per_s": rates})


def four_calls(folder: Path) -> Callable[[bytes], None]:
    """What makes bytes durable as a new file of *folder*, and does nothing else."""
    folder.mkdir()
    names = count()

    def keep(data: bytes) -> None:
        target = folder / f"{next(names)}"
        with open(folder / "incoming", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(folder / "incoming", target)
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    return keep


def _bodies(options: Options) -> tuple[list[Triple], list[Triple]]:
    """The triples of one memory, and of a full block of them, as the writer keeps them."""
    with jidomem.open(options.folder / "source") as memory:
        intents = list(islice(generate.intents(10**9, project=load.PROJECT), 200))
        memory.writer.submit_many(load.PROJECT, intents)
        bodies = [_body(commit) for commit in memory.journal.read(STREAM)]
    block = max(bodies, key=len)
    return [row for row in block if row[0] == max(row[0] for row in block)], block


def _body(commit: Commit) -> list[Triple]:
    return [row for row in commit.triples if commit.iri not in row[0] and commit.iri not in row[2]]


def _chain(body: list[Triple], length: int) -> list[Commit]:
    """So many commits, one after the other, of which each says *body*."""
    chain: list[Commit] = []
    for number in range(length):
        chain.append(_built(body, Version.of([chain[-1].head]) if chain else Version(), number))
    return chain


def _built(body: list[Triple], parents: Version, number: int) -> Commit:
    moment = f"2026-11-21T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000000Z"
    return commits.build(
        graph=STREAM.graph, parents=parents, recorded_at=moment, committer="urn:bench:writer",
        ontology_version="0", body=body, nonce=number.to_bytes(32, "big"),
    )  # fmt: skip


if __name__ == "__main__":
    frame.main("bench.journal", rows)
