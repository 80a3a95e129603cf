"""`jidomem replay --check`: the journal, replayed, is what is served, exported and kept."""

from __future__ import annotations

import click

from jidomem.errors import InvalidRequest
from jidomem.govern.replay import replay as replayed
from jidomem.runtime.root import INDEX
from jidomem_cli.door import Door, Verb, clean, pass_door
from jidomem_cli.tables import show_json

DAMAGED, DIFFERS = 7, 1


@click.command(cls=Verb)
@click.option("--check", is_flag=True, help="Compare what comes of it; there is nothing else to replay for.")
@pass_door
def replay(door: Door, check: bool) -> int:
    """Replay the journal into an index of its own, and compare that with what is served, exported and kept.

    It changes nothing. What is compared is every triple of every stream, the bytes of the export, and each snapshot of
    the index on disk, brought level. Exits with 1 where something differs, and says what first; with 7 where the
    journal is damaged.

    Examples:
      jidomem replay --check
      jidomem replay --check --json
    """
    if not check:
        raise InvalidRequest("a replay is for comparing: the journal itself is what is read", hint="add --check")
    memory = door.read(look=False)
    damage = [error for stream in memory.journal.streams() for error in memory.journal.verify(stream)]
    found = replayed(memory.tail, memory.settings.root / INDEX, memory.schema.triples, memory.schema.version)
    if door.json:
        streams = [
            {"project": stream.project, "stream": stream.name, "triples": held.triples, "digest": held.digest}
            for stream, held in found.streams.items()
        ]
        told = {"streams": streams, "exports": found.exports, "snapshots": found.snapshots}
        show_json({**told, "differences": list(found.differences), "damage": [error.to_dict() for error in damage]})
    else:
        for stream, held in found.streams.items():
            click.echo(f"{stream.project}/{stream.name}  {held.triples:,} triples  {held.digest[:12]}")
        for project, digest in found.exports.items():
            click.echo(f"{project}_memory.ttl  {digest[:12]}")
        for difference in found.differences:
            click.echo(clean(f"differs: {difference}"))
        for error in damage:
            click.echo(clean(error.detail))
    if found.differences:
        door.say("hint: the index is built anew from the journal with: jidomem reindex")
    else:
        door.say(f"the same is served, exported and kept in {found.snapshots} snapshots")
    return DAMAGED if damage else DIFFERS if found.differences else 0
