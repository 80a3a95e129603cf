"""Two that disagree, kept both or made one: what each form begins with, and which fields of an intent it means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.vocab import JIDO, SCOPE

#: Fields of the form that say where the left one applies, and where the other one does.
_LEFT, _RIGHT = ("about", "scope"), ("other_about", "other_scope")
#: Field of the form of a merger -> of an intent.
_MERGED: Mapping[str, str] = {
    "text": "summary",
    "topic": "topic",
    "merged_about": "about",
    "rationale": "rationale",
    "explanation": "detailed_explanation",
    "confidence": "confidence",
}
FIELDS = (*_LEFT, *_RIGHT, *_MERGED)
#: What one side says and the other does not is said by what both become.
_SINGLE = ("expires_on", "valid_from", "valid_until", "tracked_by", "convention_name")
_LEVELS = ("low", "medium", "high")

Said = Mapping[str, Any]


def where(said: Said) -> dict[str, Any]:
    """Return where a memory applies, as the form has it; `scope` is None where its kind has none."""
    scope = said.get("convention_scope")
    return {"about": "\n".join(said.get("about", ())), "scope": scope and f"{JIDO}{scope}"}


def apart(left: Said, right: Said, form: Said) -> tuple[bool, dict[str, Any]]:
    """Return whether the left one says where it applies, or else the right one, and the fields by which it does.

    Raises InvalidRequest where neither does, or both say it otherwise than they did.
    """
    ours, theirs = _otherwise(left, form, _LEFT), _otherwise(right, form, _RIGHT)
    if ours and theirs:
        raise InvalidRequest("both are said to apply elsewhere", hint="change it for one of them; the other one stays")
    if not (ours or theirs or left.get("about") or right.get("about")):
        hint = "name the files the left one is about, or the right one"
        raise InvalidRequest("both are kept where each says where it applies", hint=hint)
    is_left = bool(ours) or (not theirs and bool(left.get("about")))
    return is_left, ours or theirs


def _otherwise(said: Said, form: Said, names: tuple[str, str]) -> dict[str, Any]:
    about, scope = (form.get(name) for name in names)
    found: dict[str, Any] = {}
    if about is not None and (places := _lines(about)) != list(said.get("about", ())):
        found["about"] = places
    if scope is not None and scope != where(said)["scope"]:
        name = scope.removeprefix(JIDO)
        if name not in SCOPE or "convention_scope" not in said:
            raise InvalidRequest(f"{scope[:100]!r} is no scope of it", hint=f"one of: {', '.join(SCOPE)}")
        found["convention_scope"] = name
    return found


def merged(left: Said, right: Said, start: str | None = None) -> dict[str, Any]:
    """Return the first content of the form of a merger: the texts of the side *start*, places and evidence of both.

    A text in which the sides differ is empty until a side is chosen: two sentences that contradict each other, one
    after the other, say nothing.
    """
    chosen = {"left": left, "right": right}.get(
        start or "", {name: left[name] for name in left if left[name] == right.get(name)}
    )
    if start not in (None, "left", "right"):
        raise InvalidRequest(f"start={start:.40} names no side", hint="start=left or start=right")
    levels = [each for each in (left.get("confidence"), right.get("confidence")) if each in _LEVELS]
    return {
        "text": chosen.get("summary", ""),
        "topic": left.get("topic") or right.get("topic") or "",
        "merged_about": "\n".join(_united(left, right, "about")),
        "rationale": chosen.get("rationale", ""),
        "explanation": chosen.get("detailed_explanation", ""),
        "confidence": min(levels, key=_LEVELS.index, default=""),
        "evidence": _united(left, right, "evidence"),
    }


def together(left: Said, right: Said, form: Said) -> dict[str, Any]:
    """Return the fields by which the left one says what both become; raises InvalidRequest without a text."""
    begun = merged(left, right)
    given = {name: form.get(name, begun[name]).strip() for name in _MERGED}
    if not given["text"]:
        hint = "start from the left or the right one, or write the text that holds"
        raise InvalidRequest("the merged memory has no text", hint=hint)
    fields: dict[str, Any] = {field: given[name] or None for name, field in _MERGED.items()}
    fields["about"] = _lines(given["merged_about"])
    fields["evidence"] = begun["evidence"]
    fields["confidence"] = fields["confidence"] or left.get("confidence")
    if left.get("type") == right.get("type"):
        fields["alternatives"] = _united(left, right, "alternatives")
        fields |= {name: right[name] for name in _SINGLE if name in right and name not in left}
    return fields


def _united(left: Said, right: Said, name: str) -> list[str]:
    return [*dict.fromkeys([*left.get(name, ()), *right.get(name, ())])]


def _lines(text: str) -> list[str]:
    lines: Iterable[str] = (line.strip() for line in text.splitlines())
    return [*dict.fromkeys(line for line in lines if line)]
