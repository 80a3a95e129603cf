"""What an open root says of itself, taken in anew where it was changed: terms, rules, questions and the policy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Protocol

from jidomem import schema
from jidomem.errors import JidomemError
from jidomem.policy import Policy
from jidomem.read.playbook import Playbook
from jidomem.runtime import settings
from jidomem.schema import Schema

#: The folders of a root that extend what is shipped.
FOLDERS = ("ontology", "shapes", "queries")


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the files of a root say, read at one moment."""

    schema: Schema
    policy: Policy
    playbook: Playbook


class Rooted(Protocol):
    """Where the files of a root lie."""

    def rules(self) -> object:
        """Return what is another one as soon as one of them was changed, as far as that is known now."""

    def bring_rules(self) -> object:
        """Return the same once they are here as they are now."""


class InForce:
    """Keeps what is in force as the files of a root have it; any thread may look.

    What cannot be used is a `problem`: it is told to whoever wants to write, and what was in force before answers.
    """

    def __init__(self, place: Rooted, load: Callable[[], Ruling], take: Callable[[Ruling], object]) -> None:
        """Look at the files in *place*, which *load* reads, and let *take* have what they say where that changed."""
        self.problem: JidomemError | None = None
        self._place, self._load, self._take = place, load, take
        self._lock = RLock()
        self._mark = place.bring_rules()
        self.first = load()

    def look(self) -> None:
        """Take in what changed since the last look; raises the `problem` where it cannot be used."""
        if self._place.rules() != self._mark:
            with self._lock:
                self._level()
        if self.problem is not None:
            raise self.problem

    def quietly(self) -> None:
        """Take in what changed, if it can be used."""
        with suppress(JidomemError):
            self.look()

    def _level(self) -> None:
        while (mark := self._place.bring_rules()) != self._mark:  # again where they are changed while they are read
            self._mark, self.problem = mark, None
            try:
                self._take(self._load())
            except JidomemError as error:
                self.problem = error


def read(root: Path) -> Ruling:
    """Return what the files of *root* say now; raises what cannot be used of them."""
    policy = settings.policy_of(root)
    found = schema.load([root] if _has(root, "ontology", "shapes") else [], by_reference=policy.judge == "pyshacl")
    return Ruling(found, policy, Playbook([root / "queries"] if _has(root, "queries") else []))


def _has(root: Path, *folders: str) -> bool:
    """Return whether a root extends what is shipped in one of *folders*."""
    return any((root / folder).is_dir() for folder in folders)


def mark_of(folder: Path) -> object:
    """Return what is another one as soon as a file of the root in *folder* is: names, sizes and times."""
    return tuple(_marks(str(folder)))


def _marks(folder: str) -> Iterator[tuple[str, int, int, int]]:
    with suppress(OSError):
        yield _mark(f"{folder}/{settings.CONFIG}", os.stat(f"{folder}/{settings.CONFIG}"))
    for name in FOLDERS:
        yield from _below(f"{folder}/{name}")


def _below(folder: str) -> Iterator[tuple[str, int, int, int]]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.is_dir(follow_symlinks=False):  # links may lead round
                yield from _below(entry.path)
            elif entry.name[0] != ".":
                with suppress(OSError):  # a link that leads nowhere, or a file that has just gone
                    yield _mark(entry.path, entry.stat())


def _mark(path: str, said: os.stat_result) -> tuple[str, int, int, int]:
    return path, said.st_size, said.st_mtime_ns, said.st_ino
