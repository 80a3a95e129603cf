"""Writing at the command line: recorded memories, receipts, and the hints of refusals."""

import json
import os
import pwd
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_world import FACT, INTENTS, MEMORY, OLD, TASK, create_repository, rows, run
from conftest import files

import jidomem
from jidomem.records.active import REASON
from jidomem.records.intent import INTENT_FIELDS
from jidomem_cli.fields import HELP


@pytest.fixture(autouse=True)
def repository(tmp_path, monkeypatch):
    return create_repository(tmp_path / "repo", monkeypatch)


def show_memory(name):
    return json.loads(run("show", name, "--json").stdout)


def test_init_creates_a_root_and_prints_the_next_command(tmp_path):
    result = run("init", tmp_path / "new", "--project", "new-project", "--json")

    assert json.loads(result.stdout) == {
        "root": str(tmp_path / "new" / ".jidomem"),
        "project": "new-project",
        "made": ["config.toml", ".gitignore", ".gitattributes"],
        "kept": [],
        "importable": [],
    }
    assert "jidomem remember" in result.stderr


def test_a_second_init_changes_nothing_and_reports_that(repository):
    before = files(repository)

    second = run("init")

    assert second.exit_code == 0
    assert "it exists already" in second.stderr
    assert files(repository) == before


def test_remember_prints_the_iri_on_stdout_and_messages_on_stderr():
    result = run("remember", "the API is versioned")

    assert show_memory(result.stdout.strip())["properties"]["assertedBy"] == ["https://jido.ai/agents/ana"]
    assert len(result.stdout.splitlines()) == 1
    assert result.stderr.startswith("asserted: ")
    assert run("remember", "the API is paged", "-q").stderr == ""


@pytest.mark.parametrize("user", [None, ""])
def test_without_a_user_in_the_environment_the_author_is_the_account_of_the_process(monkeypatch, user):
    monkeypatch.delenv("JIDOMEM_AGENT")
    monkeypatch.delenv("USER", raising=False)
    if user is not None:
        monkeypatch.setenv("USER", user)

    author = show_memory(run("remember", "the API is versioned").stdout.strip())["properties"]["assertedBy"]

    assert author == [f"https://jido.ai/agents/{pwd.getpwuid(os.getuid()).pw_name}"]


def test_an_author_without_an_account_is_named_user(monkeypatch):
    used_ids = {each.pw_uid for each in pwd.getpwall()}
    free = next(uid for uid in range(60_000, 2**31) if uid not in used_ids)
    monkeypatch.delenv("JIDOMEM_AGENT")
    monkeypatch.delenv("USER", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: free)  # like a container that runs with an arbitrary uid

    assert jidomem.runtime.settings.load().agent == "user"


def test_remember_with_json_prints_the_receipt():
    receipt = json.loads(run("--json", "remember", "the API is versioned", "--agent", "bo", "--session", "s-9").stdout)

    assert receipt["status"] == "asserted"
    assert receipt["filled"]["asserted_in"] == "s-9"
    assert receipt["commit"]
    assert show_memory(receipt["iri"])["properties"]["assertedBy"] == ["https://jido.ai/agents/bo"]


def test_each_field_of_an_intent_has_an_option_or_another_place():
    elsewhere = {"summary", "applies_to_project", "asserted_by", "asserted_in", "extra_triples"}

    assert set(HELP) == set(INTENT_FIELDS) - elsewhere


def test_the_options_of_remember_are_recorded():
    result = run(
        *("remember", "Keep one store", "--type", "decision", "--topic", "store", "--rationale", "simpler"),
        *("--about", "a.py", "--about", "b.py", "--confidence", "0.9", "--supersedes", OLD, "--alternatives", "two"),
    )

    properties = show_memory(result.stdout.strip())["properties"]
    assert properties["about"] == ["a.py", "b.py"]
    assert properties["confidenceValue"] == [0.9]
    assert properties["supersedes"] == [MEMORY + OLD]
    assert len(properties["hasAlternative"]) == 1


