"""`jidomem root`: commands on a whole memory root: its shared files, move, backup, restore and reindex."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jidomem import Jidomem
from jidomem.errors import Failed, InvalidRequest, NotFound
from jidomem.index import search_index
from jidomem.journal.journal import Stream
from jidomem.runtime import root_config, settings
from jidomem_cli.options import ROWS, App, Command, clean, pass_app
from jidomem_cli.output import show_json, show_result, show_rows
from jidomem_cli.status import snapshot_json, vectors_text

if TYPE_CHECKING:
    from jidomem.extras.servers.log import SharedLog
    from jidomem.extras.transfer.endpoints import Progress
    from jidomem.extras.transfer.move import MoveReport

#: The file that only acceptances write; pushing an older version would remove terms in use.
_ACCEPTED = "ontology/accepted.ttl"


@click.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@pass_app
def push(app: App, folder: Path) -> None:
    """Upload config.toml, baseline.toml, ontology/, shapes/ and queries/ of FOLDER to the shared root, all at once.

    All files are validated first; one that is never read, such as a query in no role's folder, is reported. Other files
    of the root stay: remove them with jidomem root remove-files.

    Examples:
      jidomem root push team/.jidomem --root postgresql://db/team
    """
    from jidomem.check.overlay import unread
    from jidomem.extras.servers import addresses

    folder = root_config.root_folder(folder)
    root_config.check_root(folder)
    _check_files(folder)
    given = addresses.of_folder(folder)
    given = {path: text for path, text in given.items() if not path.startswith("projects/")}
    idle = {problem.item: problem.message for problem in unread(folder) if problem.item in given}
    before: dict[str, str] = {}

    def pushed(files: addresses.Files) -> addresses.Files:
        before.clear()
        before.update(files)
        if _ACCEPTED in given and given[_ACCEPTED] != files.get(_ACCEPTED, given[_ACCEPTED]):
            hint = f"fetch it first: jidomem root pull {folder}; then push again"
            raise InvalidRequest(f"{_ACCEPTED} of the root differs: terms were accepted since", hint=hint)
        return {**files, **given}

    with _log(app, makes_root=True) as log:
        addresses.change(log, pushed)
    rows = [{"path": path, "is": "new" if path not in before else "changed"} for path, text in given.items()
            if before.get(path) != text]  # fmt: skip
    if app.json:
        show_json({"root": log.name, "put": rows, "files": sorted({**before, **given}), "unread": sorted(idle)})
        return
    for row in rows:
        click.echo(f"{row['is']:8} {row['path']}")
    for path, why in idle.items():
        app.info(f"warning: {path}: {why}")
    app.info(f"{log.name}: {len(rows)} of {len(given)} files uploaded; servers load them at their next check")


@click.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@pass_app
def pull(app: App, folder: Path) -> None:
    """Download the files of the shared root to FOLDER, replacing those of the same names.

    Examples:
      jidomem root pull team/.jidomem --root postgresql://db/team
    """
    from jidomem.extras.servers import addresses

    folder = root_config.root_folder(folder)
    root_config.check_root(folder)
    with _log(app) as log:
        files = addresses.load(log)
    for path, text in files.items():
        try:
            addresses.write(folder / path, text)
        except OSError as error:
            raise Failed(f"{error.filename}: {error.strerror}", hint="name another folder") from error
    show_result(
        app,
        {"root": log.name, "folder": str(folder), "files": sorted(files)},
        message=f"{len(files)} files of {log.name} downloaded to {folder}",
    )


@click.command("files", cls=Command, formats=ROWS)
@pass_app
def list_files(app: App) -> None:
    """List the files of the shared root with their sizes.

    Examples:
      jidomem root files --root postgresql://db/team
    """
    from jidomem.extras.servers import addresses

    with _log(app) as log:
        files = addresses.load(log)
    show_rows(app, [{"path": path, "bytes": len(text.encode())} for path, text in files.items()], ("path", "bytes"))


@click.command("remove-files", cls=Command)
@click.argument("paths", nargs=-1, required=True)
@pass_app
def remove(app: App, paths: tuple[str, ...]) -> None:
    """Remove files from the shared root, by the paths that jidomem root files shows.

    Examples:
      jidomem root remove-files shapes/old.ttl --root postgresql://db/team
    """
    from jidomem.extras.servers import addresses

    def without(files: addresses.Files) -> addresses.Files:
        if missing := [path for path in paths if path not in files]:
            raise NotFound(f"there is no {missing[0]}", hint=f"there is {', '.join(files) or 'none'}")
        return {path: text for path, text in files.items() if path not in paths}

    with _log(app) as log:
        addresses.change(log, without)
    show_result(
        app, {"root": log.name, "removed": sorted(paths)}, message=f"{', '.join(paths)} removed from {log.name}"
    )


@contextmanager
def _log(app: App, *, makes_root: bool = False) -> Iterator[SharedLog]:
    """Yield the log of the shared root; raises InvalidRequest for a folder, NotFound if there is none."""
    from jidomem.runtime.location import opened_log

    app.refuse_missing_address(makes_root=makes_root)
    opened = opened_log(app.root, app.wait)
    if opened is None:
        where, _ = settings.find(app.root)
        hint = "give its address: --root postgresql://HOST/DATABASE or --root s3://BUCKET/PREFIX"
        raise InvalidRequest(f"{where} is a folder, not a shared root", hint=hint)
    try:
        yield opened[0]
    finally:
        opened[0].close()


def _check_files(folder: Path) -> None:
    """Raise Failed unless the files that a root takes from *folder* are valid, on any server."""
    from jidomem.read.playbook import Playbook
    from jidomem.schema import ontology

    config = root_config.read(folder / settings.CONFIG, None)
    for key in root_config.OF_TRUST:
        if key in config:
            hint = f"remove it; set it for each server: jidomem serve --{key} ..."
            raise Failed(
                f"{folder / settings.CONFIG}: {key} is a setting of each server", hint=hint, code="invalid_config"
            )
    ontology.load([folder])
    Playbook([folder / "queries"])


T = TypeVar("T")

#: State of the working state after a move -> its description.
_STATES = {
    "brought": "copied",
    "none": "none",
    "kept": "not copied",
    "left": "not copied, nor are configuration and tokens",
}
_STATE_IN_USE = "the working state of the target has been used since the last copy, and is not replaced"
_OTHERS = "tokens are valid at the target only: issued there, or revoked at the source; see jidomem access token list"
_FILE = click.Path(path_type=Path)
_DAMAGED = 7


@click.command(cls=Command)
@click.argument("source")
@click.argument("target")
@pass_app
def migrate(app: App, source: str, target: str) -> None:
    """Copy the memory root SOURCE to TARGET, each a folder, postgresql://... or s3://... address.

    Copies commits byte for byte with their ids, configuration, working state and tokens; SOURCE is only read. TARGET
    has to be empty, or an earlier copy of SOURCE: run the command again to resume, or to copy new commits. Both ends
    are verified at the end. With --project it copies the commits of that project only, and TARGET may have others:
    configuration, overlay, working state and tokens of SOURCE are left there.

    Examples:
      jidomem root migrate .jidomem elsewhere
      jidomem root migrate .jidomem elsewhere --json
      jidomem --project p root migrate .jidomem postgresql://db/teams
    """
    from jidomem.extras.transfer import move

    moved = _with_progress(app, partial(move.migrate, source, target, project=app.project))
    _print_move(app, moved)
    if moved.grew:
        app.warn(f"{moved.source} was written to meanwhile: stop its writers, and run this again")


@click.command(cls=Command)
@click.argument("file", type=_FILE)
@pass_app
def backup(app: App, file: Path) -> None:
    """Write the whole memory root to FILE, while others read and write it.

    FILE is a tar archive: each stream as of one moment, working state, configuration and overlay, with the digest of
    every file in manifest.json. The same memory gives the same bytes. Tokens are left out.

    Examples:
      jidomem root backup memory.tar
    """
    from jidomem.extras.transfer import move

    moved, digest = _with_progress(app, partial(move.backup, _root(app), file))
    _print_move(app, moved, manifest=digest)


@click.command(cls=Command)
@click.argument("file", type=_FILE)
@pass_app
def restore(app: App, file: Path) -> None:
    """Restore FILE, which `jidomem root backup` wrote, to the root that --root names, which has to be empty.

    Every digest of FILE is verified before anything is written, and the restored root after it. If the restore is
    interrupted, run it again.

    Examples:
      jidomem root backup memory.tar
      jidomem --root restored root restore memory.tar
    """
    from jidomem.extras.transfer import move

    if app.root is None and not os.environ.get("JIDOMEM_ROOT"):
        command = f"jidomem --root FOLDER root restore {quote(str(file))}"
        hint = f"name an empty folder or an address: {command}; see: jidomem root restore --help"
        raise InvalidRequest("a restore needs the root to fill: give --root", hint=hint)
    _print_move(app, _with_progress(app, partial(move.restore, file, _root(app))))
    app.info("it lacks later redactions: compare it with an anchor: jidomem journal verify --anchor FILE")


def _refuse_project(app: App, what: str, other: str = "") -> None:
    """Raise InvalidRequest for --project, as *what* is of the whole root; *other* is what can be done instead."""
    if app.project is not None:
        raise InvalidRequest(f"{what} is of the whole root: --project does not apply", hint=f"leave it out{other}")


def _root(app: App) -> str:
    """Return the root of the command, a folder or an address; raises InvalidRequest for --project."""
    _refuse_project(
        app, "a backup", f"; one project: jidomem root migrate --project {quote(app.project or '')} SOURCE TARGET"
    )
    return settings.address_of(app.root) or str(settings.find(app.root)[0])


def _with_progress(app: App, work: Callable[[Progress], T]) -> T:
    """Return the result of *work*; a terminal shows the bytes processed."""
    with app.progress("bytes", 0, show_percent=False, show_eta=False) as bar:
        return work(lambda size: bar.update(size))


def _print_move(app: App, moved: MoveReport, **more: str) -> None:
    if app.json:
        show_json({**moved.to_dict(), **more})
    else:
        for each in moved.streams:
            named, extent = f"{each.stream.project}/{each.stream.name}", each.extent
            click.echo(f"{named}  {extent.commits:,} commits  {extent.size:,} bytes  {extent.digest[:16]}  verified")
        for name, value in more.items():
            click.echo(f"{name}  {value}")
    count = sum(each.extent.commits for each in moved.streams)
    new = sum(each.came for each in moved.streams)
    copied = f"{count:,} commits" + (f" of {len(moved.streams)} streams" if len(moved.streams) > 1 else "")
    copied += f", {new:,} of them new" if new != count else ""
    app.info(clean(f"{moved.source} -> {moved.target}: {copied}; working state: {_STATES[moved.state]}"))
    for path in moved.removed:
        app.info(clean(f"removed: {path}, an unencrypted copy that a killed backup or restore left"))
    if moved.state == "kept":
        app.info(_STATE_IN_USE)
    if moved.tokens:
        app.info(f"{moved.tokens} tokens are valid there, too")
    if moved.other_tokens:
        app.info(f"{moved.other_tokens} {_OTHERS}")


@click.command(cls=Command)
@pass_app
def reindex(app: App) -> int:
    """Rebuild the index of every project from the journal, while other processes read and write it.

    It is never required: an index follows its journal, and a damaged one is replaced. For a large journal a snapshot is
    written, and the lists for a very large one. The search index is rebuilt by the next recall, or at once, with all
    vectors, if there is an embedder. Exits with 7 if the journal is damaged: then no snapshot is written.

    Examples:
      jidomem root reindex
      jidomem root reindex --json
    """
    _refuse_project(app, "the index")
    memory = app.read(warn_of_damage=False)
    follower, start = memory.follower, time.perf_counter()
    with app.progress("reindex", follower.size()) as bar:
        marks = follower.rebuild(bar.update)
    put = None if memory.remote is None else {"address": memory.remote.shown, "graphs": len(memory.remote.rebuild())}
    damage = [error for stream in marks for error in memory.journal.damage(stream)]
    memory.texts.files.discard_all()
    search_index.delete_vectors(memory.settings.root)
    vectors = {name: _embedded(app, memory, name) for name in memory.projects() if memory.embedding}
    for name in [] if damage else memory.projects():
        memory.texts.read(Stream(name), lambda file: None)
    seconds = time.perf_counter() - start
    streams = [
        {"project": stream.project, "stream": stream.name, "version": str(mark.version), "commits": mark.commits}
        for stream, mark in marks.items()
    ]
    values = {
        "streams": streams,
        "triples": memory.index.triples_loaded,
        "seconds": round(seconds, 3),
        "index": "disk" if follower.on_disk else "memory",
        "snapshots": list(map(snapshot_json, follower.snapshots())),
        "remote": put,
        "vectors": vectors,
        "damage": [error.to_dict() for error in damage],
    }
    if app.json:
        show_json(values)
    else:
        for row in streams:
            click.echo(f"{row['project']}/{row['stream']}  {row['version']}  {row['commits']:,} commits")
        outcome = f"snapshot of {follower.snapshots()[0].size:,} bytes" if follower.snapshots() else "no snapshot"
        app.info(f"{values['triples']:,} triples in {seconds:.1f} s; {outcome}")
        if put is not None:
            app.info(f"{put['graphs']} graphs uploaded to {put['address']}")
        for name, status in vectors.items():
            app.info(f"{name}: {vectors_text(status)}")
        for error in damage:
            click.echo(clean(error.detail))
    return _DAMAGED if damage else 0


def _embedded(app: App, memory: Jidomem, project: str) -> dict[str, Any]:
    """Compute all vectors of *project*, with a progress bar; return their status, with the error if there is one."""
    embedding = memory.embedding
    assert embedding is not None
    with app.progress(f"vectors of {project}", 0) as bar:

        def show(waiting: int) -> None:
            bar.length = max(bar.length, waiting)
            bar.update(bar.length - waiting - bar.pos)

        embedding.try_for(project, progress=show)
    return embedding.status(project)
