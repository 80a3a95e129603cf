"""A small repository with a memory, and functions that run the command line on it in this process."""

import json
import shutil
import tempfile
from dataclasses import replace
from functools import cache
from itertools import chain, count
from pathlib import Path

from click.testing import CliRunner
from conftest import decision, fixed_sources, intent

import jidomem
from jidomem.runtime import user_config
from jidomem.runtime.location import init
from jidomem.runtime.settings import own_config
from jidomem.runtime.user_config import ApiToken
from jidomem_cli.main import cli

OLD, TASK, FACT = "1a2b3c4d", "5e6f7a8b", "9c0d1e2f"
MEMORY = "https://jido.ai/memory/01900000-0000-7000-8000-0000"
#: Exports of the memory that `build` creates; each is identical in every test.
EXPORTS = {}
INTENTS = [intent(summary="CI runs on ARM", about=["ci"]), intent(summary="CI runs at night", about=["cron"])]


def run(*args, stdin=None):
    """Return the result of `jidomem ARGS`, with `stdout`, `stderr` and `exit_code`."""
    return CliRunner().invoke(cli, [str(arg) for arg in args], input=stdin)


def rows(*args):
    """Return the rows of a JSON answer."""
    result = run(*args, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["rows"]


def build(folder):
    """Create a memory with a decision, a task and a fact of known short ids, and the session `morning`."""
    root = init(folder, "p")
    with open(root / "config.toml", "a") as config:
        config.write('\n[agents.curator]\nrole = "Reviewer"\n')
    later = (f"01900000-0000-7000-8000-{n:012x}" for n in count(1))
    ids = chain((MEMORY.rsplit("/", 1)[1] + short for short in (OLD, TASK, FACT)), later)
    with jidomem.open(root, sources=replace(fixed_sources(), new_id=lambda: next(ids))) as memory:
        memory.writer.start_session("p", "morning", agent="ana")
        memory.writer.submit_intent("p", decision(type="decision", summary="Use Oxigraph 0.4", topic="store"))
        memory.writer.submit_intent("p", intent(type="task", summary="Ship the importer", assigned_to="ana"))
        memory.writer.submit_intent("p", intent(summary="the cache holds 2 GiB"))
        memory.writer.submit_intent("p", decision(summary="One journal a project"))
        memory.writer.submit_intent("p", intent(type="error", summary="Import loses dates", severity="high"))
        memory.writer.submit_intent("p", intent(type="lesson", summary="Pin the toolchain", evidence=["build log"]))
    return root


@cache
def built():
    """Return a temporary folder with what `build` creates, whose path is its `name`."""
    folder = tempfile.TemporaryDirectory()
    build(Path(folder.name))
    return folder


def create_repository(folder, monkeypatch):
    """Create the repository *folder*, make it the working directory, and return it; the agent is ana."""
    shutil.copytree(built().name, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")
    return folder


def write_example_files(folder):
    """Write the files that the examples name."""
    (folder / "intent.json").write_text(json.dumps(INTENTS[0], indent=2))
    (folder / "intents.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in INTENTS))
    (folder / "changes.json").write_text('[{"do": "tasks_add", "text": "ask about the index"}]')
    (folder / "query.rq").write_text("SELECT ?s WHERE { ?s a <https://jido.ai/ontology#Task> } ORDER BY ?s\n")
    for form, name in {"turtle": "memory.ttl", "jsonld": "memory.jsonld", "nquads": "memory.nq"}.items():
        if name not in EXPORTS:
            written = run("root", "export", "--format", form, "-o", folder / name, "--root", folder / ".jidomem")
            assert written.exit_code == 0
            EXPORTS[name] = (folder / name).read_bytes()
        (folder / name).write_bytes(EXPORTS[name])
    (folder / "secret.txt").write_text("Pin the toolchain\n")
    (folder / "people.ttl").write_text('@prefix x: <urn:x:> .\nx:ana a x:Person ; x:name "Ana" .\n')
    (folder / "people-shapes.ttl").write_text(
        "@prefix x: <urn:x:> .\n@prefix sh: <http://www.w3.org/ns/shacl#> .\n"
        "x:PersonHasName a sh:NodeShape ; sh:targetClass x:Person ; sh:property [ sh:path x:name ; sh:minCount 1 ] .\n"
    )
    (folder / ".beads").mkdir()
    (folder / ".beads" / "issues.jsonl").write_text('{"id": "bd-1", "title": "Ship it", "status": "open"}\n')
    token = ApiToken("1f2e3d4c" + 56 * "0", "ana", "agent", ("p",), str(folder / ".jidomem"), "2026-11-21T08:00:00Z")
    user_config.change(own_config(), lambda own: replace(own, tokens=(*own.tokens, token)))
    (folder / "memory.jsonl").write_text('{"type": "entity", "name": "Ana", "observations": ["reviews"]}\n')
    (folder / "CLAUDE.md").write_text("- Sign every commit\n")
    records = folder / "docs" / "adr"
    records.mkdir(parents=True)
    for number, name in ((1, "record-decisions"), (2, "use-a-journal")):
        words = name.replace("-", " ")
        (records / f"000{number}-{name}.md").write_text(
            f"# {number}. {words.capitalize()}\n\n## Status\n\nAccepted\n\n## Context\n\nWe forget.\n\n"
            f"## Decision\n\nWe {words}.\n\n## Consequences\n\nLess of it.\n"
        )
