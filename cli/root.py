"""`jidomem root`: what a shared root says of itself, put there from a folder and fetched into one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jidomem.errors import Failed, InvalidRequest, NotFound
from jidomem.runtime import config, settings
from jidomem_cli.door import ROWS, Door, Verb, Verbs, pass_door
from jidomem_cli.tables import show_json, show_rows

if TYPE_CHECKING:
    from jidomem.shared.log import SharedLog

#: What only an acceptance writes; who pushes an older one would take terms back that are in use.
_ACCEPTED = "ontology/accepted.ttl"


@click.group(cls=Verbs)
def root() -> None:
    """Put the configuration, terms, rules and questions of a shared root there, or fetch them.

    A folder has them as files, a shared root (postgresql://..., s3://...) beside its streams. Every open process
    takes a change in at its next look.

    Examples:
      jidomem root push team/.jidomem --root postgresql://db/team
    """


@root.command("push", cls=Verb)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@pass_door
def push(door: Door, folder: Path) -> None:
    """Put config.toml, baseline.toml, ontology/, shapes/ and queries/ of FOLDER into the shared root, all at once.

    Each is looked through first, and one that nobody would read, such as a question that lies in no role's folder, is
    told. What the root has and FOLDER has not stays: take it out with root remove.

    Examples:
      jidomem root push team/.jidomem --root postgresql://db/team
    """
    from jidomem.govern.overlay import unread
    from jidomem.shared import root_files

    folder = _opened(folder)
    _look_through(folder)
    given = root_files.of_folder(folder)
    given = {path: text for path, text in given.items() if not path.startswith("projects/")}
    idle = {problem.item: problem.message for problem in unread(folder) if problem.item in given}
    before: dict[str, str] = {}

    def pushed(files: root_files.Files) -> root_files.Files:
        before.clear()
        before.update(files)
        if _ACCEPTED in given and given[_ACCEPTED] != files.get(_ACCEPTED, given[_ACCEPTED]):
            hint = f"fetch it first: jidomem root pull {folder}; then push again"
            raise InvalidRequest(f"{_ACCEPTED} is another one there: terms were accepted since", hint=hint)
        return {**files, **given}

    with _log(door) as log:
        root_files.change(log, pushed)
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


@root.command("pull", cls=Verb)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@pass_door
def pull(door: Door, folder: Path) -> None:
    """Write the files of the shared root into FOLDER, in the place of those of the same names.

    Examples:
      jidomem root pull team/.jidomem --root postgresql://db/team
    """
    from jidomem.shared import root_files

    folder = _opened(folder)
    with _log(door) as log:
        files = root_files.load(log)
    for path, text in files.items():
        try:
            root_files.write(folder / path, text)
        except OSError as error:
            raise Failed(f"{error.filename}: {error.strerror}", hint="name another folder") from error
    if door.json:
        show_json({"root": log.name, "folder": str(folder), "files": sorted(files)})
    else:
        door.say(f"{len(files)} files of {log.name} are in {folder}")


@root.command("list", cls=Verb, formats=ROWS)
@pass_door
def list_files(door: Door) -> None:
    """List the files of the shared root, and how large they are.

    Examples:
      jidomem root list --root postgresql://db/team
    """
    from jidomem.shared import root_files

    with _log(door) as log:
        files = root_files.load(log)
    show_rows(door, [{"path": path, "bytes": len(text.encode())} for path, text in files.items()], ("path", "bytes"))


@root.command("remove", cls=Verb)
@click.argument("paths", nargs=-1, required=True)
@pass_door
def remove(door: Door, paths: tuple[str, ...]) -> None:
    """Take files of the shared root out of it, by the paths that root list shows.

    Examples:
      jidomem root remove shapes/old.ttl --root postgresql://db/team
    """
    from jidomem.shared import root_files

    def without(files: root_files.Files) -> root_files.Files:
        if missing := [path for path in paths if path not in files]:
            raise NotFound(f"there is no {missing[0]}", hint=f"there is {', '.join(files) or 'none'}")
        return {path: text for path, text in files.items() if path not in paths}

    with _log(door) as log:
        root_files.change(log, without)
    if door.json:
        show_json({"root": log.name, "removed": sorted(paths)})
    else:
        door.say(f"{', '.join(paths)} went out of {log.name}")


@contextmanager
def _log(door: Door) -> Iterator[SharedLog]:
    """Give the log of the shared root; raises InvalidRequest for one that is a folder."""
    from jidomem.runtime.shared_root import opened_log

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
    from jidomem.runtime.bounds import check_root, root_folder

    opened = root_folder(folder)
    check_root(opened)
    return opened


def _look_through(folder: Path) -> None:
    """Raise Failed unless what a root takes from *folder* can be used, wherever it is served."""
    from jidomem import schema
    from jidomem.read.playbook import Playbook

    said = config.read(folder / settings.CONFIG, settings.own_config())
    for key in config.OF_TRUST:
        if key in said:
            hint = f"take it out; each server is told: jidomem serve --{key} ..."
            raise Failed(f"{folder / settings.CONFIG}: {key} is not for all servers", hint=hint, code="invalid_config")
    schema.load([folder])
    Playbook([folder / "queries"])
