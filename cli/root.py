"""`jidomem root`: what a shared root says of itself, put there from a folder and fetched into one.

`jidomem root migrate`, `backup` and `restore`: a whole memory root, brought elsewhere and verified there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from jidomem.errors import Failed, InvalidRequest, NotFound
from jidomem.runtime import root_config, settings
from jidomem_cli.options import ROWS, Door, Verb, clean, pass_door
from jidomem_cli.output import show_json, show_rows

if TYPE_CHECKING:
    from jidomem.extras.servers.log import SharedLog
    from jidomem.extras.servers.transfer import Progress
    from jidomem.runtime.move import MoveReport

#: What only an acceptance writes; who pushes an older one would take terms back that are in use.
_ACCEPTED = "ontology/accepted.ttl"


@click.command(cls=Verb)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@pass_door
def push(door: Door, folder: Path) -> None:
    """Put config.toml, baseline.toml, ontology/, shapes/ and queries/ of FOLDER into the shared root, all at once.

    Each is looked through first, and one that nobody would read, such as a question that lies in no role's folder, is
    told. What the root has and FOLDER has not stays: take it out with root remove.

    Examples:
      jidomem root push team/.jidomem --root postgresql://db/team
    """
    from jidomem.check.overlay import unread
    from jidomem.extras.servers import addresses

    folder = _opened(folder)
    _look_through(folder)
    given = addresses.of_folder(folder)
    given = {path: text for path, text in given.items() if not path.startswith("projects/")}
    idle = {problem.item: problem.message for problem in unread(folder) if problem.item in given}
    before: dict[str, str] = {}

    def pushed(files: addresses.Files) -> addresses.Files:
        before.clear()
        before.update(files)
        if _ACCEPTED in given and given[_ACCEPTED] != files.get(_ACCEPTED, given[_ACCEPTED]):
            hint = f"fetch it first: jidomem root pull {folder}; then push again"
            raise InvalidRequest(f"{_ACCEPTED} is another one there: terms were accepted since", hint=hint)
        return {**files, **given}

    with _log(door) as log:
        addresses.change(log, pushed)
    rows = [{"path": path, "is": "new" if path not in before else "changed"} for path, text in given.items()
            if before.get(path) != text]  # fmt: skip
    if door.json:
        show_json({"root": log.name, "put": rows, "files": sorted({**before, **given}), "unread": sorted(idle)})
        return
    for row in rows:
        click.echo(f"{row['is']:8} {row['path']}")
    for path, why in idle.items():
        door.say(f"warning: {path}: {why}")
    door.say(f"{log.name}: {len(rows)} of {len(given)} files were put there; its servers have them at their next look")


@click.command(cls=Verb)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@pass_door
def pull(door: Door, folder: Path) -> None:
    """Write the files of the shared root into FOLDER, in the place of those of the same names.

    Examples:
      jidomem root pull team/.jidomem --root postgresql://db/team
    """
    from jidomem.extras.servers import addresses

    folder = _opened(folder)
    with _log(door) as log:
        files = addresses.load(log)
    for path, text in files.items():
        try:
            addresses.write(folder / path, text)
        except OSError as error:
            raise Failed(f"{error.filename}: {error.strerror}", hint="name another folder") from error
    if door.json:
        show_json({"root": log.name, "folder": str(folder), "files": sorted(files)})
    else:
        door.say(f"{len(files)} files of {log.name} are in {folder}")


@click.command("files", cls=Verb, formats=ROWS)
@pass_door
def list_files(door: Door) -> None:
    """List the files of the shared root, and how large they are.

    Examples:
      jidomem root files --root postgresql://db/team
    """
    from jidomem.extras.servers import addresses

    with _log(door) as log:
        files = addresses.load(log)
    show_rows(door, [{"path": path, "bytes": len(text.encode())} for path, text in files.items()], ("path", "bytes"))


@click.command("remove-files", cls=Verb)
@click.argument("paths", nargs=-1, required=True)
@pass_door
def remove(door: Door, paths: tuple[str, ...]) -> None:
    """Take files of the shared root out of it, by the paths that root list shows.

    Examples:
      jidomem root remove-files shapes/old.ttl --root postgresql://db/team
    """
    from jidomem.extras.servers import addresses

    def without(files: addresses.Files) -> addresses.Files:
        if missing := [path for path in paths if path not in files]:
            raise NotFound(f"there is no {missing[0]}", hint=f"there is {', '.join(files) or 'none'}")
        return {path: text for path, text in files.items() if path not in paths}

    with _log(door) as log:
        addresses.change(log, without)
    if door.json:
        show_json({"root": log.name, "removed": sorted(paths)})
    else:
        door.say(f"{', '.join(paths)} went out of {log.name}")


@contextmanager
def _log(door: Door) -> Iterator[SharedLog]:
    """Give the log of the shared root; raises InvalidRequest for one that is a folder."""
    from jidomem.runtime.location import opened_log

    opened = opened_log(door.root, door.wait)
    if opened is None:
        where, _ = settings.find(door.root)
        hint = "name one: --root postgresql://HOST/DATABASE or --root s3://BUCKET/PREFIX"
        raise InvalidRequest(f"{where} is a folder, whose files are simply there", hint=hint)
    try:
        yield opened[0]
    finally:
        opened[0].close()


def _opened(folder: Path) -> Path:
    """Return *folder*, absolute; raises Failed where a link leads out of it."""
    from jidomem.runtime.root_config import check_root, root_folder

    opened = root_folder(folder)
    check_root(opened)
    return opened


def _look_through(folder: Path) -> None:
    """Raise Failed unless what a root takes from *folder* can be used, wherever it is served."""
    from jidomem.read.playbook import Playbook
    from jidomem.schema import ontology

    said = root_config.read(folder / settings.CONFIG, settings.own_config())
    for key in root_config.OF_TRUST:
        if key in said:
            hint = f"take it out; each server is told: jidomem serve --{key} ..."
            raise Failed(f"{folder / settings.CONFIG}: {key} is not for all servers", hint=hint, code="invalid_config")
    ontology.load([folder])
    Playbook([folder / "queries"])


T = TypeVar("T")

_STATE_IN_USE = "the working state there was used since, and is left as it is"
_OTHERS = (
    "tokens are believed there alone: given out there, or taken back at the source since; see jidomem access token list"
)
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
      jidomem root migrate .jidomem elsewhere
      jidomem root migrate .jidomem elsewhere --json
    """
    from jidomem.runtime import move

    moved = _watched(door, partial(move.migrate, source, target))
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
      jidomem root backup memory.tar
    """
    from jidomem.runtime import move

    moved, digest = _watched(door, partial(move.backup, _root(door), file))
    _tell(door, moved, manifest=digest)


@click.command(cls=Verb)
@click.argument("file", type=_FILE)
@pass_door
def restore(door: Door, file: Path) -> None:
    """Make the memory root that --root names, which has to be empty, of FILE, which `jidomem root backup` wrote.

    All of FILE is read and held against its digests before anything is written; it is done once the root is read again
    and holds the same. Cut short, run it again.

    Examples:
      jidomem root backup memory.tar
      jidomem --root restored root restore memory.tar
    """
    from jidomem.runtime import move

    _tell(door, _watched(door, partial(move.restore, file, _root(door))))


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


def _tell(door: Door, moved: MoveReport, **more: str) -> None:
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
        door.say(_STATE_IN_USE)
    if moved.tokens:
        door.say(f"{moved.tokens} tokens are believed there, too")
    if moved.other_tokens:
        door.say(f"{moved.other_tokens} {_OTHERS}")
