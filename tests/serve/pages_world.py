"""A project with two thousand memories over three weeks, some of which wait for a curator, to be served to browsers."""

from datetime import UTC, datetime, timedelta
from itertools import count

from conftest import decision, intent

import jidomem
from bench import generate
from jidomem.clock import Sources

MEMORIES = 2_000
START, STEP = datetime(2026, 11, 1, 8, 0, tzinfo=UTC), timedelta(minutes=15)
#: What an agent may write that must not act in a page.
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    " {{ 7 * 7 }} javascript:alert(1) \u202edesrever\u202c \U0001f469\u200d\U0001f4bb שלום"
)
LONG = "word " * 50_000


def fill(root):
    """Keep in *root* what every run looks at; return the IRIs of some of it by name."""
    moments, ids = count(), count(1)
    sources = Sources(
        now=lambda: START + next(moments) * STEP, new_id=lambda: f"01900000-0000-7000-8000-{next(ids):012x}"
    )
    root.mkdir()
    (root / "config.toml").write_text('project = "p"\n[conflicts]\ndecision = "warn"\n')
    with jidomem.open(root, sources=sources) as memory:
        memory.writer.submit_many("p", [*generate.intents(MEMORIES, project="p")])
        told = {
            "use Oxigraph": decision(summary="Use Oxigraph for the index", topic="the store of the pages"),
            "hostile": intent(summary=HOSTILE, rationale=HOSTILE, about=["javascript:alert(1)"], evidence=[HOSTILE]),
            "long": intent(summary="A long one", detailed_explanation=LONG),
            "old": intent(summary="The certificate holds", expires_on="2026-11-02T00:00:00Z"),
        }
        pairs = {
            f"{side} {number}": decision(summary=f"Use {store} for part {number}", topic=f"matter {number} of review")
            for number in range(6)
            for side, store in (("left", "SQLite"), ("right", "PostgreSQL"))
        }
        known = {name: memory.writer.submit_intent("p", values).iri for name, values in (told | pairs).items()}
        waits = [intent(summary=f"Proposal {number}") for number in range(4)]
        for number, outcome in enumerate(memory.writer.submit_many("p", waits, propose=True)):
            known[f"proposal {number}"] = outcome.iri
        return known
