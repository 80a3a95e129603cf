"""The ontology: classes with how many memories there are of each, every term in words, and terms that are proposed.

The console: SPARQL against the project, with our terms completed, and the limits told where they are met.

The playbook: each named question with a form of its parameters, its answer as a table, and the SPARQL it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from jidomem.check import terms
from jidomem.curation.term_proposals import Proposal, TermProposals
from jidomem.errors import Busy, InvalidRequest, JidomemError, NotFound
from jidomem.extras.web import cards
from jidomem.extras.web.cards import AS_OF, PageRequest, Screen, ToFillIn
from jidomem.index.timeline import overview
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import Term, iri, parse_literal, plain_value
from jidomem.rdf.vocab import BASE, JIDO, jido, local_name
from jidomem.records.active import STATUSES
from jidomem.records.named_query import NamedQuery, QueryParameter, snake, to_term
from jidomem.serve import wire

#: What is done with a term that is proposed.
ACTS = ("accept", "map", "refuse")
#: What an entry names -> what is said over it.
_NAMED: Mapping[str, str] = {
    "above": "It is a kind of", "below": "Its kinds", "domain": "Said of", "range": "Its values are",
    "classes": "Of the classes",
    "individuals": "Its values", "properties": "What is said of it",
}  # fmt: skip


def show_ontology(asked: PageRequest) -> Mapping[str, Any]:
    """Return the classes as a tree with the memories of each, the properties, and the terms that wait for an answer."""
    asked.memory.catch_up(asked.project)
    schema = asked.memory.schema
    counts, said = _counts(asked), terms.definitions(schema)
    return {
        "version": schema.version,
        "is_counted": counts is not None,
        "classes": [
            {
                **_brief(asked, term, said),
                **_class_counts(asked, counts, term),
                "is_memory": schema.is_a(term, jido("MemoryItem")),
                "depth": depth,
            }
            for depth, term in terms.tree(schema)
        ],
        "properties": [_brief(asked, term, said) for term in sorted(schema.properties)],
        **_waiting(asked),
        "done": asked.given.get("done"),
    }


def _counts(asked: PageRequest) -> Mapping[str, int] | None:
    """Return how many memories are of each class; None as long as they are being taken in."""
    try:
        found = asked.memory.texts.read_soon(
            Stream(asked.project),
            lambda file: overview(file, {}, moment=asked.as_of, valid_at=asked.valid_at, after=None, count=1),
        )
    except Busy:
        return None
    return found.facets["kind"]


def _class_counts(asked: PageRequest, counts: Mapping[str, int] | None, term: Term) -> dict[str, Any]:
    """Return how many memories are of a class, and where they are listed."""
    name = local_name(term)
    count = None if counts is None else counts.get(name, 0)
    return {"count": count, "memories": asked.link("timeline", kind=name) if count else None}


def _brief(asked: PageRequest, term: Term, said: Mapping[Term, str]) -> dict[str, Any]:
    label = asked.term(plain_value(term)).text
    return {"name": terms.short(term), "label": label, "definition": said.get(term, ""), "link": _link(asked, term)}


def _link(asked: PageRequest, term: Term) -> str:
    return asked.link("ontology", plain_value(term))


def _linked(asked: PageRequest, name: str, said: Mapping[Term, str]) -> dict[str, Any]:
    """Return a term that another one names, which may be none of ours."""
    if iri(name) in asked.memory.schema.declared:
        return _brief(asked, iri(name), said)
    return {"name": terms.short(iri(name)), "definition": "", "link": None}


def _proposals(asked: PageRequest) -> TermProposals:
    memory = asked.memory
    root, change = memory.settings.root, memory.place.change_file
    return TermProposals(root, change, asked.project, memory.schema, asked.site.writer, memory.tail)


def _waiting(asked: PageRequest) -> dict[str, Any]:
    """Return the terms that wait, each with what who asks may do with it; whoever proposed one may take it back."""
    found, why_not = _proposals(asked).waiting(), cards.why_not_curate(asked)
    may = () if asked.as_of or why_not else ACTS
    writes = asked.as_of is None and cards.why_not_write(asked) is None
    return {
        "proposals": [
            {**_proposed(asked, each), "acts": may or (("refuse",) if writes and _is_own(asked, each) else ())}
            for each in found
        ],
        "why_not": why_not if found else None,
    }


def _is_own(asked: PageRequest, proposal: Proposal) -> bool:
    return asked.site.caller is not None and iri(proposal.by) == asked.site.writer.agent_iri()


def _proposed(asked: PageRequest, proposal: Proposal) -> dict[str, Any]:
    nearest = asked.memory.schema.nearest(iri(proposal.term))
    told = proposal.to_dict()
    return {**told, "nearest": None if nearest is None else terms.short(nearest)}


def show_term(asked: PageRequest, name: str) -> Mapping[str, Any]:
    """Return all that is said of one term, with the rules about it in words."""
    schema, root = asked.memory.schema, asked.memory.settings.root
    entry = terms.entry(schema, terms.find(schema, name), [root])
    told, said = entry.to_dict(), terms.definitions(schema)
    named = [
        {"title": title, "terms": [_linked(asked, each, said) for each in told[key]]}
        for key, title in _NAMED.items()
        if told[key]
    ]
    is_kind = told["kind"] == "class"
    memories = asked.link("timeline", kind=local_name(iri(entry.iri))) if is_kind else None
    return {**told, "named": named, "memories": memories}


def act(asked: PageRequest, form: Mapping[str, str]) -> str:
    """Accept a term that is proposed, say which one there is to use instead, or refuse it."""
    way, term, reason = form["act"], form.get("term", ""), form.get("reason", "").strip()
    proposals = _proposals(asked)
    if way == "accept":
        proposals.accept(term, reason=reason)
    elif way == "map":
        schema = asked.memory.schema
        instead = terms.short(terms.find(schema, form.get("instead", "").strip()))
        proposals.reject(term, reason=f"use {instead}{': ' + reason if reason else ''}")
    else:
        proposals.reject(term, reason=reason)
    return asked.link("ontology", done=way)


ONTOLOGY = Screen(
    "ontology",
    "ontology.html",
    show_ontology,
    takes=("done",),
    act=act,
    acts=ACTS,
    fields=("term", "reason", "instead"),
    menu="Ontology",
)
TERM = Screen("ontology/{name}", "term.html", show_term)


#: Rows of an answer that are shown; all of them can be had as CSV.
SHOWN = 1_000
_BEGINNING = """PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?summary ?recorded WHERE {
  ?item a jido:Fact ; jido:summary ?summary ; jido:recordedAt ?recorded .
} ORDER BY DESC(?recorded) LIMIT 20"""


def show_console(asked: PageRequest) -> Mapping[str, Any]:
    """Return where queries go, what they begin with, the terms there are, and the limits."""
    limits = asked.memory.settings.limits
    terms = sorted(term for term in map(plain_value, asked.memory.schema.declared) if term.startswith(JIDO))
    return {
        "endpoint": f"/ui/{asked.project}/sparql",
        "as_of": asked.as_of,
        "memories": f"{BASE}memory/",
        "page": f"/ui/{asked.project}/memories/",
        "ours": BASE,
        "shown": SHOWN,
        "query": _BEGINNING,
        "terms": [f"jido:{term.removeprefix(JIDO)}" for term in terms],
        "limits": {"seconds": limits.query_seconds, "rows": limits.query_rows, "bytes": limits.query_text},
    }


CONSOLE = Screen(
    "console",
    "console.html",
    show_console,
    menu="Console",
    scripts=("yasgui.js", "console.js"),
    styles=("yasgui.css", "console.css"),
)


#: Rows on one page.
COUNT = 100
#: Parameters that every page has a place of its own for.
_GIVEN = ("project", "asOf", "validAt", "includeInactive")
_PAGE = ("limit", "cursor", "include_inactive", "valid_at")
_INPUTS = {"integer": "number", "boolean": "checkbox", "dateTime": "datetime-local"}


def show_playbook(asked: PageRequest) -> Mapping[str, Any]:
    """Return the questions by role."""
    by_role = groupby(sorted(asked.memory.playbook, key=lambda one: (one.role, one.name)), lambda one: one.role)
    return {"roles": [{"role": role, "queries": [_listed(asked, one) for one in queries]} for role, queries in by_role]}


def _listed(asked: PageRequest, query: NamedQuery) -> dict[str, str]:
    return {"name": query.name, "summary": query.summary, "link": asked.link("playbook", query.name)}


def show_query(asked: PageRequest, name: str) -> Mapping[str, Any]:
    """Return one question with its parameters; with its answer where none that it needs is missing.

    Raises ToFillIn where one is not of its type, or names no memory.
    """
    query = asked.memory.playbook.get(name)
    own = {key: value for key, value in asked.given.items() if key not in (AS_OF, *_PAGE) and value != ""}
    faults = _faults(asked, query, own)
    params = [_param(param, own, faults) for param in query.params if param.name not in _GIVEN]
    missing = [each["name"] for each in params if each["required"] and each["name"] not in own]
    page = None
    if not missing and not faults:
        page = asked.memory.reader.ask_page(
            name,
            project=asked.project,
            as_of=asked.as_of,
            valid_at=asked.given.get("valid_at") or None,
            include_inactive=wire.flag(asked.given, "include_inactive"),
            limit=wire.whole(asked.given, "limit") or COUNT,
            cursor=asked.given.get("cursor"),
            **own,
        )
    further = {**asked.given, "cursor": page.cursor} if page and page.cursor else None
    model = {
        "name": query.name,
        "role": query.role,
        "summary": query.summary,
        "params": params,
        "missing": missing,
        "takes_inactive": query.takes("includeInactive"),
        "inactive": wire.flag(asked.given, "include_inactive"),
        "columns": [*query.columns],
        "rows": None if page is None else page.rows,
        "next": asked.link("playbook", name, **further) if further else None,
        "csv": asked.link("playbook", f"{name}.csv", **own, include_inactive=asked.given.get("include_inactive")),
        "json": asked.link("playbook", f"{name}.json", **asked.given),
        "sparql": query.text,
    }
    if faults:
        raise ToFillIn(next(iter(faults.values())), model)
    return model


def _faults(asked: PageRequest, query: NamedQuery, own: Mapping[str, str]) -> dict[str, JidomemError]:
    """Return why what is given for a parameter is none, by its name."""
    found: dict[str, JidomemError] = {}
    for param in query.params:
        name = snake(param.name)
        if param.name in _GIVEN or name not in own:
            continue
        try:
            given = asked.memory.reader.with_iris(query, asked.project, {param.name: own[name]}, asked.as_of)
            to_term(given[param.name], param.type, name)
        except (InvalidRequest, NotFound) as error:
            found[name] = error
    return found


def _param(param: QueryParameter, own: Mapping[str, str], faults: Mapping[str, JidomemError]) -> dict[str, Any]:
    """Return one parameter as a field of the form."""
    name, default = snake(param.name), param.default
    told = parse_literal(default).text if default else ""
    return {
        "name": name,
        "type": param.type,
        "input": _INPUTS.get(param.type, "text"),
        "choices": STATUSES if param.type == "status" else (),
        "required": default is None,
        "default": told,
        "value": own.get(name, ""),
        "fault": faults[name].to_dict() if name in faults else None,
    }


PLAYBOOK = Screen("playbook", "playbook.html", show_playbook, menu="Playbook")
QUESTION = Screen("playbook/{name}", "question.html", show_query, is_open=True)
