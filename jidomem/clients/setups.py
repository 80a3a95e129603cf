"""What each client reads: in which files a memory is named to it, and which of its hooks call for one."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from jidomem.clients import json_text, toml_text
from jidomem.errors import Failed

SERVER = "jidomem"
#: What a hook of ours calls, whatever the command is called there.
_OURS = re.compile(r"\bjidomem\b.*\s(?:briefing|guard)\s+--hook\b")
_EDITS = "Edit|Write|MultiEdit|NotebookEdit"
_SECONDS = 10  # after which a client goes on without


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook of a client: at which event, of which tools or beginnings, what `jidomem` is called with."""

    event: str
    words: str
    matcher: str | None


@dataclass(frozen=True, slots=True)
class Client:
    """A program agents run in, and where it reads what; paths are relative to the folder it is opened in.

    `agent` is the name it goes by over MCP. `grouped` hooks stand in groups below a matcher. `rooted` and `extra` say
    where the memory is, to one that starts servers elsewhere. `user` is where the same is read for every folder.
    """

    title: str
    agent: str
    servers: str
    key: str
    hooks_in: str | None = None
    hooks: tuple[Hook, ...] = ()
    grouped: bool = True
    user: Mapping[str, str] | None = None
    rooted: tuple[str, ...] = ()
    extra: Mapping[str, Any] | None = None
    note: str | None = None


_BEGIN = "startup|clear|compact"
CLIENTS: Mapping[str, Client] = {
    "claude": Client(
        "Claude Code",
        "claude-code",
        ".mcp.json",
        "mcpServers",
        ".claude/settings.json",
        (Hook("SessionStart", "briefing", _BEGIN), Hook("PreToolUse", "guard", _EDITS)),
        user={".mcp.json": ".claude.json", ".claude/settings.json": ".claude/settings.json"},
        note="Claude Code asks once whether it may start the server of this folder",
    ),
    "cursor": Client(
        "Cursor",
        "cursor-vscode",
        ".cursor/mcp.json",
        "mcpServers",
        ".cursor/hooks.json",
        (
            Hook("sessionStart", "briefing", None),
            Hook("preToolUse", "guard", "Write"),
            Hook("postToolUse", "guard", "Read|Write"),
        ),
        grouped=False,
        rooted=("--root", "${workspaceFolder}/.jidomem"),
        note="Cursor starts the server once it is switched on in its settings, under MCP",
    ),
    "codex": Client(
        "Codex",
        "codex-mcp-client",
        ".codex/config.toml",
        "mcp_servers",
        ".codex/hooks.json",
        (Hook("SessionStart", "briefing", _BEGIN), Hook("PreToolUse", "guard", "apply_patch|Edit|Write")),
        user={".codex/config.toml": "config.toml", ".codex/hooks.json": "hooks.json"},
        note="Codex reads this in a folder it trusts, and runs the hooks once they are trusted with /hooks",
    ),
    "vscode": Client(
        "VS Code",
        "visual-studio-code",
        ".vscode/mcp.json",
        "servers",
        extra={"cwd": "${workspaceFolder}"},
        note="VS Code asks once whether it trusts the server; for its edits: jidomem setup git",
    ),
}


@dataclass(frozen=True, slots=True)
class Change:
    """One file as it is and as it is to be, None where there is none."""

    path: Path
    before: str | None
    after: str | None

    @property
    def is_due(self) -> bool:
        """Return whether the file is not as it is to be."""
        return self.before != self.after


def changes(client: Client, place: Callable[[str], Path], command: str, *, removed: bool = False) -> list[Change]:
    """Return each file of *client* that names the memory, started by *command*, or that names it no more.

    *place* says where a file of the client is. Raises Failed `invalid_config`, with file and line, for one that
    cannot be read or is not of the form its client reads.
    """
    found = [_changed(place(client.servers), lambda text: _with_server(client, text, command, removed))]
    if client.hooks_in is not None:
        found.append(_changed(place(client.hooks_in), lambda text: _with_hooks(client, text, command, removed)))
    return found


def server_of(client: Client, command: str) -> dict[str, Any]:
    """Return how *client* is told to start the server."""
    words = {"command": command, "args": [*client.rooted, "mcp"]}
    if client.servers.endswith(".toml"):
        return words
    return {"type": "stdio", **words, **(client.extra or {})}


