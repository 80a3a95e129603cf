"""What is said again, and what disagrees with what was said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.governance.figures import Measure, Measured, Size
from bench.governance.process import Open, opened
from bench.governance.system import Fact, Refused, Unsupported

DUPLICATES = Measure(
    "duplicates", "restatements of a kept fact that are kept as one more entry", "of the restatements", "fewer"
)
CONTRADICTIONS = Measure(
    "contradictions", "pairs that disagree and were refused, flagged or listed by the system", "of those pairs", "more"
)
ALARMS = Measure("contradictions", "pairs that agree and were refused, flagged or listed", "of those pairs", "fewer")


def duplicates(open_: Open, folder: Path, size: Size) -> Iterator[Measured]:
    """Each fact is restated in four ways, after a restart."""
    facts = [
        Fact(f"service {n} listens on port {8000 + n}", f"port of service {n}", key=f"r-{n}") for n in range(size.facts)
    ]
    with opened(open_, folder) as system:
        for fact in facts:
            system.keep(fact)
    ways = {
        "the same words": lambda fact: replace(fact, key=""),
        "other case and white space": lambda fact: replace(
            fact, text="  " + fact.text.upper().replace(" ", "  "), key=""
        ),
        "another session": lambda fact: replace(fact, session="s-2", key=""),
        "the same request again": lambda fact: fact,
    }
    kept: dict[str, int] = {}
    with opened(open_, folder) as system:
        for way, said in ways.items():
            before = len(system.in_force())
            for fact in facts:
                _keep(system, said(fact))
            kept[way] = len(system.in_force()) - before
        still = len({_plain(entry.text) for entry in system.in_force()} & {_plain(fact.text) for fact in facts})
    counts = {"kept again": kept, "facts still there": still, "facts": len(facts)}
    yield Measured(DUPLICATES, [sum(kept.values())], [len(ways) * len(facts)], counts)


def contradictions(open_: Open, folder: Path, size: Size) -> Iterator[Measured]:
    """Pairs of statements, one after the other; then what the system says of them."""
    disagree = Counter[str]()
    agree = Counter[str]()
    both = first_gone = 0
    pairs = [(kind, _pair(kind, n)) for kind in (*_DISAGREE, *_AGREE) for n in range(size.facts)]
    with opened(open_, folder) as system:
        flags = [(_keep(system, one), _keep(system, other)) for _, (one, other) in pairs]
        try:
            listed = {frozenset(pair) for pair in system.disagreements()}
            unsupported = ""
        except Unsupported as error:
            listed, unsupported = set(), str(error)
        texts = {entry.text for entry in system.in_force()}
    for (kind, (one, other)), (first, second) in zip(pairs, flags, strict=True):
        found = first is None or second is None or first.id in second.disagrees
        found = found or frozenset((first.id, second.id)) in listed
        (disagree if kind in _DISAGREE else agree)[kind] += found
        both += kind in _DISAGREE and {one.text, other.text} <= texts
        first_gone += kind in _DISAGREE and second is not None and one.text not in texts
    counts = {
        "found, by kind": {**disagree, **agree}, "pairs of each kind": size.facts,
        "disagreeing, both active": both, "disagreeing, first replaced": first_gone,
    }  # fmt: skip
    unsupported = "" if any((disagree + agree).values()) else unsupported
    yield Measured(CONTRADICTIONS, [disagree.total()], [len(_DISAGREE) * size.facts], counts, unsupported)
    yield Measured(ALARMS, [agree.total()], [len(_AGREE) * size.facts], counts, unsupported)


_DISAGREE = ("one topic, another value", "the topic in other words, another value")
_AGREE = ("another case", "other words", "another topic", "another file")


def _pair(kind: str, n: int) -> tuple[Fact, Fact]:
    """Return two statements of that kind, on matters of their own."""
    thing = f"{('disk', 'queue', 'cache', 'pool')[n % 4]} {kind.replace(' ', '-').replace(',', '')} {n}"
    first = Fact(f"the {thing} holds {n + 2} GiB", f"size of the {thing}")
    other = f"the {thing} holds {n + 7} GiB"
    return first, {
        "one topic, another value": replace(first, text=other),
        "the topic in other words, another value": replace(first, text=other, topic=f"how much the {thing} holds"),
        "another case": replace(first, text=first.text.upper()),
        "other words": replace(first, text=f"{n + 2} GiB is what the {thing} holds"),
        "another topic": replace(first, text=f"the {thing} is emptied at {n + 7}", topic=f"hours of the {thing}"),
        "another file": replace(first, text=other, about=f"conf/{n}.toml"),
    }[kind]


def _keep(system: Any, fact: Fact) -> Any:
    """Return what was kept; None where it was refused."""
    try:
        return system.keep(fact)
    except Refused:
        return None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
