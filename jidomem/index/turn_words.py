"""A turn of a conversation as it is looked through: who said what, and what was done for it, read from the index."""

from __future__ import annotations

from collections.abc import Iterator

from jidomem.index.answers import Solutions
from jidomem.index.documents import Document
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.lexical import FIELDS
from jidomem.moments import parse_moment, stamp
from jidomem.pieces import LONGEST
from jidomem.terms import Term, bare
from jidomem.vocab import TYPE, conv, jido, local_name

TURN = conv("ConversationTurn")
#: So many calls of tools in a turn are looked through, and so many signs of what each was given and gave back.
CALLS, TOLD = 20, 1_000
_RECORDED, _BY, _CALL = jido("recordedAt"), jido("saidBy"), conv("involvesToolInvocation")
_TEXTS = conv("promptText"), conv("answerText")
_ITEMS = f"SELECT ?turn ?at WHERE {{ ?turn a {TURN} ; {_RECORDED} ?at }}"


def items(index: OxigraphIndex, graph: str) -> list[tuple[Term, Term]]:
    """Return every turn of *graph*, oldest first, each after the moment it was recorded."""
    found = index.query(_ITEMS, graphs=[graph])
    assert isinstance(found, Solutions)
    return sorted((row[1] or "", row[0] or "") for row in found.rows)


def document(index: OxigraphIndex, graph: str, node: Term) -> Document | None:
    """Return the turn *node* as it is looked through; None for what is none."""
    said = _said(index, graph, node)
    recorded = min(filter(None, map(_moment, said.get(_RECORDED, ()))), default=None)
    if TURN not in said.get(TYPE, ()) or recorded is None:
        return None
    parts = [_said(index, graph, part) for name in ("Prompt", "Answer") for part in said.get(conv(f"has{name}"), ())]
    spoken = [bare(text) for part in parts for name in _TEXTS for text in part.get(name, ())]
    agents = [bare(agent) for part in parts for agent in part.get(_BY, ())]
    names = tuple(dict.fromkeys(map(local_name, agents)))
    talk = next(iter(said.get(conv("partOfConversation"), ())), "")
    done = _used(index, graph, said.get(_CALL, []))
    texts = {"summary": "\n".join(spoken), "about": "\n".join(names), "evidence": "\n".join(done)}
    return Document(
        item=bare(node),
        types=tuple(map(bare, said[TYPE])),
        recorded=recorded,
        ended=None,
        inactive=None,
        agent=agents[-1] if agents else "",
        session=_session(index, graph, talk),
        confidence="",
        valid_from=None,
        valid_until=None,
        successors=(),
        about=(),
        texts=tuple(texts.get(name, "") for name in FIELDS),
        text="\n\n".join(spoken)[:LONGEST],
        speakers=names,
        said_at=min(filter(None, map(_moment, said.get(conv("timestamp"), ()))), default=recorded),
        talk=bare(talk) if talk else "",
        place=f"{_place(said)}{recorded} {bare(node)}",
    )


def _used(index: OxigraphIndex, graph: str, calls: list[Term]) -> Iterator[str]:
    """Yield the name of each tool that was called, and the beginning of what it was given and gave back."""
    for call in sorted(calls)[:CALLS]:
        said = _said(index, graph, call)
        results = [_said(index, graph, result) for result in said.get(conv("hasResult"), ())]
        yield from map(bare, said.get(conv("toolName"), ()))
        yield from (bare(given)[:TOLD] for given in said.get(conv("invocationParameters"), ()))
        yield from (bare(got)[:TOLD] for result in results for got in result.get(conv("resultData"), ()))


def _session(index: OxigraphIndex, graph: str, talk: Term) -> str:
    """Return the work session that a conversation is of, nothing where none is said."""
    rows = index.triples(graph, talk, conv("associatedWithSession")) if talk else ()
    return next((bare(session) for _, _, session in rows), "")


def _place(said: dict[Term, list[Term]]) -> str:
    number = next(iter(map(bare, said.get(conv("turnIndex"), ()))), "")
    return f"{int(number):012d} " if number.isdecimal() else ""


def _moment(term: Term) -> str | None:
    found = parse_moment(bare(term))
    return None if found is None else stamp(found)


def _said(index: OxigraphIndex, graph: str, node: Term) -> dict[Term, list[Term]]:
    said: dict[Term, list[Term]] = {}
    for _, predicate, term in index.triples(graph, node):
        said.setdefault(predicate, []).append(term)
    return said
