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


def merged(left: Said, right: Said) -> dict[str, Any]:
    """Return what the form of a merger begins with: what both say, each once, and the evidence of both."""
    levels = [each for each in (left.get("confidence"), right.get("confidence")) if each in _LEVELS]
    return {
        "text": _both(left, right, "summary", "; "),
        "topic": left.get("topic") or right.get("topic") or "",
        "merged_about": "\n".join(_united(left, right, "about")),
        "rationale": _both(left, right, "rationale", "\n"),
        "explanation": _both(left, right, "detailed_explanation", "\n"),
        "confidence": min(levels, key=_LEVELS.index, default=""),
        "evidence": _united(left, right, "evidence"),
    }


def together(left: Said, right: Said, form: Said) -> dict[str, Any]:
    """Return the fields by which the left one says what both become; raises InvalidRequest without a text."""
    begun = merged(left, right)
    given = {name: form.get(name, begun[name]).strip() for name in _MERGED}
    if not given["text"]:
        hint = "write what holds, in the words of neither or both"
        raise InvalidRequest("there is no text that both become", hint=hint)
    fields: dict[str, Any] = {field: given[name] or None for name, field in _MERGED.items()}
    fields["about"] = _lines(given["merged_about"])
    fields["evidence"] = begun["evidence"]
    fields["confidence"] = fields["confidence"] or left.get("confidence")
    if left.get("type") == right.get("type"):
        fields["alternatives"] = _united(left, right, "alternatives")
        fields |= {name: right[name] for name in _SINGLE if name in right and name not in left}
    return fields


def _both(left: Said, right: Said, name: str, between: str) -> str:
    return between.join(dict.fromkeys(str(side[name]) for side in (left, right) if side.get(name)))


def _united(left: Said, right: Said, name: str) -> list[str]:
    return [*dict.fromkeys([*left.get(name, ()), *right.get(name, ())])]


def _lines(text: str) -> list[str]:
    lines: Iterable[str] = (line.strip() for line in text.splitlines())
    return [*dict.fromkeys(line for line in lines if line)]
