"""What a Python file defines: one module, its functions and methods, and what it imports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jidomem.code.extracted import Extracted, Fault, Function, Module, merged
from jidomem.code.grammar import captured, last_line, line_of, parsed, text_of
from jidomem.code.naming import ModuleName

if TYPE_CHECKING:
    from tree_sitter import Node

LANGUAGE = "python"
_IMPORTS = "(import_statement) @whole (import_from_statement) @part"
#: Statements that hold others which run when the module does; a function's own are not looked into.
_HOLDS = frozenset(
    (
        *("module", "block", "if_statement", "elif_clause", "else_clause", "try_statement", "except_clause"),
        *("except_group_clause", "finally_clause", "with_statement", "for_statement", "while_statement"),
        *("match_statement", "case_clause", "ERROR"),
    )
)


def extract(data: bytes, name: ModuleName) -> Extracted:
    """Return the module *name* that a file holds. Functions inside functions are no part of it."""
    root, broken = parsed(LANGUAGE, data)
    if root is None:
        return Extracted((), broken)
    needs: dict[tuple[str, str], None] = {}
    maybe: dict[str, None] = {}
    found = list(broken)
    nodes = captured(LANGUAGE, _IMPORTS, root)
    for node in nodes.get("whole", ()):
        for target in (_dotted(each) for each in node.children_by_field_name("name")):
            _need(target, name, needs, maybe)
    for node in nodes.get("part", ()):
        source = _from(node, name)
        if source is None:
            found.append(Fault(line_of(node), "this import leads out of the package"))
            continue
        _need(source, name, needs, maybe, relative=text_of(node.child_by_field_name("module_name")).startswith("."))
        maybe |= {f"{source}.{_dotted(each)}": None for each in node.children_by_field_name("name")}
    needed = tuple(sorted(need for need in needs if need[1] != name.name))
    others = tuple(sorted(each for each in maybe if each != name.name and ("imports", each) not in needs))
    last = max(1, last_line(root))
    module = Module(name.name, 1, last, merged(list(_functions(root))), needed, others)
    return Extracted((module,), tuple(found))


def _need(
    target: str, name: ModuleName, needs: dict[tuple[str, str], None], maybe: dict[str, None], *, relative: bool = False
) -> None:
    """Take down that *target* is imported; a file that is in no package may mean the one that lies beside it."""
    if not target:
        return
    needs["imports", target] = None
    if name.folder and not relative:
        maybe[f"{name.folder}.{target}"] = None


def _dotted(node: Node) -> str:
    """Return the dotted name of an import, whatever it is called here."""
    if node.type == "aliased_import":
        inner = node.child_by_field_name("name")
        return _dotted(inner) if inner is not None else ""
    return "".join(text_of(node).split())


def _from(node: Node, name: ModuleName) -> str | None:
    """Return the full name of what `from ... import` imports from; None where it leads out of the package."""
    source = node.child_by_field_name("module_name")
    if source is None:
        return ""
    if source.type != "relative_import":
        return _dotted(source)
    text = "".join(text_of(source).split())
    rest = text.lstrip(".")
    up = len(text) - len(rest) - (1 if name.is_package else 0)
    parts = name.name.split(".")
    if up >= len(parts):
        return None
    return ".".join([*parts[: len(parts) - up], *([rest] if rest else [])])


def _functions(root: Node) -> Iterator[Function]:
    """Yield each function and method that is reached by its name from outside, `Class.method`."""
    waiting: list[tuple[Node, str]] = [(root, "")]
    while waiting:
        node, inside = waiting.pop()
        if node.type == "decorated_definition":
            inner = node.child_by_field_name("definition")
            waiting += [(inner, inside)] if inner is not None else []
        elif node.type == "function_definition":
            name = text_of(node.child_by_field_name("name"))
            yield Function(inside + name, None, _is_private(inside + name), line_of(node), last_line(node))
        elif node.type == "class_definition":
            prefix = f"{inside}{text_of(node.child_by_field_name('name'))}."
            body = node.child_by_field_name("body")
            waiting += [(body, prefix)] if body is not None else []
        elif node.type in _HOLDS:
            waiting += [(child, inside) for child in reversed(node.named_children)]


def _is_private(name: str) -> bool:
    """Return whether a name, or a class it is in, is marked as nobody else's business: `_x`, but not `__init__`."""
    return any(part.startswith("_") and not part.endswith("__") for part in name.split("."))
