"""Recall by words: the latency of a query, also as of a past moment and after a write, and the rate of indexing.

    python -m bench.recall_lexical [--memories 100000] [--json FILE]

A query has some words of a summary and stop words around them.  The comparison is the bare engine: the same words in
one `MATCH ... ORDER BY rank` of SQLite's FTS5 on the same file, without time, kind or file filters.  The log of reads,
a write with its own fsync, is off.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from random import Random
from statistics import median

import jidomem
from bench import generate, harness, load
from bench.harness import Options, Row, Spread, percentile, rounded, time_calls, time_sides
from jidomem.journal.journal import Stream
from jidomem.runtime.root import Jidomem

GOAL_MS, GOAL_RATE = 20, 500
SIZES = (1_000, 10_000, 100_000)
QUERIES = 200


def rows(options: Options) -> Iterator[Row]:
    """Yield rows for each of SIZES up to *options.memories* memories."""
    for size in SIZES:
        if size <= options.memories:
            yield from _rows(size, options)


def _rows(size: int, options: Options) -> Iterator[Row]:
    with jidomem.open(options.copy_root(size), project=load.PROJECT) as memory:
        memory.read_log = None
        memory.catch_up(load.PROJECT)
        seconds = time_calls(lambda: memory.recall("index"))
        status = memory.texts.status(Stream(load.PROJECT)) or {}
        rate = status["memories"] / seconds
        measured = f"{rounded(rate)} a second, {status['bytes']:,} bytes"
        yield Row(
            f"index {size:,} memories", f"{GOAL_RATE} a second", measured, is_met=rate >= GOAL_RATE, figures=status
        )
        yield from _query_times(size, memory, options)


def _query_times(size: int, memory: Jidomem, options: Options) -> Iterator[Row]:
    queries = _queries(memory)
    milliseconds = [time_calls(partial(memory.recall, query)) * 1000 for query in queries]
    repeated_queries, past = cycle(queries), generate.START + size // 2 * generate.STEP
    # the bare side: the same file, queried directly
    connection = sqlite3.connect(memory.texts.files.path(load.PROJECT))
    matches = cycle([match for query in queries if (match := _match_expression(memory, query))])
    statement = "SELECT rowid FROM text WHERE text MATCH ? ORDER BY rank LIMIT 5"
    times = time_sides({
        "now": lambda: memory.recall(next(repeated_queries)),
        "past": lambda: memory.recall(next(repeated_queries), as_of=past),
        "bare": lambda: connection.execute(statement, (next(matches),)).fetchall(),
    }, options.rounds, calls=20)  # fmt: skip
    after_write = []
    for number in range(options.rounds):
        memory.writer.remember(load.PROJECT, f"quokka{number}")
        after_write.append(time_calls(partial(memory.recall, f"quokka{number}")) * 1000)
    connection.close()
    goal, p50 = f"p50 {GOAL_MS} ms", median(milliseconds)
    yield Row(
        f"recall among {size:,} memories",
        goal,
        f"p50 {rounded(p50)} ms, p99 {rounded(percentile(milliseconds, 99))} ms",
        f"{Spread.ratio(times['now'], times['bare'])} x bare FTS5",
        p50 <= GOAL_MS,
        {"ms": milliseconds, **times},
    )
    yield Row(f"recall as of a past moment among {size:,}", "-", f"{Spread.ratio(times['past'], times['now'])} x now")
    label, figures = f"first recall after a write among {size:,}", {"ms": after_write}
    yield Row(label, goal, f"{Spread.of(after_write)} ms", is_met=median(after_write) <= GOAL_MS, figures=figures)


def _queries(memory: Jidomem) -> list[str]:
    random = Random(7)
    rows = memory.reader.ask("timeline", project=load.PROJECT, limit=QUERIES)
    summaries = (row["summary"].split() for row in rows)
    return [
        "what did we say about " + " ".join(random.sample(terms, min(len(terms), random.choice((2, 3, 5)))))
        for terms in summaries
    ]


def _match_expression(memory: Jidomem, query: str) -> str:
    """Return the stems of recall as a MATCH expression."""
    stems = memory.recall(query).metadata["words"]
    return " OR ".join(f'"{stem}"' for stem in stems)


if __name__ == "__main__":
    harness.main(__spec__.name, rows)
