"""What another memory's file holds, entry by entry, as intents that wait to be judged.  Values only."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from jidomem.errors import InvalidRequest, JidomemError
from jidomem.intent import parse_line

_HINT = "correct that entry and import the file again; what came in stays"
_ENCODED = "make it UTF-8 (iconv -f latin1 -t utf-8 FILE) and import it again; what came in stays"
#: How many bytes of a file are looked at to find out whether it is a text.
_BEGINNING = 8192


@dataclass(frozen=True, slots=True)
class ForeignEntry:
    """One entry: the `key` it had there (others may share it), where it stands, and the fields of its intent.

    `links` name other entries: the property that says it, and their key. `files` are those it names or is for; which
    of them the repository has is no part of what it says. `headings` and `line` are where a page has it. `content` is
    what the digest is taken of, where the fields depend on other files.
    """

    key: str
    place: str
    fields: Mapping[str, Any]
    links: tuple[tuple[str, str], ...] = ()
    files: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    line: int | None = None
    content: Any = None

    @property
    def summary(self) -> str:
        """Return what it says in short."""
        return str(self.fields.get("summary", ""))

    @property
    def digest(self) -> str:
        """Return 32 hex digits that change when the entry says something else, wherever its file is."""
        return self.digest_under(self.key)

    def digest_under(self, key: str) -> str:
        """Return the digest that the entry would have by another key, such as one without the path of its file."""
        fields = {name: value for name, value in self.fields.items() if name != "evidence"}
        said: Any = [key, fields, self.links] if self.content is None else self.content
        return blake2b(json.dumps(said, sort_keys=True, ensure_ascii=True).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Broken:
    """An entry that cannot be read: where it stands, and why."""

    place: str
    error: JidomemError


@dataclass(slots=True)
class Reading:
    """What a file holds; `left_out` counts what is no memory by the reason, `source_type` says what kind of file it is.

    `places` has a line for each part that is left out, where its place is known.
    With `alone` an entry that changed is known by its key, which no other has.
    """

    source_type: str
    alone: bool = False
    entries: list[ForeignEntry] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)

    def leave_out(self, place: str, reason: str) -> None:
        """Count a part that is no memory, and note its place."""
        self.left_out[reason] += 1
        self.places.append(f"{place}: left out: {reason}")


def objects(name: str, data: bytes, reading: Reading) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each JSON object of a file of JSON lines with its place; what is none is noted as broken.

    So is a file that is no text, as a whole.
    """
    if b"\0" in data[:_BEGINNING]:
        reading.broken.append(Broken(name, not_utf8("no text in UTF-8, as it holds U+0000")))
        return
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            value = parse_line(number, line.removeprefix(b"\xef\xbb\xbf"))
        except InvalidRequest as error:
            error.hint = _ENCODED if "not UTF-8 at byte" in error.detail else _HINT
            reading.broken.append(Broken(place, error))
            continue
        if isinstance(value, dict):
            yield place, value
        else:
            reading.broken.append(Broken(place, wrong("a line holds one JSON object")))


def line_of(place: str) -> int | None:
    """Return the line that a place ends with.

    >>> line_of("memory.jsonl:3"), line_of("memory.json: entity 3")
    (3, None)
    """
    _, colon, number = place.rpartition(":")
    return int(number) if colon and number.isdecimal() else None


def wrong(detail: str) -> InvalidRequest:
    """Return the refusal of an entry that is not as its kind is written."""
    return InvalidRequest(detail, hint=_HINT)


def not_utf8(detail: str) -> InvalidRequest:
    """Return the refusal of what is no UTF-8."""
    return InvalidRequest(detail, hint=_ENCODED)


def text_of(value: Any) -> str:
    """Return a value as text, trimmed; nothing for what is no text."""
    return value.strip() if isinstance(value, str) else ""
