"""`jidomem why`: who said a memory, when and on what grounds, which rules judged it, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from jidomem.excerpt import cut
from jidomem.read.tables import plain
from jidomem.vocab import REDACTED, local_name
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.fields import named_here
from jidomem_cli.tables import form_of, short, show_json, show_rows

_PLAIN = (
    "class", "status", "summary", "excerpt", "confidence", "valid_from", "valid_until", "expires_on",
)  # fmt: skip
_LABELS = {"excerpt": "text"}
_REASON = 200


@click.command(cls=Verb, formats=("table", "json", "md"), as_of=True, valid_at=True)
@click.argument("item", metavar="IRI")
@pass_door
def why(door: Door, item: str) -> None:
    """Explain the memory IRI: who said it, when and in which session, its evidence, the rules it was held to.

    And what it replaced, what replaced it, what was concluded from it, and what it disagrees with.

    Examples:
      jidomem why 1a2b3c4d
      jidomem why 1a2b3c4d --json
    """
    memory = door.read()
    found = memory.reader.why(memory.project, named_here(memory, item), as_of=door.as_of, valid_at=door.valid_at)
    if form_of(door) == "json":
        show_json(plain(found))
    else:
        show_rows(door, [{"what": what, "told": told} for what, told in _lines(found)], ("what", "told"))


def _lines(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a person wants to see, the important first; what is empty is left out."""
    yield "id", short(found["iri"])
    shown = {**found, "summary": found["summary"] or REDACTED}
    yield from ((_LABELS.get(name, name.replace("_", " ")), short(shown[name])) for name in _PLAIN if shown[name])
    dated = short(found["timestamp"]) if found["timestamp"] else "date unknown"
    yield "said by", f"{short(found['asserted_by'])} in {short(found['asserted_in'])}, {dated}"
    commit = f" in commit {found['commit'][:12]} by {short(found['committer'])}" if found["commit"] else ""
    yield "recorded", f"{short(found['recorded_at'])}{commit}"
    yield from (("rests on", _entry(each)) for each in found["evidence"])
    judged = found["judged_by"]
    rules = ", ".join(local_name(rule["rule"]) for rule in judged["rules"])
    yield "judged by", f"{judged['judge']}, ontology {judged['ontology']}: {rules}"
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


def _entry(each: dict[str, Any]) -> str:
    """Return one memory, or one piece of evidence, on one line."""
    if each.get("status") is None:
        return each.get("text") or f"<{each['iri']}>"
    reason = f": {cut(each['reason'], _REASON)[0]}" if each.get("reason") else ""
    return f"{short(each['iri'])} ({each['status']}) {each['summary'] or REDACTED}{reason}"
