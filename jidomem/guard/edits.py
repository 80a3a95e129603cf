"""What an edit makes of a file: its text before and after, as far as they are known."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LARGEST = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Edit:
    """One file that is edited: its path as memories have it, its text before and after.

    A text is None where there is none, or none that can be judged. Unless `whole` the texts are the parts that change.
    """

    path: str
    before: str | None = None
    after: str | None = None
    whole: bool = True


def text_of(path: Path) -> str | None:
    """Return the text of a file, None where it is none, or too large to be looked at before every edit."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        return path.read_text("utf-8", "replace")
    except (OSError, ValueError):
        return None


def edited(path: str, file: Path, changes: Iterable[tuple[str, str, bool]]) -> Edit:
    """Return what comes of *file*, the path of memories beside it, when old texts are put in the place of new ones.

    Each change is (old, new, whether every place is meant); a file that is not there is made by one of no old text.
    Where the file has no such text, only the parts are known.
    """
    before = text_of(file)
    steps, after = list(changes), before if before is not None or os.path.lexists(file) else ""
    for old, new, every in steps:
        if after is None or (old and old not in after):
            return Edit(path, "\n".join(old for old, _, _ in steps), "\n".join(new for _, new, _ in steps), whole=False)
        after = after.replace(old, new, -1 if every else 1) if old else after + new
    return Edit(path, before, after)


def changes_of(said: Mapping[str, Any]) -> list[tuple[str, str, bool]] | None:
    """Return the changes that the input of an editing tool names, None where it is no such input."""
    found = said.get("edits") if isinstance(said.get("edits"), list) else [said]
    changes = []
    for each in found or ():
        old, new = (each.get("old_string"), each.get("new_string")) if isinstance(each, Mapping) else (None, None)
        if not isinstance(old, str) or not isinstance(new, str):
            return None
        changes.append((old, new, each.get("replace_all") is True))
    return changes


def of_patch(patch: str) -> dict[str, tuple[str, str, bool]]:
    r"""Return what a patch of Codex takes out of each file and puts in, by its path, and whether the file is new.

    >>> of_patch("*** Begin Patch\n*** Update File: a.py\n@@\n x\n-y\n+z\n*** End Patch")
    {'a.py': ('x\ny', 'x\nz', False)}
    """
    found: dict[str, tuple[list[str], list[str], bool]] = {}
    parts: tuple[list[str], list[str], bool] | None = None
    for line in patch.splitlines():
        if line.startswith(("*** Add File: ", "*** Update File: ", "*** Move to: ")):
            kind, _, path = line.partition(": ")
            parts = (*parts[:2], False) if parts and kind == "*** Move to" else ([], [], kind == "*** Add File")
            found[path.strip()] = parts
        elif line.startswith("***"):
            parts = None if line.startswith("*** Delete File: ") else parts
        elif parts is not None:
            for text, signs in zip(parts[:2], (" -", " +"), strict=True):
                if line[:1] in signs:
                    text.append(line[1:])
    return {path: ("\n".join(before), "\n".join(after), new) for path, (before, after, new) in found.items()}
