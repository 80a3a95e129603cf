"""Commands, events and projections, where a project writes them down as the library Commanded has it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jidomem.code.elixir_names import arguments
from jidomem.code.grammar import captured

if TYPE_CHECKING:
    from tree_sitter import Node

#: Calls that are looked into: the clauses of an aggregate, and what a projector handles.
WORDS = ("project",)
_PROJECTOR = ("uses", "Commanded.Projections.Ecto")
_STRUCTS = "(map (struct (alias) @struct))"
NameOf = Callable[["Node"], str | None]


@dataclass(slots=True)
class Events:
    """What a module says of commands and events: an aggregate executes the one and applies the other."""

    executed: list[tuple[str, set[str]]] = field(default_factory=list)
    applied: set[str] = field(default_factory=set)
    projected: set[str] = field(default_factory=set)

    def take(self, word: str, call: Node, name: NameOf) -> None:
        """Take in `def execute(state, %Command{})`, `def apply(state, %Event{})` or `project %Event{}`."""
        given = arguments(call)
        if word == "project" and given:
            self.projected |= _structs(given[0], name)
            return
        if word != "def" or not given:
            return
        head = given[0]
        while head.type == "binary_operator" and (left := head.child_by_field_name("left")) is not None:
            head = left
        target = head.child_by_field_name("target")
        params = arguments(head) if head.type == "call" else []
        if target is None or len(params) != 2:
            return
        called = (target.text or b"").decode("utf-8", "replace")
        if called == "execute":
            built = _structs(call, name)
            self.executed += [(command, built) for command in _structs(params[1], name)]
        elif called == "apply":
            self.applied |= _structs(params[1], name)

    def tells(self, module: str, needs: Collection[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
        """Yield which command emits which event, of those the aggregate applies, and which event *module* projects."""
        for command, built in self.executed:
            for event in built & self.applied - {command}:
                yield command, "emitsEvent", event
        if _PROJECTOR in needs:
            for event in self.projected:
                yield event, "handledByProjection", module


def _structs(node: Node, name: NameOf) -> set[str]:
    """Return the full names of the structs that stand in *node*."""
    nodes = captured("elixir", _STRUCTS, node).get("struct", [])
    return {found for each in nodes if (found := name(each))}
