"""`jidomem review` and `jidomem access policy`, as text and as JSON."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from cli_world import create_repository, rows, run

from jidomem.index.store import OxigraphIndex


@pytest.fixture
def repository(tmp_path, monkeypatch, copy_built):
    def build(folder):
        create_repository(folder, monkeypatch)
        assert run("access", "policy", "grant", "ana", "admin").exit_code == 0
        assert run("access", "policy", "set", "--preset", "curated").exit_code == 0
        for text in ("Tabs", "Spaces"):
            assert run("remember", text, "--type", "convention", "--agent", "bob").exit_code == 0

    folder = copy_built(build, tmp_path / "repo")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")
    return folder


def edit_by(folder, monkeypatch, code):
    """Set an editor that runs the Python *code* on the text of the file, in the variable `text`."""
    script = folder / "editor.py"
    script.write_text(
        f"import sys; path = sys.argv[1]; text = open(path).read()\n{code}\nopen(path, 'w').write(text + '\\n')\n"
    )
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    monkeypatch.delenv("VISUAL", raising=False)


def test_many_proposals_are_settled_at_once_in_an_editor(repository, monkeypatch):
    edit_by(
        repository, monkeypatch, "text = text.replace('\\nskip', '\\naccept', 1).replace('\\nskip', '\\nreject', 1)"
    )
    result = run("review", "--edit")
    assert (result.exit_code, result.stdout.count("accept"), result.stdout.count("reject")) == (0, 1, 1)
    assert rows("review") == []
    assert [row["name"] for row in rows("ask", "conventions")] == ["Tabs"]


def test_an_unreadable_line_is_named_and_the_edited_file_is_saved(repository, monkeypatch):
    edit_by(repository, monkeypatch, "text = text.replace('\\nskip', '\\nshrug', 1).replace('\\nskip', '\\nreject', 1)")
    refused = run("review", "--edit")
    assert (refused.exit_code, "'shrug' is not an action; nothing was done" in refused.stderr) == (2, True)
    (saved,) = re.findall(r"--from (\S+)", refused.stderr)
    text = Path(saved).read_text().replace("shrug", "accept")
    assert len(rows("review")) == 2
    result = run("review", "--from", "-", "--json", stdin=text)
    assert [json.loads(line)["action"] for line in result.stdout.splitlines()] == ["accept", "reject"]


def test_without_a_terminal_no_default_editor_is_started(repository, monkeypatch, tmp_path):
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("sensible-editor", "vim", "nano", "vi"):
        (tmp_path / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    refused = run("review", "--edit")

    assert (refused.exit_code, refused.stdout, (tmp_path / "started").exists()) == (2, "", False)
    assert "jidomem review --todo > FILE" in refused.stderr


@pytest.mark.parametrize(("code", "words"), [
    ("sys.exit(3)", ["Editing failed", "set $VISUAL or $EDITOR"]),
    ("import os; os.remove(path); sys.exit()", ["the editor removed the file", "jidomem review --from FILE"]),
    ("open(path, 'wb').write(b'skip x\\n\\xff'); sys.exit()", ["line 2: this is not UTF-8", "your review is saved"]),
])  # fmt: skip
def test_a_failing_editor_is_reported_and_nothing_is_settled(repository, monkeypatch, code, words):
    edit_by(repository, monkeypatch, code)
    failed = run("review", "--edit")
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert all(word in failed.stderr for word in words), failed.stderr
    assert len(rows("review")) == 2


def test_a_review_with_a_refused_line_is_saved_and_resumed(repository, monkeypatch):
    first, second = rows("review")
    edit_by(repository, monkeypatch, "text = text.replace('\\nskip', '\\naccept')")
    assert run("access", "policy", "set", "deny", "--kind", "convention", "--for", "bob").exit_code == 0
    refused = run("review", "--edit", "--agent", "bob")
    (saved,) = re.findall(r"--from (\S+)", refused.stderr)
    assert (refused.exit_code, rows("review")) == (3, [first, second])
    assert run("review", "accept", first["item"]).exit_code == 0

    result = run("review", "--from", saved)

    assert (result.exit_code, result.stdout.count("accept")) == (0, 1)
    assert "skipped, decided already: 1 (line " in result.stderr
    assert rows("review") == []


def test_a_corrected_review_file_skips_the_lines_settled_before(repository):
    first, second = (row["item"][-8:] for row in rows("review"))
    assert run("remember", "Releases on Fridays").exit_code == 0
    text = f"accept {first}\nreject {second} we keep one per vendor\n"
    assert run("review", "--from", "-", stdin=text).exit_code == 0
    assert run("remember", "No tabs", "--type", "convention", "--agent", "bob").exit_code == 0
    (third,) = (row["item"][-8:] for row in rows("review"))

    result = run("review", "--from", "-", stdin=f"{text}accept {third}\nreject {first}\n")

    skipped = f"line 1: accept {first}; line 2: reject {second}; line 4: reject {first}, which is superseded"
    assert (result.exit_code, f"skipped, decided already: 3 ({skipped})" in result.stderr) == (0, True)
    assert rows("review") == []


def test_a_refusal_in_json_names_its_line(repository):
    first, _ = rows("review")
    refused = run("review", "--from", "-", "--json", "--agent", "bob", stdin=f"accept {first['item'][-8:]}\n")
    (refusal,) = map(json.loads, refused.stdout.splitlines())
    assert (refusal["line"], refusal["item"], refusal["code"]) == (1, first["item"], "policy_denied")


def test_an_agent_without_the_right_to_settle_is_refused_with_exit_code_3(repository):
    (first, _) = rows("review")
    refused = run("review", "accept", first["item"], "--agent", "bob")
    assert (refused.exit_code, "bob may not settle this" in refused.stderr) == (3, True)
    assert run("review", "accept", first["item"]).exit_code == 0


def test_status_counts_the_pending_proposals(repository):
    assert json.loads(run("status", "--json").stdout)["projects"][0]["waiting"] == 2
    assert "2 proposals wait for a curator: jidomem review" in run("status").stdout


def test_status_counts_conflicts_proposals_and_due_reviews_up_to_a_limit(repository, monkeypatch):
    assert run("remember", "few users", "--type", "assumption").exit_code == 0
    config = repository / ".jidomem" / "config.toml"
    config.write_text(config.read_text() + '\n[conflicts]\ndecision = "warn"\n')
    for text in ("Use Jena", "Use Lucene"):
        result = run("remember", text, "--type", "decision", "--topic", "search", "--rationale", "tools")
        assert result.exit_code == 0, result.stderr

    (project,) = json.loads(run("status", "--json").stdout)["projects"]
    assert (project["conflicts"], project["waiting"], project["due"]) == (1, 2, 1)
    assert "1 conflict, 2 proposals, 1 due wait for a curator: jidomem review" in run("status").stdout

    monkeypatch.setattr("jidomem_cli.status._COUNTED", 1)
    (project,) = json.loads(run("status", "--json").stdout)["projects"]
    assert (project["due"], project["due_or_more"]) == (1, True)
    assert "2 proposals, 1 or more due wait for a curator" in run("status").stdout


def test_a_long_review_is_read_and_settled_by_pages(repository):
    all_rows = rows("review")
    page = json.loads(run("review", "--limit", "1", "--json").stdout)
    second_page = run("review", "--limit", "1", "--cursor", page["cursor"], "--todo")

    assert [row["item"] for row in page["rows"]] == [all_rows[0]["item"]]
    assert re.findall(r"^skip (\S+)", second_page.stdout, re.M) == [all_rows[1]["item"]]
    refused = run("review", "--by-rule", "--limit", "1")
    assert (refused.exit_code, "leave out --limit and --cursor" in refused.stderr) == (2, True)


@pytest.mark.parametrize("words", [
    ["review", "accept"], ["review", "--todo", "--edit"], ["review", "--reason", "x"], ["access", "policy", "set"],
    ["access", "policy", "set", "deny", "--preset", "open"], ["access", "policy", "grant", "bob", "king"],
    ["access", "policy", "confirm", "unopposed"], ["access", "policy", "set", "deny", "--role", "king"],
    ["review", "--as-of", "2026-01-01"],
])  # fmt: skip
def test_an_invalid_combination_of_arguments_is_refused(repository, words):
    assert run(*words).exit_code == 2


def test_a_permission_as_of_a_past_moment_is_that_of_the_policy_then(repository):
    past = run("access", "policy", "may", "bob", "convention", "--as-of", "2020-01-01", "--json")
    now = run("access", "policy", "may", "bob", "convention", "--json")
    assert [json.loads(answer.stdout)["verdict"] for answer in (past, now)] == ["assert", "propose"]


@pytest.mark.parametrize("agent", ["Mo", " mo ", "MO", "https://jido.ai/agents/mo"])
def test_the_permission_of_an_agent_is_independent_of_the_spelling_of_its_name(repository, agent):
    run("access", "policy", "set", "deny", "--kind", "task", "--for", "mo")
    assert run("access", "policy", "may", agent, "task").stdout == "deny\n"


def commits(folder):
    return sorted(path.name for path in folder.rglob("projects/*/memory/*.ttl"))


@pytest.mark.parametrize("words", [["accept", "--all"], ["--from", "-"]], ids=["all", "lines"])
def test_a_batch_is_one_commit_and_a_refusal_in_it_stops_no_other_line(repository, words):
    assert run("remember", "Semicolons", "--type", "convention", "--agent", "bob").exit_code == 0
    denied = rows("review")[0]["item"]
    assert run("access", "policy", "set", "deny", "--kind", "convention", "--for", "bob").exit_code == 0
    lines = "".join(f"reject {row['item']}\n" for row in rows("review") if row["item"] != denied)
    before = commits(repository)

    result = run("review", *words, stdin=lines)

    assert (result.exit_code, len(commits(repository)) - len(before)) == (0, 1)
    pending = {"all": [], "lines": [denied]}["all" if "--all" in words else "lines"]
    assert [row["item"] for row in rows("review")] == pending


def test_a_rejection_is_reported_as_rejected(repository):
    first, second = (row["item"] for row in rows("review"))

    assert run("review", "reject", first, "--dry-run").stderr.startswith("would be rejected: ")
    assert run("review", "reject", first).stderr.startswith("rejected: ")
    assert run("review", "accept", second).stderr.startswith("accepted: ")


def test_a_pending_proposal_shows_its_source(repository):
    assert (
        run(
            "remember", "No tabs", "--evidence", "AGENTS.md:12: Style", "--type", "convention", "--agent", "bob"
        ).exit_code
        == 0
    )

    (row,) = [each for each in rows("review") if each["summary"] == "No tabs"]

    assert row["source"] == "AGENTS.md:12: Style"
    assert "#   source: AGENTS.md:12: Style" in run("review", "--todo").stdout


def write(folder, **files):
    """Write files of the repository *folder*; an underscore in their names stands for a dot."""
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)


def import_notes(repository):
    """Import a page of eleven notes, which are pending."""
    notes = "".join(
        f"\n{'- the ' if number % 2 else 'The '}port of shop {number} is {number}.\n" for number in range(11)
    )
    write(repository, CLAUDE_md=f"# Shops\n{notes}")
    assert run("root", "import", "memory-md", "CLAUDE.md").exit_code == 0
    return (repository / "CLAUDE.md").read_text().splitlines()


def test_entries_of_a_file_are_listed_in_its_order_with_file_and_line(repository):
    lines = import_notes(repository)

    listed = [row for row in rows("review") if row["place"]]

    numbers = [int(row["place"].removeprefix("CLAUDE.md:")) for row in listed]
    assert (len(numbers), numbers) == (11, sorted(numbers))
    assert all(row["summary"] in lines[number - 1] for row, number in zip(listed, numbers, strict=True))
    output = run("review").stdout
    assert output.count("CLAUDE.md") == 1
    assert re.search(r"^CLAUDE\.md \(11\)\n3 +proposal +\w{8} +:3 +The port", output, re.MULTILINE)
    assert "#   source: CLAUDE.md:3; CLAUDE.md: Shops" in run("review", "--todo").stdout


def test_the_review_list_has_a_limited_width_without_a_terminal(repository, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert run("remember", "Semicolons " * 40, "--type", "convention", "--agent", "bob").exit_code == 0

    assert max(map(len, run("review").stdout.splitlines())) <= 120
    assert max(map(len, run("review", "-v").stdout.splitlines())) > 400


def test_a_few_accepted_proposals_are_named_and_many_are_counted(repository):
    few = run("review", "accept", "--all", "--dry-run")
    assert [line.split(" ")[:3] for line in few.stdout.splitlines()] == [["would", "be", "accepted"]] * 2
    assert few.stderr.endswith("accepted 2; dry run, nothing was written\n")
    for number in range(20):
        assert run("remember", f"rule {number}", "--type", "convention", "--agent", "bob").exit_code == 0

    many = run("review", "accept", "--all")

    assert (many.exit_code, many.stdout) == (0, "")
    announced = many.stderr.splitlines()
    assert announced[:2] == ["accepting 22:", "  by bob: 22 convention"]
    assert [line.split(maxsplit=1)[1] for line in announced[2:5]] == ["Tabs", "Spaces", "rule 0"]
    assert announced[5:] == ["    and 19 more (-v lists them)", "accepted 22"]


def test_the_file_imported_last_is_listed_first_after_the_proposals_of_agents(repository):
    for name in ("a", "z", "m"):
        write(repository, **{f"{name}_md": f"# Page\n\nThe {name} port is 1.\n\n- Always use the {name} port\n"})
        assert run("root", "import", "memory-md", f"{name}.md").exit_code == 0

    listed = [row["place"] for row in rows("review")]

    files = [place.partition(":")[0] if place else None for place in listed]
    assert files == [None, None, "m.md", "m.md", "z.md", "z.md", "a.md", "a.md"]
    assert [each["place"] for each in rows_by_pages(3)] == listed


def rows_by_pages(limit):
    """Return the rows of a review, read by pages of *limit*."""
    all_rows, cursor = [], []
    while True:
        page = json.loads(run("review", "--json", "--limit", limit, *cursor).stdout)
        all_rows += page["rows"]
        if page["cursor"] is None:
            return all_rows
        cursor = ["--cursor", page["cursor"]]


def test_accepting_is_offered_with_counts_and_only_to_curators(repository):
    offered = run("review").stderr
    assert offered.splitlines()[-1] == (
        "accept 2 proposals (2 convention) without a conflict: jidomem review accept --all"
    )

    message = run("review", "--agent", "bob").stderr

    assert message.splitlines()[-1] == "reviewed by a curator: ana, curator"
    assert "accept" not in message


def test_a_review_without_a_curator_names_the_command_that_appoints_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")
    write(tmp_path, AGENTS_md="# Rules\n\n- Use tabs\n")
    assert run("init").exit_code == 0
    assert run("root", "import", "memory-md", "AGENTS.md").exit_code == 0

    *_, notice, hint = run("review").stderr.splitlines()
    assert notice == "proposals are reviewed by curators, and there are none"
    assert hint.startswith("appoint an administrator, who is a curator too; until then anybody can appoint themselves")
    assert hint.endswith(": jidomem access policy grant ana admin")
    (proposal,) = rows("review")
    refused = run("review", "accept", proposal["item"], "--agent", "claude-code")
    assert (refused.exit_code, run("review", "--agent", "claude-code").stderr.splitlines()[-1]) == (3, hint)
    assert "the owner of the repository, not an agent" in refused.stderr
    assert refused.stderr.strip().endswith(": jidomem access policy grant ana admin, then reviews with --agent ana")
    assert run(*hint.partition(": jidomem ")[2].split()).exit_code == 0

    assert "jidomem review accept --all" in run("review").stderr


def test_many_reviews_without_a_curator_are_refused_once_with_a_command_for_the_same_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")
    write(tmp_path, AGENTS_md="# Rules\n\n- Use tabs\n- Use spaces\n- Use neither\n")
    run("init")
    run("--project", "other", "root", "import", "memory-md", "AGENTS.md")
    queues, query = [], OxigraphIndex.query

    def counted(index, text, **options):
        queues.extend([text] * ("?item jido:hasAssertionStatus jido:Proposed ; jido:appliesToProject" in text))
        return query(index, text, **options)

    monkeypatch.setattr(OxigraphIndex, "query", counted)
    command = ("--project", "other", "review", "accept", "--all", "--agent")
    refused = run(*command, "codex")

    *_, hint, others, _ = refused.stderr.splitlines()
    assert (refused.exit_code, others) == (3, "2 more are refused for that reason")
    assert hint.endswith(": jidomem access policy grant --project other ana admin, then reviews with --agent ana")
    assert len(queues) == 1
    assert run("access", "policy", "grant", "--project", "other", "ana", "admin").exit_code == 0
    assert run(*command, "ana").exit_code == 0


def test_several_named_proposals_are_accepted_singly_and_refusals_are_counted(repository):
    first, second = (row["item"] for row in rows("review"))
    assert run("review", "reject", first).exit_code == 0

    result = run("review", "accept", first, second)

    assert (result.exit_code, result.stderr.splitlines()[-1]) == (5, f"accepted 1, refused 1: {first[-8:]}")
    ((_, old, _, new, summary),) = (line.split(" ", 4) for line in result.stdout.splitlines())
    assert (old, summary) == (second[-8:], "Spaces")
    assert json.loads(run("show", second, "--json").stdout)["superseded_by"][0].endswith(new.rstrip(":"))


@pytest.fixture
def disputed(repository):
    """Return the ids of an active fact and of a proposal that contradicts it."""
    config = repository / ".jidomem" / "config.toml"
    config.write_text(config.read_text() + '\n[conflicts]\nfact = "propose"\n')
    for text in ("the port is 80", "the port is 81"):
        assert run("remember", text, "--topic", "port").exit_code == 0
    (row,) = [row for row in rows("review") if row["other"]]
    return row["other"][-8:], row["item"][-8:]


def test_a_contradicting_proposal_is_listed_with_the_commands_that_settle_it(disputed):
    active, propose = disputed
    commands = [f"jidomem review {action} {propose}" for action in ("supersede", "reject")]

    table = run("review").stdout

    assert [row["settle"] for row in rows("review") if row["other"]] == [commands]
    assert f"    against {active}: the port is 80\n" in table
    for command in commands:
        assert f"    {command} " in table
        assert run(*shlex.split(command)[1:], "--dry-run").exit_code == 0


def test_accepting_a_contradicting_proposal_is_refused_with_the_commands_that_settle_it(disputed):
    active, propose = disputed

    refused = run("review", "accept", propose)

    assert (refused.exit_code, refused.stdout) == (5, "")
    assert refused.stderr.startswith(f"error: {active} says something else on the same matter: the port is 80\n")
    assert f"\n  jidomem review supersede {propose}  it supersedes {active}\n" in refused.stderr
    assert not re.search(r"[{}\[\]]", refused.stderr)


def test_two_active_memories_in_conflict_are_settled_against_each_other(repository):
    config = repository / ".jidomem" / "config.toml"
    config.write_text(config.read_text() + '\n[conflicts]\ndecision = "warn"\n')
    for text in ("Use Jena", "Use Lucene"):
        words = ("--type", "decision", "--topic", "search", "--rationale", "tools")
        assert run("remember", text, *words, "--agent", "ana").exit_code == 0
    (row,) = [row for row in rows("review") if row["kind"] == "conflict"]
    one, other = row["item"][-8:], row["other"][-8:]

    refused = run("review", "accept", one, other)

    assert (refused.exit_code, f"{one} and {other} conflict" in refused.stderr) == (2, True)
    assert row["settle"][0] == f"jidomem review accept {one} --against {other}"
    assert all(command in refused.stderr for command in row["settle"])
    for command in row["settle"]:
        assert run(*shlex.split(command)[1:], "--dry-run").exit_code == 0
    assert run(*shlex.split(row["settle"][0])[1:]).exit_code == 0
    assert json.loads(run("show", other, "--json").stdout)["status"] == "invalidated"


def test_accepting_a_settled_proposal_again_is_refused_with_its_new_id(repository):
    first = rows("review")[0]["item"][-8:]
    accepted = run("review", "accept", first).stdout.strip()[-8:]

    refused = run("review", "accept", first)

    assert refused.exit_code == 5
    assert refused.stderr.splitlines() == [
        f"error: {first} is settled already: it was accepted as {accepted}", f"hint: see: jidomem show {accepted}",
    ]  # fmt: skip


def test_a_placeholder_as_reason_or_field_is_refused(disputed):
    _, propose = disputed
    (row,) = [row for row in rows("review", "--conflicts") if row["other"]]
    assert row["settle"] == [f"jidomem review {action} {propose}" for action in ("supersede", "reject")]

    with_placeholder = run(*shlex.split(row["settle"][0] + ' --reason "..."')[1:])

    assert (with_placeholder.exit_code, "hint: give the reason in its place" in with_placeholder.stderr) == (2, True)
    assert run(*shlex.split(row["settle"][0])[1:]).exit_code == 0
    for words in (["edit", propose, "--invalidate"], ["remember", "x"],
                  ["access", "policy", "grant", "bob", "curator"],
                  ["journal", "redact", propose], ["journal", "rollback", "s"], ["journal", "verify"]):  # fmt: skip
        refused = run(*words, "--reason", "TEXT")
        assert (refused.exit_code, "is a placeholder of the reason" in refused.stderr) == (2, True), words
    for option in ("--about", "--topic", "--rationale"):
        refused = run("remember", "x", option, "TEXT")
        assert (refused.exit_code, f"give the {option[2:]} in its place" in refused.stderr) == (2, True)


def test_an_agent_without_the_right_is_referred_to_a_curator(disputed):
    _, propose = disputed
    for change in (
        ["grant", "ana", "admin"],
        ["set", "propose", "--kind", "fact"],
        ["set", "assert", "--kind", "fact", "--role", "curator"],
    ):
        assert run("access", "policy", *change).exit_code == 0

    for action in ("accept", "supersede"):
        refused = run("review", action, propose, "--agent", "bob")

        assert refused.exit_code == 3
        assert "error: bob may not settle this" in refused.stderr
        assert refused.stderr.splitlines()[-1] == "hint: ask a curator: ana, curator"
    assert run("review", "supersede", propose).exit_code == 0


def test_the_review_lines_offer_only_actions_that_are_possible(disputed):
    printed = run("review", "--todo").stdout

    assert "#   supersede | reject | skip\n" in printed


def test_status_separates_recorded_proposed_decisions_from_pending_proposals(repository):
    assert run("remember", "Use Jena", "--type", "decision", "--rationale", "r", "--status", "proposed").exit_code == 0

    lines = {line[2:26].strip(): line[27:] for line in run("status").stdout.splitlines()}

    assert lines["Decision"] == "1 active, 1 proposed"
    assert lines["pending review"] == "2 Convention"
    assert "Convention" not in lines


def test_the_history_of_a_memory_lists_the_proposals_rejected_in_its_favour(disputed):
    active, propose = disputed
    assert run("review", "reject", propose, "--reason", "it is 80").exit_code == 0

    versions = [(row["entry"][-8:], row["status"], row["reason"]) for row in rows("show", "--history", active)]

    assert versions[:2] == [(active, "active", None), (propose, "rejected", None)]
    assert versions[2][1:] == ("withdrawal", "it is 80")
    later = run("edit", active, "--supersede", "the port is 8080", "--reason", "moved").stdout.strip()
    assert (propose, "rejected", None) in [
        (row["entry"][-8:], row["status"], row["reason"]) for row in rows("show", "--history", later)
    ]


def record_text(title):
    return f"# {title}\n\n## Status\n\nAccepted\n\n## Context\n\nc\n\n## Decision\n\nWe do: {title}.\n"


@pytest.fixture
def records(repository):
    """Return the folder of two imported records, of which 0016 was edited and imported again."""
    folder = repository / "docs" / "adr"
    folder.mkdir(parents=True)
    names = {"0016-names.md": "Names in lower case", "0017-queues.md": "One queue: for all jobs"}
    for name, title in names.items():
        (folder / name).write_text(record_text(title))
    assert run("root", "import", "adr", *(f"docs/adr/{name}" for name in names)).exit_code == 0
    (folder / "0016-names.md").write_text(record_text("Names in lower case").replace("We do", "We always do"))
    assert run("root", "import", "adr", *(f"docs/adr/{name}" for name in names)).exit_code == 0
    return folder


def show_memory(name):
    result = run("show", name, "--json")
    return json.loads(result.stdout) if result.exit_code == 0 else result


@pytest.mark.parametrize("name", [
    "0016", "16", "ADR-16", "docs/adr/0016-names.md", "./docs/adr/0016-names.md", "adr/0016-names.md", "0016-names.md",
    "0016-names", "names in  lower case",
])  # fmt: skip
def test_an_imported_record_is_identified_by_number_path_or_title(records, name):
    memory = show_memory(name)
    assert (memory["properties"]["summary"], memory["status"]) == (["Names in lower case"], "active")
    assert "We always do" in memory["properties"]["rationale"][0]


def test_a_record_name_is_accepted_by_every_verb_that_takes_a_memory(records, monkeypatch):
    item = show_memory("16")["iri"][-8:]
    monkeypatch.chdir(records)
    for words in (["show", "--why", "0016-names.md"], ["show", "--history", "16"]):
        assert item in run(*words).stdout
    assert run("edit", "0016-names.md", "--set", "confidence=low", "--reason", "r").exit_code == 0
    result = run("remember", "Names in upper case", "--supersedes", "One queue: for all jobs", "--reason", "r")
    assert (result.exit_code, show_memory("17")["status"]) == (0, "superseded")


def test_an_ambiguous_name_is_refused_with_all_candidates(repository, records):
    (records / "backend").mkdir()
    (records / "backend" / "0016-caches.md").write_text(record_text("No caches"))
    import_notes(repository)
    assert run("root", "import", "adr", "docs/adr/backend/0016-caches.md").exit_code == 0
    one, other = (show_memory(name)["iri"] for name in ("0016-names", "0016-caches"))

    refused, page = run("show", "16"), run("show", "CLAUDE.md")

    assert refused.exit_code == 4
    assert f"give one of: {one} (docs/adr/0016-names.md), {other} (docs/adr/backend/0016-caches.md)" in refused.stderr
    assert page.stderr.endswith("or 1 more\n")
    assert show_memory("CLAUDE.md:3")["properties"]["summary"] == ["The port of shop 0 is 0."]


def test_a_number_that_also_ends_an_id_is_refused_as_ambiguous(records):
    assert run("remember", "x", "--iri", "https://jido.ai/memory/01900000-0000-7000-8000-00000000aa16").exit_code == 0
    assert run("remember", "y", "--iri", "https://jido.ai/memory/01900000-0000-7000-8000-000000010016").exit_code == 0
    assert show_memory("16")["properties"]["summary"] == ["Names in lower case"]
    refused = run("show", "0016")
    assert (refused.exit_code, "'0016' names several memories" in refused.stderr) == (4, True)
    assert show_memory("00010016")["properties"]["summary"] == ["y"]


def test_show_of_an_accepted_proposal_names_the_memory_that_replaced_it(repository):
    first = rows("review")[0]["item"][-8:]
    accepted = run("review", "accept", first).stdout.strip()
    later = run("edit", accepted, "--set", "confidence=low", "--reason", "r").stdout.strip()[-8:]

    assert run("show", first).stderr == f"in its place: jidomem show {later}\n"
    assert run("show", later).stderr == ""


def test_a_pattern_with_a_blank_at_its_end_is_shown_quoted(repository):
    words = ("--type", "convention", "--about", "src", "--enforcement-level", "Strict")
    item = run("remember", "No puts", *words, "--forbids", r"^\s*puts ", "--forbids", r"gets\b").stdout.strip()

    (line,) = [line for line in run("show", item).stdout.splitlines() if line.startswith("forbids pattern")]

    assert line.split(None, 2)[2] == r"'^\s*puts ', gets\b"


def test_init_prints_commands_that_settle_its_proposals(repository):
    folder = repository / "docs" / "adr"
    folder.mkdir(parents=True)
    (folder / "0042-store.md").write_text(record_text("Use Jena"))
    assert run("init", "--from", "adr").exit_code == 0
    assert run("edit", "0042", "--set", "rationale=otherwise", "--reason", "r").exit_code == 0
    (folder / "0042-store.md").write_text(record_text("Use Lucene"))

    result = run("init", "--from", "adr")

    assert "next: " in result.stderr
    assert "make yourself the judge" not in result.stderr  # ana is an administrator
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("conflict: ")]
    _, _, settle = line.partition("decide: ")
    assert settle.count("jidomem review ") == len(settle.split(", or "))
    for command in settle.split(", or "):
        assert run(*shlex.split(command)[1:], "--dry-run").exit_code == 0


def test_a_pending_change_of_a_record_is_identified_by_the_source_of_the_record(records):
    active = show_memory("16")["iri"]
    for count in range(200):  # the id of the memory may contain the number of the record
        assert run("edit", "16", "--set", f"rationale=otherwise {count}", "--reason", "r").exit_code == 0
        if "16" in show_memory("16")["iri"]:
            break
    (records / "0016-names.md").write_text(record_text("Names in lower case").replace("We do", "We never do"))
    assert run("root", "import", "adr", "docs/adr/0016-names.md").exit_code == 0
    (row,) = [row for row in rows("review") if row["place"]]

    result = run("review", "accept", "16")

    assert (result.exit_code, row["place"]) == (0, "docs/adr/0016-names.md")
    assert "We never do" in show_memory("16")["properties"]["rationale"][0]
    refused = run("review", "accept", active[-8:])
    assert (refused.exit_code, "is settled already" in refused.stderr) == (5, True)


def test_identical_proposals_are_refused_together_and_after_one_is_accepted_the_other_shows_it(repository):
    for name in ("AGENTS", "CLAUDE"):
        write(repository, **{f"{name}_md": "# Shops\n\nThe port of shop 1 is 1.\n"})
        assert run("root", "import", "memory-md", f"{name}.md").exit_code == 0
    twins = [row["item"][-8:] for row in rows("review") if row["place"]]

    result = run("review", "accept", *twins)

    first, refused = twins
    *_, note, counted = result.stderr.splitlines()
    assert (note, counted) == ("1 more is refused for that reason", f"refused 2: {first}, {refused}")
    assert run("review", "accept", first).exit_code == 0
    assert re.search(r"\n    same summary as \w{8}, which is active", run("review").stdout)
    for command in next(row for row in rows("review") if row["item"].endswith(refused))["settle"]:
        assert run(*shlex.split(command)[1:], "--dry-run").exit_code == 0


def test_an_accepted_note_is_not_recalled_by_the_standard_reason_of_its_acceptance(repository):
    item = next(row["item"] for row in rows("review") if row["summary"] == "Tabs")

    assert run("review", "accept", item, "--agent", "ana").exit_code == 0

    assert "in review" not in run("recall", "Tabs").stdout
    assert [row["summary"] for row in json.loads(run("--json", "recall", "accepted in review").stdout)["entries"]] == []
    assert "accepted in review" in run("show", "--history", item).stdout


def test_governing_prints_complete_commands_for_pending_rules_and_for_another_repository(
    repository, tmp_path, monkeypatch
):
    (repository / "a.py").write_text("")
    assert run("remember", "Tabs in a.py", "--type", "convention", "--about", "a.py", "--agent", "bob").exit_code == 0
    (line,) = [line for line in run("governing", "a.py").stderr.splitlines() if line.startswith("accept one: ")]

    for command in line.removeprefix("accept one: ").split("; all: "):
        assert run(*shlex.split(command)[1:]).exit_code == 0, command

    assert "Tabs in a.py" in run("governing", "a.py").stdout
    other = create_repository(tmp_path / "other", monkeypatch)
    refused = run("governing", str(repository / "a.py"))
    assert refused.exit_code == 2
    command = refused.stderr.partition("ask the memory there: ")[2].strip()
    assert "Tabs in a.py" in run(*shlex.split(command)[1:]).stdout, (other, command)


def test_a_settlement_names_the_settled_memory(repository):
    first, _ = (row["item"] for row in rows("review"))

    assert run("review", "reject", first).stderr.splitlines()[0] == f"rejected: {first[-8:]} in project p"


def test_an_undone_rejection_names_the_proposal_that_is_pending_again(repository):
    first, _ = (row["item"] for row in rows("review"))
    assert run("review", "reject", first).exit_code == 0
    pending = run("edit", first, "--undo", "--reason", "read it again").stdout.strip()

    refused = run("review", "accept", first)
    command = refused.stderr.splitlines()[-1].partition(": jidomem ")[2].partition(",")[0]

    assert f"pending again as {pending[-8:]}" in refused.stderr
    assert run(*command.split()).exit_code == 0


def test_contradicting_proposals_are_left_out_of_accept_all(repository):
    options = ["--type", "architectural_decision", "--topic", "queue", "--rationale", "r", "--agent", "bob"]
    first, second = (run("remember", text, *options).stdout.strip()[-8:] for text in ("Use A", "Use B"))

    listed = run("review")
    result = run("review", "accept", "--all")

    assert f"    against the proposal {second}: Use B\n" in listed.stdout
    assert f"    against the proposal {first}: Use A\n" in listed.stdout
    assert "accept 2 proposals (2 convention) without a conflict" in listed.stderr
    assert (result.exit_code, "2 left, in conflict with" in result.stderr) == (0, True)
    assert sorted(row["item"][-8:] for row in rows("review")) == sorted((first, second))


def test_a_page_lists_rival_proposals_of_other_pages_without_superseded_ones(repository):
    options = ["--type", "architectural_decision", "--topic", "queue", "--rationale", "r", "--agent", "bob"]
    rival, old = (run("remember", text, *options).stdout.strip() for text in ("Use Redis", "Use Valkey 7"))
    new = run("remember", "Use Valkey 8", *options, "--supersedes", old, "--reason", "newer").stdout.strip()

    page = run("review", "--limit", "4")
    *_, row = rows("review", "--limit", "4")

    assert (row["item"][-8:], row["rivals"]) == (rival[-8:], [{"item": new, "summary": "Use Valkey 8"}])
    assert f"    against the proposal {new[-8:]}: Use Valkey 8\n" in page.stdout
    assert f"against the proposal {old[-8:]}" not in page.stdout
    rivals = {row["summary"]: [each["summary"] for each in row["rivals"]] for row in rows("review")}
    assert rivals == {"Tabs": [], "Spaces": [], "Use Redis": ["Use Valkey 8"], "Use Valkey 7": [],
                      "Use Valkey 8": ["Use Redis"]}  # fmt: skip


def test_a_rule_that_also_applies_to_curators_warns_with_the_rule_that_exempts_them(repository):
    warned = run("access", "policy", "set", "propose", "--kind", "fact", "--about", "src")
    assert run("remember", "it is slow", "--about", "src/a.py", "--agent", "bob").exit_code == 0
    (item,) = (row["item"] for row in rows("review") if row["type"] == "fact")

    refused = run("review", "accept", item)
    command = refused.stderr.splitlines()[-1].partition(": jidomem ")[2]

    assert f"to let curators: jidomem {command}" in warned.stderr
    assert (refused.exit_code, command) == (3, "access policy set assert --kind fact --about src --role curator")
    assert "nobody can accept" not in run(*command.split()).stderr
    assert run("review", "accept", item).exit_code == 0


@pytest.mark.parametrize(("preset", "kinds"), [("open", []), ("curated", ["architectural_decision", "convention"])])
def test_a_preset_replaces_all_other_rules(repository, preset, kinds):
    for words in (["propose"], ["deny", "--kind", "task", "--for", "bob"], ["assert", "--role", "Architect"]):
        assert run("access", "policy", "set", *words).exit_code == 0

    assert run("access", "policy", "set", "--preset", preset).exit_code == 0

    others = [row for row in rows("access", "policy", "show") if row["allows"] and row["role"] != "MemoryReader"]
    assert sorted({row["kind"] for row in others}) == kinds
    assert f"the policy is {preset} already" in run("access", "policy", "set", "--preset", preset).stderr


def conflicting_facts(repository):
    """Return the ids of two active facts of ana that contradict each other, in the order of the review."""
    config = repository / ".jidomem" / "config.toml"
    config.write_text(config.read_text() + '\n[conflicts]\nfact = "warn"\n')
    for text in ("the port is 80", "the port is 81"):
        assert run("remember", text, "--topic", "port", "--agent", "ana").exit_code == 0
    (row,) = [row for row in rows("review") if row["kind"] == "conflict"]
    return row["item"][-8:], row["other"][-8:]


def test_the_commands_of_a_review_name_its_agent(repository):
    item, other = conflicting_facts(repository)
    results = [run("review", *words, "--agent", "ana") for words in ((), ("--conflicts",), ("accept", item, other))]
    results.append(run("review", "accept", "urn:none", item, "--agent", "ana"))

    lines = [line for each in results for line in (each.stdout + each.stderr).splitlines()]
    commands = [command for line in lines for command in re.findall(r"jidomem (?:review|edit).*", line)]

    assert len(commands) > 12
    assert [command for command in commands if " --agent ana" not in command] == []
    assert f"jidomem review --agent ana accept {item} --against {other}" in results[1].stdout


def test_a_settled_pair_reports_the_new_status_of_each_memory(repository):
    item, other = conflicting_facts(repository)
    line = f"accept {item} {other} it was measured\n"

    result = run("review", "--from", "-", "--agent", "ana", stdin=line)

    message = f"line 1: accepted {item} ({item} stays active, {other} is withdrawn): the port is "
    assert result.stdout.startswith(message)
    assert json.loads(run("show", item, "--json").stdout)["status"] == "active"
    assert json.loads(run("show", other, "--json").stdout)["status"] == "invalidated"


def test_accepting_an_expired_memory_is_refused_with_the_command_that_renews_it(repository):
    words = ("Sold out", "--valid-until", "2020-11-20", "--iri", "urn:v", "--agent", "ana")
    assert run("remember", *words).exit_code == 0

    refused = run("review", "accept", "urn:v", "--agent", "ana")

    assert (refused.exit_code, refused.stderr.splitlines()) == (2, [
        "error: urn:v expired: it was valid until 2020-11-20, and nothing is pending on it",
        "hint: to renew it: jidomem edit --agent ana urn:v --set valid_until=DATE",
    ])  # fmt: skip
    renewal = refused.stderr.partition("renew it: ")[2].replace("DATE", "2999-01-01")
    assert run(*shlex.split(renewal)[1:]).exit_code == 0


def test_similar_rules_in_the_same_words_show_their_enforcement_levels(repository, monkeypatch):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", "local")
    for level in ("Strict", "Advisory"):
        rule = ("Every service logs one line for each request", "--type", "convention", "--about", level)
        assert run("remember", *rule, "--enforcement-level", level).exit_code == 0

    output = run("review").stdout

    assert "which is active, with other fields, differs in Strict / Advisory enforcement" in output


RULE = ("--type", "convention", "--enforcement-level", "Strict", "--about", "src/**", "--forbids", "print[(]")


@pytest.fixture
def weakening(repository):
    """Return the ids of a strict convention and of an agent's proposal that lowers its level."""
    assert run("review", "reject", *(row["item"] for row in rows("review"))).exit_code == 0
    strict = run("remember", "Nothing in src prints", *RULE).stdout.strip()
    change = ("--set", "enforcement_level=Advisory", "--reason", "annoying", "--agent", "ben")
    return strict, run("edit", strict, *change).stdout.strip()


