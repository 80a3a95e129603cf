"""Files nested tens of thousands of levels deep: each is refused by name, and none causes an internal error."""

import os
import tarfile
from io import BytesIO

import pytest
from cli_world import create_repository, run

LEVELS, FEWER_LEVELS = 100_000, 20_000  # levels of nesting; for a file with a size limit
TOML = {
    "lists": "a = " + "[" * FEWER_LEVELS,
    "closed lists": "a = " + "[" * 900 + "]" * 900,
    "tables": "a = " + "{a = " * FEWER_LEVELS,
    "dotted key": "a." * FEWER_LEVELS + "a = 1",
    "header": "[" + "a." * FEWER_LEVELS + "a]\nb = 1",
    "quoted keys": '"a" . ' * FEWER_LEVELS + "a = 1",
}
JSON = {
    "lists": "[" * LEVELS,
    "closed lists": "[" * 900 + "]" * 900,
    "objects": '{"a":' * LEVELS + "1" + "}" * LEVELS,
    "below a key": '{"streams": [{"project": ' + "[" * 300 + "]" * 300 + "}]}",
}


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    return create_repository(tmp_path / "repo", monkeypatch)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


def check_refusal(path, *words, stdin=None):
    result = run(*words, stdin=stdin)
    assert result.exit_code not in (0, 70), result.output
    assert not isinstance(result.exception, RecursionError)
    assert path in result.output, result.output[:400]
    assert "nested too deeply" in result.output
    assert len(result.output) < 2_000


@pytest.mark.parametrize("kind", TOML)
@pytest.mark.parametrize(
    ("path", "words"),
    [
        (".jidomem/config.toml", ["status"]),
        (".jidomem/baseline.toml", ["check"]),
        ("given.toml", ["check", "--baseline", "given.toml"]),
        ("../home/.config/jidomem/config.toml", ["status"]),
        (".codex/config.toml", ["setup", "codex"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_toml_nested_too_deeply_is_refused_with_the_name_of_its_file(repository, path, words, kind):
    write(repository / path, TOML[kind])

    check_refusal(os.path.basename(path), *words)


@pytest.mark.parametrize("kind", JSON)
@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("issues.json", ["check", "--open-tasks-from", "issues.json"]),
        ("anchor.json", ["journal", "verify", "--anchor", "anchor.json"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_json_nested_too_deeply_is_refused_with_the_name_of_its_file(repository, path, words, kind):
    write(repository / path, JSON[kind])

    check_refusal(path, *words)


@pytest.mark.parametrize("client", ["claude", "cursor", "vscode"])
def test_a_client_file_nested_too_deeply_is_left_unchanged(repository, client):
    name = {"claude": ".mcp.json", "cursor": ".cursor/mcp.json", "vscode": ".vscode/mcp.json"}[client]
    path = write(repository / name, '{"a":' * LEVELS)

    result = run("setup", client)

    assert result.exit_code not in (0, 70)
    assert name in result.output
    assert path.read_text() == '{"a":' * LEVELS


def test_a_backup_with_a_manifest_nested_too_deeply_is_refused(repository):
    with tarfile.open(repository / "deep.tar", "w") as tar:
        data = JSON["objects"].encode()
        for name in ("manifest.json", "MANIFEST", "jidomem.json"):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, BytesIO(data))

    result = run("root", "restore", "deep.tar", "--root", repository / "restored")

    assert result.exit_code not in (0, 70)
    assert "deep.tar" in result.output


@pytest.mark.parametrize("value", [JSON["lists"], JSON["closed lists"]], ids=["lists", "closed lists"])
def test_a_command_line_value_nested_too_deeply_is_refused(repository, value):
    for words in (["agent", "working", "put", "deep", value], ["agent", "memoryos", "set", f"about={value}"]):
        result = run(*words)
        assert result.exit_code == 2, result.output[:300]
        assert "nested too deep" in result.output
