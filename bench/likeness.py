"""What it costs to find the vectors most alike to one, and how many of those that are it finds.

    python -m bench.likeness [--memories 100000] [--json FILE]

The vectors are made up: 384 numbers, in clusters of 50 as sentences about one thing are.  Beside ours stands an exact
search by numpy over the same vectors in float32, and where they are installed usearch (f16), hnswlib and sqlite-vec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from statistics import mean, median

import numpy as np
from numpy.typing import NDArray

from bench import frame
from bench.frame import Options, Row, Spread, in_turn, seconds, short
from jidomem.index.vector_search import VectorSet, encode

SIZES, DIMENSIONS, ASKED, TOP = (1_000, 100_000, 1_000_000), 384, 50, 10
GOAL_MS, GOAL = 5, 0.95
Vectors = NDArray[np.float32]
Search = Callable[[Vectors], list[int]]


def rows(options: Options) -> Iterator[Row]:
    """Rows for 1,000 vectors, 100,000 and a million, up to what was asked for."""
    for size in SIZES:
        if size <= options.memories:
            yield from _rows(size, options)


def _rows(size: int, options: Options) -> Iterator[Row]:
    vectors = _made(size)
    random = np.random.default_rng(1)
    queries = _unit(vectors[random.integers(0, size, ASKED)] + random.normal(0, 0.02, (ASKED, DIMENSIONS)))
    likeness = VectorSet(DIMENSIONS)
    elapsed = seconds(lambda: _add_all(likeness, vectors))
    exact = [_exact(vectors, one) for one in queries]

    def ours(one: Vectors) -> list[int]:
        return [number for number, _ in likeness.nearest(one, TOP)]

    def beside(one: Vectors) -> list[int]:
        return _exact(vectors, one)

    times = in_turn({"ours": _all(ours, queries), "exact": _all(beside, queries)}, options.rounds)
    ms = [value / ASKED * 1000 for value in times["ours"]]
    share = _recall(ours, queries, exact)
    megabytes = short(size * (DIMENSIONS + DIMENSIONS // 8 + 12) / 1e6)
    ratio = Spread.ratio(times["exact"], times["ours"])
    yield Row(f"the {TOP} most alike of {size:,} vectors", f"{GOAL_MS} ms, {GOAL} of them" if size <= 100_000 else "-",
              f"{short(median(ms))} ms, {share:.3f} of them; {megabytes} MB",
              f"exact float32: {ratio} x the time, {short(vectors.nbytes / 1e6)} MB",
              (median(ms) <= GOAL_MS and share >= GOAL) if size <= 100_000 else None, {"ms": ms, **times})  # fmt: skip
    yield Row(f"take in {size:,} vectors", "-", f"{short(size / elapsed)} a second")
    for name, make in (("usearch", _usearch), ("hnswlib", _hnswlib), ("sqlite_vec", _sqlite_vec)):
        if find_spec(name) and size <= 100_000:
            yield _beside(name, make, vectors, queries, exact)


def _beside(
    name: str, make: Callable[[Vectors], tuple[Search, str]], vectors: Vectors, queries: Vectors, exact: list[list[int]]
) -> Row:
    built: list[tuple[Search, str]] = []
    elapsed = seconds(lambda: built.append(make(vectors)))
    search, size = built[0]
    each = [seconds(lambda: search(one)) * 1000 for one in queries]  # noqa: B023 (called at once)
    measured = f"{short(median(each))} ms, {_recall(search, queries, exact):.3f} of them; {size}"
    return Row(f"the same by {name}", "-", measured, f"made in {short(elapsed)} s")


def _usearch(vectors: Vectors) -> tuple[Search, str]:
    from usearch.index import Index

    index = Index(ndim=DIMENSIONS, metric="cos", dtype="f16")
    index.add(np.arange(1, len(vectors) + 1), vectors)
    return lambda one: [int(key) for key in index.search(one, TOP).keys], f"{short(index.memory_usage / 1e6)} MB"


def _hnswlib(vectors: Vectors) -> tuple[Search, str]:
    import hnswlib

    index = hnswlib.Index("cosine", DIMENSIONS)
    index.init_index(len(vectors), ef_construction=128, M=16)
    index.add_items(vectors, np.arange(1, len(vectors) + 1))
    index.set_ef(100)
    return lambda one: [int(key) for key in index.knn_query(one, TOP)[0][0]], "float32"


def _sqlite_vec(vectors: Vectors) -> tuple[Search, str]:
    import sqlite3

    import sqlite_vec

    store = sqlite3.connect(":memory:")
    store.enable_load_extension(True)
    sqlite_vec.load(store)
    store.execute(f"CREATE VIRTUAL TABLE vector USING vec0(embedding float[{DIMENSIONS}])")
    every = ((number, vector.tobytes()) for number, vector in enumerate(vectors, start=1))
    store.executemany("INSERT INTO vector(rowid, embedding) VALUES (?, ?)", every)
    ask = f"SELECT rowid FROM vector WHERE embedding MATCH ? ORDER BY distance LIMIT {TOP}"
    return lambda one: [row[0] for row in store.execute(ask, (one.tobytes(),))], "float32"


def _made(size: int) -> Vectors:
    random = np.random.default_rng(0)
    middles = random.standard_normal((max(size // 50, 20), 64)).astype(np.float32)
    spread = random.standard_normal((64, DIMENSIONS)).astype(np.float32)
    vectors = np.empty((size, DIMENSIONS), np.float32)
    for start in range(0, size, 10_000):
        count = min(10_000, size - start)
        inner = middles[random.integers(0, len(middles), count)] + 0.7 * random.standard_normal((count, 64))
        vectors[start : start + count] = _unit(inner @ spread + 2 * random.standard_normal((count, DIMENSIONS)))
    return vectors


def _add_all(likeness: VectorSet, vectors: Vectors) -> None:
    for start in range(0, len(vectors), 5_000):
        part = vectors[start : start + 5_000]
        likeness.add(range(start + 1, start + 1 + len(part)), [encode(vector) for vector in part])


def _unit(vectors: NDArray[np.floating]) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def _exact(vectors: Vectors, one: Vectors) -> list[int]:
    cosines = vectors @ one
    best = np.argpartition(-cosines, TOP)[:TOP]
    return [int(row) + 1 for row in best[np.argsort(-cosines[best])]]


def _all(search: Search, queries: Vectors) -> Callable[[], object]:
    return lambda: [search(one) for one in queries]


def _recall(search: Search, queries: Vectors, exact: list[list[int]]) -> float:
    return mean(len({*search(one)} & {*best}) / TOP for one, best in zip(queries, exact, strict=True))


if __name__ == "__main__":
    frame.main(__spec__.name, rows)