def test_a_proposal_is_listed_with_the_replaced_memory_its_changes_and_its_reason(weakening):
    strict, propose = weakening
    lines = [
        f"replaces {strict[-8:]}: Nothing in src prints",
        "enforcement level: Strict -> Advisory",
        "reason: annoying",
    ]

    table, todo, (row,) = run("review").stdout, run("review", "--todo").stdout, rows("review")

    assert [line.strip() for line in table.splitlines()][2:] == lines
    assert "\n".join(f"#   {line}" for line in lines) in todo
    changes = [{"field": "enforcement_level", "before": "Strict", "after": "Advisory"}]
    assert (row["item"], row["reason"], row["ends"]) == (propose, "annoying", [
        {"item": strict, "summary": "Nothing in src prints", "status": "active", "is_withdrawn": False,
         "changes": changes},
    ])  # fmt: skip


def test_the_changes_of_a_proposal_on_a_proposal_are_relative_to_the_active_memory(weakening):
    strict, propose = weakening
    change = ("--set", "about=lib/**", "--reason", "moved", "--agent", "ben")
    second = run("edit", propose, *change).stdout.strip()

    (ends,) = (row["ends"] for row in rows("review") if row["item"] == second)

    fields = {each["item"]: [change["field"] for change in each["changes"]] for each in ends}
    assert fields == {strict: ["about", "enforcement_level"], propose: ["about"]}


