"""Import, export and check from the command line."""

import gc
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import cli_world
import pytest

from jidomem.journal.commit import Commit
from jidomem_cli import exchange

RECORD = "# 1. {title}\n\n## Status\n\n{status}\n\n## Context\n\nWe forget.\n\n## Decision\n\nWe write.\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*words, code=0):
        result = cli_world.run(*words)
        assert result.exit_code == code, result.output
        return result

    run("init", "--project", "p")
    return run


def test_an_imported_record_is_printed_in_a_line_and_a_second_import_changes_nothing(run, tmp_path):
    (tmp_path / "0001-write.md").write_text(RECORD.format(title="Write things down", status="Accepted"))
    (tmp_path / "index.md").write_text("nothing here\n")

    first = run("root", "import", "adr", "0001-write.md", "index.md")
    second = run("root", "import", "adr", "0001-write.md", "index.md")

    assert "asserted  Write things down" in first.stdout
    assert "index.md" in first.stderr  # every skipped file is reported
    assert "1 added, 0 unchanged" in first.stderr
    assert "0 added, 1 unchanged" in second.stderr
    assert "Write things down" in run("ask", "decisions").stdout


def test_an_accepted_note_governs_a_file_named_without_its_folder(run, tmp_path):
    for path in ("src/agents/run.py", "docs/ja/index.md", "docs/index.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / "CLAUDE.md").write_text(
        "## Structure\n\n- When `run.py` grows, move helpers out of it\n- `docs/`: source; do not edit `docs/ja`\n"
    )
    run("root", "import", "memory-md", "CLAUDE.md")
    run("access", "policy", "grant", "user", "curator")
    run("review", "accept", "--all")

    governing = {path: run("governing", path).stdout for path in ("src/agents/run.py", "docs/ja/index.md")}

    assert "When `run.py` grows" in governing["src/agents/run.py"]
    assert "do not edit `docs/ja`" in governing["docs/ja/index.md"]
    assert "convention" in governing["docs/ja/index.md"]


def test_an_export_is_imported_into_another_root_and_passes_the_check(run, tmp_path):
    run("remember", "the build needs Rust 1.80")
    run("root", "export", "-o", "memory.ttl")

    assert "1 checked: no findings" in run("check", "memory.ttl").stderr
    run("root", "import", "turtle", "memory.ttl", "--root", "other", "--project", "p")
    elsewhere = run("root", "export", "--root", "other", "--project", "p")
    assert elsewhere.stdout == (tmp_path / "memory.ttl").read_text()


@pytest.mark.parametrize("form", ["turtle", "jsonld", "nquads"])
def test_an_export_parses_one_commit_after_the_other(run, monkeypatch, form):
    for number in range(12):
        run("remember", f"fact {number}")
    parsed, triples = [], Commit.triples.fget

    def counted(commit):
        own = (each for each in gc.get_objects() if isinstance(each, Commit))
        parsed.append(sum(each.known_triples is not None for each in own))
        return triples(commit)

    monkeypatch.setattr(Commit, "triples", property(counted))
    monkeypatch.setattr("jidomem.journal.rewrite.AT_ONCE", 2)  # a journal of fewer commits is read whole
    gc.freeze()  # only objects made from here on are listed
    try:
        run("root", "export", "--format", form, "-o", "memory")
    finally:
        gc.unfreeze()

    assert len(parsed) >= 12
    assert max(parsed) <= 2


def test_an_import_names_the_commands_that_make_the_policy_of_the_file_again(run):
    run("remember", "the build needs Rust 1.80")
    run("access", "policy", "grant", "user", "admin")
    run("access", "policy", "set", "propose", "--kind", "decision", "--role", "Reviewer")
    run("root", "export", "-o", "memory.ttl")

    imported = run("root", "import", "turtle", "memory.ttl", "--root", "other", "--project", "p").stderr

    assert imported.count("left out, an import does not change the policy; if it is to hold here: ") == 2
    for change in ("grant user Administrator", "set propose --role Reviewer --kind decision"):
        verb, _, rest = change.partition(" ")
        command = f"access policy {verb} --root other --project p {rest}"
        assert f"jidomem {command}\n" in imported
        run(*command.split())
    before, after = (run(*f"access policy show {of}".split()).stdout for of in ("", "--root other --project p"))
    assert "user has the role Administrator" in before
    assert [line.split("  ")[0] for line in before.splitlines()] == [line.split("  ")[0] for line in after.splitlines()]


