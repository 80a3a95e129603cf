"""`jidomem status`: what is where, how much of it, and whether it is sound."""

from __future__ import annotations

from typing import Any

import click

import jidomem
from jidomem import Jidomem
from jidomem.embedder import Embedder
from jidomem.govern.due import count
from jidomem.index.clones import Snapshot
from jidomem.journal.files import LOOSE, Stream
from jidomem.model import LanguageModel
from jidomem.read.counts import counts, kept, pending
from jidomem.runtime import settings
from jidomem.runtime.chosen import amiss
from jidomem.runtime.guard_log import GuardLog
from jidomem.version import Version
from jidomem_cli.door import Door, Verb, clean, pass_door
from jidomem_cli.tables import show_json

#: As far as what is due is counted: beyond, that takes longer than all the rest.
_COUNTED = 5_000


@click.command(cls=Verb, as_of=True, valid_at=True)
@pass_door
def status(door: Door) -> None:
    """Say which root is used and why, and for each project what it holds and when it was last written.

    With --as-of versions and counts are those of that moment.

    Examples:
      jidomem status
      jidomem status --json
    """
    memory = door.read()
    names = [door.project] if door.project is not None else memory.projects()
    projects = [_project(door, memory, name) for name in names]
    found = {
        "root": memory.settings.place,
        "found": memory.settings.found,
        "project": memory.project,
        "agent": memory.settings.agent,
        "session": memory.writer.session,
        "jidomem": jidomem.__version__,
        "ontology_version": memory.schema.version,
    }
    kind, snapshots = "disk" if memory.tail.on_disk else "memory", list(map(told, memory.tail.snapshots()))
    reader, embedder = settings.models(memory.settings)
    models = {"model": _model(reader), "embedder": _model(embedder)}
    store = memory.remote.shown if memory.remote else None
    if door.json:
        index = {"kind": kind, "snapshots": snapshots, "store": store}
        show_json({**found, **models, "index": index, "projects": projects})
        return
    for name, value in found.items():
        click.echo(f"{name:17} {clean(value)}")
    click.echo(f"{'index':17} {kind}")
    if store:
        click.echo(f"{'store':17} {clean(store)}")
    for snapshot in snapshots:
        click.echo(f"{'snapshot':17} {snapshot['name']}, {snapshot['bytes']:,} bytes, {snapshot['commits']:,} commits")
    for name, told_of in models.items():
        error = f"; it cannot be asked: {told_of['error']}" if told_of["error"] else ""
        click.echo(f"{name:17} {clean(told_of['name'] or 'none')}{clean(error)}")
    for project in projects:
        _tell(project)


def _model(model: LanguageModel | Embedder | None) -> dict[str, str | None]:
    """Return the name of a model, and why it cannot be asked; nothing is sent to it."""
    why = amiss(model)
    return {"name": None if model is None else model.name, "error": None if why is None else why.detail}


