"""What governs files: one memory as the guard has it, and where it is found.  Pure.

What governs the files of a project, kept below `cache/guard/` so that a process finds it without opening the root.

    cache/guard/<project>.json            what it was made of, and the name of the file it is in
    cache/guard/<project>-<random>.sqlite each memory that governs files, by the texts that name them

It is read where it was made here, of the journal as it is now, or of one that has but commits more that change no rule;
else it is made anew.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex
from time import time_ns
from typing import Any, Literal

from jidomem.base import disk, files
from jidomem.base.disk import create_local_marker, local_marker
from jidomem.base.json_values import decode_json
from jidomem.errors import JidomemError
from jidomem.rdf.terms import Term, Triple, plain_value
from jidomem.rdf.vocab import TYPE, jido
from jidomem.records.intent import CommitRef, Version
from jidomem.repository.worktree import matches

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
    """The check of a convention: a pattern that it `forbids` or `requires`, or a `command` to pass."""

    kind: Literal["forbids", "requires", "command"]
    text: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One active memory that governs files: what it says, how binding it is, from when until when, and its checks.

    *about* are the texts that name the files: `""` is every file. *rivals* are the memories in conflict with it.
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
    rivals: tuple[str, ...] = ()

    def holds(self, now: str) -> bool:
        """Return whether it holds in the world at *now*."""
        return self.valid_from <= now and (not self.valid_until or now < self.valid_until)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a project, the newest first, each with the texts that name what it governs: `""` is every file.

    `earlier` are the names that files had when a memory about them was written, by the name each has now. `until` is
    the next moment at which the validity of a rule begins or ends, empty without one: its conflicts change then.
    """

    rules: tuple[tuple[Rule, tuple[str, ...]], ...] = ()
    earlier: Mapping[str, list[str]] = field(default_factory=dict)
    until: str = ""


@dataclass(frozen=True, slots=True)
class RuleInputs:
    """What rules were made of: a version of the memory, empty where it is damaged; and the *kinds* that make none."""

    version: Version
    kinds: frozenset[Term]


def leaves_rules_unchanged(
    triples: Collection[Triple], kinds: Collection[Term], is_rule: Callable[[Term], bool]
) -> bool:
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


FOLDER = Path("cache", "guard")
FORM = 4
_INDEX = "index"
_STREAMS = ("memory", "history", "codebase", "system")
#: Two changes of a folder may have one time on it within so many nanoseconds.
_TICK = 50_000_000
_LARGEST = 1_048_576
#: What comes of a file that is none of ours.
_CACHE_ERRORS = (OSError, ValueError, KeyError, TypeError, sqlite3.Error)
_TABLES = """
CREATE TABLE rule (number INTEGER PRIMARY KEY, said TEXT);
CREATE TABLE place (place TEXT, number INTEGER, PRIMARY KEY (place, number)) WITHOUT ROWID;
CREATE TABLE pattern (pattern TEXT, number INTEGER);
CREATE TABLE earlier (now TEXT, name TEXT, PRIMARY KEY (now, name)) WITHOUT ROWID;
"""


def input_fingerprint(root: Path, project: str, git: Path | None) -> dict[str, object]:
    """Return what tells one state of all that a project's rules are made of from another."""
    seen = [root / "projects" / project / name for name in _STREAMS]
    seen += [root / name for name in ("config.toml", "ontology")]
    seen += [git / "logs" / "HEAD"] if git is not None else []  # a file renamed goes by its new name from then on
    return {"form": FORM, "root": str(root), "project": project, "seen": [_state(path) for path in seen]}


def read(
    root: Path, project: str, state: Mapping[str, object], paths: Iterable[str], now: str
) -> dict[str, list[Rule]] | None:
    """Return the rules of each of *paths*; None without a cache of *state* that is valid at *now*."""
    here = local_marker(root / _INDEX)
    with suppress(*_CACHE_ERRORS):
        head = _head(root / FOLDER / f"{project}.json")
        if here and head == {**head, **state, "here": here} and _is_current(head, now):
            with _opened(root, head) as store:
                return {path: list(_rules(store, path)) for path in paths}
    return None


def follow(
    root: Path, project: str, git: Path | None, state: Mapping[str, object], paths: Iterable[str], now: str
) -> dict[str, list[Rule]] | None:
    """Return the rules of each of *paths* where all commits since the cache was made change none of those at *now*.

    They are kept as those of *state* then. None where more came, or it cannot be told.
    """
    from jidomem.journal.journal import FileJournal, Stream  # who comes when nothing was written has no need of it

    here = local_marker(root / _INDEX)
    with suppress(*_CACHE_ERRORS, JidomemError):
        head = _head(root / FOLDER / f"{project}.json")
        if not here or _but_memory({**head, **state, "here": here}) != _but_memory(head) or not head["heads"]:
            return None
        if not _is_current(head, now):
            return None
        journal, stream, kinds = FileJournal(root, wait=1.0), Stream(project), frozenset(head["kinds"])
        commits = list(journal.read(stream, after=Version.of(CommitRef(*each) for each in head["heads"])))
        version, is_whole = journal.head(stream), not journal.damage(stream)
        if not commits or not is_whole:  # something old was redacted, set aside or restored
            return None
        with _opened(root, head) as store:
            if not all(leaves_rules_unchanged(commit.triples, kinds, partial(_is_rule, store)) for commit in commits):
                return None
            found = {path: list(_rules(store, path)) for path in paths}
        if is_settled(state) and input_fingerprint(root, project, git) == state:
            _put(root, project, {**head, **state, "heads": _heads(version)})
        return found
    return None


