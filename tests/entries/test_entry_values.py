"""Entries and requests to write: what they hold, what they refuse, and that they come back from JSON as they were."""

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jidomem.entries import Entry, InvalidEntry, InvalidWrite, WriteRequest, WriteResult
from jidomem.errors import InvalidRequest

ENTRY = Entry(id="mem_1", agent_id="demo", session_id="s", content="hello", metadata={"tags": ["a"]})
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=5,
)
ENTRIES = st.builds(
    Entry,
    id=TEXT,
    agent_id=TEXT,
    session_id=st.none() | TEXT,
    content=TEXT,
    metadata=st.dictionaries(TEXT, PLAIN, max_size=3),
)


def minimal(**more):
    return Entry(**{"agent_id": "demo", "content": "hello", **more})


def test_an_entry_has_these_five_fields():
    assert [field.name for field in fields(Entry)] == [  # B001
        *("id", "agent_id", "session_id", "content", "metadata")
    ]


def test_an_id_is_minted_and_sorts_by_the_time_it_was_minted():
    minted = [minimal().id for _ in range(50)]

    assert all(name.startswith("mem_") and len(name) == 40 and name[18] == "7" for name in minted)  # B002, B003
    assert minted == sorted(set(minted))


def test_whoever_makes_an_entry_may_mint_its_id():
    asked = []

    entry = Entry.new(agent_id="demo", content="hello", id_generator=lambda prefix: asked.append(prefix) or "mem_7")

    assert (entry.id, asked) == ("mem_7", ["mem_"])  # B003
    assert Entry.new({"id": "pk:7", "agent_id": "demo", "content": "hi"}, id_generator=asked.pop).id == "pk:7"
    assert asked == ["mem_"]


@pytest.mark.parametrize("made", ["", "  ", None, 7, b"mem_1"])
def test_a_generator_that_gives_no_id_is_named_with_prefix_and_value(made):
    with pytest.raises(
        ValueError, match=r"(?m)^invalid memory entry: the id generator gave .* for the prefix 'mem_'$"
    ) as no:
        Entry.new(agent_id="demo", content="hello", id_generator=lambda prefix: made)
    assert str(no.value).endswith(f" gave {made!r} for the prefix 'mem_'")  # B004


@pytest.mark.parametrize("name", ["42", "https://example.org/rows/1", "mem_", " with spaces "])
def test_an_id_that_is_given_is_kept_as_it_is(name):
    assert minimal(id=name).id == name  # B005
    assert Entry.new(id=name, agent_id="demo", content="hello").id == name


@pytest.mark.parametrize("name", ["id", "agent_id", "content"])
@pytest.mark.parametrize("value", ["", " \n", None, 7, b"x", ["x"], "half \ud800"])
def test_id_agent_and_content_have_to_be_texts_that_say_something(name, value):
    with pytest.raises(ValueError, match=f"^invalid memory entry: {name} ") as no:  # B010
        minimal(**{name: value})
    assert isinstance(no.value, InvalidEntry)  # B002, B006
    assert isinstance(no.value, InvalidRequest)
    assert no.value.hint == f"give {name} as text"


@pytest.mark.parametrize("missing", ["agent_id", "content"])
def test_agent_and_content_are_required(missing):
    given_ = {"agent_id": "demo", "content": "hello"}
    del given_[missing]

    for make in (Entry, Entry.new, Entry.from_input):
        with pytest.raises(ValueError, match=f"(?m)^invalid memory entry: {missing} is missing or empty$"):
            make(**given_)  # B006, B008, B069


@pytest.mark.parametrize("said", [{"agent_id": "", "content": "x"}, {"agent_id": "demo", "content": ""}])
def test_an_empty_agent_or_content_is_the_documented_error(said):
    empty = next(name for name, value in said.items() if not value)

    with pytest.raises(ValueError, match=empty) as no:
        Entry(**said)
    assert str(no.value) == f"invalid memory entry: {empty} is missing or empty"  # B006, B008, B069


def test_an_entry_is_of_no_session_unless_one_is_named():
    assert minimal().session_id is None  # B007
    assert minimal(session_id="s-1").session_id == "s-1"


@pytest.mark.parametrize("value", ["", " ", 7, b"s", "\udfff"])
def test_a_session_is_none_or_has_a_name(value):
    with pytest.raises(ValueError, match=r"^invalid memory entry: session_id "):
        minimal(session_id=value)  # B007


def test_metadata_is_the_callers_own_and_kept_unchanged():
    kept = {"tenant": "t-1", "nested": {"list": [1, {"deep": None}]}, 7: (1, 2), "thing": object()}

    assert minimal(metadata=kept).metadata == kept  # B009
    assert minimal().metadata == {}
    assert minimal().metadata is not minimal().metadata


