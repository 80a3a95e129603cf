"""`jidomem status`: reports the root and its projects, and with `--doctor` diagnoses them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import jidomem
from jidomem import Jidomem
from jidomem.curation.review_cache import count
from jidomem.errors import InvalidRequest, JidomemError
from jidomem.index.snapshots import Snapshot
from jidomem.journal.branches import uncommitted
from jidomem.journal.journal import LOOSE, Stream
from jidomem.read.derived import count_entries, counts, pending
from jidomem.recall.nearness import differing_note
from jidomem.records.intent import Version
from jidomem.records.interfaces import Embedder, LanguageModel
from jidomem.records.named_query import judged_at
from jidomem.runtime import settings
from jidomem.runtime.logs import GuardLog
from jidomem.runtime.model_choice import config_error
from jidomem_cli.options import App, Command, clean, pass_app
from jidomem_cli.output import show_json

if TYPE_CHECKING:
    from jidomem.models.reranker import Reranker
    from jidomem.runtime.doctor import Diagnostic
    from jidomem.runtime.location import FolderPlace, SharedLocation

#: The most due memories that are counted; counting more would take longer than all the rest.
_COUNTED = 5_000
#: A count of the guard log -> its word in tables, if the name for programs is unclear to people.
_GUARD_WORDS = {"heeded": "followed"}
#: The warning of a git hook that an earlier version wrote, and its repair.
_OLD_HOOK = ("the git hook is that of another version of jidomem", "jidomem setup git")


@click.command(cls=Command, as_of=True, valid_at=True)
@click.option("--doctor", is_flag=True, help="Diagnose the installation instead; exit with 1 at a failure.")
@click.option("--full", is_flag=True, help="With --doctor: verify every byte of the journal.")
@pass_app
def status(app: App, doctor: bool, full: bool) -> int:
    """Report the root and why it is used, and the counts and last commit of each project.

    With --as-of, versions and counts are those of that moment.

    --doctor checks packages, root, journal, index, models and clients: each line is ok, warn or fail, with what to do.
    It changes nothing; a remote triple store gets a few probes, in a graph of their own.

    Examples:
      jidomem status
      jidomem status --json
      jidomem status --doctor --full
    """
    if doctor:
        if app.as_of is not None or app.valid_at is not None:
            raise InvalidRequest("--doctor diagnoses the present state", hint="leave out --as-of and --valid-at")
        return _diagnose(app, full)
    if full:
        raise InvalidRequest("--full is for --doctor", hint="add --doctor")
    _report(app)
    return 0


def _report(app: App) -> None:
    from jidomem.clients.setup import is_hook_current

    memory = app.read()
    if memory.tree is not None and is_hook_current(memory.settings.root.parent) is False:
        app.warn(": ".join(_OLD_HOOK))
    names = [app.project] if app.project is not None else memory.projects()
    projects = [_project(app, memory, name) for name in names]
    values = {
        "root": memory.settings.place,
        "found": memory.settings.found,
        "project": memory.project,
        "agent": memory.settings.agent,
        "session": memory.writer.session,
        "jidomem": jidomem.__version__,
        "ontology_version": memory.schema.version,
    }
    kind = "disk" if memory.follower.on_disk else "memory"
    snapshots = list(map(snapshot_json, memory.follower.snapshots()))
    reader, embedder = settings.models(memory.settings)
    models = {"model": _model(reader), "embedder": _model(embedder)}
    if (reranker := settings.reranker(memory.settings)) is not None:
        models["reranker"] = _model(reranker)
    store = memory.remote.shown if memory.remote else None
    if app.json:
        index = {"kind": kind, "snapshots": snapshots, "store": store}
        show_json({**values, **models, "index": index, "projects": projects})
        return
    for name, value in values.items():
        click.echo(f"{name:17} {clean(value)}")
    click.echo(f"{'index':17} {kind}")
    if store:
        click.echo(f"{'store':17} {clean(store)}")
    for snapshot in snapshots:
        click.echo(f"{'snapshot':17} {snapshot['name']}, {snapshot['bytes']:,} bytes, {snapshot['commits']:,} commits")
    for name, status_ in models.items():
        error = f"; it cannot be used: {status_['error']}" if status_["error"] else ""
        click.echo(f"{name:17} {clean(status_['name'] or 'none')}{clean(error)}")
    for project in projects:
        _print_project(project)


def _model(model: LanguageModel | Embedder | Reranker | None) -> dict[str, str | None]:
    """Return the name of a model, and the error if it cannot be called; nothing is sent to it."""
    why = config_error(model)
    return {"name": None if model is None else model.name, "error": None if why is None else why.detail}


def snapshot_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as plain values: its name and size, and the version of each graph in it."""
    versions = {graph: str(mark.version) for graph, mark in snapshot.marks.items()}
    commits = sum(mark.commits for mark in snapshot.marks.values())
    return {"name": snapshot.path.name, "bytes": snapshot.size, "commits": commits, "versions": versions}


