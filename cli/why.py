"""`jidomem why`: who recorded a memory, when and on what grounds, which rules judged it, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from jidomem.excerpt import cut
from jidomem.read.tables import plain
from jidomem.vocab import REDACTED, jido, local_name
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.fields import named_here
from jidomem_cli.tables import form_of, short, show_fields, show_json

_PLAIN = (
    "class", "status", "summary", "excerpt", "confidence", "valid_from", "valid_until", "expires_on",
)  # fmt: skip
_LABELS = {"excerpt": "text"}
_REASON = 200


@click.command(cls=Verb, formats=("table", "json", "md"), as_of=True, valid_at=True)
@click.argument("item", metavar="IRI")
@pass_door
def why(door: Door, item: str) -> None:
    """Explain the memory IRI: its date, who recorded it, when and in which session, its source, evidence and rules.

    And what it replaced, what replaced it, what was concluded from it, and what it disagrees with. An imported record
    has two dates: that of the decision as the record states it, and that of the session that imported it.

    Examples:
      jidomem why 1a2b3c4d
      jidomem why 1a2b3c4d --json
    """
    memory = door.read()
    found = memory.reader.why(memory.project, named_here(memory, item), as_of=door.as_of, valid_at=door.valid_at)
    if form_of(door) == "json":
        show_json(plain(found))
    else:
        dated = "decided" if memory.schema.is_a(jido(found["class"]), jido("Decision")) else "dated"
        show_fields(door, _lines(found, dated, door.verbose))


def _lines(found: dict[str, Any], dated: str, verbose: bool) -> Iterator[tuple[str, str]]:
    """Yield what a person wants to see, the important first; what is empty is left out."""
    yield "id", short(found["iri"])
    shown = {**found, "summary": found["summary"] or REDACTED}
    yield from ((_LABELS.get(name, name.replace("_", " ")), short(shown[name])) for name in _PLAIN if shown[name])
    yield dated, short(found["timestamp"]) if found["timestamp"] else "date unknown"
    recorded = (
        f"{short(found['recorded_at'])} by {short(found['asserted_by'])} in session {short(found['asserted_in'])}"
    )
    yield "recorded", recorded
    yield from (("source", _place(each)) for each in found["source"])
    if found["commit"]:
        yield "commit", f"{found['commit'][:12]} by {short(found['committer'])}"
    yield from (("rests on", _entry(each)) for each in found["evidence"])
    judged = found["judged_by"]
    rules = ", ".join(local_name(rule["rule"]) for rule in judged["rules"])
    many = f"{len(judged['rules'])} rules of ontology {judged['ontology']}"
    yield "validated by", f"{many} (judge: {judged['judge']}): {rules}" if verbose else f"{many} (-v names them)"
    for what in ("replaced", "replaced_by"):
        yield from ((each["how"].replace("_", " "), _entry(each)) for each in found[what])
    yield from (("revived by", _entry(each)) for each in found["revived_by"])
    if found["in_its_place"]:
        yield "in its place", short(found["in_its_place"])
    yield from (("concluded from it", _entry(each)) for each in found["derived"])
    if found["more_derived"]:
        yield "concluded from it", "and more: jidomem ask derived"
    yield from (
        ("shown in", f"{each['in']} {short(each['at'])} {each['agent'] or ''}") for each in found["shown"] or ()
    )
    yield from (
        ("disagrees with", f"{short(each['iri'])} ({each['kind']}) {each['summary']}") for each in found["conflicts"]
    )


def _place(source: dict[str, Any]) -> str:
    return source["path"] if source["line"] is None else f"{source['path']}:{source['line']}"


def _entry(each: dict[str, Any]) -> str:
    """Return one memory, or one piece of evidence, on one line."""
    if each.get("status") is None:
        return each.get("text") or f"<{each['iri']}>"
    reason = f" (reason: {cut(each['reason'], _REASON)[0]})" if each.get("reason") else ""
    return f"{short(each['iri'])} ({each['status']}) {each['summary'] or REDACTED}{reason}"
