"""Entries and requests to write: their fields, their refusals, and their JSON."""

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


def test_the_caller_of_new_may_give_an_id_generator():
    prefixes = []

    entry = Entry.new(agent_id="demo", content="hello", id_generator=lambda prefix: prefixes.append(prefix) or "mem_7")

    assert (entry.id, prefixes) == ("mem_7", ["mem_"])  # B003
    assert Entry.new({"id": "pk:7", "agent_id": "demo", "content": "hi"}, id_generator=prefixes.pop).id == "pk:7"
    assert prefixes == ["mem_"]


@pytest.mark.parametrize("generated", ["", "  ", None, 7, b"mem_1"])
def test_an_id_generator_without_a_valid_id_is_refused_with_prefix_and_value(generated):
    with pytest.raises(
        ValueError, match=r"(?m)^invalid memory entry: the id generator gave .* for the prefix 'mem_'$"
    ) as refused:
        Entry.new(agent_id="demo", content="hello", id_generator=lambda prefix: generated)
    assert str(refused.value).endswith(f" gave {generated!r} for the prefix 'mem_'")  # B004


@pytest.mark.parametrize("name", ["42", "https://example.org/rows/1", "mem_", " with spaces "])
def test_a_given_id_is_unchanged(name):
    assert minimal(id=name).id == name  # B005
    assert Entry.new(id=name, agent_id="demo", content="hello").id == name


@pytest.mark.parametrize("name", ["id", "agent_id", "content"])
@pytest.mark.parametrize("value", ["", " \n", None, 7, b"x", ["x"], "half \ud800"])
def test_id_agent_and_content_are_texts_that_are_not_blank(name, value):
    with pytest.raises(ValueError, match=f"^invalid memory entry: {name} ") as refused:  # B010
        minimal(**{name: value})
    assert isinstance(refused.value, InvalidEntry)  # B002, B006
    assert isinstance(refused.value, InvalidRequest)
    assert refused.value.hint == f"give {name} as text"


@pytest.mark.parametrize("missing", ["agent_id", "content"])
def test_agent_and_content_are_required(missing):
    arguments = {"agent_id": "demo", "content": "hello"}
    del arguments[missing]

    for make in (Entry, Entry.new, Entry.from_input):
        with pytest.raises(ValueError, match=f"(?m)^invalid memory entry: {missing} is missing or empty$"):
            make(**arguments)  # B006, B008, B069


@pytest.mark.parametrize("fields_", [{"agent_id": "", "content": "x"}, {"agent_id": "demo", "content": ""}])
def test_an_empty_agent_or_content_raises_the_documented_error(fields_):
    empty = next(name for name, value in fields_.items() if not value)

    with pytest.raises(ValueError, match=empty) as refused:
        Entry(**fields_)
    assert str(refused.value) == f"invalid memory entry: {empty} is missing or empty"  # B006, B008, B069


def test_an_entry_has_no_session_by_default():
    assert minimal().session_id is None  # B007
    assert minimal(session_id="s-1").session_id == "s-1"


@pytest.mark.parametrize("value", ["", " ", 7, b"s", "\udfff"])
def test_a_session_is_none_or_has_a_name(value):
    with pytest.raises(ValueError, match=r"^invalid memory entry: session_id "):
        minimal(session_id=value)  # B007


def test_metadata_is_stored_unchanged():
    given_metadata = {"tenant": "t-1", "nested": {"list": [1, {"deep": None}]}, 7: (1, 2), "thing": object()}

    assert minimal(metadata=given_metadata).metadata == given_metadata  # B009
    assert minimal().metadata == {}
    assert minimal().metadata is not minimal().metadata


def test_later_changes_of_the_given_metadata_do_not_change_the_entry():
    given_metadata = {"tags": ["a"], "deep": {"list": [{"x": 1}]}}
    entry = minimal(metadata=given_metadata)

    given_metadata["tags"].append("b")
    given_metadata["deep"]["list"][0]["x"] = 2
    entry.to_dict()["metadata"]["tags"].append("c")

    assert entry.metadata == {"tags": ["a"], "deep": {"list": [{"x": 1}]}}  # B009, B013


@pytest.mark.parametrize("value", [None, [], [("a", 1)], "text", 7])
def test_metadata_is_a_mapping(value):
    with pytest.raises(InvalidEntry, match=r"(?m)^invalid memory entry: metadata is (?:None|a .*), not a mapping$"):
        minimal(metadata=value)  # B009, B010


def test_metadata_that_contains_itself_is_refused():
    endless = {}
    endless["again"] = endless

    with pytest.raises(
        InvalidEntry,
        match=r"(?m)^invalid memory entry: metadata: the value contains itself, or is nested too deep$",
    ):
        minimal(metadata=endless)


def test_try_new_returns_the_error_of_an_invalid_entry():
    made = Entry.try_new({"agent_id": "demo"}, content="hello", id="mem_1")
    refused = Entry.try_new({"agent_id": "demo"})

    assert made == minimal(id="mem_1")  # B011
    assert isinstance(refused, InvalidEntry)
    assert str(refused) == "invalid memory entry: content is missing or empty"


def test_keywords_override_the_keys_of_a_mapping():
    arguments = {"id": "mem_1", "agent_id": "demo", "content": "hello"}

    assert Entry.new(arguments) == Entry.new(**arguments) == Entry(**arguments)  # B012
    assert Entry.new(arguments, content="hi").content == "hi"


