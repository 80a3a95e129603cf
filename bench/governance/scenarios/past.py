"""The past: a rollback of bad writes, the state at a past moment, and the provenance of entries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

from bench.governance.figures import Measure, Result, Workload
from bench.governance.process import Open, opened
from bench.governance.system import Fact, Origin, Unsupported, now

RESTORED = Measure(
    "undo", "topics that are restored to the moment before a batch of bad writes", "of those touched", "more"
)
EXPLAINED = Measure("undo", "bad writes whose author and reason of ending are still available", "of the bad", "more")
AS_OF = Measure("as-of", "queries of one topic at a past moment with the correct answer", "of the queries", "more")
COMPLETE = Measure(
    "provenance",
    "queries for the agent, time, session and source of an entry, with the correct answer",
    "of the queries",
    "more",
)
REPLACED = Measure("provenance", "entries whose replaced text is available", "of those that replaced one", "more")
GAP = 0.005  # seconds between a write and a moment that is queried
SECOND = timedelta(seconds=1)  # a clock may count in seconds


def undo(open_system: Open, folder: Path, size: Workload) -> Iterator[Result]:
    """Add bad facts, replace every second good one, and roll back to the moment before."""
    good = [Fact(f"step {n} is safe", f"step {n}") for n in range(size.facts)]
    bad = [Fact(f"import {n} is wrong", f"import {n}", agent="importer", session="s-2") for n in range(size.facts)]
    with opened(open_system, folder) as system:
        ids_of_good = [system.store(fact).id for fact in good]
        before = _by_topic(system)
        moment = _moment()
        ids = [system.store(fact).id for fact in bad]
        for n in range(0, size.facts, 2):
            system.replace(ids_of_good[n], Fact(f"step {n} is void", f"step {n}", agent="importer", session="s-2"))
        system.undo_to(moment)
    with opened(open_system, folder) as system:
        after = _by_topic(system)
        touched = [f"import {n}" for n in range(size.facts)] + [f"step {n}" for n in range(0, size.facts, 2)]
        correct = sum(after[topic] == before[topic] for topic in touched)
        counts = {"untouched that changed": sum(after[fact.topic] != before[fact.topic] for fact in good[1::2])}
        yield Result(RESTORED, [correct], [len(touched)], counts)
        answers = [(_answer_of(system, "origin_of", entry), _answer_of(system, "end_reason", entry)) for entry in ids]
    yield Result(
        EXPLAINED, [sum(bool(origin and origin.agent == "importer" and why) for origin, why in answers)], [len(bad)]
    )


def _by_topic(system: Any) -> dict[str, list[str]]:
    """Return the active texts by topic: their first two words."""
    texts_by_topic = defaultdict[str, list[str]](list)
    for entry in system.active_entries():
        texts_by_topic[" ".join(entry.text.split()[:2])].append(entry.text)
    return texts_by_topic


def as_of(open_system: Open, folder: Path, size: Workload) -> Iterator[Result]:
    """Change each topic three times, in random order; later, query all of them at the moment of each change."""
    steps = [n for n in range(size.facts // 2) for _ in range(3)]
    Random(size.seed).shuffle(steps)
    current: dict[int, str] = {}
    ids: dict[int, str] = {}
    moments: list[tuple[datetime, dict[int, str]]] = []
    with opened(open_system, folder) as system:
        for number, topic in enumerate(steps):
            fact = Fact(f"limit {topic} is {number}", f"limit {topic}", session=f"s-{number}")
            ids[topic] = (system.replace(ids[topic], fact) if topic in ids else system.store(fact)).id
            current[topic] = fact.text
            moments.append((_moment(), dict(current)))
    topics = sorted(current)
    correct = 0
    with opened(open_system, folder) as system:
        for moment, expected in moments:
            answers = [entry.text for entry in system.as_of(moment)]
            texts_by_topic = {n: [text for text in answers if text.startswith(f"limit {n} ")] for n in topics}
            correct += sum(texts_by_topic[n] == ([expected[n]] if n in expected else []) for n in topics)
    yield Result(AS_OF, [correct], [len(moments) * len(topics)], {"moments": len(moments), "topics": len(topics)})


@dataclass(frozen=True, slots=True)
class _Written:
    fact: Fact
    replaced_text: str | None
    earliest: datetime
    latest: datetime


def provenance(open_system: Open, folder: Path, size: Workload) -> Iterator[Result]:
    """Store facts of several agents, sessions and sources, replace every second one, restart, and query the origins."""
    written: dict[str, _Written] = {}
    unsupported: Unsupported | None = None
    with opened(open_system, folder) as system:
        for n in range(size.facts):
            fact = Fact(f"owner {n} is team {n}", f"owner {n}", f"agent-{n % 3}", f"s-{n % 4}", f"ticket {n}")
            start = now()
            entry, replaced_text = system.store(fact).id, None
            if n % 2:
                after = Fact(f"owner {n} is crew {n}", f"owner {n}", "editor", "s-9", f"letter {n}")
                start = now()
                try:
                    entry, replaced_text, fact = system.replace(entry, after).id, fact.text, after
                except Unsupported as error:  # the provenance may be available without it
                    unsupported = error
            written[entry] = _Written(fact, replaced_text, start, now())
    with opened(open_system, folder) as system:
        try:
            yield _complete(system, written)
        except Unsupported as error:
            yield Result(COMPLETE, unsupported=str(error))
        if unsupported:
            raise unsupported
        answers = {
            entry: _answer_of(system, "replaced_text", entry) for entry, each in written.items() if each.replaced_text
        }
    yield Result(
        REPLACED, [sum(text == written[entry].replaced_text for entry, text in answers.items())], [len(answers)]
    )


def _complete(system: Any, written: Mapping[str, _Written]) -> Result:
    answers = defaultdict[str, list[bool]](list)
    for entry, each in written.items():
        origin = _answer_of(system, "origin_of", entry) or Origin()
        moment = origin.written_at
        if moment is not None and not moment.tzinfo:
            moment = moment.replace(tzinfo=UTC)
        answers["agent"].append(origin.agent == each.fact.agent)
        answers["time"].append(moment is not None and each.earliest - SECOND <= moment <= each.latest + SECOND)
        answers["session"].append(origin.session == each.fact.session)
        answers["source"].append(origin.source == each.fact.source)
    counts = {question: f"{sum(correct)} of {len(correct)}" for question, correct in answers.items()}
    correct = [each for values in answers.values() for each in values]
    return Result(COMPLETE, [sum(correct)], [len(correct)], counts)


def _answer_of(system: Any, call: str, entry: str) -> Any:
    """Return the answer of a call; None if the system fails."""
    try:
        return getattr(system, call)(entry)
    except Unsupported:
        raise
    except Exception:
        return None


def _moment() -> datetime:
    sleep(GAP)
    moment = now()
    sleep(GAP)
    return moment
