"""The reader of Elixir files: modules, protocols, implementations, functions, macros and their dependencies.

Names are resolved with the aliases in scope. Commands, events and projections are read from projects that use the
library Commanded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from jidomem.extras.code.python import (
    Definitions,
    Function,
    Module,
    captured,
    last_line,
    line_of,
    merged,
    parsed,
    text_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_SELF = "__MODULE__"
_ATOMS = ("atom", "quoted_atom")
_NAME_NODES = ("alias", "dot")
_UNARY, _BINARY = "unary_operator", "binary_operator"


class AliasScope:
    """The aliases in one scope: short name -> full name."""

    __slots__ = ("_known",)

    def __init__(self, known: dict[str, str] | None = None) -> None:
        self._known = known or {}

    def copy(self) -> AliasScope:
        """Return a copy for an inner scope, whose aliases do not affect the outer one."""
        return AliasScope(dict(self._known))

    def alias(self, target: str, short: str) -> None:
        """Let *short* stand for *target* from here on."""
        if short and "." not in short:
            self._known[short] = target

    def nested(self, written: str, outer: str) -> None:
        """Let the first part of a module's name, as *written* inside *outer*, stand for the module from here on."""
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
        """Return the full name of a reference inside *module*; None for a computed name."""
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
        """Return the full name of the leftmost part of a dotted name."""
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
    """Return the arguments of a call, without its block."""
    for child in call.named_children:
        if child.type == "arguments":
            return [each for each in child.named_children if each.type != "comment"]
    return []


def names_of(node: Node, *, with_atoms: bool = False) -> list[Node]:
    """Return the name nodes of modules in *node*: one, those of a list, or those of `A.{B, C}`."""
    names, waiting = [], [node]
    while waiting:
        node = waiting.pop()
        right = node.child_by_field_name("right") if node.type == "dot" else None
        if node.type == "list":
            waiting += reversed(node.named_children)
        elif right is not None and right.type == "tuple":
            names += [each for each in right.named_children if each.type == "alias"]
        elif node.type in (*_NAME_NODES, *_ATOMS * with_atoms) or (
            node.type == "identifier" and text_of(node) == _SELF
        ):
            names.append(node)
    return names


def option(call: Node, name: str) -> Node | None:
    """Return the value of a keyword argument of a call."""
    for argument in arguments(call):
        for pair in argument.named_children if argument.type == "keywords" else ():
            key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
            if key is not None and text_of(key).rstrip(": \n") == name:
                return value
    return None


def signature(call: Node) -> Node | None:
    """Return the head of a definition without its guard: the call `name(parameters)`, or another form."""
    node = next(iter(arguments(call)), None)
    while node is not None and node.type == _BINARY and text_of(node.child_by_field_name("operator")) == "when":
        node = node.child_by_field_name("left")
    return node


def head(call: Node) -> tuple[str, int] | None:
    """Return the name and arity of a definition by `def` and the like; None for a computed name."""
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
    """Return the module that an atom names: an Elixir module name is an atom too.

    >>> _atom(':"Elixir.Foo.Bar"'), _atom(":lists")
    ('Foo.Bar', ':lists')
    """
    inner = text.removeprefix(":").strip('"')
    return inner.removeprefix("Elixir.") if inner.startswith("Elixir.") else text


def _plain(node: Node) -> str:
    return "".join(text_of(node).split())


#: The calls that are analysed: the functions of aggregates and handlers, and `project` of a projector.
WORDS = ("def", "defp", "project")
_COMMANDS, _EVENTS = "Commanded.Commands.Handler", "Commanded.Event.Handler"
_PROJECTOR = re.compile(r"(Projector|Projection)s?(\.|$)")
#: The most clauses of one module that is analysed: no person writes more, and the time is quadratic.
_MOST = 1_000
_NAMED = "(alias) @named"
_STRUCTS = "(map (struct)) @map"
_CALLED = """
(call target: (identifier) @called)
(unary_operator operand: (binary_operator left: (identifier) @called right: (integer)))
"""


class CallSite(NamedTuple):
    """A call of one of WORDS in a module, and the aliases in scope."""

    word: str
    call: Node
    names: AliasScope