def test_whoever_gave_the_metadata_cannot_change_the_entry_by_it():
    given_ = {"tags": ["a"], "deep": {"list": [{"x": 1}]}}
    entry = minimal(metadata=given_)

    given_["tags"].append("b")
    given_["deep"]["list"][0]["x"] = 2
    entry.to_dict()["metadata"]["tags"].append("c")

    assert entry.metadata == {"tags": ["a"], "deep": {"list": [{"x": 1}]}}  # B009, B013


@pytest.mark.parametrize("value", [None, [], [("a", 1)], "text", 7])
def test_metadata_is_a_mapping(value):
    with pytest.raises(InvalidEntry, match=r"(?m)^invalid memory entry: metadata is (?:None|a .*), not a mapping$"):
        minimal(metadata=value)  # B009, B010


def test_metadata_that_holds_itself_is_refused():
    endless = {}
    endless["again"] = endless

    with pytest.raises(
        InvalidEntry,
        match=r"(?m)^invalid memory entry: metadata: the value contains itself, or is nested too deep$",
    ):
        minimal(metadata=endless)


def test_an_entry_may_be_tried_without_an_exception():
    made = Entry.try_new({"agent_id": "demo"}, content="hello", id="mem_1")
    refused = Entry.try_new({"agent_id": "demo"})

    assert made == minimal(id="mem_1")  # B011
    assert isinstance(refused, InvalidEntry)
    assert str(refused) == "invalid memory entry: content is missing or empty"


def test_keywords_and_a_mapping_with_keys_make_the_same_entry_and_keywords_win():
    said = {"id": "mem_1", "agent_id": "demo", "content": "hello"}

    assert Entry.new(said) == Entry.new(**said) == Entry(**said)  # B012
    assert Entry.new(said, content="hi").content == "hi"


@pytest.mark.parametrize(
    ("given_", "told"),
    [({"agentid": "x"}, "did you mean 'agent_id'?"), ({7: "x"}, "use id, agent_id, session_id, content, metadata")],
)
def test_a_key_that_there_is_not_is_refused_with_the_nearest(given_, told):
    with pytest.raises(InvalidEntry, match=f"(?m)^invalid memory entry: there is no {next(iter(given_))!r}$") as no:
        Entry.new({"agent_id": "demo", "content": "hello", **given_})  # B012
    assert no.value.hint == told


@pytest.mark.parametrize("value", [7, "text", ["agent_id"], object()])
def test_what_is_no_mapping_makes_no_entry(value):
    with pytest.raises(InvalidEntry, match=r"(?m)^invalid memory entry: a .* is not a mapping$"):
        Entry.new(value)
    assert isinstance(Entry.try_new(value), InvalidEntry)


@given(ENTRIES)
def test_an_entry_comes_back_from_json_and_from_a_mapping_as_it_was(entry):
    assert Entry.from_input(json.loads(json.dumps(entry.to_dict()))) == entry  # B013
    assert Entry.from_input(entry.to_dict()) == Entry.from_input(**entry.to_dict()) == entry  # B014
    assert list(entry.to_dict()) == ["id", "agent_id", "session_id", "content", "metadata"]


def test_an_entry_is_a_value():
    with pytest.raises(FrozenInstanceError):
        ENTRY.content = "other"  # B013
    with pytest.raises(TypeError, match="cannot be changed"):
        ENTRY.metadata["tags"].append("b")

    assert copy.deepcopy(ENTRY) == pickle.loads(pickle.dumps(ENTRY)) == ENTRY
    assert {ENTRY, replace(ENTRY)} == {ENTRY}
    changes = {"id": "x", "agent_id": "x", "session_id": None, "content": "x", "metadata": {}}
    assert all(replace(ENTRY, **{name: value}) != ENTRY for name, value in changes.items())


def test_an_entry_is_taken_as_it_is_and_may_be_taken_with_changes():
    assert Entry.from_input(ENTRY) is ENTRY  # B014
    assert Entry.from_input(ENTRY, content="hi") == replace(ENTRY, content="hi")
    assert Entry.new(ENTRY) == ENTRY


def test_a_write_request_holds_an_entry_and_metadata():
    assert [field.name for field in fields(WriteRequest)] == ["entry", "metadata"]  # B029
    assert WriteRequest(ENTRY).metadata == {}
    assert WriteRequest(entry=ENTRY, metadata={"trace": 1}) == WriteRequest(ENTRY, {"trace": 1})
    with pytest.raises(TypeError, match="entry"):
        WriteRequest()


