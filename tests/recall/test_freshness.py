"""A memory about a file has the blob id of the file; its lists report whether the file changed."""

import subprocess

import pytest
from conftest import decision, fixed_sources, intent

import jidomem
from jidomem.errors import IntentRefused
from jidomem.exchange import documents
from jidomem.exchange.importer import import_document
from jidomem.index.store import OxigraphIndex
from jidomem.journal.journal import Stream
from jidomem.recall.briefing import markdown
from jidomem.repository.worktree import blob_id


def git(folder, *words):
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, check=True)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "repo"
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q")
    for name in "abc":
        (folder / "src" / f"{name}.py").write_text(f"def {name}():\n    return '{name}'\n" * 5)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


@pytest.fixture
def memory(folder):
    with jidomem.open(folder / ".jidomem", project="p", sources=fixed_sources()) as opened:
        yield opened


def about(memory, *paths, **fields):
    summary = f"it is about {paths}"
    return memory.writer.submit_intent("p", decision(summary=summary, about=list(paths), **fields)).iri


def states(memory):
    return [(row["item"], row["path"], row["state"], row["at"]) for row in memory.changed_files()]


def anchors(memory, item):
    return memory.reader.get_memory("p", item)["properties"].get("aboutBlob", [])


def test_a_memory_about_a_file_records_its_blob_id(memory, folder):
    item = about(memory, "./src/a.py", "src", "a thing", "src/none.py")

    assert anchors(memory, item) == [blob_id((folder / "src/a.py").read_bytes()) + " src/a.py"]
    assert memory.changed_files() == []


def test_a_changed_or_removed_file_is_reported_with_its_active_memories(memory, folder):
    first = about(memory, "src/a.py", "src/b.py")
    ended = about(memory, "src/c.py", topic="c")
    about(memory, "src", topic="c", supersedes=[ended])
    (folder / "src/a.py").write_text("pass\n")
    (folder / "src/b.py").unlink()
    (folder / "src/c.py").unlink()

    assert states(memory) == [(first, "src/a.py", "changed", "src/a.py"), (first, "src/b.py", "gone", None)]


def test_a_file_that_a_sparse_checkout_leaves_out_is_as_git_has_it(memory, folder):
    (folder / "docs").mkdir()
    (folder / "docs/c.md").write_text("kept")
    git(folder, "add", "docs")
    git(folder, "commit", "-q", "-m", "docs")
    about(memory, "docs/")
    changed, gone = about(memory, "src/a.py", topic="a"), about(memory, "src/b.py", topic="b")
    git(folder, "rm", "-q", "src/b.py")
    (folder / "src/a.py").write_text("pass\n")
    git(folder, "commit", "-qam", "second")
    git(folder, "sparse-checkout", "set", ".jidomem")

    assert not (folder / "src").exists()
    assert states(memory) == [(changed, "src/a.py", "changed", "src/a.py"), (gone, "src/b.py", "gone", None)]
    assert memory.governing_answer("docs/c.md").missing == {}
    late = memory.writer.submit_intent("p", decision(summary="late", topic="late", about=["docs/c.md", "docs/*.md"]))
    assert not [text for text in late.warnings if "docs/" in text]


def test_a_renamed_file_is_traced_by_content_and_git_history(memory, folder):
    moved, edited, plain = about(memory, "src/a.py"), about(memory, "src/b.py"), about(memory, "src/c.py")
    git(folder, "mv", "src/a.py", "src/moved.py")
    git(folder, "mv", "src/b.py", "src/edited.py")
    git(folder, "commit", "-q", "-m", "rename")
    (folder / "src/edited.py").write_text((folder / "src/edited.py").read_text() + "# more\n")
    git(folder, "mv", "src/edited.py", "src/again.py")
    git(folder, "commit", "-q", "-a", "-m", "rename again")
    (folder / "src/c.py").rename(folder / "untracked.py")

    assert states(memory) == [
        (moved, "src/a.py", "renamed", "src/moved.py"),
        (edited, "src/b.py", "changed", "src/again.py"),
        (plain, "src/c.py", "renamed", "untracked.py"),
    ]
    assert [row["item"] for row in memory.governing("src/again.py")] == [edited]  # also by its new name


def test_a_briefing_traces_the_missing_files_of_the_memories_that_it_ranks(memory, folder, monkeypatch):
    for name, topic in (("a", "moved"), ("b", "removed")):
        about(memory, f"src/{name}.py", topic=topic)
    (folder / "src/c.py").write_text("pass\n")
    memory.writer.submit_many("p", [decision(summary=f"old {n}", topic=f"{n}", about=["src/c.py"]) for n in range(60)])
    git(folder, "mv", "src/a.py", "src/moved.py")
    git(folder, "rm", "-q", "src/b.py")
    git(folder, "commit", "-q", "-a", "-m", "move and remove")
    read, query = [], OxigraphIndex.query

    def counted(index, text, **options):
        answer = query(index, text, **options)
        read.extend(answer.rows if "aboutBlob" in text else ())
        return answer

    monkeypatch.setattr(OxigraphIndex, "query", counted)
    text = memory.briefing("p", budget_tokens=9_000).text

    assert ("src/a.py renamed" in text, "src/b.py gone" in text) == (True, True)
    assert read == []


