"""The durable store of entries: the contract of every store, and durability and history beyond it."""

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


def open_root(root, **more):
    return jidomem.open(root, project="p", **more)


@pytest.fixture
def memory(root):
    with open_root(root, sources=fixed_sources()) as memory:
        yield memory


@pytest.fixture
def store(memory):
    return memory.entries


def record(store, content, **fields):
    return write(store, Entry(**{"agent_id": "architect", "content": content, **fields}))


def contents(entries):
    return [entry.content for entry in entries]


def recalled(store, query, **fields):
    return contents(recall(store, RecallRequest(**{"agent_id": "architect", "query": query, **fields})).entries)


@pytest.mark.parametrize("check", [*CHECKS, it_keeps_namespaces_apart], ids=lambda check: check.__name__)
def test_the_store_passes_every_check_of_the_contract(tmp_path, check, by):  # B035 B046 B072
    with ExitStack() as stack:
        roots = (stack.enter_context(open_root(tmp_path / str(number))) for number in count())
        check(lambda: next(roots).entries)


def test_the_options_of_a_store_apply_to_write_recall_and_list(store):  # B035
    other = store, {"project": "another"}

    result = write(other, Entry(id="e1", agent_id="architect", content="we ship on Friday"))

    assert result.entry.id == "e1"
    assert contents(list_entries(other)) == ["we ship on Friday"]
    assert recalled(other, "when do we ship?") == ["we ship on Friday"]
    assert (list_entries(store), recalled(store, "when do we ship?")) == ([], [])
    early = store, {"project": "another", "as_of": "2020-01-01"}
    assert (list_entries(early), recalled(early, "when do we ship?")) == ([], [])


def test_an_entry_is_unchanged_after_reopening_the_root(root):  # B005 B009 B033
    entry = Entry(id='any "id" <of>/mine\n', agent_id="Time Agent ☃", session_id="s 7", content=" as it is \n",
                  metadata={**SHIP, "deep": [1, 2.5, None, {"ä": True}]})  # fmt: skip
    with open_root(root) as memory:
        result = write(memory.entries, entry)

    with open_root(root) as reopened:
        assert result.entry == entry
        assert list_entries(reopened.entries) == [entry]
        request = RecallRequest(agent_id="Time Agent ☃", session_id="s 7", query="what is it?")
        assert recall(reopened.entries, request).entries == [entry]


def test_an_unwritten_store_is_empty(store):  # B028 B048
    assert (list_entries(store), recalled(store, "anything")) == ([], [])


def test_a_second_write_with_an_id_replaces_the_entry(store):  # B039 B054
    record(store, "we ship on Friday", id="plan")
    record(store, "the index is Oxigraph", id="other")
    record(store, "we ship on Monday", id="plan", agent_id="planner")

    assert contents(list_entries(store)) == ["the index is Oxigraph", "we ship on Monday"]
    assert recalled(store, "when do we ship") == ["the index is Oxigraph"]
    assert recalled(store, "when do we ship", agent_id="planner") == ["we ship on Monday"]


def test_a_replaced_entry_is_listed_as_of_its_time_and_in_the_graph(memory, store):  # B039
    record(store, "we ship on Friday", id="plan")
    replaced_at = memory.journal.head(HISTORY).recorded_at
    record(store, "we ship on Monday", id="plan")
    options = {"as_of": replaced_at}

    assert contents(store.list_entries(options)) == ["we ship on Friday"]
    assert contents(store.recall(RecallRequest(agent_id="architect", query="ship"), options).entries) == [
        "we ship on Friday"
    ]
    rows = memory.reader.select("p", "SELECT ?new ?old { ?n <https://jido.ai/ontology#replaces> ?o ."
                                     " ?n <https://jido.ai/ontology#entryText> ?new ."
                                     " ?o <https://jido.ai/ontology#entryText> ?old }")  # fmt: skip
    assert rows == [{"new": "we ship on Monday", "old": "we ship on Friday"}]


