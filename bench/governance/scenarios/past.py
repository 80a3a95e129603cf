"""The past: a bulk of bad writes taken back, what was known at a moment, and where an entry comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

from bench.governance.figures import Measure, Measured, Size
from bench.governance.process import Open, opened
from bench.governance.system import Fact, Origin, Unsupported, now

RESTORED = Measure(
    "undo", "topics that are as they were at the moment before a bulk of bad writes", "of those touched", "more"
)
EXPLAINED = Measure(
    "undo", "bad writes of which who wrote them and why they ended can still be told", "of the bad", "more"
)
AS_OF = Measure("as-of", "questions for one topic at a past moment that are answered right", "of the questions", "more")
COMPLETE = Measure(
    "provenance",
    "questions for the who, when, session and source of an entry, answered right",
    "of the questions",
    "more",
)
REPLACED = Measure(
    "provenance", "entries of which the text they replaced can be told", "of those that replaced one", "more"
)
GAP = 0.005  # seconds between a write and a moment that is asked about
SECOND = timedelta(seconds=1)  # a clock may count in seconds


def undo(open_: Open, folder: Path, size: Size) -> Iterator[Measured]:
    """A bulk that replaces every second fact and adds as many bad ones; then back to the moment before it."""
    good = [Fact(f"step {n} is safe", f"step {n}") for n in range(size.facts)]
    bad = [Fact(f"import {n} is wrong", f"import {n}", agent="importer", session="s-2") for n in range(size.facts)]
    with opened(open_, folder) as system:
        kept = [system.keep(fact).id for fact in good]
        before = _by_topic(system)
        moment = _moment()
        ids = [system.keep(fact).id for fact in bad]
        for n in range(0, size.facts, 2):
            system.replace(kept[n], Fact(f"step {n} is void", f"step {n}", agent="importer", session="s-2"))
        system.undo_to(moment)
    with opened(open_, folder) as system:
        after = _by_topic(system)
        touched = [f"import {n}" for n in range(size.facts)] + [f"step {n}" for n in range(0, size.facts, 2)]
        right = sum(after[topic] == before[topic] for topic in touched)
        counts = {"untouched that changed": sum(after[fact.topic] != before[fact.topic] for fact in good[1::2])}
        yield Measured(RESTORED, [right], [len(touched)], counts)
        told = [(_answer_of(system, "explain", entry), _answer_of(system, "ended", entry)) for entry in ids]
    yield Measured(
        EXPLAINED, [sum(bool(origin and origin.who == "importer" and why) for origin, why in told)], [len(bad)]
    )


def _by_topic(system: Any) -> dict[str, list[str]]:
    """Return what is active, by the two words it begins with."""
    found = defaultdict[str, list[str]](list)
    for entry in system.in_force():
        found[" ".join(entry.text.split()[:2])].append(entry.text)
    return found


def as_of(open_: Open, folder: Path, size: Size) -> Iterator[Measured]:
    """Topics that change three times each, in a drawn order; after each change all of them are asked for, later."""
    steps = [n for n in range(size.facts // 2) for _ in range(3)]
    Random(size.seed).shuffle(steps)
    known: dict[int, str] = {}
    ids: dict[int, str] = {}
    moments: list[tuple[datetime, dict[int, str]]] = []
    with opened(open_, folder) as system:
        for number, topic in enumerate(steps):
            fact = Fact(f"limit {topic} is {number}", f"limit {topic}", session=f"s-{number}")
            ids[topic] = (system.replace(ids[topic], fact) if topic in ids else system.keep(fact)).id
            known[topic] = fact.text
            moments.append((_moment(), dict(known)))
    topics = sorted(known)
    right = 0
    with opened(open_, folder) as system:
        for moment, then in moments:
            told = [entry.text for entry in system.as_of(moment)]
            given = {n: [text for text in told if text.startswith(f"limit {n} ")] for n in topics}
            right += sum(given[n] == ([then[n]] if n in then else []) for n in topics)
    yield Measured(AS_OF, [right], [len(moments) * len(topics)], {"moments": len(moments), "topics": len(topics)})


@dataclass(frozen=True, slots=True)
class _Written:
    fact: Fact
    replaced: str | None
    earliest: datetime
    latest: datetime


def provenance(open_: Open, folder: Path, size: Size) -> Iterator[Measured]:
    """Facts of several agents, sessions and sources, every second one replaced by another agent; all restarted."""
    written: dict[str, _Written] = {}
    cannot: Unsupported | None = None
    with opened(open_, folder) as system:
        for n in range(size.facts):
            fact = Fact(f"owner {n} is team {n}", f"owner {n}", f"agent-{n % 3}", f"s-{n % 4}", f"ticket {n}")
            begun = now()
            entry, replaced = system.keep(fact).id, None
            if n % 2:
                after = Fact(f"owner {n} is crew {n}", f"owner {n}", "editor", "s-9", f"letter {n}")
                begun = now()
                try:
                    entry, replaced, fact = system.replace(entry, after).id, fact.text, after
                except Unsupported as error:  # where it comes from may be told without it
                    cannot = error
            written[entry] = _Written(fact, replaced, begun, now())
    with opened(open_, folder) as system:
        try:
            yield _complete(system, written)
        except Unsupported as error:
            yield Measured(COMPLETE, unsupported=str(error))
        if cannot:
            raise cannot
        told = {entry: _answer_of(system, "replaced", entry) for entry, each in written.items() if each.replaced}
    yield Measured(REPLACED, [sum(text == written[entry].replaced for entry, text in told.items())], [len(told)])


def _complete(system: Any, written: Mapping[str, _Written]) -> Measured:
    answers = defaultdict[str, list[bool]](list)
    for entry, each in written.items():
        told = _answer_of(system, "explain", entry) or Origin()
        when = told.when and (told.when if told.when.tzinfo else told.when.replace(tzinfo=UTC))
        answers["who"].append(told.who == each.fact.agent)
        answers["when"].append(when is not None and each.earliest - SECOND <= when <= each.latest + SECOND)
        answers["session"].append(told.session == each.fact.session)
        answers["source"].append(told.source == each.fact.source)
    counts = {question: f"{sum(right)} of {len(right)}" for question, right in answers.items()}
    right = [each for values in answers.values() for each in values]
    return Measured(COMPLETE, [sum(right)], [len(right)], counts)


def _answer_of(system: Any, call: str, entry: str) -> Any:
    """Return what is told of *entry*; nothing, where the system fails to."""
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
