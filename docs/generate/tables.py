"""Markdown tables, and texts as their cells hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; empty where there are no rows."""
    lines = [f"| {' | '.join(cell(each) for each in row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines]) + "\n"


def cell(text: str) -> str:
    r"""Return *text* as a cell can hold it.

    >>> cell("a | b")
    'a \\| b'
    """
    return " ".join(text.split()).replace("|", "\\|")


def code(text: object) -> str:
    """Return *text* as code, empty for nothing.

    >>> code("x"), code("")
    ('`x`', '')
    """
    return f"`{text}`" if text != "" else ""