def _project(app: App, memory: Jidomem, name: str) -> dict[str, Any]:
    version: Version = memory.catch_up(name) if app.as_of is None else memory.reader.version(name, app.as_of)
    streams = [stream for stream in memory.journal.streams() if stream.project == name]
    # first, as a list builds a damaged search file again, and says why
    pairs = memory.reader.ask("conflicts", project=name, as_of=app.as_of, valid_at=app.valid_at)
    by_kind = counts(memory.reader, name, as_of=app.as_of, valid_at=app.valid_at)
    at = judged_at(memory.sources.now(), app.as_of, app.valid_at)
    due = count(memory.reader, name, at, most=_COUNTED, as_of=app.as_of)
    in_repository = memory.tree is not None and memory.tree.root.name == settings.FOLDER
    return {
        "project": name,
        "version": str(version),
        "last_commit": version.recorded_at or None,
        "counts": by_kind,
        "history": count_entries(memory.reader, name, as_of=app.as_of),
        "waiting": pending(memory.reader, name, as_of=app.as_of),
        "conflicts": len({(row["a"], row["b"]) for row in pairs}),
        "due": due,
        "differing_pairs": memory.differing_pairs(name) if app.as_of is None else None,
        "due_or_more": due == _COUNTED,
        "commit_files": sum(memory.journal.loose(stream) for stream in streams),
        "uncommitted_files": sum(uncommitted(memory.journal.path(stream)) for stream in streams if in_repository),
        "damage": [error.to_dict() for error in memory.damage(name)],
        "guard": GuardLog(memory.read_log, name).counts() if memory.read_log is not None else None,
        "recall": memory.texts.status(Stream(name)),
        "vectors": memory.embedding and memory.embedding.status(name),
    }


def _print_project(project: dict[str, Any]) -> None:
    written = f"last written {project['last_commit']}" if project["last_commit"] else "no memories yet"
    click.echo(f"\n{project['project']}: version {project['version']}, {written}")
    for kind, states in project["counts"].items():
        if kind == "Alternative":
            click.echo(f"  {kind:24} {sum(states.values())} listed by decisions, also by ended ones")
        elif text := ", ".join(f"{count} {state}" for state, count in states.items() if state != "pending"):
            click.echo(f"  {kind:24} {text}")
    to_review = {kind: states["pending"] for kind, states in project["counts"].items() if "pending" in states}
    if to_review:
        click.echo(f"  {'pending review':24} " + ", ".join(f"{count} {kind}" for kind, count in to_review.items()))
    if any(project["history"].values()):
        text = ", ".join(_numbered(number, what) for what, number in project["history"].items())
        click.echo(f"  {'history':24} {text}")
    if project["recall"]:
        click.echo(f"  {'recall':24} {clean(_texts(project['recall'], project['version']))}")
    if project["vectors"]:
        click.echo(f"  {'vectors':24} {clean(vectors_text(project['vectors']))}")
    if project["guard"] and any(project["guard"].values()):
        click.echo(
            f"  {'guard':24} "
            + ", ".join(f"{count} {_GUARD_WORDS.get(what, what)}" for what, count in project["guard"].items())
        )
    if project["commit_files"] > LOOSE:
        click.echo(f"  {project['commit_files']} commit files: jidomem journal pack makes a few packs of them")
    if number := project["uncommitted_files"]:
        click.echo(f"  {_numbered(number, 'journal files')} not in git yet: git add .jidomem && git commit")
    due = f"{_COUNTED:,} or more" if project["due_or_more"] else project["due"]
    waits = {"conflicts": project["conflicts"], "proposals": project["waiting"], "due": due}
    if any(waits.values()):
        text = ", ".join(_numbered(number, what) for what, number in waits.items() if number)
        waiting = "waits" if [number for number in waits.values() if number] == [1] else "wait"
        click.echo(f"  {text} {waiting} for a curator: jidomem review")
    if project["differing_pairs"]:
        click.echo(f"  {differing_note(project['differing_pairs'], 'jidomem review')}")
    for damage in project["damage"]:
        click.echo(f"  damaged: {clean(damage['detail'])}")


def _texts(index: dict[str, Any], version: str) -> str:
    """Return the state of the search index, in words."""
    if index["amiss"]:
        return f"rebuilt by the next recall: {index['amiss']}"
    at = "up to date" if index["version"] == version else f"at version {index['version']}"
    texts, why = _numbered(index["memories"], "texts"), index["made_because"]
    return f"{texts}, {index['bytes']:,} bytes, {at}; built because {why}"


def vectors_text(vectors: dict[str, Any]) -> str:
    """Return the state of the vectors, in words."""
    failed = f"; the embedder failed: {vectors['error']}" if vectors["error"] else ""
    waiting = f"{_numbered(vectors['pending'], 'texts')} pending" if vectors["pending"] else "up to date"
    waiting += ": another server computes them now" if vectors.get("elsewhere") else ""
    waiting = "loaded by the next recall" if vectors["pending"] is None else waiting
    if vectors["passed_by"]:
        waiting += f", {vectors['passed_by']:,} skipped by the embedder"
    return f"{vectors['vectors']:,} by {vectors['model']}, {vectors['bytes']:,} bytes, {waiting}{failed}"


