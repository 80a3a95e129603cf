"""What one durable, judged intent costs at several sizes, many at once and from many threads, and streamed.

A single submit is measured beside write + fsync + rename + fsync of 2 KB, in turn; at each power of ten of memories, so
that it shows whether it stays flat.  The look-up of similar memories is measured in processor time beside the same
submit without it.  The pipeline read literally (an rdflib graph, pyshacl over all of it, the whole
file rewritten) is measured up to 1,000 memories: beyond that one intent takes minutes.
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
from bench import frame, generate, load
from bench.frame import Options, Row, Spread, in_turn, seconds, short
from bench.journal import four_calls
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
NAIVE = 1_000  # memories, at most
COMPARED = 10_000  # memories, at most, of a root whose texts are embedded
#: The kinds of which similar memories are looked up, or not.
FAMILIES = sorted({vocab.family(kind) for kind in vocab.CLASS_OF_TYPE} - {"deleted_marker"})


def rows(options: Options) -> Iterator[Row]:
    """Single, batched, threaded and streamed writes; then the naive pipeline beside ours."""
    sizes = [size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= options.memories]
    raw = four_calls(options.folder / "raw")
    found: dict[int, list[float]] = {}
    for size in sizes:
        with jidomem.open(options.copy(size)) as memory:
            memory.texts.read(Stream(load.PROJECT), lambda file: None)  # else it is built beside the first writes
            coming = islice(generate.intents(10**9, project=load.PROJECT), size, None)
            sides = {
                "submit": lambda: _submit(memory, next(coming)),  # noqa: B023
                "raw": lambda: raw(b"x" * 2048),
                "refused": lambda: _refused(memory),
            }
            times = in_turn(sides, options.rounds, CALLS)
            found[size] = times["submit"]
            yield _single(size, times)
            refused = Spread.of([each * 1000 for each in times["refused"]])
            ratio = Spread.ratio(times["refused"], times["submit"])
            yield Row(f"refusal of an unknown memory, {size:,} memories", "-", f"{refused} ms", f"{ratio} x a submit")
            if size == sizes[-1]:
                yield from _many(memory, coming, options)
    if len(sizes) > 1:
        flat = Spread.ratio(found[sizes[-1]], found[sizes[0]])
        beside = f"{flat} x the same at {sizes[0]:,}"
        yield Row(f"single submit at {sizes[-1]:,} memories", "flat", "-", beside, figures={"s": found})
    yield from _compared(options)
    yield _streamed(options)
    yield _naive(options)


def _submit(memory: Jidomem, intent: dict[str, Any]) -> None:
    memory.writer.submit_intent(load.PROJECT, intent)


def _refused(memory: Jidomem) -> None:
    """Submit a fact that supersedes a memory with a misspelt id."""
    try:
        _submit(memory, {**next(_facts()), "supersedes": [f"{BASE}memory/019e0000-0000-7000-8000-00000000000x"]})
    except IntentRefused:
        return
    raise AssertionError("a fact that supersedes an unknown memory was accepted")


def _single(size: int, times: dict[str, list[float]]) -> Row:
    ratio, middle = Spread.ratio(times["submit"], times["raw"]), Spread.of([each * 1000 for each in times["submit"]])
    beside = f"{ratio} x write + fsync + rename + fsync"
    goal = "at most 2 x the four calls"
    return Row(f"single submit, {size:,} memories", goal, f"{middle} ms", beside, ratio.middle <= 2, {"s": times})


def _compared(options: Options) -> Iterator[Row]:
    """Processor time of a submit whose receipt names similar memories, by words and with vectors, and without."""
    size = min(options.memories, 100 if options.quick else COMPARED)
    sides = {"off": None, "by words": None, "with vectors": LocalEmbedder()}
    with ExitStack() as stack:
        submits, batches = {}, {}
        for name, embedder in sides.items():
            root = options.copy(size)
            treatment = "off" if name == "off" else "ask"
            table = "".join(f'{family} = "{treatment}"\n' for family in FAMILIES)
            (root / "config.toml").write_text(f"[on_similar]\n{table}", "utf-8")
            memory = stack.enter_context(jidomem.open(root, embedder=embedder))
            memory.similar_within = 60.0
            memory.texts.read(Stream(load.PROJECT), lambda file: None)  # a recall would embed in the background
            if memory.embedding is not None:
                memory.embedding.embed(load.PROJECT)
            coming = islice(generate.intents(10**9, project=load.PROJECT), size, None)
            submits[name] = partial(_processor_time, partial(_submit_next, memory, coming))
            batches[name] = partial(_processor_time, partial(_submit_batch, memory, coming))
        single: dict[str, list[float]] = {name: [] for name in sides}
        batch: dict[str, list[float]] = {name: [] for name in sides}
        for runs in (submits, batches):
            for run in runs.values():
                run()
        for times, runs, rounds in ((single, submits, 20 * options.rounds), (batch, batches, options.rounds)):
            for number in range(rounds):
                for name in list(sides)[:: -1 if number % 2 else 1]:
                    times[name].append(runs[name]())
    for name in ("by words", "with vectors"):
        middle = median(single[name])
        yield Row(
            f"single submit with similar memories {name}, {size:,} memories", "at most 6 ms more",
            f"{Spread.of([1000 * each for each in single[name]])} ms of the processor",
            f"{short(1000 * (middle - median(single['off'])))} ms more than without",
            middle - median(single["off"]) <= 0.006, {"s": single},
        )  # fmt: skip
        ratio = Spread.ratio(batch[name], batch["off"])
        what = f"{BATCH} intents at once, looked up {name}"
        yield Row(
            what, "at most 1.25 x", f"{ratio} x those not looked up", met=ratio.middle <= 1.25, figures={"s": batch}
        )


def _processor_time(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _submit_next(memory: Jidomem, coming: Iterator[dict[str, Any]]) -> None:
    _submit(memory, next(coming))


def _submit_batch(memory: Jidomem, coming: Iterator[dict[str, Any]]) -> None:
    memory.writer.submit_many(load.PROJECT, [*islice(coming, BATCH)])


def _many(memory: Jidomem, coming: Iterator[dict[str, Any]], options: Options) -> Iterator[Row]:
    """Many at once from one thread, and single ones from many threads."""

    def batched(some: Sequence[dict[str, Any]]) -> None:
        refused = [out for out in memory.writer.submit_many(load.PROJECT, some) if isinstance(out, JidomemError)]
        assert not refused, refused[0]

    def threaded(some: Sequence[dict[str, Any]]) -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            assert len(list(pool.map(lambda intent: _submit(memory, intent), some))) == len(some)

    facts = _facts()
    by_threads = (f"by {THREADS} threads", threaded, facts, 200)
    for what, run, source, number in (("at once", batched, coming, AT_ONCE), by_threads):
        rates = []
        for _ in range(options.rounds):
            some = list(islice(source, number))
            rates.append(number / seconds(lambda: run(some)))  # noqa: B023
        rate = Spread.of(rates)
        goal = "5,000/s" if run is batched else "-"
        measured = f"{short(rate.middle)}/s ({short(rate.low)}-{short(rate.high)})"
        met = rate.middle >= 5_000 if run is batched else None
        yield Row(f"{number:,} intents {what}", goal, measured, met=met, figures={"per_s": rates})


def _facts() -> Iterator[dict[str, Any]]:
    """Facts that name no other memory, so that threads may keep them in any order."""
    for number in count():
        yield {
            "type": "fact", "summary": f"module {number % 97} was slow for the {number}th time", "confidence": "high",
            "applies_to_project": load.PROJECT, "asserted_by": f"agent-{number % 5}", "asserted_in": "s-1",
            "about": [f"src/module_{number % 97}.py"], "topic": f"slowness {number}",
        }  # fmt: skip


def _streamed(options: Options) -> Row:
    """How much a process grows that streams so many intents through `submit_many`, in a process of its own."""
    number = min(options.memories, 2_000 if options.quick else options.memories)
    command = [sys.executable, "-m", "bench.write", "--stream", str(number), str(options.folder / "stream")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, rate = map(float, done.stdout.split())
    what, measured = f"{number:,} intents streamed", f"{short(grown)} MB more, {short(rate)}/s"
    return Row(what, "at most 200 MB more for 1,000,000", measured, met=grown <= 200, figures={"mb": grown})


def _stream(number: int, root: Path) -> None:
    """Print by how many MB this process grew, and intents a second, for *number* intents after the first thousand."""
    with jidomem.open(root) as memory:
        outcomes = memory.writer.submit_many(load.PROJECT, generate.intents(number + 1_000, project=load.PROJECT))
        refused = sum(isinstance(outcome, JidomemError) for outcome in islice(outcomes, 1_000))
        before = _largest()

        def rest() -> None:
            nonlocal refused
            refused += sum(isinstance(outcome, JidomemError) for outcome in outcomes)

        rate = number / seconds(rest)
        assert not refused, refused
        print((_largest() - before) / 1024, rate)


def _largest() -> int:
    """The most memory this process has held, in kilobytes; getrusage would begin with that of its parent."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found, "measured on Linux only"
    return int(found[1])