@pytest.mark.parametrize(
    "change", [["--set", "enforcement_level=Advisory"], ["--set", "about=lib/**"], ["--invalidate"]]
)
def test_accept_all_leaves_out_changes_and_withdrawals_of_a_strict_convention(repository, change):
    strict = run("remember", "Nothing in src prints", *RULE).stdout.strip()
    propose = run("edit", strict, *change, "--reason", "annoying", "--agent", "ben").stdout.strip()
    assert run("review").stderr.splitlines()[-1].startswith("accept 2 proposals (2 convention) without a conflict")

    result = run("review", "accept", "--all")

    assert (result.exit_code, result.stdout.count("accepted ")) == (0, 2)
    message = f"1 left, each changes or ends a Strict convention; accept it by its id: {propose[-8:]}"
    assert message in result.stderr.splitlines()
    assert [row["item"] for row in rows("review")] == [propose]
    assert json.loads(run("show", strict, "--json").stdout)["status"] == "active"


def test_accept_all_names_the_active_memories_to_be_replaced(repository):
    advisory = run("remember", "Names are short", "--type", "convention").stdout.strip()
    changed = run("edit", advisory, "--set", "about=lib/**", "--reason", "moved", "--agent", "ben").stdout.strip()

    output = run("review", "accept", "--all", "--dry-run").stderr.splitlines()

    at = output.index("active memories that they replace or withdraw: 1")
    assert output[at + 1] == f"  {changed[-8:]} replaces {advisory[-8:]}: Names are short"


