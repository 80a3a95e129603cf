"""The table of routes: what is served, and what /openapi.json says of it."""

from __future__ import annotations

from collections.abc import Iterator

from flask import Response

from jidomem.serve import (
    agent_routes,
    answers,
    briefings,
    checks,
    corrections,
    feeds,
    graphs,
    health,
    intents,
    metrics,
    openapi,
    recalls,
    sparql,
    wire,
)
from jidomem.serve.said import AT, JSON, MOMENTS, OK
from jidomem.serve.site import Route, Site

_READY = {**OK, 503: "An index is behind its journal, or a journal is damaged; the same, and which."}
_ASKING = {
    **MOMENTS,
    "include_inactive": "Also memories that are not active: superseded, rejected, proposed, expired.",
    "status": "For lists of decisions: the decisions of this status alone, active or not.",
    "limit": "The most rows of one page.",
    "cursor": "Go on after the page that gave this cursor.",
    **AT,
}
_SPARQL = {
    "query": "The query; without it, and anything else, the service describes itself.",
    "default-graph-uri": "A graph of the default graph, in place of FROM; may stand several times.",
    "named-graph-uri": "A graph that GRAPH may name, in place of FROM NAMED; may stand several times.",
    **dict.fromkeys(sparql.FORMAT, "The format of the answer (json, csv, turtle ...), beside Accept."),
    "timeout": "Seconds it may take; lowers the server's limit.",
    "as_of": "A moment: ask a memory replayed to then, of a stated size.",
    **AT,
}
_GRAPHS = {**dict.fromkeys(sparql.GRAPHS, "Text"), "application/ld+json": "Linked"}
_RESULTS = {
    **dict.fromkeys(sparql.ROWS, "Text"),
    "application/sparql-results+json": "Object",
    JSON: "Object",
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
        Route("GET", path, sparql.get, f"Ask {of_what} in SPARQL", OK, _RESULTS, _SPARQL),
        Route("POST", path, sparql.post, f"Ask {of_what} in SPARQL", OK, _RESULTS, beside, reads=asked),
    )


