"""The parsers of source code, loaded when a file is read: tree-sitter, and a grammar for each language."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from jidomem.code.extracted import Fault
from jidomem.errors import Failed

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query

#: Faults of one file that are told; the first is what is to be put right.
_TOLD = 3
#: How deep in a tree is looked, by far deeper than people write: without an end the time grows with the depth's square.
_DEEPEST = 500
_FLATTER = f"nested in more than {_DEEPEST} others: what is named in here may be missing; write it flatter"
#: Parts that stand unconnected where a file is broken, beyond which looking through them takes ever longer.
_LOST = 5_000


def parsed(language: str, data: bytes) -> tuple[Node | None, tuple[Fault, ...]]:
    """Return the syntax tree of a file, and the first places where it is no code of its language, one a line.

    There is no tree of what is broken through and through. Raises Failed `missing_extra`.
    """
    of = grammar(language)
    from tree_sitter import Parser

    root = Parser(of).parse(data).root_node
    found: dict[int, str] = {}
    waiting = [root] if root.has_error else []
    while waiting:
        node = waiting.pop()
        if node.type == "ERROR" and node.child_count > _LOST:
            return None, (Fault(line_of(node), "from here on this is not the language; nothing of the file is read"),)
        if node.is_missing:
            found.setdefault(line_of(node), f"{node.type!r} is missing here")
        elif node.type == "ERROR" and not _is_right(language, node):
            found.setdefault(line_of(node), "this is not the syntax of the language")
        waiting += [child for child in node.children if child.has_error or child.is_missing]
    deep = _too_deep(root)
    last = () if deep is None else (Fault(line_of(deep), _FLATTER),)
    return root, (*(Fault(line, found[line]) for line in sorted(found)[: _TOLD - len(last)]), *last)


def _is_right(language: str, error: Node) -> bool:
    """Return whether it is the grammar that errs: Elixir's knows no comma at the end of `%{map | key: value,}`."""
    inside = error.parent.type if error.parent is not None else ""
    return (language, inside, text_of(error)) == ("elixir", "map", ",")


def _too_deep(root: Node) -> Node | None:
    """Return the first node that lies too deep to be looked at.

    From one node to the next, in the order they stand, it goes down by one level at most: so most are stepped over.
    """
    cursor, at = root.walk(), 0
    while at < root.descendant_count:
        cursor.goto_descendant(at)
        if cursor.depth > _DEEPEST:
            return cursor.node
        at += _DEEPEST + 1 - cursor.depth
    return None


@lru_cache
def grammar(language: str) -> Language:
    """Return the grammar of "python" or "elixir"; raises Failed `missing_extra` where it is not installed."""
    try:
        from tree_sitter import Language

        return Language(import_module(f"tree_sitter_{language}").language())
    except ImportError as error:
        detail = f"reading code needs tree-sitter and its grammars, which are not installed ({error})"
        raise Failed(detail, hint="pip install 'jidomem[code]'", code="missing_extra") from error


@lru_cache
def _query(language: str, text: str) -> Query:
    """Return a query of syntax trees, compiled once."""
    from tree_sitter import Query

    return Query(grammar(language), text)


def captured(language: str, text: str, node: Node) -> dict[str, list[Node]]:
    """Return what a query finds below *node*, by the names it gives."""
    from tree_sitter import QueryCursor

    cursor = QueryCursor(_query(language, text))
    cursor.set_max_start_depth(_DEEPEST)
    return cursor.captures(node)


def line_of(node: Node) -> int:
    """Return the line a node begins on, counted from 1."""
    return node.start_point[0] + 1


def last_line(node: Node) -> int:
    """Return the line a node ends on, counted from 1; the line end belongs to the line it ends."""
    row, column = node.end_point
    return row + 1 if column or row == node.start_point[0] else row


def text_of(node: Node | None) -> str:
    """Return the text of a node, as it stands in the file."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""
