"""The set-up of clients: their configuration files with hooks, and the git hook."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from shlex import join, quote, split
from typing import Any, NamedTuple

from jidomem.clients import config_files
from jidomem.errors import Failed, JidomemError, NotFound
from jidomem.repository import git

SERVER = "jidomem"
#: The pattern of our hook commands, whatever the name of the executable.
_OURS = re.compile(r"\bjidomem\b.*\s(?:briefing|guard)\s+--hook\b")
_EDITS = "Edit|Write|MultiEdit|NotebookEdit"
_SECONDS = 10  # after which a client proceeds without an answer


class Hook(NamedTuple):
    """A hook of a client: its event, the tools or sources that it matches, and the arguments of `jidomem`."""

    event: str
    words: str
    matcher: str | None


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """A program that runs agents, and the paths of its files, relative to the folder in which it is opened.

    `agent` is its name over MCP. `grouped` hooks are below a matcher. `rooted` and `extra` give
    the root to a client that starts servers in another folder. `user` is the file for all folders.
    `remote` is the entry of a server at a URL, without that URL: its token is that of the variable TOKEN_VARIABLE, or
    the client asks for it by `token_input`.
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
    remote: Mapping[str, Any] = field(default_factory=dict)
    token_input: Mapping[str, Any] | None = None


TOKEN_VARIABLE = "JIDOMEM_TOKEN"
_TOKEN_INPUT = {
    "type": "promptString",
    "id": "jidomem-token",
    "description": "Token of the jidomem server",
    "password": True,
}


def _bearer(token: str) -> dict[str, dict[str, str]]:
    return {"headers": {"Authorization": f"Bearer {token}"}}


_BEGIN = "startup|clear|compact"
CLIENTS: Mapping[str, AgentProgram] = {
    "claude": AgentProgram(
        "Claude Code", "claude-code", ".mcp.json", "mcpServers", ".claude/settings.json",
        (Hook("SessionStart", "agent briefing", _BEGIN), Hook("PreToolUse", "guard", _EDITS)),
        user={".mcp.json": ".claude.json", ".claude/settings.json": ".claude/settings.json"},
        note="Claude Code asks once whether it may start the server of this folder",
        remote={"type": "http", **_bearer(f"${{{TOKEN_VARIABLE}}}")},
    ),
    "cursor": AgentProgram(
        "Cursor", "cursor-vscode", ".cursor/mcp.json", "mcpServers", ".cursor/hooks.json",
        (Hook("sessionStart", "agent briefing", None), Hook("preToolUse", "guard", "Write"),
         Hook("postToolUse", "guard", "Read|Write")),
        grouped=False, rooted=("--root", "${workspaceFolder}/.jidomem"),
        note="Cursor starts the server once it is switched on in its settings, under MCP",
        remote=_bearer(f"${{env:{TOKEN_VARIABLE}}}"),
    ),
    "codex": AgentProgram(
        "Codex", "codex-mcp-client", ".codex/config.toml", "mcp_servers", ".codex/hooks.json",
        (Hook("SessionStart", "agent briefing", _BEGIN), Hook("PreToolUse", "guard", "apply_patch|Edit|Write")),
        user={".codex/config.toml": "config.toml", ".codex/hooks.json": "hooks.json"},
        note="Codex reads this in a folder it trusts, and runs the hooks once they are trusted with /hooks",
        remote={"bearer_token_env_var": TOKEN_VARIABLE},
    ),
    "vscode": AgentProgram(
        "VS Code", "visual-studio-code", ".vscode/mcp.json", "servers", extra={"cwd": "${workspaceFolder}"},
        note="VS Code asks once whether it trusts the server; for its edits: jidomem setup git",
        remote={"type": "http", **_bearer("${input:jidomem-token}")}, token_input=_TOKEN_INPUT,
    ),
}  # fmt: skip


class FileChange(NamedTuple):
    """One file before and after the change, None if it does not exist."""

    path: Path
    before: str | None
    after: str | None

    @property
    def is_due(self) -> bool:
        """Return whether the file differs from its target state."""
        return self.before != self.after


def changes(
    client: AgentProgram,
    place: Callable[[str], Path],
    command: Sequence[str],
    *,
    url: str | None = None,
    removed: bool = False,
) -> list[FileChange]:
    """Return the files of *client* with the server, started by the words of *command* or at *url*, added or removed.

    With a *url* there are no hooks, which would read a memory here. *place* returns the path of a file. Raise
    Failed `invalid_config`, with file and line, for one that cannot be read or is not of the form its client reads.
    """
    entry = None if removed else server_of(client, command, url)
    file_changes = [_changed(place(client.servers), lambda text: _with_server(client, text, entry))]
    if client.hooks_in is not None:
        without = removed or url is not None
        file_changes.append(_changed(place(client.hooks_in), lambda text: _with_hooks(client, text, command, without)))
    return file_changes