_ONE = {
    "entries": "entry", "turns": "turn", "conflicts": "conflict", "proposals": "proposal", "texts": "text",
    "journal files": "journal file",
}  # fmt: skip


def _numbered(number: int | str, what: str) -> str:
    noun = _ONE.get(what, what) if number == 1 else what
    return f"{number} {noun}" if isinstance(number, str) else f"{number:,} {noun}"


_FAILED = 1
_COLORS = {"ok": "green", "warn": "yellow", "fail": "red"}


def _diagnose(app: App, full: bool) -> int:
    diagnostics = list(_diagnostics(app, full))
    is_well = all(diagnostic.level != "fail" for diagnostic in diagnostics)
    if app.json:
        show_json({"ok": is_well, "checks": [diagnostic.to_dict() for diagnostic in diagnostics]})
    else:
        for diagnostic in diagnostics:
            level = f"{diagnostic.level:4}"
            level = click.style(level, fg=_COLORS[diagnostic.level]) if app.colors else level
            click.echo(f"{level}  {diagnostic.name:12} {clean(diagnostic.detail)}")
            if diagnostic.hint:
                click.echo(f"{'':19}do: {clean(diagnostic.hint)}")
    return 0 if is_well else _FAILED


def _diagnostics(app: App, full: bool) -> Iterator[Diagnostic]:
    from jidomem.runtime import doctor
    from jidomem.runtime.doctor import Diagnostic, run_diagnostic
    from jidomem.runtime.location import open_place

    yield from run_diagnostic("packages", doctor.programs)
    try:
        root, how = settings.find(app.root)
    except JidomemError as error:
        yield Diagnostic("root", "fail", error.detail, error.hint)
        return
    is_shared = settings.address_of(app.root) is not None
    if not is_shared and (absent := settings.absence(root, how)) is not None:
        yield Diagnostic("root", "fail", absent.detail, absent.hint)
    if not is_shared and not root.is_dir():
        yield Diagnostic("root", "fail", f"there is none at {root} ({how})", "make one in this folder: jidomem init")
        return
    try:
        app.refuse_missing_address()
        place = open_place(app.root, app.wait)
    except JidomemError as error:
        yield Diagnostic("root", "fail", error.detail, error.hint)
        return
    yield Diagnostic("root", "ok", f"{place.name} ({how})" + (f", its copy is {root}" if place.is_shared else ""))
    yield from _root_diagnostics(app, full, root, place)
    place.close()


def _root_diagnostics(app: App, full: bool, root: Path, place: FolderPlace | SharedLocation) -> Iterator[Diagnostic]:
    from jidomem.base.clock import now
    from jidomem.runtime import doctor
    from jidomem.runtime.doctor import run_diagnostic
    from jidomem.serve.listener import HOST, PORT

    journal = place.journal(app.wait)
    tokens_in = place.name if place.is_shared else str(settings.own_config())
    for name, run in (
        ("writes", lambda: doctor.writes(place)),
        ("permissions", lambda: doctor.permissions(root)),
        ("disk", lambda: doctor.disk(root)),
        ("file system", lambda: doctor.file_system(root)),
        ("config", lambda: doctor.configuration(root)),
        ("journal", lambda: doctor.journal(journal, full=full)),
        ("clock", lambda: doctor.clock(journal, now())),
        ("index", lambda: doctor.index(root, journal)),
        ("leftovers", lambda: doctor.stale_cache_files(root, journal)),
        ("cache", lambda: doctor.cache(root)),
        ("git", lambda: doctor.repository(root, journal)),
        ("clients", lambda: _clients(Path.cwd() if place.is_shared else root.parent)),
        ("tokens", lambda: doctor.tokens(place.keyring(), tokens_in)),
    ):
        yield from run_diagnostic(name, run)
    try:
        loaded = settings.load(app.root)
    except JidomemError:  # reported above
        return
    yield from run_diagnostic("models", lambda: doctor.models(loaded))
    yield from run_diagnostic("store", lambda: doctor.store(loaded, journal))
    yield from run_diagnostic("port", lambda: doctor.port(loaded.host or HOST, loaded.port or PORT))


def _clients(folder: Path) -> Iterator[Diagnostic]:
    """Yield the clients that are set up in *folder*, and whether the git hook is."""
    from jidomem.clients.setup import CLIENTS, is_hook_current
    from jidomem.runtime.doctor import Diagnostic

    named = [name for name, client in CLIENTS.items() if _mentions(folder / client.servers)]
    hooked = [name for name, client in CLIENTS.items() if client.hooks_in and _mentions(folder / client.hooks_in)]
    is_current = is_hook_current(folder)
    git = [] if is_current is None else ["git pre-commit"]
    if named:
        yield Diagnostic(
            "clients", "ok", f"set up for {', '.join(named)}; hooks of {', '.join([*hooked, *git]) or 'none'}"
        )
    else:
        yield Diagnostic("clients", "ok", f"set up for no client in {folder}: jidomem setup {next(iter(CLIENTS))}")
    if is_current is False:
        yield Diagnostic("hook", "warn", *_OLD_HOOK)


def _mentions(path: Path) -> bool:
    return path.is_file() and "jidomem" in path.read_text("utf-8", "replace")
