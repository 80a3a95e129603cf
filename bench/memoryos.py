"""What an agent pays to reach its tiers when they are full: to retrieve, to add a page, to transfer one, to open them.

Mid-term memory has 200 segments of 50 pages, system memory 1,000 entries, and three personas 100 facts each, all with
vectors of 384 numbers. Beside it: the same question put to a list of the same pages, each compared by the same score.
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
from bench import frame
from bench.frame import Options, Row, Spread, in_turn, percentile
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

SEGMENTS, PAGES, NUMBERS, ENTRIES, PERSONAS, FACTS = 200, 50, 384, 1_000, 3, 100
GOAL_MS = 20
QUESTION = "the indexing of the disk"
WORDS = [
    f"{one}{other}" for one in ("index", "disk", "lunch", "release", "test") for other in ("", "ing", "er", "less")
]
START = datetime(2026, 11, 21, 8, tzinfo=UTC)


def rows(options: Options) -> Iterator[Row]:
    """Each way to reach full tiers, in milliseconds."""
    chance, numbers = random.Random(7), count()
    segments = 20 if options.quick else SEGMENTS
    root = Path(tempfile.mkdtemp(dir=options.folder)) / "root"
    with _opened(root) as memory:
        ada = _agent(memory)
        ada._moves.storage.update(lambda _: Step(full(chance, segments)))
        ada._moves.system.update(lambda _: Step(shared(chance)))
        ada.add("a first page", "so that all of it is open")
        everything = [page for segment in ada.tiers.mtm for page in segment.pages]
        pages = [ada.add(f"page {number} about {chance.choice(WORDS)}", "yes").id for number in range(7)]

        def transferred() -> None:
            page = ada.add(f"page {next(numbers)} about {chance.choice(WORDS)}", "yes")
            ada.transfer_page_to_mtm(page.id)

        def scanned() -> None:
            question = RetrievalQuery(
                QUESTION, ada.model.calculate_embedding(QUESTION), ada.model.extract_keywords(QUESTION)
            )
            scored = [(fscore(page, question, ada.config), page.id) for page in everything]
            sorted(scored)[-7:]

        def cold() -> None:
            with _opened(root) as other:
                assert len([*_agent(other).tiers.pages()]) >= len(everything) + len(pages)

        times = in_turn(
            {
                "retrieve": lambda: ada.retrieve(QUESTION, visiting=False),
                "retrieve, and warm what was found": lambda: ada.retrieve(QUESTION),
                "add a page": lambda: ada.add(f"page {next(numbers)} about {chance.choice(WORDS)}", "yes"),
                "add a page and transfer it": transferred,
                "open the tiers": cold,
                "a list, each page compared": scanned,
            },
            options.rounds,
        )
    for name, found in times.items():
        ms, beside = Spread.of([1e3 * each for each in found]), Spread.ratio(found, times["a list, each page compared"])
        is_goal = name == "retrieve"
        p50 = 1e3 * percentile(found, 50)
        yield Row(
            f"{name}, {segments} segments of {PAGES}",
            f"p50 {GOAL_MS} ms" if is_goal else "-",
            f"{ms} ms",
            f"{beside} x a list",
            p50 <= GOAL_MS if is_goal else None,
            {"s": found},
        )


def full(chance: random.Random, segments: int) -> Tiers:
    """The tiers of an agent with no room left in mid-term memory."""
    mtm = []
    for number in range(segments):
        name, at = f"s{number:03}", START + timedelta(minutes=number)
        pages = tuple(_page(chance, f"p{number:03}-{each:02}", name, at) for each in range(PAGES))
        words = frozenset(chance.sample(WORDS, 8))
        mtm.append(DialogueSegment(name, "ada", " ".join(words), at, at, vector(chance), words, pages=pages))
    personas = [
        ObjectPersona(
            "ada", "user", f"u{number}", {}, tuple(_fact(chance, f"f{number}-{each}") for each in range(FACTS))
        )
        for number in range(PERSONAS)
    ]
    return Tiers("ada", 1, mtm=tuple(mtm), personas=tuple(personas))


def shared(chance: random.Random) -> SystemMemory:
    """System memory with no room left."""
    return SystemMemory(1, tuple(_entry(chance, f"e{number}") for number in range(ENTRIES)))


def vector(chance: random.Random) -> tuple[float, ...]:
    """A vector such as models give: of length 1, in numbers of four bytes."""
    found = [chance.gauss(0, 1) for _ in range(NUMBERS)]
    length = math.hypot(*found)
    return tuple(array("f", [number / length for number in found]))


def _page(chance: random.Random, name: str, segment: str, at: datetime) -> DialoguePage:
    words = frozenset(chance.sample(WORDS, 5))
    said = f"What about {' and '.join(words)} in this case?"
    return DialoguePage(name, "ada", said, said * 3, at, said, None, segment, vector(chance), words, analysed=True)


def _fact(chance: random.Random, name: str) -> KnowledgeEntry:
    text = f"likes {' and '.join(chance.sample(WORDS, 3))}"
    return KnowledgeEntry(name, f"{text} {name}", START, embedding=vector(chance), importance=0.1)


def _entry(chance: random.Random, name: str) -> SystemEntry:
    return SystemEntry(name, f"use {' '.join(chance.sample(WORDS, 3))} {name}", "ada", 0.9, START, vector(chance))


def _opened(root: Path) -> jidomem.Jidomem:
    return jidomem.open(root, project="bench", agent="ada")


def _agent(memory: jidomem.Jidomem) -> MemoryOS:
    policy = TierPolicy(MemoryOSConfig(stm_capacity=1_000))
    return memory.os(model=OfflineModel(HashedStems(NUMBERS)), policy=policy, work="queued")


if __name__ == "__main__":
    frame.main(__spec__.name, rows)
