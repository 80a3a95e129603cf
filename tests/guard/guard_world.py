"""A repository with a memory, its guard, and the messages exchanged with clients."""

import json
import subprocess

from click.testing import CliRunner
from conftest import decision, intent

import jidomem
from jidomem.base.clock import now
from jidomem.guard.guard import Guard
from jidomem.runtime.location import init
from jidomem.runtime.settings import load
from jidomem_cli.main import cli


def repository_at(folder, monkeypatch):
    """A repository with a memory and a file; commands run in it."""
    (folder / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", folder], check=True)
    init(folder, "p")
    (folder / "src" / "a.py").write_text("x = 1\n")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    return folder


def convention(summary, *about, level="Strict", **checks):
    """Return a convention about places; *checks* are forbidsPattern, requiresPattern and checkCommand."""
    extra = [[f"jido:{name}", {"@value": text}] for name, text in checks.items()]
    return intent(type="convention", summary=summary, about=list(about), enforcement_level=level,
                  convention_name=summary, extra_triples=extra)  # fmt: skip


def choice(summary, *about, **fields):
    return decision(summary=summary, about=list(about), topic=summary, **fields)


def record(repository, *intents):
    """Record memories in the repository; return their IRIs."""
    with jidomem.open(repository / ".jidomem") as memory:
        return [memory.writer.submit_intent("p", each).iri for each in intents]


def guard_of(repository, may_run=lambda command: False):
    return Guard(load(repository / ".jidomem", "p"), now, may_run)


def run(*args, stdin=None):
    return CliRunner().invoke(cli, [str(arg) for arg in args], input=stdin)


def hooked(repository, tool, client="claude", event="PreToolUse", session="s-1", **arguments):
    """Return the answer of the guard to a client that calls it with the input of a tool."""
    request = {"hook_event_name": event, "session_id": session, "cwd": str(repository), "tool_name": tool,
            "tool_input": arguments, "transcript_path": "/tmp/t.jsonl", "permission_mode": "default"}  # fmt: skip
    result = run("guard", "--hook", client, stdin=json.dumps(request))
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout) if result.stdout else {}


def context_of(answer):
    return answer.get("hookSpecificOutput", {}).get("additionalContext", "")


def denied(answer):
    output = answer.get("hookSpecificOutput", {})
    assert output.get("permissionDecision") in (None, "deny")
    return output.get("permissionDecisionReason", "")