def test_a_moved_file_is_reported_as_gone_without_git(memory, folder, monkeypatch):
    item = about(memory, "src/a.py")
    (folder / "src/a.py").rename(folder / "src/x.py")
    monkeypatch.setenv("PATH", "")

    assert states(memory) == [(item, "src/a.py", "gone", None)]


def test_a_confirmation_or_new_summary_updates_the_anchors_and_a_status_change_does_not(memory, folder):
    task = intent(type="task", status="Planned", about=["src/a.py"])
    item = memory.writer.submit_intent("p", task).iri
    (folder / "src/a.py").write_text("pass\n")

    moved = memory.writer.revise("p", item, changes={"status": "InProgress"}, reason=None).iri
    memory.reader.get_memory("p", moved)
    assert states(memory) == [(moved, "src/a.py", "changed", "src/a.py")]

    confirmed = memory.writer.confirm("p", moved).iri
    assert (states(memory), anchors(memory, confirmed)) == ([], [blob_id(b"pass\n") + " src/a.py"])
    (folder / "src/a.py").write_text("again\n")
    memory.writer.revise("p", confirmed, changes={"summary": "it does more"}, reason="read it")
    assert states(memory) == []


def test_a_repeated_memory_of_a_changed_file_is_deduplicated_and_keeps_its_anchor(memory, folder):
    item = about(memory, "src/a.py")
    (folder / "src/a.py").write_text("pass\n")

    assert about(memory, "src/a.py") == item
    assert states(memory) == [(item, "src/a.py", "changed", "src/a.py")]


def test_a_file_anchor_in_an_intent_is_refused(memory):
    with pytest.raises(IntentRefused, match="set by the writer only"):
        memory.writer.submit_intent("p", intent(extra_triples=[["jido:aboutBlob", "0" * 40 + " src/a.py"]]))


def test_a_root_outside_a_repository_records_no_anchors(tmp_path):
    (tmp_path / "a.py").write_text("x")
    with jidomem.open(tmp_path / ".jidomem", project="p") as memory:
        item = about(memory, "a.py")

        assert (anchors(memory, item), memory.changed_files()) == ([], [])
        assert [row["freshness"] for row in memory.governing("a.py")] == [[]]


def test_an_anchor_outside_the_repository_is_ignored(memory, folder, tmp_path):
    (tmp_path / "secret").write_text("s")
    item = about(memory, "src/a.py")
    file = next((folder / ".jidomem" / "projects").rglob("*.ttl"))
    assert " src/a.py" in file.read_text()

    from jidomem.rdf.terms import literal
    from jidomem.records.file_anchor import anchors_of

    assert (
        anchors_of([literal(blob_id(b"s") + f" {path}") for path in ("../secret", "/etc/passwd", ".git/config")]) == []
    )
    assert anchors_of([literal("no blob"), literal(blob_id(b"s") + " src/a.py")]) == [("src/a.py", blob_id(b"s"))]
    assert item


def test_rename_detection_runs_no_program_configured_in_the_repository(memory, folder, tmp_path):
    item = about(memory, "src/a.py")
    marker = tmp_path / "ran"
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    script.chmod(0o755)
    for name in (
        "core.fsmonitor",
        "filter.x.clean",
        "filter.x.smudge",
        "diff.x.textconv",
        "diff.external",
        "gpg.program",
    ):
        git(folder, "config", name, str(script))
    git(folder, "config", "log.showSignature", "true")
    (folder / ".gitattributes").write_text("* filter=x diff=x\n")
    (folder / "src/b.py").write_text("changed\n")
    (folder / "src/a.py").rename(folder / "src/x.py")

    assert states(memory) == [(item, "src/a.py", "renamed", "src/x.py")]
    assert not marker.exists()


def test_an_imported_memory_keeps_the_exported_state_of_its_files(memory, folder, tmp_path):
    about(memory, "src/a.py")
    exported = tmp_path / "memory.ttl"
    other = tmp_path / "other"
    (other / "src").mkdir(parents=True)
    (other / "src" / "a.py").write_text("else\n")
    git(other, "init", "-q")
    exported.write_bytes(documents.turtle("p", memory.journal.read(Stream("p")), memory.schema.version))

    with jidomem.open(other / ".jidomem", project="p", sources=fixed_sources()) as elsewhere:
        report = import_document(elsewhere.writer, elsewhere.schema, "p", "memory.ttl", exported.read_bytes())

        assert len(report.accepted) == 1
        item = report.accepted[0].iri
        assert anchors(elsewhere, item) == anchors(memory, item) != [blob_id(b"else\n") + " src/a.py"]


def test_a_recalled_memory_shows_the_state_of_its_files(memory, folder):
    about(memory, "src/a.py", "src/b.py", "src/c.py", topic="names")
    (folder / "src/a.py").write_text("changed")
    (folder / "src/b.py").unlink()

    answer = memory.recall("names")

    states = {file["path"]: file["state"] for file in answer.entries[0].metadata["freshness"]}
    assert states == {"src/a.py": "changed", "src/b.py": "gone", "src/c.py": "unchanged"}
    assert "src/a.py changed, src/b.py gone" in markdown(answer)