class Naive:
    """The pipeline read literally: parse, add, validate everything, serialise everything, replace the file."""

    def __init__(self, path: Path, memory: Jidomem) -> None:
        self.path, self.graph = path, rdflib.Graph()
        held = memory.index.triples(Stream(load.PROJECT).graph)
        self.graph.parse(data="\n".join(map(ntriples_line, held)), format="nt")
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
        some = next(self.graph.subjects(rdflib.RDF.type, fact))
        for _, predicate, value in list(self.graph.triples((some, None, None))):
            self.graph.add((item, predicate, value))
        pyshacl.validate(self.graph, shacl_graph=self.shapes, ont_graph=self.ontology)
        temporary = self.path.with_suffix(".tmp")
        self.graph.serialize(temporary, format="turtle")
        os.replace(temporary, self.path)


def _naive(options: Options) -> Row:
    size = 100 if options.quick else min(NAIVE, options.memories)
    with jidomem.open(options.copy(size)) as memory:
        memory.catch_up(load.PROJECT)
        pipeline = Naive(options.folder / "naive.ttl", memory)
        coming = islice(generate.intents(10**9, project=load.PROJECT), size, None)
        times = {"naive": list[float](), "ours": list[float]()}
        for _ in range(3):
            times["naive"].append(seconds(pipeline.submit))
            times["ours"].append(seconds(lambda: _submit(memory, next(coming)), CALLS))
    ratio = Spread.ratio(times["naive"], times["ours"])
    return Row(
        f"the pipeline read literally, {size:,} memories", "-", f"{Spread.of(times['naive'])} s an intent",
        f"{ratio} x ours", figures={"s": times},
    )  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--stream"]:
        _stream(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        frame.main("bench.write", rows)