def keep(root: Path, project: str, state: Mapping[str, object], rules: Rules, basis: RuleInputs) -> None:
    """Keep *rules* as those of *state*, made on *basis*; where nothing can be written, nothing is."""
    with suppress(OSError, sqlite3.Error):
        folder = root / FOLDER
        disk.make_folders(root / _INDEX)
        disk.make_folders(folder)
        file = folder / f"{project}-{token_hex(8)}.sqlite"
        _write(file, rules)
        head = {"here": create_local_marker(root / _INDEX), "file": file.name, "heads": _heads(basis.version),
                "until": rules.until}  # fmt: skip
        _put(root, project, {**state, **head, "kinds": sorted(basis.kinds)})
        for old in folder.glob(f"{project}-*"):
            if old != file and old.stem.rpartition("-")[0] == project:
                old.unlink(missing_ok=True)


def _put(root: Path, project: str, head: Mapping[str, object]) -> None:
    files.write_atomically(root / FOLDER / f"{project}.json", json.dumps(head).encode())


def _is_current(head: Mapping[str, Any], now: str) -> bool:
    return not head["until"] or now < head["until"]


def _heads(version: Version) -> list[list[object]]:
    return [[head.recorded_at, head.id, head.position] for head in version.heads]


def _but_memory(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return *head* without the state of the stream of memories."""
    return {**head, "seen": head["seen"][1:]}


@contextmanager
def _opened(root: Path, head: Mapping[str, Any]) -> Iterator[sqlite3.Connection]:
    file = root / FOLDER / os.path.basename(str(head["file"]))
    with closing(sqlite3.connect(f"file:{_quoted(file)}?mode=ro&immutable=1", uri=True)) as store:
        yield store


def is_settled(state: Mapping[str, object]) -> bool:
    """Return whether all that *state* is of was last changed so long ago that a later change shows."""
    seen = state["seen"]
    assert isinstance(seen, list)
    return all(each is None or time_ns() - each[0] > _TICK for each in seen)


def rules_for_paths(rules: Rules, paths: Iterable[str]) -> dict[str, list[Rule]]:
    """Return which of *rules* each of *paths* has."""
    found: dict[str, list[Rule]] = {}
    for path in paths:
        names = (path, *rules.earlier.get(path, ()))
        by = {"", *(each for name in names for each in places(name))}
        found[path] = [
            rule
            for rule, named in rules.rules
            if not by.isdisjoint(named) or any(_fits(each, name) for each in named for name in names)
        ]
    return found


def _fits(pattern: str, path: str) -> bool:
    return "*" in pattern and matches(pattern, path)


def _write(file: Path, rules: Rules) -> None:
    files.lay_file(file)
    with closing(sqlite3.connect(file)) as store:
        store.execute("PRAGMA journal_mode=OFF")
        store.execute("PRAGMA synchronous=OFF")  # nobody is told of it before it is whole, and it may go at any time
        store.executescript(_TABLES)
        with store:
            names = [(now, name) for now, each in rules.earlier.items() for name in each]
            store.executemany("INSERT INTO earlier VALUES (?, ?)", names)
            for number, (rule, named) in enumerate(rules.rules):
                store.execute("INSERT INTO rule VALUES (?, ?)", (number, json.dumps(_rule_values(rule))))
                texts = [(text, number) for text in dict.fromkeys(named)]
                store.executemany("INSERT INTO place VALUES (?, ?)", texts)
                store.executemany("INSERT INTO pattern VALUES (?, ?)", [row for row in texts if "*" in row[0]])


def _rules(store: sqlite3.Connection, path: str) -> Iterator[Rule]:
    names = [path, *(name for (name,) in store.execute("SELECT name FROM earlier WHERE now = ?", (path,)))]
    by = ["", *dict.fromkeys(each for name in names for each in places(name))]
    asked = f"SELECT DISTINCT number FROM place WHERE place IN ({', '.join('?' * len(by))})"
    numbers = {number for (number,) in store.execute(asked, by)}
    patterns = store.execute("SELECT pattern, number FROM pattern")
    numbers |= {number for pattern, number in patterns if any(matches(pattern, name) for name in names)}
    for number in sorted(numbers):
        (said,) = store.execute("SELECT said FROM rule WHERE number = ?", (number,)).fetchone()
        yield _rule(decode_json(said))


def _is_rule(store: sqlite3.Connection, item: Term) -> bool:
    return store.execute("SELECT 1 FROM rule WHERE instr(said, ?) LIMIT 1", (plain_value(item),)).fetchone() is not None


def _rule_values(rule: Rule) -> list[object]:
    checks = [[check.kind, check.text] for check in rule.checks]
    return [rule.item, rule.force, rule.label, rule.summary, rule.recorded, rule.agent, rule.valid_from,
            rule.valid_until, checks, rule.waits, list(rule.about), list(rule.rivals)]  # fmt: skip


def _rule(values: list[object]) -> Rule:
    *plain, checks, waits, about, rivals = values
    return Rule(*plain, tuple(Check(*check) for check in checks), waits, tuple(about), tuple(rivals))  # type: ignore[arg-type,attr-defined,call-arg]


def _head(path: Path) -> dict[str, Any]:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = decode_json(file.read(_LARGEST))
    if not isinstance(found, dict):
        raise ValueError(path)
    return found


def _state(path: Path) -> list[int] | None:
    try:
        status = path.stat(follow_symlinks=False)
    except OSError:
        return None
    return [status.st_mtime_ns, status.st_ino, status.st_size]


def _quoted(path: Path) -> str:
    """Return a path as it stands in an address."""
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
