"""The rules, decisions, errors and lessons that govern files, the nearest to each file first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from os.path import lexists
from pathlib import Path
from posixpath import normpath
from typing import Any

from jidomem.active import ACTIVE, Inactive
from jidomem.errors import InvalidRequest
from jidomem.govern.freshness import anchors_in_force, fresh
from jidomem.govern.nearness import SHOWN, is_note, nearness
from jidomem.index import OxigraphIndex
from jidomem.read import item
from jidomem.read.reader import MemoryReader
from jidomem.repository.addresses import Addresses
from jidomem.repository.freshness import freshness
from jidomem.repository.ignored import matches
from jidomem.repository.nearby import nearest_path
from jidomem.repository.worktree import Worktree, path_below
from jidomem.vocab import TYPE_OF_CLASS, local_name
from jidomem.write.names import plain_path

Row = dict[str, Any]
COLUMNS = ("path", "item", "kind", "force", "about", "freshness", "summary", "status", "time")
#: How binding a memory is, the most binding first.
FORCES = ("strict", "required", "decision", "open error", "lesson", "advisory", "past error")
_PAGE = 200
_NOWHERE = (-1, 0)
_OF_LEVEL = {"Strict": "strict", "Required": "required", "Advisory": "advisory"}


def governing(
    reader: MemoryReader,
    index: OxigraphIndex,
    tree: Worktree | None,
    project: str,
    paths: Sequence[str],
    **asked: Any,
) -> list[Row]:
    """Return what governs each of *paths*, the nearest first, then the most binding, then the newest.

    Those of one commit keep their order.

    Paths are relative to the folder that holds the root, with forward slashes, or absolute; raises InvalidRequest for
    one that lies outside of that folder. A memory about a file that was renamed governs it by its new name too. A
    memory about no place in particular governs nothing, unless it is a strict or required convention.

    *asked* are as_of, valid_at and include_inactive. Each row has path, item, kind, class, force, about (the place it
    was found by), summary, level, status (active, proposed ...), time, state of a task or error, freshness of each file
    it is about, source, agent and recorded.
    """
    if not paths:
        raise InvalidRequest("a path is needed", hint="name a file: jidomem governing src/a.py")
    paths = [*dict.fromkeys(_below(tree, path) for path in paths)]
    earlier = earlier_names(reader, tree, project)
    patterns = _patterns(reader, project, asked)
    found: dict[tuple[str, str], Row] = {}
    near: dict[tuple[str, str], tuple[int, int]] = {}
    for path in paths:
        for name in (plain_path(path), *earlier.get(plain_path(path), ())):
            rows = reader.ask("governing", project=project, file=name, **asked)
            rows += [row for row in patterns if matches(plain_path(row["about"]), name)]
            for row in rows:
                place, distance = (path, row["item"]), nearness(name, row["about"])
                if distance > near.get(place, _NOWHERE) and not is_note(row["about"], row["level"]):
                    found[place], near[place] = {"path": path, **row}, distance
    known = fresh(index, tree, project, (item for _, item in found))
    described = [_described(index, project, row, asked) for row in found.values()]
    for row in described:
        row["freshness"] = [found_.to_dict() for found_ in known.get(row["item"], ())]
    described.sort(key=lambda row: str(row["item"]))
    described.sort(key=lambda row: row["recorded"], reverse=True)
    described.sort(key=lambda row: FORCES.index(row["force"]))
    described.sort(key=lambda row: near[row["path"], row["item"]], reverse=True)
    described.sort(key=lambda row: paths.index(row["path"]))
    return described


@dataclass(frozen=True, slots=True)
class GoverningAnswer:
    """The `rows` of `governing`, with what a reader would miss in them.

    `left_out` has the status of each memory that would be among them and is not active, `missing` each path at which
    there is no file, with the nearest path there is, None where no name is like it. Where there are no rows,
    `conventions` is how many the project has; else None.
    """

    rows: Sequence[Row]
    left_out: Mapping[str, str]
    missing: Mapping[str, str | None]
    conventions: int | None = None

    @property
    def inactive(self) -> Inactive:
        """Return how many memories are left out because they are not active."""
        return self.inactive_but(())

    def inactive_but(self, items: Collection[str]) -> Inactive:
        """Return the same without those of *items*, which were told of already."""
        statuses = Counter(status for name, status in self.left_out.items() if name not in items)
        return Inactive(statuses)

    def notices(self) -> list[str]:
        """Return a sentence about each path at which there is no file."""
        nearest = {path: f"; the nearest name is {near}" if near else "" for path, near in self.missing.items()}
        return [f"there is no file {path}{near}" for path, near in nearest.items()]

    def to_dict(self, option: str = "include_inactive=true") -> dict[str, Any]:
        """Return all but the rows as plain values; *option* is what shows memories that are not active."""
        missing = [{"path": path, "nearest": near} for path, near in self.missing.items()]
        project = None if self.conventions is None else {"conventions": self.conventions, "query": "conventions"}
        return {"inactive": self.inactive.to_dict(option), "missing": missing, "whole_project": project}


def answer(
    reader: MemoryReader,
    index: OxigraphIndex,
    tree: Worktree | None,
    base: Path | None,
    project: str,
    paths: Sequence[str],
    **asked: Any,
) -> GoverningAnswer:
    """Return what governs *paths*, and what a reader would miss in it; raises what `governing` raises.

    The files lie below *base*, None where no files are known. A memory that was superseded is not counted beside its
    successor.
    """
    rows = governing(reader, index, tree, project, paths, **asked)
    wider = {**asked, "include_inactive": True}
    every = [] if wider == asked else governing(reader, index, tree, project, paths, **wider)
    active, as_of = {row["item"] for row in rows}, asked.get("as_of")
    hidden = {row["item"]: row["status"] for row in every if row["item"] not in active and row["status"] != ACTIVE}
    known = {*active, *hidden}
    left_out = {
        name: status for name, status in hidden.items() if not item.has_successor(index, project, name, known, as_of)
    }
    missing: dict[str, str | None] = {}
    if base is not None and as_of is None:
        plain = dict.fromkeys(plain_path(_below(tree, path)).rstrip("/") for path in paths)
        missing = {path: nearest_path(base, path) for path in plain if "://" not in path and not lexists(base / path)}
    moment = {name: asked[name] for name in ("as_of", "valid_at") if name in asked}
    conventions = None if rows else len(reader.ask("conventions", project=project, **moment))
    return GoverningAnswer(rows, left_out, missing, conventions)


def nearest(rows: Sequence[Row], limit: int = SHOWN) -> list[Row]:
    """Return the first *limit* rows of each path in their order; strict conventions come before what is nearer."""
    ranked = sorted(enumerate(rows), key=lambda row: (row[1]["force"] != "strict", row[0]))
    count, kept = Counter[str](), []
    for number, row in ranked:
        count[row["path"]] += 1
        if count[row["path"]] <= limit:
            kept.append(number)
    return [rows[number] for number in sorted(kept)]


def _below(tree: Worktree | None, path: str) -> str:
    """Return *path* from where the paths of memories begin; raises InvalidRequest for one outside.

    A web address that a remote of the repository has for a file is that of the file.
    """
    below: str | None = path
    if path.startswith("/"):
        below = path_below(tree.base, Path(path)) if tree is not None else None
    elif "://" in path:
        below = (Addresses.of(tree).path(path) if tree is not None else None) or path
    elif f"{normpath(path)}/".startswith("../"):
        below = None
    if below is None:
        where = str(tree.base) if tree is not None else "the folder that holds the root"
        detail = f"{path} lies outside of {where}, where the paths of this memory begin"
        raise InvalidRequest(detail, hint="name a file from there: src/a.py")
    return below


def _patterns(reader: MemoryReader, project: str, asked: Mapping[str, Any]) -> list[Row]:
    """Return what is about a pattern, read in pages, since a long list is kept for those."""
    rows, cursor = [], None
    while True:
        page = reader.ask_page("patterns", project=project, limit=_PAGE, cursor=cursor, **asked)
        rows += page.rows
        cursor = page.cursor
        if cursor is None:
            return rows


def earlier_names(reader: MemoryReader, tree: Worktree | None, project: str) -> Mapping[str, list[str]]:
    """Return the names that files had when a memory about them was written, by the name each has now."""
    if tree is None:
        return {}
    gone = [anchor for _, _, anchor in anchors_in_force(reader, project) if not tree.has(anchor.path)]
    names: dict[str, list[str]] = {}
    for found in freshness(tree, gone).values():
        if found.at is not None and found.path not in names.setdefault(found.at, []):
            names[found.at].append(found.path)
    return names


def _described(index: OxigraphIndex, project: str, row: Row, asked: Mapping[str, Any]) -> Row:
    """Return *row* with what is said of its memory."""
    memory = item.get(index, project, row["item"], asked.get("as_of"))
    said = {name: values[0] for name, values in memory["properties"].items() if values}
    level = local_name(row["level"]) if row["level"] else None
    state = said.get("hasErrorStatus") or said.get("hasTaskStatus") or said.get("decisionStatus")
    kind = memory["type"] or TYPE_OF_CLASS.get(memory["class"], memory["class"])
    state = local_name(state) if isinstance(state, str) else None
    return {
        "path": row["path"],
        "item": row["item"],
        "kind": kind,
        "force": _force(memory["class"], level, state, "hasErrorStatus" in said),
        "about": row["about"],
        "freshness": [],
        "summary": row["summary"],
        "level": level,
        "severity": said.get("severityLevel"),
        "state": state,
        "standing": row["status"],
        "status": row["status"],
        "time": said.get("hasTimestamp"),
        "source": local_name(said["hasSourceType"]) if "hasSourceType" in said else None,
        "agent": local_name(said["assertedBy"]) if "assertedBy" in said else None,
        "recorded": memory["recorded_at"],
        **({"conflicts_with": row["conflicts_with"]} if "conflicts_with" in row else {}),
    }


def _force(kind: str, level: str | None, state: str | None, is_error: bool) -> str:
    if level is not None:
        return _OF_LEVEL.get(level, "advisory")
    if is_error:
        return "past error" if state in ("Resolved", "Deferred") else "open error"
    return "lesson" if kind in ("LessonLearned", "RootCause") else "decision"
