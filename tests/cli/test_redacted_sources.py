"""A text that was redacted stays out: the files it came from are named, and an import does not bring it back."""

import json
import re
import subprocess
from shlex import split
from urllib.parse import quote

import pytest

import jidomem
from jidomem.records.file_anchor import NO_BLOB
from jidomem.runtime.settings import own_config
from jidomem.serve.app import create_app
from tests.cli.cli_world import run

NUMBER = "020 7946 0958"
NOTES = f"# Agents\n\n- We send emails through Notify.\n- Call the engineer at {NUMBER} when publishing stops.\n"


def done(*args, code=0):
    result = run(*args)
    assert result.exit_code == code, result.stdout + result.stderr
    return result


def journal(folder):
    return b"".join(path.read_bytes() for path in sorted((folder / ".jidomem" / "projects").rglob("*.ttl")))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A repository whose notes were imported and accepted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "AGENTS.md").write_text(NOTES)
    done("init", "--from", "auto")
    done("access", "policy", "grant", "ana", "curator")
    done("review", "accept", "--all")
    return tmp_path


@pytest.fixture
def redacted(folder):
    done("journal", "redact", "--text", NUMBER, "--reason", "a private number")
    assert NUMBER.encode() not in journal(folder)
    return folder


def summary_of_the_redacted(folder):
    (item,) = {
        row["item"] for row in json.loads(done("root", "import", "--check", "--json", code=1).stdout)["differences"]
    }
    return item


@pytest.mark.parametrize("more", [["--dry-run"], ["--reason", "a private number"]], ids=["dry run", "done"])
def test_a_redaction_names_the_line_of_the_source_that_still_holds_the_text(folder, more):
    done("recall", "engineer")  # makes what is derived
    result = done("journal", "redact", "--text", NUMBER, *more)

    assert f"{folder}/AGENTS.md:4 contains it, and redactions do not rewrite it: edit AGENTS.md before" in result.stderr
    assert f"{folder}/AGENTS.md where it was committed, in its history" in result.stderr
    assert "cache/text" not in result.stderr
    assert NUMBER in (folder / "AGENTS.md").read_text()


def test_a_source_that_holds_the_text_in_no_line_is_not_named(folder):
    (folder / "AGENTS.md").write_text(NOTES.replace(NUMBER, "the desk"))
    result = done("journal", "redact", "--text", NUMBER, "--reason", "a private number", "--json")

    assert json.loads(result.stdout)["leftovers"] == []


@pytest.mark.parametrize(
    "text",
    [
        NOTES.replace("stops.", "stops at night."),
        NOTES.replace("stops.", "stops.\n- Ask before a release."),
        f"# Agents\n\n- Call {NUMBER}.\n",
        NOTES.replace("We send emails through Notify.", f"Emails fail? Call {NUMBER}.").replace("- Call the e", "- E"),
    ],
    ids=["edited", "beside it", "rewritten", "in another entry"],
)
def test_an_edit_of_the_source_does_not_bring_a_redacted_text_back(redacted, text):
    (redacted / "AGENTS.md").write_text(text)
    again = run("init", "--from", "auto")

    assert NUMBER.encode() not in journal(redacted)
    assert NUMBER not in again.stdout + again.stderr
    run("review", "accept", "--all")
    run("init", "--from", "auto")
    assert NUMBER.encode() not in journal(redacted)


def test_an_entry_held_back_is_imported_once_the_redacted_memory_is_ended(redacted):
    (redacted / "AGENTS.md").write_text(NOTES.replace(f" at {NUMBER}", ""))
    held = done("init", "--from", "auto")
    (command,) = (line.partition("run: ")[2] for line in held.stderr.splitlines() if "AGENTS.md:4: (redacted)" in line)
    assert "Call the engineer" not in done("review").stdout
    done(*split(command)[1:])

    done("init", "--from", "auto")
    assert "Call the engineer when publishing stops." in done("review").stdout


def test_an_entry_whose_text_was_redacted_is_not_counted_as_unchanged(redacted):
    found = json.loads(done("root", "import", "--check", "--json", code=1).stdout)

    assert found["counts"]["redacted"] == 1
    assert [(row["change"], row["place"], row["summary"]) for row in found["differences"]] == [
        ("redacted", "AGENTS.md:4", "(redacted)")
    ]
    said = done("root", "import", "--check", code=1)
    assert "AGENTS.md:4: a text was redacted from its memory, so it is not imported" in said.stderr
    assert found["differences"][0]["item"] in said.stderr
    assert NUMBER not in said.stdout + said.stderr