def told(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as plain values: its name and size, and the version of each graph in it."""
    versions = {graph: str(mark.version) for graph, mark in snapshot.marks.items()}
    commits = sum(mark.commits for mark in snapshot.marks.values())
    return {"name": snapshot.path.name, "bytes": snapshot.size, "commits": commits, "versions": versions}


def _project(door: Door, memory: Jidomem, name: str) -> dict[str, Any]:
    version: Version = memory.catch_up(name) if door.as_of is None else memory.reader.version(name, door.as_of)
    streams = [stream for stream in memory.journal.streams() if stream.project == name]
    held = counts(memory.reader, name, as_of=door.as_of, valid_at=door.valid_at)
    due = _due(door, memory, name)
    return {
        "project": name,
        "version": str(version),
        "last_commit": version.recorded_at or None,
        "counts": held,
        "history": kept(memory.reader, name, as_of=door.as_of),
        "waiting": pending(memory.reader, name, as_of=door.as_of),
        "conflicts": _conflicts(door, memory, name),
        "due": due,
        "due_or_more": due == _COUNTED,
        "commit_files": sum(memory.journal.loose(stream) for stream in streams),
        "damage": [error.to_dict() for error in memory.damage(name)],
        "guard": GuardLog(memory.read_log, name).counts() if memory.read_log is not None else None,
        "recall": memory.texts.told(Stream(name)),
        "vectors": memory.embedding and memory.embedding.told(name),
    }


def _conflicts(door: Door, memory: Jidomem, name: str) -> int:
    """Return how many active pairs disagree."""
    rows = memory.reader.ask("conflicts", project=name, as_of=door.as_of, valid_at=door.valid_at)
    return len({(row["a"], row["b"]) for row in rows})


def _due(door: Door, memory: Jidomem, name: str) -> int:
    """Return how many memories are to be looked at again, as far as they are counted."""
    at = memory.sources.now() if door.valid_at is None else door.valid_at
    return count(memory.reader, name, at, most=_COUNTED, as_of=door.as_of)


def _tell(project: dict[str, Any]) -> None:
    written = f"last written {project['last_commit']}" if project["last_commit"] else "nothing written yet"
    click.echo(f"\n{project['project']}: version {project['version']}, {written}")
    for kind, states in project["counts"].items():
        if told := ", ".join(f"{count} {state}" for state, count in states.items() if state != "pending"):
            click.echo(f"  {kind:24} {told}")
    to_review = {kind: states["pending"] for kind, states in project["counts"].items() if "pending" in states}
    if to_review:
        click.echo(f"  {'pending review':24} " + ", ".join(f"{count} {kind}" for kind, count in to_review.items()))
    if any(project["history"].values()):
        told = ", ".join(_numbered(number, what) for what, number in project["history"].items())
        click.echo(f"  {'history':24} {told}")
    if project["recall"]:
        click.echo(f"  {'recall':24} {clean(_texts(project['recall'], project['version']))}")
    if project["vectors"]:
        click.echo(f"  {'vectors':24} {clean(vectors_told(project['vectors']))}")
    if project["guard"] and any(project["guard"].values()):
        click.echo(f"  {'guard':24} " + ", ".join(f"{count} {what}" for what, count in project["guard"].items()))
    if project["commit_files"] > LOOSE:
        click.echo(f"  {project['commit_files']} commit files: jidomem pack makes a few packs of them")
    due = f"{_COUNTED:,} or more" if project["due_or_more"] else project["due"]
    waits = {"conflicts": project["conflicts"], "proposals": project["waiting"], "due": due}
    if any(waits.values()):
        told = ", ".join(_numbered(number, what) for what, number in waits.items() if number)
        waiting = "waits" if [number for number in waits.values() if number] == [1] else "wait"
        click.echo(f"  {told} {waiting} for a curator: jidomem review")
    for damage in project["damage"]:
        click.echo(f"  damaged: {clean(damage['detail'])}")


def _texts(told: dict[str, Any], version: str) -> str:
    """Return what is known of the texts that recall searches, in words."""
    if told["amiss"]:
        return f"is made anew when it is next asked: {told['amiss']}"
    at = "level" if told["version"] == version else f"at version {told['version']}"
    memories, why = _numbered(told["memories"], "memories"), told["made_because"]
    return f"{memories}, {told['bytes']:,} bytes, {at}; made because {why}"


def vectors_told(told: dict[str, Any]) -> str:
    """Return what is known of the vectors that recall compares, in words."""
    failed = f"; the embedder failed: {told['error']}" if told["error"] else ""
    waits = "text waits" if told["pending"] == 1 else "texts wait"
    waiting = f"{told['pending']:,} {waits} for one" if told["pending"] else "level"
    waiting += ": another server makes them now" if told.get("elsewhere") else ""
    waiting = "looked for when it is next asked" if told["pending"] is None else waiting
    if told["passed_by"]:
        waiting += f", {told['passed_by']:,} that it does not take"
    return f"{told['vectors']:,} by {told['model']}, {told['bytes']:,} bytes, {waiting}{failed}"


_ONE = {"entries": "entry", "turns": "turn", "conflicts": "conflict", "proposals": "proposal", "memories": "memory"}


def _numbered(number: int | str, what: str) -> str:
    """Return how many there are of something, in words that fit the number."""
    said = _ONE.get(what, what) if number == 1 else what
    return f"{number} {said}" if isinstance(number, str) else f"{number:,} {said}"
