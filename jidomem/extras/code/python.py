"""The reader of Python files: one module, its functions and methods, and its imports, as plain values.

The values and the parsers (tree-sitter with a grammar for each language, loaded on first use) serve the other languages
too. `ModuleNames` derives the name of a module from its path, its packages and the project's settings.
"""

from __future__ import annotations

import posixpath
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from jidomem.base.json_values import decode_toml
from jidomem.errors import Failed

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query

#: How a module can depend on another; a Python `import` is "imports", a name that is only used "refersTo".
DEPENDENCY_KINDS = ("imports", "aliases", "requires", "uses", "implements", "refersTo")


class Function(NamedTuple):
    """A function, macro or method: its name in its module, and its arity if that is part of its name.

    `first` and `last` are lines, counted from 1, that span all its clauses.
    """

    name: str
    arity: int | None
    private: bool
    first: int
    last: int

    @property
    def label(self) -> str:
        """Return the name in the usual notation.

        >>> Function("parse", 2, False, 1, 3).label
        'parse/2'
        """
        return self.name if self.arity is None else f"{self.name}/{self.arity}"


class Module(NamedTuple):
    """A module as a file defines it: its lines, its functions, and its dependencies as pairs of kind and full name.

    `maybe` are imported names that are modules only if there is a module of that name: `b` of `from a import b`.
    `tells` are (subject, property, object) of modules: which command emits which event, and which projection handles
    it.
    """

    name: str
    first: int
    last: int
    functions: tuple[Function, ...] = ()
    needs: tuple[tuple[str, str], ...] = ()
    maybe: tuple[str, ...] = ()
    tells: tuple[tuple[str, str, str], ...] = ()


class Fault(NamedTuple):
    """A fault in a file: its line, and the reason."""

    line: int
    message: str


class Definitions(NamedTuple):
    """The definitions in a file, and its faults; definitions around a fault are included."""

    modules: tuple[Module, ...] = ()
    faults: tuple[Fault, ...] = ()


def merged(functions: list[Function]) -> tuple[Function, ...]:
    """Return *functions* in order, clauses and redefinitions of one name as one that spans them."""
    by_name: dict[tuple[str, int | None], Function] = {}
    for each in functions:
        key = each.name, each.arity
        before = by_name.get(key)
        if before is not None:
            first, last = min(before.first, each.first), max(before.last, each.last)
            each = Function(each.name, each.arity, before.private and each.private, first, last)
        by_name[key] = each
    return tuple(sorted(by_name.values(), key=lambda each: (each.first, each.name, each.arity or 0)))


#: The faults reported of one file; the first one matters most.
_MAX_FAULTS = 3
#: The greatest depth of nodes that are analysed, far beyond real code: the time grows with the square of the depth.
_DEEPEST = 500
_FLATTER = f"nested in more than {_DEEPEST} others: names in here may be missing; reduce the nesting"
#: Unconnected nodes of a broken file beyond which it is not analysed: it would take too long.
_LOST = 5_000


def parsed(language: str, data: bytes) -> tuple[Node | None, tuple[Fault, ...]]:
    """Return the syntax tree of a file, and the first syntax errors, one a line.

    There is no tree if most of the file is not that language. Raises Failed `missing_extra`.
    """
    language_grammar = grammar(language)
    from tree_sitter import Parser

    root = Parser(language_grammar).parse(data).root_node
    faults: dict[int, str] = {}
    waiting = [root] if root.has_error else []
    while waiting:
        node = waiting.pop()
        if node.type == "ERROR" and node.child_count > _LOST:
            return None, (Fault(line_of(node), "from here on this is not the language; the file is not read"),)
        if node.is_missing:
            faults.setdefault(line_of(node), f"{node.type!r} is missing here")
        elif node.type == "ERROR" and not _is_grammar_fault(language, node):
            faults.setdefault(line_of(node), "this is not the syntax of the language")
        waiting += [child for child in node.children if child.has_error or child.is_missing]
    deep = _too_deep(root)
    last = () if deep is None else (Fault(line_of(deep), _FLATTER),)
    return root, (*(Fault(line, faults[line]) for line in sorted(faults)[: _MAX_FAULTS - len(last)]), *last)


def _is_grammar_fault(language: str, error: Node) -> bool:
    """Return whether the grammar is wrong: Elixir's does not know the trailing comma of `%{map | key: value,}`."""
    inside = error.parent.type if error.parent is not None else ""
    return (language, inside, text_of(error)) == ("elixir", "map", ",")


def _too_deep(root: Node) -> Node | None:
    """Return the first node below the greatest depth that is analysed.

    In document order the depth grows by at most one from a node to the next, so most nodes are skipped.
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
    """Return the grammar of "python" or "elixir"; raises Failed `missing_extra` if it is not installed."""
    try:
        from tree_sitter import Language

        return Language(import_module(f"tree_sitter_{language}").language())
    except ImportError as error:
        detail = f"reading code needs tree-sitter and its grammars, which are not installed ({error})"
        raise Failed(detail, hint="pip install 'jidomem[code]'", code="missing_extra") from error


@lru_cache
def _query(language: str, text: str) -> Query:
    from tree_sitter import Query

    return Query(grammar(language), text)


def captured(language: str, text: str, node: Node) -> dict[str, list[Node]]:
    """Return the nodes that a query captures below *node*, by capture name."""
    from tree_sitter import QueryCursor

    cursor = QueryCursor(_query(language, text))
    cursor.set_max_start_depth(_DEEPEST)
    return cursor.captures(node)


def line_of(node: Node) -> int:
    """Return the first line of a node, counted from 1."""
    return node.start_point[0] + 1


def last_line(node: Node) -> int:
    """Return the last line of a node, counted from 1; a line end belongs to the line that it ends."""
    row, column = node.end_point
    return row + 1 if column or row == node.start_point[0] else row


def text_of(node: Node | None) -> str:
    """Return the source text of a node."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


