"""`jidomem verify`: every byte of the journal, read again and held against its digests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from jidomem import Jidomem
from jidomem.errors import BranchChanged, InvalidRequest, JournalDamaged
from jidomem.govern.branches import compare_with_git
from jidomem.govern.integrity import Finding, anchor, anchored, findings
from jidomem.journal.files import Stream
from jidomem.journal.horizon import beyond
from jidomem.version import SHORT
from jidomem_cli.door import Door, Verb, clean, pass_door
from jidomem_cli.fields import own_words
from jidomem_cli.tables import show_json

DAMAGED = 7
EXPOSED = 1
UNSEEN = (
    "a journal whose last commits were taken away is shorter, and sound: only --anchor with heads that were written"
    " down elsewhere shows it; who wrote a commit that follows the rules is not shown either"
)


@click.command(cls=Verb, writes=("agent", "wait"))
@click.option("--anchor", "heads", metavar="VERSION|FILE", help="Heads written down before, which must be there.")
@click.option("--quarantine", metavar="COMMIT", help="Set this damage aside, by commit or file; writing goes on.")
@click.option("--reason", metavar="TEXT", help="Why it is set aside.", callback=own_words)
@pass_door
def verify(door: Door, heads: str | None, quarantine: str | None, reason: str | None) -> int:
    """Verify every commit of every project, or of the one --project names.

    It finds any commit that was edited, taken out, moved or put in between others, in files and packs, and every copy
    that shows what was redacted. That the last commits were taken away it finds where git has them at HEAD; else keep
    what --json prints, or the version `jidomem status` shows, elsewhere, and hold the journal to it with --anchor.
    Exits with 7 where there is damage or a commit is missing, with 1 where something redacted is shown.

    Examples:
      jidomem verify
      jidomem verify --json | tee anchor.json
      jidomem verify --anchor anchor.json
    """
    memory = door.read()
    if quarantine is not None:
        return _set_aside(door, memory, quarantine, reason)
    if reason is not None:
        raise InvalidRequest("--reason says why something is set aside", hint="add --quarantine COMMIT")
    streams, journal = door.streams(memory), memory.journal
    wanted = anchor(heads, Stream(memory.project)) if heads is not None else {}
    damage = [(stream, journal.verify(stream)) for stream in streams]
    found = [finding for stream in streams for finding in findings(journal, stream, memory.sources.now())]
    found += compare_with_git(journal, dict(damage), door.project)
    found += [each for stream, ids in wanted.items() for each in anchored(journal, stream, ids)]
    _show(door, memory, damage, found, anchored_to=bool(wanted))
    if any(errors for _, errors in damage) or any(each.kind in ("missing", "unrecorded", "stray") for each in found):
        return DAMAGED
    return EXPOSED if any(each.severity == "violation" for each in found) else 0


def _show(
    door: Door,
    memory: Jidomem,
    damage: Sequence[tuple[Stream, tuple[JournalDamaged, ...]]],
    found: Sequence[Finding],
    *,
    anchored_to: bool,
) -> None:
    errors = [error for _, errors in damage for error in errors]
    if door.json:
        rows = [_row(memory, stream, len(errors)) for stream, errors in damage]
        unseen = None if anchored_to else UNSEEN
        told = [error.to_dict() for error in errors]
        show_json({"streams": rows, "damage": told, "findings": [f.to_dict() for f in found], "not_detected": unseen})
    else:
        for stream, of in damage:
            lost = [each for each in found if each.kind == "missing" and _is_of(memory, stream, each)]
            count = sum(len(each.commits) or 1 for each in lost)
            moved = {commit for error in of if isinstance(error, BranchChanged) for commit in error.commits}
            broken = sum(not isinstance(error, BranchChanged) for error in of)
            counts = ((broken, "damaged"), (len(moved), "of another branch"), (count, "missing"))
            words = [f"{number} {what}" for number, what in counts if number]
            word = ", ".join(words) or "sound"
            click.echo(f"{stream.project}/{stream.name}  {memory.journal.head(stream)}  {word}")
        for error in errors:
            if not isinstance(error, BranchChanged):  # that is among the findings
                click.echo(clean(error.detail))
        for each in found:
            where = f"{each.path}{f':{each.line}' if each.line else ''}: " if each.path else ""
            click.echo(clean(f"{each.severity}: {where}{each.detail}"))
    for hint in dict.fromkeys([*(error.hint for error in errors), *(each.hint for each in found)]):
        door.say(f"hint: {hint}")
    if door.verbose and not anchored_to:
        door.say(f"not detected: {UNSEEN}")


def _is_of(memory: Jidomem, stream: Stream, found: Finding) -> bool:
    folder = str(memory.journal.path(stream))
    return found.path == folder or (found.path or "").startswith(f"{folder}/")


def _row(memory: Jidomem, stream: Stream, damaged: int) -> dict[str, Any]:
    version = memory.journal.head(stream)
    return {
        "project": stream.project,
        "stream": stream.name,
        "version": str(version),
        "heads": list(version.ids),
        "damaged": damaged,
    }


def _set_aside(door: Door, memory: Jidomem, which: str, reason: str | None) -> int:
    """Set what is damaged aside in the stream that has it; raises NotFound where none has."""
    if not reason or not reason.strip():
        raise InvalidRequest("what is set aside is recorded with the reason", hint='add --reason "what happened"')
    now, streams = memory.sources.now(), [s for s in memory.journal.streams() if s.project == memory.project]
    late = {s: beyond(memory.journal.seen(s), now).values() for s in streams}
    damaged = [s for s in streams if memory.journal.verify(s) or late[s]]
    stream = next(
        (s for s in damaged if _has([*memory.journal.damage(s), *late[s]], which)),
        (damaged or [Stream(memory.project)])[0],
    )
    name = memory.keeper.set_aside(stream, which, agent=memory.writer.agent, reason=reason)
    left = memory.journal.damage(stream)
    if door.json:
        show_json({"project": stream.project, "stream": stream.name, "file": name, "damaged": len(left)})
    else:
        click.echo(name)
    door.say(f"set aside in {memory.journal.path(stream)}; {len(left)} damaged are left")
    return DAMAGED if left else 0


def _has(found: Sequence[JournalDamaged], which: str) -> bool:
    """Return whether the damage *found* is about the commit or file *which*."""
    return any(which in f"{each.path} {each.detail}" or (each.commit or "-")[:SHORT] in which for each in found)
