"""The table of routes: what is served, and what /openapi.json says of it."""

from __future__ import annotations

from collections.abc import Iterator

from flask import Response

from jidomem.serve import (
    answers,
    briefings,
    checks,
    conversations,
    corrections,
    entries,
    feeds,
    graphs,
    health,
    intents,
    metrics,
    openapi,
    recalls,
    sessions,
    sparql,
    wire,
    working,
)
from jidomem.serve.site import Route, Site

_OK = {200: "The answer."}
_JSON = wire.JSON
_READY = {**_OK, 503: "An index is behind its journal, or a journal is damaged; the same, and which."}
_AT = {"min_position": "A version that has to be reached: read no older than this."}
_AS_OF = {"as_of": "A moment: answer with what was recorded by then."}
_MOMENTS = {**_AS_OF, "valid_at": "A moment of the world: leave out what does not hold then."}
_ASKING = {
    **_MOMENTS,
    "include_inactive": "Also what is superseded, withdrawn or only proposed.",
    "limit": "The most rows of one page.",
    "cursor": "Go on after the page that gave this cursor.",
    **_AT,
}
_SPARQL = {
    "query": "The query; without it, and anything else, the service describes itself.",
    "default-graph-uri": "A graph of the default graph, in place of FROM; may stand several times.",
    "named-graph-uri": "A graph that GRAPH may name, in place of FROM NAMED; may stand several times.",
    **dict.fromkeys(sparql.FORMAT, "The format of the answer (json, csv, turtle ...), beside Accept."),
    "timeout": "Seconds it may take; lowers the server's limit.",
    "as_of": "A moment: ask a memory replayed to then, of a stated size.",
    **_AT,
}
_GRAPHS = {**dict.fromkeys(sparql.GRAPHS, "Text"), "application/ld+json": "Linked"}
_RESULTS = {
    **dict.fromkeys(sparql.ROWS, "Text"),
    "application/sparql-results+json": "Object",
    _JSON: "Object",
    **_GRAPHS,
}
_KEPT = {201: "All were kept; the receipt, or one outcome each.", 200: "Nothing new, or not all, was kept; the same."}


def _described(site: Site) -> Response:
    """Return the description of the interface."""
    wire.arguments()
    return wire.answer(openapi.document(ROUTES))


def _sparql(path: str, of_what: str) -> tuple[Route, Route]:
    """Return the two ways to ask one dataset in SPARQL."""
    asked = {sparql.QUERY: "Text", sparql.FORM: "Query", sparql.UPDATE: "Text"}
    beside = {name: text for name, text in _SPARQL.items() if name != "query"}
    return (
        Route("GET", path, sparql.get, f"Ask {of_what} in SPARQL", _OK, _RESULTS, _SPARQL),
        Route("POST", path, sparql.post, f"Ask {of_what} in SPARQL", _OK, _RESULTS, beside, reads=asked),
    )