def test_the_withdrawal_of_a_redacted_memory_calls_it_redacted(redacted):
    item = summary_of_the_redacted(redacted)
    (redacted / "AGENTS.md").write_text(NOTES.partition("- Call")[0])
    assert "removed: AGENTS.md: (redacted)" in done("init", "--from", "auto").stderr

    assert "removed from AGENTS.md: (redacted)" in done("review").stdout
    assert "(redacted)" in done("show", "--why", item).stdout
    assert "(redacted)" in done("show", item).stdout


def test_a_rule_whose_text_was_redacted_is_called_redacted_where_it_governs_a_file(folder):
    made = json.loads(done("remember", f"Call {NUMBER}", "--type", "convention", "--about", "AGENTS.md",
                           "--convention-name", "calls", "--json").stdout)  # fmt: skip
    done("journal", "redact", "--text", NUMBER, "--reason", "a private number")

    (line,) = (line for line in done("governing", "AGENTS.md").stdout.splitlines() if made["iri"][-8:] in line)
    assert "(redacted)" in line
    said = dict(line.split(maxsplit=1) for line in done("show", "--why", made["iri"]).stdout.splitlines())
    assert said["summary"] == "(redacted)"


def test_a_redaction_leaves_no_digest_by_which_a_guess_at_the_text_could_be_confirmed(folder):
    (folder / "AGENTS.md").write_text(NOTES + "- Sign every commit.\n")
    done("init", "--from", "auto")
    done("remember", "Notes are reviewed", "--about", "AGENTS.md")
    digests = digests_in(folder)
    assert len(digests) == 3  # of the entry, and of the file as it was twice

    done("journal", "redact", "--text", NUMBER, "--reason", "a private number")

    files = (path for path in (folder / ".jidomem").rglob("*") if path.is_file())
    left = b"".join(path.read_bytes() for path in files).decode("utf-8", "replace")
    assert [each for each in digests if each in left] == []
    assert f'jido:sourceBlob "{NO_BLOB} AGENTS.md"' in left
    done("journal", "verify")
    done("journal", "replay", "--check")


def digests_in(folder):
    """The digests in the journal of each file that holds the number, and of the entries that say it."""
    whole = journal(folder).decode()
    saying = [block for block in whole.split("\n\n") if NUMBER in block]
    return {*re.findall(r'"([0-9a-f]{40}) ', whole), *re.findall(r'sourceDigest "([0-9a-f]+)"', "".join(saying))}


def test_a_second_import_after_a_redaction_writes_nothing_and_withdraws_nothing(redacted):
    before = journal(redacted)
    for _ in range(2):
        assert "redacted: AGENTS.md:4: (redacted)" in done("init", "--from", "auto").stderr

    assert journal(redacted) == before
    assert "withdraw" not in done("review").stdout.casefold()


def test_an_entry_beside_a_redacted_one_is_refused_until_the_redacted_memory_is_ended(redacted):
    item = summary_of_the_redacted(redacted)
    (redacted / "AGENTS.md").write_text(NOTES + "- Ask before a release.\n")
    check = done("root", "import", "--check", code=1)
    assert f"AGENTS.md:5: it may contain the text that was redacted from {item}" in check.stderr
    assert "import the changes: " not in check.stderr
    held = done("init", "--from", "auto", code=2)
    assert f"it may contain the text that was redacted from {item}" in held.stderr
    assert NUMBER not in held.stdout + held.stderr

    (redacted / "AGENTS.md").write_text(NOTES.replace(NUMBER, "the desk") + "- Ask before a release.\n")
    done("edit", item, "--invalidate", "--reason", "its text was redacted")
    done("init", "--from", "auto")
    assert "Ask before a release." in done("review").stdout


def test_a_file_that_was_renamed_does_not_bring_a_redacted_text_back(redacted):
    (redacted / "AGENTS.md").rename(redacted / "CLAUDE.md")
    run("init", "--from", "auto")

    assert NUMBER.encode() not in journal(redacted)


def test_a_memory_edited_in_review_loses_the_digest_of_the_text_it_came_from(folder):
    (folder / "AGENTS.md").write_text(NOTES.replace("stops.", "fails."))
    done("init", "--from", "auto")
    done("review", "accept", "--all")
    rows = json.loads(done("recall", NUMBER, "--json").stdout)["entries"]
    item = next(row["id"] for row in rows if NUMBER in row["content"])
    edit = ["summary=Call the engineer when publishing stops.", "convention_name=calls"]
    done("edit", item, *(word for each in edit for word in ("--set", each)), "--reason", "it is short")
    digests = digests_in(folder)
    done("journal", "redact", "--text", NUMBER, "--reason", "a private number")
    assert not any(each in journal(folder).decode() for each in digests)

    done("init", "--from", "auto")
    assert NUMBER.encode() not in journal(folder)
    assert "calls" in done("ask", "conventions").stdout


