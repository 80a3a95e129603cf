"""What a change of a root's own terms or rules would newly fail, told before anybody makes it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from jidomem import schema as schemas
from jidomem.errors import Failed, InvalidRequest
from jidomem.govern.changed_terms import Change, changes, now_failing
from jidomem.govern.overlay import RULES, TERMS, check_overlay
from jidomem.govern.report import Problem
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.terms import bare
from jidomem.vocab import local_name

FOLDERS = (TERMS, RULES)
#: So many bytes a changed file may have, and so many changes and failures are listed.
BYTES, LISTED = 256 * 1024, 200
#: What a further file of a folder is called.
_FURTHER = "further.ttl"


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be otherwise: terms and shapes that change, and the memories in force that would newly fail.

    `problems` are what is wrong with the changed file; where they keep a root from being opened nothing else is known,
    and it is not `usable`. `rules` counts all failures by rule, `failing` are the first of them.
    """

    name: str
    usable: bool
    problems: Sequence[Problem]
    changes: Sequence[Change] = ()
    failing: Sequence[Problem] = ()
    rules: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {
            "name": self.name,
            "usable": self.usable,
            "problems": [each.to_dict() for each in self.problems],
            "changed": len(self.changes),
            "changes": [asdict(each) for each in self.changes[:LISTED]],
            "failures": sum(self.rules.values()),
            "rules": [{"rule": rule, "name": local_name(rule), "count": count} for rule, count in self.rules.items()],
            "failing": [each.to_dict() for each in self.failing],
        }


def own_files(root: Path) -> list[str]:
    """Return the files of terms and of rules that *root* has of its own, as they are named below it."""
    return [f"{name}/{path.name}" for name in FOLDERS for path in sorted((root / name).glob("*.ttl"))]


def lay(root: Path, folder: Path, name: str, text: str) -> str:
    """Put into *folder* the overlay of *root* with the file *name* saying *text*, gone where that is empty.

    The name is one of `own_files`, or that of a folder for a further file. Returns the file's name. Raises
    InvalidRequest for another name, for a further file that says nothing, and for one that is too large.
    """
    known = own_files(root)
    is_further = name in FOLDERS
    if not is_further and name not in known:
        hint = f"one of: {', '.join([*FOLDERS, *known])}"
        raise InvalidRequest(f"{name[:100]!r} is no file of the overlay", hint=hint)
    if is_further and not text.strip():
        raise InvalidRequest("there is nothing to look at", hint="give the terms or the rules as Turtle")
    size = len(text.encode())
    if size > BYTES:
        hint = "give the file alone that changes; or: jidomem ontology diff --from now --to FOLDER"
        raise InvalidRequest(f"this has {size:,} bytes, and {BYTES:,} are looked at here", hint=hint)
    for each in FOLDERS:
        (folder / each).mkdir()
    for each in known:
        shutil.copyfile(root / each, folder / each)
    path = _free(folder / name / _FURTHER) if is_further else folder / name
    if text.strip():
        path.write_text(text, "utf-8")
    else:
        path.unlink()
    return str(PurePosixPath(path.parent.name, path.name))


def _free(path: Path) -> Path:
    """Return *path*, or one beside it, by which there is nothing."""
    while path.exists():
        path = path.with_name(f"a-{path.name}")
    return path


def preview(index: OxigraphIndex, project: str, root: Path, folder: Path, name: str) -> Preview:
    """Return what would be otherwise in *project* if the overlay of *root* were that in *folder*, for its file *name*.

    Raises Failed for what keeps the overlay from being used and stands in another file.
    """
    problems = _problems(folder, name)
    try:
        new = schemas.load([folder])
    except Failed:
        if not any(each.severity == "violation" for each in problems):
            raise
        return Preview(name, False, problems)
    old, counts = schemas.load([root]), Counter[str]()
    failing: list[Problem] = []
    for found in now_failing(index, project, old, new):
        counts[found.rule] += 1
        if len(failing) < LISTED:
            failing.append(Problem(bare(found.item), found.rule, found.severity, found.message))
    return Preview(name, True, problems, changes(old, new), failing, dict(counts.most_common()))


def _problems(folder: Path, name: str) -> list[Problem]:
    """Return what is wrong with the file, all others in view, its path as it is named in a root."""
    path = folder / name
    if not path.exists():
        return []
    found = check_overlay(folder, [path]).problems
    return [
        Problem(each.item, each.rule, each.severity, _plain(each.message, folder), name, each.line) for each in found
    ]


def _plain(message: str, folder: Path) -> str:
    return message.replace(f"{folder}/", "")