def _graph_store(path: str) -> Iterator[Route]:
    """Yield the one way to read a graph, and the ways to write one, which are refused."""
    takes = {
        "graph": "context, codebase, history, system or ontology, or the IRI of one of them.",
        "default": "All of them as one graph; it has no value.",
        **AT,
    }
    yield Route("GET", path, graphs.get, "Give a whole graph", OK, _GRAPHS, takes)
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
        {JSON: "Outcomes", intents.NDJSON: "Text"},
        {"dry_run": "Judge each as if it were alone, and keep nothing."},
        {"Idempotency-Key": "The idempotency_key of the one intent: a retry gets the first receipt."},
        {JSON: "Intents", intents.NDJSON: "Text"},
        writes=True,
    ),
    Route("GET", "/projects", answers.projects, "List the projects", OK, {JSON: "Object"}),
    Route(
        "GET",
        "/projects/{project}",
        answers.project,
        "Say what a project holds",
        OK,
        {JSON: "Object"},
        {**MOMENTS, **AT},
    ),
    Route("GET", "/projects/{project}/queries", answers.playbook, "List the named queries", OK, {JSON: "Object"}),
    Route(
        "GET",
        "/projects/{project}/queries/{name}",
        answers.ask,
        "Ask a named query; .json, .csv or .tsv after its name choose the format",
        OK,
        {JSON: "Page", answers.CSV: "Text", answers.TSV: "Text"},
        _ASKING,
        is_open=True,
    ),
    Route(
        "GET",
        "/projects/{project}/memories/{id}",
        answers.memory,
        "Show one memory, by its IRI or a unique part of its id",
        OK,
        {JSON: "Object", answers.TURTLE: "Text", answers.LINKED: "Linked"},
        {**MOMENTS, **AT},
    ),
    Route(
        "GET",
        "/projects/{project}/memories/{id}/why",
        answers.why,
        "Explain one memory: who said it and when, its evidence and rules, what it replaced and what came of it",
        OK,
        {JSON: "Object"},
        {**MOMENTS, **AT},
    ),
    Route(
        "GET",
        "/projects/{project}/memories/{id}/history",
        answers.history,
        "Tell what went before one memory, and what replaced, withdrew or revived it",
        OK,
        {JSON: "Page"},
        {**MOMENTS, **AT},
    ),
    Route(
        "POST",
        "/projects/{project}/memories/{id}/revise",
        corrections.revise,
        "Correct one memory by a further one: supersede, invalidate, confirm, undo or set fields",
        {201: "It was kept; the receipt.", 200: "Nothing new was kept; the receipt."},
        {JSON: "Receipt"},
        {"dry_run": "Judge it, and keep nothing."},
        {"Idempotency-Key": "A retry gets the first receipt."},
        {JSON: "Correction"},
        writes=True,
    ),
    Route(
        "GET",
        "/projects/{project}/conflicts",
        answers.conflicts,
        "List what waits for a curator: what disagrees in force, proposals, and what is due, the most pressing first",
        OK,
        {JSON: "Page"},
        {"limit": "How many rows at most.", "cursor": "Go on after the page that gave it.", **AT},
    ),
    Route(
        "GET",
        "/projects/{project}/check",
        checks.check,
        "Check the memory of a project, as jidomem check does: the report, whether anything is wrong or not",
        OK,
        {JSON: "Object", checks.SARIF: "Object", checks.XML: "Text"},
        {"format": "json, sarif or junit, whatever Accept says.", **AT},
    ),
    Route(
        "GET",
        "/projects/{project}/journal",
        feeds.journal,
        "Follow what is committed: what each commit added, superseded and invalidated",
        OK,
        {feeds.NDJSON: "Text", feeds.EVENTS: "Text"},
        {
            "after": "A version: all that is neither in it nor before it; everything, where it is left out.",
            "limit": "The most commits; a Link leads to the next ones.",
            "wait": "Seconds to wait for the first one, where there is none; not for events.",
            **AT,
        },
        {"Last-Event-ID": "The version of the last event read: in the place of after."},
    ),
    Route(
        "GET",
        "/projects/{project}/briefing",
        briefings.briefing,
        "Tell what an agent should know first, in so many tokens",
        OK,
        {JSON: "Object", briefings.MARKDOWN: "Text"},
        {
            "agent": "Who is briefed: its tasks come first, and what is new to it.",
            "role": "Whose matters come first; else the role the agent is declared with.",
            "budget_tokens": "How long it may be; a token is counted for every three bytes.",
            "about": "A file that will be worked on; may stand several times.",
            "task": "The work to be done, in words: memories that match come early.",
            **MOMENTS,
            **AT,
        },
    ),
    Route(
        "GET",
        "/projects/{project}/governing",
        briefings.governing,
        "List the rules, decisions, errors and lessons that govern files, the nearest first",
        OK,
        {JSON: "Object"},
        {
            "file": "A path from the folder that holds the root; may stand several times.",
            "limit": "At most so many memories a file (default: 10); count says how many there are in all.",
            "include_inactive": "Also what is superseded, withdrawn or only proposed.",
            **MOMENTS,
            **AT,
        },
    ),
    Route(
        "POST",
        "/projects/{project}/recall",
        recalls.recall,
        "Find memories by words, the best first",
        OK,
        {JSON: "Object", briefings.MARKDOWN: "Text"},
        AT,
        reads={JSON: "Recall"},
    ),
    *agent_routes.ROUTES,
    *_sparql("/projects/{project}/sparql", "a project"),
    *_sparql("/sparql", "the default project"),
    *_graph_store("/projects/{project}/graphs"),
    Route("GET", "/healthz", health.alive, "Say that the server lives", OK, {JSON: "Object"}, public=True),
    Route(
        "GET",
        "/readyz",
        health.ready,
        "Say whether all can be read; with a token, where one is needed, what, up to which version, and what is not",
        _READY,
        {JSON: "Object"},
        public=True,
        tells_more=True,
    ),
    Route("GET", "/metrics", metrics.metrics, "Give figures to Prometheus", OK, {"text/plain": "Text"}),
    Route("GET", "/openapi.json", _described, "Describe this interface", OK, {JSON: "Object"}),
)
