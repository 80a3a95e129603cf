"""The fields of an intent as options of a command, from one table, and the names of memories as arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jidomem.base.json_values import NestingError, decode_json
from jidomem.errors import InvalidRequest, NotFound
from jidomem.rdf import vocab
from jidomem.records.file_anchor import path_of
from jidomem.records.intent import LIST_FIELDS
from jidomem_cli.options import reject_placeholder
from jidomem_cli.paths import Paths

if TYPE_CHECKING:
    from jidomem import Jidomem
    from jidomem.exchange.lineage import SourceVersion


Function = TypeVar("Function", bound=Callable[..., Any])

_TAGGED = re.compile(r'"(.+)"@([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*)', re.DOTALL)
#: Field -> help of its option; other fields have no option.
HELP: Mapping[str, str] = {
    "type": f"Type: {', '.join(vocab.WRITER_TYPES)}, or one below these (default: fact).",
    "topic": "Topic of a decision or fact, in one phrase.",
    "about": "File, folder, pattern or module it is about; repeatable.",
    "confidence": "low, medium, high or a number from 0 to 1 (default: medium).",
    "rationale": "Rationale; required for a decision.",
    "detailed_explanation": "Full explanation.",
    "evidence": "Evidence, as text or IRI; repeatable.",
    "supersedes": "Memory that it replaces, an IRI or short id; repeatable.",
    "invalidates": "Memory that it shows to be wrong; repeatable.",
    "coexists_with": "Memory on the same topic that stays active beside it; repeatable.",
    "revives": "Ended memory that it makes active again; repeatable.",
    "status": "Status of a task, error or decision.",
    "severity": f"Severity of an error: {', '.join(vocab.SEVERITY)}.",
    "assigned_to": "Agent that a task is assigned to.",
    "convention_name": "Name of a convention.",
    "convention_scope": f"Scope of a convention: {', '.join(vocab.SCOPE)}.",
    "enforcement_level": f"Enforcement of a convention: {', '.join(vocab.ENFORCEMENT)}.",
    "alternatives": "Rejected alternative of a decision; repeatable.",
    "tracked_by": "URL of an issue.",
    "expires_on": "Deadline of a task (a date: the end of that day, UTC) or next review, ISO 8601; it stays active.",
    "valid_from": "Start of validity, ISO 8601.",
    "valid_until": "End of validity, ISO 8601.",
    "timestamp": "Date and time, ISO 8601 (default: now).",
    "source_type": f"Type of source: {', '.join(vocab.SOURCE_TYPE)}.",
    "reason": "Reason, recorded with the change.",
    "iri": "Its IRI (default: a new one).",
    "idempotency_key": "Key of the request: a retry with it returns the first receipt.",
}
_OTHER_FLAGS = {"expires_on": ("--due",)}
_METAVARS = {"about": "PATH", "timestamp": "MOMENT"}


def intent_options(names: Iterable[str] = tuple(HELP)) -> Callable[[Function], Function]:
    """Return the decorator that gives a command an option for each field of *names*."""

    def decorate(function: Function) -> Function:
        for name in reversed([*names]):
            flags = [f"--{name.replace('_', '-')}", *_OTHER_FLAGS.get(name, ())]
            option = click.option(
                *flags,
                name,
                multiple=name in LIST_FIELDS,
                metavar=_METAVARS.get(name, "TEXT"),
                help=HELP[name],
                callback=reject_placeholder,
            )
            function = option(function)
        return function

    return decorate


def set_option(name: str) -> Callable[[Function], Function]:
    """Return the decorator that gives a command the option `--set`, repeatable, as its parameter *name*."""
    text = "Set a field, or a property of the project such as shop:severity; repeatable."
    return click.option("--set", name, multiple=True, metavar="FIELD=VALUE", help=text)


def present_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are set, in the form of an intent.

    >>> present_fields({"topic": None, "about": ("a.py",), "evidence": ()})
    {'about': ['a.py']}
    """
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items() if v not in (None, ())}


