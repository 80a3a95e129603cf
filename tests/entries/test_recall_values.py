"""Recall requests and results: their fields, the refused values, and the entries that a request covers."""

import copy
import re
from dataclasses import FrozenInstanceError, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jidomem.entries import (
    Entry,
    FromContext,
    InvalidEntry,
    InvalidRecall,
    MemoryPolicy,
    Prompt,
    RecallRequest,
    RecallResult,
    Run,
    Spec,
    WriteRequest,
    WriteResult,
)
from jidomem.errors import InvalidRequest, JidomemError, TooLarge
from jidomem.records.recall import Hit, MemoryRecall, RecallFilters, parse_request

REQUEST = RecallRequest(agent_id="demo", query="hello")
HIT = Hit(id="i", agent_id="demo", content="hello", score=0.5, metadata={"a": []})


def make_request(**more):
    return RecallRequest(**{"agent_id": "demo", "query": "hello", **more})


def entry(number, **more):
    return Entry(**{"id": f"mem_{number}", "agent_id": "demo", "content": "hello", **more})


def test_a_recall_request_has_six_fields_with_defaults():
    names = {field.name for field in fields(RecallRequest)}
    assert names == {"agent_id", "session_id", "scope", "query", "limit", "metadata"}  # B015
    assert (REQUEST.session_id, REQUEST.scope, REQUEST.limit) == (None, "agent", 5)  # B017, B018
    assert REQUEST.metadata == {}


@pytest.mark.parametrize("name", ["agent_id", "query"])
@pytest.mark.parametrize("value", ["", " ", None, 7])
def test_an_empty_agent_or_query_is_refused(name, value):
    with pytest.raises(ValueError, match=name) as error:
        make_request(**{name: value})
    assert str(error.value) == f"invalid memory recall request: {name} is missing or empty"  # B016, B019, B022
    assert isinstance(error.value, InvalidRecall)
    assert isinstance(error.value, InvalidRequest)


@pytest.mark.parametrize("missing", ["agent_id", "query"])
def test_agent_and_query_are_required(missing):
    inputs = {"agent_id": "demo", "query": "hello"}
    del inputs[missing]
    for make in (RecallRequest, RecallRequest.from_input):
        with pytest.raises(ValueError, match=f"(?m)^invalid memory recall request: {missing} is missing or empty$"):
            make(**inputs)  # B016, B019


@pytest.mark.parametrize("value", ["", "  ", 7, b"s"])
def test_the_session_of_a_request_is_none_or_a_name(value):
    assert make_request(session_id="s-1").session_id == "s-1"
    with pytest.raises(InvalidRecall, match=r"(?m)^invalid memory recall request: session_id is not a name$"):
        make_request(session_id=value)  # B017


@pytest.mark.parametrize("value", ["agents", "Agent", "", None, "all", ["agent"], 1])
def test_the_scopes_are_agent_and_session(value):
    assert [make_request(scope=scope).scope for scope in ("agent", "session")] == ["agent", "session"]
    with pytest.raises(InvalidRecall, match=r"(?m)^invalid memory recall request: scope=.* is not a scope$") as error:
        make_request(scope=value)  # B018
    assert error.value.hint == "use one of: agent, session"


@pytest.mark.parametrize(
    ("value", "fault", "fitting"),
    [
        *((value, "from 1 to 1,000", 5) for value in (0, -1)),
        *((value, "from 1 to 1,000", 1000) for value in (1_001, 5_000)),
        *((value, "a whole number", 5) for value in (2.0, "5", None, True, float("inf"))),
    ],
)
def test_a_limit_is_a_whole_number_from_1_to_1000(value, fault, fitting):
    assert [make_request(limit=limit).limit for limit in (1, 1_000)] == [1, 1_000]
    with pytest.raises(InvalidRecall, match=rf"(?m)^invalid memory recall request: limit=.* is not {fault}$") as error:
        make_request(limit=value)  # B020
    assert error.value.hint == f"give limit={fitting}, or leave it out"


