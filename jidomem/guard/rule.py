"""What governs files: one memory as the guard has it, and where it is found.  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from jidomem.terms import Term, Triple
from jidomem.version import Version
from jidomem.vocab import TYPE, jido

#: What is put before an agent, the most binding first; the rest of what governs a file is for `jidomem governing`.
FORCES = ("strict", "decision", "open error", "lesson", "past error")
#: What a new memory says of an older one, and of a session that ends.
_LINKS = set(map(jido, ("supersededBy", "invalidatedBy", "confirmedBy", "conflictsWith", "coexistsWith", "endedAt")))
_COMMIT = jido("Commit")
#: What every commit says of itself.
_OF_COMMITS = {
    TYPE, *map(jido, ("journalFormat", "inStream", "parent", "position", "recordedAt", "committer", "ontologyVersion")),
}  # fmt: skip
_ENDING = re.compile(r"\.[^./]*$")


@dataclass(frozen=True, slots=True)
class Check:
    """What a convention has a machine look for: a pattern that it `forbids` or `requires`, or a `command` to pass."""

    kind: Literal["forbids", "requires", "command"]
    text: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One memory in force that governs files: what it says, how binding it is, from when until when, and its checks.

    *about* are the texts that name the files: `""` is every file.
    A check counts once a curator has accepted it: `waits` says that one has not been.
    """

    item: str
    force: str
    label: str
    summary: str
    recorded: str
    agent: str
    valid_from: str = ""
    valid_until: str = ""
    checks: tuple[Check, ...] = ()
    waits: bool = False
    about: tuple[str, ...] = ()

    def holds(self, now: str) -> bool:
        """Return whether it holds in the world at *now*."""
        return self.valid_from <= now and (not self.valid_until or now < self.valid_until)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a project, the newest first, each with the texts that name what it governs: `""` is every file.

    `earlier` are the names that files had when a memory about them was written, by the name each has now.
    """

    rules: tuple[tuple[Rule, tuple[str, ...]], ...] = ()
    earlier: Mapping[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Basis:
    """What rules were made of: a version of the memory, empty where it is damaged; and the *kinds* that make none."""

    version: Version
    kinds: frozenset[Term]


def leaves(triples: Collection[Triple], kinds: Collection[Term], is_rule: Callable[[Term], bool]) -> bool:
    """Return whether a commit of *triples* leaves all rules as they are.

    It does where all it describes is of *kinds*, and all it says of others is how they stand to what is new, none of
    which *is_rule*. What it says of itself beyond what every commit does, as that something was redacted, may change
    any of them.
    """
    commits = {subject for subject, predicate, value in triples if predicate == TYPE and value == _COMMIT}
    if any(subject in commits and predicate not in _OF_COMMITS for subject, predicate, _ in triples):
        return False
    typed = {subject for subject, predicate, _ in triples if predicate == TYPE}
    if any(predicate == TYPE and value not in kinds for _, predicate, value in triples):
        return False
    others = {subject: None for subject, predicate, _ in triples if subject not in typed}
    said = {predicate for subject, predicate, _ in triples if subject not in typed}
    return said <= _LINKS and not any(map(is_rule, others))


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a file is not to be edited so: the convention, and what breaks it."""

    path: str
    rule: Rule
    reason: str


def places(path: str) -> Iterator[str]:
    """Yield each text by which a memory may name the file *path*: itself, the folders above, the module it holds.

    >>> sorted(set(places("src/a.py")))[:6]
    ['.', './', './src', './src/', './src/a.py', './src/a.py/']
    """
    yield from (".", "./")
    parts = path.split("/")
    for depth in range(len(parts), 0, -1):
        place = "/".join(parts[:depth])
        for here in ("", "./"):
            yield from (f"{here}{place}", f"{here}{place}/")
    plain = _ENDING.sub("", path)
    for root in ("", "src/", "lib/"):
        yield plain.removeprefix(root).replace("/", ".")