@dataclass(frozen=True)
class _Clause:
    name: str
    params: Sequence[Node]
    written: CallSite
    within: str

    def takes(self, position: int) -> set[str]:
        """Return the struct in the pattern of the parameter at *position*."""
        return self._full(_matched(self.params[position])) if position < len(self.params) else set()

    @cached_property
    def second(self) -> set[str]:
        """Return the struct in the pattern of the second parameter."""
        return self.takes(1)

    @cached_property
    def named(self) -> set[str]:
        return self._full(captured("elixir", _NAMED, self.written.call).get("named", ()))

    @cached_property
    def built(self) -> set[str]:
        """Return the structs that the body builds, except those inside another struct."""
        maps = captured("elixir", _STRUCTS, self.written.call).get("map", ())
        body = arguments(self.written.call)[0].end_byte
        return self._full(name for each in maps if _is_built(each, body) for name in _struct(each))

    @cached_property
    def calls(self) -> set[str]:
        """Return the names of the functions of its own module that the body calls or captures (`&name/2`)."""
        called = captured("elixir", _CALLED, self.written.call).get("called", ())
        return {text_of(each) for each in called}

    def _full(self, nodes: Iterable[Node]) -> set[str]:
        return {name for each in nodes if (name := self.written.names.of(each, self.within))}


def commanded_relations(
    module: str, needs: Collection[tuple[str, str]], written: Sequence[CallSite]
) -> Iterator[tuple[str, str, str]]:
    """Yield which command emits which event, as far as *module* shows it, and which events it projects.

    An aggregate is recognised by the events it applies. It emits the events named in a function that takes a command,
    or in functions of the same module that are called from there. A command handler emits the structs it builds. A
    projector is recognised by `project`, or as an event handler whose name ends in Projector or Projection.
    """
    clauses = [clause for each in written if (clause := _clause(each, module))]
    yield from ((command, "emitsEvent", event) for command, event in _emitted(needs, clauses))
    projected = {event for each in written if each.word == "project" for event in _projected(each, module)}
    if _needs(needs, _EVENTS) and _PROJECTOR.search(module):
        projected |= {event for each in clauses if each.name == "handle" for event in each.takes(0)}
    yield from ((event, "handledByProjection", module) for event in projected)


def _emitted(needs: Collection[tuple[str, str]], clauses: Sequence[_Clause]) -> Iterator[tuple[str, str]]:
    pairs = [each for each in clauses if len(each.params) == 2]
    applied = {event for each in pairs if each.name == "apply" for event in each.second}
    if len(clauses) > _MOST or not (applied or _needs(needs, _COMMANDS)):
        return
    candidates = [each for each in pairs if each.written.word == "def" and each.name != "apply"]
    taking = [(command, each) for each in candidates for command in each.second - applied]
    commands = {command for command, _ in taking}
    by_name = defaultdict(list)
    for each in clauses:
        by_name[each.name].append(each)
    for command, clause in taking:
        for each in _reached(clause, by_name, command, commands):
            events = each.named & applied if applied else each.built
            yield from ((command, event) for event in events)


def _reached(
    start: _Clause, by_name: Mapping[str, Sequence[_Clause]], command: str, commands: set[str]
) -> list[_Clause]:
    """Return *start* and the clauses called from it, directly or indirectly, except those that take another command."""
    reached, known = [start], {start.name}
    for clause in reached:
        called = [each for name in clause.calls - known for each in by_name.get(name, ())]
        known |= clause.calls
        reached += [each for each in called if command in each.second or not each.second & commands]
    return reached


def _projected(each: CallSite, module: str) -> set[str]:
    """Return the events of `project %Event{} ...` at the top of a module, where it is a macro and not a function."""
    args, block = arguments(each.call), each.call.parent
    around = block.parent if block is not None else None
    if not args or around is None or text_of(around.child_by_field_name("target")) != "defmodule":
        return set()
    return {name for node in _matched(args[0]) if (name := each.names.of(node, module))}


def _clause(written: CallSite, module: str) -> _Clause | None:
    head = signature(written.call) if written.word != "project" else None
    if head is None or head.type != "call":
        return None
    return _Clause(text_of(head.child_by_field_name("target")), arguments(head), written, module)