def test_the_path_of_a_source_is_found_and_its_blob_id_is_not_taken_for_a_text(folder):
    for digest in digests_in(folder):
        done("journal", "redact", "--text", digest[3:9], "--dry-run", code=4)

    found = done("journal", "redact", "--text", "AGENTS.md", "--dry-run").stdout
    assert re.search(r"sourceBlob +says it", found)


def test_a_history_and_the_answers_of_queries_call_a_redacted_memory_redacted(redacted):
    item = summary_of_the_redacted(redacted)

    rows = [
        row for row in done("show", "--history", item).stdout.splitlines() if {"proposed", "accepted"} & {*row.split()}
    ]
    assert len([row for row in rows if "reason:" not in row]) == 2  # the proposal, and what was accepted
    assert all("(redacted)" in row for row in rows if "reason:" not in row)
    assert "(redacted)" in done("ask", "supersessions", f"item={item}").stdout


def test_a_briefing_asks_nobody_to_look_again_at_a_redacted_memory(folder):
    for when, args in (("night", []), ("day", ["--expires-on", "2020-01-01T00:00:00Z"])):
        done("remember", f"{NUMBER} is answered by {when}", "--type", "assumption", *args)
    assert "To be looked at again" in done("agent", "briefing").stdout
    done("journal", "redact", "--text", NUMBER, "--reason", "a private number")

    assert "(redacted)" not in done("agent", "briefing").stdout
    assert "(redacted)" not in done("agent", "briefing", "--as-of", "2999-01-01T00:00:00Z").stdout
    assert "(redacted)" in done("review").stdout


def test_the_pages_call_a_redacted_memory_redacted_and_do_not_offer_that_as_its_text(redacted):
    item = summary_of_the_redacted(redacted)
    with jidomem.open(redacted / ".jidomem") as memory:
        client = create_app(memory).test_client()
        project = memory.project
        page = client.get(f"/ui/{project}/memories/{quote(item, safe='')}")
        graph = client.get(f"/ui/{project}/graph.json?item={quote(item, safe='')}")

    assert page.status_code == graph.status_code == 200
    assert re.search(r"<h1>.*\(redacted\).*</h1>", page.text)
    assert page.text.count("(redacted)") > 2  # also the proposal that it replaced
    assert ">(redacted)</textarea>" not in page.text
    assert "(redacted)" in graph.text


def test_the_blob_id_of_a_file_that_holds_the_text_goes_from_memories_that_do_not_say_it(folder):
    (folder / "deploy.md").write_text(f"Call {NUMBER} first.\n")
    (folder / "other.md").write_text("Nobody is called.\n")
    for name in ("deploy", "other"):
        done("remember", f"Read {name}.md", "--about", f"{name}.md", "--iri", f"https://jido.ai/memory/{name}")
    done("remember", f"The engineer has {NUMBER}")
    done("journal", "redact", "--text", NUMBER, "--reason", "a private number")

    shown = [done("show", f"https://jido.ai/memory/{name}").stdout for name in ("deploy", "other")]
    assert ["about blob" in each for each in shown] == [False, True]
    assert all("Read " in each for each in shown)


def test_a_redacted_memory_that_is_said_anew_keeps_the_text_of_its_source_out(redacted):
    item = summary_of_the_redacted(redacted)
    for text in ("The engineer is called when publishing stops.", "Somebody is called when publishing stops."):
        done("edit", item, "--supersede", text, "--reason", "said anew")
        assert "redacted: AGENTS.md:4: (redacted)" in done("init", "--from", "auto").stderr
        item = summary_of_the_redacted(redacted)

    assert NUMBER.encode() not in journal(redacted)
    assert json.loads(done("review", "--json").stdout)["rows"] == []


@pytest.mark.parametrize("more", [["--dry-run"], ["--reason", "a customer"]], ids=["dry run", "done"])
def test_a_redaction_names_a_source_that_has_the_text_in_its_name(folder, more):
    record = folder / "docs" / "adr" / "0001-use-acme-widgets.md"
    record.parent.mkdir(parents=True)
    record.write_text("# 1. Use Acme Widgets\n\n## Status\n\nAccepted\n\n## Decision\n\nWe use it.\n")
    done("init", "--from", "auto")
    result = done("journal", "redact", "--text", "Acme Widgets", *more)

    assert f"the name of {record}" in result.stderr
    assert f"edit it, then rename it: mv {record.relative_to(folder)} NEW-NAME" in result.stderr
    assert f"{record}:1 contains it, and redactions do not rewrite it" in result.stderr
    done("init", "--from", "auto")
    if "--dry-run" not in more:
        assert b"acme" not in journal(folder).lower()


