"""Directives: effects as data, without effect until they are performed."""

import sys
from itertools import count

import pytest

from jidomem.base import clock
from jidomem.errors import InvalidRequest
from jidomem.records import directive
from jidomem.records.directive import (
    MemoryDelete,
    MemoryQuery,
    MemoryUpsert,
    Signal,
    UpsertItem,
    forget,
    lookup,
    recall,
    remember,
)


def test_a_query_has_the_fields_of_its_kind_and_their_defaults():  # A115 A116
    query = MemoryQuery(request_id="req_1", query={"text": "which index?", "top_k": 3}, provider="vector")

    assert type(query).__slots__ == ("request_id", "query", "provider", "opts", "reply_signal_type")
    assert (query.query, query.opts) == ({"text": "which index?", "top_k": 3}, {})
    assert query.reply_signal_type == "jido.memory.result"


def test_an_upsert_has_items_with_key_value_and_optional_embedding():  # A115 A117
    upsert = MemoryUpsert(
        request_id="req_2",
        items=[{"key": "a", "value": None}, {"key": "b", "value": {"n": 1}, "embedding": [1, 0.5]}],
        provider="vector",
        opts={"x": 1},
    )

    assert type(upsert).__slots__ == ("request_id", "items", "provider", "opts")
    assert upsert.items == (UpsertItem("a", None), UpsertItem("b", {"n": 1}, (1.0, 0.5)))
    assert MemoryUpsert(items=[UpsertItem("a", 7)]).items[0].value == 7
    assert (upsert.provider, upsert.opts) == ("vector", {"x": 1})


def test_a_delete_has_keys_and_options():  # A115 A118
    deletion = MemoryDelete(request_id="req_3", keys=["a", "b"], provider="kv", opts={"reason": "stale"})

    assert type(deletion).__slots__ == ("request_id", "keys", "provider", "opts")
    assert (deletion.keys, deletion.provider) == (("a", "b"), "kv")
    assert (deletion.opts, MemoryDelete(keys=["a"]).opts) == ({"reason": "stale"}, {})


def test_a_directive_without_a_request_id_gets_one(monkeypatch):  # A119
    ids = count(1)
    monkeypatch.setattr(clock, "new_id", lambda: f"id-{next(ids)}")

    directives = [MemoryQuery(query={"key": "a"}), remember("a", 1), forget("a")]

    assert [each.request_id for each in directives] == ["req_id-1", "req_id-2", "req_id-3"]
    assert forget("a", request_id="mine").request_id == "mine"


def test_the_types_of_directives_and_signals_are_constants():  # A128
    assert (
        MemoryQuery.__name__,
        MemoryUpsert.__name__,
        MemoryDelete.__name__,
    ) == (directive.MEMORY_QUERY, directive.MEMORY_UPSERT, directive.MEMORY_DELETE)
    assert [each.type for each in (lookup("a"), remember("a", 1), forget("a"))] == [
        directive.MEMORY_QUERY,
        directive.MEMORY_UPSERT,
        directive.MEMORY_DELETE,
    ]
    assert directive.RESULT_SIGNAL == "jido.memory.result"


def test_recall_lookup_remember_and_forget_return_directives():  # A114
    assert recall("rust", top_k=1).query["top_k"] == 1
    assert recall("rust", top_k=2, request_id="r") == MemoryQuery(request_id="r", query={"text": "rust", "top_k": 2})
    assert lookup("a", provider="kv", request_id="r") == MemoryQuery(request_id="r", query={"key": "a"}, provider="kv")
    assert remember("a", 1, embedding=[1], request_id="r") == MemoryUpsert(
        request_id="r", items=[UpsertItem("a", 1, (1.0,))]
    )
    assert forget("a", "b", provider="kv", request_id="r") == MemoryDelete(
        request_id="r", keys=["a", "b"], provider="kv"
    )


def test_creating_a_directive_uses_no_file_network_or_thread():  # A114 A120
    recall("warm up")
    events, watching = [], [True]

    def audit(event, arguments):
        if watching and event.split(".")[0] in ("open", "os", "socket", "sqlite3", "subprocess", "_thread", "shutil"):
            events.append((event, arguments))

    sys.addaudithook(audit)
    recall("rust"), lookup("a"), remember("a", {"n": 1}, embedding=[1.0]), forget("a", "b")
    watching.clear()

    assert events == []


def test_a_directive_is_immutable_and_independent_of_its_arguments():
    query, opts = {"text": "rust"}, {"x": 1}
    memory_query = MemoryQuery(query=query, opts=opts)

    query["text"] = opts["x"] = "other"

    assert (memory_query.query, memory_query.opts) == ({"text": "rust"}, {"x": 1})
    for each, name in ((memory_query, "provider"), (remember("a", 1), "items"), (forget("a"), "keys")):
        with pytest.raises(AttributeError):
            setattr(each, name, "other")
    with pytest.raises(AttributeError):
        UpsertItem("a", 1).key = "b"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MemoryQuery(query="rust"), "query='rust' is not a mapping of names"),
        (lambda: MemoryQuery(query={}), "the query asks for nothing"),
        (lambda: MemoryQuery(query={"top_k": 3}), "the query asks for nothing"),
        (lambda: MemoryQuery(query={"text": "a", "top_k": 0}), "top_k=0 is not a positive whole number"),
        (lambda: MemoryQuery(query={"text": "a", "top_k": True}), "top_k=True is not a positive whole number"),
        (lambda: MemoryQuery(query={"text": "a"}, reply_signal_type=""), "reply_signal_type='' is not a text"),
        (lambda: MemoryQuery(query={"text": "a"}, provider=" "), "provider=' ' is not a text"),
        (lambda: MemoryQuery(query={"text": "a"}, request_id=7), "request_id=7 is not a text"),
        (lambda: MemoryQuery(query={"text": "a"}, opts=[1]), "opts=[1] is not a mapping of names"),
        (lambda: MemoryUpsert(items=[]), "items is empty"),
        (lambda: MemoryUpsert(items={"key": "a", "value": 1}), "is not a list"),
        (
            lambda: MemoryUpsert(items=[{"key": "a"}]),
            "an item has a key, a value and perhaps an embedding, not ['key']",
        ),
        (lambda: MemoryUpsert(items=[{"key": "a", "value": 1, "score": 2}]), "not ['key', 'score', 'value']"),
        (lambda: MemoryUpsert(items=["a"]), "not str"),
        (lambda: MemoryUpsert(items=[{"key": 7, "value": 1}]), "key=7 is not a text"),
        (lambda: remember("a", 1, embedding=[]), "embedding is not a list of finite numbers"),
        (lambda: remember("a", 1, embedding=[float("nan")]), "embedding is not a list of finite numbers"),
        (lambda: remember("a", 1, embedding=[True]), "embedding is not a list of finite numbers"),
        (lambda: remember("a", 1, embedding="12"), "embedding is not a list of finite numbers"),
        (lambda: forget(), "keys is empty"),
        (lambda: MemoryDelete(keys="abc"), "keys='abc' is not a list"),
        (lambda: lookup(""), "key='' is not a text"),
    ],
)
def test_an_invalid_directive_is_refused_on_creation(make, message):
    with pytest.raises(InvalidRequest) as refusal:
        make()

    assert message in refusal.value.detail
    assert refusal.value.hint


def test_a_signal_is_ok_by_its_status():
    assert Signal("t", {"status": "ok"}).ok
    assert not Signal("t", {"status": "error"}).ok