def test_the_metadata_of_a_request_is_a_copied_mapping():
    source = {"trace": ["a"], "tenant": object()}
    request = make_request(metadata=source)
    assert request.metadata == source  # B021
    assert make_request().metadata == {}
    assert make_request().metadata is not make_request().metadata

    expected = dict(source, trace=["a"])
    source["trace"].append("b")
    assert request.metadata == expected
    for value in (None, [], "x"):
        with pytest.raises(
            InvalidRecall, match=r"(?m)^invalid memory recall request: metadata is (?:None|a .*), not a mapping$"
        ):
            make_request(metadata=value)


def test_a_query_above_the_size_limit_is_refused():
    assert len(make_request(query="q" * 65_536).query) == 65_536
    assert make_request(query="half \ud800").query == "half \ud800"
    with pytest.raises(
        ValueError, match=r"^invalid memory recall request: the query has more than 65,536 bytes"
    ) as error:
        make_request(query="ä" * 32_769)  # B022
    assert isinstance(error.value, TooLarge)


def test_a_request_may_have_the_scope_session_without_a_session():
    assert make_request(scope="session").session_id is None  # B023


def test_a_request_is_built_from_a_request_a_mapping_or_keywords():
    inputs = {"agent_id": "demo", "query": "hello", "limit": 2}

    assert RecallRequest.from_input(REQUEST) is REQUEST
    assert RecallRequest.from_input(REQUEST, limit=2) == make_request(limit=2)
    assert RecallRequest.from_input(inputs) == RecallRequest.from_input(**inputs) == make_request(limit=2)
    assert RecallRequest.from_input(inputs, limit=3).limit == 3


@pytest.mark.parametrize(
    ("description", "expected_text"),
    [
        ({"agent_id": "a", "query": "q", "max": 3}, "there is no 'max'"),
        ({"agent_id": "a", "query": "q", "querry": "r"}, "there is no 'querry'"),
        ("hello", "a str is not a mapping"),
        (7, "a int is not a mapping"),
    ],
)
def test_an_invalid_description_of_a_request_is_refused(description, expected_text):
    with pytest.raises(InvalidRecall) as error:
        RecallRequest.from_input(description)
    assert str(error.value) == f"invalid memory recall request: {expected_text}"  # B015, B022


def test_a_result_has_its_request_and_is_immutable_and_empty_by_default():
    result = RecallResult(REQUEST)

    assert [field.name for field in fields(RecallResult)] == ["request", "entries", "metadata"]  # B024
    assert result.request is REQUEST  # B025
    assert (result.entries, result.metadata) == ([], {})  # B028
    assert isinstance(result.entries, list)
    with pytest.raises(TypeError, match="cannot be changed"):
        result.entries.append(entry(1))
    with pytest.raises(TypeError, match="request"):
        RecallResult()


def test_a_result_keeps_the_order_of_entries_and_the_metadata():
    listed = [entry(2), entry(1), entry(3)]
    result = RecallResult(request=REQUEST, entries=iter(listed), metadata={"scores": [0.3, 0.9, 0.1], "ms": 4.2})

    assert result.entries == listed  # B026
    assert result.metadata == {"scores": [0.3, 0.9, 0.1], "ms": 4.2}  # B027
    assert RecallResult(REQUEST, [entry(1).to_dict()]).entries == [entry(1)]


@pytest.mark.parametrize(
    ("inputs", "expected_text"),
    [
        ({"request": None}, "invalid memory recall result: request is not a RecallRequest"),
        ({"entries": "hello"}, "invalid memory recall result: entries is not a list"),
        ({"entries": {}}, "invalid memory recall result: entries is not a list"),
        ({"entries": None}, "invalid memory recall result: entries is not a list"),
        ({"metadata": None}, "invalid memory recall result: metadata is None, not a mapping"),
        ({"entries": ["hello"]}, "invalid memory entry: a str is not a mapping"),
    ],
)
def test_invalid_arguments_of_a_result_are_refused(inputs, expected_text):
    with pytest.raises(ValueError, match=re.escape(expected_text)) as error:
        RecallResult(**{"request": REQUEST, **inputs})
    assert str(error.value) == expected_text
    assert isinstance(error.value, InvalidEntry if "entry:" in expected_text else InvalidRecall)


