"""The first write of a new root creates the same files as `jidomem init`."""

import subprocess

import pytest

import jidomem
from jidomem.errors import NotFound
from jidomem.runtime import location

FILES = {".gitattributes", ".gitignore", "config.toml"}


def staged_files(folder):
    """Return the files that git would commit after `git add .jidomem`."""
    for command in (["init", "-q"], ["add", ".jidomem"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    listed = subprocess.run(["git", "ls-files"], cwd=folder, check=True, capture_output=True, text=True)
    return {line.removeprefix(".jidomem/") for line in listed.stdout.splitlines()}


def test_the_first_write_in_python_leaves_only_memory_files_to_git(tmp_path):
    with jidomem.open(tmp_path / ".jidomem", project="shop") as memory:
        receipt = memory.remember("orders are kept for ten years")
        assert [hit.id for hit in memory.recall("how long are orders kept?").entries] == [receipt.iri]
    names = staged_files(tmp_path)
    assert names >= FILES
    assert all(name.startswith("projects/shop/memory/") and name.endswith(".ttl") for name in names - FILES)
    with jidomem.open(tmp_path / ".jidomem") as memory:
        assert memory.project == "shop"


def test_a_root_is_not_opened_with_an_invalid_project_and_can_be_opened_again(tmp_path):
    with pytest.raises(NotFound, match="'Shop' is not a project id") as refusal:
        jidomem.open(tmp_path / ".jidomem", project="Shop")
    assert (refusal.value.code, refusal.value.hint.endswith(": shop")) == ("invalid_project", True)
    with jidomem.open(tmp_path / ".jidomem", project="shop") as memory:
        assert memory.remember("shelves are counted in May").iri


def test_a_first_write_to_another_project_sets_no_default_project(tmp_path):
    with jidomem.open(tmp_path / ".jidomem", project="shop") as memory:
        memory.writer.remember("stock", "shelves are counted in May")
    assert staged_files(tmp_path) >= {".gitattributes", ".gitignore"}
    assert not (tmp_path / ".jidomem" / "config.toml").exists()


def test_working_memory_before_the_first_memory_is_ignored_by_git(tmp_path):
    with jidomem.open(tmp_path / ".jidomem", project="shop") as memory:
        memory.agent("writer").update(lambda now: now.world_put("draft", "not for others"))
        assert (memory.settings.root / "state" / "working.sqlite").exists()
    assert staged_files(tmp_path) == {".gitattributes", ".gitignore"}


def test_a_first_write_preserves_existing_files(tmp_path):
    root = tmp_path / ".jidomem"
    root.mkdir()
    (root / ".gitignore").write_text("mine\n")
    with jidomem.open(root, project="shop") as memory:
        memory.remember("orders are kept for ten years")
    assert (root / ".gitignore").read_text() == "mine\n"
    (root / "config.toml").unlink()  # the root is no longer new
    with jidomem.open(root, project="shop") as memory:
        memory.remember("invoices are kept for six years")
    assert not (root / "config.toml").exists()


def test_reads_and_dry_runs_create_no_root(tmp_path):
    with jidomem.open(tmp_path / ".jidomem", project="shop") as memory:
        memory.remember("orders are kept for ten years", dry_run=True)
        assert [*memory.recall("orders").entries, *memory.ask("facts"), *memory.briefing().items] == []
        with pytest.raises(jidomem.NotFound):
            memory.recall("orders", project="store")
    assert not (tmp_path / ".jidomem").exists()


def test_the_memory_of_the_user_has_no_configured_project(tmp_path, monkeypatch):
    """The memory of the user has one project for each repository, named after its folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("JIDOMEM_ROOT", raising=False)
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with jidomem.open() as memory:
        memory.remember("orders are kept for ten years")
        assert memory.settings.found == location.settings.OWN
        assert {path.name for path in memory.settings.root.iterdir()} >= FILES - {"config.toml"}
        assert not (memory.settings.root / "config.toml").exists()


def test_a_new_root_in_a_sticky_folder_of_all_users_is_writable_by_its_owner_alone(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    location.init(shared)
    for root in (shared / ".jidomem", shared / "new" / "root"):
        with jidomem.open(root, project="shop") as memory:
            memory.remember("orders are kept for ten years")
            memory.agent("writer").update(lambda now: now.world_put("draft", "not for others"))

    paths = [*shared.rglob("*")]
    assert shared / "new" / "root" / "state" / "working.sqlite" in paths
    assert [path for path in paths if path.stat().st_mode & 0o022] == []


def test_a_new_root_in_a_folder_of_a_group_is_writable_by_the_group(tmp_path):
    tmp_path.chmod(0o3775)

    root = location.init(tmp_path)

    assert (root.stat().st_mode & 0o777, (root / "config.toml").stat().st_mode & 0o777) == (0o775, 0o664)
