"""What recall costs as a memory grows, by words and with vectors: time, CPU, resident memory, bytes, and taking all in.

    python -m bench.recall_scale [--memories 100000] [--json FILE]

Asked are memories, and as many entries, which are written here in sessions of fifty.  Queries are made of some words of
one of them each, with small words around them.  Each size is measured in a process of its own, first without an
embedder, then with the local one, where it is installed.  Beside it stands the bare engine: the same words in one
`MATCH ... ORDER BY rank` of SQLite's FTS5, on the same file.  What is shown is not logged here.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter, process_time
from typing import Any

import jidomem
from bench import frame, generate, load
from bench.frame import Options, Row, Spread, in_turn, percentile, seconds, short
from jidomem.journal.journal import Stream
from jidomem.models.local_embedder import missing
from jidomem.records.entry import Entry, WriteRequest
from jidomem.runtime.root import Jidomem

GOAL_MS, INGEST, GOAL_MB = 20, 500, 500
SIZES = (1_000, 10_000, 100_000)
QUERIES, IN_A_SESSION, AT_ONCE = 200, 50, 1_000
STREAMS = {"memories": Stream(load.PROJECT), "entries": Stream(load.PROJECT, "history")}
Figures = dict[str, Any]


def rows(options: Options) -> Iterator[Row]:
    """Rows for 1,000 memories and entries, ten and a hundred times as many, up to what was asked for."""
    for size in (size for size in SIZES if size <= options.memories):
        for what in STREAMS:
            root = options.copy(size if what == "memories" else SIZES[0])
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                for found in pool.submit(measured, str(root), what, size, options.rounds).result():
                    yield from _rows(f"{size:,} {what}", found)


def _rows(of: str, latencies: Figures) -> Iterator[Row]:
    by, ms, megabytes = latencies["by"], median(latencies["ms"]), latencies["bytes"] / 1e6
    made = f"{short(latencies['rate'])} a second, {short(latencies['cpu_rate'])} a CPU second"
    made += f" ({', '.join(f'{name} {short(took)} s' for name, took in latencies['took'].items())})"
    yield Row(f"take in {of} {by}", f"{INGEST} a second", made, met=latencies["rate"] >= INGEST, figures=latencies)
    cpu = short(median(latencies["cpu_ms"]))
    times = f"p50 {short(ms)} ms, p99 {short(percentile(latencies['ms'], 99))} ms, {cpu} ms CPU"
    beside = f"{Spread.ratio(latencies['ours'], latencies['bare'])} x bare FTS5"
    yield Row(f"recall among {of} {by}", f"p50 {GOAL_MS} ms", times, beside, ms <= GOAL_MS)
    held = f"{short(megabytes)} MB kept, {short(latencies['resident'])} MB resident"
    yield Row(f"size of {of} {by}", f"{GOAL_MB} MB", held, met=megabytes <= GOAL_MB)


def measured(root: str, what: str, size: int, rounds: int) -> list[Figures]:
    """Return what was measured in *root*, without an embedder, and with the local one."""
    found: list[Figures] = []
    for by in ("by words", "with vectors") if not missing() else ("by words",):
        os.environ["JIDOMEM_EMBEDDER"] = "none" if by == "by words" else "local"
        with jidomem.open(root, project=load.PROJECT, agent="bench") as memory:
            memory.read_log = None
            found.append(
                {"by": by, **_taken_in(memory, what, size, is_new=not found), **_query_times(memory, what, rounds)}
            )
    return found


def _taken_in(memory: Jidomem, what: str, size: int, *, is_new: bool) -> Figures:
    """Take all in, as far as it is not there: entries are written first, then come words and vectors."""
    memory.catch_up(load.PROJECT)
    stream, before = STREAMS[what], process_time()
    steps: dict[str, Callable[[], object]] = {}
    if is_new and what == "entries":
        steps["writing"] = lambda: _written(memory, size)
    if is_new:
        steps["words"] = lambda: memory.texts.read(stream, lambda file: file.mark)
    elif memory.embedding is not None:
        vectors = memory.embedding.vectors
        vectors.vector("what is read when it is first asked for")
        before = process_time()
        steps["vectors"] = lambda: all(iter(lambda: vectors.embed_next(stream), False))
    took = {name: seconds(step) for name, step in steps.items()}
    spent = process_time() - before
    kept = (memory.texts.status(stream) or {})["bytes"]
    kept += 0 if memory.embedding is None else memory.embedding.vectors.status(stream)["bytes"]
    return {"took": took, "rate": size / sum(took.values()), "cpu_rate": size / spent, "bytes": kept}


def _written(memory: Jidomem, size: int) -> None:
    every = enumerate(one["summary"] for one in generate.intents(size, project=load.PROJECT))
    while some := [*islice(every, AT_ONCE)]:
        told = ({"session": f"s-{number // IN_A_SESSION}", "position": number, "speaker": ("ana", "ben")[number % 2]}
                for number, _ in some)  # fmt: skip
        entries = [Entry(agent_id="bench", content=text, metadata=said)
                   for (_, text), said in zip(some, told, strict=True)]  # fmt: skip
        for kept in memory.entries.write_many(WriteRequest(entry=entry) for entry in entries):
            if isinstance(kept, Exception):
                raise kept


def _query_times(memory: Jidomem, what: str, rounds: int) -> Figures:
    """Ask each query once, and then in turn with the bare engine."""
    path = memory.texts.files.path(load.PROJECT + ("" if what == "memories" else ".history"))
    options: dict[str, Any] = {} if what == "memories" else {"kinds": ["entry"], "agent_id": "bench"}
    bare = sqlite3.connect(path)
    queries = _queries(bare)
    memory.embeds_for = 0.0
    memory.recall(queries[0], **options)
    each = [_timed(lambda: memory.recall(query, **options)) for query in queries]  # noqa: B023 (called at once)
    stems = [memory.texts.stemmer.stems(query.removeprefix(_BEGINNING)) for query in queries]
    text = "SELECT rowid FROM text WHERE text MATCH ? ORDER BY rank LIMIT 5"
    words = cycle(" OR ".join(f'"{stem}"' for _, stem in found) for found in stems)
    once_more = cycle(queries)
    times = in_turn({"ours": lambda: memory.recall(next(once_more), **options),
                     "bare": lambda: bare.execute(text, (next(words),)).fetchall()}, rounds, calls=10)  # fmt: skip
    bare.close()
    return {"ms": [ms for ms, _ in each], "cpu_ms": [ms for _, ms in each], "resident": _resident_mb(), **times}


_BEGINNING = "what did we say about "


def _queries(bare: sqlite3.Connection) -> list[str]:
    random = Random(7)
    said = [row[0].split("\n")[0].split() for row in bare.execute("SELECT content FROM passage ORDER BY number")]
    some: Sequence[list[str]] = random.sample(said, QUERIES)
    return [_BEGINNING + " ".join(random.sample(w, min(len(w), random.choice((2, 3, 5))))) for w in some]


def _timed(run: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds that passed, and those that a processor spent."""
    start, spent = perf_counter(), process_time()
    run()
    return (perf_counter() - start) * 1000, (process_time() - spent) * 1000


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    frame.main(__spec__.name, rows)