def test_an_export_too_large_to_import_names_root_migrate_which_copies_all_of_it(run, monkeypatch):
    run("remember", "the build needs Rust 1.80")
    monkeypatch.setattr("jidomem_cli.exchange.LARGEST", 400)

    exported = run("root", "export", "--format", "nquads", "-o", "memory.nq")
    refused = run("root", "import", "nquads", "memory.nq", "--root", "other", "--project", "p", code=1)

    command = "jidomem root migrate ROOT NEW-ROOT"
    assert (command in exported.stderr, command in refused.stderr) == (True, True)
    run(*command.replace("NEW-ROOT", "new").replace("ROOT", ".jidomem").split()[1:])
    run("root", "export", "--format", "nquads", "-o", "new.nq", "--root", "new", "--project", "p")
    assert Path("new.nq").read_bytes() == Path("memory.nq").read_bytes()


def test_an_export_of_another_project_is_refused_once_with_the_project_option(run):
    run("remember", "the build needs Rust 1.80")
    run("remember", "CI runs on ARM")
    run("root", "export", "-o", "memory.ttl")
    run("root", "export", "--format", "nquads", "-o", "memory.nq")

    for kind, name, code, rest in (("turtle", "memory.ttl", 3, "1 more is refused"), ("nquads", "memory.nq", 4, "")):
        refused = run("root", "import", kind, name, "--root", "other", "--project", "q", code=code)
        assert (refused.stderr.count("error: "), rest in refused.stderr) == (1, True)
        assert re.search("--project p[;\n]", refused.stderr)
        run("root", "import", kind, name, "--root", f"other-{kind}", "--project", "p")
        if kind == "turtle":  # the other way of the hint
            command = refused.stderr.partition("move it here: ")[2].partition(",")[0].replace("FILE.ttl", name)
            subprocess.run(command, shell=True, check=True)
            run("root", "import", kind, "NEW.ttl", "--root", "moved", "--project", "q")
            assert "CI runs on ARM" in run("ask", "facts", "--root", "moved", "--project", "q").stdout


def test_the_markdown_export_names_source_and_evidence_of_a_memory(run, tmp_path):
    (tmp_path / "AGENTS.md").write_text("# Notes\n\n- Always run `make test`.\n")
    (tmp_path / "0001-write.md").write_text(RECORD.format(title="Write\n\nDate: 2018-03-02", status="Accepted"))
    run("root", "import", "memory-md", "AGENTS.md")
    run("root", "import", "adr", "0001-write.md")
    run("access", "policy", "grant", "ana", "curator")
    run("review", "accept", "--all", "--agent", "ana")
    grounds = ["--evidence", "profile of Tuesday", "--evidence", "https://example.org/issues/3"]
    observation = run("remember", "loading is slow", *grounds, "--agent", "ana").stdout.strip()
    run("remember", "tune the loader", "--type", "task", "--evidence", observation, "--agent", "ana")

    page = run("root", "export", "--format", "markdown").stdout

    assert [line.strip() for line in page.splitlines() if line.startswith(("  Source", "  Evidence"))] == [
        "Source: AGENTS.md:3",
        "Source: 0001-write.md",
        f"Evidence: loading is slow ({observation})",
        "Evidence: https://example.org/issues/3; profile of Tuesday",
    ]
    assert re.search(r"decision, dated 2018-03-02, recorded \d{4}-\d\d-\d\d by \w+, ", page)


