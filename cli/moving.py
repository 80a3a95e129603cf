"""`jidomem migrate`, `backup` and `restore`: a whole memory root, brought elsewhere and verified there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from jidomem_cli.door import Door, Verb, clean, pass_door
from jidomem_cli.tables import show_json

if TYPE_CHECKING:
    from jidomem.runtime.moving import Moved
    from jidomem.shared.moving import Progress

T = TypeVar("T")

_KEPT = "the working state there was used since, and is left as it is"
_OTHERS = "tokens are believed there alone: given out there, or taken back at the source since; see jidomem token list"
_FILE = click.Path(path_type=Path)


@click.command(cls=Verb)
@click.argument("source")
@click.argument("target")
@pass_door
def migrate(door: Door, source: str, target: str) -> None:
    """Bring the memory root SOURCE to TARGET: a folder, postgresql://... or s3://... each.

    Commits, configuration, working state and tokens come along, each commit byte for byte and under its id; the source
    is only read. TARGET has to be empty, or hold nothing but what came from SOURCE: so it goes on where it was cut
    short, and run again it brings what was written since. It is done once both ends are read and hold the same.

    Examples:
      jidomem migrate .jidomem elsewhere
      jidomem migrate .jidomem elsewhere --json
    """
    from jidomem.runtime import moving

    moved = _watched(door, partial(moving.migrate, source, target))
    _tell(door, moved)
    if moved.grew:
        door.warn(f"{moved.source} was written to meanwhile: stop who writes there, and run this once more")


@click.command(cls=Verb)
@click.argument("file", type=_FILE)
@pass_door
def backup(door: Door, file: Path) -> None:
    """Keep the whole memory root in FILE, while others go on to read and write.

    It is a tar archive of a root as a folder, of every kind of root: each stream as it was at one moment, working
    state, configuration and overlay, with the digest of every file in manifest.json. The same memory gives the same
    bytes. Tokens are left out.

    Examples:
      jidomem backup memory.tar
    """
    from jidomem.runtime import moving

    moved, digest = _watched(door, partial(moving.backup, _root(door), file))
    _tell(door, moved, manifest=digest)


@click.command(cls=Verb)
@click.argument("file", type=_FILE)
@pass_door
def restore(door: Door, file: Path) -> None:
    """Make the memory root that --root names, which has to be empty, of FILE, which `jidomem backup` wrote.

    All of FILE is read and held against its digests before anything is written; it is done once the root is read again
    and holds the same. Cut short, run it again.

    Examples:
      jidomem backup memory.tar
      jidomem --root restored restore memory.tar
    """
    from jidomem.runtime import moving

    _tell(door, _watched(door, partial(moving.restore, file, _root(door))))


def _root(door: Door) -> str:
    """Return the root that is meant, a folder or an address."""
    from jidomem.runtime.settings import address_of, find

    return address_of(door.root) or str(find(door.root)[0])


def _watched(door: Door, work: Callable[[Progress], T]) -> T:
    """Return what *work* gives; on a terminal the bytes that came are shown as they come."""
    if door.quiet or not sys.stderr.isatty():
        return work(id)
    with click.progressbar(length=0, label="bytes", file=sys.stderr, show_percent=False, show_eta=False) as bar:
        return work(lambda size: bar.update(size))


def _tell(door: Door, moved: Moved, **more: str) -> None:
    if door.json:
        show_json({**moved.to_dict(), **more})
    else:
        for each in moved.streams:
            named, extent = f"{each.stream.project}/{each.stream.name}", each.extent
            click.echo(f"{named}  {extent.commits:,} commits  {extent.size:,} bytes  {extent.digest[:16]}  verified")
        for name, value in more.items():
            click.echo(f"{name}  {value}")
    came = sum(each.came for each in moved.streams)
    door.say(clean(f"{moved.source} -> {moved.target}: {came:,} commits came; working state: {moved.state}"))
    if moved.state == "kept":
        door.say(_KEPT)
    if moved.tokens:
        door.say(f"{moved.tokens} tokens are believed there, too")
    if moved.other_tokens:
        door.say(f"{moved.other_tokens} {_OTHERS}")
