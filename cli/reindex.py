"""`jidomem reindex`: what is derived from the journal, thrown away and built anew."""

from __future__ import annotations

import sys
import time
from typing import Any, TextIO

import click

from jidomem import Jidomem
from jidomem.index import vector_file
from jidomem_cli.door import Door, Verb, clean, pass_door
from jidomem_cli.status import told, vectors_told
from jidomem_cli.tables import show_json

DAMAGED = 7


@click.command(cls=Verb)
@pass_door
def reindex(door: Door) -> int:
    """Build the index of every project anew from the journal; other processes may go on meanwhile.

    It is never needed: an index follows its journal, and one that is damaged is replaced. Of a large journal a
    snapshot is kept for the processes to come, and the lists of a very large one; what recall searches is made anew
    when it is next asked, or at once, with all vectors, where there is an embedder. Exits with 7 where the journal is
    damaged: then no snapshot is kept.

    Examples:
      jidomem reindex
      jidomem reindex --json
    """
    memory = door.read(look=False)
    tail, start = memory.tail, time.perf_counter()
    shown = sys.stderr if not door.quiet and sys.stderr.isatty() else None
    if shown:
        with click.progressbar(length=tail.size(), label="reindex", file=shown) as bar:
            marks = tail.rebuild(bar.update)
    else:
        marks = tail.rebuild()
    put = None if memory.remote is None else {"address": memory.remote.shown, "graphs": len(memory.remote.rebuild())}
    damage = [error for stream in marks for error in memory.journal.damage(stream)]
    memory.texts.files.forget_all()
    vector_file.forget(memory.settings.root)
    vectors = {name: _embedded(memory, name, shown) for name in memory.projects() if memory.embedding}
    memory.reader.keep_lists([] if damage else memory.projects())
    seconds = time.perf_counter() - start
    streams = [
        {"project": stream.project, "stream": stream.name, "version": str(mark.version), "commits": mark.commits}
        for stream, mark in marks.items()
    ]
    found = {
        "streams": streams,
        "triples": memory.index.triples_taken,
        "seconds": round(seconds, 3),
        "index": "disk" if tail.on_disk else "memory",
        "snapshots": list(map(told, tail.snapshots())),
        "remote": put,
        "vectors": vectors,
        "damage": [error.to_dict() for error in damage],
    }
    if door.json:
        show_json(found)
    else:
        for row in streams:
            click.echo(f"{row['project']}/{row['stream']}  {row['version']}  {row['commits']:,} commits")
        kept = f"a snapshot of {tail.snapshots()[0].size:,} bytes is kept" if tail.snapshots() else "nothing is kept"
        door.say(f"{found['triples']:,} triples in {seconds:.1f} s; {kept}")
        if put is not None:
            door.say(f"{put['graphs']} graphs were put into {put['address']} anew")
        for name, told_of in vectors.items():
            door.say(f"{name}: {vectors_told(told_of)}")
        for error in damage:
            click.echo(clean(error.detail))
    return DAMAGED if damage else 0


def _embedded(memory: Jidomem, project: str, shown: TextIO | None) -> dict[str, Any]:
    """Make all vectors of *project*, shown as they are made; return what is told of them, and of why there are none."""
    embedding = memory.embedding
    assert embedding is not None
    if shown is None:
        embedding.try_for(project)
    else:
        with click.progressbar(length=embedding.waiting(project), label=f"vectors of {project}", file=shown) as bar:
            embedding.try_for(project, progress=lambda waiting: bar.update((bar.length or 0) - waiting - bar.pos))
    return embedding.told(project)