def test_the_markdown_export_names_the_alternatives_of_a_decision(run):
    alternatives = ["--alternatives", "a file", "--alternatives", "SQLite"]
    run("remember", "Use Jena", "--type", "decision", "--rationale", "it embeds", *alternatives, "--agent", "ana")

    page = run("root", "export", "--format", "markdown").stdout

    assert [line for line in page.splitlines() if "Instead of" in line] == ["  Instead of: a file; SQLite"]
    assert "## Further memories" not in page


def test_an_export_into_a_folder_is_named_after_its_project(run, tmp_path):
    # C024
    run("root", "export", "-o", ".")

    assert (tmp_path / "p_memory.ttl").read_text() == run("root", "export").stdout


def test_an_export_to_a_missing_folder_is_refused_with_a_working_command(run):
    error = run("root", "export", "-o", "nowhere/memory.ttl", code=1).stderr

    assert "nowhere/memory.ttl: No such file or directory" in error
    assert "hint: name a file in an existing folder: jidomem root export -o p_memory.ttl" in error


def test_a_failed_export_leaves_the_previous_file_unchanged(run, tmp_path):
    run("remember", "the build needs Rust")
    file = tmp_path / "memory.ttl"
    run("root", "export", "-o", file)
    file.chmod(0o600)
    before = file.read_bytes()
    command = [str(Path(sys.executable).parent / "jidomem"), "root", "export", "-o", str(file)]
    full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))}  # like a full disk
    full["env"] = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # or compiled modules are cut, too

    failed = subprocess.run(command, capture_output=True, text=True, check=False, **full)

    assert (failed.returncode, f"{file}: File too large" in failed.stderr, file.read_bytes()) == (1, True, before)
    assert [each.name for each in tmp_path.iterdir() if "memory.ttl" in each.name] == ["memory.ttl"]
    run("remember", "and cargo")
    run("root", "export", "-o", file)
    assert (file.read_bytes() != before, file.stat().st_mode & 0o777) == (True, 0o600)


@pytest.mark.parametrize("kind", ["turtle", "memory-md", "mcp-memory", "beads", "nquads"])
def test_an_import_of_an_empty_file_reports_no_records(run, tmp_path, kind):
    (tmp_path / "empty").write_text("\n")

    assert "no records found" in run("root", "import", kind, tmp_path / "empty").stderr


@pytest.mark.parametrize("kind", ["adr", "turtle", "beads"])
def test_an_import_of_an_endless_or_unreadable_file_is_refused(run, monkeypatch, kind):
    monkeypatch.setattr(exchange, "LARGEST", 1000)

    endless, unread = (
        run("root", "import", kind, "/dev/zero", code=1),
        run("root", "import", kind, "/proc/self/mem", code=2),
    )

    assert "/dev/zero has more than 1,000 bytes, the limit" in endless.stderr
    assert "/proc/self/mem: Input/output error" in unread.stderr


