"""The first commands of a new user: import the sources of a repository, query, and make typical mistakes."""

import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from jidomem_cli.errors import DESTRUCTIVE
from jidomem_cli.main import cli

DECISION = "# 1. {title}\n\n## Status\n\n{status}\n\n## Context\n\nSee {why}.\n\n## Decision\n\nWe do.\n"
ENTITY = {"type": "entity", "name": "Ana", "entityType": "person", "observations": ["reviews on Fridays"]}
FILES = {
    "docs/adr/0001-one-queue.md": DECISION.format(title="One queue", status="Accepted", why="`src/queue.py:12`"),
    "docs/adr/0002-no-cron.md": DECISION.format(
        title="No cron", status="Accepted", why="[the queue](../../src/queue.py)"
    ),
    "docs/adr/README.md": "# Records\n\n- one\n",
    "docs/adr/template.md": DECISION.format(title="Title", status="Proposed", why="x"),
    "CLAUDE.md": "@AGENTS.md\n",
    "AGENTS.md": "# Rules\n\n- Never edit `src/gen.py` by hand\n- Sign every commit\n",
    "web/AGENTS.md": "# Web\n\n- Components live in `ui/`, one a file\n- Always log with `log.ts`\n",
    "web/CLAUDE.md": "# Web\n\n- Components live in `ui/`, one a file\n- Always log with `log.ts`\n",
    ".cursor/rules/css.mdc": "---\nglobs: web/**/*.css,*.scss\nalwaysApply: false\n---\n- Mobile first\n",
    ".mcp.json": json.dumps({"mcpServers": {"memory": {"env": {"MEMORY_FILE_PATH": "./.notes/graph.json"}}}}),
    ".notes/graph.json": json.dumps(ENTITY) + "\n",
    ".beads/issues.jsonl": '{"id": "bd-1", "title": "Ship it", "status": "open", "issue_type": "task"}\n',
    "tests/adr/0009-a-sample.md": DECISION.format(title="A sample", status="Accepted", why="x"),
    "node_modules/x/AGENTS.md": "- Never\n",
    "memory.jsonl": "not a graph\n",
    "CLAUDE.local.md": "- my own\n",
    ".gitignore": "node_modules/\nCLAUDE.local.md\n",
    "src/queue.py": "q = []\n",
    "src/gen.py": "# made\n",
    "web/ui/a.ts": "a\n",
    "web/log.ts": "l\n",
    "web/a.css": "a {}\n",
}
SOURCES = {
    "docs/adr": ("adr", 2, 0),
    "AGENTS.md": ("memory-md", 0, 2),
    "CLAUDE.md": ("memory-md", 0, 0),
    "web/AGENTS.md": ("memory-md", 0, 2),
    ".cursor/rules/css.mdc": ("memory-md", 0, 1),
    ".notes/graph.json": ("mcp-memory", 0, 1),
    ".beads/issues.jsonl": ("beads", 0, 1),
}


def run(*words):
    """Return the result of `jidomem WORDS`."""
    return CliRunner().invoke(cli, [str(word) for word in words], prog_name="jidomem")