def test_recall_is_limited_to_the_agent_and_session_of_the_request(store):  # B040 B041 B055
    record(store, "of nobody's session")
    record(store, "of session seven", session_id="7")
    record(store, "of session eight", session_id="8")
    record(store, "of another agent", agent_id="other")

    assert recalled(store, "of") == ["of nobody's session"]
    assert recalled(store, "of", session_id="7") == ["of session seven", "of nobody's session"]
    assert recalled(store, "of", session_id="7", scope="session") == ["of session seven"]
    assert recalled(store, "of", scope="session") == []
    request = RecallRequest(agent_id="architect", query="of")
    assert len(store.recall(request, {"include_sessions": True}).entries) == 3
    with pytest.raises(InvalidRequest, match="include_sessions='yes' is not true or false"):
        store.recall(request, {"include_sessions": "yes"})


def test_entries_with_words_of_the_query_come_first_and_then_the_newest_up_to_the_limit(store):  # B043 B052 B053
    for content in ("the parser is slow", "lunch at noon", "a parser for dates, a parser for times", "rain"):
        record(store, content)

    answer = recall(store, RecallRequest(agent_id="architect", query="which parser?", limit=3))
    assert contents(answer.entries) == ["a parser for dates, a parser for times", "the parser is slow", "rain"]
    assert [entry.id in answer.metadata["scores"] for entry in answer.entries] == [True, True, False]
    assert recalled(store, "preferred timezone", limit=1) == ["rain"]


def test_an_entry_is_recalled_by_the_name_of_its_speaker(store):
    record(store, "we ship on Friday", metadata={"speaker": "Ana"})
    record(store, "no, on Monday", metadata={"speaker": "Ben"})
    record(store, "and the docs too", metadata={"speaker": "Cleo"})

    assert recalled(store, "what did Ana say?", limit=1) == ["we ship on Friday"]


def test_all_agents_are_listed_and_other_projects_are_separate(store):  # B044 B045
    record(store, "one", agent_id="a")
    record(store, "two", agent_id="b")
    record((store, {"project": "other", "trace_id": 7}), "elsewhere")

    assert contents(list_entries(store)) == ["one", "two"]
    assert contents(list_entries((store, {"project": "other"}))) == ["elsewhere"]
    with pytest.raises(StoreError, match="no project 'nowhere'") as refusal:
        list_entries((store, {"project": "nowhere"}))
    assert isinstance(refusal.value.reason, NotFound)


def test_many_writes_are_one_commit_with_an_outcome_for_each(memory, store):
    entries = [Entry(id=f"e{n}", agent_id="a", content=f"entry {n}") for n in range(20)]
    invalid = Entry(id="bad", agent_id="a", content="x", metadata={"when": START})

    outcomes = store.write_many(map(WriteRequest, [*entries, invalid]))

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
def test_an_invalid_entry_is_refused_with_its_field_and_nothing_is_written(memory, store, entry, kind, detail):  # B047
    with pytest.raises(kind, match=detail):
        store.write(WriteRequest(Entry(**{"agent_id": "a", "content": "c", **entry})))

    assert not memory.journal.head(HISTORY).heads


def test_a_likely_secret_is_stored_with_a_warning_if_the_root_allows_it(root):
    root.mkdir()
    (root / "config.toml").write_text('secrets = "warn"\n')
    with open_root(root) as memory:
        result = record(memory.entries, "the key is AKIAIOSFODNN7EXAMPLF")

        assert len(result.metadata["warnings"]) == 1
        assert contents(list_entries(memory.entries)) == ["the key is AKIAIOSFODNN7EXAMPLF"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100)
@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_metadata_is_equal_after_conversion_to_json_and_back(metadata):  # B009
    assert json.loads(as_json(metadata, "metadata")) == metadata


def test_entries_are_not_part_of_recall_and_queries_of_memories(memory, store):
    memory.writer.submit_intent("p", intent(summary="the parser is written by hand"))
    record(store, "the parser is slow")

    assert contents(memory.recall("parser", "p").entries) == ["the parser is written by hand"]
    assert [row["summary"] for row in memory.reader.list_facts_with_confidence("p")] == [
        "the parser is written by hand"
    ]
    assert memory.check("p").problems == []


def test_a_redacted_entry_is_removed_with_all_its_versions_and_others_remain(root, memory, store):
    record(store, "her name is Zephyrine", id="x", metadata={"note": "her name is Zephyrine"})
    record(store, "yes, Zephyrine", id="x")
    record(store, "lunch at noon")
    first = memory.reader.select("p", "SELECT ?e { ?n <https://jido.ai/ontology#replaces> ?e }")[0]["e"]
    recalled(store, "name")

    memory.maintenance.redact(memory.maintenance.plan("p", first), agent="architect", reason="she asked for it")

    assert contents(list_entries(store)) == recalled(store, "name") == ["lunch at noon"]
    assert not [name for name, data in files(root).items() if b"ephyrin" in data]
    assert memory.journal.verify(HISTORY) == ()


