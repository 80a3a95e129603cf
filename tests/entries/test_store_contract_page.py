"""What docs/store-contract.md says goes wrong does so, and its way out is one; the names it gives are there."""

import re
from pathlib import Path

import pytest

import jidomem.entries
from jidomem.entries import Entry, InMemoryStore, RecallRequest, list_entries, recall, write

PAGE = (Path(__file__).parent.parent.parent / "docs" / "store-contract.md").read_text("utf-8")
ROWS = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", PAGE.partition("## When it does not do")[2], re.MULTILINE)[1:]


def row(words):
    (found,) = [row for row in ROWS if words in row[0]]
    return found


def test_all_values_verbs_and_errors_are_imported_from_one_module():
    documented = (
        *("Entry", "RecallRequest", "RecallResult", "WriteRequest", "WriteResult", "Store", "StoreError"),
        *("recall", "write", "list_entries", "InMemoryStore", "MemoryPolicy"),
    )

    assert set(documented) <= set(jidomem.entries.__all__)  # B073
    assert all(getattr(jidomem.entries, name).__name__ == name for name in documented)
    assert sorted(jidomem.entries.__all__) == sorted(set(jidomem.entries.__all__))
    assert all(hasattr(jidomem.entries, name) for name in jidomem.entries.__all__)


@pytest.mark.parametrize("empty", ["agent_id", "content"])
def test_an_entry_without_agent_or_content_is_refused_in_the_words_of_the_page(empty):
    told, _, way_out = row("invalid memory entry")
    said = {"agent_id": "demo", "content": "hello", empty: ""}

    with pytest.raises(ValueError, match=r"^invalid memory entry: ") as no:
        Entry(**said)

    assert str(no.value) in told.replace("`", "").replace("agent_id is", f"{empty} is")  # B069
    assert f"`{empty}`" in told or f"{empty} is" in told
    assert "Entry.try_new" in way_out


def test_what_was_written_in_a_session_is_recalled_by_naming_it():
    store = InMemoryStore()
    write(store, Entry(agent_id="demo", session_id="s-1", content="hello"))

    assert recall(store, agent_id="demo", query="hello").entries == []  # B070
    assert recall(store, agent_id="demo", query="hello", scope="session", session_id="s-2").entries == []
    fixed = recall(store, agent_id="demo", query="hello", session_id="s-1")
    assert [entry.content for entry in fixed.entries] == ["hello"]


def test_what_was_written_in_no_session_is_recalled_with_the_scope_of_the_agent():
    store = InMemoryStore()
    write(store, Entry(agent_id="demo", session_id=None, content="hello"))

    assert recall(store, agent_id="demo", query="hello", scope="session", session_id="s-1").entries == []  # B070
    fixed = recall(store, agent_id="demo", query="hello", scope="agent")
    assert [entry.content for entry in fixed.entries] == ["hello"]

    _, why, way_out = row("not recalled")
    assert "it was written in a session, and the request names none" in why
    assert "name the session of the entry in the request, or write with `session_id=None`" in way_out


def test_the_class_without_a_handle_is_refused_in_the_words_of_the_page():
    told, _, way_out = row("requires pid")

    with pytest.raises(ValueError, match=r"(?m)^in-memory memory store requires pid$") as no:
        list_entries(InMemoryStore)

    assert f"`{no.value}`" == told  # B071
    assert '(InMemoryStore, {"pid": handle})' in way_out


def test_the_page_says_which_check_finds_a_store_that_ignores_the_limit():
    from jidomem.entries.conformance import CHECKS

    told, _, way_out = row("than `limit` says")
    assert "more entries come" in told
    (named,) = re.findall(r"`(it_\w+)`", way_out)
    assert named in [check.__name__ for check in CHECKS]  # B072


def test_the_page_names_the_fields_and_the_bounds_of_the_values():
    assert "`limit` (5, from 1 to 1,000)" in PAGE  # B020
    assert RecallRequest("demo", "x", limit=1_000).limit == 1_000
    for name in ("it_keeps_namespaces_apart", "include_sessions", "for_options"):
        assert name in PAGE
