"""Which format of an answer is wanted most: the header Accept, and the fields that clients send beside it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeVar

from flask import Response, after_this_request, request

from jidomem.errors import InvalidRequest, NotServed

T = TypeVar("T")
_PART = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*"?)+')
_PIECE = re.compile(r'(?:[^;"]|"(?:[^"\\]|\\.)*"?)+')
_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+/[\w!#$%&'*+.^`|~-]+|\*")
#: Between 0 and 1; Java's own client writes `q=.2`.
_QUALITY = re.compile(r"0?\.\d{1,3}|0\.?|1(?:\.0{0,3})?")


class _Range(NamedTuple):
    """A media range of the header: its name, and how much it is wanted."""

    name: str
    quality: float

    def weight(self, offer: str) -> int:
        """Return how closely it names *offer*: 0 where it does not, 3 where it names it alone."""
        if self.name in ("*", "*/*"):
            return 1
        if self.name.endswith("/*"):
            return 2 * offer.startswith(self.name[:-1])
        return 3 * (self.name == offer)


def negotiate(offers: Mapping[str, T]) -> T:
    """Return what of *offers*, media type -> what it stands for, is wanted most by the header Accept.

    Raises NotServed `not_acceptable` when nothing of it is wanted, InvalidRequest for a header that cannot be read.
    """
    after_this_request(_varying)
    accept = request.headers.get("Accept", "*/*")
    chosen = _chosen(accept, tuple(offers))
    if chosen is None:
        raise refusal(f"none of {accept}", offers)
    return offers[chosen]


def _varying(response: Response) -> Response:
    response.vary.add("Accept")
    return response


def refusal(what: str, offers: Iterable[str]) -> NotServed:
    """Return the refusal of *what*, which is none of the media types in *offers*."""
    return NotServed(f"{what} can be had here", hint=f"accept one of: {', '.join(offers)}", code="not_acceptable")


def named(values: Collection[str], names: Mapping[str, Collection[str]], offers: Mapping[str, T]) -> dict[str, T]:
    """Return those of *offers* that one of *values* names: by a media type, several with commas, or one of *names*.

    Raises InvalidRequest for a value that is neither, NotServed `not_acceptable` where none is offered.
    """
    wanted = {name for value in values for name in re.split(r"\s*,\s*", value.strip().lower())}
    if unknown := next((name for name in wanted if name and name not in names and "/" not in name), None):
        raise InvalidRequest(f"{unknown!r} is no format", hint=f"give one of: {', '.join(names)}, or a media type")
    media = wanted.union(*(names.get(name, ()) for name in wanted))
    found = {offer: what for offer, what in offers.items() if offer in media}
    if not found:
        raise refusal(f"none of {', '.join(values)}", offers)
    return found


@lru_cache(maxsize=256)
def _chosen(accept: str, offers: tuple[str, ...]) -> str | None:
    """Return the offer of the highest quality, the first where several have it; None when none is accepted."""
    ranges = [_range(part) for part in _PART.findall(accept) if part.strip()]
    if not ranges:
        return offers[0]
    qualities = {offer: _quality(offer, ranges) for offer in offers}
    best = max(offers, key=lambda offer: qualities[offer])
    return best if qualities[best] else None


def _quality(offer: str, ranges: Iterable[_Range]) -> float:
    """Return how much *offer* is wanted: the range that names it most closely decides."""
    return max((each.weight(offer), each.quality) for each in [*ranges, _Range("*", 0.0)])[1]


def _range(part: str) -> _Range:
    name, *parameters = (piece.strip().lower() for piece in _PIECE.findall(part) or [""])
    quality = next((piece[2:] for piece in parameters if piece.startswith("q=")), "1")
    if not (_NAME.fullmatch(name) and _QUALITY.fullmatch(quality)):
        raise InvalidRequest(
            f"{part.strip()!r} of the header Accept is no media range", hint="write it so: Accept: text/csv, */*;q=0.5"
        )
    return _Range(name, float(quality))