def _with_server(client: Client, text: str, command: str, removed: bool) -> str:
    path = (client.key, SERVER)
    if client.servers.endswith(".toml"):
        return toml_text.remove(text, path) if removed else toml_text.put(text, path, server_of(client, command))
    if removed:
        return json_text.remove(text or "{}", path)
    text = text or "{\n}\n"
    servers = json_text.read(text).at(client.key)
    held = servers.at(SERVER) if servers is not None else None
    if held is None or not isinstance(held.value, dict):
        return json_text.put(text, path, server_of(client, command))
    for key, value in server_of(client, command).items():  # what else is said of it stays
        text = json_text.put(text, (*path, key), value)
    return text


def _with_hooks(client: Client, text: str, command: str, removed: bool) -> str:
    text = text or ("{\n}\n" if client.grouped else '{\n  "version": 1\n}\n')
    for hook in client.hooks:
        wanted = None if removed else _entry(client, hook, command)
        text = _with_hook(text, ("hooks", hook.event), wanted)
    return text


def _entry(client: Client, hook: Hook, command: str) -> dict[str, Any]:
    name = next(name for name, each in CLIENTS.items() if each is client)
    call: dict[str, Any] = {"command": f"{quote(command)} {hook.words} --hook {name}"}
    matcher = {} if hook.matcher is None else {"matcher": hook.matcher}
    if not client.grouped:
        return {**call, **matcher}
    return {**matcher, "hooks": [{"type": "command", **call, "timeout": _SECONDS}]}


def _with_hook(text: str, path: tuple[str, str], wanted: dict[str, Any] | None) -> str:
    """Return *text* with *wanted* among the hooks of an event, and no other of ours."""
    found = json_text.found(json_text.read(text), path)
    entries = None if found is None else found.value
    ours = [at for at, entry in enumerate(entries) if _is_ours(entry)] if isinstance(entries, list) else []
    if wanted is not None and isinstance(entries, list) and [entries[at] for at in ours] == [wanted]:
        return text
    for at in reversed(ours):
        inner = entries[at].get("hooks") if isinstance(entries, list) and isinstance(entries[at], dict) else None
        mine = [n for n, call in enumerate(inner) if _is_ours(call)] if isinstance(inner, list) else []
        if inner is None or len(mine) == len(inner):
            text = json_text.remove(text, (*path, at))
        else:  # somebody put other hooks beside it
            for number in reversed(mine):
                text = json_text.remove(text, (*path, at, "hooks", number))
    return text if wanted is None else json_text.append(text, path, wanted)


def _is_ours(entry: Any) -> bool:
    if not isinstance(entry, Mapping):
        return False
    inner = entry.get("hooks", [])
    is_ours = bool(_OURS.search(str(entry.get("command", ""))))
    return is_ours or (isinstance(inner, list) and any(map(_is_ours, inner)))


def _changed(path: Path, edit: Callable[[str], str]) -> Change:
    """Return what becomes of the file at *path*; one that says nothing any more is none."""
    before = text_of(path)
    text = (before or "").removeprefix("\ufeff")
    try:
        after = edit(text if text.strip() else "")
    except json_text.NotJson as error:
        raise _wrong(path, text, error.at, error.why) from error
    except toml_text.NotEditable as error:
        hint = f"write it below a header of its own, or take it out: {path}"
        raise Failed(f"{path}: {error}", hint=hint, code="invalid_config") from error
    except tomllib.TOMLDecodeError as error:
        hint = "correct that line; nothing was written"
        raise Failed(f"{path}: {error}", hint=hint, code="invalid_config") from error
    if after.split() in (["{}"], [], ["{", "}"], *_BARE):
        return Change(path, before, before if before is not None and before.split() == after.split() else None)
    return Change(path, before, after if not (before or "").startswith("\ufeff") else "\ufeff" + after)


_BARE: Sequence[list[str]] = [json.dumps({"version": 1}).split(), json.dumps({"version": 1}, indent=2).split()]


def text_of(path: Path) -> str | None:
    """Return the text of a file, None where there is none; raises Failed for one that cannot be read."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeError) as error:
        raise Failed(f"{path} cannot be read: {error}", hint="see to that file first", code="invalid_config") from error


def _wrong(path: Path, text: str, at: int, why: str) -> Failed:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    hint = f"correct it there, or move it away: mv {quote(str(path))} {quote(str(path))}.old"
    return Failed(f"{path}, line {line}, column {column}: {why}", hint=hint, code="invalid_config")