@pytest.mark.parametrize("command", [["review", "reject"], ["edit", "--invalidate"]])
def test_an_agent_withdraws_only_its_own_proposals_and_accepts_none(weakening, command):
    strict, propose = weakening
    withdraw = (*command, propose, "--reason", "mine", "--agent")

    other = run(*withdraw, "cleo", "--dry-run")
    accepted = run("review", "accept", propose, "--agent", "ben")
    own = run(*withdraw, "ben")

    assert (other.exit_code, "proposed" in other.stderr) == (0, True) if command[0] == "edit" else (3, False)
    assert (accepted.exit_code, own.exit_code) == (3, 0)
    assert rows("review") == []
    statuses = [json.loads(run("show", item, "--json").stdout)["status"] for item in (strict, propose)]
    assert statuses == ["active", "rejected"]
    assert run("edit", strict, "--invalidate", "--reason", "mine", "--agent", "ben").exit_code == 0
    assert json.loads(run("show", strict, "--json").stdout)["status"] == "active"


def test_an_overdue_memory_is_confirmed_by_the_command_printed_in_list_and_refusal(
    repository,
):
    assert run("review", "reject", *(row["item"] for row in rows("review"))).exit_code == 0
    item = run("remember", "old", "--expires-on", "2020-01-01").stdout.strip()

    listed, refused = run("review").stderr, run("review", "accept", item)

    command = f"jidomem edit {item[-8:]} --confirm --set expires_on=DATE"
    assert listed.splitlines() == [
        f"decide one: {command}, or jidomem review reject {item[-8:]}", "decide many: jidomem review --edit",
    ]  # fmt: skip
    assert (refused.exit_code, refused.stderr.splitlines()[-1]) == (
        2, f"hint: give the date of the next review: {command}",
    )  # fmt: skip
    assert run(*shlex.split(command.replace("DATE", "2999-01-01"))[1:]).exit_code == 0
    assert rows("review") == []


