"""The rules of the guard: active memories that govern files, and their cache, read without opening the root.

    cache/guard/<project>.json            the fingerprint of the inputs, and the name of the SQLite file
    cache/guard/<project>-<random>.sqlite the rules, by the texts that name files

The cache is used if it was written on this disk and fits the present inputs, or if only commits were added since: then
the rules of the memories that they change are gathered again. After another change, such as a redaction, all are.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep, time_ns
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
_TO_MEMORIES = {*_LINKS, *map(jido, ("supersedes", "invalidates", "revives"))}
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
    *cause* the explanation of an error. A change of one of the *linked* memories may change the rule.
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
    linked: tuple[str, ...] = ()

    @property
    def short_id(self) -> str:
        """Return the short id of the memory."""
        return short_id(self.item)

    def holds(self, now: str) -> bool:
        """Return whether the rule is valid at *now*."""
        return self.valid_from <= now and (not self.valid_until or now < self.valid_until)


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules of a project, newest first: of all memories, or of some.

    `earlier` has the present name of a file, one it had when a memory about it was written, and that memory, empty for
    a place. At the moments in `bounds`, the validity of a rule begins or ends, and conflicts may change. `pending` are
    rules that may have near memories not yet known. `damage` are texts on damaged files of the journal, whose rules are
    missing. `files` maps the path of each of them, and of the commit of each strict rule, to its state before it was
    verified.
    """

    rules: tuple[Rule, ...] = ()
    earlier: tuple[tuple[str, str, str], ...] = ()
    bounds: tuple[tuple[str, str], ...] = ()
    pending: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()
    files: Mapping[str, list[int] | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PathRules:
    """The rules of each of some paths, and the texts on the damage of the journal."""

    by_path: Mapping[str, list[Rule]] = field(default_factory=dict)
    damage: tuple[str, ...] = ()


class RuleInputs(NamedTuple):
    """The inputs of rules: a version of the memory, empty if that is damaged, and the kinds of nodes in commits.

    Memories of the *governing* kinds may be rules, nodes of the other *kinds* are none.
    """

    version: Version
    kinds: frozenset[Term]
    governing: frozenset[Term]


class RuleChanges(NamedTuple):
    """The *items* whose rules may differ from the cache with *head* at *version* of the memory.

    If git *moved*, files may have other names. *state* is the fingerprint of the inputs at that version; None if others
    wrote meanwhile.
    """

    head: Mapping[str, Any]
    items: frozenset[str]
    moved: bool
    version: Version
    state: Mapping[str, object] | None


def touched_memories(
    triples: Collection[Triple], kinds: Collection[Term], governing: Collection[Term]
) -> tuple[set[str], set[str]] | None:
    """Return the memories of *governing* kinds that a commit of *triples* adds, with those they name, and the older
    nodes that get links; None if it may change any rule.

    That is so for nodes of other kinds than these and *kinds*, for other properties of older nodes, and for properties
    that not every commit has, such as those of a redaction.
    """
    commits = {subject for subject, predicate, value in triples if predicate == TYPE and value == _COMMIT}
    if any(subject in commits and predicate not in _OF_COMMITS for subject, predicate, _ in triples):
        return None
    types = [(subject, value) for subject, predicate, value in triples if predicate == TYPE]
    if any(value not in kinds and value not in governing for _, value in types):
        return None
    typed = {subject for subject, _ in types}
    if not {predicate for subject, predicate, _ in triples if subject not in typed} <= _LINKS:
        return None
    ruled = {subject for subject, value in types if value in governing}
    named = {value for subject, predicate, value in triples if subject in ruled and predicate in _TO_MEMORIES}
    older = {subject for subject, _, _ in triples} - typed
    return {*map(plain_value, ruled | named)}, {*map(plain_value, older)}


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
FORM = 10
_INDEX = "index"
_STREAMS = ("memory", "history", "codebase", "system")
_INPUTS = len(_STREAMS) + 2  # in a fingerprint, before the state of git
#: Two changes of a folder within so many nanoseconds may have the same modification time.
_TICK = 50_000_000
_LARGEST = 1_048_576
#: The errors caused by a damaged or foreign file.
_CACHE_ERRORS = (OSError, ValueError, KeyError, TypeError, sqlite3.Error)
#: The keys of a rule: texts that name files ("place"), those that are patterns ("pattern"), the memories that it is
#: linked with ("memory"), and when its validity begins or ends ("bound").
_TABLES = """
CREATE TABLE rule (number INTEGER PRIMARY KEY, item TEXT UNIQUE, content TEXT);
CREATE TABLE key (kind TEXT, text TEXT, number INTEGER, PRIMARY KEY (kind, text, number)) WITHOUT ROWID;
CREATE INDEX key_number ON key (number);
CREATE TABLE earlier (now TEXT, name TEXT, item TEXT, PRIMARY KEY (now, name, item)) WITHOUT ROWID;
CREATE INDEX earlier_item ON earlier (item);
"""


def input_fingerprint(root: Path, project: str, git: Path | None) -> dict[str, object]:
    """Return a fingerprint of the inputs of a project's rules: journal, configuration, ontology and git's renames."""
    seen = [root / "projects" / project / name for name in _STREAMS]
    seen += [root / name for name in ("config.toml", "ontology")]
    seen += [git / "logs" / "HEAD"] if git is not None else []  # a commit may rename files
    return {"form": FORM, "root": str(root), "project": project, "seen": [file_state(path) for path in seen]}


def settled_fingerprint(root: Path, project: str, git: Path | None) -> dict[str, object]:
    """Return `input_fingerprint`; right after a change it waits until another one gets another time."""
    state = input_fingerprint(root, project, git)
    if is_settled(state):
        return state
    sleep(_TICK / 1e9)
    return input_fingerprint(root, project, git)


def read_cached(
    root: Path, project: str, state: Mapping[str, object], paths: Iterable[str], now: str
) -> PathRules | None:
    """Return the rules of each of *paths*; None without a cache of *state* that is valid at *now*."""
    marker = local_marker(root / _INDEX)
    with suppress(*_CACHE_ERRORS):
        head = _head(root / FOLDER / f"{project}.json")
        is_valid = not head["until"] or now < head["until"]
        if marker and is_valid and head == {**head, **state, "here": marker} and _are_verified(head):
            return cached_rules(root, head, paths)
    return None


def cached_rules(root: Path, head: Mapping[str, Any], paths: Iterable[str]) -> PathRules:
    """Return the rules of each of *paths* in the cache with *head*."""
    with _opened(root, head) as store:
        return rules_for_paths(store, paths, head["damage"])


def changes_since(root: Path, project: str, git: Path | None, now: str) -> RuleChanges | None:
    """Return the changes since the cache was written, up to *now*; None if any rule may have changed."""
    from jidomem.journal.journal import FileJournal, Stream  # slow to import, and not needed if nothing was written
    from jidomem.records.intent import CommitRef, Version

    with suppress(*_CACHE_ERRORS, JidomemError):
        head = _head(root / FOLDER / f"{project}.json")
        with _opened(root, head) as store:
            marker, state = local_marker(root / _INDEX), settled_fingerprint(root, project, git)
            if not (marker and head["heads"]):
                return None
            if not same_but_memory({**head, **state, "here": marker}, head, but_git=True):
                return None
            seen: Any = state["seen"]
            journal, stream = FileJournal(root, wait=1.0), Stream(project)
            version, is_whole = journal.head(stream), not journal.damage(stream)
            kinds, governing = frozenset(head["kinds"]), frozenset(head["governing"])
            commits = journal.read(stream, after=Version.of(CommitRef(*each) for each in head["heads"]))
            touched = [touched_memories(commit.triples, kinds, governing) for commit in commits]
            is_stable = is_settled(state) and input_fingerprint(root, project, git) == state
            if not is_whole or not _are_verified(head) or (not touched and head["seen"][0] != seen[0]):
                return None  # old content was redacted, quarantined or restored
            items = {item for (item,) in store.execute(_PAST, (now,))}
            for each in touched:
                if each is None:
                    return None
                added, older = each
                items |= added | {item for item in older if rules_linked(store, [item])}
            items |= set(head["pending"]) if items else set()
            moved = head["seen"][_INPUTS:] != seen[_INPUTS:]
            return RuleChanges(head, frozenset(items), moved, version, state if is_stable else None)
    return None


_PAST = "SELECT item FROM key JOIN rule USING (number) WHERE kind = 'bound' AND text <= ?"


def write_unchanged(root: Path, project: str, changes: RuleChanges) -> None:
    """Mark the cache as one at the version of *changes*, which change no rule."""
    if changes.state is not None:
        with suppress(*_CACHE_ERRORS):
            _put(root, project, {**changes.head, **changes.state, "heads": _heads(changes.version)})


@contextmanager
def new_store(rules: Rules) -> Iterator[sqlite3.Connection]:
    """Yield a store in memory with *rules*."""
    with closing(sqlite3.connect(":memory:")) as store:
        store.executescript(_TABLES)
        _add(store, rules)
        yield store


@contextmanager
def changed_store(root: Path, changes: RuleChanges) -> Iterator[sqlite3.Connection]:
    """Yield a copy in memory of the store of the cache that *changes* start from."""
    with closing(sqlite3.connect(":memory:")) as store:
        with _opened(root, changes.head) as file:
            file.backup(store)
        yield store


def replace_rules(store: sqlite3.Connection, items: Collection[str], rules: Rules) -> None:
    """Put *rules*, which are those of *items*, in the place of what *store* has for these."""
    of_items = [(item,) for item in items]
    store.executemany("DELETE FROM key WHERE number = (SELECT number FROM rule WHERE item = ?)", of_items)
    store.executemany("DELETE FROM rule WHERE item = ?", of_items)
    store.executemany("DELETE FROM earlier WHERE item = ?", of_items)
    _add(store, rules)


def replace_earlier(store: sqlite3.Connection, earlier: Iterable[tuple[str, str, str]]) -> None:
    """Put *earlier*, as in `Rules`, in the place of all that *store* has."""
    store.execute("DELETE FROM earlier")
    _add(store, Rules(earlier=tuple(earlier)))


def rules_linked(store: sqlite3.Connection, items: Iterable[str]) -> set[str]:
    """Return the memories that have a rule and are, or are linked with, one of *items*."""
    names = [*items]
    query = "SELECT 1 FROM rule WHERE item = ?"
    return _ruling(store, "memory", names) | {item for item in names if store.execute(query, (item,)).fetchone()}


def write_cache(
    root: Path, project: str, state: Mapping[str, object], store: sqlite3.Connection, rules: Rules, basis: RuleInputs
) -> None:
    """Cache *store*, which has *rules*, with *state* and its *basis*; does nothing if the folder cannot be written."""
    with suppress(OSError, sqlite3.Error):
        folder = root / FOLDER
        disk.make_folders(root / _INDEX)
        disk.make_folders(folder)
        file = folder / f"{project}-{os.urandom(8).hex()}.sqlite"
        files.create_missing_file(file)
        with closing(sqlite3.connect(file)) as target:
            target.execute("PRAGMA synchronous=OFF")  # a cache, published only once it is complete
            store.backup(target)
        (until,) = store.execute("SELECT min(text) FROM key WHERE kind = 'bound'").fetchone()
        head = {"here": create_local_marker(root / _INDEX), "file": file.name, "until": until or "",
                "damage": rules.damage, "files": rules.files, "pending": rules.pending, "heads": _heads(basis.version),
                "kinds": sorted(basis.kinds), "governing": sorted(basis.governing)}  # fmt: skip
        _put(root, project, {**state, **head})
        for old in folder.glob(f"{project}-*"):
            if old != file and old.stem.rpartition("-")[0] == project:
                old.unlink(missing_ok=True)


def _put(root: Path, project: str, head: Mapping[str, object]) -> None:
    files.write_atomically(root / FOLDER / f"{project}.json", json.dumps(head).encode())


def _are_verified(head: Mapping[str, Any]) -> bool:
    """Return whether the files that were verified for the rules are unchanged."""
    return all(file_state(path) == state for path, state in head["files"].items())


def _heads(version: Version) -> list[list[object]]:
    return [[head.recorded_at, head.id, head.position] for head in version.heads]


def same_but_memory(one: Mapping[str, Any], other: Mapping[str, Any], *, but_git: bool = False) -> bool:
    """Return whether two heads or fingerprints differ at most in the state of the stream of memories (and of git)."""
    end = _INPUTS if but_git else None
    return {**one, "seen": one["seen"][1:end]} == {**other, "seen": other["seen"][1:end]}


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


def rules_for_paths(store: sqlite3.Connection, paths: Iterable[str], damage: Iterable[str]) -> PathRules:
    """Return the rules in *store* that govern each of *paths*, newest first, beside the texts on *damage*."""
    return PathRules({path: list(_rules(store, path)) for path in paths}, tuple(damage))


def _add(store: sqlite3.Connection, rules: Rules) -> None:
    store.executemany("INSERT OR IGNORE INTO earlier VALUES (?, ?, ?)", rules.earlier)
    numbers, keys = dict[str, int | None](), list[tuple[str, str, int | None]]()
    for rule in rules.rules:
        values = rule.item, json.dumps(_rule_values(rule))
        number = numbers[rule.item] = store.execute("INSERT INTO rule (item, content) VALUES (?, ?)", values).lastrowid
        keys += [("place", text, number) for text in rule.about]
        keys += [("pattern", text, number) for text in rule.about if "*" in text]
        keys += [("memory", text, number) for text in rule.linked]
    keys += [("bound", moment, numbers[item]) for moment, item in rules.bounds]
    store.executemany("INSERT OR IGNORE INTO key VALUES (?, ?, ?)", keys)
    store.commit()


def _ruling(store: sqlite3.Connection, kind: str, texts: Iterable[str]) -> set[str]:
    query = "SELECT item FROM key JOIN rule USING (number) WHERE kind = ? AND text = ?"
    return {item for text in texts for (item,) in store.execute(query, (kind, text))}


def _rules(store: sqlite3.Connection, path: str) -> Iterator[Rule]:
    names = [path, *(name for (name,) in store.execute("SELECT DISTINCT name FROM earlier WHERE now = ?", (path,)))]
    items = _ruling(store, "place", ["", *dict.fromkeys(each for name in names for each in places(name))])
    patterns = [text for (text,) in store.execute("SELECT DISTINCT text FROM key WHERE kind = 'pattern'")]
    items |= _ruling(store, "place", [each for each in patterns if any(matches(each, name) for name in names)])
    query = "SELECT content FROM rule WHERE item = ?"
    rules = [_rule(decode_json(store.execute(query, (item,)).fetchone()[0])) for item in items]
    yield from sorted(rules, key=lambda rule: (rule.recorded, rule.item), reverse=True)


def _rule_values(rule: Rule) -> list[object]:
    checks = [[check.kind, check.text] for check in rule.checks]
    return [rule.item, rule.force, rule.label, rule.summary, rule.recorded, rule.agent, rule.valid_from,
            rule.valid_until, checks, rule.waits, list(rule.about), list(rule.rivals), list(rule.differs),
            rule.dated, rule.cause, list(rule.linked)]  # fmt: skip


def _rule(values: list[object]) -> Rule:
    *plain, checks, waits, about, rivals, differs, dated, cause, linked = values
    made = tuple(Check(*check) for check in checks)  # type: ignore[attr-defined]
    return Rule(*plain, made, waits, tuple(about), tuple(rivals), tuple(differs), dated, cause, tuple(linked))  # type: ignore[arg-type,call-arg]


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
