"""What it costs to find memories by words: an answer, the first one after a write, and taking all of them in.

    python -m bench.recall_lexical [--memories 100000] [--json FILE]

Queries are made of some words of a summary each, with small words around them.  Beside it stands the bare engine: the
same words in one `MATCH ... ORDER BY rank` of SQLite's FTS5, on the same file, which knows of no time, kind or file.
What is shown is not logged here, as that is a write with an fsync of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import count, cycle
from random import Random
from statistics import median
from time import perf_counter

import jidomem
from bench import frame, generate, load
from bench.frame import Options, Row, Spread, in_turn, percentile, seconds, short
from jidomem.journal.journal import Stream
from jidomem.runtime.root import Jidomem

GOAL_MS, INGEST = 20, 500
SIZES = (1_000, 10_000, 100_000)
QUERIES = 200


def rows(options: Options) -> Iterator[Row]:
    """Rows for 1,000 memories, ten and a hundred times as many, up to what was asked for."""
    for size in SIZES:
        if size <= options.memories:
            yield from _rows(size, options)


def _rows(size: int, options: Options) -> Iterator[Row]:
    with jidomem.open(options.copy(size), project=load.PROJECT) as memory:
        memory.read_log = None
        memory.catch_up(load.PROJECT)
        took = seconds(lambda: memory.recall("index"))
        status = memory.texts.status(Stream(load.PROJECT)) or {}
        known = status["memories"] / took
        measured = f"{short(known)} a second, {status['bytes']:,} bytes"
        yield Row(f"take in {size:,} memories", f"{INGEST} a second", measured, met=known >= INGEST, figures=status)
        yield from _query_times(size, memory, options)


def _query_times(size: int, memory: Jidomem, options: Options) -> Iterator[Row]:
    queries = _queries(memory)
    each = [_ms(memory, query) for query in queries]
    once_more, past = cycle(queries), generate.START + size // 2 * generate.STEP
    bare = sqlite3.connect(memory.texts.files.path(load.PROJECT))  # the bare side: the very same file, asked directly
    matched = cycle([found for query in queries if (found := _match(memory, query))])
    text = "SELECT rowid FROM text WHERE text MATCH ? ORDER BY rank LIMIT 5"
    numbers = count()

    def after_a_write() -> None:
        memory.recall(f"quokka{next(numbers)}")

    times = in_turn({
        "now": lambda: memory.recall(next(once_more)),
        "past": lambda: memory.recall(next(once_more), as_of=past),
        "bare": lambda: bare.execute(text, (next(matched),)).fetchall(),
    }, options.rounds, calls=20)  # fmt: skip
    new = []
    for number in range(options.rounds):
        memory.writer.remember(load.PROJECT, f"quokka{number}")
        new.append(seconds(after_a_write) * 1000)
    bare.close()
    ratio = Spread.ratio(times["now"], times["bare"])
    yield Row(f"recall among {size:,} memories", f"p50 {GOAL_MS} ms",
              f"p50 {short(median(each))} ms, p99 {short(percentile(each, 99))} ms", f"{ratio} x bare FTS5",
              median(each) <= GOAL_MS, {"ms": each, **times})  # fmt: skip
    yield Row(f"recall as of a past moment among {size:,}", "-", f"{Spread.ratio(times['past'], times['now'])} x now")
    yield Row(f"first recall after a write among {size:,}", f"p50 {GOAL_MS} ms", f"{Spread.of(new)} ms",
              met=median(new) <= GOAL_MS, figures={"ms": new})  # fmt: skip


def _queries(memory: Jidomem) -> list[str]:
    random = Random(7)
    told = memory.reader.ask("timeline", project=load.PROJECT, limit=QUERIES)
    some = (row["summary"].split() for row in told)
    return ["what did we say about " + " ".join(random.sample(w, min(len(w), random.choice((2, 3, 5))))) for w in some]


def _match(memory: Jidomem, query: str) -> str:
    """The words that recall looks for, as the engine reads them."""
    stems = memory.recall(query).metadata["words"]
    return " OR ".join(f'"{stem}"' for stem in stems)


def _ms(memory: Jidomem, query: str) -> float:
    start = perf_counter()
    memory.recall(query)
    return (perf_counter() - start) * 1000


if __name__ == "__main__":
    frame.main(__spec__.name, rows)
