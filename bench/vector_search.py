"""The vectors nearest to a query: time and recall of our search, beside an exact search by numpy and other libraries.

    python -m bench.vector_search [--memories 100000] [--json FILE]

The vectors are generated: 384 dimensions, in clusters of 50, as sentences on one subject are.  The exact search runs
over the same vectors in float32; usearch (f16), hnswlib and sqlite-vec are measured if they are installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from sqlite3 import Connection
from statistics import mean, median

import numpy as np
from numpy.typing import NDArray

from bench import harness
from bench.harness import Options, Row, Spread, rounded, time_calls, time_sides
from jidomem.index.vector_search import VectorSet, encode

SIZES, DIMENSIONS, QUERIES, LIMIT = (1_000, 100_000, 1_000_000), 384, 50, 10
GOAL_MS, GOAL_RECALL = 5, 0.95
Vectors = NDArray[np.float32]
Search = Callable[[Vectors], list[int]]


def rows(options: Options) -> Iterator[Row]:
    """Yield rows for each of SIZES up to *options.memories* vectors."""
    for size in SIZES:
        if size <= options.memories:
            yield from _rows(size, options)


def _rows(size: int, options: Options) -> Iterator[Row]:
    vectors = _generate(size)
    random = np.random.default_rng(1)
    queries = _normalised(vectors[random.integers(0, size, QUERIES)] + random.normal(0, 0.02, (QUERIES, DIMENSIONS)))
    index = VectorSet(DIMENSIONS)
    seconds = time_calls(lambda: _add_all(index, vectors))
    exact = [_exact(vectors, query) for query in queries]

    def ours(query: Vectors) -> list[int]:
        return [number for number, _ in index.nearest(query, LIMIT)]

    def exact_search(query: Vectors) -> list[int]:
        return _exact(vectors, query)

    sides = {"ours": _search_all(ours, queries), "exact": _search_all(exact_search, queries)}
    times = time_sides(sides, options.rounds)
    ms = [value / QUERIES * 1000 for value in times["ours"]]
    recall = _recall(ours, queries, exact)
    megabytes = rounded(size * (DIMENSIONS + DIMENSIONS // 8 + 12) / 1e6)
    ratio = Spread.ratio(times["exact"], times["ours"])
    has_goal = size <= 100_000
    yield Row(
        f"the {LIMIT} nearest of {size:,} vectors",
        f"{GOAL_MS} ms, recall {GOAL_RECALL}" if has_goal else "-",
        f"{rounded(median(ms))} ms, recall {recall:.3f}; {megabytes} MB",
        f"exact float32: {ratio} x the time, {rounded(vectors.nbytes / 1e6)} MB",
        (median(ms) <= GOAL_MS and recall >= GOAL_RECALL) if has_goal else None,
        {"ms": ms, **times},
    )
    yield Row(f"add {size:,} vectors", "-", f"{rounded(size / seconds)} a second")
    for name, build in (("usearch", _usearch), ("hnswlib", _hnswlib), ("sqlite_vec", _sqlite_vec)):
        if find_spec(name) and has_goal and (name != "sqlite_vec" or hasattr(Connection, "enable_load_extension")):
            yield _library_row(name, build, vectors, queries, exact)


def _library_row(
    name: str,
    build: Callable[[Vectors], tuple[Search, str]],
    vectors: Vectors,
    queries: Vectors,
    exact: list[list[int]],
) -> Row:
    indexes: list[tuple[Search, str]] = []
    seconds = time_calls(lambda: indexes.append(build(vectors)))
    search, size = indexes[0]
    milliseconds = [time_calls(lambda: search(query)) * 1000 for query in queries]  # noqa: B023 (called at once)
    measured = f"{rounded(median(milliseconds))} ms, recall {_recall(search, queries, exact):.3f}; {size}"
    return Row(f"the same by {name}", "-", measured, f"built in {rounded(seconds)} s")


def _usearch(vectors: Vectors) -> tuple[Search, str]:
    from usearch.index import Index

    index = Index(ndim=DIMENSIONS, metric="cos", dtype="f16")
    index.add(np.arange(1, len(vectors) + 1), vectors)
    size = f"{rounded(index.memory_usage / 1e6)} MB"
    return lambda query: [int(key) for key in index.search(query, LIMIT).keys], size


def _hnswlib(vectors: Vectors) -> tuple[Search, str]:
    import hnswlib

    index = hnswlib.Index("cosine", DIMENSIONS)
    index.init_index(len(vectors), ef_construction=128, M=16)
    index.add_items(vectors, np.arange(1, len(vectors) + 1))
    index.set_ef(100)
    return lambda query: [int(key) for key in index.knn_query(query, LIMIT)[0][0]], "float32"


def _sqlite_vec(vectors: Vectors) -> tuple[Search, str]:
    import sqlite3

    import sqlite_vec

    store = sqlite3.connect(":memory:")
    store.enable_load_extension(True)
    sqlite_vec.load(store)
    store.execute(f"CREATE VIRTUAL TABLE vector USING vec0(embedding float[{DIMENSIONS}])")
    rows = ((number, vector.tobytes()) for number, vector in enumerate(vectors, start=1))
    store.executemany("INSERT INTO vector(rowid, embedding) VALUES (?, ?)", rows)
    statement = f"SELECT rowid FROM vector WHERE embedding MATCH ? ORDER BY distance LIMIT {LIMIT}"
    return lambda query: [row[0] for row in store.execute(statement, (query.tobytes(),))], "float32"


def _generate(size: int) -> Vectors:
    random = np.random.default_rng(0)
    centers = random.standard_normal((max(size // 50, 20), 64)).astype(np.float32)
    projection = random.standard_normal((64, DIMENSIONS)).astype(np.float32)
    vectors = np.empty((size, DIMENSIONS), np.float32)
    for start in range(0, size, 10_000):
        count = min(10_000, size - start)
        offsets = centers[random.integers(0, len(centers), count)] + 0.7 * random.standard_normal((count, 64))
        vectors[start : start + count] = _normalised(
            offsets @ projection + 2 * random.standard_normal((count, DIMENSIONS))
        )
    return vectors


def _add_all(index: VectorSet, vectors: Vectors) -> None:
    for start in range(0, len(vectors), 5_000):
        batch = vectors[start : start + 5_000]
        index.add(range(start + 1, start + 1 + len(batch)), [encode(vector) for vector in batch])


def _normalised(vectors: NDArray[np.floating]) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def _exact(vectors: Vectors, query: Vectors) -> list[int]:
    cosines = vectors @ query
    nearest = np.argpartition(-cosines, LIMIT)[:LIMIT]
    return [int(row) + 1 for row in nearest[np.argsort(-cosines[nearest])]]


def _search_all(search: Search, queries: Vectors) -> Callable[[], object]:
    return lambda: [search(query) for query in queries]


def _recall(search: Search, queries: Vectors, exact: list[list[int]]) -> float:
    return mean(len({*search(query)} & {*nearest}) / LIMIT for query, nearest in zip(queries, exact, strict=True))


if __name__ == "__main__":
    harness.main(__spec__.name, rows)
