"""Why something was not done on a page: what others did meanwhile, and each of several by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jidomem.errors import JidomemError, NotFound
from jidomem.serve.curator import told
from jidomem.serve.curator.asked import Asked
from jidomem.serve.curator.text import when
from jidomem.vocab import REDACTED

#: What is refused so may be so for what others did.
_MEANWHILE = (400, 404, 409)


class Refused(JidomemError):
    """What was not done; `rows` tell each thing it is about: its text and address, why, and what helps."""

    code = "conflict"

    def __init__(self, detail: str, *, hint: str, rows: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(detail, hint=hint)
        self.rows = rows


class ToFillIn(JidomemError):
    """A form that cannot be answered as it is filled in; `model` is what the page shows then, with each fault."""

    def __init__(self, error: JidomemError, model: Mapping[str, Any]) -> None:
        super().__init__(error.detail, hint=error.hint, code=error.code)
        self.model = model


def explained(asked: Asked, error: JidomemError, *items: str | None) -> JidomemError:
    """Return *error*; where one of *items* was ended by somebody meanwhile, what became of each."""
    if error.http_status not in _MEANWHILE:
        return error
    rows = [row for item in items if item and (row := _ended(asked, item))]
    if not rows:
        return error
    return Refused(
        "this was settled meanwhile, and nothing was done now", hint="look at what is in its place", rows=rows
    )


def _ended(asked: Asked, item: str) -> dict[str, Any] | None:
    """Return what became of a memory; None where it is in force, waits, or is none."""
    reader = asked.memory.reader
    try:
        found = reader.get_memory(asked.project, item)
        ends = [*found["superseded_by"], *found["invalidated_by"]]
        if not ends:
            return None
        end = told.of(asked, reader.get_memory(asked.project, ends[0]))
    except NotFound:
        return None
    word = "replaced" if found["superseded_by"] else "withdrawn"
    return {
        "text": told.first(found["properties"], "summary") or REDACTED,
        "link": asked.link("memories", item),
        "detail": f"{word} by {end['agent']}, {when(end['recorded_at'])} UTC: {end['summary']}",
        "hint": "",
        "further": end["link"],
    }


def row(asked: Asked, item: str, error: JidomemError) -> dict[str, Any]:
    """Return the refusal of one of several, with what it says."""
    why = explained(asked, error, item)
    if isinstance(why, Refused):
        return dict(why.rows[0])
    try:
        text = told.row(asked, item)["summary"]
    except JidomemError:
        return {"text": item, "link": None, "detail": error.detail, "hint": error.hint, "further": None}
    link = asked.link("memories", item)
    return {"text": text, "link": link, "detail": error.detail, "hint": error.hint, "further": None}
