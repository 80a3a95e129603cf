"""`jidomem pack`: many commit files become a few packs with the same commits."""

from __future__ import annotations

from shlex import quote

import click

from jidomem_cli.door import Door, Verb, clean, pass_door
from jidomem_cli.tables import show_json

DAMAGED = 7


@click.command(cls=Verb, writes=["wait"])
@pass_door
def pack(door: Door) -> int:
    """Seal the commit files of every project, or of the one --project names, into packs; the newest stays a file.

    Nothing is lost or changed: a pack holds the same commits. Each file is read anew, and each pack read back, before
    files go. A damaged file stays where it is and is told; the command then exits with 7. Where git does not track the
    root this is done whenever there are more than 2,000 files; where it does, commit the new packs together with the
    removed commit files (the command is printed), best on a branch that others then merge.

    Examples:
      jidomem pack
      jidomem pack --json
    """
    memory = door.read()
    sealed = [(stream, memory.journal.seal(stream)) for stream in door.streams(memory)]
    damage = [error for stream, _ in sealed for error in memory.journal.damage(stream)]
    if door.json:
        rows = [{"project": stream.project, "stream": stream.name, "sealed": count} for stream, count in sealed]
        show_json({"streams": rows, "damage": [error.to_dict() for error in damage]})
        return DAMAGED if damage else 0
    for stream, count in sealed:
        click.echo(f"{stream.project}/{stream.name}  {count} sealed")
    packed = [stream for stream, count in sealed if count and memory.journal.is_tracked]
    if packed:
        where = quote(str(memory.journal.folder))
        folders = " ".join(f"projects/{stream.project}/{stream.name}" for stream in packed)
        removed = sum(count for _, count in sealed)
        door.say(
            f"commit to git together: the new packs (pack-*.ttl) and {removed:,} removed commit files:\n"
            f"  (cd {where} && git add -A -- {folders} && git commit -qm 'Memory: pack commits' -- {folders})"
        )
    if packed and door.verbose:
        door.say("where two branches were both packed, merge them with: git merge -X find-renames=100% BRANCH")
    for error in damage:
        click.echo(clean(error.detail))
    return DAMAGED if damage else 0
