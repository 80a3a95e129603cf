"""`jidomem agent memoryos`: the tiers of an agent are filled, queried and deleted."""

import json

import pytest
from cli_world import rows, run

from jidomem.runtime.location import init
from jidomem.runtime.settings import own_config


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JIDOMEM_AGENT", "ada")
    return init(tmp_path, "p")


def run_json(*words):
    result = run("agent", "memoryos", *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def add_pages():
    """Add pages; maintenance moves the first two out of short-term memory and learns from them."""
    run(
        "agent",
        "memoryos",
        "set",
        "stm_capacity=2",
        "heat_threshold=1.5",
        "mtm_fscore_threshold=0.3",
        "system_importance_threshold=0.1",
    )
    run(
        "agent",
        "memoryos",
        "add",
        "I work as a nurse. Always run the tests.",
        "Noted.",
        "--about",
        "user:ana",
        "--id",
        "p1",
    )
    for query in ("Which index do we use?", "Where does the index lie?", "What is for lunch?"):
        run("agent", "memoryos", "add", query, "Noted.", "--about", "user:ana")


def test_pages_move_through_the_tiers_and_are_retrieved_with_their_tier():
    add_pages()

    assert {each["kind"] for each in rows("agent", "memoryos", "maintain")} >= {"maintain", "teach"}
    pages = rows("agent", "memoryos", "pages")
    assert (pages[0]["id"], pages[0]["in"] == "stm") == ("p1", False)
    assert [each["in"] for each in pages[2:]] == ["stm", "stm"]
    assert "ana" in pages[0]["about"]
    assert "works as a nurse" in {
        each["text"] for each in rows("agent", "memoryos", "personas") if each["is"] == "fact"
    }
    assert {each["source_agent_id"] for each in rows("agent", "memoryos", "system")} == {"ada"}
    nobody = run("agent", "memoryos", "retrieve", "the index", "--format", "jsonl")
    assert {json.loads(line)["tier"] for line in nobody.stdout.splitlines()} <= {"trait itself"}
    assert "pages and facts of users are left out: add --about user:NAME" in nobody.stderr
    ana = "--about", "user:ana"
    lines = run("agent", "memoryos", "retrieve", "the index", *ana, "--format", "jsonl").stdout.splitlines()
    tiers = {json.loads(line)["tier"] for line in lines}
    assert tiers >= {"stm", "segment", "page"}
    assert run_json("retrieve", "the index", *ana, "--pages", "1")["error"] is None
    assert len(run_json("retrieve", "the index", *ana, "--pages", "1")["pages"]) == 1
    assert "I work as a nurse" in run("agent", "memoryos", "prompt", "What does Ana do?", "--about", "user:ana").stdout


def test_a_retrieval_counts_as_a_visit_unless_unvisited():
    add_pages()

    for words in (["--unvisited"], [], ["--unvisited"]):
        result = run_json("retrieve", "the index", "--about", "user:ana", *words)

    assert result["segments"][0]["visit_count"] == 1


def test_status_counts_pages_and_jobs_and_list_names_all_agents():
    add_pages()
    run("agent", "memoryos", "add", "Hello.", "--agent", "bob")

    status = run_json("status")
    assert (status["agent"], status["stm"], status["pages"], status["jobs"], status["failed"]) == ("ada", 2, 4, 0, [])
    assert status["model"] == "offline-1"
    assert "pages        4" in run("agent", "memoryos", "status").stdout
    assert [(each["agent"], each["pages"]) for each in rows("agent", "memoryos", "list")] == [("ada", 4), ("bob", 1)]


def test_status_names_the_setting_below_which_nothing_is_learned():
    run("agent", "memoryos", "set", "stm_capacity=1", "--agent", "bob")
    for text in ("I like tea.", "Is it late?"):
        run("agent", "memoryos", "add", text, "--agent", "bob")
    run("agent", "memoryos", "maintain", "--agent", "bob")

    hint = run("agent", "memoryos", "status", "--agent", "bob").stderr
    assert "segments below heat_threshold, from which nothing is learned: 1;" in hint
    run(*hint[hint.index("jidomem ") :].split()[1:], "--agent", "bob")
    run("agent", "memoryos", "maintain", "--agent", "bob")
    assert "heat_threshold" not in run("agent", "memoryos", "status", "--agent", "bob").stderr


def test_settings_are_shown_and_set_for_an_agent_and_for_a_type():
    run("agent", "memoryos", "set", "--type", "coder")
    run("agent", "memoryos", "set", "stm_capacity=3", "comparison=>=", "--for-type", "coder")

    after = run_json("config")
    assert (after["stm_capacity"], after["comparison"], after["mtm_capacity"]) == (3, ">=", 200)
    assert "stm_capacity = 5" in run("agent", "memoryos", "set", "stm_capacity=5").stderr
    assert {"setting": "stm_capacity", "value": "5"} in [
        dict(zip(("setting", "value"), line.split(","), strict=True))
        for line in run("agent", "memoryos", "config", "--format", "csv").stdout.splitlines()
        if line.startswith("stm")
    ]


def test_a_learned_fact_is_promoted_and_named_when_its_page_is_forgotten():
    add_pages()
    run("agent", "memoryos", "maintain")
    (promoted, *_) = rows("agent", "memoryos", "promote", "--least", "0.5")

    result = run("agent", "memoryos", "forget", "p1")

    assert promoted["outcome"] == "promoted"
    assert "p1 is deleted" in result.stderr
    assert f"{promoted['iri']} derives from it and stays" in result.stderr
    assert "p1" not in {each["id"] for each in rows("agent", "memoryos", "pages")}
    assert "works as a nurse" not in str(rows("agent", "memoryos", "personas"))
    assert run_json("forget", "--all") == {"agent": "ada", "forgotten": True}
    assert (rows("agent", "memoryos", "pages"), rows("agent", "memoryos", "list")) == ([], [])


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["add", "hello", "--about", "ana"], 2, "--about user:ana"),
        (["add", "hello", "--timestamp", "someday"], 2, "someday"),
        (["set"], 2, "nothing is set"),
        (["set", "stm_capacity"], 2, "stm_capacity=VALUE"),
        (["set", "stm_size=3"], 2, "stm_size"),
        (["set", "stm_capacity=0"], 2, "a whole number from 1"),
        (["set", "stm_capacity=3", "--type", "a", "--for-type", "b"], 2, "exclude each other"),
        (["forget"], 2, "give one of a page, --about and --all"),
        (["forget", "p9"], 4, "ada has no page p9"),
        (["retrieve", "hello", "--pages", "0"], 2, "pages"),
        (["promote", "--least", "2"], 2, "least"),
    ],
)
def test_an_invalid_argument_is_refused_with_a_hint(words, code, hint):
    refused = run("agent", "memoryos", *words)

    assert (refused.exit_code, hint in refused.stderr) == (code, True), refused.stderr