def without_cache(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return *files* without the derived files of a root, which a read may write."""
    return {path: data for path, data in files.items() if "/cache/" not in path}


@pytest.mark.parametrize(
    "words",
    [
        ["remember", "x"],
        ["submit", "in.json"],
        ["edit", OLD, "--supersede", "y", "--reason", "z"],
        ["edit", OLD, "--invalidate", "--reason", "z"],
    ],
)
def test_a_dry_run_validates_and_writes_nothing(words, repository):
    (repository / "in.json").write_text(json.dumps(INTENTS[0]))
    before = without_cache(files(repository))

    result = run(*words, "--dry-run")

    assert result.exit_code == 0, result.stderr
    assert f"would be {'invalidated' if '--invalidate' in words else 'asserted'}" in result.stderr
    assert without_cache(files(repository)) == before


def test_without_a_root_a_memory_is_recorded_in_the_memory_of_the_user(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    result = run("remember", "tea at four")

    assert result.exit_code == 0
    assert f"recorded in your own memory, {os.environ['XDG_DATA_HOME']}/jidomem" in result.stderr


@pytest.mark.parametrize("is_written", [True, False])
def test_init_offers_the_memories_of_the_project_in_the_memory_of_the_user(tmp_path, monkeypatch, is_written):
    folder = tmp_path / "notes"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert run("remember", "tea at four", "--project", "notes" if is_written else "other").exit_code == 0
    Path(os.environ["XDG_DATA_HOME"], "jidomem", "projects", "notes", "memory").mkdir(parents=True, exist_ok=True)

    result = run("init", ".")

    assert result.exit_code == 0
    assert ("are in your own memory; move them here with:" in result.stderr) is is_written
    for line in [line.strip() for line in result.stderr.splitlines() if line.startswith("  jidomem ")]:
        assert run(*shlex.split(line)[1:]).exit_code == 0, line
    assert ("tea at four" in run("ask", "facts").stdout) is is_written


def test_a_conflict_shows_the_other_memory_and_the_choices():
    words = ["remember", "Use Jena", "--type", "decision", "--topic", "store", "--rationale", "tooling"]

    refused = run(*words)

    assert refused.exit_code == 5
    assert f"overlapping_decision with {MEMORY}{OLD}" in refused.stderr
    messages = refused.stderr.splitlines()
    assert "    asserted_by: architect" in messages
    assert f"  overlapping_decision with {MEMORY}{OLD}: Use Oxigraph 0.4" in messages
    (start,) = [number for number, line in enumerate(messages) if line == "hint: choose one:"]
    choices = dict(line.strip().partition(": ")[::2] for line in messages[start + 1 :])
    assert list(choices) == [
        f"--supersedes {OLD}",
        f"--coexists-with {OLD} --about TEXT",
        "--topic TEXT",
        "or submit nothing",
    ]
    assert choices[f"--supersedes {OLD}"].startswith("it ends, and yours takes its place")
    assert run(*words, "--supersedes", OLD).exit_code == 0


def test_a_fact_that_holds_later_leaves_the_present_one_until_then():
    words = ["remember", "The office is in Gothenburg", "--topic", "office", "--valid-from", "2031-03-14"]
    words += (agent := ["--agent", "architect"])
    old = json.loads(run("remember", "The office is in Malmo", "--topic", "office", *agent, "--json").stdout)["iri"]

    first, second = run(*words).stderr.partition("choose one:\n")[2].splitlines()[:2]
    command = re.fullmatch(r"  if it holds until 2031-03-14: jidomem (.*), then submit yours again", first)[1]

    assert second.startswith(f"  --supersedes {old[-8:]}: if it was wrong from the start")
    assert shlex.split(command)[:3] == ["edit", *agent]
    assert run(*shlex.split(command)).exit_code == 3  # the reason is still to be given
    assert run(*shlex.split(command.replace(REASON, "the lease ends"))).exit_code == 0
    assert run(*words).exit_code == 0
    offices = [run("ask", "facts", "--valid-at", f"2031-03-{day}", "--json").stdout for day in (13, 14)]
    assert [("Malmo" in each, "Gothenburg" in each) for each in offices] == [(True, False), (False, True)]


def test_a_fact_that_supersedes_but_holds_only_later_warns_of_the_time_before():
    old = json.loads(run("remember", "The office is in Malmo", "--topic", "office", "--json").stdout)["iri"]
    moved = ["remember", "The office is in Gothenburg", "--topic", "office", "--supersedes", old]

    warning = run(*moved, "--valid-from", "2031-03-14").stderr

    assert f"{old} ends now as a whole, and this memory is valid from 2031-03-14 on" in warning
    assert run("remember", "The office is in Malmo", "--topic", "office", "--valid-until", "2031-03-14").exit_code == 0
    assert "Malmo" in run("ask", "facts").stdout


@pytest.mark.parametrize("begins", [[], ["--valid-from", "2019-05-01"]])
def test_a_fact_that_held_no_later_than_the_other_supersedes_it_without_a_warning(begins):
    old = json.loads(
        run("remember", "The office is in Malmo", "--topic", "office", "--valid-from", "2020-01-01", "--json").stdout
    )["iri"]
    moved = ["remember", "The office is in Gothenburg", "--topic", "office", *begins]

    refused = run(*moved)

    assert "choose one:\n  --supersedes" in refused.stderr
    assert "as a whole" not in run(*moved, "--supersedes", old).stderr


def test_the_hint_for_a_stale_edit_corrects_the_successor_and_preserves_its_change():
    first = json.loads(run("remember", "Ship it", "--type", "task", "--assigned-to", "ben", "--json").stdout)["iri"]
    newer = json.loads(run("edit", first, "--set", "assigned_to=carl", "--json").stdout)["iri"]

    refused = run("edit", first, "--set", "status=InProgress", "--agent", "ben")
    _, _, command = refused.stderr.partition("if it is still wrong: jidomem ")
    assert shlex.split(command) == ["edit", "--agent", "ben", newer[-8:], "--set", "status=InProgress"]
    last = json.loads(run(*shlex.split(command), "--json").stdout)["iri"]
    output = run("show", last).stdout
    assert "carl" in output
    assert "InProgress" in output


def test_a_repeated_invalid_edit_of_a_superseded_memory_gives_the_first_refusal():
    words = ("edit", FACT, "--confirm", "--set", "supersedes=ffff0000")
    first = run(*words)
    run("edit", FACT, "--supersede", "the cache holds 4 GiB", "--reason", "read")

    second = run(*words)

    assert (second.exit_code, second.stderr) == (3, first.stderr)


def test_a_refused_withdrawal_names_the_command_that_withdraws_the_successor():
    newer = run("edit", FACT, "--supersede", "the cache holds 4 GiB", "--reason", "read").stdout.strip()

    refused = run("edit", FACT, "--invalidate", "--reason", "not measured")

    assert "\n  submit nothing: the memory that took the place stays\n" in refused.stderr
    command = f"edit {newer[-8:]} --invalidate --reason 'not measured'"
    assert f"  jidomem {command}: read the memory that took the place" in refused.stderr
    assert run(*shlex.split(command)).exit_code == 0


def test_a_second_withdrawal_is_refused_without_a_command():
    assert run("edit", FACT, "--invalidate", "--reason", "not measured").exit_code == 0

    second = run("edit", FACT, "--invalidate", "--reason", "not measured")

    assert second.exit_code == 5
    assert second.stderr.splitlines()[-1] == "hint: submit nothing: it stays withdrawn"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["remember", "Use Jena", "--type", "decision"], "give --rationale TEXT"),
        (["remember", "Use Jena", "--type", "descision"], "give --type decision --rationale TEXT"),
        (
            ["edit", TASK, "--set", "severity=high"],
            "leave out --set severity, or give --set type=VALUE as one of: bug, error, failure, incident",
        ),
    ],
)
def test_the_hint_of_a_refusal_names_options_of_the_verb(words, hint):
    refused = run(*words)

    assert refused.exit_code == 3
    assert refused.stderr.splitlines()[-1] == f"hint: {hint}"


def test_a_repairable_refusal_prints_a_command_that_is_accepted(repository):
    refused = run("submit", "--project", "p", stdin=json.dumps({**INTENTS[0], "confidence": "hihg"}))
    command = refused.stderr.partition("this would be accepted:\n")[2]

    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    pasted = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)

    assert refused.exit_code == 3
    assert "nearest: high" in refused.stderr
    assert pasted.returncode == 0, pasted.stderr
    assert show_memory(pasted.stdout.strip())["properties"]["summary"] == [INTENTS[0]["summary"]]


def test_a_batch_prints_each_different_warning_once_with_its_intents():
    guesses = [{**INTENTS[0], "summary": f"guess {n}", "type": "assumption"} for n in range(3)]
    foreign = {**INTENTS[0], "summary": "a foreign one", "https://f.example/n": "x"}

    result = run("submit", stdin=json_lines(*guesses, foreign))

    warnings = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert [line.partition(": ")[2].partition(":")[0] for line in warnings] == ["intent 1 and 2 more", "intent 4"]
    assert "a foreign vocabulary" in warnings[1]
    assert result.stderr.splitlines()[-1] == "4 of 4 accepted"


def json_lines(*intents):
    return "".join((entry if isinstance(entry, str) else json.dumps(entry)) + "\n" for entry in intents)


def test_each_line_is_answered_in_order_and_the_first_refusal_sets_the_exit_code():
    stdin = json_lines(INTENTS[0], "", "{oops", {**INTENTS[0], "summary": None}, INTENTS[1], 5)

    result = run("submit", "--json", stdin=stdin)

    answers = [json.loads(line) for line in result.stdout.splitlines()]
    kinds = [answer.get("code") or answer["status"] for answer in answers]
    assert kinds == ["asserted", "malformed_json", "missing_required_fields", "asserted", "invalid_argument"]
    assert [answer.get("position") for answer in answers] == [None, 1, 2, None, 4]
    assert answers[1]["detail"].startswith("line 3 column 2: ")
    assert result.exit_code == 2


def test_each_intent_is_answered_in_one_line_of_text(repository):
    result = run("submit", stdin=json_lines(INTENTS[0], {**INTENTS[1], "confidence": "much"}))

    recorded, refused = result.stdout.splitlines()
    assert recorded.startswith("https://jido.ai/memory/")
    assert refused.startswith("refused: invalid_confidence: ")
    assert "error: intent 2: " in result.stderr
    assert result.stderr.endswith("1 of 2 accepted\n")
    assert result.exit_code == 3


@pytest.mark.parametrize("options", [(), ("--atomic",), ("--dry-run",)])
def test_a_line_that_is_no_json_is_located_once(options):
    result = run("submit", *options, stdin=json_lines(INTENTS[0], "", "{oops"))

    (error,) = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert error.startswith("error: line 3 column 2: ")


def test_an_atomic_submission_is_recorded_completely_or_not_at_all(repository):
    before = files(repository)

    refused = run("submit", "--atomic", "--json", stdin=json.dumps([INTENTS[0], {"type": "fact"}]))
    accepted = run("submit", "--atomic", "--json", stdin=json.dumps(INTENTS))

    assert json.loads(refused.stdout)["position"] == 1
    assert refused.exit_code == 3
    commits = {json.loads(line)["commit"] for line in accepted.stdout.splitlines()}
    assert len(commits) == 1
    assert len(files(repository)) == len(before) + 1


@pytest.mark.parametrize(
    ("stdin", "detail"),
    [
        (b'{"type": "fact",\n "summary": }', "line 2 column 13: "),
        (b'{"type": "\xff"}', "not UTF-8 at byte 10"),
        (b"", "there is nothing to submit"),
        (b'{"a": 1}\n{"a": "\xff"}\n', None),
    ],
)
def test_invalid_json_is_refused_with_its_position(stdin, detail):
    result = run("submit", "--json", stdin=stdin)

    error = json.loads(result.stdout.splitlines()[-1])
    assert error["code"] == "malformed_json"
    assert error["detail"].startswith(detail or "line 2: not UTF-8 at byte 7")
    assert result.exit_code == (2 if detail else 3)


def test_a_submitted_intent_without_author_gets_the_agent_of_the_option():
    values = {name: value for name, value in INTENTS[0].items() if not name.startswith("asserted")}

    receipt = json.loads(run("submit", "--agent", "bo", "--json", stdin=json.dumps(values)).stdout)
    named = json.loads(run("submit", "--agent", "bo", "--json", stdin=json.dumps(INTENTS[1])).stdout)

    assert show_memory(receipt["iri"])["properties"]["assertedBy"] == ["https://jido.ai/agents/bo"]
    assert show_memory(named["iri"])["properties"]["assertedBy"] == ["https://jido.ai/agents/architect"]


@pytest.mark.parametrize("command", [("submit",), ("submit", "--dry-run"), ("submit", "--atomic")])
def test_a_submitted_intent_without_author_gets_agent_and_session_of_the_environment(command, monkeypatch):
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")
    monkeypatch.setenv("JIDOMEM_SESSION", "monday")
    values = {name: value for name, value in INTENTS[0].items() if not name.startswith("asserted")}

    result = run(*command, "--json", stdin=f"[{json.dumps(values)}]")

    assert result.exit_code == 0
    if command == ("submit",):
        properties = show_memory(json.loads(result.stdout)["iri"])["properties"]
        assert properties["assertedBy"] == ["https://jido.ai/agents/ana"]
        assert properties["assertedIn"] == ["https://jido.ai/sessions/monday"]


def test_the_refusal_of_a_misspelt_author_field_contains_a_repaired_intent():
    values = {name: value for name, value in INTENTS[0].items() if not name.startswith("asserted")}

    for name in ("author", "asserted_bye"):
        refused = json.loads(run("submit", "--json", stdin=json.dumps({**values, name: "ben"})).stdout)

        assert refused["fixed_intent"]["asserted_by"] == "ben"


def test_many_intents_are_submitted_in_batches_and_all_are_recorded(monkeypatch):
    monkeypatch.setattr("jidomem.write.batch.PIECE", 3)

    result = run("submit", stdin=json_lines(*({**INTENTS[0], "about": [f"{n}.py"]} for n in range(8))))

    assert len(set(result.stdout.splitlines())) == 8
    assert len(rows("ask", "facts")) == 9
    assert "8 of 8 accepted" in result.stderr


def test_a_too_large_array_is_refused_with_the_command_to_stream_it(monkeypatch):
    monkeypatch.setattr("jidomem_cli.submit.LIMIT", 1_000)
    many = [{**INTENTS[0], "about": [f"{n}.py"]} for n in range(8)]

    refused = run("submit", "--json", stdin=json.dumps(many))
    streamed = run("submit", stdin=json_lines(*many))

    assert json.loads(refused.stdout)["code"] == "payload_too_large"
    assert "jq -c" in json.loads(refused.stdout)["hint"]
    assert "8 of 8 accepted" in streamed.stderr


def test_an_edit_supersedes_the_memory_and_preserves_unchanged_fields():
    result = run("edit", TASK, "--set", "status=Completed", "--set", "about=a.py", "--reason", "shipped")

    new = show_memory(result.stdout.strip())
    assert new["properties"]["summary"] == ["Ship the importer"]
    assert new["properties"]["hasTaskStatus"] == ["https://jido.ai/ontology#Completed"]
    assert new["properties"]["about"] == ["a.py"]
    assert show_memory(TASK)["superseded_by"] == [new["iri"]]


def test_an_invalidated_memory_is_not_active_and_requires_a_reason():
    assert run("edit", FACT, "--invalidate").exit_code == 2

    assert run("edit", FACT, "--invalidate", "--reason", "measured wrongly").exit_code == 0

    assert show_memory(FACT)["status"] == "invalidated"
    assert rows("ask", "facts") == []


def test_an_invalidation_names_the_memory_and_its_marker_is_not_active(repository):
    kinds = json.loads(run("status", "--json").stdout)["projects"][0]["counts"].keys()

    answer = run("edit", FACT, "--invalidate", "--reason", "measured wrongly")

    marker = answer.stdout.strip()
    assert f"invalidated: {FACT.rpartition('/')[2][-8:]} in project p" in answer.stderr
    assert json.loads(run("status", "--json").stdout)["projects"][0]["counts"].keys() == kinds
    (row,) = (line for line in run("ask", "timeline").stdout.splitlines() if marker[-8:] in line)
    assert "withdrawal" in row
    assert "active" not in row


@pytest.mark.parametrize("words", [[], ["--invalidate", "--supersede", "x", "--reason", "y"], ["--set", "status"]])
def test_an_incomplete_or_contradictory_edit_is_a_usage_error(words):
    result = run("edit", OLD, *words)

    assert result.exit_code == 2
    assert "hint: " in result.stderr


def test_a_session_is_started_paused_and_closed():
    assert run("agent", "session", "start", "evening", "--continues", "morning").exit_code == 0
    assert run("agent", "session", "phase", "evening", "review").exit_code == 0
    assert run("agent", "session", "pause", "evening").exit_code == 0
    paused = {row["session"]: row for row in rows("agent", "session", "list")}["https://jido.ai/sessions/evening"]
    assert run("agent", "session", "close", "evening").exit_code == 0

    assert paused["status"] == "https://jido.ai/ontology#Paused"
    assert paused["phase"] == "https://jido.ai/ontology#ReviewPhase"
    assert paused["agent"] == "https://jido.ai/agents/ana"
    assert "evening" not in run("agent", "session", "list").stdout
    assert "Closed" in run("agent", "session", "list", "--all").stdout
    assert run("agent", "session", "resume", "evening").exit_code == 3


def test_the_wait_option_limits_the_wait_for_another_writer(repository):
    with jidomem.open() as memory:
        memory.writer.remember("p", "x")
        from jidomem.journal.journal import Stream

        with memory.journal.lock(Stream("p")):
            result = run("remember", "y", "--wait", "0.05")

    assert result.exit_code == 6
    assert "0.05" in result.stderr


def test_a_list_field_is_set_by_a_json_list():
    error = run("remember", "the build hangs", "--type", "error").stdout.strip()
    cause = run("remember", "a lock is never freed", "--type", "root_cause").stdout.strip()

    triples = json.dumps([["jido:hasRootCause", {"@id": cause[-8:]}]])
    revised = run("edit", error, "--set", f"extra_triples={triples}", "--set", 'about=["a.py", "b.py"]', "--json")

    assert revised.exit_code == 0, revised.stdout
    properties = show_memory(json.loads(revised.stdout)["iri"])["properties"]
    assert (properties["hasRootCause"], sorted(properties["about"])) == ([cause], ["a.py", "b.py"])
    assert run("check", "--json").exit_code == 0


def test_a_list_field_accepts_one_triple_or_a_pattern_in_brackets():
    triple = 'extra_triples=["jido:taskStartedAt", "2026-01-02"]'
    task = run("edit", TASK, "--set", triple, "--set", "about=[ab].py", "--reason", "begun", "--json")

    assert task.exit_code == 0, task.stdout
    assert show_memory(json.loads(task.stdout)["iri"])["properties"]["about"] == ["[ab].py"]


def test_an_invalid_pattern_is_refused_with_its_option():
    refused = run("remember", "No x", "--type", "convention", "--enforcement-level", "Strict", "--forbids", "(?=x)y")

    assert refused.exit_code == 3
    assert "extra_triples" not in refused.stderr
    assert "--forbids" in refused.stderr


def test_the_check_of_a_convention_by_a_non_curator_is_reported_as_pending():
    words = ["remember", "No print", "--type", "convention", "--enforcement-level", "Strict", "--forbids", "print[(]"]
    assert "its check waits for a curator" in run(*words).stderr
    assert "waits" not in run(*words[:1], "No eval", *words[2:-1], "eval[(]", "--agent", "curator").stderr


@pytest.mark.parametrize("name", sorted(set(HELP) - {"type"}))
def test_an_empty_option_is_refused_and_records_nothing(repository, name):
    before = run("journal", "log").stdout
    option = f"--{name.replace('_', '-')}"

    refused = run("remember", "the cache holds 4 GiB", option, "")

    assert (refused.exit_code, run("journal", "log").stdout) == (2, before)
    assert refused.stderr == f"error: {option} is empty\nhint: give {option} a value, or leave it out\n"


@pytest.mark.parametrize(("words", "detail"), [
    (["init", ""], "FOLDER is empty"), (["access", "trust", " "], "PATH is empty"),
    (["root", "export", "--output", ""], "--output is empty"), (["root", "import", "check", ""], "KIND|PATH is empty"),
    (["remember", "x", "--expires-on", "  "], "--expires-on is empty"),
    (["ask", "--valid-at", "2026-01-01"], "the list of queries takes no options"),
    (["init", "x" * 100_000], f"{'x' * 150}… File name too long"),
    (["journal", "redact", "http://["], "item='http://[' is not an IRI"),
    (["demo", "--keep", ".jidomem/config.toml/x"], ".jidomem/config.toml/x: Not a directory"),
    (["ask", "--format", "x" * 100_000], f"Invalid value for '--format': '{'x' * 199}… is not one of"),
])  # fmt: skip
def test_a_value_that_cannot_be_meant_is_refused_in_few_words(words, detail):
    before = sorted(Path().iterdir())

    refused = run(*words, "--json")

    assert refused.exit_code == 2
    assert detail in json.loads(refused.stdout)["detail"]
    assert len(refused.stdout) < 1000
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [
        ["remember", "x", "--about", "ci", "--about", "", "--agent", "ana"],
        ["edit", FACT, "--confirm", "--set", ""],
        ["recall", "cache", "--kind", ""],
        ["--project", "", "status"],
        ["journal", "verify", "--anchor", ""],
        ["access", "policy", "grant", "bob", "admin", "--reason", ""],
    ],
)
def test_an_empty_option_of_any_command_is_named(words):
    option = words[words.index("") - 1]
    assert json.loads(run(*words, "--json").stdout)["detail"] == f"{option} is empty"


def test_an_empty_array_of_intents_is_refused_like_an_empty_file():
    refused = run("submit", stdin="[]")

    assert refused.exit_code == 2
    assert "there is nothing to submit: the array is empty" in refused.stderr


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret.txt", "src/../../x.py"])
def test_a_memory_about_a_path_outside_of_the_folder_is_refused(path):
    for verb in (["remember", "x", "--about", path], ["edit", FACT, "--set", f"about={path}"]):
        refused = run(*verb)

        assert (refused.exit_code, refused.stdout) == (2, "")
        assert f"{path} is outside" in refused.stderr


def test_a_new_file_is_named_relative_to_the_current_folder(repository, monkeypatch):
    (repository / "src").mkdir(exist_ok=True)
    monkeypatch.chdir(repository / "src")

    result = run("remember", "x", "--about", "../lib/new.py", "--about", str(repository / "lib") + "/")

    about = json.loads(run("show", result.stdout.strip(), "--json").stdout)["properties"]["about"]
    assert about == ["lib/", "lib/new.py"]


@pytest.mark.parametrize(
    ("field", "value", "hint"),
    [
        ("summary", ["a", "b"], 'give `summary` as one text in quotes, "..."'),
        ("assigned_to", 7, 'give `assigned_to` as one text in quotes, "..."'),
        ("about", 7, 'give `about` as a list of texts, ["...", "..."]'),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_the_expected_type(field, value, hint):
    refused = run("submit", "--json", stdin=json.dumps({**INTENTS[0], field: value}))

    assert json.loads(refused.stdout)["hint"] == hint


def test_the_refusal_of_an_intent_without_project_contains_a_repaired_intent():
    intent = {**INTENTS[0], "summary": "Another one"}
    intent.pop("applies_to_project")

    refused = json.loads(run("submit", "--json", stdin=json.dumps(intent)).stdout)

    assert refused["detail"] == "applies_to_project is missing"
    assert run("submit", stdin=json.dumps(refused["fixed_intent"])).exit_code == 0


def test_repeated_refusals_are_grouped_with_the_numbers_of_their_intents(tmp_path):
    incomplete = {name: value for name, value in INTENTS[0].items() if name != "confidence"}
    json_lines = [json.dumps({**incomplete, "summary": f"fact {number}"}) for number in range(6)]
    json_lines.insert(3, json.dumps(INTENTS[0]))
    json_lines += [
        "{",
        "[",
        json.dumps({**incomplete, "confidence": "sorta"}),
        json.dumps({**incomplete, "confidence": "whatever"}),
    ]

    text, values = (run("submit", *more, stdin="\n".join(json_lines)) for more in ([], ["--json"]))

    messages = text.stderr.splitlines()
    assert [line for line in text.stdout.splitlines() if line.startswith("refused: missing_required")] == 6 * [
        "refused: missing_required_fields: confidence is missing"
    ]
    assert [line for line in messages if "confidence is missing" in line] == [
        "error: intent 1: confidence is missing", "error: intents 1 to 3, 5 to 7: confidence is missing",
    ]  # fmt: skip
    assert [line for line in messages if "sorta" in line or "whatever" in line] == [
        "error: intent 10: confidence is low, medium, high or a number from 0 to 1, not 'sorta'",
        "error: intent 11: confidence is low, medium, high or a number from 0 to 1, not 'whatever'",
    ]
    assert messages.count("hint: set `confidence` to one of: high, medium, low") == 1
    assert (messages.count("hint: send one JSON object a line"), sum("line 8" in line for line in messages)) == (1, 1)
    assert messages[-2:] == ["each refusal with its repair: --json", "1 of 11 accepted"]
    refused = [each for each in map(json.loads, values.stdout.splitlines()) if "hint" in each]
    assert [each["position"] for each in refused] == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10]
    assert all(each["hint"] for each in refused)


def test_the_ranges_of_alternating_refusals_are_limited(tmp_path):
    no_summary, no_confidence = (
        {k: v for k, v in INTENTS[0].items() if k != name} for name in ("summary", "confidence")
    )
    json_lines = 30 * [json.dumps(no_summary), json.dumps(no_confidence)]

    (message,) = [
        line
        for line in run("submit", stdin="\n".join(json_lines)).stderr.splitlines()
        if line.startswith("error: intents 2, 4") and line.endswith("confidence is missing")
    ]

    numbers = ", ".join(str(number) for number in range(2, 41, 2))
    assert message == f"error: intents {numbers} and 10 more ranges: confidence is missing"


def test_a_warning_names_a_command_after_a_write_and_an_option_in_a_dry_run():
    task = ("remember", "Ship the exporter", "--type", "task", "--status", "InProgress")

    dry, written = run(*task, "--dry-run"), run(*task)

    warning = "warning: This task is assigned to nobody yet: "
    command = f"jidomem edit {written.stdout.strip()[-8:]} --set assigned_to=VALUE, the name of an agent."
    assert f"{warning}give --assigned-to, the name of an agent.\n" in dry.stderr
    assert f"{warning}{command}\n" in written.stderr
    edited = run("edit", TASK, "--set", "status=InProgress", "--set", "assigned_to=", "--dry-run")
    assert f"{warning}give --set assigned_to=VALUE, the name of an agent.\n" in edited.stderr


@pytest.mark.parametrize(("length", "is_warned"), [(999, False), (1_000, True)])
def test_a_long_summary_is_accepted_with_the_fields_for_its_details(length, is_warned):
    result = run("remember", "x" * length)

    assert result.exit_code == 0
    assert ("give details in --rationale or --detailed-explanation" in result.stderr) == is_warned


def test_an_edit_replaces_the_patterns_of_a_convention():
    rule = (
        "--type",
        "convention",
        "--enforcement-level",
        "Strict",
        "--about",
        "src",
        "--forbids",
        "foo",
        "--requires",
        "x",
    )
    old = run("remember", "No foo", *rule).stdout.strip()

    new = run("edit", old, "--set", "forbids=foobar", "--set", "forbids=fool", "--reason", "narrower").stdout.strip()

    properties = json.loads(run("show", new, "--json").stdout)["properties"]
    assert (sorted(properties["forbidsPattern"]), properties["requiresPattern"]) == (["foobar", "fool"], ["x"])
    refused = run("edit", new, "--set", "forbids=(", "--reason", "r")
    assert "correct --set forbids=PATTERN and resubmit" in refused.stderr
    assert run("edit", new, "--set", "forbids=x", "--set", "extra_triples=[[]]", "--reason", "r").exit_code == 2
    last = run("edit", new, "--set", "forbids=", "--reason", "no pattern").stdout.strip()
    assert "forbidsPattern" not in json.loads(run("show", last, "--json").stdout)["properties"]
