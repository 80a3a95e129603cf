"""The fields of an intent as options of a verb, from one table.

Where the paths of a memory begin, and which of its files somebody names who stands elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import click

from jidomem import Jidomem
from jidomem.base.json_values import TooDeep, decode_json
from jidomem.errors import InvalidRequest
from jidomem.rdf import vocab
from jidomem.records.intent import LIST_FIELDS, path_of
from jidomem.repository.worktree import Addresses, Worktree, path_below
from jidomem.runtime.settings import FOLDER


class Paths:
    """The paths of the memory at *root*, which lies in the repository *tree* if in any, named from where one stands.

    They begin at the folder that holds the root; those of a root that lies in none, and is no `.jidomem`, here.
    """

    def __init__(self, root: Path, tree: Worktree | None) -> None:
        self._root, self._here = root, Path.cwd().resolve()
        self._addresses = Addresses.of(tree) if tree else None
        self.folder = tree.base if tree else root.parent if root.name == FOLDER else self._here

    def of(self, given: str) -> str | None:
        """Return a path as memories have it; None for one that lies elsewhere, or is of the memory itself."""
        path = path_below(self.folder, self._here / given)
        return path if path is not None and not self._is_own(path) else None

    def seen(self, given: str) -> str:
        """Return the path as memories have it of a file or folder that is there, seen from here; all else as it is."""
        if "://" in given:
            return self._named(given)
        path = self.of(given) if given and os.path.exists(self._here / given) else None
        return given if path is None else path + "/" * given.endswith("/")

    def touched(self, given: str) -> list[str]:
        """Return the paths of what is edited by that name: what it names, and what that leads to where it is a link."""
        try:
            real = str((self._here / given).resolve())
        except (OSError, ValueError, RuntimeError):
            return []
        return [path for path in dict.fromkeys(map(self.of, (given, real))) if path is not None]

    def each(self, given: tuple[str, ...]) -> list[str]:
        """Return the paths as memories have them, each once; raises InvalidRequest for one that lies elsewhere.

        To somebody who stands elsewhere a relative path is one below the folder. A web address that a remote of the
        repository has for a file is the path of that file; another address stays as it is.
        """
        return list(dict.fromkeys(map(self._named, given)))

    def others(self, given: tuple[str, ...]) -> list[str]:
        """Return the same, without what is of the memory itself."""
        return [path for path in self.each(given) if not self._is_own(path)]

    def _named(self, given: str) -> str:
        if "://" in given:
            return (self._addresses.path(given) if self._addresses else None) or given
        start = self._here if self._here.is_relative_to(self.folder) else self.folder
        path = path_below(self.folder, start / given) if given else None
        if path is None:
            raise InvalidRequest(
                f"{given} lies outside of {self.folder}, where the paths of this memory begin"
                if given
                else "a path is needed",
                hint=self._where(start / given),
            )
        return path

    def _where(self, whole: Path) -> str:
        """Return what is right for a path that lies elsewhere: the memory there, if there is one."""
        real = whole.resolve()
        other = next((folder / FOLDER for folder in real.parents if (folder / FOLDER).is_dir()), None)
        if other is None or other == self._root:
            return f"name a file below {self.folder}; the memory of another folder is named with --root"
        verb = click.get_current_context().info_name
        return f"ask the memory there: jidomem --root {quote(str(other))} {verb} {quote(str(real))}"

    def _is_own(self, path: str) -> bool:
        return (self.folder / path).is_relative_to(self._root)


#: Stands for a reason in commands to paste, where the person who runs them is to say why.
REASON = '"..."'
_PLACEHOLDERS = ("...", "…", "TEXT")
Function = TypeVar("Function", bound=Callable[..., Any])

#: field -> what its option says; the other fields have a place of their own on the command line.
HELP: Mapping[str, str] = {
    "type": f"One of {', '.join(vocab.WRITER_TYPES)} and those below them (fact).",
    "topic": "What a decision or fact is about, in one phrase.",
    "about": "A file, folder, pattern, module or IRI it concerns; repeat it for more.",
    "confidence": "low, medium, high or a number from 0 to 1 (medium).",
    "rationale": "Why; a decision needs one.",
    "detailed_explanation": "The long form.",
    "evidence": "A text or IRI it rests on; repeat it for more.",
    "supersedes": "A memory it replaces, an IRI or short id; repeat it for more.",
    "invalidates": "A memory it shows to be wrong; repeat it for more.",
    "coexists_with": "A memory it may stand beside, each with its own scope.",
    "revives": "A memory that ended, and that it says again.",
    "status": "Of a task, error or decision.",
    "severity": f"Of an error: {', '.join(vocab.SEVERITY)}.",
    "assigned_to": "The agent a task is given to.",
    "convention_name": "What a convention is called.",
    "convention_scope": f"{', '.join(vocab.SCOPE)}.",
    "enforcement_level": f"{', '.join(vocab.ENFORCEMENT)}.",
    "alternatives": "What a decision did not choose; repeat it for more.",
    "tracked_by": "The URL of an issue.",
    "expires_on": "When it ends by itself, ISO 8601.",
    "valid_from": "From when it holds.",
    "valid_until": "Until when it holds.",
    "timestamp": "When it came to be known (default: now).",
    "source_type": f"{', '.join(vocab.SOURCE_TYPE)}.",
    "reason": "Why it replaces what it supersedes.",
    "iri": "An IRI of your own for it.",
    "idempotency_key": "A retry with the same key gets the first receipt again.",
}


def intent_options(names: Iterable[str] = tuple(HELP)) -> Callable[[Function], Function]:
    """Return the decorator that gives a verb an option for each field of *names*."""

    def decorate(function: Function) -> Function:
        for name in reversed([*names]):
            flag = f"--{name.replace('_', '-')}"
            option = click.option(
                flag, name, multiple=name in LIST_FIELDS, metavar="TEXT", help=HELP[name], callback=reject_placeholder
            )
            function = option(function)
        return function

    return decorate


def present_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that were set, as an intent has them.

    >>> present_fields({"topic": None, "about": ("a.py",), "evidence": ()})
    {'about': ['a.py']}
    """
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items() if v not in (None, ())}


