"""What it costs to have a triple store behind an endpoint answer, and whether it answers as the index here does.

    python -m bench.remote_index [--memories 6500] [--rounds 5] [--store oxigraph|virtuoso|sparql+http://...]

Feeds the store with a generated memory (6,500 make 121,000 triples), asks it and the index of this process each
question of the playbook in turn: in full, as a page, with what is no longer active, and as of a moment halfway.
Exits with 1 where one answer differs. Printed are triples a second of a feeding anew, and for each question that the
store is asked the time it takes there as a multiple of the time here: the median of the rounds, and the spread.
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
_OLD = """PREFIX jido: <https://jido.ai/ontology#>
SELECT ?old ?by ?at { ?x jido:supersedes ?old . ?old jido:assertedBy ?by ; jido:recordedAt ?at } ORDER BY ?at ?old"""


def served(store: str) -> AbstractContextManager[str]:
    """The address of a store: one that is started for this, or the one named."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    import sparql_servers

    return {"oxigraph": sparql_servers.oxigraph, "virtuoso": sparql_servers.virtuoso}.get(
        store, lambda: nullcontext(store)
    )()


def queries_of(memory: Jidomem) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each question, in each of its forms."""
    rows = memory.reader.select(PROJECT, _OLD)
    half, needs = rows[len(rows) // 2], {"item": rows[0]["old"], "agent": rows[0]["by"], "since": rows[0]["at"]}
    for query in memory.playbook:
        given = {
            p.name: needs.get(p.name, "urn:x:y") for p in query.params if p.default is None and p.name != "project"
        }
        inactive = [{"include_inactive": True}] if query.takes("includeInactive") else []
        for more in ({}, {"limit": 50}, {"as_of": half["at"]}, *inactive):
            yield query.name, {**given, **more}


def timed(memory: Jidomem, name: str, given: Mapping[str, Any]) -> tuple[Any, float]:
    """The rows of a question, and how many seconds they took."""
    start = time.perf_counter()
    rows = memory.reader.ask(name, project=PROJECT, **given)
    return rows, time.perf_counter() - start


def fed(far: Jidomem) -> str:
    """How fast the store is fed anew: the median of three times, the least and the most."""
    assert far.remote is not None
    read = (commit for stream in far.journal.streams() for commit in far.journal.read(stream))
    triples, rates = sum(len(commit.triples) for commit in read), list[float]()
    for _ in range(3):
        start = time.perf_counter()
        far.remote.rebuild()
        rates.append(triples / (time.perf_counter() - start))
    return f"{triples:,} triples, fed at {median(rates):,.0f} a second ({min(rates):,.0f} to {max(rates):,.0f})"


def compared(own: Jidomem, far: Jidomem, name: str, given: Mapping[str, Any], rounds: int) -> tuple[float, bool]:
    """How many times as long a question takes there, and whether the answers are the same."""
    found = [(timed(own, name, given), timed(far, name, given)) for _ in range(rounds)]
    same = all(here[0] == there[0] for here, there in found)
    each = sorted(there[1] / here[1] for here, there in found)
    here, there = (1000 * median(pair[side][1] for pair in found) for side in (0, 1))
    form = next((key for key in given if key in ("limit", "as_of", "include_inactive")), "all")
    spread = f"x{median(each):7.2f} ({each[0]:.2f} to {each[-1]:.2f}){'' if same else '  DIFFERS'}"
    print(f"{name:28} {form:17} {len(found[0][0][0]):6} rows {here:8.1f} ms {there:8.1f} ms {spread}", flush=True)
    return median(each), same


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.remote_index", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--memories", type=int, default=6_500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", default="oxigraph")
    options = parser.parse_args()
    with (
        TemporaryDirectory() as folder,
        served(options.store) as url,
        jidomem.open(folder, index="") as own,
        jidomem.open(folder, index=url) as far,
    ):
        own.writer.submit_many(PROJECT, list(intents(options.memories, project=PROJECT)))
        print(fed(far))
        assert far.remote is not None
        every = list(queries_of(own))
        here = sorted({name for name, _ in every if not far.remote.answers(name)})
        there = [compared(own, far, name, given, options.rounds) for name, given in every if name not in here]
    ratios, differ = sorted(ratio for ratio, _ in there), sum(not same for _, same in there)
    print(f"median x{median(ratios):.2f}, least x{ratios[0]:.2f}, most x{ratios[-1]:.2f}; {differ} differ")
    print(f"not asked there: {', '.join(here) or 'none'}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
