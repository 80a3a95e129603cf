"""The rules of the guard: active memories that govern files, and their cache, read without opening the root.

    cache/guard/<project>.json            the fingerprint of the inputs, and the name of the SQLite file
    cache/guard/<project>-<random>.sqlite the rules, by the texts that name files

The cache is used if it was written on this disk and fits the present inputs, or if only commits were added that change
no rule; otherwise the rules are gathered again.
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
from time import time_ns
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from jidomem.base import disk, files
from jidomem.base.disk import create_local_marker, local_marker
from jidomem.base.json_values import decode_json
from jidomem.errors import JidomemError
from jidomem.rdf.terms import Term, Triple, plain_value
from jidomem.rdf.vocab import TYPE, jido, short_id
from jidomem.repository.worktree import matches

if TYPE_CHECKING:
    from jidomem.records.intent import Version

#: The properties that a commit adds to older memories and sessions.
_LINKS = set(map(jido, ("supersededBy", "invalidatedBy", "confirmedBy", "conflictsWith", "coexistsWith", "endedAt")))
_COMMIT = jido("Commit")
#: The properties that every commit has.
_OF_COMMITS = {
    TYPE, *map(jido, ("journalFormat", "inStream", "parent", "position", "recordedAt", "committer", "ontologyVersion")),
}  # fmt: skip
_ENDING = re.compile(r"\.[^./]*$")


class Check(NamedTuple):
    """The check of a convention: a pattern that it `forbids` or `requires`, or a `command` to pass."""

    kind: Literal["forbids", "requires", "command"]
    text: str


class Rule(NamedTuple):
    """One active memory that governs files: its text, its force, its validity, and its checks.

    *about* are the texts that name the files: `""` is every file. *rivals* are the memories in conflict with it,
    *differs* says in words from which near memories it differs in a value, *dated* is its own date, empty if unknown,
    *cause* the explanation of an error.
    A check is effective once a curator has accepted it: `waits` is True if one is not accepted yet.
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
    differs: tuple[str, ...] = ()
    dated: str = ""
    cause: str = ""

    @property
    def short_id(self) -> str:
        """Return the short id of the memory."""
        return short_id(self.item)

    def holds(self, now: str) -> bool:
        """Return whether the rule is valid at *now*."""
        return self.valid_from <= now and (not self.valid_until or now < self.valid_until)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a project, newest first, each with the texts that name the governed files: `""` is every file.

    `earlier` maps the present name of a file to those it had when a memory about it was written. `until` is the next
    moment at which the validity of a rule begins or ends, and conflicts may change; empty without one. `damage` are
    texts on damaged files of the journal, whose rules are missing. `files` maps the path of each of them, and of the
    commit of each strict rule, to its state before it was verified.
    """

    rules: tuple[tuple[Rule, tuple[str, ...]], ...] = ()
    earlier: Mapping[str, list[str]] = field(default_factory=dict)
    until: str = ""
    damage: tuple[str, ...] = ()
    files: Mapping[str, list[int] | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PathRules:
    """The rules of each of some paths, and the texts on the damage of the journal."""

    by_path: Mapping[str, list[Rule]] = field(default_factory=dict)
    damage: tuple[str, ...] = ()


class RuleInputs(NamedTuple):
    """The inputs of rules: a version of the memory, empty if that is damaged, and the *kinds* that make no rule."""

    version: Version
    kinds: frozenset[Term]


def leaves_rules_unchanged(
    triples: Collection[Triple], kinds: Collection[Term], is_rule: Callable[[Term], bool]
) -> bool:
    """Return whether a commit of *triples* changes no rule.

    All new nodes have to be of *kinds*, and older ones may only get links to them, unless *is_rule* accepts one. A
    commit with properties that not every commit has, such as those of a redaction, may change any rule.
    """
    commits = {subject for subject, predicate, value in triples if predicate == TYPE and value == _COMMIT}
    if any(subject in commits and predicate not in _OF_COMMITS for subject, predicate, _ in triples):
        return False
    typed = {subject for subject, predicate, _ in triples if predicate == TYPE}
    if any(predicate == TYPE and value not in kinds for _, predicate, value in triples):
        return False
    others = {subject: None for subject, predicate, _ in triples if subject not in typed}
    predicates = {predicate for subject, predicate, _ in triples if subject not in typed}
    return predicates <= _LINKS and not any(map(is_rule, others))


class Stop(NamedTuple):
    """The reason to stop an edit of a file: the convention, and the fault, with its line in the file if it is known."""

    path: str
    rule: Rule
    reason: str
    line: int | None = None


def places(path: str) -> Iterator[str]:
    """Yield each text by which a memory may name the file *path*: its path, the folders above it, its module.

    >>> sorted(set(places("src/a.py")))[:6]
    ['.', './', './src', './src/', './src/a.py', './src/a.py/']
    """
    yield from (".", "./")
    parts = path.split("/")
    for depth in range(len(parts), 0, -1):
        place = "/".join(parts[:depth])
        for prefix in ("", "./"):
            yield from (f"{prefix}{place}", f"{prefix}{place}/")
    plain = _ENDING.sub("", path)
    for root in ("", "src/", "lib/"):
        yield plain.removeprefix(root).replace("/", ".")


FOLDER = Path("cache", "guard")
FORM = 9
_INDEX = "index"
_STREAMS = ("memory", "history", "codebase", "system")
#: Two changes of a folder within so many nanoseconds may have the same modification time.
_TICK = 50_000_000
_LARGEST = 1_048_576
#: The errors caused by a damaged or foreign file.
_CACHE_ERRORS = (OSError, ValueError, KeyError, TypeError, sqlite3.Error)
_TABLES = """
CREATE TABLE rule (number INTEGER PRIMARY KEY, said TEXT);
CREATE TABLE place (place TEXT, number INTEGER, PRIMARY KEY (place, number)) WITHOUT ROWID;
CREATE TABLE pattern (pattern TEXT, number INTEGER);
CREATE TABLE earlier (now TEXT, name TEXT, PRIMARY KEY (now, name)) WITHOUT ROWID;
"""


def input_fingerprint(root: Path, project: str, git: Path | None) -> dict[str, object]:
    """Return a fingerprint of the inputs of a project's rules: journal, configuration, ontology and git's renames."""
    seen = [root / "projects" / project / name for name in _STREAMS]
    seen += [root / name for name in ("config.toml", "ontology")]
    seen += [git / "logs" / "HEAD"] if git is not None else []  # a commit may rename files
    return {"form": FORM, "root": str(root), "project": project, "seen": [file_state(path) for path in seen]}


def read_cached(
    root: Path, project: str, state: Mapping[str, object], paths: Iterable[str], now: str
) -> PathRules | None:
    """Return the rules of each of *paths*; None without a cache of *state* that is valid at *now*."""
    marker = local_marker(root / _INDEX)
    with suppress(*_CACHE_ERRORS):
        head = _head(root / FOLDER / f"{project}.json")
        if marker and head == {**head, **state, "here": marker} and _is_current(head, now):
            with _opened(root, head) as store:
                return PathRules({path: list(_rules(store, path)) for path in paths}, tuple(head["damage"]))
    return None


def read_outdated(
    root: Path, project: str, git: Path | None, state: Mapping[str, object], paths: Iterable[str], now: str
) -> PathRules | None:
    """Return the cached rules of each of *paths*, if no commit since the cache was written changes a rule.

    The cache is then marked as one of *state*. None if a rule may have changed, or the cache is not valid at *now*.
    """
    from jidomem.journal.journal import FileJournal, Stream  # slow to import, and not needed if nothing was written
    from jidomem.records.intent import CommitRef, Version

    marker = local_marker(root / _INDEX)
    with suppress(*_CACHE_ERRORS, JidomemError):
        head = _head(root / FOLDER / f"{project}.json")
        if not marker or _but_memory({**head, **state, "here": marker}) != _but_memory(head) or not head["heads"]:
            return None
        if not _is_current(head, now):
            return None
        journal, stream, kinds = FileJournal(root, wait=1.0), Stream(project), frozenset(head["kinds"])
        commits = list(journal.read(stream, after=Version.of(CommitRef(*each) for each in head["heads"])))
        version, is_whole = journal.head(stream), not journal.damage(stream)
        if not commits or not is_whole:  # old content was redacted, quarantined or restored
            return None
        with _opened(root, head) as store:
            if not all(leaves_rules_unchanged(commit.triples, kinds, partial(_is_rule, store)) for commit in commits):
                return None
            rules = PathRules({path: list(_rules(store, path)) for path in paths}, tuple(head["damage"]))
        if is_settled(state) and input_fingerprint(root, project, git) == state:
            _put(root, project, {**head, **state, "heads": _heads(version)})
        return rules
    return None


def write_cache(root: Path, project: str, state: Mapping[str, object], rules: Rules, basis: RuleInputs) -> None:
    """Cache *rules* with *state* and their *basis*; does nothing if the folder cannot be written."""
    with suppress(OSError, sqlite3.Error):
        folder = root / FOLDER
        disk.make_folders(root / _INDEX)
        disk.make_folders(folder)
        file = folder / f"{project}-{os.urandom(8).hex()}.sqlite"
        _write(file, rules)
        head = {"here": create_local_marker(root / _INDEX), "file": file.name, "heads": _heads(basis.version),
                "until": rules.until, "damage": rules.damage, "files": rules.files}  # fmt: skip
        _put(root, project, {**state, **head, "kinds": sorted(basis.kinds)})
        for old in folder.glob(f"{project}-*"):
            if old != file and old.stem.rpartition("-")[0] == project:
                old.unlink(missing_ok=True)


def _put(root: Path, project: str, head: Mapping[str, object]) -> None:
    files.write_atomically(root / FOLDER / f"{project}.json", json.dumps(head).encode())


def _is_current(head: Mapping[str, Any], now: str) -> bool:
    """Return whether the rules are still valid, and the files that were verified for them are unchanged."""
    is_valid = not head["until"] or now < head["until"]
    return is_valid and all(file_state(path) == state for path, state in head["files"].items())


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
    """Return whether the inputs of *state* last changed so long ago that another change has another time."""
    seen = state["seen"]
    assert isinstance(seen, list)
    return all(each is None or time_ns() - each[0] > _TICK for each in seen)


def rules_for_paths(rules: Rules, paths: Iterable[str]) -> PathRules:
    """Return those of *rules* that govern each of *paths*."""
    rules_by_path: dict[str, list[Rule]] = {}
    for path in paths:
        names = (path, *rules.earlier.get(path, ()))
        by = {"", *(each for name in names for each in places(name))}
        rules_by_path[path] = [
            rule
            for rule, named in rules.rules
            if not by.isdisjoint(named) or any("*" in each and matches(each, name) for each in named for name in names)
        ]
    return PathRules(rules_by_path, rules.damage)


def _write(file: Path, rules: Rules) -> None:
    files.lay_file(file)
    with closing(sqlite3.connect(file)) as store:
        store.execute("PRAGMA journal_mode=OFF")
        store.execute("PRAGMA synchronous=OFF")  # a cache, published only once it is complete
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
    query = f"SELECT DISTINCT number FROM place WHERE place IN ({', '.join('?' * len(by))})"
    numbers = {number for (number,) in store.execute(query, by)}
    patterns = store.execute("SELECT pattern, number FROM pattern")
    numbers |= {number for pattern, number in patterns if any(matches(pattern, name) for name in names)}
    for number in sorted(numbers):
        (values,) = store.execute("SELECT said FROM rule WHERE number = ?", (number,)).fetchone()
        yield _rule(decode_json(values))


def _is_rule(store: sqlite3.Connection, item: Term) -> bool:
    return store.execute("SELECT 1 FROM rule WHERE instr(said, ?) LIMIT 1", (plain_value(item),)).fetchone() is not None


def _rule_values(rule: Rule) -> list[object]:
    checks = [[check.kind, check.text] for check in rule.checks]
    return [rule.item, rule.force, rule.label, rule.summary, rule.recorded, rule.agent, rule.valid_from,
            rule.valid_until, checks, rule.waits, list(rule.about), list(rule.rivals), list(rule.differs),
            rule.dated, rule.cause]  # fmt: skip


def _rule(values: list[object]) -> Rule:
    *plain, checks, waits, about, rivals, differs, dated, cause = values
    made = tuple(Check(*check) for check in checks)  # type: ignore[attr-defined]
    return Rule(*plain, made, waits, tuple(about), tuple(rivals), tuple(differs), dated, cause)  # type: ignore[arg-type,call-arg]


def _head(path: Path) -> dict[str, Any]:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        head = decode_json(file.read(_LARGEST))
    if not isinstance(head, dict):
        raise ValueError(path)
    return head


def file_state(path: str | Path) -> list[int] | None:
    """Return a state that differs after a change of a file or folder; None if it is missing."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return [status.st_mtime_ns, status.st_ino, status.st_size]


def _quoted(path: Path) -> str:
    """Return a path escaped for a URI."""
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
