"""`jidomem verify`: every byte of the journal, read again and held against its digests."""

from __future__ import annotations

import click

from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.tables import clean, show_json

DAMAGED = 7


@click.command(cls=Verb)
@pass_door
def verify(door: Door) -> int:
    """Verify every commit of every project, or of the one --project names; exits with 7 where there is damage.

    Examples:
      jidomem verify
      jidomem verify --json
    """
    memory = door.read()
    found = [(stream, memory.journal.verify(stream)) for stream in door.streams(memory)]
    damage = [error for _, errors in found for error in errors]
    if door.json:
        rows = [
            {"project": s.project, "stream": s.name, "version": str(memory.journal.head(s)), "damaged": len(errors)}
            for s, errors in found
        ]
        show_json({"streams": rows, "damage": [error.to_dict() for error in damage]})
    else:
        for stream, errors in found:
            word = f"{len(errors)} damaged" if errors else "sound"
            click.echo(f"{stream.project}/{stream.name}  {memory.journal.head(stream)}  {word}")
        for error in damage:
            click.echo(clean(error.detail))
    if damage:
        door.say(f"hint: {damage[0].hint}")
    return DAMAGED if damage else 0
