"""Recall by words and with vectors as a memory grows: time, CPU time, resident memory, bytes on disk, rate of indexing.

    python -m bench.recall_scale [--memories 100000] [--json FILE]

Queries ask for memories, and for as many entries, written here in sessions of fifty; each has some words of a summary
and stop words around them.  Each size runs in a process of its own, first without an embedder, then with the local one
if it is installed.  The comparison is the bare engine: the same words in one `MATCH ... ORDER BY rank` of SQLite's FTS5
on the same file.  The log of reads is off.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice
from multiprocessing import get_context
from random import Random
from statistics import median
from time import perf_counter, process_time
from typing import Any

import jidomem
from bench import generate, harness, load
from bench.harness import Options, Row, Spread, percentile, rounded, time_calls, time_sides
from jidomem.journal.journal import Stream
from jidomem.models.local_embedder import missing
from jidomem.records.entry import Entry, WriteRequest
from jidomem.runtime.root import Jidomem

GOAL_MS, GOAL_RATE, GOAL_MB = 20, 500, 500
SIZES = (1_000, 10_000, 100_000)
QUERIES, SESSION_SIZE, AT_ONCE = 200, 50, 1_000
STREAMS = {"memories": Stream(load.PROJECT), "entries": Stream(load.PROJECT, "history")}
Figures = dict[str, Any]


def rows(options: Options) -> Iterator[Row]:
    """Yield rows for each of SIZES up to *options.memories* memories and entries."""
    for size in (size for size in SIZES if size <= options.memories):
        for content in STREAMS:
            root = options.copy_root(size if content == "memories" else SIZES[0])
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                for results in pool.submit(measure, str(root), content, size, options.rounds).result():
                    yield from _rows(f"{size:,} {content}", results)


def _rows(size_and_content: str, figures: Figures) -> Iterator[Row]:
    mode, ms, megabytes = figures["by"], median(figures["ms"]), figures["bytes"] / 1e6
    rate_words = f"{rounded(figures['rate'])} a second, {rounded(figures['cpu_rate'])} a CPU second"
    rate_words += (
        f" ({', '.join(f'{name} {rounded(step_seconds)} s' for name, step_seconds in figures['took'].items())})"
    )
    yield Row(
        f"index {size_and_content} {mode}",
        f"{GOAL_RATE} a second",
        rate_words,
        is_met=figures["rate"] >= GOAL_RATE,
        figures=figures,
    )
    cpu = rounded(median(figures["cpu_ms"]))
    latency_words = f"p50 {rounded(ms)} ms, p99 {rounded(percentile(figures['ms'], 99))} ms, {cpu} ms CPU"
    comparison = f"{Spread.ratio(figures['ours'], figures['bare'])} x bare FTS5"
    yield Row(f"recall among {size_and_content} {mode}", f"p50 {GOAL_MS} ms", latency_words, comparison, ms <= GOAL_MS)
    size_words = f"{rounded(megabytes)} MB on disk, {rounded(figures['resident'])} MB resident"
    yield Row(f"size of {size_and_content} {mode}", f"{GOAL_MB} MB", size_words, is_met=megabytes <= GOAL_MB)


def measure(root: str, content: str, size: int, rounds: int) -> list[Figures]:
    """Return the figures of *root* by words, and with vectors if the local embedder is installed."""
    results: list[Figures] = []
    for mode in ("by words", "with vectors") if not missing() else ("by words",):
        os.environ["JIDOMEM_EMBEDDER"] = "none" if mode == "by words" else "local"
        with jidomem.open(root, project=load.PROJECT, agent="bench") as memory:
            memory.read_log = None
            results.append(
                {
                    "by": mode,
                    **_index_all(memory, content, size, is_new=not results),
                    **_query_figures(memory, content, rounds),
                }
            )
    return results


def _index_all(memory: Jidomem, content: str, size: int, *, is_new: bool) -> Figures:
    """Write entries, then index words, and in the second mode vectors; return rates and bytes on disk."""
    memory.catch_up(load.PROJECT)
    stream, cpu_start = STREAMS[content], process_time()
    steps: dict[str, Callable[[], object]] = {}
    if is_new and content == "entries":
        steps["writing"] = lambda: _write_entries(memory, size)
    if is_new:
        steps["words"] = lambda: memory.texts.read(stream, lambda file: file.mark)
    elif memory.embedding is not None:
        vectors = memory.embedding.vectors
        vectors.vector("loads the network")
        cpu_start = process_time()
        steps["vectors"] = lambda: all(iter(lambda: vectors.embed_next(stream), False))
    step_seconds = {name: time_calls(step) for name, step in steps.items()}
    cpu_seconds = process_time() - cpu_start
    bytes_on_disk = (memory.texts.status(stream) or {})["bytes"]
    bytes_on_disk += 0 if memory.embedding is None else memory.embedding.vectors.status(stream)["bytes"]
    return {
        "took": step_seconds,
        "rate": size / sum(step_seconds.values()),
        "cpu_rate": size / cpu_seconds,
        "bytes": bytes_on_disk,
    }


def _write_entries(memory: Jidomem, size: int) -> None:
    intents = enumerate(generate.intents(size, project=load.PROJECT))
    while batch := [*islice(intents, AT_ONCE)]:
        entries = []
        for number, intent in batch:
            session, speaker = f"s-{number // SESSION_SIZE}", ("ana", "ben")[number % 2]
            metadata = {"session": session, "position": number, "speaker": speaker}
            entries.append(Entry(agent_id="bench", content=intent["summary"], metadata=metadata))
        for outcome in memory.entries.write_many(WriteRequest(entry=entry) for entry in entries):
            if isinstance(outcome, Exception):
                raise outcome


def _query_figures(memory: Jidomem, content: str, rounds: int) -> Figures:
    """Return the latencies of each query once, then those beside the bare engine."""
    path = memory.texts.files.path(load.PROJECT + ("" if content == "memories" else ".history"))
    options: dict[str, Any] = {} if content == "memories" else {"kinds": ["entry"], "agent_id": "bench"}
    connection = sqlite3.connect(path)
    queries = _queries(connection)
    memory.embeds_for = 0.0
    memory.recall(queries[0], **options)
    timings = [_time(lambda: memory.recall(query, **options)) for query in queries]  # noqa: B023 (called at once)
    stems = [memory.texts.stemmer.stems(query.removeprefix(_PREFIX)) for query in queries]
    text = "SELECT rowid FROM text WHERE text MATCH ? ORDER BY rank LIMIT 5"
    words = cycle(" OR ".join(f'"{stem}"' for _, stem in pairs) for pairs in stems)
    repeated_queries = cycle(queries)
    sides = {
        "ours": lambda: memory.recall(next(repeated_queries), **options),
        "bare": lambda: connection.execute(text, (next(words),)).fetchall(),
    }
    times = time_sides(sides, rounds, calls=10)
    connection.close()
    return {
        "ms": [ms for ms, _ in timings],
        "cpu_ms": [ms for _, ms in timings],
        "resident": harness.resident_bytes() / 1e6,
        **times,
    }


_PREFIX = "what did we say about "


def _queries(connection: sqlite3.Connection) -> list[str]:
    random = Random(7)
    rows = connection.execute("SELECT content FROM passage ORDER BY number")
    texts: Sequence[list[str]] = random.sample([row[0].split("\n")[0].split() for row in rows], QUERIES)
    return [_PREFIX + " ".join(random.sample(text, min(len(text), random.choice((2, 3, 5))))) for text in texts]


def _time(run: Callable[[], object]) -> tuple[float, float]:
    """Return the milliseconds of wall-clock time and of CPU time."""
    start, cpu_seconds = perf_counter(), process_time()
    run()
    return (perf_counter() - start) * 1000, (process_time() - cpu_seconds) * 1000


if __name__ == "__main__":
    harness.main(__spec__.name, rows)
