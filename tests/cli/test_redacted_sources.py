"""A redacted text is not imported again: its source files are named, and an import does not restore it."""

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


def call(*args, code=0):
    result = run(*args)
    assert result.exit_code == code, result.stdout + result.stderr
    return result


def journal(folder):
    return b"".join(path.read_bytes() for path in sorted((folder / ".jidomem" / "projects").rglob("*.ttl")))


@pytest.fixture
def folder(tmp_path, monkeypatch, copy_built):
    """Return a repository with imported and accepted notes."""
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")

    def build(folder):
        (folder / ".git").mkdir(parents=True)
        monkeypatch.chdir(folder)
        (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (folder / "AGENTS.md").write_text(NOTES)
        call("init", "--from", "auto")
        call("access", "policy", "grant", "ana", "curator")
        call("review", "accept", "--all")

    copy_built(build, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def redacted(folder):
    call("journal", "redact", "--text", NUMBER, "--reason", "a private number")
    assert NUMBER.encode() not in journal(folder)
    return folder


def redacted_item(folder):
    (item,) = {
        row["item"] for row in json.loads(call("root", "import", "--check", "--json", code=1).stdout)["differences"]
    }
    return item


@pytest.mark.parametrize("more", [["--dry-run"], ["--reason", "a private number"]], ids=["dry run", "done"])
def test_a_redaction_names_the_source_line_that_still_contains_the_text(folder, more):
    call("recall", "engineer")  # creates derived files
    result = call("journal", "redact", "--text", NUMBER, *more)

    assert f"{folder}/AGENTS.md:4 contains it, and redactions do not rewrite it: edit AGENTS.md before" in result.stderr
    assert f"{folder}/AGENTS.md where it was committed, in its history" in result.stderr
    assert "cache/text" not in result.stderr
    assert NUMBER in (folder / "AGENTS.md").read_text()


def test_a_source_without_the_text_is_not_named_by_a_redaction(folder):
    (folder / "AGENTS.md").write_text(NOTES.replace(NUMBER, "the desk"))
    result = call("journal", "redact", "--text", NUMBER, "--reason", "a private number", "--json")

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
def test_an_edit_of_the_source_does_not_import_a_redacted_text(redacted, text):
    (redacted / "AGENTS.md").write_text(text)
    result = run("init", "--from", "auto")

    assert NUMBER.encode() not in journal(redacted)
    assert NUMBER not in result.stdout + result.stderr
    run("review", "accept", "--all")
    run("init", "--from", "auto")
    assert NUMBER.encode() not in journal(redacted)


def test_a_blocked_entry_is_imported_once_the_redacted_memory_is_withdrawn(redacted):
    (redacted / "AGENTS.md").write_text(NOTES.replace(f" at {NUMBER}", ""))
    refused = call("init", "--from", "auto")
    (command,) = (
        line.partition("run: ")[2] for line in refused.stderr.splitlines() if "AGENTS.md:4: (redacted)" in line
    )
    assert "Call the engineer" not in call("review").stdout
    call(*split(command)[1:])

    call("init", "--from", "auto")
    assert "Call the engineer when publishing stops." in call("review").stdout


def test_an_entry_with_a_redacted_text_is_not_counted_as_unchanged(redacted):
    report = json.loads(call("root", "import", "--check", "--json", code=1).stdout)

    assert report["counts"]["redacted"] == 1
    assert [(row["change"], row["place"], row["summary"]) for row in report["differences"]] == [
        ("redacted", "AGENTS.md:4", "(redacted)")
    ]
    check = call("root", "import", "--check", code=1)
    assert "AGENTS.md:4: a text was redacted from its memory, so it is not imported" in check.stderr
    assert report["differences"][0]["item"] in check.stderr
    assert NUMBER not in check.stdout + check.stderr


def test_the_withdrawal_of_a_redacted_memory_is_shown_as_redacted(redacted):
    item = redacted_item(redacted)
    (redacted / "AGENTS.md").write_text(NOTES.partition("- Call")[0])
    assert "removed: AGENTS.md: (redacted)" in call("init", "--from", "auto").stderr

    assert "removed from AGENTS.md: (redacted)" in call("review").stdout
    assert "(redacted)" in call("show", "--why", item).stdout
    assert "(redacted)" in call("show", item).stdout


def test_a_rule_with_a_redacted_text_governs_no_file_and_is_shown_as_redacted(folder):
    rule = json.loads(call("remember", f"Call {NUMBER}", "--type", "convention", "--about", "AGENTS.md",
                           "--convention-name", "calls", "--json").stdout)  # fmt: skip
    call("journal", "redact", "--text", NUMBER, "--reason", "a private number")

    assert rule["iri"][-8:] not in call("governing", "AGENTS.md").stdout
    assert rule["iri"][-8:] in call("review").stdout
    fields = dict(line.split(maxsplit=1) for line in call("show", "--why", rule["iri"]).stdout.splitlines())
    assert fields["summary"] == "(redacted)"


def test_a_redaction_removes_all_digests_of_the_text(folder):
    (folder / "AGENTS.md").write_text(NOTES + "- Sign every commit.\n")
    call("init", "--from", "auto")
    call("remember", "Notes are reviewed", "--about", "AGENTS.md")
    digests = source_digests(folder)
    assert len(digests) == 3  # of the entry, and of two versions of the file

    call("journal", "redact", "--text", NUMBER, "--reason", "a private number")

    files = (path for path in (folder / ".jidomem").rglob("*") if path.is_file())
    data = b"".join(path.read_bytes() for path in files).decode("utf-8", "replace")
    assert [each for each in digests if each in data] == []
    assert f'jido:sourceBlob "{NO_BLOB} AGENTS.md"' in data
    call("journal", "verify")
    call("journal", "replay", "--check")


def source_digests(folder):
    """Return the digests in the journal of each file that contains the number, and of its entries."""
    text = journal(folder).decode()
    blocks = [block for block in text.split("\n\n") if NUMBER in block]
    return {*re.findall(r'"([0-9a-f]{40}) ', text), *re.findall(r'sourceDigest "([0-9a-f]+)"', "".join(blocks))}


def test_a_second_import_after_a_redaction_writes_nothing(redacted):
    before = journal(redacted)
    for _ in range(2):
        assert "redacted: AGENTS.md:4: (redacted)" in call("init", "--from", "auto").stderr

    assert journal(redacted) == before
    rows = json.loads(call("review", "--json").stdout)["rows"]
    assert [(row["item"], row["kind"]) for row in rows] == [(redacted_item(redacted), "redacted")]


def test_an_entry_next_to_a_redacted_one_is_refused_until_the_redacted_memory_is_withdrawn(redacted):
    item = redacted_item(redacted)
    (redacted / "AGENTS.md").write_text(NOTES + "- Ask before a release.\n")
    check = call("root", "import", "--check", code=1)
    assert f"AGENTS.md:5: it may contain the text that was redacted from {item}" in check.stderr
    assert "import the changes: " not in check.stderr
    refused = call("init", "--from", "auto", code=2)
    assert f"it may contain the text that was redacted from {item}" in refused.stderr
    assert NUMBER not in refused.stdout + refused.stderr

    (redacted / "AGENTS.md").write_text(NOTES.replace(NUMBER, "the desk") + "- Ask before a release.\n")
    call("edit", item, "--invalidate", "--reason", "its text was redacted")
    call("init", "--from", "auto")
    assert "Ask before a release." in call("review").stdout


def test_a_renamed_file_does_not_import_a_redacted_text(redacted):
    (redacted / "AGENTS.md").rename(redacted / "CLAUDE.md")
    run("init", "--from", "auto")

    assert NUMBER.encode() not in journal(redacted)


def test_a_redaction_removes_the_source_digest_of_a_memory_edited_in_review(folder):
    (folder / "AGENTS.md").write_text(NOTES.replace("stops.", "fails."))
    call("init", "--from", "auto")
    call("review", "accept", "--all")
    rows = json.loads(call("recall", NUMBER, "--json").stdout)["entries"]
    item = next(row["id"] for row in rows if NUMBER in row["content"])
    edit = ["summary=Call the engineer when publishing stops.", "convention_name=calls"]
    call("edit", item, *(word for each in edit for word in ("--set", each)), "--reason", "it is short")
    digests = source_digests(folder)
    call("journal", "redact", "--text", NUMBER, "--reason", "a private number")
    assert not any(each in journal(folder).decode() for each in digests)

    call("init", "--from", "auto")
    assert NUMBER.encode() not in journal(folder)
    assert "calls" in call("ask", "conventions").stdout


def test_a_redaction_finds_the_path_of_a_source_and_not_parts_of_its_blob_id(folder):
    for digest in source_digests(folder):
        call("journal", "redact", "--text", digest[3:9], "--dry-run", code=4)

    preview = call("journal", "redact", "--text", "AGENTS.md", "--dry-run").stdout
    assert re.search(r"sourceBlob +says it", preview)


def test_history_and_queries_show_a_redacted_memory_as_redacted(redacted):
    item = redacted_item(redacted)

    rows = [
        row for row in call("show", "--history", item).stdout.splitlines() if {"proposed", "accepted"} & {*row.split()}
    ]
    assert len([row for row in rows if "reason:" not in row]) == 2  # the proposal and the accepted memory
    assert all("(redacted)" in row for row in rows if "reason:" not in row)
    assert "(redacted)" in call("ask", "supersessions", f"item={item}").stdout


def test_a_briefing_omits_a_redacted_memory_from_the_reviews_due(folder):
    for when, args in (("night", []), ("day", ["--expires-on", "2020-01-01T00:00:00Z"])):
        call("remember", f"{NUMBER} is answered by {when}", "--type", "assumption", *args)
    assert "To be looked at again" in call("agent", "briefing").stdout
    call("journal", "redact", "--text", NUMBER, "--reason", "a private number")

    assert "(redacted)" not in call("agent", "briefing").stdout
    assert "(redacted)" not in call("agent", "briefing", "--as-of", "2999-01-01T00:00:00Z").stdout
    assert "(redacted)" in call("review").stdout


def test_the_web_pages_show_a_redacted_memory_as_redacted_without_an_editable_text(redacted):
    item = redacted_item(redacted)
    with jidomem.open(redacted / ".jidomem") as memory:
        client = create_app(memory).test_client()
        project = memory.project
        page = client.get(f"/ui/{project}/memories/{quote(item, safe='')}")
        graph = client.get(f"/ui/{project}/graph.json?item={quote(item, safe='')}")

    assert page.status_code == graph.status_code == 200
    assert re.search(r"<h1>.*\(redacted\).*</h1>", page.text)
    assert page.text.count("(redacted)") > 2  # also the superseded proposal
    assert ">(redacted)</textarea>" not in page.text
    assert "(redacted)" in graph.text


def test_a_redaction_removes_the_blob_id_of_a_file_that_contains_the_text(folder):
    (folder / "deploy.md").write_text(f"Call {NUMBER} first.\n")
    (folder / "other.md").write_text("Nobody is called.\n")
    for name in ("deploy", "other"):
        call("remember", f"Read {name}.md", "--about", f"{name}.md", "--iri", f"https://jido.ai/memory/{name}")
    call("remember", f"The engineer has {NUMBER}")
    call("journal", "redact", "--text", NUMBER, "--reason", "a private number")

    outputs = [call("show", f"https://jido.ai/memory/{name}").stdout for name in ("deploy", "other")]
    assert ["about blob" in each for each in outputs] == [False, True]
    assert all("Read " in each for each in outputs)


def test_a_redacted_memory_with_a_new_text_still_blocks_the_import_of_its_source(redacted):
    item = redacted_item(redacted)
    for text in ("The engineer is called when publishing stops.", "Somebody is called when publishing stops."):
        call("edit", item, "--supersede", text, "--reason", "said anew")
        assert "redacted: AGENTS.md:4: (redacted)" in call("init", "--from", "auto").stderr
        item = redacted_item(redacted)

    assert NUMBER.encode() not in journal(redacted)
    assert json.loads(call("review", "--json").stdout)["rows"] == []


@pytest.mark.parametrize("more", [["--dry-run"], ["--reason", "a customer"]], ids=["dry run", "done"])
def test_a_redaction_names_a_source_with_the_text_in_its_file_name(folder, more):
    record = folder / "docs" / "adr" / "0001-use-acme-widgets.md"
    record.parent.mkdir(parents=True)
    record.write_text("# 1. Use Acme Widgets\n\n## Status\n\nAccepted\n\n## Decision\n\nWe use it.\n")
    call("init", "--from", "auto")
    result = call("journal", "redact", "--text", "Acme Widgets", *more)

    assert f"the name of {record}" in result.stderr
    assert f"edit it, then rename it: mv {record.relative_to(folder)} NEW-NAME" in result.stderr
    assert f"{record}:1 contains it, and redactions do not rewrite it" in result.stderr
    call("init", "--from", "auto")
    if "--dry-run" not in more:
        assert b"acme" not in journal(folder).lower()


def git(folder, *words):
    name = ["-c", "user.name=ana", "-c", "user.email=ana@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *name, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path, monkeypatch, copy_built):
    """Return a git repository with memories about a Makefile, of which one contains a name."""
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")

    def build(folder):
        folder.mkdir()
        monkeypatch.chdir(folder)
        (folder / "Makefile").write_text("all:\n\tbuild\n")
        git(folder, "init", "-q")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "Build")
        call("init")
        for name, text in (("jane", "Jane Example runs the build"), ("images", "The build makes images")):
            call("remember", text, "--about", "Makefile", "--iri", f"https://jido.ai/memory/{name}")

    monkeypatch.chdir(copy_built(build, tmp_path))
    return tmp_path


def memories_with_blob_id(*names):
    return [name for name in names if "about blob" in call("show", f"https://jido.ai/memory/{name}").stdout]


def test_a_redaction_keeps_the_blob_id_of_a_file_without_the_text(repository):
    assert "aboutBlob" not in call("journal", "redact", "--text", "Jane Example", "--dry-run").stdout
    call("journal", "redact", "--text", "Jane Example", "--reason", "a person")

    assert memories_with_blob_id("jane", "images") == ["jane", "images"]


def test_a_redaction_removes_the_blob_ids_of_only_the_versions_that_contained_the_text(repository):
    (repository / "Makefile").write_text("all:\n\tbuild # Jane Example\n")
    git(repository, "commit", "-qam", "Name her")
    call("remember", "The build has an owner", "--about", "Makefile", "--iri", "https://jido.ai/memory/owner")
    (repository / "Makefile").write_text("all:\n\tbuild --fast\n")
    call("remember", "The build is fast", "--about", "Makefile", "--iri", "https://jido.ai/memory/fast")

    dry = call("journal", "redact", "--text", "Jane Example", "--dry-run")
    assert "freshness of 1 memory about Makefile can no longer be determined" in dry.stderr
    assert "has the content of" not in dry.stderr
    call("journal", "redact", "--text", "Jane Example", "--reason", "a person")

    assert memories_with_blob_id("jane", "images", "owner", "fast") == ["jane", "images", "fast"]


def test_a_redaction_reports_a_file_version_whose_content_is_unavailable(repository):
    (repository / "Makefile").write_text("all:\n\tbuild --fast\n")  # never committed
    call("remember", "The build is fast", "--about", "Makefile", "--iri", "https://jido.ai/memory/fast")
    (repository / "Makefile").write_text("all:\n\tbuild # Jane Example\n")

    dry = call("journal", "redact", "--text", "Jane Example", "--dry-run")
    assert "may be of a file that held it" in dry.stdout
    assert "neither the file nor git has the content of 1 version of Makefile" in dry.stderr
    call("journal", "redact", "--text", "Jane Example", "--reason", "a person")

    assert memories_with_blob_id("jane", "images", "fast") == ["jane", "images"]


def test_a_redaction_removes_a_source_version_with_the_text_hidden_by_markup(repository):
    (repository / "AGENTS.md").write_text("# Agents\n\n- We ask **Jane** Example about the build.\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "Notes")
    call("init", "--from", "auto")
    call("journal", "redact", "--text", "Jane Example", "--reason", "a person")

    assert re.findall(r'sourceBlob "([0-9a-f]+) AGENTS.md"', journal(repository).decode()) == [NO_BLOB]


def test_a_redaction_names_the_memories_left_without_a_summary_and_the_command_that_withdraws_them(repository):
    call("remember", "Ask Jane Example", "--iri", "https://jido.ai/memory/asked")
    call("remember", "Jane Example knows", "--rationale", "She wrote it", "--iri", "https://jido.ai/memory/known")
    dry = call("journal", "redact", "--text", "Jane Example", "--dry-run")
    assert "active, but would be without a summary: asked, jane, known\n" in dry.stderr
    ((names, command),) = re.findall("end each: for id in (.*); do jidomem (.*); done", dry.stderr)

    message = call("journal", "redact", "--text", "Jane Example", "--reason", "a person").stderr
    assert "active, but without a summary: asked, jane, known\n" in message
    (line,) = call("check").stdout.splitlines()
    assert "3 memories lost 3 statements to redactions: jane, asked, known;" in line
    assert len(json.loads(call("check", "--json").stdout)["problems"]) == 3

    for name in names.split():
        call(*split(command.replace("$id", name)))
    assert call("check").stdout == ""


def test_a_redaction_that_empties_many_memories_names_the_first_and_the_review(repository):
    with jidomem.open(".jidomem") as memory:
        for number in range(11):
            memory.remember(f"Jane Example knows part {number}")
    shown = call("journal", "redact", "--text", "Jane Example", "--dry-run").stderr
    assert re.search(
        r"without a summary: (?:\w+, ){4}\w+ and 7 more \(-v names all\)\neach is listed by: jidomem review\n", shown
    )


def test_a_redaction_names_the_decisions_left_without_a_rationale_and_the_command_that_gives_one(repository):
    given = ("--type", "decision", "--rationale", "Jane Example asked for it", "--iri", "https://jido.ai/memory/prices")
    call("remember", "Own prices", *given)
    named = "without a rationale: prices\nsay why: jidomem edit prices --set rationale=TEXT; "
    named += "each is listed by: jidomem review\n"
    assert f"would be {named}" in call("journal", "redact", "--text", "Jane Example", "--dry-run").stderr

    done = call("journal", "redact", "--text", "Jane Example", "--reason", "a person", "--json")

    assert json.loads(done.stdout)["unexplained"] == ["https://jido.ai/memory/prices"]
    assert f"active decisions, but {named}" in done.stderr
    (row,) = (row for row in json.loads(call("review", "--json").stdout)["rows"] if row["item"].endswith("/prices"))
    assert (row["kind"], row["settle"][0]) == ("rationale_redacted", "jidomem edit prices --set rationale=TEXT")
    assert "jidomem edit prices --set rationale=TEXT" in call("review").stdout
    call("edit", "prices", "--set", "rationale=it sells", "--reason", "its rationale was redacted")
    assert "rationale_redacted" not in call("review").stdout


def test_a_redaction_names_the_rules_left_without_a_place_a_pattern_or_a_topic_with_commands(repository):
    rule = ("--type", "convention", "--enforcement-level", "Strict", "--about", "src/jane-example/**")
    call("remember", "No names", *rule, "--forbids", "Jane Example", "--iri", "https://jido.ai/memory/names")
    given = ("--type", "decision", "--rationale", "measured", "--topic", "labels of Jane Example")
    call("remember", "Labels wrap", *given, "--iri", "https://jido.ai/memory/labels")
    commands = {
        "a place that they had: names": "edit names --set about=PATH",
        "a pattern that they had: names": "edit names --set forbids=PATTERN",
        "the topic that they had: labels": "edit labels --set topic=TEXT",
    }
    preview = call("journal", "redact", "--text", "Jane Example", "--dry-run").stderr
    done = call("journal", "redact", "--text", "Jane Example", "--reason", "a person", "--json")
    for lost, command in commands.items():
        assert re.search(rf"would be without {lost}\n[^\n]*: jidomem {command}; each is listed by: ", preview)
        assert re.search(rf"but without {lost}\n[^\n]*: jidomem {command}; each is listed by: ", done.stderr)
    assert json.loads(done.stdout)["lacking"].keys() == {"about", "forbids", "topic"}
    listed = call("review").stdout
    assert "jidomem edit names --set about=PATH" in listed
    assert "jidomem edit labels --set topic=TEXT" in listed
    assert re.search(r"about +\(redacted\)", call("show", "names").stdout)


def test_a_redacted_author_is_shown_as_redacted_and_an_unknown_text_is_no_interruption(repository):
    call("remember", "The build is fast", "--agent", "dora", "--iri", "https://jido.ai/memory/fast")
    unknown = call("journal", "redact", "--text", "Nobody Here", "--dry-run", code=4).stderr
    assert ("--again" in unknown, "other spellings" in unknown) == (False, True)
    call("journal", "redact", "--text", "dora", "--reason", "left", "--agent", "ana")

    assert re.search(r"recorded .* by \(redacted\) in session \(redacted\)", call("show", "fast", "--why").stdout)


def test_a_redaction_names_a_token_with_the_text_and_the_command_that_revokes_it(folder):
    call("access", "token", "add", "jane.example", "--role", "agent")
    call("access", "token", "add", "ana", "--role", "agent")
    call("remember", "Ask Jane Example", "--iri", "https://jido.ai/memory/asked")

    message = call("journal", "redact", "--text", "Jane Example", "--reason", "she asked for it").stderr

    (line, command) = re.findall(r"config.toml:(\d+) .*that still works: jidomem (.*)", message)[0]
    assert "jane.example" in own_config().read_text().splitlines()[int(line) - 1]
    assert message.count("that still works") == 1
    assert "server logs" in message
    call(*split(command))
    assert "jane" not in own_config().read_text()
    assert "config.toml" not in call("journal", "redact", "--text", "Jane Example", "--dry-run", code=4).stderr