def write_files(folder, files, *, with_git=True):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if with_git:
        subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a repository with typical sources of memories, the working directory."""
    folder = write_files(tmp_path / "shop", FILES)
    (folder / "GEMINI.md").symlink_to("AGENTS.md")
    (tmp_path / "outside.md").write_text("- Never read this\n")
    (folder / "web" / "GEMINI.md").symlink_to(tmp_path / "outside.md")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")
    return folder


def import_from(*words, code=0):
    result = run("init", "--from", *words, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_the_sources_of_a_repository_are_found_imported_and_reported(repository):
    report = import_from("auto")

    assert {each["path"]: (each["kind"], each["taken_in"], each["waits"]) for each in report["found"]} == SOURCES
    assert (report["project"], report["refused"], report["whole"]) == ("shop", [], True)
    assert {each["path"]: each["why"] for each in report["passed"]} == {
        "GEMINI.md": "a link to AGENTS.md",
        "web/GEMINI.md": "a link out of the repository",
        "web/CLAUDE.md": "same content as web/AGENTS.md",
        "docs/adr/README.md": "an index, not a record",
        "docs/adr/template.md": "a template",
        "tests/adr/0009-a-sample.md": "in a folder of samples or third parties",
        "CLAUDE.local.md": "git ignores it, and imported memories are committed",
    }
    assert report["next"][:2] == ["jidomem recall 'One queue'", "jidomem governing src/queue.py"]
    for command in report["next"]:
        program, *words = shlex.split(command)
        exit_code = run(*words).exit_code if program == "jidomem" else subprocess.run([program, *words]).returncode
        assert exit_code == 0, command
    assert json.loads(run("review", "--json").stdout)["rows"] == []
    assert len(json.loads(run("ask", "conventions", "--json").stdout)["rows"]) == 4


def test_a_guide_for_people_is_skipped_with_the_command_that_imports_it(tmp_path, monkeypatch):
    monkeypatch.chdir(write_files(tmp_path / "shop", {"CONTRIBUTING.md": "# Rules\n\n- Never push to `main`.\n"}))
    why = "a guide for people; to import it: jidomem init --from CONTRIBUTING.md"

    report = import_from("auto")
    result = run("init", "--from", "auto")

    assert (report["found"], report["passed"]) == ([], [{"path": "CONTRIBUTING.md", "why": why}])
    assert f"skipped: CONTRIBUTING.md: {why}\n" in result.stderr
    assert run(*why.partition("jidomem ")[2].split()).exit_code == 0
    assert [each["path"] for each in import_from("auto")["found"]] == ["CONTRIBUTING.md"]
    assert import_from("auto")["passed"] == []


def test_an_imported_decision_about_the_file_of_another_has_a_warning(tmp_path, monkeypatch):
    folder = write_files(tmp_path / "shop", {"src/store.py": "x = 1\n"})
    monkeypatch.chdir(folder)
    first, second = (
        DECISION.format(title=title, status="Accepted", why="`src/store.py`")
        for title in ("Do not use an ORM", "Use an ORM")
    )
    write_files(folder, {"docs/adr/0001-no-orm.md": first}, with_git=False)
    assert import_from("auto")["notes"] == []
    write_files(folder, {"docs/adr/0002-orm.md": second}, with_git=False)

    result = run("init", "--from", "auto")
    (new, old) = (row["decision"] for row in json.loads(run("ask", "decisions", "--json").stdout)["rows"])
    if "Do not" in run("show", new).stdout:
        new, old = old, new

    assert (
        f"docs/adr/0002-orm.md: warning: {old[-8:]} is an active decision about src/store.py too: Do not use an ORM;"
        f" if yours takes its place: jidomem review supersede {new[-8:]} --against {old[-8:]}"
        ' --reason "SAY WHY";'
    ) in result.stderr
    assert import_from("auto")["notes"] == []
    assert run("review", "supersede", new, "--against", old).exit_code == 0


def test_the_suggested_file_is_source_code_with_a_governing_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    record = DECISION.format(
        title="One map", status="Accepted", why="See ![the map](map.png), `notes.md` and `infra/`."
    )
    files = {"docs/adr/0001-map.md": record, "docs/adr/map.png": "x", "docs/adr/notes.md": "x", "infra/logo.svg": "x",
             "infra/a.tf": "x", "b.py": "x"}  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    report = import_from("auto")

    assert "jidomem governing infra/a.tf" in report["next"]
    assert "One map" in run("governing", "infra/a.tf").stdout


def test_a_second_import_adds_only_new_entries(repository):
    import_from("auto")
    second = import_from("auto")
    (repository / "AGENTS.md").write_text(FILES["AGENTS.md"] + "- Run the linter\n")
    (repository / "docs/adr/0003-one-log.md").write_text(DECISION.format(title="One log", status="Accepted", why="x"))
    changed = import_from("auto")

    def new(report):
        return {
            each["path"]: (each["taken_in"], each["waits"])
            for each in report["found"]
            if each["taken_in"] + each["waits"]
        }

    assert new(second) == {}
    assert {each["path"]: each["here_already"] for each in second["found"]} == {
        path: asserted + pending for path, (_, asserted, pending) in SOURCES.items()
    }
    assert new(changed) == {"docs/adr": (1, 0), "AGENTS.md": (0, 1)}


def test_a_dry_run_reports_the_same_and_writes_nothing(repository):
    dry = import_from("auto", "--dry-run")

    assert not (repository / ".jidomem").exists()
    assert {each["path"]: (each["kind"], each["taken_in"], each["waits"]) for each in dry["found"]} == SOURCES
    import_from("adr")
    before = sorted(path for path in (repository / ".jidomem").rglob("*.ttl"))
    assert import_from("auto", "--dry-run")["found"][0]["here_already"] == 2
    assert sorted((repository / ".jidomem").rglob("*.ttl")) == before


def test_an_import_check_exits_with_1_if_memory_and_sources_differ_and_writes_nothing(repository):
    def check(*words):
        result = run("root", "import", "--check", *words, "--json")
        return result.exit_code, json.loads(result.stdout)

    assert run("root", "import", "--check").exit_code == 3  # without a memory
    import_from("auto")
    assert (check()[0], check("adr", "CLAUDE.md")[0]) == (0, 0)

    queue = repository / "docs/adr/0001-one-queue.md"
    queue.write_text(queue.read_text().replace("Accepted", "Deprecated"))
    (repository / "docs/adr/0002-no-cron.md").unlink()
    (repository / "docs/adr/0003-one-log.md").write_text(DECISION.format(title="One log", status="Accepted", why="x"))
    before = sorted((repository / ".jidomem").rglob("*.ttl"))
    code, report = check()

    assert (code, report["equal"], sorted((repository / ".jidomem").rglob("*.ttl")) == before) == (1, False, True)
    assert [(each["change"], each["path"]) for each in report["differences"]] == [
        ("added", "docs/adr/0003-one-log.md"),
        ("changed", "docs/adr/0001-one-queue.md"),
        ("removed", "docs/adr/0002-no-cron.md"),
    ]
    assert (check("memory-md")[0], check("docs/adr")[0]) == (0, 1)
    output = run("root", "import", "--check")
    assert (output.exit_code, "1 added, 1 changed, 1 removed" in output.stderr) == (1, True)
    dry = import_from("auto", "--dry-run")
    assert [each["change"] for each in dry["changes"] if each["kind"] == "adr"].count("unchanged") == 0
    assert {each["change"] for each in dry["changes"]} == {"added", "changed", "removed", "unchanged"}
    assert check()[0] == 1
    import_from("auto")
    code, report = check()  # the withdrawal is pending
    (pending,) = report["differences"]
    assert (code, report["equal"], report["pending"]) == (1, False, 1)
    assert (pending["change"], pending["path"]) == ("removed", "docs/adr/0002-no-cron.md")
    assert (check("docs/adr")[0], check("memory-md")[0]) == (1, 0)
    output = run("root", "import", "--check").stderr
    assert "1 change is pending review" in output
    assert f"jidomem review accept {pending['proposal'][-8:]}" in output
    assert run("review", "reject", pending["proposal"], "--reason", "it holds").exit_code == 0
    assert check()[0] == 0


def test_new_pending_notes_are_counted_and_are_no_difference(repository):
    import_from("auto")

    result = run("root", "import", "--check")
    report = json.loads(run("root", "import", "--check", "--json").stdout)

    assert (result.exit_code, report["equal"], report["pending"]) == (0, True, 0)
    assert report["unreviewed"] > 0
    assert (
        f"{report['unreviewed']} new memories are pending review, which does not count as a difference" in result.stderr
    )


def test_check_names_the_import_for_a_changed_record_and_the_proposal_for_a_removed_one(repository):
    def findings():
        return [each["message"] for each in json.loads(run("check", "--format", "json").stdout)["problems"]]

    import_from("auto")
    queue = repository / "docs/adr/0001-one-queue.md"
    queue.write_text(queue.read_text().replace("Accepted", "Deprecated"))
    (repository / "docs/adr/0002-no-cron.md").unlink()
    changed, removed = sorted(each for each in findings() if "docs/adr" in each)
    assert "0001-one-queue.md is changed: import it again: jidomem init --from auto" in changed
    assert removed.endswith("0002-no-cron.md is gone: import it again: jidomem init --from auto")

    import_from("auto")
    (proposal,) = (
        row["proposal"] for row in json.loads(run("root", "import", "--check", "--json").stdout)["differences"]
    )
    (removed,) = (each for each in findings() if "docs/adr" in each)
    assert f"pending review: jidomem show {proposal[-8:]}, then: jidomem review accept {proposal[-8:]}" in removed

    run("review", "reject", proposal, "--reason", "it holds")
    (removed,) = (each for each in findings() if "docs/adr" in each)
    command = removed.partition("its withdrawal was rejected: if it still holds, jidomem ")[2]
    assert run(*command.split()).exit_code == 0
    assert [each for each in findings() if "docs/adr" in each] == []
    assert run("root", "import", "--check").exit_code == 0


def test_a_second_init_names_a_changed_status_and_a_removed_record(repository):
    import_from("auto")
    run("init")
    subprocess.run(["git", "add", "docs"], check=True)
    queue = repository / "docs/adr/0001-one-queue.md"
    queue.write_text(queue.read_text().replace("Accepted", "Deprecated"))
    (repository / "docs/adr/0002-no-cron.md").unlink()

    output = run("init", "--from", "auto").stderr

    assert "changed: docs/adr/0001-one-queue.md: One queue; accepted → deprecated" in output
    assert [line for line in output.splitlines() if "0002" in line] == ["removed: docs/adr/0002-no-cron.md: No cron"]
    assert "nothing changed" not in output
    assert "none" in run("review", "--conflicts").stderr


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        (["adr"], ["docs/adr"]),
        (
            ["memory-md", "beads"],
            [".cursor/rules/css.mdc", "AGENTS.md", "CLAUDE.md", "web/AGENTS.md", ".beads/issues.jsonl"],
        ),
        (["tests/adr"], ["tests/adr"]),
        (["CLAUDE.local.md"], ["CLAUDE.local.md"]),
        (["docs/adr/0001-one-queue.md"], ["docs/adr"]),
        ([".notes/graph.json"], [".notes/graph.json"]),
    ],
)
def test_an_import_source_is_a_kind_a_folder_or_a_file(repository, words, paths):
    report = import_from(*[part for word in words for part in ("--from", word)][1:])

    assert [each["path"] for each in report["found"]] == paths
    assert all(each["taken_in"] + each["waits"] or each["path"] == "CLAUDE.md" for each in report["found"])


def test_records_and_notes_govern_the_files_they_name(repository):
    import_from("auto")

    def governing(path, *words):
        return {
            row["summary"]: row["about"] for row in json.loads(run("governing", path, "--json", *words).stdout)["rows"]
        }

    assert governing("src/queue.py") == {"One queue": "src/queue.py", "No cron": "src/queue.py"}
    assert governing("web/log.ts") == {}
    pending = run("governing", "web/log.ts")
    (line,) = [line for line in pending.stderr.splitlines() if "pending proposals about" in line]
    assert line == "pending proposals about this, not active until accepted: 2"
    assert "pending proposals of the project: 7, see: jidomem review\n" in pending.stderr
    words = r"convention: Always log with `log.ts`\n.*fact: Components live in `ui/`, one a file\n"
    assert re.search(words, pending.stderr)
    assert "convention: Mobile first" in run("governing", "web/a.css").stderr
    assert len(json.loads(run("governing", "web/log.ts", "--json").stdout)["proposals"]) == 2
    assert run("governing", "web/a.css", "-q").stderr == ""

    assert run("access", "policy", "grant", "ana", "curator").exit_code == 0
    assert run("review", "accept", "--all").exit_code == 0

    assert governing("web/log.ts") == {
        "Always log with `log.ts`": "web/log.ts"
    }  # rules for all files are in the briefing
    assert "Sign every commit" in run("agent", "briefing").stdout
    assert governing("src/gen.py")["Never edit `src/gen.py` by hand"] == "src/gen.py"
    assert "Mobile first" in governing("web/a.css")
    assert "related, not binding: 1\n" in run("governing", "web/ui/a.ts").stdout
    (related,) = json.loads(run("governing", "web/ui/a.ts", "--json").stdout)["related"]
    assert (related["kind"], related["summary"]) == ("fact", "Components live in `ui/`, one a file")


def test_the_parts_of_a_page_left_out_are_listed_by_line_with_verbose(repository):
    (repository / "AGENTS.md").write_text(
        "# Rules\n\n- Never push\n\n| changed | checks |\n|---|---|\n| Go | `make lint` |\n\n```\nx = 1\n```\n"
    )
    parts = ["1: left out: is a heading", "5: left out: is a table", "9: left out: is code"]

    for words in (
        ("init", "--from", "AGENTS.md", "--dry-run"),
        ("root", "import", "memory-md", "AGENTS.md", "--dry-run"),
    ):
        verbose, plain = run("-v", *words).stderr.splitlines(), run(*words).stderr

        assert [line for line in verbose if "left out: " in line] == [f"AGENTS.md:{part}" for part in parts]
        assert "left out: " not in plain
        assert "1 left out (is a table)" in plain


def test_the_pending_column_counts_undecided_proposals_of_earlier_imports(repository):
    (repository / "AGENTS.md").write_text("# Rules\n\n- Never push\n- Sign each commit\n")

    def pending():
        (row,) = [
            line.split() for line in run("init", "--from", "AGENTS.md").stdout.splitlines() if "AGENTS.md" in line
        ]
        return row[-1]

    assert [pending(), pending()] == ["2", "2"]
    assert run("review", "reject", "AGENTS.md:3", "--reason", "we do push").exit_code == 0
    assert pending() == "1"
    run("access", "policy", "grant", "ana", "admin")
    assert run("review", "accept", "AGENTS.md:4").exit_code == 0
    assert pending() == "-"


def test_a_file_without_governing_memories_reports_pending_proposals_and_conventions(repository):
    import_from("auto")
    (repository / "other.txt").write_text("x")

    pending = run("governing", "other.txt").stderr.splitlines()
    run("access", "policy", "grant", "ana", "curator")
    run("review", "accept", "--all")
    accepted = run("governing", "other.txt").stderr.splitlines()
    rows = json.loads(run("ask", "conventions", "--json").stdout)["rows"]

    assert pending[:2] == ["none", "pending proposals: 7, none about this; see: jidomem review"]
    assert f"none about this alone; conventions of the project: {len(rows)}, see: jidomem ask conventions" in accepted
    answer = json.loads(run("governing", "other.txt", "--json").stdout)
    assert answer["whole_project"] == {"conventions": len(rows), "query": "conventions"}
    assert json.loads(run("governing", "src/queue.py", "--json").stdout)["whole_project"] is None


def test_a_note_governs_the_files_of_its_pattern_or_path(repository):
    (repository / "src" / "api.pb.go").write_text("package api\n")
    (repository / "AGENTS.md").write_text(
        "# Rules\n\n- Never edit `*.pb.go` by hand\n- Never run `src/queue.py` as root\n- Never trust `*.example.com`\n"
    )
    import_from("AGENTS.md")
    run("access", "policy", "grant", "ana", "curator")
    run("review", "accept", "--all")

    def governing(path):
        return {row["summary"]: row["about"] for row in json.loads(run("governing", path, "--json").stdout)["rows"]}

    assert governing("src/api.pb.go") == {"Never edit `*.pb.go` by hand": "**/*.pb.go"}
    assert governing("src/queue.py") == {"Never run `src/queue.py` as root": "src/queue.py"}
    hits = json.loads(run("recall", "never", "--json").stdout)["entries"]
    assert sorted(place for each in hits for place in each["metadata"]["about"]) == ["**/*.pb.go", "src/queue.py"]


@pytest.mark.parametrize("columns", ["60", "80", "160"])
def test_a_short_memory_cut_in_the_table_is_printed_completely_below(repository, monkeypatch, columns):
    text = "Pull requests and commits: " + "Do not commit, push, rebase, or open a pull request unless asked. " * 2
    run("remember", text.strip(), "--type", "convention", "--about", "src/queue.py")
    monkeypatch.setenv("COLUMNS", columns)

    for words in (("recall", "pull request"), ("governing", "src/queue.py")):
        assert text.strip() in " ".join(run(*words).stdout.split())


def test_a_briefing_shows_the_day_of_a_decision_and_marks_imported_memories(repository):
    record = "# One pool\n\nDate: 2020-07-09\n\n## Status\n\nAccepted\n\n## Decision\n\nUse one pool.\n"
    (repository / "docs/adr/0007-one-pool.md").write_text(record)
    (repository / "CLAUDE.md").write_text("- Never push\n")
    import_from("auto")
    run("access", "policy", "grant", "ana", "curator")
    run("review", "accept", "--all")
    run("remember", "Two pools", "--type", "decision", "--rationale", "fast", "--timestamp", "2021-03-04")

    lines = run("agent", "briefing").stdout.splitlines()

    def end(words):
        return next(line for line in lines if words in line).rpartition(" (")[2]

    assert end("One pool") == "imported, 2020-07-09)"
    assert end("Never push") == "imported)"
    assert end("Two pools").startswith("ana, 2021-03-04")


def test_only_the_newest_version_of_a_changed_pending_note_is_pending(repository):
    import_from("AGENTS.md")
    run("access", "policy", "grant", "ana", "curator")
    for text in ("Sign every commit with gpg", "Sign every commit with an ssh key"):
        (repository / "AGENTS.md").write_text(FILES["AGENTS.md"].replace("Sign every commit", text))
        import_from("AGENTS.md")

    accepted = run("review", "accept", "--all")

    assert (accepted.exit_code, "newer version" in accepted.stderr) == (0, False)
    names = {row["name"] for row in json.loads(run("ask", "conventions", "--json").stdout)["rows"]}
    assert names == {"Never edit `src/gen.py` by hand", "Sign every commit with an ssh key"}
    assert json.loads(run("review", "--json").stdout)["rows"] == []


def test_memories_recorded_before_init_are_moved_by_the_commands_that_init_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(write_files(tmp_path / "shop", {"a.py": "a\n"}))
    assert run("remember", "CI runs on ARM").exit_code == 0

    message = run("init").stderr
    for command in re.findall(r"^  jidomem (.+)$", message, re.MULTILINE):
        assert run(*shlex.split(command)).exit_code == 0

    assert "CI runs on ARM" in run("ask", "facts").stdout
    assert "in your own memory" not in run("init").stderr


def test_without_git_the_same_sources_are_found(tmp_path, monkeypatch):
    folder = write_files(tmp_path / "shop", FILES, with_git=False)
    monkeypatch.chdir(folder)

    report = import_from("auto")

    assert {each["path"] for each in report["found"]} == SOURCES.keys() | {"memory.jsonl"} - {"memory.jsonl"}
    assert "git add .jidomem" not in report["next"]


def test_a_refused_entry_stops_no_other_and_is_reported_with_its_place(repository):
    (repository / ".beads/issues.jsonl").write_text('{"id": "bd-1"}\n{"id": "bd-2", "title": "T", "status": "open"}\n')

    report = import_from("beads", code=2)

    assert [(each["place"], each["code"]) for each in report["refused"]] == [
        (".beads/issues.jsonl:1", "invalid_argument")
    ]
    assert report["found"][0]["waits"] == 1


def test_an_unreadable_record_is_refused_and_the_others_are_imported(repository):
    (repository / "docs/adr/0003-size.md").write_bytes(FILES["docs/adr/0001-one-queue.md"].encode() + b"Gr\xf6\xdfe\n")

    report = import_from("adr", code=2)

    assert [(each["place"], each["detail"].split(";")[0]) for each in report["refused"]] == [
        ("docs/adr/0003-size.md", "not UTF-8 at byte 95")
    ]
    assert (report["found"][0]["taken_in"], report["found"][0]["refused"]) == (2, 1)
    second = run("root", "import", "adr", *sorted((repository / "docs/adr").glob("0*.md")))
    assert second.exit_code == 2
    assert "0 added, 2 unchanged, 1 refused" in second.stderr


def test_a_full_disk_is_reported_once(tmp_path):
    (tmp_path / "AGENTS.md").write_text("# Rules\n\n" + "".join(f"- Never do thing {n}\n" for n in range(40)))
    full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))}  # like a full disk
    full["env"] = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # or compiled modules are cut, too
    command = [str(Path(sys.executable).parent / "jidomem"), "init", "--from", "auto"]

    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, **full)

    assert result.returncode == 1
    assert result.stderr.count("the journal could not be written, nothing was stored") == 1
    assert "refused for that reason" not in result.stderr


def test_unusable_file_names_are_reported_and_stop_no_import(repository):
    record = FILES["docs/adr/0001-one-queue.md"]
    (repository / "docs/adr/0003-\x1b[31m\n.md").write_text(record)
    (repository / os.fsdecode(b"docs/adr/0004-\xff.md")).write_text(record)
    (repository / ".mcp.json").write_text(r'{"env": {"MEMORY_FILE_PATH": "C:\data\memory.jsonl"}}')

    report, by_folder = import_from("adr", "--from", "mcp-memory"), import_from("docs/adr")

    assert (report["found"][0]["taken_in"], by_folder["found"][0]["here_already"]) == (2, 2)
    unnamed = [each["path"] for each in by_folder["passed"] if "rename it" in each["why"]]
    assert unnamed == [r"docs/adr/0003-\x1b[31m\n.md", r"docs/adr/0004-\udcff.md"]


#: A mistake -> the working directory, the command, its exit code, its message, and the command in the hint.
MISTAKES = {
    "no memory yet": ("empty", "ask decisions", 4, "there is no memory in this folder or above it", "jidomem init"),
    "asking before anything is there": (
        "empty",
        "governing a.py",
        4,
        "there is no memory in this folder or above it",
        "jidomem init",
    ),
    "a second kind without its option": (
        "shop",
        "init --from adr beads",
        2,
        "no such folder",
        "jidomem init --from adr --from beads",
    ),
    "a misspelt verb": ("shop", "stauts", 2, "no such command: stauts", "jidomem status"),
    "list": ("shop", "list", 2, "no such command: list", "jidomem ask timeline"),
    "search": ("shop", "search queue", 2, "no such command: search", 'jidomem recall "a question"'),
    "update": ("shop", "update", 2, "no such command: update", "jidomem edit --help"),
    "revoke": (
        "shop",
        "access policy revoke ana",
        2,
        "no such command: revoke",
        "jidomem access policy grant AGENT agent",
    ),
    "a former command": ("shop", "log", 2, "no such command: log", "jidomem journal log"),
    "add": ("shop", "add x", 2, "no such command: add", 'jidomem remember "the build needs Rust 1.80"'),
    "delete": ("shop", "delete x", 2, "no such command: delete", "jidomem edit --help"),
    "whoami": ("shop", "whoami", 2, "no such command: whoami", "jidomem status"),
    "blame": ("shop", "blame src/queue.py", 2, "no such command: blame", "jidomem governing README.md"),
    "decide": ("shop", "decide x", 2, "no such command: decide", "jidomem remember --help"),
    "context": ("shop", "context", 2, "no such command: context", "jidomem agent briefing"),
    "docs": ("shop", "docs", 2, "no such command: docs", "jidomem --help"),
    "a parameter that other questions take": (
        "shop",
        "ask tasks --agent ana",
        2,
        "open-tasks takes no --agent",
        None,
    ),
    "a question about a file": ("shop", "ask tasks --about a.py", 2, "open-tasks takes no --about", None),
    "a prefix that is not declared": (
        "shop",
        "ask --sparql 'SELECT ?s { ?s a jido:Task }'",
        2,
        "line 1 column 27: a prefix is not declared",
        None,
    ),
    "a restore without a root": (
        "shop",
        "root restore backup.tar",
        2,
        "a restore needs the root to fill: give --root",
        "jidomem root restore --help",
    ),
    "help": ("shop", "help", 2, "no such command: help", "jidomem --help"),
    "version": ("shop", "version", 2, "no such command: version", "jidomem --version"),
    "a misspelt expected word": ("shop", "serch", 2, "no such command: serch", 'jidomem recall "a question"'),
    "no such verb": ("shop", "frobnicate", 2, "no such command: frobnicate", "jidomem --help"),
    "a verb without its second word": (
        "shop",
        "journal",
        2,
        "jidomem journal needs a command: log, diff,",
        "jidomem journal --help",
    ),
    "a misspelt second word": ("shop", "journal lgo", 2, "no such command: lgo", "jidomem journal log"),
    "remember without a text": (
        "shop",
        "remember",
        2,
        "Missing argument",
        'jidomem remember "the build needs Rust 1.80"',
    ),
    "remember an empty text": (
        "shop",
        "remember ''",
        3,
        "summary is missing",
        'jidomem remember "the build needs Rust 1.80"',
    ),
    "a text without quotes": (
        "shop",
        "remember the build needs Rust",
        2,
        "unexpected extra arguments",
        'jidomem remember "the build needs Rust 1.80"',
    ),
    "an option for a list": ("shop", "remember x --sinc y", 2, "No such option '--sinc'\n", "jidomem remember --help"),
    "a withdrawal by another name": ("shop", "edit x --withdraw", 2, "did you mean '--invalidate'?", None),
    "a deletion": ("shop", "edit x --delete", 2, "did you mean '--invalidate'?", None),
    "a revision that git does not know": (
        "shop",
        "journal diff --since 3",
        2,
        "git knows no revision '3'",
        None,
    ),
    "a value without a parameter": ("shop", "ask history 1a2b3c4d", 2, "'1a2b3c4d' is not a", "item=1a2b3c4d"),
    "a rollback to a word": ("shop", "journal rollback --to soon --reason x", 2, "--to 2026-11-17", None),
    "an option of another tool": (
        "shop",
        "remember x --tags y",
        2,
        "did you mean '--topic'?",
        "jidomem remember --help",
    ),
    "no confidence": ("shop", "remember x --confidence hgih", 3, "not 'hgih'", None),
    "a day of another calendar": (
        "shop",
        "ask facts --as-of 21.11.2026",
        2,
        "is not a date or time",
        None,
    ),
    "a day that does not exist": ("shop", "ask facts --as-of 2026-11-31", 2, "November 2026 has 30 days", None),
    "a query from a missing file": ("shop", "ask --sparql nope.rq", 2, "there is no file nope.rq", None),
    "governing without a path": ("shop", "governing", 2, "Missing argument", "jidomem governing README.md"),
    "a misspelt question": ("shop", "ask decisons", 4, "there is no query 'decisons'", None),
    "an unknown question": ("shop", "ask xyzzy", 4, "there is no query 'xyzzy'", "jidomem ask"),
    "an unknown memory": ("shop", "show 12345678", 4, "shop has no memory '12345678'", None),
    "an unknown project": ("shop", "ask facts --project shpo", 4, "no project 'shpo'", None),
    "no project id": ("empty", "init --project 'My Shop'", 4, "is not a project id", "jidomem init --project my-shop"),
    "the home folder": (
        "home",
        "init --from auto",
        2,
        "is not a repository: all folders below it would share one memory",
        None,
    ),
    "a file that is not there": (
        "shop",
        "root import adr nope.md",
        2,
        "'nope.md' does not exist",
        "jidomem root import adr --help",
    ),
    "a source that is none": ("shop", "init --from nope", 2, "none of auto, adr,", "jidomem init --from auto"),
    "a source elsewhere": ("shop", "init --from ../empty", 2, "is outside", None),
    "a dry run of nothing": (
        "empty",
        "init --dry-run",
        2,
        "--dry-run is for an import",
        "jidomem init --from auto --dry-run",
    ),
    "the root of another": ("shop", "init . --root x", 2, "--root and FOLDER exclude each other", "jidomem init ."),
    "nobody may judge": (
        "shop",
        "review accept --all",
        3,
        "the project has no curator",
        "jidomem access policy grant ana admin",
    ),
    "accept what": ("shop", "review accept", 2, "choose one: ACTION IRI", None),
    "a client that is none": ("shop", "setup claud", 2, "'claud' is not one of", "jidomem setup --help"),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Return the parent folder of a repository with imported sources, one without a memory, and a home folder."""
    base = tmp_path_factory.mktemp("places")
    write_files(base / "shop", FILES)
    write_files(base / "empty", {"a.py": "a\n"})
    (base / "home").mkdir()
    assert run("init", base / "shop", "--from", "auto", "-q").exit_code == 0
    return base