def test_acceptance_and_confirmation_name_the_date_of_the_next_review(repository):
    item = run("remember", "the API stays free", "--type", "assumption", "--expires-on", "2999-01-01").stdout.strip()
    proposal = propose("Log in JSON", "--expires-on", "2999-01-01")

    for result in (run("edit", item, "--confirm"), run("review", "accept", proposal)):
        assert re.fullmatch(r"it is due 2999-01-01( \d\d:\d\d)?", result.stderr.splitlines()[-1]), result.stderr


def propose(text, *options, agent="bob"):
    """Propose a convention as *agent*, and return its short id."""
    return run("remember", text, "--type", "convention", *options, "--agent", agent).stdout.strip()[-8:]


def test_governing_offers_to_accept_only_proposals_without_a_conflict(repository):
    (repository / "a.py").write_text("")
    old = run("remember", "Log in JSON", "--type", "convention", "--about", "a.py", "--topic", "log").stdout.strip()
    for text, agent in (("Log in logfmt", "bob"), ("Log in CSV", "cleo")):
        assert run("edit", old, "--supersede", text, "--reason", "smaller", "--agent", agent).exit_code == 0
    alone = propose("Only here", "--about", "a.py")

    output = run("governing", "a.py").stderr.splitlines()

    assert f"accept one: jidomem review accept {alone}" in output
    assert "in conflict, or with something to decide: 2, see: jidomem review" in output
    assert not [line for line in output if "--all" in line]
    assert run("review", "accept", alone).exit_code == 0
    assert not [line for line in run("governing", "a.py").stderr.splitlines() if line.startswith("accept")]


