"""A conversation as it is read back: its turns in their order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from jidomem.index import OxigraphIndex
from jidomem.journal.files import Stream
from jidomem.moments import parse_moment, stamp
from jidomem.terms import Term, bare
from jidomem.turn import ToolUse, Turn
from jidomem.vocab import conv, jido

Said = Mapping[Term, Sequence[Term]]


def turns(index: OxigraphIndex, project: str, conversation: Term, moment: str | None = None) -> list[Turn]:
    """Return the turns of a conversation, in their order; with a *moment* those that were recorded by then."""
    graph = Stream(project, "history").graph
    nodes = [node for node, _, _ in index.triples(graph, None, conv("partOfConversation"), conversation)]
    found = [turn(index, project, node) for node in nodes]
    known = [one for one in found if moment is None or one.recorded_at <= moment]
    return sorted(known, key=lambda one: (one.index, one.recorded_at, one.iri))


def turn(index: OxigraphIndex, project: str, node: Term) -> Turn:
    """Return one turn; what of it was redacted is None."""
    graph = Stream(project, "history").graph
    said = _said(index, graph, node)
    prompt, answer = (_part(index, graph, said, conv(name)) for name in ("hasPrompt", "hasAnswer"))
    return Turn(
        iri=bare(node),
        index=int(_one(said, conv("turnIndex")) or 0),
        prompt=_one(prompt, conv("promptText")),
        answer=_one(answer, conv("answerText")),
        asked_by=_one(prompt, jido("saidBy")),
        answered_by=_one(answer, jido("saidBy")),
        tools=tuple(
            _use(index, graph, call) for call in sorted(said.get(conv("involvesToolInvocation"), ()), key=_number)
        ),
        timestamp=_moment(said, conv("timestamp")),
        recorded_at=_moment(said, jido("recordedAt")),
    )


def _use(index: OxigraphIndex, graph: str, call: Term) -> ToolUse:
    said = _said(index, graph, call)
    result = _part(index, graph, said, conv("hasResult"))
    given, got = _one(said, conv("invocationParameters")), _one(result, conv("resultData"))
    return ToolUse(_one(said, conv("toolName")) or "", given and json.loads(given), got and json.loads(got))


def _number(call: Term) -> tuple[int, Term]:
    """Return what sorts the calls of a turn: the number at the end of the name, where it has one."""
    number = bare(call).rpartition("/")[2]
    return int(number) if number.isdecimal() else 0, call


def _part(index: OxigraphIndex, graph: str, said: Said, link: Term) -> Said:
    """Return what is said of the one thing *link* leads to, nothing where it leads nowhere."""
    nodes = said.get(link)
    return _said(index, graph, nodes[0]) if nodes else {}


def _said(index: OxigraphIndex, graph: str, node: Term) -> Said:
    said: dict[Term, list[Term]] = {}
    for _, predicate, value in index.triples(graph, node):
        said.setdefault(predicate, []).append(value)
    return said


def _one(said: Said, predicate: Term) -> str | None:
    values = said.get(predicate)
    return bare(values[0]) if values else None


def _moment(said: Said, predicate: Term) -> str:
    """Return the earliest moment that is said, in the one written form."""
    found = [stamp(at) for at in map(parse_moment, map(bare, said.get(predicate, ()))) if at is not None]
    return min(found, default="")