@pytest.mark.parametrize("word", ["redct", "rollbck", "migrte", "restor", "revise", "revok"])
def test_no_misspelt_word_suggests_a_destructive_verb(word):
    refused = run(word)

    assert refused.exit_code == 2
    assert not [verb for verb in DESTRUCTIVE if re.search(rf"\b{verb}\b", refused.stderr)], refused.stderr


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_with_a_helpful_command(mistake, places, monkeypatch):
    place, words, code, message, command = MISTAKES[mistake]
    monkeypatch.chdir(places / place)
    monkeypatch.setenv("HOME", str(places / "home"))
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")

    result = run(*shlex.split(words))

    assert (result.exit_code, message in result.stderr) == (code, True), result.output
    hint = result.stderr.partition("hint: ")[2]
    assert hint
    if command is not None:
        assert command in hint
        assert run(*shlex.split(command)[1:]).exit_code == 0, command
        if command.startswith("jidomem init"):
            shutil.rmtree(places / "empty" / ".jidomem", ignore_errors=True)


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.chdir(tmp_path)

    refused = run("init", "file/below")

    assert refused.exit_code in (1, 2)
    assert "file" in refused.stderr
    assert "jidomem init" in refused.stderr


def test_a_memory_below_another_memory_or_below_the_repository_folder_has_a_warning(repository):
    below = run("init", "web")
    shutil.rmtree("web/.jidomem")
    assert run("init").exit_code == 0
    nested = run("init", "web")
    command = nested.stderr.partition("instead of that of ")[2].partition(": ")[2].splitlines()[0]

    assert f"for the whole repository: jidomem init {repository}" in below.stderr
    assert "this folder now has its own memory" in nested.stderr
    assert subprocess.run(shlex.split(command)).returncode == 0
    assert not (repository / "web" / ".jidomem").exists()


