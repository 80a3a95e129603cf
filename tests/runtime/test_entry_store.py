"""The durable store of entries: the contract of every store, and what it has beyond it: it lasts and it remembers."""

import json
import shutil
import subprocess
import sys
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from conftest import START, files, fixed_sources, intent
from hypothesis import given, settings
from hypothesis import strategies as st

import jidomem
from jidomem.entries import Entry, RecallRequest, StoreError, WriteRequest, list_entries, recall, write
from jidomem.entries.conformance import CHECKS, it_keeps_namespaces_apart
from jidomem.errors import IntentRefused, InvalidRequest, NotFound, TooLarge
from jidomem.journal.journal import Stream
from jidomem.write.conversation import as_json

SCRIPT = Path(__file__).with_name("entry_writer.py")
HISTORY = Stream("p", "history")
SHIP = {"speaker": "Ana", "session": "7", "timestamp": "2026-11-20T10:00:00Z"}


def opened(root, **more):
    return jidomem.open(root, project="p", **more)


@pytest.fixture
def memory(root):
    with opened(root, sources=fixed_sources()) as memory:
        yield memory


@pytest.fixture
def store(memory):
    return memory.entries


def keep(store, content, **fields):
    return write(store, Entry(**{"agent_id": "architect", "content": content, **fields}))


def contents(entries):
    return [entry.content for entry in entries]


def found(store, query, **fields):
    return contents(recall(store, RecallRequest(**{"agent_id": "architect", "query": query, **fields})).entries)


@pytest.mark.parametrize("check", [*CHECKS, it_keeps_namespaces_apart], ids=lambda check: check.__name__)
def test_it_passes_every_check_of_the_contract(tmp_path, check, by):  # B035 B046 B072
    with ExitStack() as stack:
        roots = (stack.enter_context(opened(tmp_path / str(number))) for number in count())
        check(lambda: next(roots).entries)


def test_the_options_of_a_store_reach_what_is_written_recalled_and_listed(store):  # B035
    other = store, {"project": "another"}

    written = write(other, Entry(id="e1", agent_id="architect", content="we ship on Friday"))

    assert written.entry.id == "e1"
    assert contents(list_entries(other)) == ["we ship on Friday"]
    assert found(other, "when do we ship?") == ["we ship on Friday"]
    assert (list_entries(store), found(store, "when do we ship?")) == ([], [])
    early = store, {"project": "another", "as_of": "2020-01-01"}
    assert (list_entries(early), found(early, "when do we ship?")) == ([], [])


def test_an_entry_is_there_as_it_was_when_the_root_is_opened_again(root):  # B005 B009 B033
    entry = Entry(id='any "id" <of>/mine\n', agent_id="Time Agent ☃", session_id="s 7", content=" as it is \n",
                  metadata={**SHIP, "deep": [1, 2.5, None, {"ä": True}]})  # fmt: skip
    with opened(root) as memory:
        result = write(memory.entries, entry)

    with opened(root) as again:
        assert result.entry == entry
        assert list_entries(again.entries) == [entry]
        asked = RecallRequest(agent_id="Time Agent ☃", session_id="s 7", query="what is it?")
        assert recall(again.entries, asked).entries == [entry]


def test_a_store_nobody_has_written_to_is_empty_and_no_error(store):  # B028 B048
    assert (list_entries(store), found(store, "anything")) == ([], [])


def test_a_second_write_under_an_id_leaves_the_newer_entry_alone(store):  # B039 B054
    keep(store, "we ship on Friday", id="plan")
    keep(store, "the index is Oxigraph", id="other")
    keep(store, "we ship on Monday", id="plan", agent_id="planner")

    assert contents(list_entries(store)) == ["the index is Oxigraph", "we ship on Monday"]
    assert found(store, "when do we ship") == ["the index is Oxigraph"]
    assert found(store, "when do we ship", agent_id="planner") == ["we ship on Monday"]


def test_what_was_replaced_is_still_told_of_its_moment_and_by_the_graph(memory, store):  # B039
    keep(store, "we ship on Friday", id="plan")
    then = memory.journal.head(HISTORY).recorded_at
    keep(store, "we ship on Monday", id="plan")
    at_once = {"as_of": then}

    assert contents(store.list_entries(at_once)) == ["we ship on Friday"]
    assert contents(store.recall(RecallRequest(agent_id="architect", query="ship"), at_once).entries) == [
        "we ship on Friday"
    ]
    rows = memory.reader.select("p", "SELECT ?new ?old { ?n <https://jido.ai/ontology#replaces> ?o ."
                                     " ?n <https://jido.ai/ontology#entryText> ?new ."
                                     " ?o <https://jido.ai/ontology#entryText> ?old }")  # fmt: skip
    assert rows == [{"new": "we ship on Monday", "old": "we ship on Friday"}]


