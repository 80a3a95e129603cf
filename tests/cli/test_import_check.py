"""`jidomem root import --check` lists differences of memory and sources, and fails only for a changed source."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from cli_world import rows, run

RECORD = "# {title}\n\n## Status\n\nAccepted\n\n## Context\n\nBursts.\n\n## Decision\n\nWe do.\n"
QUEUE, LOG = "docs/adr/0001-use-a-queue.md", "docs/adr/0002-use-a-log.md"
AGREEMENT = "memory and sources agree"


@pytest.fixture
def write(tmp_path, monkeypatch, copy_built):
    """Return a function that writes a file in a repository with two imported records; its only agent is a curator."""
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")

    def build(folder):
        subprocess.run(["git", "init", "-q", folder], check=True)
        monkeypatch.chdir(folder)
        write(QUEUE, RECORD.format(title="Use a queue"))
        write(LOG, RECORD.format(title="Use a log"))
        succeed("init", "--from", "auto")
        succeed("access", "policy", "grant", "ana", "curator")

    def write(path, text):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)

    copy_built(build, tmp_path)
    monkeypatch.chdir(tmp_path)
    return write


def succeed(*words):
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result


def accept_all():
    succeed("review", "accept", "--all")


def check_import(code, *words):
    """Return the message and the JSON object of the check; both have the exit code *code*."""
    text, report = run("root", "import", "--check", *words), run("root", "import", "--check", *words, "--json")
    assert (text.exit_code, report.exit_code) == (code, code), text.output
    return text.stderr, json.loads(report.stdout)


@pytest.mark.parametrize(
    ("words", "change"),
    [
        (("edit", "0002", "--invalidate", "--reason", "wrong"), "withdrawn"),
        (("edit", "0002", "--set", "rationale=Other reasons.", "--reason", "clearer"), "edited"),
        (("remember", "Use a table", "--type", "decision", "--rationale", "r", "--supersedes", "0002"), "superseded"),
    ],
)
def test_a_memory_changed_by_hand_is_listed_and_does_not_fail_the_import_check(write, words, change):
    assert AGREEMENT in check_import(0)[0]
    succeed(*words)

    text, report = check_import(0)

    assert AGREEMENT not in text
    assert f"1 memory was changed here since the import: {LOG} ({change})" in text
    assert (report["equal"], report["differences"]) == (False, [])
    assert [(row["change"], row["path"]) for row in report["changed_here"]] == [(change, LOG)]
    succeed("init", "--from", "auto")
    assert check_import(0) == (text, report)

    write(LOG, RECORD.format(title="Use a log").replace("Bursts", "Crashes"))
    assert check_import(1)[1]["changed_here"] == []


NOTE = "Sign every commit with a key"


def convention(ending):
    """Return the IRI of the active convention with this end of its text."""
    return next(row["conv"] for row in rows("ask", "conventions") if row["name"].endswith(ending))


def accepted_note(write):
    """Return the IRI of the convention of an accepted note."""
    write("CLAUDE.md", f"# Rules\n\n- {NOTE}\n- Never edit generated files\n")
    succeed("init", "--from", "auto")
    accept_all()
    return convention(NOTE)


def test_an_undone_acceptance_of_a_note_is_a_local_decision_and_no_difference(write):
    succeed("edit", accepted_note(write), "--undo", "--reason", "too strict")

    text, report = check_import(0)

    assert "1 memory was changed here since the import: CLAUDE.md:3 (withdrawn)" in text
    assert report["differences"] == []
    write("CLAUDE.md", f"# Rules\n\n- {NOTE} of yours\n- Never edit generated files\n")
    assert [row["path"] for row in check_import(1)[1]["differences"]] == ["CLAUDE.md"]


def test_a_pending_edit_is_no_difference_and_a_change_of_the_source_is_one(write):
    note = accepted_note(write)
    succeed("edit", note, "--agent", "ben", "--set", "summary=Sign each commit", "--reason", "shorter")
    assert check_import(0)[1]["differences"] == []

    write("CLAUDE.md", f"# Rules\n\n- {NOTE} of yours\n- Never edit generated files\n")
    succeed("init", "--from", "auto")
    text, report = check_import(1)
    assert [row["path"] for row in report["differences"]] == ["CLAUDE.md"]
    assert "pending review by a curator (ana): jidomem show" in text
    annotation = run("root", "import", "--check", "--format", "github").stdout
    assert "pending review by a curator (ana): jidomem review" in annotation


def test_an_undone_acceptance_of_a_changed_note_is_pending_again(write):
    accepted_note(write)
    write("CLAUDE.md", f"# Rules\n\n- {NOTE} of yours\n- Never edit generated files\n")
    succeed("init", "--from", "auto")
    accept_all()
    assert check_import(0)[1]["differences"] == []

    succeed("edit", convention("yours"), "--undo", "--reason", "too strict")

    assert [row["path"] for row in check_import(1)[1]["differences"]] == ["CLAUDE.md"]


def test_an_undone_change_of_a_record_is_a_local_decision_that_an_import_keeps(write):
    write(LOG, RECORD.format(title="Use a log").replace("Bursts", "Crashes"))
    succeed("init", "--from", "auto")
    succeed("edit", "0002", "--undo", "--reason", "the first reason holds")

    report = check_import(0)[1]

    assert [(row["change"], row["path"]) for row in report["changed_here"]] == [("rejected", LOG)]
    succeed("init", "--from", "auto")
    assert check_import(0)[1] == report
    assert "Bursts" in run("show", "0002").stdout
    write(LOG, RECORD.format(title="Use a log").replace("Bursts", "Failures"))
    assert [row["path"] for row in check_import(1)[1]["differences"]] == [LOG]


def test_a_rejected_text_and_a_source_with_a_rejected_removal_are_listed(write, tmp_path):
    write("CLAUDE.md", "# Rules\n\n- Sign every commit with a key\n- Never edit generated files\n")
    succeed("init", "--from", "auto")
    accept_all()
    assert AGREEMENT in check_import(0)[0]

    write("CLAUDE.md", "# Rules\n\n- Sign every commit with two keys\n")
    succeed("init", "--from", "auto")
    assert len(check_import(1)[1]["differences"]) == 2
    for row in json.loads(run("review", "--json").stdout)["rows"]:
        succeed("review", "reject", row["item"], "--reason", "no")

    text, report = check_import(0)

    assert {row["change"] for row in report["changed_here"]} == {"rejected", "retained"}
    assert AGREEMENT not in text
    assert "CLAUDE.md:3 (rejected)" in text


@pytest.mark.parametrize(("kind", "path"), [("memory-md", "docs/jobs.md"), ("memory-md", "tests/fixtures/a/x.md")])
def test_a_file_imported_by_name_is_a_source_of_later_checks_and_imports(write, kind, path):
    write(path, "# Jobs\n\nNever run two jobs at once.\n\n## Decision\n\nWorkers must retry.\n")
    succeed("root", "import", kind, path)
    accept_all()
    assert AGREEMENT in check_import(0)[0]
    write(path, "# Jobs\n\nNever run three jobs at once.\n\n## Decision\n\nWorkers must retry.\n")

    for words in ((), (kind,), (path,), ("docs" if path.startswith("docs") else "tests",)):
        (row,) = check_import(1, *words)[1]["differences"]
        assert (row["change"], row["kind"], row["path"]) == ("changed", kind, path)
    assert check_import(0, "adr")[1]["differences"] == []

    assert f"skipped: {path}" not in succeed("init", "--from", "auto").output
    accept_all()
    assert AGREEMENT in check_import(0)[0]


def test_a_file_from_another_folder_is_not_confused_with_a_repository_file_of_the_same_name(write, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "README.md"
    elsewhere.write_text("- Never run two jobs at once.\n")
    write("README.md", "- Welcome readers must be greeted.\n")
    succeed("root", "import", "memory-md", elsewhere)
    accept_all()

    assert AGREEMENT in check_import(0)[0]
    assert check_import(0)[1]["counts"]["unchanged"] == 2


def test_the_differences_are_printed_as_github_workflow_commands(write):
    succeed("edit", "0002", "--invalidate", "--reason", "wrong")
    write("CLAUDE.md", "# Rules\n\n- Sign every commit\n")

    result = run("root", "import", "--check", "--format", "github")

    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "::error file=CLAUDE.md,line=3,title=import-check::"
        "added in the source, and not imported: jidomem init --from auto%0ASign every commit",
        f"::notice file={LOG},title=import-check::"
        "withdrawn in memory since the import, so memory and source differ%0AUse a log",
    ]
    assert "memory and sources differ: 1 added" in result.stderr


TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize("part", ["context", "title"])
def test_a_secret_in_a_record_is_located_by_file_and_line_and_not_printed(write, part):
    text = RECORD.format(title=f"Use {TOKEN}" if part == "title" else "Use a token")
    text += f"\n## Context\n\nAll of it.\n\nWith {TOKEN} as the token.\n" if part == "context" else ""
    write("docs/adr/0003-token.md", text)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if TOKEN in each)
    place = f"docs/adr/0003-token.md:{line}"

    check_output, report = check_import(1)
    on_github = run("root", "import", "--check", "--format", "github")
    imports = [run("init", "--from", "auto"), run("root", "import", "adr", "docs/adr/0003-token.md")]

    assert f"error: {place}: it seems to contain a GitHub token" in check_output
    assert "jidomem init --from auto\n" in check_output.partition("hint: remove it from the file")[2]
    assert "import the changes: " not in check_output
    assert [row["place"] for row in report["differences"]] == [place]
    assert f"::error file=docs/adr/0003-token.md,line={line},title=import-check::" in on_github.stdout
    assert "remove it from the file" in on_github.stdout
    for import_result in imports:
        assert import_result.exit_code == 3, import_result.output
        assert f"error: {place}: " in import_result.stderr
    assert TOKEN not in "".join(each.output for each in (on_github, *imports)) + check_output + str(report)


def test_a_confirmed_record_shows_the_date_of_its_file_in_every_view(write):
    write(LOG, RECORD.format(title="Use a log").replace("## Status", "Date: 2020-03-04\n\n## Status"))
    succeed("init", "--from", "auto")
    succeed("edit", "0002", "--confirm", "--reason", "it still holds")

    (date,) = [row["time"] for row in rows("ask", "decisions") if row["summary"] == "Use a log"]
    assert date == "2020-03-04T00:00:00.000000Z"
    (hit_date,) = [hit["metadata"]["time"] for hit in json.loads(succeed("recall", "log", "--json").stdout)["entries"]]
    assert hit_date == date
    assert re.search(r"decided +2020-03-04", succeed("show", "--why", "Use a log").stdout)
    assert re.search(r'"Use a log".*, 2020-03-04', succeed("agent", "briefing").stdout)
    assert AGREEMENT in check_import(0)[0]