def _needs(needs: Collection[tuple[str, str]], behaviour: str) -> bool:
    return ("implements", behaviour) in needs or ("uses", behaviour) in needs


def _matched(pattern: Node) -> list[Node]:
    structs, sides = [], [pattern]
    while sides:
        side = sides.pop()
        if _operator(side) == "=":
            sides += side.named_children
        else:
            structs += _struct(side)
    return structs


def _struct(node: Node) -> list[Node]:
    first = node.named_children[0] if node.type == "map" and node.named_children else None
    return first.named_children[:1] if first is not None and first.type == "struct" else []


def _is_built(struct: Node, body: int) -> bool:
    """Return whether a struct after byte *body* is built there: not matched, not updated, not inside another struct."""
    content = struct.named_children[1:2]
    if struct.start_byte < body or (content and _operator(content[0].named_children[0]) == "|"):
        return False
    child, parent = struct, struct.parent
    while parent is not None and parent.start_byte >= body:
        is_left = parent.child_by_field_name("left") == child
        if _struct(parent) or (is_left and (parent.type == "stab_clause" or _operator(parent) in ("=", "<-"))):
            return False
        child, parent = parent, parent.parent
    return True


def _operator(node: Node) -> str:
    return text_of(node.child_by_field_name("operator")) if node.type == "binary_operator" else ""


LANGUAGE = "elixir"
_DEFINES = {"def": False, "defp": True, "defmacro": False, "defmacrop": True, "defguard": False, "defguardp": True}
_DEFINES |= {"defdelegate": False}
_HOLDS = ("defmodule", "defprotocol", "defimpl")
_NAMES = {"alias": "aliases", "import": "imports", "require": "requires", "use": "uses", "behaviour": "implements"}
_WORDS = " ".join(f'"{word}"' for word in (*_HOLDS, *_DEFINES, *_NAMES, "quote", *WORDS))
_QUERY = f"""
((call target: (identifier) @word) @call (#any-of? @word {_WORDS}))
(alias) @name
(do_block) @block
(stab_clause) @block
"""


@dataclass(slots=True)
class _Building:
    """A module being read; those of one `defimpl ... for: [A, B]` share all but their name and their type in *of*."""

    names: tuple[str, ...]
    node: Node
    of: tuple[str, ...] = ()
    functions: list[Function] = field(default_factory=list)
    needs: dict[tuple[str, str], None] = field(default_factory=dict)
    written: list[CallSite] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.names[0]


@dataclass(slots=True)
class _Frame:
    """A part of the file with one scope of aliases: up to byte `end`, in a module, possibly in quoted code."""

    end: int
    names: AliasScope
    module: _Building | None
    quoted: bool = False


def extract(data: bytes) -> Definitions:
    """Return the modules in a file; quoted code belongs to the users of the macro, and is left out."""
    root, broken = parsed(LANGUAGE, data)
    if root is None:
        return Definitions((), broken)
    reading = _Reading(len(data))
    captures = captured(LANGUAGE, _QUERY, root)
    nodes = [
        (node.start_byte, -node.end_byte, kind, node)
        for kind in ("call", "block", "name")
        for node in captures.get(kind, ())
    ]
    for start, end, kind, node in sorted(nodes, key=lambda each: (*each[:2], each[2] != "call")):
        reading.take(kind, node, start, -end)
    return Definitions(tuple(reading.modules()), broken)