def _graph_store(path: str) -> Iterator[Route]:
    """Yield the one way to read a graph, and the ways to write one, which are refused."""
    takes = {
        "graph": "context, codebase, history, system or ontology, or the IRI of one of them.",
        "default": "All of them as one graph; it has no value.",
        **_AT,
    }
    yield Route("GET", path, graphs.get, "Give a whole graph", _OK, _GRAPHS, takes)
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        yield Route(
            method, path, graphs.refuse, "Refuse to write a graph: intents are how memory changes", {}, {}, writes=True
        )


ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/projects/{project}/intents",
        intents.submit,
        "Submit one intent, an array of them, or one a line",
        _KEPT,
        {_JSON: "Outcomes", intents.NDJSON: "Text"},
        {"dry_run": "Judge each as if it were alone, and keep nothing."},
        {"Idempotency-Key": "The idempotency_key of the one intent: a retry gets the first receipt."},
        {_JSON: "Intents", intents.NDJSON: "Text"},
        writes=True,
    ),
    Route("GET", "/projects", answers.projects, "List the projects", _OK, {_JSON: "Object"}),
    Route(
        "GET",
        "/projects/{project}",
        answers.project,
        "Say what a project holds",
        _OK,
        {_JSON: "Object"},
        {**_MOMENTS, **_AT},
    ),
    Route("GET", "/projects/{project}/queries", answers.playbook, "List the named queries", _OK, {_JSON: "Object"}),
    Route(
        "GET",
        "/projects/{project}/queries/{name}",
        answers.ask,
        "Ask a named query; .json, .csv or .tsv after its name choose the format",
        _OK,
        {_JSON: "Page", answers.CSV: "Text", answers.TSV: "Text"},
        _ASKING,
        is_open=True,
    ),
    Route(
        "GET",
        "/projects/{project}/memories/{id}",
        answers.memory,
        "Show one memory, by its IRI or a unique part of its id",
        _OK,
        {_JSON: "Object", answers.TURTLE: "Text", answers.LINKED: "Linked"},
        {**_MOMENTS, **_AT},
    ),
    Route(
        "GET",
        "/projects/{project}/memories/{id}/why",
        answers.why,
        "Explain one memory: who said it and when, its evidence and rules, what it replaced and what came of it",
        _OK,
        {_JSON: "Object"},
        {**_MOMENTS, **_AT},
    ),
    Route(
        "GET",
        "/projects/{project}/memories/{id}/history",
        answers.history,
        "Tell what went before one memory, and what replaced, withdrew or revived it",
        _OK,
        {_JSON: "Page"},
        {**_MOMENTS, **_AT},
    ),
    Route(
        "POST",
        "/projects/{project}/memories/{id}/revise",
        corrections.revise,
        "Correct one memory by a further one: supersede, invalidate, confirm, undo or set fields",
        {201: "It was kept; the receipt.", 200: "Nothing new was kept; the receipt."},
        {_JSON: "Receipt"},
        {"dry_run": "Judge it, and keep nothing."},
        {"Idempotency-Key": "A retry gets the first receipt."},
        {_JSON: "Correction"},
        writes=True,
    ),
    Route(
        "GET",
        "/projects/{project}/conflicts",
        answers.conflicts,
        "List what waits for a curator: what disagrees in force, proposals, and what is due, the most pressing first",
        _OK,
        {_JSON: "Page"},
        {"limit": "How many rows at most.", "cursor": "Go on after the page that gave it.", **_AT},
    ),
    Route(
        "GET",
        "/projects/{project}/check",
        checks.check,
        "Check the memory of a project, as jidomem check does: the report, whether anything is wrong or not",
        _OK,
        {_JSON: "Object", checks.SARIF: "Object", checks.XML: "Text"},
        {"format": "json, sarif or junit, whatever Accept says.", **_AT},
    ),
    Route(
        "GET",
        "/projects/{project}/journal",
        feeds.journal,
        "Follow what is committed: what each commit added, superseded and invalidated",
        _OK,
        {feeds.NDJSON: "Text", feeds.EVENTS: "Text"},
        {
            "after": "A version: all that is neither in it nor before it; everything, where it is left out.",
            "limit": "The most commits; a Link leads to the next ones.",
            "wait": "Seconds to wait for the first one, where there is none; not for events.",
            **_AT,
        },
        {"Last-Event-ID": "The version of the last event read: in the place of after."},
    ),
    Route(
        "GET",
        "/projects/{project}/briefing",
        briefings.briefing,
        "Tell what an agent should know first, in so many tokens",
        _OK,
        {_JSON: "Object", briefings.MARKDOWN: "Text"},
        {
            "agent": "Who is briefed: its tasks come first, and what is new to it.",
            "role": "Whose matters come first; else the role the agent is declared with.",
            "budget_tokens": "How long it may be; a token is counted for every three bytes.",
            "about": "A file that will be worked on; may stand several times.",
            **_MOMENTS,
            **_AT,
        },
    ),
    Route(
        "POST",
        "/projects/{project}/recall",
        recalls.recall,
        "Find memories by words, the best first",
        _OK,
        {_JSON: "Object", briefings.MARKDOWN: "Text"},
        _AT,
        reads={_JSON: "Recall"},
    ),
    Route(
        "POST",
        "/projects/{project}/entries",
        entries.write,
        "Keep an entry of an agent in its own words, or an array of them",
        {201: "All were kept; the entry, or one outcome each.", 200: "Not all were kept; one outcome each."},
        {_JSON: "EntryOutcomes"},
        reads={_JSON: "EntryWrites"},
        writes=True,
    ),
    Route(
        "POST",
        "/projects/{project}/entries/recall",
        entries.recall,
        "Recall entries of an agent: those that answer the query, the best first, and then the newest",
        _OK,
        {_JSON: "EntriesFound"},
        {**entries.NARROWED_BY, **_AS_OF, **_AT},
        reads={_JSON: "EntryRecall"},
    ),
    Route(
        "GET",
        "/projects/{project}/sessions",
        answers.sessions,
        "List the work sessions that have not ended",
        _OK,
        {_JSON: "Page"},
        {"all": "Those that have ended, too.", **_AT},
    ),
    Route(
        "POST",
        "/projects/{project}/sessions",
        sessions.start,
        "Open a work session",
        {201: "It is open; the receipt."},
        {_JSON: "Receipt"},
        reads={_JSON: "SessionStart"},
        writes=True,
    ),
    Route(
        "GET",
        "/projects/{project}/sessions/{id}",
        answers.session,
        "Show one work session",
        _OK,
        {_JSON: "Object"},
        _AT,
    ),
    Route(
        "PATCH",
        "/projects/{project}/sessions/{id}",
        sessions.move,
        "Give a work session a status, a phase, or both",
        {200: "It is moved; the receipt."},
        {_JSON: "Receipt"},
        reads={_JSON: "SessionMove"},
        writes=True,
    ),
    Route(
        "GET",
        "/projects/{project}/conversations/{session}",
        conversations.show,
        "Give the turns of the conversation of a work session, in their order",
        _OK,
        {_JSON: "Page"},
        {"last": "So many of the last turns; all unless given.", **_AS_OF, **_AT},
    ),
    Route(
        "POST",
        "/projects/{project}/conversations/{session}",
        conversations.record,
        "Record the next turn of a conversation: what was asked, answered, and done for it",
        {201: "It is recorded; the turn."},
        {_JSON: "Turn"},
        reads={_JSON: "TurnSaid"},
        writes=True,
    ),
    Route(
        "GET",
        "/projects/{project}/agents",
        working.listed,
        "List the agents that hold something in their working memory",
        _OK,
        {_JSON: "Page"},
    ),
    Route(
        "GET",
        "/projects/{project}/agents/{agent}/memory",
        working.show,
        "Show the working memory of an agent: its world, its tasks, its spaces",
        _OK,
        {_JSON: "WorkingMemory"},
    ),
    Route(
        "PATCH",
        "/projects/{project}/agents/{agent}/memory",
        working.change,
        "Change the working memory of an agent, by all of the changes or by none",
        {200: "The memory after them."},
        {_JSON: "WorkingMemory"},
        reads={_JSON: "WorkingChanges"},
        writes=True,
    ),
    Route(
        "DELETE",
        "/projects/{project}/agents/{agent}/memory",
        working.forget,
        "Forget what an agent holds",
        {200: "Whether it held anything."},
        {_JSON: "Object"},
        writes=True,
    ),
    *_sparql("/projects/{project}/sparql", "a project"),
    *_sparql("/sparql", "the default project"),
    *_graph_store("/projects/{project}/graphs"),
    Route("GET", "/healthz", health.alive, "Say that the server lives", _OK, {_JSON: "Object"}, public=True),
    Route("GET", "/readyz", health.ready, "Say what can be read, and up to which version", _READY, {_JSON: "Object"}),
    Route("GET", "/metrics", metrics.metrics, "Give figures to Prometheus", _OK, {"text/plain": "Text"}),
    Route("GET", "/openapi.json", _described, "Describe this interface", _OK, {_JSON: "Object"}),
)
