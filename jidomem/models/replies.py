"""The answers of a language model to the tasks of memory, held to the form that was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import orjson

from jidomem.errors import InvalidRequest
from jidomem.model import AGENT, OBJECT, Bounds, Fact, Learned, Trait
from jidomem.models.claims import is_private
from jidomem.models.summary import cut

T = TypeVar("T")
#: Signs of an answer, and of a keyword.
LONGEST, LONGEST_WORD = 200_000, 60
_FENCE = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)


class Malformed(ValueError):
    """An answer is not of the form that was asked for; it says what is wrong, and nothing of what was answered."""


def parsed(answer: str) -> Mapping[str, Any]:
    r"""Return the one JSON object that *answer* is, in a fence or without; raise Malformed for any other.

    >>> parsed('```json\n{"continues": true}\n```')
    {'continues': True}
    """
    if len(answer) > LONGEST:
        raise Malformed(f"it has more than {LONGEST:,} characters")
    fenced = _FENCE.fullmatch(answer.strip())
    try:
        found = orjson.loads(fenced[1] if fenced else answer)
    except ValueError:
        raise Malformed("it is no JSON") from None
    if not isinstance(found, dict):
        raise Malformed("it is no JSON object")
    return found


def chain(found: Mapping[str, Any], bounds: Bounds) -> str:
    """Return the summary of a talk."""
    return cut(_text(found, "chain", "chain"), bounds.chain)


def continues(found: Mapping[str, Any]) -> bool:
    """Return whether a talk goes on."""
    return _truth(found, "continues", "continues")


def keywords(found: Mapping[str, Any], bounds: Bounds) -> tuple[str, ...]:
    """Return keywords in lower case, each once; what is too long for one is none. Raises Malformed."""
    told = _list(found, "keywords")
    if not all(isinstance(word, str) for word in told):
        raise Malformed("keywords has what is no text")
    words = dict.fromkeys(_clean(word).casefold() for word in told)
    return tuple(word for word in words if 0 < len(word) <= LONGEST_WORD)[: bounds.keywords]


def summary(found: Mapping[str, Any], bounds: Bounds) -> str:
    """Return the summaries of up to two topics as one text, each behind its theme; raises Malformed for none."""
    topics = list(_objects(found, "topics"))[:2]
    if not topics:
        raise Malformed("topics is empty")
    told = [
        ": ".join(_text(topic, name, f"{place}.{name}") for name in ("theme", "summary")) for place, topic in topics
    ]
    return cut(" ".join(told), bounds.summary)


def learned(found: Mapping[str, Any], bounds: Bounds, pages: int) -> Learned:
    """Return facts and traits, as many as *bounds* lets; what reads like a private matter is one, whatever is said."""
    facts = [_fact(place, fact, bounds, pages) for place, fact in _objects(found, "facts")]
    traits = [_trait(place, trait, bounds, pages) for place, trait in _objects(found, "traits")]
    return Learned(tuple(facts[: bounds.facts]), tuple(traits[: bounds.traits]))


def scores(found: Mapping[str, Any], count: int) -> tuple[float, ...]:
    """Return *count* numbers from 0 to 1; raises Malformed for others, or for more or fewer."""
    told = _list(found, "scores")
    if len(told) != count:
        raise Malformed(f"scores has {len(told)} numbers for {count} facts")
    if not all(type(score) in (int, float) and 0 <= score <= 1 for score in told):
        raise Malformed("scores has what is no number from 0 to 1")
    return tuple(map(float, told))


def _fact(place: str, told: Mapping[str, Any], bounds: Bounds, pages: int) -> Fact:
    text = cut(_text(told, "text", f"{place}.text"), bounds.statement)
    return _made(place, lambda: Fact(text, **_known(place, told, text, pages)))


def _trait(place: str, told: Mapping[str, Any], bounds: Bounds, pages: int) -> Trait:
    name, value = (cut(_text(told, each, f"{place}.{each}"), bounds.statement) for each in ("name", "value"))
    return _made(place, lambda: Trait(name, value, **_known(place, told, f"{name} {value}", pages)))


def _known(place: str, told: Mapping[str, Any], text: str, pages: int) -> dict[str, Any]:
    page = told.get("page")
    if page is not None and (type(page) is not int or not 0 <= page < pages):
        raise Malformed(f"{place}.page is no number of a page")
    private = _truth(told, "private", f"{place}.private") if "private" in told else False
    return {"confidence": told.get("confidence"), "subject": told.get("subject"), "page": page,
            "private": private or is_private(text)}  # fmt: skip


def _made(place: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except InvalidRequest:
        raise Malformed(
            f"{place} has a subject other than {OBJECT!r} and {AGENT!r}, or no confidence from 0 to 1"
        ) from None


def _list(found: Mapping[str, Any], name: str) -> list[Any]:
    told = found.get(name)
    if not isinstance(told, list):
        raise Malformed(f"{name} is no list")
    return told


def _objects(found: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, told in enumerate(_list(found, name)):
        if not isinstance(told, dict):
            raise Malformed(f"{name}[{number}] is no object")
        yield f"{name}[{number}]", told


def _text(told: Mapping[str, Any], name: str, place: str) -> str:
    text = told.get(name)
    if not isinstance(text, str) or not _clean(text):
        raise Malformed(f"{place} is no text that says something")
    return _clean(text)


def _truth(told: Mapping[str, Any], name: str, place: str) -> bool:
    truth = told.get(name)
    if not isinstance(truth, bool):
        raise Malformed(f"{place} is neither true nor false")
    return truth


def _clean(text: str) -> str:
    """Return *text* on one line, without what does not show."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
