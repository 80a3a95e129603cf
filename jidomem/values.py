"""RDF terms as plain Python values: the one rule by which every reading door shows them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from jidomem.terms import Term, bare, parts
from jidomem.vocab import XSD

Value = str | int | float | bool | datetime | None

_INTEGERS = (
    "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger", "nonPositiveInteger",
    "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte",
)  # fmt: skip


def to_value(term: Term | None) -> Value:
    """Return the Python value of a term: IRIs and texts are str, moments are aware UTC datetimes, unbound is None.

    A literal that its datatype does not allow is shown as its text.

    >>> to_value('"0.85"^^<http://www.w3.org/2001/XMLSchema#decimal>')
    0.85
    """
    if term is None:
        return None
    if not term.startswith('"'):
        return term if term.startswith("_:") else bare(term)
    text, datatype, _ = parts(term)
    try:
        return _READERS.get(datatype, str)(text)
    except (ValueError, OverflowError, KeyError):
        return text


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


_READERS: dict[str, Callable[[str], Value]] = {
    **{XSD + name: int for name in _INTEGERS},
    XSD + "decimal": float,
    XSD + "double": float,
    XSD + "float": float,
    XSD + "boolean": lambda text: {"true": True, "1": True, "false": False, "0": False}[text],
    XSD + "dateTime": _moment,
}
