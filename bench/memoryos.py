"""MemoryOS with full tiers: retrieve, add and transfer a page, open the tiers, beside a scan of a list of the pages.

    python -m bench.memoryos [--rounds N] [--quick]

Mid-term memory has 200 segments of 50 pages, system memory 1,000 entries, and three personas 100 facts each, all with
vectors of 384 dimensions. The list has the same pages, each scored by the same function for the same query.
"""

from __future__ import annotations

import math
import random
import tempfile
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import jidomem
from bench import harness
from bench.harness import Options, Row, Spread, percentile, time_sides
from jidomem.extras.memoryos.config import MemoryOSConfig
from jidomem.extras.memoryos.memory_os import MemoryOS
from jidomem.extras.memoryos.retrieval import RetrievalQuery
from jidomem.extras.memoryos.segments import TierPolicy, fscore
from jidomem.extras.memoryos.values import (
    DialoguePage,
    DialogueSegment,
    KnowledgeEntry,
    ObjectPersona,
    SystemEntry,
    SystemMemory,
    Tiers,
)
from jidomem.models.embeddings import HashedStems
from jidomem.models.offline import OfflineModel
from jidomem.records.directive import Step

SEGMENTS, PAGES, DIMENSIONS, ENTRIES, PERSONAS, FACTS = 200, 50, 384, 1_000, 3, 100
GOAL_MS = 20
QUESTION = "the indexing of the disk"
WORDS = [
    f"{stem}{other}" for stem in ("index", "disk", "lunch", "release", "test") for other in ("", "ing", "er", "less")
]
START = datetime(2026, 11, 21, 8, tzinfo=UTC)


def rows(options: Options) -> Iterator[Row]:
    """Yield a row for each operation on full tiers, in milliseconds."""
    random_source, numbers = random.Random(7), count()
    segments = 20 if options.quick else SEGMENTS
    root = Path(tempfile.mkdtemp(dir=options.folder)) / "root"
    with _open(root) as memory:
        agent = _agent(memory)
        agent._moves.storage.update(lambda _: Step(full_tiers(random_source, segments)))
        agent._moves.system.update(lambda _: Step(full_system_memory(random_source)))
        agent.add("a first page", "opens all tiers")
        all_pages = [page for segment in agent.tiers.mtm for page in segment.pages]
        pages = [agent.add(f"page {number} about {random_source.choice(WORDS)}", "yes").id for number in range(7)]

        def add_and_transfer() -> None:
            page = agent.add(f"page {next(numbers)} about {random_source.choice(WORDS)}", "yes")
            agent.transfer_page_to_mtm(page.id)

        def scan_list() -> None:
            question = RetrievalQuery(
                QUESTION, agent.model.calculate_embedding(QUESTION), agent.model.extract_keywords(QUESTION)
            )
            scored = [(fscore(page, question, agent.config), page.id) for page in all_pages]
            sorted(scored)[-7:]

        def open_tiers() -> None:
            with _open(root) as other:
                assert len([*_agent(other).tiers.pages()]) >= len(all_pages) + len(pages)

        times = time_sides(
            {
                "retrieve": lambda: agent.retrieve(QUESTION, visiting=False),
                "retrieve, and count the visit": lambda: agent.retrieve(QUESTION),
                "add a page": lambda: agent.add(f"page {next(numbers)} about {random_source.choice(WORDS)}", "yes"),
                "add a page and transfer it": add_and_transfer,
                "open the tiers": open_tiers,
                "scan of a list": scan_list,
            },
            options.rounds,
        )
    for name, seconds in times.items():
        ms, comparison = Spread.of([1e3 * each for each in seconds]), Spread.ratio(seconds, times["scan of a list"])
        has_goal = name == "retrieve"
        p50 = 1e3 * percentile(seconds, 50)
        yield Row(
            f"{name}, {segments} segments of {PAGES}",
            f"p50 {GOAL_MS} ms" if has_goal else "-",
            f"{ms} ms",
            f"{comparison} x a list",
            p50 <= GOAL_MS if has_goal else None,
            {"s": seconds},
        )


def full_tiers(random_source: random.Random, segments: int) -> Tiers:
    """Return the tiers of an agent whose mid-term memory is full."""
    mtm = []
    for number in range(segments):
        name, at = f"s{number:03}", START + timedelta(minutes=number)
        pages = tuple(_page(random_source, f"p{number:03}-{each:02}", name, at) for each in range(PAGES))
        words = frozenset(random_source.sample(WORDS, 8))
        mtm.append(DialogueSegment(name, "ada", " ".join(words), at, at, vector(random_source), words, pages=pages))
    personas = [
        ObjectPersona(
            "ada", "user", f"u{number}", {}, tuple(_fact(random_source, f"f{number}-{each}") for each in range(FACTS))
        )
        for number in range(PERSONAS)
    ]
    return Tiers("ada", 1, mtm=tuple(mtm), personas=tuple(personas))


def full_system_memory(random_source: random.Random) -> SystemMemory:
    """Return full system memory."""
    return SystemMemory(1, tuple(_entry(random_source, f"e{number}") for number in range(ENTRIES)))


def vector(random_source: random.Random) -> tuple[float, ...]:
    """Return a random vector of length 1, in single precision."""
    numbers = [random_source.gauss(0, 1) for _ in range(DIMENSIONS)]
    length = math.hypot(*numbers)
    return tuple(array("f", [number / length for number in numbers]))


def _page(random_source: random.Random, name: str, segment: str, at: datetime) -> DialoguePage:
    words = frozenset(random_source.sample(WORDS, 5))
    text = f"What about {' and '.join(words)} in this case?"
    return DialoguePage(
        name, "ada", text, text * 3, at, text, None, segment, vector(random_source), words, analysed=True
    )


def _fact(random_source: random.Random, name: str) -> KnowledgeEntry:
    text = f"likes {' and '.join(random_source.sample(WORDS, 3))}"
    return KnowledgeEntry(name, f"{text} {name}", START, embedding=vector(random_source), importance=0.1)


def _entry(random_source: random.Random, name: str) -> SystemEntry:
    return SystemEntry(
        name, f"use {' '.join(random_source.sample(WORDS, 3))} {name}", "ada", 0.9, START, vector(random_source)
    )


def _open(root: Path) -> jidomem.Jidomem:
    return jidomem.open(root, project="bench", agent="ada")


def _agent(memory: jidomem.Jidomem) -> MemoryOS:
    policy = TierPolicy(MemoryOSConfig(stm_capacity=1_000))
    return memory.os(model=OfflineModel(HashedStems(DIMENSIONS)), policy=policy, work="queued")


if __name__ == "__main__":
    harness.main(__spec__.name, rows)