class ModuleName(NamedTuple):
    """The full name of a module, whether it is a package's `__init__`, and the folder for imports of neighbours.

    `folder` is dotted, and empty for a file of a package: its neighbours are imported by their full names.
    """

    name: str
    is_package: bool = False
    folder: str = ""


@dataclass(slots=True)
class ModuleNames:
    """The names of the modules of one tree; *read* returns the text of a file in it, None if there is none."""

    read: Callable[[str], str | None]
    has: Callable[[str], bool]
    _tops: dict[str, str | None] = field(default_factory=dict)
    _mappings: dict[str, dict[str, str]] = field(default_factory=dict)

    def name(self, path: str) -> ModuleName:
        """Return the module name of the Python file at *path*: by the packages around it, else by its path.

        A folder that setuptools maps (`package-dir` of the nearest pyproject.toml) has the mapped name; a file in `src`
        is named as if it were at the top.
        """
        folder, file = posixpath.split(path)
        stem = file.removesuffix(".py")
        is_package = stem == "__init__"
        top = self._top(folder)
        dotted = self._dotted(folder, folder if top is None else top)
        name = ".".join(part for part in (dotted, "" if is_package else stem) if part)
        return ModuleName(name or stem, is_package, dotted if top is None else "")

    def _top(self, folder: str) -> str | None:
        if folder not in self._tops:
            top: str | None = None
            if folder and self.has(posixpath.join(folder, "__init__.py")):
                top = self._top(posixpath.dirname(folder)) or folder
            self._tops[folder] = top
        return self._tops[folder]

    def _dotted(self, folder: str, top: str) -> str:
        mapped = self._mapping(folder)
        at = folder
        while True:
            if at in mapped:
                rest = folder[len(at) :].strip("/")
                return ".".join(part for part in (mapped[at], rest.replace("/", ".")) if part)
            if not at:
                break
            at = posixpath.dirname(at)
        if self._top(folder) is not None:
            return folder[len(posixpath.dirname(top)) :].strip("/").replace("/", ".")
        return folder.removeprefix("src/").replace("/", ".") if folder != "src" else ""

    def _mapping(self, folder: str) -> dict[str, str]:
        """Return the mapped names of folders by the nearest pyproject.toml, by their path in the tree."""
        if folder not in self._mappings:
            text = self.read(posixpath.join(folder, "pyproject.toml"))
            if text is not None:
                self._mappings[folder] = _package_dir(text, folder)
            else:
                self._mappings[folder] = self._mapping(posixpath.dirname(folder)) if folder else {}
        return self._mappings[folder]


def _package_dir(text: str, folder: str) -> dict[str, str]:
    try:
        table = decode_toml(text).get("tool", {}).get("setuptools", {}).get("package-dir", {})
    except (tomllib.TOMLDecodeError, AttributeError):
        return {}
    if not isinstance(table, dict):
        return {}
    return {
        posixpath.normpath(posixpath.join(folder, place)): package
        for package, place in table.items()
        if isinstance(place, str) and package
    }


LANGUAGE = "python"
_IMPORTS = "(import_statement) @whole (import_from_statement) @part"
#: Statements whose inner statements run with the module; the bodies of functions are not analysed.
_HOLDS = frozenset(
    (
        *("module", "block", "if_statement", "elif_clause", "else_clause", "try_statement", "except_clause"),
        *("except_group_clause", "finally_clause", "with_statement", "for_statement", "while_statement"),
        *("match_statement", "case_clause", "ERROR"),
    )
)


def extract(data: bytes, name: ModuleName) -> Definitions:
    """Return the module *name* of a file, without functions inside functions."""
    root, broken = parsed(LANGUAGE, data)
    if root is None:
        return Definitions((), broken)
    needs: dict[tuple[str, str], None] = {}
    maybe: dict[str, None] = {}
    faults = list(broken)
    nodes = captured(LANGUAGE, _IMPORTS, root)
    for node in nodes.get("whole", ()):
        for target in (_dotted(each) for each in node.children_by_field_name("name")):
            _need(target, name, needs, maybe)
    for node in nodes.get("part", ()):
        source = _import_source(node, name)
        if source is None:
            faults.append(Fault(line_of(node), "this import leads out of the package"))
            continue
        _need(source, name, needs, maybe, relative=text_of(node.child_by_field_name("module_name")).startswith("."))
        maybe |= {f"{source}.{_dotted(each)}": None for each in node.children_by_field_name("name")}
    needed = tuple(sorted(need for need in needs if need[1] != name.name))
    others = tuple(sorted(each for each in maybe if each != name.name and ("imports", each) not in needs))
    last = max(1, last_line(root))
    module = Module(name.name, 1, last, merged(list(_functions(root))), needed, others)
    return Definitions((module,), tuple(faults))


def _need(
    target: str, name: ModuleName, needs: dict[tuple[str, str], None], maybe: dict[str, None], *, relative: bool = False
) -> None:
    if not target:
        return
    needs["imports", target] = None
    if name.folder and not relative:
        maybe[f"{name.folder}.{target}"] = None


def _dotted(node: Node) -> str:
    if node.type == "aliased_import":
        inner = node.child_by_field_name("name")
        return _dotted(inner) if inner is not None else ""
    return "".join(text_of(node).split())


def _import_source(node: Node, name: ModuleName) -> str | None:
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
    """Return whether a name, or a class it is in, is private: `_x`, but not `__init__`."""
    return any(part.startswith("_") and not part.endswith("__") for part in name.split("."))
