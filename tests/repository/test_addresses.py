"""Web addresses of files of a repository are read as paths: in queries and in imported records."""

import subprocess

import pytest
from click.testing import CliRunner

from jidomem.repository.worktree import Addresses, Worktree, remote_names
from jidomem_cli.main import cli

RECORD = """# Keep one queue

## Status

Accepted

## Decision

We use one queue, see [the worker][worker] and https://github.com/other/shop/blob/main/src/other.py.

[worker]: https://github.com/Ana/shop/blob/0123456789abcdef0123456789abcdef01234567/src/worker.py#L3-L9
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A clone of a fork, with the repository it was forked from as a second remote."""
    monkeypatch.chdir(tmp_path)
    for name in ("src/worker.py", "src/other.py", "docs/adr/0001-queue.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(RECORD if name.endswith(".md") else "x = 1\n")
    for arguments in (
        ["init", "-q"],
        ["remote", "add", "origin", "git@github.com:bo/shop.git"],
        ["remote", "add", "upstream", "https://github.com/ana/Shop"],
        ["add", "-A"],
    ):
        subprocess.run(["git", *arguments], check=True)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, arguments)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/Ana/shop.git", "github.com/ana/shop"),
        ("https://token@github.com/ana/shop/", "github.com/ana/shop"),
        ("git@github.com:ana/shop.git", "github.com/ana/shop"),
        ("ssh://git@git.example.org:2222/group/sub/shop.git", "git.example.org/group/sub/shop"),
    ],
)
def test_a_remote_is_identified_by_host_and_name_in_any_url_form(url, name):
    assert remote_names(f'[remote "origin"]\n\turl = {url}\n') == {name}


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("https://github.com/ana/shop/blob/main/src/worker.py#L3", "src/worker.py"),
        ("https://github.com/bo/shop/blob/feature/queue/src/worker.py?plain=1", "src/worker.py"),
        ("https://github.com/ana/shop/tree/main/src/", "src"),
        ("https://github.com/ana/shop/blob/main/src/gone.py", "src/gone.py"),
        ("https://github.com/other/shop/blob/main/src/worker.py", None),
        ("https://gitlab.com/ana/shop/-/blob/main/src/worker.py", None),
        ("https://github.com/ana/shop/issues/7", None),
        ("https://github.com/ana/shop/blob/main/../../../etc/passwd", None),
    ],
)
def test_the_address_of_a_file_in_a_remote_is_a_path_of_the_repository(shop, address, path):
    tree = Worktree.around(shop / ".jidomem")

    assert Addresses.of(tree).path(address) == path


def test_a_record_with_the_web_address_of_a_file_governs_the_file(shop):
    assert run("init", "--from", "docs/adr").exit_code == 0

    assert "Keep one queue" in run("governing", "src/worker.py").stdout
    assert "Keep one queue" not in run("governing", "src/other.py").stdout


def test_governing_accepts_the_web_address_of_a_file_and_ignores_foreign_addresses(shop):
    run("init", "--project", "shop")
    run("remember", "The worker is slow", "--type", "decision", "--rationale", "r",
        "--about", "https://github.com/ana/shop/blob/main/src/worker.py")  # fmt: skip

    for address in ("src/worker.py", "https://github.com/bo/shop/blob/main/src/worker.py#L1"):
        assert "The worker is slow" in run("governing", address).stdout, address
    foreign = run("governing", "https://example.org/src/worker.py")
    assert (foreign.exit_code, foreign.stdout, foreign.stderr) == (0, "", "none\n")