def test_recall_gives_only_what_is_of_the_agent_and_of_the_session_it_names(store):  # B040 B041 B055
    keep(store, "of nobody's session")
    keep(store, "of session seven", session_id="7")
    keep(store, "of session eight", session_id="8")
    keep(store, "of another agent", agent_id="other")

    assert found(store, "of") == ["of nobody's session"]
    assert found(store, "of", session_id="7") == ["of session seven", "of nobody's session"]
    assert found(store, "of", session_id="7", scope="session") == ["of session seven"]
    assert found(store, "of", scope="session") == []
    asked = RecallRequest(agent_id="architect", query="of")
    assert len(store.recall(asked, {"include_sessions": True}).entries) == 3
    with pytest.raises(InvalidRequest, match="include_sessions='yes' is not true or false"):
        store.recall(asked, {"include_sessions": "yes"})


def test_what_holds_the_words_comes_first_and_then_the_newest_up_to_the_limit(store):  # B043 B052 B053
    for content in ("the parser is slow", "lunch at noon", "a parser for dates, a parser for times", "rain"):
        keep(store, content)

    answer = recall(store, RecallRequest(agent_id="architect", query="which parser?", limit=3))
    assert contents(answer.entries) == ["a parser for dates, a parser for times", "the parser is slow", "rain"]
    assert [entry.id in answer.metadata["scores"] for entry in answer.entries] == [True, True, False]
    assert found(store, "preferred timezone", limit=1) == ["rain"]


def test_who_said_something_is_found_by_the_name(store):
    keep(store, "we ship on Friday", metadata={"speaker": "Ana"})
    keep(store, "no, on Monday", metadata={"speaker": "Ben"})
    keep(store, "and the docs too", metadata={"speaker": "Cleo"})

    assert found(store, "what did Ana say?", limit=1) == ["we ship on Friday"]


def test_every_agent_is_listed_and_other_projects_are_apart(store):  # B044 B045
    keep(store, "one", agent_id="a")
    keep(store, "two", agent_id="b")
    keep((store, {"project": "other", "trace_id": 7}), "elsewhere")

    assert contents(list_entries(store)) == ["one", "two"]
    assert contents(list_entries((store, {"project": "other"}))) == ["elsewhere"]
    with pytest.raises(StoreError, match="no project 'nowhere'") as refusal:
        list_entries((store, {"project": "nowhere"}))
    assert isinstance(refusal.value.reason, NotFound)


def test_an_iterable_of_writes_is_kept_in_few_commits_and_each_has_its_outcome(memory, store):
    entries = [Entry(id=f"e{n}", agent_id="a", content=f"entry {n}") for n in range(20)]
    bad = Entry(id="bad", agent_id="a", content="x", metadata={"when": START})

    outcomes = store.write_many(map(WriteRequest, [*entries, bad]))

    assert [outcome.entry for outcome in outcomes[:-1]] == entries
    assert outcomes[-1].detail == "metadata['when'] is a datetime, and JSON has no form for that"
    assert list_entries(store) == entries
    assert memory.journal.head(HISTORY).heads[0].position == 1


