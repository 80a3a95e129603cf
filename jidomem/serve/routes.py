"""The table of routes: what is served, and what /openapi.json says of it."""

from __future__ import annotations

from jidomem.serve import answers, health, intents, sessions, sparql
from jidomem.serve.site import Route

ROUTES: tuple[Route, ...] = (
    Route("POST", "/projects/{project}/intents", intents.submit, "Submit intents", {}),
    Route("GET", "/projects", answers.projects, "List the projects", {}),
    Route("GET", "/projects/{project}", answers.project, "Describe a project", {}),
    Route("GET", "/projects/{project}/queries", answers.playbook, "List the named queries", {}),
    Route("GET", "/projects/{project}/queries/{name}", answers.ask, "Ask a named query", {}),
    Route("GET", "/projects/{project}/memories/{id}", answers.memory, "Show one memory", {}),
    Route("GET", "/projects/{project}/sessions", answers.sessions, "List the work sessions", {}),
    Route("POST", "/projects/{project}/sessions", sessions.start, "Open a work session", {}),
    Route("GET", "/projects/{project}/sessions/{id}", answers.session, "Show one work session", {}),
    Route("PATCH", "/projects/{project}/sessions/{id}", sessions.move, "Move a work session", {}),
    Route("GET", "/projects/{project}/sparql", sparql.get, "Ask in SPARQL", {}),
    Route("POST", "/projects/{project}/sparql", sparql.post, "Ask in SPARQL", {}),
    Route("GET", "/sparql", sparql.get, "Ask the default project in SPARQL", {}),
    Route("POST", "/sparql", sparql.post, "Ask the default project in SPARQL", {}),
    Route("GET", "/healthz", health.alive, "Say that the server lives", {}),
    Route("GET", "/readyz", health.ready, "Say what can be read", {}),
)
