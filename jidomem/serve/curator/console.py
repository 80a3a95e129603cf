"""The console: SPARQL against the project, with our terms completed, and the limits told where they are met."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jidomem.serve.curator.asked import Asked
from jidomem.serve.curator.screen import Screen
from jidomem.terms import bare
from jidomem.vocab import BASE, JIDO

#: Rows of an answer that are shown; all of them can be had as CSV.
SHOWN = 1_000
_BEGINNING = """PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?summary ?recorded WHERE {
  ?item a jido:Fact ; jido:summary ?summary ; jido:recordedAt ?recorded .
} ORDER BY DESC(?recorded) LIMIT 20"""


def show(asked: Asked) -> Mapping[str, Any]:
    """Return where queries go, what they begin with, the terms there are, and the limits."""
    limits = asked.memory.settings.limits
    terms = sorted(term for term in map(bare, asked.memory.schema.declared) if term.startswith(JIDO))
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
    show,
    menu="Console",
    scripts=("yasgui.js", "console.js"),
    styles=("yasgui.css", "console.css"),
)
