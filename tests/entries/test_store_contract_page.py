"""The faults in docs/store-contract.md occur as described, their corrections work, and its names exist."""

import re
from pathlib import Path

import pytest

import jidomem.entries
from jidomem.entries import Entry, InMemoryStore, RecallRequest, list_entries, recall, write

PAGE = (Path(__file__).parent.parent.parent / "docs" / "store-contract.md").read_text("utf-8")
ROWS = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", PAGE.partition("## When it does not do")[2], re.MULTILINE)[1:]


def row(words):
    (fault,) = [row for row in ROWS if words in row[0]]
    return fault


def test_documented_values_functions_and_errors_are_exported_by_one_module():
    documented = (
        *("Entry", "RecallRequest", "RecallResult", "WriteRequest", "WriteResult", "Store", "StoreError"),
        *("recall", "write", "list_entries", "InMemoryStore", "MemoryPolicy"),
    )

    assert set(documented) <= set(jidomem.entries.__all__)  # B073
    assert all(getattr(jidomem.entries, name).__name__ == name for name in documented)
    assert sorted(jidomem.entries.__all__) == sorted(set(jidomem.entries.__all__))
    assert all(hasattr(jidomem.entries, name) for name in jidomem.entries.__all__)


@pytest.mark.parametrize("empty", ["agent_id", "content"])
def test_an_entry_without_agent_or_content_is_refused_with_the_documented_message(empty):
    message, _, correction = row("invalid memory entry")
    arguments = {"agent_id": "demo", "content": "hello", empty: ""}

    with pytest.raises(ValueError, match=r"^invalid memory entry: ") as refusal:
        Entry(**arguments)

    assert str(refusal.value) in message.replace("`", "").replace("agent_id is", f"{empty} is")  # B069
    assert f"`{empty}`" in message or f"{empty} is" in message
    assert "Entry.try_new" in correction


def test_an_entry_of_a_session_is_recalled_with_its_session_id():
    store = InMemoryStore()
    write(store, Entry(agent_id="demo", session_id="s-1", content="hello"))

    assert recall(store, agent_id="demo", query="hello").entries == []  # B070
    assert recall(store, agent_id="demo", query="hello", scope="session", session_id="s-2").entries == []
    result = recall(store, agent_id="demo", query="hello", session_id="s-1")
    assert [entry.content for entry in result.entries] == ["hello"]


def test_an_entry_without_a_session_is_recalled_with_the_scope_agent():
    store = InMemoryStore()
    write(store, Entry(agent_id="demo", session_id=None, content="hello"))

    assert recall(store, agent_id="demo", query="hello", scope="session", session_id="s-1").entries == []  # B070
    result = recall(store, agent_id="demo", query="hello", scope="agent")
    assert [entry.content for entry in result.entries] == ["hello"]

    _, cause, correction = row("not recalled")
    assert "it was written in a session, and the request names none" in cause
    assert "name the session of the entry in the request, or write with `session_id=None`" in correction


def test_a_store_class_without_a_handle_is_refused_with_the_documented_message():
    message, _, correction = row("requires pid")

    with pytest.raises(ValueError, match=r"(?m)^in-memory memory store requires pid$") as refusal:
        list_entries(InMemoryStore)

    assert f"`{refusal.value}`" == message  # B071
    assert '(InMemoryStore, {"pid": handle})' in correction


def test_the_page_names_the_check_of_the_limit():
    from jidomem.entries.conformance import CHECKS

    message, _, correction = row("than `limit` says")
    assert "more entries come" in message
    (named,) = re.findall(r"`(it_\w+)`", correction)
    assert named in [check.__name__ for check in CHECKS]  # B072


def test_the_page_names_fields_and_limits():
    assert "`limit` (5, from 1 to 1,000)" in PAGE  # B020
    assert RecallRequest("demo", "x", limit=1_000).limit == 1_000
    for name in ("it_keeps_namespaces_apart", "include_sessions", "for_options"):
        assert name in PAGE