def test_the_entry_of_a_write_request_may_be_a_mapping():
    assert WriteRequest({"id": "mem_1", "agent_id": "demo", "content": "hello"}).entry == minimal(id="mem_1")  # B030
    for bad in ({"agent_id": "demo"}, None, "hello"):
        with pytest.raises(ValueError, match=r"^invalid memory entry: "):
            WriteRequest(bad)


def test_a_write_result_holds_its_request_and_the_entry_as_it_was_stored():
    request = WriteRequest(ENTRY)
    stored = replace(ENTRY, content="Hello.")
    result = WriteResult(request, stored)

    assert [field.name for field in fields(WriteResult)] == ["request", "entry", "status", "metadata"]  # B031
    assert (result.request, result.request.entry, result.entry) == (request, ENTRY, stored)  # B033
    assert (result.metadata, WriteResult(request, stored, metadata={"took": 1}).metadata) == ({}, {"took": 1})  # B034


@pytest.mark.parametrize("missing", ["request", "entry"])
def test_a_write_result_is_of_a_request_and_an_entry(missing):
    said = {"request": WriteRequest(ENTRY), "entry": ENTRY}

    with pytest.raises(TypeError, match=missing):
        WriteResult(**{name: value for name, value in said.items() if name != missing})
    with pytest.raises(ValueError, match=r"^invalid memory "):
        WriteResult(**{**said, missing: None})  # B031


def test_ok_is_the_only_status_of_a_write():
    assert WriteResult(WriteRequest(ENTRY), ENTRY).status == "ok"  # B032
    assert WriteResult(WriteRequest(ENTRY), ENTRY, "ok").status == "ok"
    for status in ("error", "OK", "", None, True):
        with pytest.raises(InvalidWrite, match=r"(?m)^invalid memory write result: status=.* is not a status$") as no:
            WriteResult(WriteRequest(ENTRY), ENTRY, status)
        assert no.value.hint == "a failed write raises an error; use 'ok'"


@pytest.mark.parametrize("value", [None, [], "x"])
def test_the_metadata_of_a_write_is_a_mapping_and_its_own(value):
    with pytest.raises(
        InvalidWrite, match=r"(?m)^invalid memory write request: metadata is (?:None|a .*), not a mapping$"
    ):
        WriteRequest(ENTRY, value)  # B029
    with pytest.raises(
        InvalidWrite, match=r"(?m)^invalid memory write result: metadata is (?:None|a .*), not a mapping$"
    ):
        WriteResult(WriteRequest(ENTRY), ENTRY, metadata=value)  # B034

    mine = {"tags": []}
    request, result = WriteRequest(ENTRY, mine), WriteResult(WriteRequest(ENTRY), ENTRY, metadata=mine)
    mine["tags"].append("x")
    assert request.metadata == result.metadata == {"tags": []}


@pytest.mark.parametrize(
    ("make", "told", "hint"),
    [
        (lambda: minimal(agent_id=7), "entry: agent_id is a int, not a text", "give agent_id as text"),
        (
            lambda: minimal(content="\ud800"),
            "entry: content contains half of a surrogate pair, which is not a character",
            "give content as text",
        ),
        (
            lambda: minimal(session_id=""),
            "entry: session_id is missing or empty",
            "give the name of a session, or leave it out",
        ),
        (
            lambda: minimal(metadata=[]),
            "entry: metadata is a list, not a mapping",
            "give metadata={...}, or leave it out",
        ),
        (
            lambda: Entry.new(agent_id="demo", content="hello", id_generator=lambda prefix: ""),
            "entry: the id generator gave '' for the prefix 'mem_'",
            "return a text",
        ),
        (
            lambda: Entry.new([]),
            "entry: a list is not a mapping",
            "give a mapping with id, agent_id, session_id, content, metadata",
        ),
        (
            lambda: WriteRequest(ENTRY, 7),
            "write request: metadata is a int, not a mapping",
            "give metadata={...}, or leave it out",
        ),
        (
            lambda: WriteResult(7, ENTRY),
            "write result: request=7 is no WriteRequest",
            "give the request that is answered",
        ),
        (
            lambda: WriteResult(WriteRequest(ENTRY), ENTRY, "no"),
            "write result: status='no' is not a status",
            "a failed write raises an error; use 'ok'",
        ),
    ],
)
def test_a_refusal_says_what_is_wrong_and_what_to_do(make, told, hint):
    with pytest.raises(InvalidRequest) as no:
        make()
    assert (str(no.value), no.value.hint) == (f"invalid memory {told}", hint)  # B010


def test_requests_and_results_may_be_members_of_sets_whatever_their_metadata():
    request = WriteRequest(ENTRY, {"a": []})
    result = WriteResult(request, ENTRY, metadata={"b": {}})

    assert {request, WriteRequest(ENTRY, {"a": []})} == {request}
    assert {result, replace(result)} == {result}