def test_each_of_several_rivals_has_a_command_that_accepts_it_and_rejects_the_others(repository):
    old = run("remember", "Log in JSON", "--type", "convention", "--topic", "log").stdout.strip()[-8:]
    changes = [("--supersede", "Log in logfmt"), ("--supersede", "Log in CSV"), ("--invalidate",)]
    ids = [run("edit", old, *change, "--reason", "smaller", "--agent", f"a{number}").stdout.strip()[-8:]
           for number, change in enumerate(changes)]  # fmt: skip
    listed = {row["item"][-8:]: row for row in rows("review") if row["rivals"]}

    result = run("review", "accept", "--all")

    assert {*listed} == {*ids}
    assert "3 left, in conflict with each other: accept one" in result.stderr
    for item, row in listed.items():
        both, reject = row["settle"]
        others = [each["item"][-8:] for each in row["rivals"]]
        assert both == f"jidomem review accept {item} && jidomem review reject {' '.join(others)}"
        assert both in result.stderr
        assert reject == f"jidomem review reject {item}"
    pairs = [{row["item"][-8:], row["other"][-8:]} for row in rows("review", "--conflicts")]
    assert sorted(map(sorted, pairs)) == sorted(map(sorted, ({a, b} for a in ids for b in ids if a < b)))
    for command in listed[ids[2]]["settle"][0].split(" && "):
        assert run(*shlex.split(command)[1:]).exit_code == 0
    assert rows("review", "--conflicts") == []
    assert [row["name"] for row in rows("ask", "conventions")] == ["Tabs", "Spaces"]