def test_a_cleared_history_has_no_entries(memory, store):
    record(store, "parser, parser, parser")
    assert recalled(store, "parser") == ["parser, parser, parser"]

    memory.long_term("p").clear_graph("history")

    assert (recalled(store, "parser"), list_entries(store)) == ([], [])
    record(store, "the parser is fast")
    assert recalled(store, "parser", limit=1) == ["the parser is fast"]


def test_the_newer_of_two_branch_entries_with_one_id_is_used_until_it_is_replaced(tmp_path):  # B039
    one, two = tmp_path / "one", tmp_path / "two"
    with open_root(one) as memory:
        record(memory.entries, "we ship some day", id="plan")
        recalled(memory.entries, "ship")
    shutil.copytree(one, two)
    for root, content in ((one, "we ship on Friday"), (two, "we ship on Monday")):
        with open_root(root) as memory:
            record(memory.entries, content, id="plan")
            recalled(memory.entries, "ship")

    shutil.copytree(two / "projects", one / "projects", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.lock"))

    with open_root(one) as merged:
        assert contents(list_entries(merged.entries)) == recalled(merged.entries, "ship") == ["we ship on Monday"]
        record(merged.entries, "we never ship", id="plan")
        assert contents(list_entries(merged.entries)) == recalled(merged.entries, "ship") == ["we never ship"]


def start_writer(*args):
    return subprocess.Popen([sys.executable, str(SCRIPT), *map(str, args)], stdout=subprocess.PIPE, text=True)


def test_two_processes_writing_one_id_concurrently_produce_one_chain(root):  # B039 B056
    workers = [start_writer(root, name, 15, "plan") for name in ("ana", "ben")]
    acknowledged = [line for worker in workers for line in worker.communicate()[0].splitlines()]
    assert [worker.returncode for worker in workers] == [0, 0]

    with open_root(root) as memory:
        (last,) = list_entries(memory.entries)
        rows = memory.reader.select("p", "SELECT ?text ?old { ?n <https://jido.ai/ontology#entryText> ?text"
                                         " OPTIONAL { ?n <https://jido.ai/ontology#replaces>/"
                                         "<https://jido.ai/ontology#entryText> ?old } }")  # fmt: skip
    before = {row["text"]: row["old"] for row in rows}
    chain = [last.content]
    while (old := before[chain[-1]]) is not None:
        chain.append(old)
    assert len(rows) == len(acknowledged) == 30
    assert sorted(chain) == sorted(acknowledged)


def test_acknowledged_entries_are_kept_after_a_kill(root):  # B039
    acknowledged = []
    for name in ("first", "second"):
        worker = start_writer(root, name, 100_000)
        acknowledged += [worker.stdout.readline().strip() for _ in range(5)]
        worker.kill()
        acknowledged += worker.stdout.read().split("\n")[:-1]
        worker.stdout.close()
        assert worker.wait() == -9

    with open_root(root) as memory:
        assert memory.journal.verify(HISTORY) == ()
        assert set(acknowledged) <= set(contents(list_entries(memory.entries)))


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("asof", "'as_of'"),
        ("include_session", "'include_sessions'"),
        ("projct", "'project'"),
        ("budget_token", "'budget_tokens'"),
    ],
)
def test_a_misspelt_option_is_refused_with_the_right_name_by_every_function(store, option, hint):
    given = store, {option: "2020-01-01"}
    entry = Entry(id="e1", agent_id="architect", content="we ship on Friday")
    for call in (
        lambda: recalled(given, "ship"),
        lambda: list_entries(given),
        lambda: write(given, entry),
    ):
        with pytest.raises(InvalidRequest, match=f"there is no option '{option}'; did you mean {hint}"):
            call()
    assert list_entries(store) == []


def test_a_request_field_as_store_option_is_refused(store):
    with pytest.raises(InvalidRequest) as refusal:
        recalled((store, {"limit": 1}), "ship")
    assert (refusal.value.detail, refusal.value.hint) == ("limit is not an option", "give limit in the request")
