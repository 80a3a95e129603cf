"""`jidomem setup`: the memory in the configuration of agent clients is written, checked and removed."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import anyio
import pytest
from cli_world import run
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

BIN = Path(sys.executable).parent
FILES = {
    "claude": (".mcp.json", ".claude/settings.json"),
    "cursor": (".cursor/mcp.json", ".cursor/hooks.json"),
    "codex": (".codex/config.toml", ".codex/hooks.json"),
    "vscode": (".vscode/mcp.json",),
}
JSON = [(client, name) for client, names in FILES.items() for name in names if name.endswith(".json")]
SERVERS = {"claude": "mcpServers", "cursor": "mcpServers", "codex": "mcp_servers", "vscode": "servers"}


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a repository, with a shell that does not find jidomem."""
    folder = tmp_path / "repo"
    (folder / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", folder], check=True)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.chdir(folder / "src")
    return folder


def setup(*words):
    result = run("setup", *words)
    assert result.exit_code == 0, result.stderr
    return result


def repository_files(folder):
    """Return the files of a repository except those of git and of the memory."""
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    parts = ((path.relative_to(folder), path) for path in paths)
    return {str(name): path.read_bytes() for name, path in parts if name.parts[0] not in (".git", ".jidomem")}


@pytest.mark.parametrize("client", FILES)
def test_setup_writes_files_once_and_remove_deletes_them(repository, client):
    missing = run("setup", client, "--check")
    printed = json.loads(setup(client, "--print", "--json").stdout)["files"]
    before = repository_files(repository)
    setup(client)
    written = repository_files(repository)
    second = setup(client)
    current = run("setup", client, "--check")
    setup(client, "--remove")

    assert (missing.exit_code, current.exit_code, before) == (1, 0, {})
    assert sorted(written) == sorted(FILES[client])
    assert {file["path"]: file["text"] for file in printed} == {
        str(repository / name): data.decode() for name, data in written.items()
    }
    assert "up to date" in second.stderr
    assert repository_files(repository) == {}
    assert not any((repository / name).parent.exists() for name in FILES[client] if "/" in name)
    assert (repository / ".jidomem" / "config.toml").is_file()
    assert setup(client, "--remove").stderr == f"{client}: up to date\n"


@pytest.mark.parametrize(("client", "name"), JSON)
def test_the_entries_of_others_are_preserved_byte_by_byte(repository, client, name):
    file = repository / name
    file.parent.mkdir(exist_ok=True)
    others_entries = {
        "model": "opus",
        SERVERS[client]: {"docs": {"command": "docs", "env": {"A": "ü"}}},
        "hooks": {
            event: [{"matcher": "Bash", "hooks": [{"type": "command", "command": "say done"}], "command": "other"}]
            for event in ("PreToolUse", "preToolUse", "SessionStart", "sessionStart", "Stop")
        },
    }
    file.write_bytes(json.dumps(others_entries, indent="\t", ensure_ascii=False).replace("\n", "\r\n").encode())
    file.chmod(0o640)
    before = file.read_bytes()

    setup(client)
    changed = json.loads(file.read_bytes())
    mode = file.stat().st_mode & 0o777
    setup(client, "--remove")

    assert changed["model"] == "opus"
    assert changed[SERVERS[client]]["docs"] == others_entries[SERVERS[client]]["docs"]
    assert all(changed["hooks"][event][0] == entries[0] for event, entries in others_entries["hooks"].items())
    assert (file.read_bytes(), mode) == (before, 0o640)


@pytest.mark.parametrize(("client", "name"), JSON)
def test_a_file_reformatted_by_its_client_is_up_to_date(repository, client, name):
    setup(client)
    file = repository / name
    laid_out = json.dumps(json.loads(file.read_text()), sort_keys=True, indent=8)
    file.write_text(laid_out)

    assert run("setup", client, "--check").exit_code == 0
    setup(client)
    assert file.read_text() == laid_out


@pytest.mark.parametrize("client", FILES)
def test_an_older_entry_is_updated_and_user_additions_are_preserved(repository, client):
    setup(client)
    for name in FILES[client]:
        file = repository / name
        file.write_text(file.read_text().replace(str(BIN / "jidomem"), "/opt/old/bin/jidomem"))
    servers = repository / FILES[client][0]
    if client == "codex":
        servers.write_text(servers.read_text() + 'startup_timeout_sec = 60\n\n[mcp_servers.jidomem.env]\nA = "1"\n')
    else:
        servers.write_text(servers.read_text().replace('"type": "stdio"', '"env": {"A": "1"}, "type": "stdio"'))

    stale = run("setup", client, "--check")
    setup(client)

    assert stale.exit_code == 1
    assert run("setup", client, "--check").exit_code == 0
    assert all("/opt/old" not in data.decode() for data in repository_files(repository).values())
    assert all(data.decode().count("briefing --hook") <= 1 for data in repository_files(repository).values())
    read = tomllib.loads if client == "codex" else json.loads
    assert read(servers.read_text())[SERVERS[client]]["jidomem"]["env"] == {"A": "1"}


@pytest.mark.parametrize("client", FILES)
def test_an_unreadable_file_is_refused_with_its_line_and_nothing_is_written(repository, client):
    for name in FILES[client]:
        for text in ("{\n  broken", "[1, 2]\n", f'{{"{SERVERS[client]}": 3, "hooks": []}}', "\xff"):
            file = repository / name
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(text.encode("latin-1"))
            before = repository_files(repository)

            refused = run("setup", client, "--json")

            assert (refused.exit_code, repository_files(repository)) == (1, before), (name, text)
            error = json.loads(refused.stdout)
            assert error["code"] == "invalid_config"
            assert str(file) in error["detail"]
            assert "line" in error["detail"] or "\xff" in text or client == "codex"
            file.unlink()


def test_comments_in_the_configuration_of_vs_code_are_preserved(repository):
    file = repository / ".vscode" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{\n  // what we use\n  "servers": {\n    "docs": {"command": "docs"}, // the docs\n  },\n}\n')
    before = file.read_text()

    setup("vscode")
    changed = file.read_text()
    setup("vscode", "--remove")

    assert "// what we use" in changed
    assert '"jidomem": {' in changed
    assert file.read_text() == before


def test_a_hook_of_the_user_is_preserved_when_the_hook_of_jidomem_is_removed(repository):
    setup("claude")
    file = repository / ".claude" / "settings.json"
    settings = json.loads(file.read_text())
    settings["hooks"]["SessionStart"][0]["hooks"].append({"type": "command", "command": "say hello"})
    file.write_text(json.dumps(settings, indent=2))

    setup("claude", "--remove")

    hooks = json.loads(file.read_text())["hooks"]
    assert [call["command"] for group in hooks["SessionStart"] for call in group["hooks"]] == ["say hello"]
    assert list(hooks) == ["SessionStart"]


def test_a_link_out_of_the_repository_is_refused(repository, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (repository / ".claude").symlink_to(tmp_path / "elsewhere")

    refused = run("setup", "claude")

    assert refused.exit_code == 1
    assert "out of" in refused.stderr
    assert repository_files(repository) == {}
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_command_is_a_name_if_the_shell_finds_it_and_a_path_otherwise(repository, tmp_path):
    setup("claude")
    path = json.loads((repository / ".mcp.json").read_text())["mcpServers"]["jidomem"]["command"]
    (tmp_path / "home" / "bin").mkdir()
    (tmp_path / "home" / "bin" / "jidomem").symlink_to(BIN / "jidomem")
    (tmp_path / "home" / ".profile").write_text(f"PATH={tmp_path}/home/bin:$PATH\n")
    setup("claude")
    named = json.loads((repository / ".mcp.json").read_text())["mcpServers"]["jidomem"]["command"]

    assert (path, named) == (str(BIN / "jidomem"), "jidomem")


@pytest.mark.parametrize("client", ["claude", "codex"])
def test_setup_for_the_user_writes_the_files_of_the_client_in_the_home_folder(repository, tmp_path, client):
    home = tmp_path / "home"
    setup(client, "--user")
    written = sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())
    setup(client, "--user", "--remove")

    assert written == {
        "claude": [".claude.json", ".claude/settings.json"],
        "codex": [".codex/config.toml", ".codex/hooks.json"],
    }[client]  # fmt: skip
    assert repository_files(repository) == {}
    assert not (repository / ".jidomem").exists()


BEARER = "Bearer ${JIDOMEM_TOKEN}"
REMOTE = {
    "claude": {"type": "http", "headers": {"Authorization": BEARER}},
    "cursor": {"headers": {"Authorization": BEARER.replace("{", "{env:")}},
    "codex": {"bearer_token_env_var": "JIDOMEM_TOKEN"},
    "vscode": {"type": "http", "headers": {"Authorization": "Bearer ${input:jidomem-token}"}},
}


@pytest.mark.parametrize("client", FILES)
def test_a_remote_server_is_configured_without_its_token_and_replaces_the_local_one(repository, client):
    setup(client)
    local = repository_files(repository)
    stale = run("setup", client, "--server", "https://memory.example.org", "--check")
    result = setup(client, "--server", "https://memory.example.org")
    (name,) = repository_files(repository)  # without hooks, which would read a memory in the repository
    text = (repository / name).read_text()
    read = tomllib.loads if client == "codex" else json.loads
    second = run("setup", client, "--server", "https://memory.example.org/mcp", "--check")
    checked = run("setup", client, "--check")
    replaced = setup(client)
    restored = repository_files(repository)
    setup(client, "--server", "https://memory.example.org:8443/agents")
    other = (repository / name).read_text()
    setup(client, "--remove")

    assert (stale.exit_code, second.exit_code, name) == (1, 0, FILES[client][0])
    assert (checked.exit_code, "uses the server at https://memory.example.org/mcp" in checked.stderr) == (0, True)
    assert f"jidomem setup {client} --server https://memory.example.org/mcp" in replaced.stderr
    entry = read(text)[SERVERS[client]]["jidomem"]
    assert entry == {"url": "https://memory.example.org/mcp", **REMOTE[client]}
    inputs = read(text).get("inputs", [])
    assert [each["password"] for each in inputs] == ([True] if client == "vscode" else [])
    assert ("asks for the token" if client == "vscode" else "JIDOMEM_TOKEN") in result.stderr
    assert restored == local
    assert read(other)[SERVERS[client]]["jidomem"]["url"] == "https://memory.example.org:8443/agents"
    assert repository_files(repository) == {}


def test_inputs_of_others_in_vs_code_are_preserved(repository):
    file = repository / ".vscode" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{\n  "inputs": [\n    {"id": "theirs", "type": "promptString"}\n  ]\n}\n')
    before = file.read_text()

    setup("vscode", "--server", "http://localhost:8701")
    changed = json.loads(file.read_text())
    setup("vscode", "--remove")

    assert [each["id"] for each in changed["inputs"]] == ["theirs", "jidomem-token"]
    assert file.read_text() == before


@pytest.mark.parametrize(
    "url", ["memory.example.org", "https://", "ftp://x/mcp", "https://ana:jido_x@host/mcp", "https://host/mcp?t=jido_x",
            "https://[x"],
)  # fmt: skip
def test_an_invalid_server_address_or_one_with_a_secret_is_refused(repository, url):
    refused = run("setup", "claude", "--server", url)

    assert (refused.exit_code, "jido_x" in refused.stderr) == (2, False)
    assert "--server https://memory.example.org/mcp" in refused.stderr
    assert repository_files(repository) == {}


def test_an_unencrypted_address_has_a_warning(repository):
    assert "not encrypted" in setup("claude", "--server", "http://memory.example.org").stderr
    assert "not encrypted" not in setup("claude", "--server", "http://127.0.0.1:8701").stderr


def test_a_server_address_as_root_is_refused_with_the_setup_command(repository):
    refused = run("--root", "http://memory.example.org", "ask", "facts")

    assert refused.exit_code == 2
    assert "jidomem setup claude --server http://memory.example.org" in refused.stderr


@pytest.mark.parametrize(
    "words",
    [("git", "--server", "https://example.org"), ("claude", "--server", "https://example.org", "--remove"),
     ("cursor", "--user"), ("vscode", "--user"), ("claude", "--check", "--print"),
     ("claude", "--check", "--remove"), ("claude", "--root", "x"), ("emacs",)],
)  # fmt: skip
def test_an_invalid_combination_of_options_is_refused(repository, words):
    assert run("setup", *words).exit_code == 2
    assert repository_files(repository) == {}


@pytest.mark.parametrize("client", [*FILES, "git"])
def test_a_project_is_written_into_each_command_and_kept_until_another_is_named(repository, client, monkeypatch):
    for project in ("billing", "search"):
        run("init", str(repository), "--project", project)

    def written():
        hook = (repository / ".git" / "hooks" / "pre-commit").read_text() if client == "git" else ""
        return [hook, *(data.decode() for data in repository_files(repository).values())][client != "git" :]

    named = run("--project", "search", "setup", client)
    texts = written()
    repeated, other = setup(client), run("--project", "billing", "setup", client, "--check")
    misspelt = run("--project", "serch", "setup", client)
    monkeypatch.setenv("JIDOMEM_PROJECT", "search")
    current = run("setup", client, "--check")

    assert (named.exit_code, other.exit_code, current.exit_code, misspelt.exit_code) == (0, 1, 0, 4)
    assert all("--project" in text and "search" in text for text in texts)
    assert written() == texts
    assert "keeps the project search" in repeated.stderr
    assert "did you mean --project search?" in misspelt.stderr
    if client != "git":
        assert "search is not written" in setup(client, "--server", "https://memory.example.org").stderr


def test_an_invalid_project_is_refused_before_a_file_is_written(repository):
    refused = run("--project", "A B", "setup", "claude")

    assert (refused.exit_code, repository_files(repository)) == (4, {})
    assert "A B" in refused.stderr


def test_the_configured_server_is_started_by_a_client_and_answers(repository):
    run("remember", "the build needs Rust 1.80")
    servers = set()
    for client, (file, *_) in FILES.items():
        setup(client)
        text = (repository / file).read_text().replace("${workspaceFolder}", str(repository))
        server = (tomllib.loads if client == "codex" else json.loads)(text)[SERVERS[client]]["jidomem"]
        elsewhere = "/" if client == "cursor" else str(repository)  # Cursor starts servers in a folder of its own
        servers.add((server["command"], *server["args"], server.get("cwd", elsewhere)))

    async def call_status(command, *arguments):
        *arguments, folder = arguments
        peer = StdioServerParameters(command=command, args=arguments, env={**os.environ}, cwd=folder)
        async with Client(stdio_client(peer)) as connected:
            return await connected.call_tool("status", {})

    for words in servers:
        answer = anyio.run(call_status, *words)

        assert not answer.is_error
        assert answer.structured_content["root"] == str(repository / ".jidomem")


@pytest.mark.parametrize(("client", "event"), [("claude", "SessionStart"), ("cursor", "sessionStart")])
def test_the_configured_hook_prints_a_briefing_or_nothing_for_an_empty_memory(repository, client, event):
    setup(client)
    hooks = json.loads((repository / FILES[client][1]).read_text())["hooks"][event][0]
    command = (hooks if client == "cursor" else hooks["hooks"][0])["command"]
    event_data = {"hook_event_name": event, "session_id": "s", "source": "startup", "cwd": str(repository)}

    def run_hook():
        result = subprocess.run(
            ["sh", "-c", command], input=json.dumps(event_data), cwd="/", capture_output=True, text=True
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    empty = run_hook()
    run("remember", "Sign every commit", "--type", "convention", "--enforcement-level", "Strict")
    answer = json.loads(run_hook())

    assert empty == ""
    context = answer["additional_context"] if client == "cursor" else answer["hookSpecificOutput"]["additionalContext"]
    assert '"Sign every commit"' in context
    assert len(context.encode()) / 3 <= 1_500


@pytest.mark.parametrize("document", ["[", "[1]", "", "\x00"])
def test_a_hook_with_invalid_input_exits_with_0_and_a_message(repository, document):
    result = run("agent", "briefing", "--hook", "claude", stdin=document)

    assert result.exit_code == 0
    assert "a hook gets a JSON object" in json.loads(result.stdout)["systemMessage"]