def test_keep_both_requires_a_distinct_place_for_one_memory(repository):
    (repository / "lib").mkdir()
    (repository / "lib" / "b.py").write_text("")
    item = propose("Use tabs", "--topic", "indent")
    assert run("remember", "Use spaces", "--type", "convention", "--topic", "indent").exit_code == 0

    refused = run("review", "keep-both", item)
    hint = refused.stderr.splitlines()[-1]
    result = run("review", "keep-both", item, "--set", "about=lib")
    misuse = run("review", "accept", item, "--set", "about=lib")

    assert (refused.exit_code, result.exit_code, misuse.exit_code) == (5, 0, 2)
    assert f"jidomem review keep-both {item} --set about=PATH" in hint
    assert "--set goes with supersede or keep-both of one memory" in misuse.stderr
    assert {"Use spaces", "Use tabs"} <= {row["name"] for row in rows("ask", "conventions")}


@pytest.mark.parametrize("options", [[], ["--dry-run"]], ids=str)
def test_accepting_two_rivals_is_refused_with_a_command_for_each(repository, options):
    first, second = (propose(text, "--topic", "queue") for text in ("Jobs run on Kafka", "Jobs run on RabbitMQ"))

    result = run("review", "accept", first, second, *options)

    assert (result.exit_code, result.stdout) == (5, "")
    assert f"refused 2: {first}, {second}" in result.stderr
    for one, other in ((first, second), (second, first)):
        assert f"jidomem review supersede {one} --against {other}" in result.stderr
    assert {first, second} <= {row["item"][-8:] for row in rows("review")}