def reject_placeholder(context: click.Context, param: click.Parameter, value: Any) -> Any:
    """Return the value of an option; raises InvalidRequest for the placeholder of a command to paste."""
    for text in value if isinstance(value, tuple) else (value,):
        if text is not None and text.strip() in _PLACEHOLDERS:
            name = (param.name or "value").replace("_", " ")
            raise InvalidRequest(
                f"{text!r} stands for the {name}, which is yours to give",
                hint="say why in its place" if name == "reason" else f"give the {name} in its place",
            )
    return value


def with_memory_paths(memory: Jidomem, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return *fields* with files that are seen from here as the memory has them."""
    about = fields.get("about")
    if not about:
        return dict(fields)
    return {**fields, "about": [*map(Paths(memory.settings.root, memory.tree).seen, about)]}


def json_or_text(text: str) -> Any:
    """Return the JSON value in *text*, else *text* itself; raise InvalidRequest for JSON nested too deeply."""
    try:
        return decode_json(text)
    except TooDeep as error:
        raise InvalidRequest(f"the value is {error}", hint="keep its parts under keys of their own") from error
    except ValueError:
        return text


def memory_iri(memory: Jidomem, name: str) -> str:
    """Return the IRI of a memory from its IRI, which is not looked up here, or from another name of it."""
    return memory.reader.whole_id(memory.project, memory_path(memory, name))


def memory_path(memory: Jidomem, name: str) -> str:
    """Return *name*, that of a file which is seen from here, with a line or without, as the memory has the file.

    Of a line within a paragraph that was imported from its first line it is that one.
    """
    path, colon, line = name.rpartition(":") if name.rpartition(":")[2].isdecimal() else (name, "", "")
    seen = Paths(memory.settings.root, memory.tree).seen(path)
    first = _first_line(memory, seen, int(line)) if line else None
    return seen + colon + (line if first is None else str(first))


def _first_line(memory: Jidomem, path: str, line: int) -> int | None:
    """Return the line at which the memory begins that was imported from *line* of a file; None where none was.

    It is the nearest above with which a memory begins, and no blank line or heading lies between.
    """
    data = memory.tree.read(path) if memory.tree is not None and path_of(path) == path else None
    begins = memory.reader.source_lines(memory.project, path) if data is not None else frozenset()
    lines = data.decode("utf-8", "replace").splitlines() if data is not None else []
    for number in range(min(line, len(lines)), 0, -1) if line <= len(lines) else ():
        if number in begins:
            return number
        if not lines[number - 1].strip() or lines[number - 1].startswith("#"):
            return None
    return None