def test_an_empty_memory_prints_how_to_begin(tmp_path, monkeypatch):
    folder = write_files(tmp_path / "new", {"a.py": "a\n"})
    monkeypatch.chdir(folder)
    result = run("init", "--from", "auto")

    assert "found no decision records, notes for agents" in result.stderr
    assert "records elsewhere? jidomem init --from PATH\n" in result.stderr
    assert "no memories yet\n" in run("status").stdout
    for words in ("ask facts", "ask decisions", "governing a.py", "recall rust"):
        assert "there are no memories yet" in run(*words.split()).stderr
        assert "jidomem init --from auto\n" in run(*words.split()).stderr


def test_pending_proposals_are_reported_if_nothing_is_active(repository):
    import_from("memory-md")

    assert "none active; pending proposals: 4, see: jidomem review" in run("ask", "conventions").stderr
    assert run("ask", "errors").stderr == run("ask", "errors", "--include-inactive").stderr == "none\n"


def test_ask_decisions_lists_decisions_of_every_kind(repository):
    run("init", "--project", "p")
    run("remember", "x", "--type", "decision", "--rationale", "y")
    run("remember", "Use Oxigraph", "--type", "architectural_decision", "--rationale", "y")

    def listed(*options):
        return {row["summary"] for row in json.loads(run("ask", "decisions", "--json", *options).stdout)["rows"]}

    assert listed() == {"x", "Use Oxigraph"}
    assert listed("--limit", "1") < listed()
    assert listed("--as-of", "2020-01-01") == listed("--status", "rejected") == set()
    assert all(summary in run("ask", "decisions").stdout for summary in listed())


def test_init_without_a_source_lists_the_importable_sources(repository):
    result = run("init")
    report = json.loads(run("init", "--json").stdout)

    assert "found, and not imported: decision records in docs/adr (2), notes for agents in" in result.stderr
    assert "jidomem init --from auto --dry-run" in result.stderr
    assert report["importable"][0] == "decision records in docs/adr (2)"
    assert run("ask", "recent-decisions", "--format", "jsonl").stdout == ""
