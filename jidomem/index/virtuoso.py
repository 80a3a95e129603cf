"""Which questions Virtuoso 7 answers as others do, and how it is asked them; all else it is fed, and not asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from jidomem.index.endpoint import Endpoint, Refused
from jidomem.terms import Term
from jidomem.vocab import jido

#: Lines of one request: of 2,000 and more its compiler gives up.
LINES = 1_000
#: The shipped questions that it answers as the engine of this process does; a test asks both of every question.
PROVEN = frozenset((
    "active-decisions", "agent-rules", "commits", "conflicts", "conventions",
    "dangling-supersessions", "decision-log", "decisions", "decisions-without-rationale", "disagreements",
    "elixir-modules", "errors-of-module", "evidence-contradictions", "facts", "facts-about",
    "items-without-confidence", "items-without-project", "lessons", "open-errors", "open-tasks", "patterns",
    "policy-changes", "proposals", "recent-decisions", "recent-lessons", "related", "risks",
    "severe-errors", "stale", "strict-conventions", "supersessions", "tasks-of-agent", "tasks-without-assignee",
    "unexplained-root-causes", "verified-conventions",
))  # fmt: skip
#: What it answers wrongly where OPTIONAL and NOT EXISTS stand beside it: a class, or what is at or below one.
_BELOW = re.compile(r"(?:\ba/|(\?\w+) )rdfs:subClassOf\* jido:(\w+)")


def spelled(text: str, below: Callable[[Term], Iterable[Term]]) -> str:
    """Return *text*, one of the shipped questions, with each class written out as those *below* it.

    >>> spelled("{ ?t a/rdfs:subClassOf* jido:Task ; ?p ?o }", lambda name: ["<urn:A>", "<urn:B>"])
    '{ ?t a ?below1 ; ?p ?o  FILTER(?below1 IN (<urn:A>, <urn:B>)) }'
    """
    text = "\n".join(row for row in text.split("\n") if not row.startswith("#"))
    count = 0
    while found := _BELOW.search(text):
        count += found[1] is None
        variable, place = found[1] or f"?below{count}", "" if found[1] else f"a ?below{count}"
        classes, end = ", ".join(sorted(below(jido(found[2])))), _end(text, found.end())
        text = f"{text[: found.start()]}{place}{text[found.end() : end]} FILTER({variable} IN ({classes})) {text[end:]}"
    return text


def _end(text: str, at: int) -> int:
    """Return where the group ends in which a place is; no text of the shipped questions has a brace."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth < 0:
            return place
    return len(text)


def speaks(query: Endpoint) -> bool:
    """Return whether a store is Virtuoso: it alone knows a function of its own."""
    try:
        query.ask("SELECT (bif:sys_stat('st_dbms_ver') AS ?version) {}", "application/sparql-results+json")
    except Refused:
        return False
    return True
