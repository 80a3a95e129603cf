"""What an Elixir file defines: modules, protocols and implementations, their functions and macros, what they name."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

from jidomem.code import commanded
from jidomem.code.elixir_names import Names, arguments, head, names_of, option
from jidomem.code.extracted import Extracted, Function, Module, merged
from jidomem.code.grammar import captured, last_line, line_of, parsed, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

LANGUAGE = "elixir"
_DEFINES = {"def": False, "defp": True, "defmacro": False, "defmacrop": True, "defguard": False, "defguardp": True}
_DEFINES |= {"defdelegate": False}
_HOLDS = ("defmodule", "defprotocol", "defimpl")
_NAMES = {"alias": "aliases", "import": "imports", "require": "requires", "use": "uses", "behaviour": "implements"}
_WORDS = " ".join(f'"{word}"' for word in (*_HOLDS, *_DEFINES, *_NAMES, "quote", *commanded.WORDS))
_QUERY = f"""
((call target: (identifier) @word) @call (#any-of? @word {_WORDS}))
(alias) @name
(do_block) @block
(stab_clause) @block
"""


@dataclass(slots=True)
class _Building:
    """A module being read; those of one `defimpl ... for: [A, B]` share all but their name and what they are *of*."""

    names: tuple[str, ...]
    node: Node
    of: tuple[str, ...] = ()
    functions: list[Function] = field(default_factory=list)
    needs: dict[tuple[str, str], None] = field(default_factory=dict)
    written: list[commanded.Written] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.names[0]


@dataclass(slots=True)
class _Frame:
    """A part of the file in which the same aliases hold: up to byte `end`, in a module, in code that is quoted."""

    end: int
    names: Names
    module: _Building | None
    quoted: bool = False


def extract(data: bytes) -> Extracted:
    """Return the modules a file holds; what is quoted belongs to whoever uses the macro, and is left out."""
    root, broken = parsed(LANGUAGE, data)
    if root is None:
        return Extracted((), broken)
    reading = _Reading(len(data))
    found = captured(LANGUAGE, _QUERY, root)
    nodes = [
        (node.start_byte, -node.end_byte, kind, node)
        for kind in ("call", "block", "name")
        for node in found.get(kind, ())
    ]
    for start, end, kind, node in sorted(nodes, key=lambda each: (*each[:2], each[2] != "call")):
        reading.take(kind, node, start, -end)
    return Extracted(tuple(reading.modules()), broken)


class _Reading:
    """Goes through the parts of a file in the order they stand, knowing which aliases hold where."""

    def __init__(self, end: int) -> None:
        self._frames = [_Frame(end + 1, Names(), None)]
        self._built: list[_Building] = []
        self._passed = self._headed = 0  # names, and calls, before these bytes are taken in already

    def take(self, kind: str, node: Node, start: int, end: int) -> None:
        """Take in the part that stands from *start* to *end*."""
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
            if word in _DEFINES and (given := arguments(node)):
                self._headed = max(self._headed, given[0].end_byte)  # `defmacro def(call)` defines no `call`
            if word in _DEFINES and (named := head(node)) is not None:
                private = _DEFINES[word]
                frame.module.functions.append(Function(*named, private, line_of(node), last_line(node)))
            if word in commanded.WORDS:
                frame.module.written.append(commanded.Written(word, node, frame.names.copy()))

    def _open(self, word: str, node: Node, frame: _Frame) -> None:
        """Begin a module, protocol or implementation."""
        given = arguments(node)
        outer = _name(frame.module)
        written = names_of(given[0], with_atoms=True) if given else []
        name = frame.names.of(written[0], outer) if written else None
        if name is None:  # a name that is computed: what it holds is nobody's that is known
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
        """Return the modules of an implementation: one for each type, or for the module it stands in."""
        of, outer = option(node, "for"), _name(frame.module)
        if of is not None:
            self._passed = max(self._passed, of.end_byte)
        said = [frame.names.of(each, outer) for each in (names_of(of) if of is not None else ())]
        types = tuple(filter(None, said)) or ((outer,) if outer else ())
        module = _Building(tuple(f"{protocol}.{each}" for each in types), node, types)
        self._need("implements", protocol, module)
        return module

    def _directive(self, word: str, node: Node, frame: _Frame) -> None:
        """Take down what is aliased, imported, required, used or promised, and by which name it goes from here on."""
        given = arguments(node)
        if not given:
            return
        named = names_of(given[0], with_atoms=word != "behaviour")
        outer = _name(frame.module)
        targets = [target for each in named if (target := frame.names.of(each, outer))]
        for target in targets:
            self._need("refersTo" if frame.quoted else _NAMES[word], target, frame.module)
        self._passed = max(self._passed, given[0].end_byte)
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
        """Return what was found."""
        found = []
        for built in self._built:
            said = {target for kind, target in built.needs if kind != "refersTo"}
            needs = [need for need in built.needs if need[0] != "refersTo" or need[1] not in said]
            functions = merged(built.functions)
            first, last = line_of(built.node), last_line(built.node)
            for name, of in zip_longest(built.names, built.of):
                also = {("refersTo", of)} - {("refersTo", each) for each in said} if of else set()
                tells = tuple(sorted({*commanded.tells(name, built.needs, built.written)}))
                found.append(Module(name, first, last, functions, tuple(sorted({*needs, *also})), (), tells))
        return found


def _name(module: _Building | None) -> str:
    return module.name if module is not None else ""
