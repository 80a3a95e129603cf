"""Pages of an answer that stay consistent while others write: the cursor holds the moment of the first page."""

from __future__ import annotations

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.query import FOREVER, NamedQuery, to_term
from jidomem.read.walk import Place
from jidomem.terms import Term

#: How many pages are kept, and how long the longest of them may be.
SHELF, LONGEST = 256, 200


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of an answer, and the cursor of the next ones; None after the last."""

    rows: list[dict[str, Any]]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where to go on: the moment all pages show (as a term), how many rows were given, and of which question.

    `place` says it again for a list that is walked: the next candidate, and how many of its rows were given.
    `valid_at` is the moment at which memories are to hold in the world, where the list judges that: a term, or empty.
    """

    as_of: Term
    offset: int
    question: str
    place: Place = Place()
    valid_at: Term = ""

    def __str__(self) -> str:
        """Return the cursor as opaque text."""
        place = self.place
        body = json.dumps([self.as_of, self.offset, self.question, place.key, place.given, self.valid_at]).encode()
        return urlsafe_b64encode(_digest(body) + body).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str, question: str) -> Cursor:
        """Return the cursor in *text*; raises InvalidRequest when it is damaged or belongs to another question."""
        try:
            raw = urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
        except (AttributeError, UnicodeEncodeError, binascii.Error):
            raw = b""
        if len(raw) <= _SIZE or _digest(raw[_SIZE:]) != raw[:_SIZE]:
            raise InvalidRequest("the cursor is damaged", hint="use the cursor of the page before, or leave it out")
        as_of, offset, asked, key, given, *valid_at = json.loads(raw[_SIZE:])  # one made before 0.1.1 has none
        if asked != question:
            raise InvalidRequest(
                "the cursor belongs to another question",
                hint="repeat the name, the project and every parameter of the first page",
            )
        return cls(str(as_of), int(offset), question, Place(str(key), int(given)), *map(str, valid_at[:1]))


class Shelf:
    """The pages read last, each good until what it was read from changes."""

    def __init__(self) -> None:
        self._pages: OrderedDict[object, tuple[object, Page]] = OrderedDict()
        self._lock = Lock()

    def page(self, key: object, state: object, read: Callable[[], Page]) -> Page:
        """Return the page of *key* as it is in *state*, which was found before: kept from the last time, or *read*."""
        with self._lock:
            then, kept = self._pages.get(key, (None, None))
        if kept is None or then != state:
            kept = read()
            with self._lock:
                self._pages[key] = state, kept
                self._pages.move_to_end(key)
                while len(self._pages) > SHELF:
                    self._pages.popitem(last=False)
        return Page([dict(row) for row in kept.rows], kept.cursor)


_SIZE = 8


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_SIZE).digest()


def fingerprint(query: NamedQuery, project: str, bindings: Mapping[str, Term]) -> str:
    """Return what tells one question from another: the query, the project and every parameter."""
    return _digest(json.dumps([query.text, project, sorted(bindings.items())]).encode()).hex()


def page_size(limit: object) -> int:
    """Return *limit*; raises InvalidRequest unless it is a positive whole number."""
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise InvalidRequest(f"limit={limit!r} is not a positive whole number", hint="give limit=50, or leave it out")
    return limit


def first_moment(bindings: Mapping[str, Term], newest: str) -> Term:
    """Return the moment all pages show: the asked one, but none after the *newest* commit, as others may follow it."""
    asked = bindings.get("asOf", to_term(FOREVER, "dateTime", "asOf"))
    return min(asked, to_term(newest, "dateTime", "asOf")) if newest else asked
