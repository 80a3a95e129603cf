"""The ontology: classes with how many memories there are of each, every term in words, and terms that are proposed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jidomem.errors import Busy
from jidomem.govern import glossary
from jidomem.govern.proposals import Proposal, TermProposals
from jidomem.index.overview import overview
from jidomem.journal.files import Stream
from jidomem.serve.curator import allowed
from jidomem.serve.curator.asked import Asked
from jidomem.serve.curator.screen import Screen
from jidomem.terms import Term, bare, iri
from jidomem.vocab import jido, local_name

#: What is done with a term that is proposed.
ACTS = ("accept", "map", "refuse")
#: What an entry names -> what is said over it.
_NAMED: Mapping[str, str] = {
    "above": "It is a kind of", "below": "Its kinds", "domain": "Said of", "range": "Its values are",
    "classes": "Of the classes",
    "individuals": "Its values", "properties": "What is said of it",
}  # fmt: skip


def show_all(asked: Asked) -> Mapping[str, Any]:
    """Return the classes as a tree with the memories of each, the properties, and the terms that wait for an answer."""
    asked.memory.catch_up(asked.project)
    schema = asked.memory.schema
    counts, said = _counts(asked), glossary.definitions(schema)
    return {
        "version": schema.version,
        "is_counted": counts is not None,
        "classes": [
            {
                **_brief(asked, term, said),
                **_held(asked, counts, term),
                "is_memory": schema.is_a(term, jido("MemoryItem")),
                "depth": depth,
            }
            for depth, term in glossary.tree(schema)
        ],
        "properties": [_brief(asked, term, said) for term in sorted(schema.properties)],
        **_waiting(asked),
        "done": asked.given.get("done"),
    }


def _counts(asked: Asked) -> Mapping[str, int] | None:
    """Return how many memories are of each class; None as long as they are being taken in."""
    try:
        found = asked.memory.texts.read_soon(
            Stream(asked.project),
            lambda file: overview(file, {}, moment=asked.as_of, valid_at=asked.valid_at, after=None, count=1),
        )
    except Busy:
        return None
    return found.facets["kind"]


def _held(asked: Asked, counts: Mapping[str, int] | None, term: Term) -> dict[str, Any]:
    """Return how many memories are of a class, and where they are listed."""
    name = local_name(term)
    count = None if counts is None else counts.get(name, 0)
    return {"count": count, "memories": asked.link("timeline", kind=name) if count else None}


def _brief(asked: Asked, term: Term, said: Mapping[Term, str]) -> dict[str, Any]:
    label = asked.term(bare(term)).text
    return {"name": glossary.short(term), "label": label, "definition": said.get(term, ""), "link": _link(asked, term)}


def _link(asked: Asked, term: Term) -> str:
    return asked.link("ontology", bare(term))


def _linked(asked: Asked, name: str, said: Mapping[Term, str]) -> dict[str, Any]:
    """Return a term that another one names, which may be none of ours."""
    if iri(name) in asked.memory.schema.declared:
        return _brief(asked, iri(name), said)
    return {"name": glossary.short(iri(name)), "definition": "", "link": None}


def _proposals(asked: Asked) -> TermProposals:
    memory = asked.memory
    root, change = memory.settings.root, memory.place.change_file
    return TermProposals(root, change, asked.project, memory.schema, asked.site.writer, memory.tail)


def _waiting(asked: Asked) -> dict[str, Any]:
    """Return the terms that wait, each with what who asks may do with it; whoever proposed one may take it back."""
    found, why_not = _proposals(asked).waiting(), allowed.why_not_curate(asked)
    may = () if asked.as_of or why_not else ACTS
    writes = asked.as_of is None and allowed.why_not_write(asked) is None
    return {
        "proposals": [
            {**_proposed(asked, each), "acts": may or (("refuse",) if writes and _is_own(asked, each) else ())}
            for each in found
        ],
        "why_not": why_not if found else None,
    }


def _is_own(asked: Asked, proposal: Proposal) -> bool:
    return asked.site.caller is not None and iri(proposal.by) == asked.site.writer.agent_iri()


def _proposed(asked: Asked, proposal: Proposal) -> dict[str, Any]:
    nearest = asked.memory.schema.nearest(iri(proposal.term))
    told = proposal.to_dict()
    return {**told, "nearest": None if nearest is None else glossary.short(nearest)}


def show(asked: Asked, name: str) -> Mapping[str, Any]:
    """Return all that is said of one term, with the rules about it in words."""
    schema, root = asked.memory.schema, asked.memory.settings.root
    entry = glossary.entry(schema, glossary.find(schema, name), [root])
    told, said = entry.to_dict(), glossary.definitions(schema)
    named = [
        {"title": title, "terms": [_linked(asked, each, said) for each in told[key]]}
        for key, title in _NAMED.items()
        if told[key]
    ]
    is_kind = told["kind"] == "class"
    memories = asked.link("timeline", kind=local_name(iri(entry.iri))) if is_kind else None
    return {**told, "named": named, "memories": memories}


def act(asked: Asked, form: Mapping[str, str]) -> str:
    """Accept a term that is proposed, say which one there is to use instead, or refuse it."""
    way, term, reason = form["act"], form.get("term", ""), form.get("reason", "").strip()
    proposals = _proposals(asked)
    if way == "accept":
        proposals.accept(term, reason=reason)
    elif way == "map":
        schema = asked.memory.schema
        instead = glossary.short(glossary.find(schema, form.get("instead", "").strip()))
        proposals.reject(term, reason=f"use {instead}{': ' + reason if reason else ''}")
    else:
        proposals.reject(term, reason=reason)
    return asked.link("ontology", done=way)


ONTOLOGY = Screen(
    "ontology",
    "ontology.html",
    show_all,
    takes=("done",),
    act=act,
    acts=ACTS,
    fields=("term", "reason", "instead"),
    menu="Ontology",
)
TERM = Screen("ontology/{name}", "term.html", show)
