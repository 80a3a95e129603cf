"""Duplicates and contradictions: facts that are restated, and statements that disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.governance.figures import Measure, Result, Workload
from bench.governance.process import Open, opened
from bench.governance.system import Fact, Refused, Unsupported

DUPLICATES = Measure(
    "duplicates", "restatements of a stored fact that are stored as another entry", "of the restatements", "fewer"
)
CONTRADICTIONS = Measure(
    "contradictions", "pairs that disagree and were refused, flagged or listed by the system", "of those pairs", "more"
)
ALARMS = Measure("contradictions", "pairs that agree and were refused, flagged or listed", "of those pairs", "fewer")


def duplicates(open_system: Open, folder: Path, size: Workload) -> Iterator[Result]:
    """Restate each fact in four ways, after a restart."""
    facts = [
        Fact(f"service {n} listens on port {8000 + n}", f"port of service {n}", key=f"r-{n}") for n in range(size.facts)
    ]
    with opened(open_system, folder) as system:
        for fact in facts:
            system.store(fact)
    ways = {
        "the same words": lambda fact: replace(fact, key=""),
        "other case and white space": lambda fact: replace(
            fact, text="  " + fact.text.upper().replace(" ", "  "), key=""
        ),
        "another session": lambda fact: replace(fact, session="s-2", key=""),
        "the same request again": lambda fact: fact,
    }
    added: dict[str, int] = {}
    with opened(open_system, folder) as system:
        for way, restate in ways.items():
            before = len(system.active_entries())
            for fact in facts:
                _store(system, restate(fact))
            added[way] = len(system.active_entries()) - before
        present = len({_plain(entry.text) for entry in system.active_entries()} & {_plain(fact.text) for fact in facts})
    counts = {"added": added, "facts present": present, "facts": len(facts)}
    yield Result(DUPLICATES, [sum(added.values())], [len(ways) * len(facts)], counts)


def contradictions(open_system: Open, folder: Path, size: Workload) -> Iterator[Result]:
    """Store pairs of statements; count those that the system refuses, flags or lists."""
    disagree = Counter[str]()
    agree = Counter[str]()
    both_active = first_replaced = 0
    pairs = [(kind, _pair(kind, n)) for kind in (*_DISAGREE, *_AGREE) for n in range(size.facts)]
    with opened(open_system, folder) as system:
        receipts = [(_store(system, first_fact), _store(system, second_fact)) for _, (first_fact, second_fact) in pairs]
        try:
            listed = {frozenset(pair) for pair in system.disagreements()}
            unsupported = ""
        except Unsupported as error:
            listed, unsupported = set(), str(error)
        texts = {entry.text for entry in system.active_entries()}
    for (kind, (first_fact, second_fact)), (first, second) in zip(pairs, receipts, strict=True):
        is_detected = first is None or second is None or first.id in second.contradicts
        is_detected = is_detected or frozenset((first.id, second.id)) in listed
        (disagree if kind in _DISAGREE else agree)[kind] += is_detected
        both_active += kind in _DISAGREE and {first_fact.text, second_fact.text} <= texts
        first_replaced += kind in _DISAGREE and second is not None and first_fact.text not in texts
    counts = {
        "detected, by kind": {**disagree, **agree}, "pairs of each kind": size.facts,
        "disagreeing, both active": both_active, "disagreeing, first replaced": first_replaced,
    }  # fmt: skip
    unsupported = "" if any((disagree + agree).values()) else unsupported
    yield Result(CONTRADICTIONS, [disagree.total()], [len(_DISAGREE) * size.facts], counts, unsupported)
    yield Result(ALARMS, [agree.total()], [len(_AGREE) * size.facts], counts, unsupported)


_DISAGREE = ("one topic, another value", "the topic in other words, another value")
_AGREE = ("another case", "other words", "another topic", "another file")


def _pair(kind: str, n: int) -> tuple[Fact, Fact]:
    """Return two statements of that kind, on a subject of their own."""
    subject = f"{('disk', 'queue', 'cache', 'pool')[n % 4]} {kind.replace(' ', '-').replace(',', '')} {n}"
    first = Fact(f"the {subject} holds {n + 2} GiB", f"size of the {subject}")
    other = f"the {subject} holds {n + 7} GiB"
    return first, {
        "one topic, another value": replace(first, text=other),
        "the topic in other words, another value": replace(first, text=other, topic=f"how much the {subject} holds"),
        "another case": replace(first, text=first.text.upper()),
        "other words": replace(first, text=f"{n + 2} GiB is what the {subject} holds"),
        "another topic": replace(first, text=f"the {subject} is emptied at {n + 7}", topic=f"hours of the {subject}"),
        "another file": replace(first, text=other, about=f"conf/{n}.toml"),
    }[kind]


def _store(system: Any, fact: Fact) -> Any:
    """Return the stored fact; None if it was refused."""
    try:
        return system.store(fact)
    except Refused:
        return None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