def server_of(client: AgentProgram, command: Sequence[str], url: str | None) -> dict[str, Any]:
    """Return the configuration with which *client* starts the server, or reaches that at *url*."""
    if url is not None:
        return {"url": url, **client.remote}
    words = {"command": command[0], "args": [*client.rooted, *command[1:], "mcp"]}
    if client.servers.endswith(".toml"):
        return words
    return {"type": "stdio", **words, **(client.extra or {})}


def present_server(client: AgentProgram, text: str) -> Mapping[str, Any]:
    """Return the entry of our server in *text*, the valid file of servers of *client*; empty if there is none."""
    path = (client.key, SERVER)
    if client.servers.endswith(".toml"):
        entry: Any = config_files.toml_at(text, path)
    else:
        node = config_files.node_at(config_files.read(text), path) if text.strip() else None
        entry = None if node is None else node.value
    return entry if isinstance(entry, dict) else {}


def named_project(words: object) -> str | None:
    """Return the project that the *words* of a command of jidomem name; None for none, and for anything but words."""
    pairs = pairwise(words) if isinstance(words, list) else ()
    return next((str(word) for option, word in pairs if option == "--project"), None)


def _with_server(client: AgentProgram, text: str, entry: Mapping[str, Any] | None) -> str:
    """Return *text* with *entry* as our server, or without it; what was added to an entry of the same form stays."""
    path = (client.key, SERVER)
    if client.servers.endswith(".toml"):
        table = config_files.toml_at(text, path)
        if entry is None or (isinstance(table, dict) and ("url" in table) != ("url" in entry)):
            text = config_files.remove_toml(text, path)
        return text if entry is None else config_files.set_toml(text, path, entry)
    text = _with_input(client, text or "{\n}\n", is_remote="url" in (entry or {}))
    if entry is None:
        return config_files.remove_json(text, path)
    servers = config_files.read(text).at(client.key)
    present = servers.at(SERVER) if servers is not None else None
    if present is None or not isinstance(present.value, dict) or ("url" in present.value) != ("url" in entry):
        return config_files.set_json(text, path, entry)
    for key, value in entry.items():  # other keys of the entry stay
        text = config_files.set_json(text, (*path, key), value)
    return text


def _with_input(client: AgentProgram, text: str, *, is_remote: bool) -> str:
    """Return *text* with the question of *client* for the token, or without it."""
    if client.token_input is None:
        return text
    node = config_files.node_at(config_files.read(text), ("inputs",))
    inputs = node.value if node is not None and isinstance(node.value, list) else []
    for number in reversed(range(len(inputs))):
        if isinstance(inputs[number], dict) and inputs[number].get("id") == client.token_input["id"]:
            return text if is_remote else config_files.remove_json(text, ("inputs", number))
    return config_files.append(text, ("inputs",), dict(client.token_input)) if is_remote else text


def _with_hooks(client: AgentProgram, text: str, command: Sequence[str], removed: bool) -> str:
    text = text or ("{\n}\n" if client.grouped else '{\n  "version": 1\n}\n')
    for hook in client.hooks:
        wanted = None if removed else _entry(client, hook, command)
        text = _with_hook(text, ("hooks", hook.event), wanted)
    return text


def _entry(client: AgentProgram, hook: Hook, command: Sequence[str]) -> dict[str, Any]:
    name = next(name for name, each in CLIENTS.items() if each is client)
    call: dict[str, Any] = {"command": f"{join(command)} {hook.words} --hook {name}"}
    matcher = {} if hook.matcher is None else {"matcher": hook.matcher}
    if not client.grouped:
        return {**call, **matcher}
    return {**matcher, "hooks": [{"type": "command", **call, "timeout": _SECONDS}]}


def _with_hook(text: str, path: tuple[str, str], wanted: dict[str, Any] | None) -> str:
    """Return *text* with *wanted* among the hooks of an event, and no other hook of ours."""
    node = config_files.node_at(config_files.read(text), path)
    entries = None if node is None else node.value
    our_places = [at for at, entry in enumerate(entries) if _is_ours(entry)] if isinstance(entries, list) else []
    if wanted is not None and isinstance(entries, list) and [entries[at] for at in our_places] == [wanted]:
        return text
    for at in reversed(our_places):
        inner = entries[at].get("hooks") if isinstance(entries, list) and isinstance(entries[at], dict) else None
        our_calls = [n for n, call in enumerate(inner) if _is_ours(call)] if isinstance(inner, list) else []
        if inner is None or len(our_calls) == len(inner):
            text = config_files.remove_json(text, (*path, at))
        else:  # the group has hooks of others
            for number in reversed(our_calls):
                text = config_files.remove_json(text, (*path, at, "hooks", number))
    return text if wanted is None else config_files.append(text, path, wanted)


def _is_ours(entry: Any) -> bool:
    if not isinstance(entry, Mapping):
        return False
    inner = entry.get("hooks", [])
    is_ours = bool(_OURS.search(str(entry.get("command", ""))))
    return is_ours or (isinstance(inner, list) and any(map(_is_ours, inner)))