def with_memory_paths(memory: Jidomem, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return *fields* with existing files as paths of the memory; raises InvalidRequest for a path outside."""
    about = fields.get("about")
    if not about:
        return dict(fields)
    return {**fields, "about": [*map(Paths(memory.settings.root, memory.tree).about, about)]}


def json_or_text(text: str) -> Any:
    """Return the JSON value in *text*, else *text* itself; raise InvalidRequest for JSON nested too deeply."""
    try:
        return decode_json(text)
    except NestingError as error:
        raise InvalidRequest(f"the value is {error}", hint="store the parts under separate keys") from error
    except ValueError:
        return text


def memory_iri(memory: Jidomem, name: str) -> str:
    """Return the IRI of a memory from its IRI, which is not looked up, or another name of it."""
    return memory.reader.whole_id(memory.project, memory_path(memory, name))


def memory_path(memory: Jidomem, name: str) -> str:
    """Return *name* with a file, with or without line, as a path of the memory.

    A line of a file that is there becomes the IRI of the memory that was imported from it.
    """
    path, colon, line = name.rpartition(":") if name.rpartition(":")[2].isdecimal() else (name, "", "")
    seen = Paths(memory.settings.root, memory.tree).seen(path)
    return (_memory_at(memory, seen, int(line)) if line else None) or seen + colon + line


def entries_now(memory: Jidomem, paths: Collection[str]) -> dict[str, dict[int, list[str]]]:
    """Return for each file of *paths* the lines at which entries begin now, each with the memories of the entry.

    A file that is not there, or from whose lines nothing was imported, is left out.
    """
    tree = memory.tree
    if tree is None or not paths:
        return {}
    from jidomem.exchange.importer import SourceFile
    from jidomem.exchange.synchroniser import imported, read_sources
    from jidomem.repository.other_tools import ADR

    memory.catch_up(memory.project)
    kinds: dict[str, str] = {}
    versions: dict[tuple[str, str | None], list[SourceVersion]] = {}
    for version in imported(memory.reader.index, memory.project, paths):
        if version.kind != ADR:
            kinds.setdefault(version.path, version.kind)
            versions.setdefault((version.path, version.digest), []).append(version)
    data = {path: tree.read(path) for path in kinds if path_of(path) == path}
    files = [SourceFile(kinds[path], path, text) for path, text in data.items() if text is not None]
    entries: dict[str, dict[int, list[str]]] = {file.path: {} for file in files}
    for entry in read_sources(files).entries:
        if entry.entry.line is not None:
            items = entries[entry.path].setdefault(entry.entry.line, [])
            for digest in (*entry.digests, None):
                candidates = versions.get((entry.path, digest), ())
                items += [version.iri for version in candidates if entry.matches(version)]
    return entries


def _memory_at(memory: Jidomem, path: str, line: int) -> str | None:
    """Return the IRI of the memory that was imported from *line* of a file; None if nothing was imported from there.

    It is the nearest line above at which an entry begins, without a blank line or heading in between. Raises NotFound
    for a line of a file from which other lines were imported.
    """
    entries = entries_now(memory, [path]).get(path)
    if not entries:
        return None
    assert memory.tree is not None
    lines = (memory.tree.read(path) or b"").decode("utf-8", "replace").splitlines()
    for number in range(line, 0, -1) if line <= len(lines) else ():
        if entries.get(number):
            return min(entries[number], key=partial(_standing, memory))
        if number in entries or not lines[number - 1].strip() or lines[number - 1].startswith("#"):
            break
    near = sorted(filter(entries.get, entries), key=lambda number: (abs(number - line), number))[:3]
    if not near:
        return None
    named = " or ".join(f"{path}:{number}" for number in near)
    raise NotFound(f"{memory.project} has no memory '{path}:{line}'", hint=f"did you mean {named}?")


def _standing(memory: Jidomem, item: str) -> int:
    """Return 0 for an active memory, 1 for a proposal, 2 for another one."""
    status = str(memory.reader.get_memory(memory.project, item)["status"])
    return {"active": 0, "pending": 1}.get(status, 2)


def given_fields(changes: Iterable[str], lists: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields in FIELD=VALUE; a list field, also one of *lists*, is merged, and an empty value removes."""
    fields: dict[str, Any] = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals or not name:
            raise InvalidRequest(f"{change!r} sets no field", hint="write FIELD=VALUE, such as status=Completed")
        name = name if ":" in name else name.replace("-", "_")
        if ":" in name:
            fields.setdefault(name, []).extend(map(_with_language, _entries(value)))
        elif name in LIST_FIELDS or name in lists:
            fields.setdefault(name, []).extend(_triples(value) if name == "extra_triples" else _entries(value))
        else:
            fields[name] = value or None
    return fields


def _entries(value: str) -> list[str]:
    """Return the entries of a list: those of a JSON list of texts, else *value* itself; none if it is empty."""
    try:
        entries = decode_json(value) if value.startswith("[") else None
    except ValueError:
        entries = None
    if isinstance(entries, list) and all(isinstance(entry, str) for entry in entries):
        return entries
    return [value] if value else []


def _with_language(value: str) -> str | dict[str, str]:
    """Return the value of a property of the project; one written as in Turtle, "TEXT"@TAG, is a text of that language.

    >>> _with_language('"Haus"@de'), _with_language("Haus")
    ({'@value': 'Haus', '@language': 'de'}, 'Haus')
    """
    match = _TAGGED.fullmatch(value)
    return {"@value": match[1], "@language": match[2]} if match else value


def _triples(value: str) -> list[Any]:
    """Return the extra triples in a JSON list, which is one triple or contains several; none if it is empty."""
    if not value:
        return []
    try:
        triples = decode_json(value)
    except ValueError as error:
        hint = """write extra_triples='["jido:impactLevel", "high"]'"""
        raise InvalidRequest(f"{value!r} is not a JSON list", hint=hint) from error
    is_list = isinstance(triples, list) and all(isinstance(triple, list) for triple in triples)
    return triples if is_list else [triples]