def test_a_failed_job_of_a_remote_model_is_reported_and_the_page_is_stored():
    path = own_config()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o600)
    path.write_text('[model]\nuse = "endpoint"\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "q"\nkey_env = ""\n')

    added = run("agent", "memoryos", "add", "Which index?", "Oxigraph.")
    maintenance = run("agent", "memoryos", "maintain")

    assert "1 pending job: jidomem agent memoryos maintain" in added.stderr
    assert maintenance.exit_code == 1
    assert "Connection refused" in maintenance.stdout
    assert run_json("retrieve", "the index")["stm"][0]["query"] == "Which index?"


def test_retrieval_marks_the_pages_of_others_and_leaves_out_their_facts_and_private_pages():
    run("agent", "memoryos", "set", "stm_capacity=1", "heat_threshold=0.5", "share_users=true")
    for text in ("I am a nurse from Porto.", "I have an interview. Keep it between us.", "Thanks."):
        run("agent", "memoryos", "add", text, "Noted.", "--about", "user:tobias")
    run("agent", "memoryos", "maintain")

    def matches(user):
        words = "retrieve", "nurse interview", "--about", f"user:{user}", "--format", "jsonl"
        return [json.loads(line) for line in run("agent", "memoryos", *words).stdout.splitlines()]

    pages = [each for each in matches("marta") if each["tier"] in ("stm", "leaving", "page")]
    assert {each["about"] for each in pages} == {"user:tobias"}
    assert {each["about"] for each in matches("marta") if each["tier"] == "segment"} == {"user:tobias"}
    assert {each["tier"] for each in matches("marta")} == {"stm", "segment", "page"}
    assert not any("interview" in each["text"] for each in matches("marta"))
    assert {"fact user:tobias", "trait user:tobias"} <= {each["tier"] for each in matches("tobias")}
    run("agent", "memoryos", "set", "share_users=false")
    assert matches("marta") == []


def test_turns_that_are_pages_of_a_forgotten_user_are_named_as_staying():
    turn = run("agent", "conversation", "record", "s", "--prompt", "I owe.", "--asked-by", "ben").stdout.split()[-1]
    run("agent", "memoryos", "add", "I owe.", "--about", "user:ben", "--id", turn)

    report = run("agent", "memoryos", "forget", "--about", "user:ben").stderr

    assert f"turns that are its pages stay in the conversation history: {turn}" in report
    assert "jidomem journal redact --dry-run --text ben" in report


def test_pages_and_knowledge_of_one_user_are_listed():
    add_pages()
    run("agent", "memoryos", "maintain")
    run("agent", "memoryos", "add", "Is it late?", "No.", "--about", "user:ben")

    assert {each["about"] for each in rows("agent", "memoryos", "pages", "--about", "user:Ana")} == {"user:ana"}
    assert {each["of"] for each in rows("agent", "memoryos", "personas", "--about", "user:ana")} == {"user:ana"}
    assert rows("agent", "memoryos", "personas", "--about", "user:ben") == []
    assert {each["about"] for each in rows("agent", "memoryos", "system")} == {"user ana"}


def test_all_of_a_user_is_forgotten_by_name():
    add_pages()
    run("agent", "memoryos", "add", "Is it late?", "No.", "--about", "user:ben")

    assert "user:Ana with 4 page(s) is deleted" in run("agent", "memoryos", "forget", "--about", "user:Ana").stderr

    assert {each["about"] for each in rows("agent", "memoryos", "pages")} == {"user:ben"}
    refused = run("agent", "memoryos", "forget", "--about", "user:ana")
    assert "ada has no page or persona of user:ana" in refused.stderr
    assert "give one of a page, --about and --all" in run("agent", "memoryos", "forget", "p1", "--all").stderr


def test_the_redaction_that_a_forgotten_user_suggests_is_not_by_the_agent_whose_pages_went():
    run("agent", "memoryos", "add", "I am Greta", "hi", "--about", "user:greta", "--agent", "bot")

    forgotten = run("agent", "memoryos", "forget", "--about", "user:greta", "--agent", "bot")

    assert "stays: jidomem journal redact --dry-run --text greta" in forgotten.stderr