def test_hits_are_entries_with_a_score():
    hit = Hit(id="i", agent_id="demo", content="hello", score=0.5, metadata={"kind": "fact"}, parts={"words": {"a": 1}})

    assert isinstance(hit, Entry)
    assert isinstance(MemoryRecall(REQUEST, [hit]), RecallResult)
    assert MemoryRecall(REQUEST, [hit]).entries[0] is hit
    assert hit.to_dict() == {
        "id": "i",
        "agent_id": "demo",
        "session_id": None,
        "content": "hello",
        "score": 0.5,
        "metadata": {"kind": "fact"},
        "parts": {"words": {"a": 1}},
        "excerpt": "",
    }
    assert "parts" not in Hit(id="i", agent_id="demo", content="hello", score=0.5).to_dict()


def test_a_result_is_converted_to_plain_values():
    assert RecallResult(REQUEST, [entry(1)], {"ms": 1}).to_dict() == {
        "query": "hello",
        "entries": [entry(1).to_dict()],
        "metadata": {"ms": 1},
    }


@pytest.mark.parametrize(
    "value",
    [
        REQUEST,
        RecallResult(REQUEST),
        MemoryRecall(REQUEST),
        Hit(id="i", agent_id="demo", content="hello", score=0.5),
        entry(1),
        WriteRequest(entry(1)),
        WriteResult(WriteRequest(entry(1)), entry(1)),
        MemoryPolicy(),
        Spec("demo"),
        FromContext("tenant"),
        Prompt(),
        Run(Spec("demo")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_the_contract_are_immutable_and_have_no_further_attributes(value):
    name = fields(value)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(value, name, getattr(value, name))
    assert not hasattr(value, "__dict__")
    assert replace(value) == value
    assert copy.deepcopy(value) == value


@pytest.mark.parametrize("make", [RecallRequest, RecallResult, MemoryRecall, Hit], ids=lambda make: make.__name__)
def test_values_with_mutable_content_are_hashable(make):
    inputs = {"metadata": {"a": []}, "agent_id": "demo", "query": "q", "content": "hello", "id": "i", "score": 0.5}
    inputs |= {"request": make_request(metadata={"a": []}), "entries": [HIT], "parts": {"words": {}}}

    values = [make(**{field.name: inputs[field.name] for field in fields(make) if field.name in inputs}) for _ in "ab"]

    assert len(set(values)) == 1


def test_a_plain_text_is_a_request_of_the_current_agent():
    request, filters = parse_request("hello", {"limit": 2, "kinds": ["fact"]}, "demo")

    assert request == make_request(limit=2)
    assert filters.kinds == ("fact",)


@pytest.mark.parametrize(
    ("scope", "session", "entry_session", "covered"),
    [
        ("agent", None, None, True),
        ("agent", None, "s", False),
        ("agent", "s", "s", True),
        ("agent", "s", "t", False),
        ("agent", "s", None, True),
        ("session", "s", "s", True),
        ("session", "s", "t", False),
        ("session", "s", None, False),
        ("session", None, None, False),
        ("session", None, "s", False),
    ],
)
def test_a_request_covers_entries_of_its_agent_by_scope_and_session(scope, session, entry_session, covered):
    request = make_request(scope=scope, session_id=session)

    assert request.covers(entry(1, session_id=entry_session)) is covered  # B041, B042, B055
    assert request.covers(entry(1, session_id=entry_session, agent_id="other")) is False
    covers_all_sessions = covered or (scope == "agent")
    assert request.covers(entry(1, session_id=entry_session), include_sessions=True) is covers_all_sessions


def test_a_request_with_a_namespace_covers_entries_of_that_namespace():
    request = make_request(metadata={"namespace": "red"})

    assert request.covers(entry(1, metadata={"namespace": "red"}))
    assert not request.covers(entry(1, metadata={"namespace": "blue"}))
    assert not request.covers(entry(1))
    assert not request.covers(entry(1, metadata={"namespace": "red"}, agent_id="other"))
    assert REQUEST.covers(entry(1, metadata={"namespace": "blue"}))
    assert make_request(metadata={"tenant": "red"}).covers(entry(1, metadata={"tenant": "blue"}))


@given(st.sampled_from(["agent", "session"]), st.sampled_from([None, "s"]), st.booleans())
def test_no_request_covers_entries_of_another_agent(scope, session, covers_all):
    request = make_request(scope=scope, session_id=session)

    assert not request.covers(entry(1, agent_id="demo2", session_id=session), include_sessions=covers_all)  # B040


@pytest.mark.parametrize(
    ("make", "expected_text", "hint"),
    [
        (lambda: make_request(agent_id=""), "request: agent_id is missing or empty", "give agent_id as text"),
        (
            lambda: make_request(session_id=""),
            "request: session_id is not a name",
            "give the name of a session, or leave it out",
        ),
        (lambda: make_request(scope="all"), "request: scope='all' is not a scope", "use one of: agent, session"),
        (lambda: make_request(limit=0), "request: limit=0 is not from 1 to 1,000", "give limit=5, or leave it out"),
        (
            lambda: make_request(query="q" * 65_537),
            "request: the query has more than 65,536 bytes",
            "search for the important words only",
        ),
        (lambda: RecallResult(7), "result: request is not a RecallRequest", "give the request that is answered"),
        (lambda: RecallResult(REQUEST, 7), "result: entries is not a list", "give a list of entries, or leave it out"),
        (lambda: RecallFilters(kinds="fact"), "request: kinds='fact' is not a list of texts", 'give kinds=["..."]'),
        (lambda: RecallFilters(about=7), "request: about=7 is not a list of texts", 'give about=["..."]'),
        (
            lambda: RecallFilters(about=["a", ""]),
            "request: about=['a', ''] is not a list of texts",
            'give about=["..."]',
        ),
        (lambda: RecallFilters(agent=""), "request: agent='' is not a name", "give a name, or leave agent out"),
        (lambda: RecallFilters(session=7), "request: session=7 is not a name", "give a name, or leave session out"),
        (
            lambda: RecallFilters(explain=1),
            "request: explain=1 is not true or false",
            "give explain=true, or leave it out",
        ),
        (
            lambda: RecallFilters(budget_tokens=0),
            "request: budget_tokens=0 is not a positive whole number",
            "give budget_tokens=500",
        ),
        (
            lambda: RecallFilters(budget_tokens=True),
            "request: budget_tokens=True is not a positive whole number",
            "give budget_tokens=500",
        ),
        *(
            (
                lambda least=least: RecallFilters(min_score=least),
                f"request: min_score={least!r} is not a number from 0 to 1",
                "give min_score=0 to see all results",
            )
            for least in (-0.1, 1.01, float("nan"), float("inf"), "0.5", True)
        ),
        (lambda: parse_request("hello", {"limt": 2}, "demo"), "request: there is no 'limt'", "did you mean 'limit'?"),
        (
            lambda: parse_request(REQUEST, {"query": "x"}, "demo"),
            "request: there is no 'query'",
            "use ['about', 'agent', 'as_of', 'budget_tokens', 'explain', 'include_inactive', 'kinds', 'min_score',"
            " 'session', 'since', 'until', 'valid_at']",
        ),
        (lambda: parse_request("hello", {"query": "x"}, "demo"), "request: there is no 'query'", None),
        (lambda: parse_request(REQUEST, {"limit": 2}, "demo"), "request: there is no 'limit'", None),
    ],
)
def test_a_refusal_names_the_field_and_the_correction(make, expected_text, hint):
    with pytest.raises(JidomemError) as error:
        make()
    assert str(error.value) == f"invalid memory recall {expected_text}"  # B022
    assert hint is None or error.value.hint == hint


def test_the_search_of_a_request_is_narrowed_by_options():
    filters = RecallFilters(kinds=["fact"], about=("a", "b"), agent="ana", session="s", budget_tokens=1, explain=True)

    assert (filters.kinds, filters.about, filters.agent, filters.session) == (("fact",), ("a", "b"), "ana", "s")
    assert (filters.budget_tokens, filters.explain, filters.include_inactive) == (1, True, False)
    assert (RecallFilters().explain, RecallFilters().budget_tokens, RecallFilters().kinds) == (False, None, ())
    assert parse_request(REQUEST, {"explain": True}, "other") == (REQUEST, RecallFilters(explain=True))
