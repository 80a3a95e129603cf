"""What one durable, judged intent costs, with 100 and with 10,000 memories, beside the pipeline read literally.

    .venv/bin/python bench/write.py [--json FILE] [--rounds 15] [--sizes 100 1000 10000]

Ours and the naive pipeline (an rdflib graph, pyshacl over all of it, the whole file rewritten) run in turn in one
process, so that a machine whose speed drifts drifts for both.  Figures are medians of rounds; a ratio is taken round by
round and given with its spread.  The naive side is measured as far as it goes in a minute, and says so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

import pyshacl
import rdflib

import jidomem
from jidomem import resources
from jidomem.errors import JidomemError
from jidomem.terms import line

BATCH = 10  # submits timed together in one round
KINDS = ("fact", "task", "error", "decision", "lesson")


def intent(number: int, label: str) -> dict[str, object]:
    """One of five kinds, about one of 97 files, with a text of its own; every tenth decision supersedes nothing."""
    kind = KINDS[number % len(KINDS)]
    return {
        "type": kind,
        "summary": f"{label} {number}: what we learnt of module {number % 97} while doing {number * 7919 % 10007}",
        "rationale": "measured beside the alternative" if kind == "decision" else None,
        "detailed_explanation": "The build was slow, the cache was cold, and the third try told us why. " * 2,
        "applies_to_project": "bench",
        "asserted_by": f"agent-{number % 5}",
        "asserted_in": f"session-{number // 50}",
        "confidence": ("low", "medium", "high")[number % 3],
        "about": [f"src/module_{number % 97}.py"],
        "topic": f"{label} topic {number}" if kind in ("decision", "fact") else None,
    }


class Ours:
    """A memory root of a given size, submitted to one intent at a time."""

    def __init__(self, folder: Path, size: int) -> None:
        self.size = size
        self.memory = jidomem.open(folder / f"ours-{size}")
        refused = [
            outcome
            for outcome in self.memory.writer.submit_many("bench", (intent(n, "seed") for n in range(size)))
            if isinstance(outcome, JidomemError)
        ]
        assert not refused, refused[0]
        self.next = size

    def submit(self) -> None:
        self.memory.writer.submit_intent("bench", intent(self.next, "single"))
        self.next += 1


class Naive:
    """The seed's pipeline read literally: parse, add, validate everything, serialise everything, replace the file."""

    def __init__(self, folder: Path, source: Ours) -> None:
        self.path = folder / f"naive-{source.size}.ttl"
        self.graph = rdflib.Graph()
        rows = source.memory.index.triples("https://jido.ai/projects/bench/graphs/long-term-context")
        self.graph.parse(data="\n".join(map(line, rows)), format="nt")
        self.shapes, self.ontology = rdflib.Graph(), rdflib.Graph()
        for path in resources.shapes():
            self.shapes.parse(path)
        for path in resources.ontology():
            self.ontology.parse(path)
        self.next = 0

    def submit(self) -> None:
        jido = rdflib.Namespace("https://jido.ai/ontology#")
        item = rdflib.URIRef(f"https://jido.ai/memory/naive-{self.next}")
        self.next += 1
        some = next(self.graph.subjects(rdflib.RDF.type, jido.Fact))
        for _, predicate, value in list(self.graph.triples((some, None, None))):
            self.graph.add((item, predicate, value))
        pyshacl.validate(self.graph, shacl_graph=self.shapes, ont_graph=self.ontology)
        temporary = self.path.with_suffix(".tmp")
        self.graph.serialize(temporary, format="turtle")
        os.replace(temporary, self.path)


def timed(run, times: int) -> float:
    """Milliseconds of one call, over *times* calls."""
    start = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - start) / times * 1000


def fsync_cost(folder: Path) -> float:
    """Milliseconds of write, fsync, rename, fsync of the folder for 2 KB: what durability itself costs here."""

    def once() -> None:
        with open(folder / "probe.tmp", "wb") as file:
            file.write(b"x" * 2048)
            file.flush()
            os.fsync(file.fileno())
        os.replace(folder / "probe.tmp", folder / "probe")
        handle = os.open(folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)

    return timed(once, 50)


def spread(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--naive-seconds", type=float, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        report = run(Path(name), options.sizes, options.rounds, options.naive_seconds)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")


def run(folder: Path, sizes: list[int], rounds: int, naive_seconds: float) -> dict[str, object]:
    start = time.perf_counter()
    ours = {size: Ours(folder, size) for size in sizes}
    seeding = sum(sizes) / (time.perf_counter() - start)
    for memory in ours.values():
        timed(memory.submit, BATCH)  # warm
    times: dict[int, list[float]] = {size: [] for size in sizes}
    raw = []
    for _ in range(rounds):
        raw.append(fsync_cost(folder))
        for size, memory in ours.items():
            times[size].append(timed(memory.submit, BATCH))
    print(f"durability alone (write, fsync, rename, fsync): {spread(raw)} ms")
    print(f"batched, validated, conflict-judged, durable: {seeding:.0f} intents/s")
    first = sizes[0]
    ratios = {size: [b / a for a, b in zip(times[first], times[size], strict=True)] for size in sizes}
    for size in sizes:
        print(
            f"ours   {size:>7} memories: {spread(times[size])} ms an intent, {spread(ratios[size])} x that at {first}"
        )
    naive = {}
    deadline = time.perf_counter() + naive_seconds
    for size in sizes:
        if time.perf_counter() > deadline:
            print(f"naive  {size:>7} memories: not measured, the minute was up")
            continue
        pipeline = Naive(folder, ours[size])
        found: list[float] = []
        while not found or (len(found) < 3 and time.perf_counter() < deadline):
            found.append(timed(pipeline.submit, 1) / timed(ours[size].submit, BATCH))
        naive[size] = found
        print(f"naive  {size:>7} memories: {spread(found)} x ours, {len(found)} run(s)")
    return {
        "commit": subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False
        ).stdout.strip(),
        "machine": {"python": platform.python_version(), "cpus": os.cpu_count(), "system": platform.platform()},
        "fsync_ms": raw,
        "batched_intents_per_second": seeding,
        "ours_ms": times,
        "ours_ratio_to_smallest": ratios,
        "naive_ratio_to_ours": naive,
    }


if __name__ == "__main__":
    main()
