"""How Elixir names modules: aliases that hold from where they stand on, and what a definition is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jidomem.code.grammar import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_SELF = "__MODULE__"
_ATOMS = ("atom", "quoted_atom")
_NAMES = ("alias", "dot")
_UNARY, _BINARY = "unary_operator", "binary_operator"


class Names:
    """The aliases that hold in one place: the full name each short one stands for."""

    __slots__ = ("_known",)

    def __init__(self, known: dict[str, str] | None = None) -> None:
        self._known = known or {}

    def copy(self) -> Names:
        """Return the same, for a part in which further aliases do not concern what is around it."""
        return Names(dict(self._known))

    def alias(self, target: str, short: str) -> None:
        """From here on *short* stands for *target*."""
        if short and "." not in short:
            self._known[short] = target

    def nested(self, written: str, outer: str) -> None:
        """From here on the first part of a module's name, as it is *written* inside *outer*, stands for it."""
        first = "".join(written.split()).split(".")[0]
        if first not in ("Elixir", _SELF) and not first.startswith(":"):
            self._known[first] = f"{outer}.{first}"

    def inner(self, node: Node, outer: str) -> str | None:
        """Return the full name of a module that is defined inside *outer*."""
        written = "".join(text_of(node).split())
        if node.type != "alias":
            return self.of(node, outer)
        return written.removeprefix("Elixir.") if written.startswith("Elixir.") else f"{outer}.{written}"

    def of(self, node: Node, module: str) -> str | None:
        """Return the full name that is written there, in a module of that name; None for what is computed."""
        after: list[str] = []
        around = node.parent if node.type == "alias" else None
        if around is not None and around.type == "dot" and around.child_by_field_name("right") == node:
            node = around
        elif around is not None and around.type == "tuple" and (dot := around.parent) is not None and dot.type == "dot":
            after, node = [_plain(node)], dot.child_by_field_name("left") or node
        while node.type == "dot":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if left is None or right is None or right.type != "alias":
                return None
            after.append(_plain(right))
            node = left
        first = self._first(node, module)
        return ".".join([first, *reversed(after)]) if first else None

    def _first(self, node: Node, module: str) -> str | None:
        """Return the full name that a part without dots before it stands for."""
        if node.type in _ATOMS:
            return _atom(text_of(node))
        if node.type == "identifier":
            return module if text_of(node) == _SELF else None
        return self._expanded(_plain(node)) if node.type == "alias" else None

    def _expanded(self, written: str) -> str:
        first, dot, rest = written.partition(".")
        if first == "Elixir":
            return rest or written
        return self._known.get(first, first) + dot + rest


def arguments(call: Node) -> list[Node]:
    """Return the arguments of a call, without those of its block."""
    for child in call.named_children:
        if child.type == "arguments":
            return [each for each in child.named_children if each.type != "comment"]
    return []


def names_of(node: Node, *, with_atoms: bool = False) -> list[Node]:
    """Return the names of modules that *node* is: one, those of a list, or those of `A.{B, C}`."""
    found, waiting = [], [node]
    while waiting:
        node = waiting.pop()
        right = node.child_by_field_name("right") if node.type == "dot" else None
        if node.type == "list":
            waiting += reversed(node.named_children)
        elif right is not None and right.type == "tuple":
            found += [each for each in right.named_children if each.type == "alias"]
        elif node.type in (*_NAMES, *_ATOMS * with_atoms) or (node.type == "identifier" and text_of(node) == _SELF):
            found.append(node)
    return found


def option(call: Node, name: str) -> Node | None:
    """Return the value that a call is given under a keyword."""
    for given in arguments(call):
        for pair in given.named_children if given.type == "keywords" else ():
            key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
            if key is not None and text_of(key).rstrip(": \n") == name:
                return value
    return None


def signature(call: Node) -> Node | None:
    """Return what `def` and its like define, without its guard: the call `name(parameters)`, or another form."""
    node = next(iter(arguments(call)), None)
    while node is not None and node.type == _BINARY and text_of(node.child_by_field_name("operator")) == "when":
        node = node.child_by_field_name("left")
    return node


def head(call: Node) -> tuple[str, int] | None:
    """Return the name and number of arguments of what `def` and its like define; None for a name that is computed."""
    node = signature(call)
    if node is None:
        return None
    if node.type == "identifier":
        return text_of(node), 0
    if node.type == "call":
        target = node.child_by_field_name("target")
        return (text_of(target), len(arguments(node))) if target is not None and target.type == "identifier" else None
    operator = node.child_by_field_name("operator")
    if node.type in (_UNARY, _BINARY) and operator is not None:
        left = node.child_by_field_name("left")
        if text_of(operator) == "//" and left is not None and left.type == _BINARY:
            return "..//", 3
        return text_of(operator), 1 if node.type == _UNARY else 2
    if node.type == "operator_identifier" or text_of(node) == "..":
        return text_of(node), 0
    return None


def _atom(text: str) -> str:
    """Return the module an atom names: those of Elixir are atoms, too.

    >>> _atom(':"Elixir.Foo.Bar"'), _atom(":lists")
    ('Foo.Bar', ':lists')
    """
    inner = text.removeprefix(":").strip('"')
    return inner.removeprefix("Elixir.") if inner.startswith("Elixir.") else text


def _plain(node: Node) -> str:
    return "".join(text_of(node).split())
