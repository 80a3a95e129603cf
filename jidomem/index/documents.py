"""A memory as it is looked through: its texts by field, and what it is narrowed down by, read from the index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from jidomem.active import is_accepted
from jidomem.excerpt import is_remark
from jidomem.index.answers import Solutions
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.lexical import FIELDS
from jidomem.moments import parse_moment, stamp
from jidomem.pieces import LONGEST
from jidomem.terms import Term, bare, is_iri, parts
from jidomem.vocab import JIDO, LABEL, TYPE, XSD, jido, local_name

#: field -> the properties that say it, of the memory itself.
_SAYS = {
    "summary": ("summary", "conventionName"),
    "topic": ("topic",),
    "about": ("about",),
    "rationale": ("rationale",),
    "explanation": ("detailedExplanation", "revisionReason"),
}
#: field -> the property that leads to what says it, and by which property.
_LEADS = {"evidence": (jido("derivedFrom"), LABEL), "alternatives": (jido("hasAlternative"), jido("summary"))}
_RECORDED, _STATUS, _ALTERNATIVE = jido("recordedAt"), jido("hasAssertionStatus"), jido("hasAlternative")
_ENDS = (jido("supersededBy"), jido("invalidatedBy"))
_ITEMS = f"SELECT ?item ?at WHERE {{ ?item {_STATUS} ?any ; {_RECORDED} ?at ; {jido('summary')} ?text }}"


@dataclass(frozen=True, slots=True)
class Document:
    """One memory: `texts` are in the order of FIELDS, `about` names what it is about; moments are in one form.

    `ended` is when something that holds first superseded or withdrew it, `successors` superseded it; `inactive` says
    why it is not active otherwise: proposed, rejected or deprecated. `text` is what it
    says, word for word, up to a length. What was said in a talk has who said it, when, in which talk, and its `place`:
    what is sorted by it stands in the order in which it was said.
    """

    item: str
    types: tuple[str, ...]
    recorded: str
    ended: str | None
    inactive: str | None
    agent: str
    session: str
    confidence: str
    valid_from: str | None
    valid_until: str | None
    successors: tuple[str, ...]
    about: tuple[str, ...]
    texts: tuple[str, ...]
    text: str = ""
    speakers: tuple[str, ...] = ()
    said_at: str = ""
    talk: str = ""
    place: str = ""


def items(index: OxigraphIndex, graph: str) -> list[tuple[Term, Term]]:
    """Return every memory of *graph* that has a summary, oldest first, each after the moment it was recorded."""
    found = index.query(_ITEMS, graphs=[graph])
    assert isinstance(found, Solutions)
    known: dict[Term, str] = {}
    for item, at in ((row[0] or "", row[1] or "") for row in found.rows):
        known[item] = min(at, known.get(item, at))
    return sorted((at, item) for item, at in known.items())


def touched(index: OxigraphIndex, graph: str, nodes: Iterable[Term]) -> list[Term]:
    """Return the memories that may have to be looked at again once something new was said of *nodes*, sorted."""
    found = set(nodes)
    for node in [*found]:
        for link in (*_ENDS, *(link for link, _ in _LEADS.values())):
            found.update(item for item, _, _ in index.triples(graph, None, link, node))
    return sorted(found)


def document(index: OxigraphIndex, graph: str, item: Term) -> Document | None:
    """Return *item* as it is looked through; None for what is no memory, has no summary or is part of a decision."""
    said: dict[Term, list[Term]] = {}
    for _, predicate, term in sorted(index.triples(graph, item)):
        said.setdefault(predicate, []).append(term)
    moments = sorted(filter(None, map(_moment, said.get(_RECORDED, ()))))
    if not moments or jido("summary") not in said or _STATUS not in said:
        return None
    if jido("Alternative") in said.get(TYPE, ()) and any(index.triples(graph, None, _ALTERNATIVE, item)):
        return None
    ends = {end: at for link in _ENDS for end in said.get(link, ()) if (at := _held(index, graph, end))}
    texts = {name: [_text(term) for by in names for term in said.get(jido(by), ())] for name, names in _SAYS.items()}
    for name, (link, by) in _LEADS.items():
        texts[name] = [_text(t) for node in said.get(link, ()) for _, _, t in sorted(index.triples(graph, node, by))]
    texts["explanation"] += _other(said)
    texts = {name: [text for text in values if not is_remark(text)] for name, values in texts.items()}

    def one(name: str) -> str:
        return bare(said.get(jido(name), ('""',))[0])

    return Document(
        item=bare(item),
        types=tuple(map(bare, said.get(TYPE, ()))),
        recorded=moments[0],
        ended=min(ends.values(), default=None),
        inactive=_inactive(said),
        agent=one("assertedBy"),
        session=one("assertedIn"),
        confidence=local_name(one("hasConfidence")),
        valid_from=_bound(said, "validFrom", max),
        valid_until=_bound(said, "validUntil", min),
        successors=tuple(bare(end) for end in said.get(_ENDS[0], ()) if end in ends),
        about=tuple(map(bare, said.get(jido("about"), ()))),
        texts=tuple("\n".join(texts[name]) for name in FIELDS),
        text="\n".join(text for name in FIELDS for text in texts[name] if name != "about")[:LONGEST],
        said_at=moments[0],
    )


def _inactive(said: dict[Term, list[Term]]) -> str | None:
    """Return why a memory that nothing ended is not active: proposed, or its decision status; None where it is."""
    if jido("Proposed") in said[_STATUS]:
        return "proposed"
    stated = next((parts(term).text for term in said.get(jido("decisionStatus"), ())), None)
    return None if is_accepted(stated) else stated


def _held(index: OxigraphIndex, graph: str, end: Term) -> str | None:
    """Return when what ended a memory was recorded; None for what is merely proposed."""
    if not any(index.triples(graph, end, _STATUS, jido("Asserted"))):
        return None
    return min(filter(None, (_moment(at) for _, _, at in index.triples(graph, end, _RECORDED))), default=None)


def _other(said: dict[Term, list[Term]]) -> Iterator[str]:
    """Yield the texts that a project's own properties say."""
    for predicate, terms in said.items():
        if not predicate.startswith(f"<{JIDO}"):
            yield from (parts(term).text for term in terms if not is_iri(term) and _is_words(term))


def _is_words(term: Term) -> bool:
    said = parts(term)
    return bool(said.language) or said.datatype == XSD + "string"


def _text(term: Term) -> str:
    """Return the text of a literal; of an IRI the last part, by which people name it."""
    return local_name(term) if is_iri(term) else parts(term).text


def _moment(term: Term) -> str | None:
    """Return a moment in its one written form, in which two are compared as texts."""
    found = parse_moment(bare(term))
    return None if found is None else stamp(found)


def _bound(said: dict[Term, list[Term]], name: str, choose: Callable[[list[str]], str]) -> str | None:
    found = [at for term in said.get(jido(name), ()) if (at := _moment(term))]
    return choose(found) if found else None