def test_an_export_to_a_full_disk_is_refused_with_a_hint_to_free_space(run, tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    (tmp_path / "memory.ttl").symlink_to("/dev/full")

    refused = run("root", "export", "-o", tmp_path / "memory.ttl", code=1)

    assert "memory.ttl: No space left on device" in refused.stderr
    assert "hint: free space on that disk" in refused.stderr


def test_an_error_in_a_document_is_reported_without_the_whole_document(run, tmp_path):
    (tmp_path / "x.ttl").write_text("x" * 100_000)

    refused = run("root", "import", "turtle", tmp_path / "x.ttl", code=2)

    assert (len(refused.stderr) < 1_000, "x.ttl:1: Parser error" in refused.stderr) == (True, True)


def test_an_export_as_of_a_past_moment_has_no_later_memories(run):
    run("remember", "the build needs Rust 1.80")

    assert "Rust" in run("root", "export").stdout
    assert "Rust" not in run("root", "export", "--as-of", "2020-01-01").stdout
    assert "not a date or time" in run("root", "export", "--as-of", "yesterday", code=2).stderr


def test_check_exits_with_1_and_prints_item_rule_and_message(run, tmp_path):
    # C113
    document = "@prefix jido: <https://jido.ai/ontology#> .\n<urn:x:1> a jido:Decision ; jido:summary 'a' .\n"
    (tmp_path / "bad.ttl").write_text(document)

    text = run("check", "bad.ttl", code=1).stdout
    report = json.loads(run("check", "bad.ttl", "--json", code=1).stdout)

    line = next(line for line in text.splitlines() if "rationale" in line)
    assert line.startswith("bad.ttl:2: violation: ")
    assert "urn:x:1" in line
    problem = next(problem for problem in report["problems"] if "rationale" in problem["message"])
    assert problem["item"] == "urn:x:1"
    assert problem["rule"].startswith("https://jido.ai/shapes#")
    assert report["conforms"] is False


def test_check_exits_with_3_without_a_checkable_statement(run, tmp_path):
    (tmp_path / "empty.ttl").write_text("")

    assert "unchecked: empty.ttl" in run("check", "empty.ttl", code=3).stdout


def test_check_distinguishes_an_error_from_a_finding(run, tmp_path):
    root = tmp_path / "misconfigured"
    root.mkdir()
    (root / "config.toml").write_text('projct = "p"\n')

    assert "projct" in run("check", "--root", root, code=3).stderr
    assert json.loads(run("check", "--json", "--project", "nobodys", code=3).stdout)["code"] == "unknown_project"
    assert "--help" in run("check", "--fromat", "json", code=2).stderr


def test_check_names_a_memory_by_its_whole_iri(run):
    # C113
    lesson = run("remember", "Pin the toolchain", "--type", "lesson").stdout.strip()

    assert f"LessonHasAnOrigin: {lesson}: " in run("check").stdout


def test_check_of_a_clean_memory_exits_with_0(run):
    # C108
    run("remember", "the build needs Rust 1.80")

    assert "1 checked: no findings" in run("check").stderr


def test_check_with_data_but_no_shapes_is_refused(run, tmp_path):
    (tmp_path / "data.ttl").write_text("")

    assert "go together" in run("check", "--data", "data.ttl", code=2).stderr


def test_a_note_in_pages_of_several_folders_governs_the_files_of_each_folder(run, tmp_path):
    folders = ["src", "lib", ".github/workflows", ".circleci"]
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "AGENTS.md").write_text("# Rules\n\n- Run the tests before committing\n")
        (tmp_path / folder / "a.yml").write_text("a: 1\n")
    (tmp_path / "a.yml").write_text("a: 1\n")
    pages = [f"{folder}/AGENTS.md" for folder in folders]
    run("root", "import", "memory-md", *pages)
    run("access", "policy", "grant", "ana", "curator")

    run("review", "accept", "--all", "--agent", "ana")

    for folder in folders:
        governing = json.loads(run("governing", f"{folder}/a.yml", "--json").stdout)
        assert [(row["summary"], row["about"]) for row in governing["rows"]] == [
            ("Run the tests before committing", folder)
        ]
    assert json.loads(run("governing", "a.yml", "--json").stdout)["rows"] == []


def test_an_export_for_the_mcp_server_names_memories_by_their_texts_and_is_imported_elsewhere(run, tmp_path):
    first = run("remember", "We use Redis").stdout.strip()
    run("remember", "It is fast", "--about", first)
    run("edit", first, "--supersede", "We use Valkey")
    run("root", "export", "--format", "mcp-memory", "-o", "memory.jsonl")
    run("init", "--project", "q")

    run("--project", "q", "root", "import", "mcp-memory", "memory.jsonl")

    names = {json.loads(line)["name"] for line in (tmp_path / "memory.jsonl").read_text().splitlines()}
    assert names == {"p", "We use Redis"}
    assert "We use Redis (subject): Fact: It is fast" in run("--project", "q", "review").stdout
