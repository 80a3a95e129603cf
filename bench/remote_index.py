"""A triple store behind a SPARQL endpoint as the index: time of each named query and rate of loading, beside our index.

    python -m bench.remote_index [--memories 6500] [--rounds 5] [--store oxigraph|virtuoso|sparql+http://...]

Loads a generated root (6,500 memories make 121,000 triples) into the store, then runs each named query in both: all
rows, a page, with inactive memories, and as of a moment halfway.  Prints triples a second of loading, and for each
query that the store answers the ratio of the times: the median of the rounds, least and greatest.  Exits with 1 if an
answer differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import jidomem
from bench.generate import intents
from jidomem import Jidomem

PROJECT = "bench"
_REPLACED = """PREFIX jido: <https://jido.ai/ontology#>
SELECT ?old ?by ?at { ?x jido:supersedes ?old . ?old jido:assertedBy ?by ; jido:recordedAt ?at } ORDER BY ?at ?old"""


def run_store(store: str) -> AbstractContextManager[str]:
    """Yield the address of a store: one that is started here, or *store* itself."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    import sparql_servers

    return {"oxigraph": sparql_servers.oxigraph, "virtuoso": sparql_servers.virtuoso}.get(
        store, lambda: nullcontext(store)
    )()


def queries_of(memory: Jidomem) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name and arguments of each named query in each form."""
    rows = memory.reader.select(PROJECT, _REPLACED)
    middle, examples = rows[len(rows) // 2], {"item": rows[0]["old"], "agent": rows[0]["by"], "since": rows[0]["at"]}
    for query in memory.playbook:
        arguments = {
            p.name: examples.get(p.name, "urn:x:y") for p in query.params if p.default is None and p.name != "project"
        }
        inactive = [{"include_inactive": True}] if query.takes("includeInactive") else []
        for form in ({}, {"limit": 50}, {"as_of": middle["at"]}, *inactive):
            yield query.name, {**arguments, **form}


def time_query(memory: Jidomem, name: str, arguments: Mapping[str, Any]) -> tuple[Any, float]:
    """Return the rows of a named query, and its seconds."""
    start = time.perf_counter()
    rows = memory.reader.ask(name, project=PROJECT, **arguments)
    return rows, time.perf_counter() - start


def loading_words(remote: Jidomem) -> str:
    """Return the rate of loading the store in words: the median of three times, least and greatest."""
    assert remote.remote is not None
    commits = (commit for stream in remote.journal.streams() for commit in remote.journal.read(stream))
    triples, rates = sum(len(commit.triples) for commit in commits), list[float]()
    for _ in range(3):
        start = time.perf_counter()
        remote.remote.rebuild()
        rates.append(triples / (time.perf_counter() - start))
    return f"{triples:,} triples, loaded at {median(rates):,.0f} a second ({min(rates):,.0f} to {max(rates):,.0f})"


def compare(
    local: Jidomem, remote: Jidomem, name: str, arguments: Mapping[str, Any], rounds: int
) -> tuple[float, bool]:
    """Print the times of a named query; return the ratio of remote to local time, and whether the rows are equal."""
    pairs = [(time_query(local, name, arguments), time_query(remote, name, arguments)) for _ in range(rounds)]
    are_equal = all(local_rows == remote_rows for (local_rows, _), (remote_rows, _) in pairs)
    ratios = sorted(remote_seconds / local_seconds for (_, local_seconds), (_, remote_seconds) in pairs)
    local_ms, remote_ms = (1000 * median(pair[side][1] for pair in pairs) for side in (0, 1))
    form = next((key for key in arguments if key in ("limit", "as_of", "include_inactive")), "all")
    spread = f"x{median(ratios):7.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}){'' if are_equal else '  DIFFERS'}"
    print(
        f"{name:28} {form:17} {len(pairs[0][0][0]):6} rows {local_ms:8.1f} ms {remote_ms:8.1f} ms {spread}", flush=True
    )
    return median(ratios), are_equal


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.remote_index", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--memories", type=int, default=6_500, metavar="N", help="size of the root (default: 6500)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="runs of each query (default: 5)")
    parser.add_argument("--store", default="oxigraph", help="oxigraph, virtuoso, or an address (default: oxigraph)")
    options = parser.parse_args()
    with (
        TemporaryDirectory() as folder,
        run_store(options.store) as url,
        jidomem.open(folder, index="") as local,
        jidomem.open(folder, index=url) as remote,
    ):
        local.writer.submit_many(PROJECT, list(intents(options.memories, project=PROJECT)))
        print(loading_words(remote))
        assert remote.remote is not None
        queries = list(queries_of(local))
        local_only = sorted({name for name, _ in queries if not remote.remote.answers(name)})
        results = [
            compare(local, remote, name, arguments, options.rounds)
            for name, arguments in queries
            if name not in local_only
        ]
    ratios, differing = sorted(ratio for ratio, _ in results), sum(not are_equal for _, are_equal in results)
    print(f"median x{median(ratios):.2f}, least x{ratios[0]:.2f}, greatest x{ratios[-1]:.2f}; {differing} differ")
    print(f"answered by the local index only: {', '.join(local_only) or 'none'}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