def _changed(path: Path, edit: Callable[[str], str]) -> FileChange:
    """Return the change of the file at *path*; an empty file is deleted."""
    before = text_of(path)
    text = (before or "").removeprefix("\ufeff")
    try:
        after = edit(text if text.strip() else "")
    except config_files.NotJson as error:
        raise _syntax_error(path, text, error.at, error.why) from error
    except config_files.NotEditable as error:
        hint = f"write it below a header of its own, or remove it: {path}"
        raise Failed(f"{path}: {error}", hint=hint, code="invalid_config") from error
    except tomllib.TOMLDecodeError as error:
        hint = "correct that line; nothing was written"
        raise Failed(f"{path}: {error}", hint=hint, code="invalid_config") from error
    if after.split() in (["{}"], [], ["{", "}"], *_BARE):
        return FileChange(path, before, before if before is not None and before.split() == after.split() else None)
    return FileChange(path, before, after if not (before or "").startswith("\ufeff") else "\ufeff" + after)


_BARE: Sequence[list[str]] = [json.dumps({"version": 1}).split(), json.dumps({"version": 1}, indent=2).split()]


def text_of(path: Path) -> str | None:
    """Return the text of a file, None if there is none; raise Failed if it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeError) as error:
        raise Failed(f"{path} cannot be read: {error}", hint="repair that file first", code="invalid_config") from error


def _syntax_error(path: Path, text: str, at: int, why: str) -> Failed:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    hint = f"correct it there, or move it away: mv {quote(str(path))} {quote(str(path))}.old"
    return Failed(f"{path}, line {line}, column {column}: {why}", hint=hint, code="invalid_config")


NAME = "pre-commit"
MODE = 0o755
#: The exit code of the guard on an internal error, which must not stop a commit.
_STOPPED = 3
_OPENS, _CLOSES = "# >>> jidomem setup git >>>", "# <<< jidomem setup git <<<"
_BLOCK = re.compile(rf"^{re.escape(_OPENS)}\n.*?^{re.escape(_CLOSES)}\n", re.MULTILINE | re.DOTALL)
_SHELL = re.compile(r"#!\s*(?:/usr/bin/env\s+)?(?:\S*/)?(?:sh|bash|dash|ksh|zsh)\b[^\n]*\n")
_SHEBANG = "#!/bin/sh\n"


def plan_hook_change(folder: Path, command: Sequence[str], *, removed: bool = False) -> FileChange:
    """Return the change of the pre-commit hook of the repository of *folder*; the hook calls the words of *command*.

    The block comes first, before any exit of the script. Raise NotFound without a repository,
    Failed for a hook that is no shell script.
    """
    path = folder_of_hooks(folder) / NAME
    before = text_of(path)
    plain = _BLOCK.sub("", before) if before is not None else None
    if removed:
        return FileChange(path, before, None if plain is not None and plain.strip() == _SHEBANG.strip() else plain)
    block = _hook_block(join(command))
    if plain is None or not plain.strip():
        return FileChange(path, before, _SHEBANG + block)
    shebang = _SHELL.match(plain)
    if shebang is None:
        hint = f"let it call this, and stop if it exits with {_STOPPED}: {join(command)} guard --staged"
        raise Failed(f"{path} is not a shell script, and is left unchanged", hint=hint, code="invalid_config")
    return FileChange(path, before, shebang[0] + block + plain[shebang.end() :])


def _hook_block(command: str) -> str:
    """Return the block of the hook that calls *command*, quoted for a shell."""
    passed = 'echo "jidomem: committed UNCHECKED, for the reason above" >&2'
    return f"{_OPENS}\n{command} guard --staged || {{ [ $? -ne {_STOPPED} ] || exit 1; {passed}; }}\n{_CLOSES}\n"


def hook_command(text: str) -> list[str]:
    """Return the words before the arguments of the guard in the block of the hook *text*; none without a block."""
    block = _BLOCK.search(text)
    return split(block[0].partition("\n")[2].partition(" guard ")[0]) if block else []


def is_hook_current(folder: Path) -> bool | None:
    """Return whether the git hook of the repository of *folder* is the one of this version, whatever command it calls.

    None if there is no hook of jidomem, or no repository.
    """
    try:
        text = text_of(folder_of_hooks(folder) / NAME) or ""
    except JidomemError:
        return None
    command = hook_command(text)
    return _hook_block(join(command)) in text if command else None


def folder_of_hooks(folder: Path) -> Path:
    """Return the hooks folder of the repository of *folder*; raise NotFound without a repository."""
    top = git.read_git(folder, "rev-parse", "--show-toplevel")
    common = git.read_git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if top is None or common is None:
        raise NotFound(f"{folder} is in no git repository", hint=f"create one: git init {quote(str(folder))}")
    output = git.read_git(folder, "config", "--show-scope", "--type=path", "--get-all", "core.hooksPath") or b""
    lines = [line.split("\t", 1) for line in os.fsdecode(output).splitlines() if "\t" in line]
    own = [path for scope, path in lines if scope != "command"]  # `read_git` sets one itself, by the command line
    if own:
        return Path(os.path.normpath(Path(os.fsdecode(top).rstrip("\n")) / own[-1]))
    return Path(os.fsdecode(common).rstrip("\n")) / "hooks"
