"""The pages of the ontology: its terms and proposals, the SPARQL console and the playbook of named queries."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from jidomem.check import terms
from jidomem.curation.term_proposals import Proposal, TermProposals
from jidomem.errors import Busy, InvalidRequest, JidomemError, NotFound
from jidomem.extras.web import cards
from jidomem.extras.web.cards import AS_OF, InvalidForm, PageKind, PageRequest
from jidomem.rdf.terms import Term, iri, parse_literal, plain_value
from jidomem.rdf.vocab import BASE, JIDO, jido, local_name
from jidomem.records.active import STATUSES
from jidomem.records.named_query import NamedQuery, QueryParameter, snake, to_term
from jidomem.serve import wire

#: The decisions on a proposed term.
ACTS = ("accept", "map", "refuse")
#: The links of a term -> heading.
_NAMED: Mapping[str, str] = {
    "above": "Superclasses", "below": "Subclasses", "domain": "Domain", "range": "Range",
    "classes": "Classes",
    "individuals": "Values", "properties": "Properties",
}  # fmt: skip


def show_ontology(page: PageRequest) -> Mapping[str, Any]:
    """Return the classes as a tree with their numbers of memories, the properties, and the proposed terms."""
    page.memory.catch_up(page.project)
    schema = page.memory.schema
    counts, definitions = _counts(page), terms.definitions(schema)
    return {
        "version": schema.version,
        "is_counted": counts is not None,
        "classes": [
            {
                **_brief(page, term, definitions),
                **_class_counts(page, counts, term),
                "is_memory": schema.is_a(term, jido("MemoryItem")),
                "depth": depth,
            }
            for depth, term in terms.tree(schema)
        ],
        "properties": [_brief(page, term, definitions) for term in sorted(schema.properties)],
        **_waiting(page),
        "done": page.given.get("done"),
    }


def _counts(page: PageRequest) -> Mapping[str, int] | None:
    """Return the number of memories of each class; None while the search index is being built."""
    try:
        return page.timeline({}, 1).facets["kind"]
    except Busy:
        return None


def _class_counts(page: PageRequest, counts: Mapping[str, int] | None, term: Term) -> dict[str, Any]:
    name = local_name(term)
    count = None if counts is None else counts.get(name, 0)
    return {"count": count, "memories": page.link("timeline", kind=name) if count else None}


def _brief(page: PageRequest, term: Term, definitions: Mapping[Term, str]) -> dict[str, Any]:
    label = page.term(plain_value(term)).text
    return {
        "name": terms.short(term),
        "label": label,
        "definition": definitions.get(term, ""),
        "link": page.link("ontology", plain_value(term)),
    }


def _linked(page: PageRequest, name: str, definitions: Mapping[Term, str]) -> dict[str, Any]:
    """Return the row of a term, which may be of another namespace."""
    if iri(name) in page.memory.schema.declared:
        return _brief(page, iri(name), definitions)
    return {"name": terms.short(iri(name)), "definition": "", "link": None}


def _proposals(page: PageRequest) -> TermProposals:
    memory = page.memory
    root, change = memory.settings.root, memory.place.change_file
    return TermProposals(root, change, page.project, memory.schema, page.site.writer, memory.follower)


def _waiting(page: PageRequest) -> dict[str, Any]:
    """Return the proposed terms with the actions of the caller; an author may withdraw its own."""
    proposals, why_not = _proposals(page).waiting(), cards.why_not_curate(page)
    may = () if page.as_of or why_not else ACTS
    writes = page.as_of is None and cards.why_not_write(page) is None
    return {
        "proposals": [
            {**_proposed(page, each), "acts": may or (("refuse",) if writes and _is_own(page, each) else ())}
            for each in proposals
        ],
        "why_not": why_not if proposals else None,
    }


def _is_own(page: PageRequest, proposal: Proposal) -> bool:
    return page.site.caller is not None and iri(proposal.by) == page.site.writer.agent_iri()


def _proposed(page: PageRequest, proposal: Proposal) -> dict[str, Any]:
    nearest = page.memory.schema.nearest(iri(proposal.term))
    values = proposal.to_dict()
    return {**values, "nearest": None if nearest is None else terms.short(nearest)}


def show_term(page: PageRequest, name: str) -> Mapping[str, Any]:
    """Return the description of one term, and the rules about it."""
    schema, root = page.memory.schema, page.memory.settings.root
    entry = terms.entry(schema, terms.find(schema, name), [root])
    values, definitions = entry.to_dict(), terms.definitions(schema)
    named = [
        {"title": title, "terms": [_linked(page, each, definitions) for each in values[key]]}
        for key, title in _NAMED.items()
        if values[key]
    ]
    is_kind = values["kind"] == "class"
    memories = page.link("timeline", kind=local_name(iri(entry.iri))) if is_kind else None
    return {**values, "named": named, "memories": memories}


def act(page: PageRequest, form: Mapping[str, str]) -> str:
    """Accept a proposed term, map it to another one, or refuse it."""
    way, term, reason = form["act"], form.get("term", ""), form.get("reason", "").strip()
    proposals = _proposals(page)
    if way == "accept":
        proposals.accept(term, reason=reason)
    elif way == "map":
        schema = page.memory.schema
        instead = terms.short(terms.find(schema, form.get("instead", "").strip()))
        proposals.reject(term, reason=f"use {instead}{': ' + reason if reason else ''}")
    else:
        proposals.reject(term, reason=reason)
    return page.link("ontology", done=way)


ONTOLOGY = PageKind(
    "ontology", "ontology.html", show_ontology, takes=("done",), act=act, acts=ACTS,
    fields=("term", "reason", "instead"), menu="Ontology",
)  # fmt: skip
TERM = PageKind("ontology/{name}", "term.html", show_term)


#: The most rows of an answer that are shown; the CSV has all of them.
MAX_ROWS = 1_000
_BEGINNING = """PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?summary ?recorded WHERE {
  ?item a jido:Fact ; jido:summary ?summary ; jido:recordedAt ?recorded .
} ORDER BY DESC(?recorded) LIMIT 20"""


def show_console(page: PageRequest) -> Mapping[str, Any]:
    """Return the endpoint of the console, its first query, the terms and the limits."""
    limits = page.memory.settings.limits
    terms = sorted(term for term in map(plain_value, page.memory.schema.declared) if term.startswith(JIDO))
    return {
        "endpoint": f"/ui/{page.project}/sparql",
        "as_of": page.as_of,
        "memories": f"{BASE}memory/",
        "page": f"/ui/{page.project}/memories/",
        "ours": BASE,
        "shown": MAX_ROWS,
        "query": _BEGINNING,
        "terms": [f"jido:{term.removeprefix(JIDO)}" for term in terms],
        "limits": {"seconds": limits.query_seconds, "rows": limits.query_rows, "bytes": limits.query_text},
    }


CONSOLE = PageKind(
    "console", "console.html", show_console, menu="Console", scripts=("yasgui.js", "console.js"),
    styles=("yasgui.css", "console.css"),
)  # fmt: skip


#: Rows on one page.
COUNT = 100
#: Parameters with a place of their own on every page.
_GIVEN = ("project", "asOf", "validAt", "includeInactive")
_PAGE = ("limit", "cursor", "include_inactive", "valid_at")
_INPUTS = {"integer": "number", "boolean": "checkbox", "dateTime": "datetime-local"}


def show_playbook(page: PageRequest) -> Mapping[str, Any]:
    """Return the named queries by role."""
    by_role = groupby(sorted(page.memory.playbook, key=lambda one: (one.role, one.name)), lambda one: one.role)
    return {"roles": [{"role": role, "queries": [_listed(page, one) for one in queries]} for role, queries in by_role]}


def _listed(page: PageRequest, query: NamedQuery) -> dict[str, str]:
    return {"name": query.name, "summary": query.summary, "link": page.link("playbook", query.name)}


def show_query(page: PageRequest, name: str) -> Mapping[str, Any]:
    """Return one named query with its parameters, and its rows unless a required one is missing.

    Raise InvalidForm if a value has the wrong type, or names no memory.
    """
    query = page.memory.playbook.get(name)
    own = {key: value for key, value in page.given.items() if key not in (AS_OF, *_PAGE) and value != ""}
    faults = _faults(page, query, own)
    params = [_param(param, own, faults) for param in query.params if param.name not in _GIVEN]
    missing = [each["name"] for each in params if each["required"] and each["name"] not in own]
    answer = None
    if not missing and not faults:
        answer = page.memory.reader.ask_page(
            name,
            project=page.project,
            as_of=page.as_of,
            valid_at=page.given.get("valid_at") or None,
            include_inactive=wire.flag(page.given, "include_inactive"),
            limit=wire.integer(page.given, "limit") or COUNT,
            cursor=page.given.get("cursor"),
            **own,
        )
    next_arguments = {**page.given, "cursor": answer.cursor} if answer and answer.cursor else None
    model = {
        "name": query.name,
        "role": query.role,
        "summary": query.summary,
        "params": params,
        "missing": missing,
        "takes_inactive": query.takes("includeInactive"),
        "inactive": wire.flag(page.given, "include_inactive"),
        "columns": [*query.columns],
        "rows": None if answer is None else answer.rows,
        "next": page.link("playbook", name, **next_arguments) if next_arguments else None,
        "csv": page.link("playbook", f"{name}.csv", **own, include_inactive=page.given.get("include_inactive")),
        "json": page.link("playbook", f"{name}.json", **page.given),
        "sparql": query.text,
    }
    if faults:
        raise InvalidForm(next(iter(faults.values())), model)
    return model


def _faults(page: PageRequest, query: NamedQuery, own: Mapping[str, str]) -> dict[str, JidomemError]:
    faults: dict[str, JidomemError] = {}
    for param in query.params:
        name = snake(param.name)
        if param.name in _GIVEN or name not in own:
            continue
        try:
            given = page.memory.reader.with_iris(query, page.project, {param.name: own[name]}, page.as_of)
            to_term(given[param.name], param.type, name)
        except (InvalidRequest, NotFound) as error:
            faults[name] = error
    return faults


def _param(param: QueryParameter, own: Mapping[str, str], faults: Mapping[str, JidomemError]) -> dict[str, Any]:
    name, default = snake(param.name), param.default
    text = parse_literal(default).text if default else ""
    return {
        "name": name,
        "type": param.type,
        "input": _INPUTS.get(param.type, "text"),
        "choices": STATUSES if param.type == "status" else (),
        "required": default is None,
        "default": text,
        "value": own.get(name, ""),
        "fault": faults[name].to_dict() if name in faults else None,
    }


PLAYBOOK = PageKind("playbook", "playbook.html", show_playbook, menu="Playbook")
QUESTION = PageKind("playbook/{name}", "question.html", show_query, is_open=True)