def test_a_recorded_decision_with_the_status_proposed_is_decided_by_its_status(repository):
    options = ("--type", "architectural_decision", "--rationale", "r", "--status", "proposed")
    item = run("remember", "Split the repo", *options).stdout.strip()[-8:]

    listed = run("review").stderr
    accept, reject = (run("review", action, item) for action in ("accept", "reject"))
    command = f"jidomem edit {item} --set status=accepted"

    assert f"1 recorded decision has the status proposed; decide one: {command}, or rejected\n" in listed
    assert (accept.exit_code, reject.exit_code) == (2, 2)
    assert f"to accept the decision: {command}\n" in accept.stderr
    assert f"to reject the decision: jidomem edit {item} --set status=rejected; to withdraw" in reject.stderr
    assert run("edit", item, "--set", "status=rejected", "--reason", "no").exit_code == 0
    assert [row["summary"] for row in rows("ask", "decisions", "status=rejected")] == ["Split the repo"]
    assert "recorded decision" not in run("review").stderr


def test_a_withdrawal_is_shown_as_one_in_history_and_diff_and_a_new_review_date_as_confirmed(repository):
    fact = run("remember", "the API is free", "--expires-on", "2030-01-01").stdout.strip()[-8:]
    newer = run("edit", fact, "--confirm", "--set", "expires_on=2031-01-01").stdout.strip()[-8:]
    assert run("edit", newer, "--invalidate", "--reason", "it costs").exit_code == 0

    events = [(row["event"], row["status"]) for row in rows("show", fact, "--history")]
    tables = run("show", fact, "--history").stdout, run("journal", "diff", "--as-of", "0").stdout

    assert events == [("asserted", "superseded"), ("confirmed", "invalidated"), ("withdrawn", "withdrawal")]
    for table in tables:
        (line,) = [line for line in table.splitlines() if "Withdrawn: the API is free" in line]
        assert line.split()[-1] == "withdrawal"


def test_rules_of_confirmation_are_printed_as_sentences(repository):
    restated = run("access", "policy", "confirm", "restated", "--kind", "convention").stderr
    unopposed = run("access", "policy", "confirm", "unopposed", "--kind", "fact", "--days", "3").stderr

    assert "\na proposed convention restated by another agent is confirmed\n" in restated
    assert "\na proposed fact unopposed for 3 days is confirmed\n" in unopposed


def test_the_proposals_of_one_agent_are_listed_and_rejected_together(repository):
    commits = repository / ".jidomem" / "projects" / "p" / "memory"
    propose("Rule of another", agent="The Crawler")
    run("review", "reject", rows("review", "--by", "the-crawler")[0]["item"])
    items = [propose(f"Rule {number}", agent="crawler") for number in range(25)]
    run("edit", items[0], "--supersede", "Rule 0, newer", "--agent", "crawler")
    before, of_bob = len([*commits.glob("2*.ttl")]), {row["item"] for row in rows("review", "--by", "bob")}

    listed = run("review", "--by", "crawler", "--limit", "2")
    assert [row["item"] in of_bob for row in rows("review", "--by", "crawler")] == [False] * 26
    assert 'reject all 26: jidomem review reject --all --by crawler --reason "..."' in listed.stderr
    assert rows("review", "--by", "The Crawler") == [] != rows("review", "--by", "Crawler")
    for action in (["reject", "--all"], ["accept", "--all"], []):
        unknown = run("review", *action, "--by", "crawlr")
        assert (unknown.exit_code, "did you mean crawler" in unknown.stderr) == (4, True)
    preview = run("review", "reject", "--all", "--by", "crawler", "--dry-run")
    assert "would reject 26:\n  by crawler: 26 convention\n" in preview.stderr
    assert preview.stderr.count("Rule ") == 3
    assert len(rows("review", "--by", "crawler")) == 26

    result = run("review", "reject", "--all", "--by", "crawler", "--reason", "it repeats itself")

    assert (result.exit_code, "rejecting 26:" in result.stderr, "rejected 26" in result.stderr) == (0, True, True)
    assert len([*commits.glob("2*.ttl")]) == before + 1
    assert {row["item"] for row in rows("review")} == of_bob
    assert len(of_bob) == 2


@pytest.mark.parametrize("words", [
    ["reject", "--all"], ["supersede", "--all", "--by", "bob"],
    ["--conflicts", "--by", "bob"], ["--by-rule", "--by", "bob"],
])  # fmt: skip
def test_reject_all_requires_one_agent(repository, words):
    assert run("review", *words).exit_code == 2
    assert len(rows("review")) == 2
