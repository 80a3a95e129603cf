"""Commands, events and projections, where a project writes them down as the library Commanded has it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from jidomem.code.elixir_names import Names, arguments, signature
from jidomem.code.grammar import captured, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

#: Calls that are looked into: the functions of aggregates and handlers, and what a projector handles.
WORDS = ("def", "defp", "project")
_COMMANDS, _EVENTS = "Commanded.Commands.Handler", "Commanded.Event.Handler"
_PROJECTOR = re.compile(r"(Projector|Projection)s?(\.|$)")
#: Clauses of one module beyond which it is not looked into: no person writes so many, and each may call each.
_MOST = 1_000
_NAMED = "(alias) @named"
_STRUCTS = "(map (struct)) @map"
_CALLED = """
(call target: (identifier) @called)
(unary_operator operand: (binary_operator left: (identifier) @called right: (integer)))
"""


@dataclass(frozen=True, slots=True)
class Written:
    """A call of WORDS in a module, and the aliases that hold there."""

    word: str
    call: Node
    names: Names


@dataclass(frozen=True)
class _Clause:
    """A clause of a function, in the module *within*."""

    name: str
    params: Sequence[Node]
    written: Written
    within: str

    def takes(self, position: int) -> set[str]:
        """Return the struct that the parameter at *position* is matched with."""
        return self._full(_matched(self.params[position])) if position < len(self.params) else set()

    @cached_property
    def second(self) -> set[str]:
        """Return the struct that its second parameter is matched with."""
        return self.takes(1)

    @cached_property
    def named(self) -> set[str]:
        """Return the modules it names."""
        return self._full(captured("elixir", _NAMED, self.written.call).get("named", ()))

    @cached_property
    def built(self) -> set[str]:
        """Return the structs its body builds, but for those that are part of another."""
        maps = captured("elixir", _STRUCTS, self.written.call).get("map", ())
        body = arguments(self.written.call)[0].end_byte
        return self._full(name for each in maps if _is_built(each, body) for name in _struct(each))

    @cached_property
    def calls(self) -> set[str]:
        """Return the names of the functions of its own module that its body calls, or hands on (`&name/2`)."""
        called = captured("elixir", _CALLED, self.written.call).get("called", ())
        return {text_of(each) for each in called}

    def _full(self, nodes: Iterable[Node]) -> set[str]:
        return {name for each in nodes if (name := self.written.names.of(each, self.within))}


def tells(
    module: str, needs: Collection[tuple[str, str]], written: Sequence[Written]
) -> Iterator[tuple[str, str, str]]:
    """Yield which command emits which event, as far as *module* says so, and which events it projects.

    An aggregate is known by the events it applies: of those it emits what is named where a function takes a command,
    or in functions of the same module that are called from there. A command handler emits what it builds. A projector
    is known by `project`, or is an event handler that calls itself a projector or a projection.
    """
    clauses = [found for each in written if (found := _clause(each, module))]
    yield from ((command, "emitsEvent", event) for command, event in _emitted(needs, clauses))
    projected = {event for each in written if each.word == "project" for event in _projected(each, module)}
    if _needs(needs, _EVENTS) and _PROJECTOR.search(module):
        projected |= {event for each in clauses if each.name == "handle" for event in each.takes(0)}
    yield from ((event, "handledByProjection", module) for event in projected)


def _emitted(needs: Collection[tuple[str, str]], clauses: Sequence[_Clause]) -> Iterator[tuple[str, str]]:
    """Yield each command with an event that comes of it."""
    pairs = [each for each in clauses if len(each.params) == 2]
    applied = {event for each in pairs if each.name == "apply" for event in each.second}
    if len(clauses) > _MOST or not (applied or _needs(needs, _COMMANDS)):
        return
    given = [each for each in pairs if each.written.word == "def" and each.name != "apply"]
    taking = [(command, each) for each in given for command in each.second - applied]
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
    """Return *start* and the clauses called from it, one by way of another, but those that take another command."""
    found, known = [start], {start.name}
    for clause in found:
        called = [each for name in clause.calls - known for each in by_name.get(name, ())]
        known |= clause.calls
        found += [each for each in called if command in each.second or not each.second & commands]
    return found


def _projected(each: Written, module: str) -> set[str]:
    """Return what `project %Event{} ...` handles where it stands in the module itself: a macro, not a function."""
    given, block = arguments(each.call), each.call.parent
    around = block.parent if block is not None else None
    if not given or around is None or text_of(around.child_by_field_name("target")) != "defmodule":
        return set()
    return {name for node in _matched(given[0]) if (name := each.names.of(node, module))}


def _clause(written: Written, module: str) -> _Clause | None:
    """Return the clause that `def` or `defp` defines, if it has parameters."""
    head = signature(written.call) if written.word != "project" else None
    if head is None or head.type != "call":
        return None
    return _Clause(text_of(head.child_by_field_name("target")), arguments(head), written, module)


def _needs(needs: Collection[tuple[str, str]], behaviour: str) -> bool:
    return ("implements", behaviour) in needs or ("uses", behaviour) in needs


def _matched(pattern: Node) -> list[Node]:
    """Return the name of the struct that a pattern is, by itself or on a side of `=`; none of those inside it."""
    found, sides = [], [pattern]
    while sides:
        side = sides.pop()
        if _operator(side) == "=":
            sides += side.named_children
        else:
            found += _struct(side)
    return found


def _struct(node: Node) -> list[Node]:
    """Return the name in `%Name{}`; nothing of what is no struct."""
    first = node.named_children[0] if node.type == "map" and node.named_children else None
    return first.named_children[:1] if first is not None and first.type == "struct" else []


def _is_built(struct: Node, body: int) -> bool:
    """Return whether a struct that stands after byte *body* is made there: not matched, not changed, in no other."""
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
