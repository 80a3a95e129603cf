"""The changes of a revision as lines: each field with its value before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jidomem.govern.rewording import Rewording
from jidomem_cli.door import Door
from jidomem_cli.tables import INDENT, PIPED, cut_text, line_width, short

_UNSET, _ARROW = "(none)", " -> "


def change_lines(door: Door, changes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return `FIELD: BEFORE -> AFTER` for each change, cut to the width there is; with -v whole."""
    width = line_width(door, PIPED)
    return [_line(change, None if width is None else width - len(INDENT)) for change in changes]


def _line(change: Mapping[str, Any], width: int | None) -> str:
    name = change["field"].replace("_", " ")
    was, now = (" ".join(short(change[side]).split()) or _UNSET for side in ("before", "after"))
    if width is None:
        return f"{name}: {was}{_ARROW}{now}"
    longest = max((width - len(f"{name}: {_ARROW}")) // 2, 1)
    if len(was) + len(now) > 2 * longest:
        part = Rewording(was, now).shortened(longest)
        was, now = cut_text(part.was, longest), cut_text(part.now, longest)
    return cut_text(f"{name}: {was}{_ARROW}{now}", width)