class _Reading:
    """The traversal of a file in source order, with the aliases in scope."""

    def __init__(self, end: int) -> None:
        self._frames = [_Frame(end + 1, AliasScope(), None)]
        self._built: list[_Building] = []
        self._passed = self._headed = 0  # names, and calls, before these bytes were processed already

    def take(self, kind: str, node: Node, start: int, end: int) -> None:
        while start >= self._frames[-1].end:
            self._frames.pop()
        frame = self._frames[-1]
        if kind == "block":
            self._frames.append(_Frame(end, frame.names.copy(), frame.module, frame.quoted))
        elif kind == "name":
            if start >= self._passed:
                self._need("refersTo", frame.names.of(node, _name(frame.module)), frame.module)
        elif start >= self._headed:
            self._call(text_of(node.child_by_field_name("target")), node, frame)

    def _call(self, word: str, node: Node, frame: _Frame) -> None:
        if word in _HOLDS:
            self._open(word, node, frame)
        elif word in _NAMES:
            self._directive(word, node, frame)
        elif word == "quote":
            self._frames.append(_Frame(node.end_byte, frame.names.copy(), frame.module, quoted=True))
        elif frame.module is not None and not frame.quoted:
            if word in _DEFINES and (args := arguments(node)):
                self._headed = max(self._headed, args[0].end_byte)  # `defmacro def(call)` defines no `call`
            if word in _DEFINES and (named := head(node)) is not None:
                private = _DEFINES[word]
                frame.module.functions.append(Function(*named, private, line_of(node), last_line(node)))
            if word in WORDS:
                frame.module.written.append(CallSite(word, node, frame.names.copy()))

    def _open(self, word: str, node: Node, frame: _Frame) -> None:
        args = arguments(node)
        outer = _name(frame.module)
        written = names_of(args[0], with_atoms=True) if args else []
        name = frame.names.of(written[0], outer) if written else None
        if name is None:  # a computed name: the content belongs to no known module
            self._frames.append(_Frame(node.end_byte, frame.names.copy(), None, quoted=True))
            return
        self._passed = max(self._passed, written[0].end_byte)
        if frame.quoted:
            return
        if word == "defimpl":
            module = self._implementing(name, node, frame)
        else:
            inner = frame.names.inner(written[0], outer) if outer else name
            module = _Building((inner or name,), node)
            if outer:
                frame.names.nested(text_of(written[0]), outer)
        self._built.append(module)
        self._frames.append(_Frame(node.end_byte, frame.names.copy(), module))

    def _implementing(self, protocol: str, node: Node, frame: _Frame) -> _Building:
        for_option, outer = option(node, "for"), _name(frame.module)
        if for_option is not None:
            self._passed = max(self._passed, for_option.end_byte)
        names = [frame.names.of(each, outer) for each in (names_of(for_option) if for_option is not None else ())]
        types = tuple(filter(None, names)) or ((outer,) if outer else ())
        module = _Building(tuple(f"{protocol}.{each}" for each in types), node, types)
        self._need("implements", protocol, module)
        return module

    def _directive(self, word: str, node: Node, frame: _Frame) -> None:
        """Record the modules of alias, import, require, use or @behaviour, and their short names from here on."""
        args = arguments(node)
        if not args:
            return
        named = names_of(args[0], with_atoms=word != "behaviour")
        outer = _name(frame.module)
        targets = [target for each in named if (target := frame.names.of(each, outer))]
        for target in targets:
            self._need("refersTo" if frame.quoted else _NAMES[word], target, frame.module)
        self._passed = max(self._passed, args[0].end_byte)
        called = option(node, "as")
        if called is not None:
            self._passed = max(self._passed, called.end_byte)
        if word == "alias" or called is not None:
            for target in targets:
                frame.names.alias(target, text_of(called) if called is not None else target.rpartition(".")[2])

    def _need(self, kind: str, target: str | None, module: _Building | None) -> None:
        if module is not None and target and target not in module.names:
            module.needs[kind, target] = None

    def modules(self) -> list[Module]:
        built_modules = []
        for built in self._built:
            targets = {target for kind, target in built.needs if kind != "refersTo"}
            needs = [need for need in built.needs if need[0] != "refersTo" or need[1] not in targets]
            functions = merged(built.functions)
            first, last = line_of(built.node), last_line(built.node)
            for name, type_name in zip_longest(built.names, built.of):
                extra = {("refersTo", type_name)} - {("refersTo", each) for each in targets} if type_name else set()
                relations = tuple(sorted({*commanded_relations(name, built.needs, built.written)}))
                built_modules.append(
                    Module(name, first, last, functions, tuple(sorted({*needs, *extra})), (), relations)
                )
        return built_modules


def _name(module: _Building | None) -> str:
    return module.name if module is not None else ""