def git(folder, *words):
    name = ["-c", "user.name=ana", "-c", "user.email=ana@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *name, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A git repository with memories about a Makefile, of which one names somebody."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")
    (tmp_path / "Makefile").write_text("all:\n\tbuild\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "Build")
    done("init")
    for name, text in (("jane", "Jane Example runs the build"), ("images", "The build makes images")):
        done("remember", text, "--about", "Makefile", "--iri", f"https://jido.ai/memory/{name}")
    return tmp_path


def anchors_left(*names):
    return [name for name in names if "about blob" in done("show", f"https://jido.ai/memory/{name}").stdout]


def test_a_redaction_keeps_the_blob_id_of_a_file_that_never_held_the_text(repository):
    assert "aboutBlob" not in done("journal", "redact", "--text", "Jane Example", "--dry-run").stdout
    done("journal", "redact", "--text", "Jane Example", "--reason", "a person")

    assert anchors_left("jane", "images") == ["jane", "images"]


def test_a_redaction_takes_the_blob_id_of_each_version_that_held_the_text_and_of_no_other(repository):
    (repository / "Makefile").write_text("all:\n\tbuild # Jane Example\n")
    git(repository, "commit", "-qam", "Name her")
    done("remember", "The build has an owner", "--about", "Makefile", "--iri", "https://jido.ai/memory/owner")
    (repository / "Makefile").write_text("all:\n\tbuild --fast\n")
    done("remember", "The build is fast", "--about", "Makefile", "--iri", "https://jido.ai/memory/fast")

    dry = done("journal", "redact", "--text", "Jane Example", "--dry-run")
    assert "freshness of 1 memory about Makefile can no longer be determined" in dry.stderr
    assert "has the content of" not in dry.stderr
    done("journal", "redact", "--text", "Jane Example", "--reason", "a person")

    assert anchors_left("jane", "images", "owner", "fast") == ["jane", "images", "fast"]


def test_a_redaction_says_where_nobody_has_the_version_of_a_file_that_may_have_held_the_text(repository):
    (repository / "Makefile").write_text("all:\n\tbuild --fast\n")  # never committed
    done("remember", "The build is fast", "--about", "Makefile", "--iri", "https://jido.ai/memory/fast")
    (repository / "Makefile").write_text("all:\n\tbuild # Jane Example\n")

    dry = done("journal", "redact", "--text", "Jane Example", "--dry-run")
    assert "may be of a file that held it" in dry.stdout
    assert "neither the file nor git has the content of 1 version of Makefile" in dry.stderr
    done("journal", "redact", "--text", "Jane Example", "--reason", "a person")

    assert anchors_left("jane", "images", "fast") == ["jane", "images"]


def test_a_version_of_a_source_goes_where_only_its_markup_hides_the_text(repository):
    (repository / "AGENTS.md").write_text("# Agents\n\n- We ask **Jane** Example about the build.\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "Notes")
    done("init", "--from", "auto")
    done("journal", "redact", "--text", "Jane Example", "--reason", "a person")

    assert re.findall(r'sourceBlob "([0-9a-f]+) AGENTS.md"', journal(repository).decode()) == [NO_BLOB]


def test_a_redaction_names_the_memories_of_which_nothing_is_left_with_the_command_that_ends_them(repository):
    done("remember", "Ask Jane Example", "--iri", "https://jido.ai/memory/asked")
    done("remember", "Jane Example knows", "--rationale", "She wrote it", "--iri", "https://jido.ai/memory/known")
    dry = done("journal", "redact", "--text", "Jane Example", "--dry-run")
    assert "active, but would be without text: asked, jane\n" in dry.stderr
    ((names, command),) = re.findall("end each: for id in (.*); do jidomem (.*); done", dry.stderr)

    told = done("journal", "redact", "--text", "Jane Example", "--reason", "a person").stderr
    assert "active, but without text: asked, jane\n" in told
    (line,) = done("check").stdout.splitlines()
    assert "3 memories lost 3 statements to redactions: jane, asked, known;" in line
    assert len(json.loads(done("check", "--json").stdout)["problems"]) == 3

    for name in names.split():
        done(*split(command.replace("$id", name)))
    (line,) = done("check").stdout.splitlines()
    assert "known: it was redacted" in line


def test_a_redaction_names_the_token_that_has_the_text_and_the_command_that_revokes_it(folder):
    done("access", "token", "add", "jane.example", "--role", "agent")
    done("access", "token", "add", "ana", "--role", "agent")
    done("remember", "Ask Jane Example", "--iri", "https://jido.ai/memory/asked")

    told = done("journal", "redact", "--text", "Jane Example", "--reason", "she asked for it").stderr

    (line, command) = re.findall(r"config.toml:(\d+) .*that still works: jidomem (.*)", told)[0]
    assert "jane.example" in own_config().read_text().splitlines()[int(line) - 1]
    assert told.count("that still works") == 1
    assert "server logs" in told
    done(*split(command))
    assert "jane" not in own_config().read_text()
    assert "config.toml" not in done("journal", "redact", "--text", "Jane Example", "--dry-run", code=4).stderr