@pytest.mark.parametrize(
    ("entry", "kind", "detail"),
    [
        ({"metadata": {"a": {"b": [1, (2,)]}}}, InvalidRequest, r"metadata\['a'\]\['b'\]\[1\] is a tuple"),
        ({"metadata": {"a": {3: 4}}}, InvalidRequest, r"metadata\['a'\] has the key 3, and JSON keys are texts"),
        ({"metadata": {"n": float("nan")}}, InvalidRequest, r"metadata\['n'\] is nan, and JSON has no form for that"),
        ({"metadata": {"n": "\ud800"}}, InvalidRequest, r"metadata\['n'\] has half a surrogate pair in it"),
        ({"content": "x" * 300_000}, TooLarge, "content has 300,000 bytes; a text holds at most 262,144"),
        ({"content": "the key is AKIAIOSFODNN7EXAMPLF"}, IntentRefused, "secret|key"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name_and_nothing_is_written(memory, store, entry, kind, detail):  # B047
    with pytest.raises(kind, match=detail):
        store.write(WriteRequest(Entry(**{"agent_id": "a", "content": "c", **entry})))

    assert not memory.journal.head(HISTORY).heads


def test_a_likely_secret_is_kept_with_a_warning_where_the_root_says_so(root):
    root.mkdir()
    (root / "config.toml").write_text('secrets = "warn"\n')
    with opened(root) as memory:
        result = keep(memory.entries, "the key is AKIAIOSFODNN7EXAMPLF")

        assert len(result.metadata["warnings"]) == 1
        assert contents(list_entries(memory.entries)) == ["the key is AKIAIOSFODNN7EXAMPLF"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100)
@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_metadata_come_back_from_json_as_they_were(metadata):  # B009
    assert json.loads(as_json(metadata, "metadata")) == metadata


def test_governed_recall_and_the_reader_know_nothing_of_entries(memory, store):
    memory.writer.submit_intent("p", intent(summary="the parser is written by hand"))
    keep(store, "the parser is slow")

    assert contents(memory.recall("parser", "p").entries) == ["the parser is written by hand"]
    assert [row["summary"] for row in memory.reader.list_facts_with_confidence("p")] == [
        "the parser is written by hand"
    ]
    assert memory.check("p").problems == []


def test_a_redacted_entry_is_gone_from_journal_and_cache_and_the_others_stay(root, memory, store):
    keep(store, "her name is Zephyrine", id="x", metadata={"note": "her name is Zephyrine"})
    gone = write(store, Entry(id="x", agent_id="architect", content="yes, Zephyrine")).metadata["iri"]
    keep(store, "lunch at noon")
    first = memory.reader.select("p", "SELECT ?e { ?n <https://jido.ai/ontology#replaces> ?e }")[0]["e"]
    found(store, "name")

    for iri in (first, gone):
        memory.keeper.redact(memory.keeper.plan("p", iri), agent="architect", reason="she asked for it")

    assert contents(list_entries(store)) == found(store, "name") == ["lunch at noon"]
    assert not [name for name, data in files(root).items() if b"ephyrin" in data]
    assert memory.journal.verify(HISTORY) == ()


def test_a_cleared_history_has_no_entries_left_to_recall(memory, store):
    keep(store, "parser, parser, parser")
    assert found(store, "parser") == ["parser, parser, parser"]

    memory.long_term("p").clear_graph("history")

    assert (found(store, "parser"), list_entries(store)) == ([], [])
    keep(store, "the parser is fast")
    assert found(store, "parser", limit=1) == ["the parser is fast"]


def test_of_two_branches_that_kept_an_id_each_the_newer_one_counts_until_both_are_replaced(tmp_path):  # B039
    one, two = tmp_path / "one", tmp_path / "two"
    with opened(one) as memory:
        keep(memory.entries, "we ship some day", id="plan")
        found(memory.entries, "ship")
    shutil.copytree(one, two)
    for root, content in ((one, "we ship on Friday"), (two, "we ship on Monday")):
        with opened(root) as memory:
            keep(memory.entries, content, id="plan")
            found(memory.entries, "ship")

    shutil.copytree(two / "projects", one / "projects", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.lock"))

    with opened(one) as merged:
        assert contents(list_entries(merged.entries)) == found(merged.entries, "ship") == ["we ship on Monday"]
        keep(merged.entries, "we never ship", id="plan")
        assert contents(list_entries(merged.entries)) == found(merged.entries, "ship") == ["we never ship"]


def start(*args):
    return subprocess.Popen([sys.executable, str(SCRIPT), *map(str, args)], stdout=subprocess.PIPE, text=True)


def test_two_processes_that_write_one_id_at_once_leave_one_chain_and_lose_nothing(root):  # B039 B056
    workers = [start(root, name, 15, "plan") for name in ("ana", "ben")]
    said = [line for worker in workers for line in worker.communicate()[0].splitlines()]
    assert [worker.returncode for worker in workers] == [0, 0]

    with opened(root) as memory:
        (last,) = list_entries(memory.entries)
        rows = memory.reader.select("p", "SELECT ?text ?old { ?n <https://jido.ai/ontology#entryText> ?text"
                                         " OPTIONAL { ?n <https://jido.ai/ontology#replaces>/"
                                         "<https://jido.ai/ontology#entryText> ?old } }")  # fmt: skip
    before = {row["text"]: row["old"] for row in rows}
    chain = [last.content]
    while (old := before[chain[-1]]) is not None:
        chain.append(old)
    assert len(rows) == len(said) == 30
    assert sorted(chain) == sorted(said)


def test_what_was_acknowledged_outlives_a_kill(root):  # B039
    said = []
    for name in ("first", "second"):
        worker = start(root, name, 100_000)
        said += [worker.stdout.readline().strip() for _ in range(5)]
        worker.kill()
        said += worker.stdout.read().split("\n")[:-1]
        worker.stdout.close()
        assert worker.wait() == -9

    with opened(root) as memory:
        assert memory.journal.verify(HISTORY) == ()
        assert set(said) <= set(contents(list_entries(memory.entries)))


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("asof", "'as_of'"),
        ("include_session", "'include_sessions'"),
        ("projct", "'project'"),
        ("budget_token", "'budget_tokens'"),
    ],
)
def test_a_misspelt_option_is_refused_with_the_right_name_by_every_verb(store, option, hint):
    given = store, {option: "2020-01-01"}
    entry = Entry(id="e1", agent_id="architect", content="we ship on Friday")
    for ask in (lambda: found(given, "ship"), lambda: list_entries(given), lambda: write(given, entry)):
        with pytest.raises(InvalidRequest, match=f"there is no option '{option}'; did you mean {hint}"):
            ask()
    assert list_entries(store) == []


def test_a_field_of_a_request_is_no_option_of_the_store(store):
    with pytest.raises(InvalidRequest) as refused:
        found((store, {"limit": 1}), "ship")
    assert (refused.value.detail, refused.value.hint) == ("limit is not an option", "give limit in the request")
