"""One durable, validated intent at each size of a root, beside write + fsync + rename + fsync; batches and threads.

    python -m bench.write [--memories N] [--rounds N]

A single submit is measured at each power of ten up to the memories of the run, which shows whether it stays flat: with
the similar memories that its receipt names, which are looked up once it is durable, and without.  The look-up is also
measured in CPU time.  A naive pipeline (an rdflib
graph, pyshacl over all of it, the whole file rewritten) is measured up to 1,000 memories: beyond that one intent takes
minutes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import Any

import pyshacl
import rdflib

import jidomem
from bench import generate, harness, load
from bench.harness import Options, Row, Spread, rounded, time_calls, time_sides
from bench.journal import durable_writer
from jidomem import Jidomem
from jidomem.base import files
from jidomem.errors import IntentRefused, JidomemError
from jidomem.journal.journal import Stream
from jidomem.models.local_embedder import LocalEmbedder
from jidomem.rdf import vocab
from jidomem.rdf.terms import ntriples_line
from jidomem.rdf.vocab import BASE

CALLS = 5  # submits timed together in one round
AT_ONCE = 1_000
THREADS = 16
BATCH = 200
NAIVE_MEMORIES = 1_000  # at most, for the naive pipeline
SIMILARITY_MEMORIES = 10_000  # at most, for a root with vectors
#: The families of types for which similar memories are looked up.
FAMILIES = sorted({vocab.family(kind) for kind in vocab.CLASS_OF_TYPE} - {"deleted_marker"})


def rows(options: Options) -> Iterator[Row]:
    """Yield single, batched, threaded and streamed writes, then the naive pipeline beside ours."""
    sizes = [size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= options.memories]
    write_durably = durable_writer(options.folder / "raw")
    seconds_by_size: dict[int, list[float]] = {}
    for size in sizes:
        root = options.copy_root(size)
        _look_up_similar(root, "off")
        with jidomem.open(options.copy_root(size)) as memory, jidomem.open(root) as without:
            for each in (memory, without):
                each.texts.read(Stream(load.PROJECT), lambda file: None)  # builds the search index before the writes
            intents, others = load.intents_after(size), load.intents_after(size)
            sides = {
                "submit": lambda: _submit(memory, next(intents)),  # noqa: B023
                "without": lambda: _submit(without, next(others)),  # noqa: B023
                "raw": lambda: write_durably(b"x" * 2048),
                "refused": lambda: _submit_refused(memory),
            }
            times = time_sides(sides, options.rounds, CALLS)
            seconds_by_size[size] = times["submit"]
            yield _single_row(f"single submit, {size:,} memories", times, "submit")
            yield _single_row(f"the same without similar memories, {size:,} memories", times, "without")
            refused = Spread.of([each * 1000 for each in times["refused"]])
            ratio = Spread.ratio(times["refused"], times["submit"])
            yield Row(f"refusal of an unknown memory, {size:,} memories", "-", f"{refused} ms", f"{ratio} x a submit")
            if size == sizes[-1]:
                yield from _concurrent_rows(memory, intents, options)
    if len(sizes) > 1:
        ratio = Spread.ratio(seconds_by_size[sizes[-1]], seconds_by_size[sizes[0]])
        comparison = f"{ratio} x the same at {sizes[0]:,}"
        yield Row(f"single submit at {sizes[-1]:,} memories", "flat", "-", comparison, figures={"s": seconds_by_size})
    yield from _similarity_rows(options)
    yield _stream_row(options)
    yield _naive_row(options)


def _submit(memory: Jidomem, intent: dict[str, Any]) -> None:
    memory.writer.submit_intent(load.PROJECT, intent)


def _submit_refused(memory: Jidomem) -> None:
    """Submit a fact that supersedes a memory with a misspelt id."""
    try:
        _submit(memory, {**next(_facts()), "supersedes": [f"{BASE}memory/019e0000-0000-7000-8000-00000000000x"]})
    except IntentRefused:
        return
    raise AssertionError("a fact that supersedes an unknown memory was accepted")


def _single_row(label: str, times: dict[str, list[float]], side: str) -> Row:
    ratio, spread = Spread.ratio(times[side], times["raw"]), Spread.of([each * 1000 for each in times[side]])
    comparison = f"{ratio} x write + fsync + rename + fsync"
    goal = "at most 2 x the four calls"
    return Row(label, goal, f"{spread} ms", comparison, ratio.median <= 2, {"s": times})


def _look_up_similar(root: Path, mode: str) -> None:
    """Configure in *root* what a write does about similar memories, for all families of types."""
    table = "".join(f'{family} = "{mode}"\n' for family in FAMILIES)
    (root / "config.toml").write_text(f"[on_similar]\n{table}", "utf-8")


def _similarity_rows(options: Options) -> Iterator[Row]:
    """Yield the CPU time of a submit whose receipt names similar memories, by words and with vectors."""
    size = min(options.memories, 100 if options.quick else SIMILARITY_MEMORIES)
    sides = {"off": None, "by words": None, "with vectors": LocalEmbedder()}
    with ExitStack() as stack:
        submits, batches = {}, {}
        for name, embedder in sides.items():
            root = options.copy_root(size)
            _look_up_similar(root, "off" if name == "off" else "ask")
            memory = stack.enter_context(jidomem.open(root, embedder=embedder))
            memory.similar_within = 60.0
            memory.texts.read(Stream(load.PROJECT), lambda file: None)  # a recall would embed in the background
            if memory.embedding is not None:
                memory.embedding.embed(load.PROJECT)
            intents = load.intents_after(size)
            submits[name] = partial(_processor_time, partial(_submit_next, memory, intents))
            batches[name] = partial(_processor_time, partial(_submit_batch, memory, intents))
        single: dict[str, list[float]] = {name: [] for name in sides}
        batch: dict[str, list[float]] = {name: [] for name in sides}
        for runs in (submits, batches):
            for run in runs.values():
                run()
        for times, runs, rounds in ((single, submits, 20 * options.rounds), (batch, batches, options.rounds)):
            for _, name in harness.alternate(sides, rounds):
                times[name].append(runs[name]())
    for name in ("by words", "with vectors"):
        extra_seconds = median(single[name]) - median(single["off"])
        yield Row(
            f"single submit with similar memories {name}, {size:,} memories", "at most 6 ms more",
            f"{Spread.of([1000 * each for each in single[name]])} ms of CPU",
            f"{rounded(1000 * extra_seconds)} ms more than without",
            extra_seconds <= 0.006, {"s": single},
        )  # fmt: skip
        ratio = Spread.ratio(batch[name], batch["off"])
        label = f"{BATCH} intents at once, looked up {name}"
        yield Row(
            label, "at most 1.25 x", f"{ratio} x those not looked up", is_met=ratio.median <= 1.25, figures={"s": batch}
        )


def _processor_time(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _submit_next(memory: Jidomem, intents: Iterator[dict[str, Any]]) -> None:
    _submit(memory, next(intents))


def _submit_batch(memory: Jidomem, intents: Iterator[dict[str, Any]]) -> None:
    memory.writer.submit_many(load.PROJECT, [*islice(intents, BATCH)])


def _concurrent_rows(memory: Jidomem, intents: Iterator[dict[str, Any]], options: Options) -> Iterator[Row]:
    """Yield the rates of batches from one thread, and of single intents from many threads."""

    submit_batch = partial(load.submit_all, memory)

    def submit_in_threads(batch: Sequence[dict[str, Any]]) -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            assert len(list(pool.map(lambda intent: _submit(memory, intent), batch))) == len(batch)

    facts = _facts()
    threaded = (f"by {THREADS} threads", submit_in_threads, facts, 200)
    for label, run, source, number in (("at once", submit_batch, intents, AT_ONCE), threaded):
        rates = []
        for _ in range(options.rounds):
            batch = list(islice(source, number))
            rates.append(number / time_calls(lambda: run(batch)))  # noqa: B023
        rate = Spread.of(rates)
        goal = "5,000/s" if run is submit_batch else "-"
        measured = f"{rate} intents/s"
        is_met = rate.median >= 5_000 if run is submit_batch else None
        yield Row(f"{number:,} intents {label}", goal, measured, is_met=is_met, figures={"per_s": rates})


def _facts() -> Iterator[dict[str, Any]]:
    """Yield facts that name no other memory, so that threads may write them in any order."""
    for number in count():
        yield {
            "type": "fact", "summary": f"module {number % 97} was slow for the {number}th time", "confidence": "high",
            "applies_to_project": load.PROJECT, "asserted_by": f"agent-{number % 5}", "asserted_in": "s-1",
            "about": [f"src/module_{number % 97}.py"], "topic": f"slowness {number}",
        }  # fmt: skip


def _stream_row(options: Options) -> Row:
    """Return the growth of a new process that streams intents through `submit_many`."""
    number = min(options.memories, 2_000 if options.quick else options.memories)
    command = [sys.executable, "-m", "bench.write", "--stream", str(number), str(options.folder / "stream")]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    growth_mb, rate = map(float, result.stdout.split())
    label, measured = f"{number:,} intents streamed", f"{rounded(growth_mb)} MB more, {rounded(rate)}/s"
    return Row(label, "at most 200 MB more for 1,000,000", measured, is_met=growth_mb <= 200, figures={"mb": growth_mb})


def _stream(number: int, root: Path) -> None:
    """Print by how many MiB this process grew, and intents a second, for *number* intents after the first thousand."""
    with jidomem.open(root) as memory:
        outcomes = memory.writer.submit_many(load.PROJECT, generate.intents(number + 1_000, project=load.PROJECT))
        refused = sum(isinstance(outcome, JidomemError) for outcome in islice(outcomes, 1_000))
        before = _peak_kb()

        def rest() -> None:
            nonlocal refused
            refused += sum(isinstance(outcome, JidomemError) for outcome in outcomes)

        rate = number / time_calls(rest)
        assert not refused, refused
        print((_peak_kb() - before) / 1024, rate)


def _peak_kb() -> int:
    """Return the peak resident memory of this process in KiB; getrusage would include that of its parent."""
    match = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert match, "measured on Linux only"
    return int(match[1])


class NaivePipeline:
    """A naive pipeline: parse, add, validate everything, serialise everything, replace the file."""

    def __init__(self, path: Path, memory: Jidomem) -> None:
        self.path, self.graph = path, rdflib.Graph()
        triples = memory.index.triples(Stream(load.PROJECT).graph)
        self.graph.parse(data="\n".join(map(ntriples_line, triples)), format="nt")
        self.shapes, self.ontology = rdflib.Graph(), rdflib.Graph()
        for file in files.shape_files():
            self.shapes.parse(file)
        for file in files.ontology_files():
            self.ontology.parse(file)
        self.next = 0

    def submit(self) -> None:
        fact = rdflib.URIRef("https://jido.ai/ontology#Fact")
        item = rdflib.URIRef(f"https://jido.ai/memory/naive-{self.next}")
        self.next += 1
        template = next(self.graph.subjects(rdflib.RDF.type, fact))
        for _, predicate, value in list(self.graph.triples((template, None, None))):
            self.graph.add((item, predicate, value))
        pyshacl.validate(self.graph, shacl_graph=self.shapes, ont_graph=self.ontology)
        temporary = self.path.with_suffix(".tmp")
        self.graph.serialize(temporary, format="turtle")
        os.replace(temporary, self.path)


def _naive_row(options: Options) -> Row:
    size = 100 if options.quick else min(NAIVE_MEMORIES, options.memories)
    with jidomem.open(options.copy_root(size)) as memory:
        memory.catch_up(load.PROJECT)
        pipeline = NaivePipeline(options.folder / "naive.ttl", memory)
        intents = load.intents_after(size)
        times = {"naive": list[float](), "ours": list[float]()}
        for _ in range(3):
            times["naive"].append(time_calls(pipeline.submit))
            times["ours"].append(time_calls(lambda: _submit(memory, next(intents)), CALLS))
    ratio = Spread.ratio(times["naive"], times["ours"])
    return Row(
        f"a naive pipeline, {size:,} memories", "-", f"{Spread.of(times['naive'])} s an intent",
        f"{ratio} x ours", figures={"s": times},
    )  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--stream"]:
        _stream(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        harness.main("bench.write", rows)
