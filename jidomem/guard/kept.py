"""What governs the files of a project, kept below `cache/guard/` so that a process finds it without opening the root.

    cache/guard/<project>.json            what it was made of, and the name of the file it is in
    cache/guard/<project>-<random>.sqlite each memory that governs files, by the texts that name them

It is read where it was made here, of the journal as it is now, or of one that has but commits more that change no rule;
else it is made anew.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from time import time_ns
from typing import Any

from jidomem import ownership
from jidomem.decoding import decode_json
from jidomem.errors import JidomemError
from jidomem.guard.rule import Basis, Check, Rule, Rules, leaves, places
from jidomem.here import place, settle
from jidomem.repository.ignored import matches
from jidomem.terms import Term, bare
from jidomem.version import Head, Version

FOLDER = Path("cache", "guard")
FORM = 3
_INDEX = "index"
_STREAMS = ("memory", "history", "codebase", "system")
#: Two changes of a folder may have one time on it within so many nanoseconds.
_TICK = 50_000_000
_LARGEST = 1_048_576
#: What comes of a file that is none of ours.
_AMISS = (OSError, ValueError, KeyError, TypeError, sqlite3.Error)
_TABLES = """
CREATE TABLE rule (number INTEGER PRIMARY KEY, said TEXT);
CREATE TABLE place (place TEXT, number INTEGER, PRIMARY KEY (place, number)) WITHOUT ROWID;
CREATE TABLE pattern (pattern TEXT, number INTEGER);
CREATE TABLE earlier (now TEXT, name TEXT, PRIMARY KEY (now, name)) WITHOUT ROWID;
"""


def made_of(root: Path, project: str, git: Path | None) -> dict[str, object]:
    """Return what tells one state of all that a project's rules are made of from another."""
    seen = [root / "projects" / project / name for name in _STREAMS]
    seen += [root / name for name in ("config.toml", "ontology")]
    seen += [git / "logs" / "HEAD"] if git is not None else []  # a file renamed goes by its new name from then on
    return {"form": FORM, "root": str(root), "project": project, "seen": [_state(path) for path in seen]}


def read(root: Path, project: str, state: Mapping[str, object], paths: Iterable[str]) -> dict[str, list[Rule]] | None:
    """Return the rules of each of *paths*; None where nothing is kept that is of *state*, and was made here."""
    here = place(root / _INDEX)
    with suppress(*_AMISS):
        head = _head(root / FOLDER / f"{project}.json")
        if here and head == {**head, **state, "here": here}:
            with _opened(root, head) as store:
                return {path: list(_rules(store, path)) for path in paths}
    return None


def follow(
    root: Path, project: str, git: Path | None, state: Mapping[str, object], paths: Iterable[str]
) -> dict[str, list[Rule]] | None:
    """Return the rules of each of *paths* where all that came since they were kept are commits that change none.

    They are kept as those of *state* then. None where more came, or it cannot be told.
    """
    from jidomem.journal.files import FileJournal, Stream  # who comes when nothing was written has no need of it

    here = place(root / _INDEX)
    with suppress(*_AMISS, JidomemError):
        head = _head(root / FOLDER / f"{project}.json")
        if not here or _but_memory({**head, **state, "here": here}) != _but_memory(head) or not head["heads"]:
            return None
        journal, stream, kinds = FileJournal(root, wait=1.0), Stream(project), frozenset(head["kinds"])
        commits = list(journal.read(stream, after=Version.of(Head(*each) for each in head["heads"])))
        now, is_whole = journal.head(stream), not journal.damage(stream)
        if not commits or not is_whole:  # something old was redacted, set aside or restored
            return None
        with _opened(root, head) as store:
            if not all(leaves(commit.triples, kinds, partial(_is_rule, store)) for commit in commits):
                return None
            found = {path: list(_rules(store, path)) for path in paths}
        if is_settled(state) and made_of(root, project, git) == state:
            _put(root, project, {**head, **state, "heads": _heads(now)})
        return found
    return None


def keep(root: Path, project: str, state: Mapping[str, object], rules: Rules, basis: Basis) -> None:
    """Keep *rules* as those of *state*, made on *basis*; where nothing can be written, nothing is."""
    with suppress(OSError, sqlite3.Error):
        folder = root / FOLDER
        ownership.make_folders(root / _INDEX)
        ownership.make_folders(folder)
        file = folder / f"{project}-{token_hex(8)}.sqlite"
        _write(file, rules)
        said = {"here": settle(root / _INDEX), "file": file.name, "heads": _heads(basis.version)}
        _put(root, project, {**state, **said, "kinds": sorted(basis.kinds)})
        for old in folder.glob(f"{project}-*"):
            if old != file and old.stem.rpartition("-")[0] == project:
                old.unlink(missing_ok=True)


def _put(root: Path, project: str, said: Mapping[str, object]) -> None:
    draft = root / FOLDER / f"{project}-{token_hex(8)}.json"
    ownership.write_file(draft, json.dumps(said).encode())
    draft.replace(root / FOLDER / f"{project}.json")


def _heads(version: Version) -> list[list[object]]:
    return [[head.recorded_at, head.id, head.position] for head in version.heads]


def _but_memory(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said beside the state of the stream of memories."""
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


def of_paths(rules: Rules, paths: Iterable[str]) -> dict[str, list[Rule]]:
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
    ownership.lay_file(file)
    with closing(sqlite3.connect(file)) as store:
        store.execute("PRAGMA journal_mode=OFF")
        store.execute("PRAGMA synchronous=OFF")  # nobody is told of it before it is whole, and it may go at any time
        store.executescript(_TABLES)
        with store:
            names = [(now, name) for now, each in rules.earlier.items() for name in each]
            store.executemany("INSERT INTO earlier VALUES (?, ?)", names)
            for number, (rule, named) in enumerate(rules.rules):
                store.execute("INSERT INTO rule VALUES (?, ?)", (number, json.dumps(_said(rule))))
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
    return store.execute("SELECT 1 FROM rule WHERE instr(said, ?) LIMIT 1", (bare(item),)).fetchone() is not None


def _said(rule: Rule) -> list[object]:
    checks = [[check.kind, check.text] for check in rule.checks]
    return [rule.item, rule.force, rule.label, rule.summary, rule.recorded, rule.agent, rule.valid_from,
            rule.valid_until, checks, rule.waits, list(rule.about)]  # fmt: skip


def _rule(said: list[object]) -> Rule:
    *plain, checks, waits, about = said
    return Rule(*plain, tuple(Check(*check) for check in checks), waits, tuple(about))  # type: ignore[arg-type,attr-defined,call-arg]


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