@pytest.mark.parametrize(
    ("fields_", "hint"),
    [({"agentid": "x"}, "did you mean 'agent_id'?"), ({7: "x"}, "use id, agent_id, session_id, content, metadata")],
)
def test_an_unknown_key_is_refused_with_the_nearest_one(fields_, hint):
    with pytest.raises(InvalidEntry, match=f"(?m)^invalid memory entry: there is no {next(iter(fields_))!r}$") as no:
        Entry.new({"agent_id": "demo", "content": "hello", **fields_})  # B012
    assert no.value.hint == hint


@pytest.mark.parametrize("value", [7, "text", ["agent_id"], object()])
def test_a_value_that_is_no_mapping_is_refused(value):
    with pytest.raises(InvalidEntry, match=r"(?m)^invalid memory entry: a .* is not a mapping$"):
        Entry.new(value)
    assert isinstance(Entry.try_new(value), InvalidEntry)


@given(ENTRIES)
def test_an_entry_is_unchanged_by_json_and_a_mapping(entry):
    assert Entry.from_input(json.loads(json.dumps(entry.to_dict()))) == entry  # B013
    assert Entry.from_input(entry.to_dict()) == Entry.from_input(**entry.to_dict()) == entry  # B014
    assert list(entry.to_dict()) == ["id", "agent_id", "session_id", "content", "metadata"]


def test_an_entry_is_immutable_and_compared_by_value():
    with pytest.raises(FrozenInstanceError):
        ENTRY.content = "other"  # B013
    with pytest.raises(TypeError, match="cannot be changed"):
        ENTRY.metadata["tags"].append("b")

    assert copy.deepcopy(ENTRY) == pickle.loads(pickle.dumps(ENTRY)) == ENTRY
    assert {ENTRY, replace(ENTRY)} == {ENTRY}
    changes = {"id": "x", "agent_id": "x", "session_id": None, "content": "x", "metadata": {}}
    assert all(replace(ENTRY, **{name: value}) != ENTRY for name, value in changes.items())


def test_from_input_returns_an_entry_itself_or_a_changed_copy():
    assert Entry.from_input(ENTRY) is ENTRY  # B014
    assert Entry.from_input(ENTRY, content="hi") == replace(ENTRY, content="hi")
    assert Entry.new(ENTRY) == ENTRY


def test_a_write_request_has_an_entry_and_metadata():
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


def test_a_write_result_has_its_request_and_the_stored_entry():
    request = WriteRequest(ENTRY)
    stored = replace(ENTRY, content="Hello.")
    result = WriteResult(request, stored)

    assert [field.name for field in fields(WriteResult)] == ["request", "entry", "status", "metadata"]  # B031
    assert (result.request, result.request.entry, result.entry) == (request, ENTRY, stored)  # B033
    assert (result.metadata, WriteResult(request, stored, metadata={"took": 1}).metadata) == ({}, {"took": 1})  # B034


@pytest.mark.parametrize("missing", ["request", "entry"])
def test_a_write_result_requires_a_request_and_an_entry(missing):
    arguments = {"request": WriteRequest(ENTRY), "entry": ENTRY}

    with pytest.raises(TypeError, match=missing):
        WriteResult(**{name: value for name, value in arguments.items() if name != missing})
    with pytest.raises(ValueError, match=r"^invalid memory "):
        WriteResult(**{**arguments, missing: None})  # B031


def test_ok_is_the_only_status_of_a_write():
    assert WriteResult(WriteRequest(ENTRY), ENTRY).status == "ok"  # B032
    assert WriteResult(WriteRequest(ENTRY), ENTRY, "ok").status == "ok"
    for status in ("error", "OK", "", None, True):
        with pytest.raises(InvalidWrite, match=r"(?m)^invalid memory write result: status=.* is not a status$") as no:
            WriteResult(WriteRequest(ENTRY), ENTRY, status)
        assert no.value.hint == "a failed write raises an error; use 'ok'"


@pytest.mark.parametrize("value", [None, [], "x"])
def test_the_metadata_of_a_write_is_a_mapping_and_a_copy(value):
    with pytest.raises(
        InvalidWrite, match=r"(?m)^invalid memory write request: metadata is (?:None|a .*), not a mapping$"
    ):
        WriteRequest(ENTRY, value)  # B029
    with pytest.raises(
        InvalidWrite, match=r"(?m)^invalid memory write result: metadata is (?:None|a .*), not a mapping$"
    ):
        WriteResult(WriteRequest(ENTRY), ENTRY, metadata=value)  # B034

    given_ = {"tags": []}
    request, result = WriteRequest(ENTRY, given_), WriteResult(WriteRequest(ENTRY), ENTRY, metadata=given_)
    given_["tags"].append("x")
    assert request.metadata == result.metadata == {"tags": []}


@pytest.mark.parametrize(
    ("make", "message", "hint"),
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
def test_a_refusal_has_the_fault_and_a_hint(make, message, hint):
    with pytest.raises(InvalidRequest) as refused:
        make()
    assert (str(refused.value), refused.value.hint) == (f"invalid memory {message}", hint)  # B010


def test_requests_and_results_are_hashable_with_any_metadata():
    request = WriteRequest(ENTRY, {"a": []})
    result = WriteResult(request, ENTRY, metadata={"b": {}})

    assert {request, WriteRequest(ENTRY, {"a": []})} == {request}
    assert {result, replace(result)} == {result}
