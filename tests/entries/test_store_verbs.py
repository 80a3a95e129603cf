"""The functions recall, write and list_entries over any store, and the errors of a failing store."""

import pytest

from jidomem.entries import (
    Entry,
    InMemoryStore,
    RecallRequest,
    RecallResult,
    Store,
    StoreError,
    WriteRequest,
    WriteResult,
    list_entries,
    recall,
    write,
)
from jidomem.errors import Busy, InvalidRequest, TooLarge

ENTRY = Entry(id="mem_1", agent_id="demo", content="hello")
REQUEST = RecallRequest(agent_id="demo", query="hello", metadata={"trace": "t-1"})


class Shelf:
    """A store of one's own, with nothing but the three operations; it notes what it was asked with."""

    kept, asked = {}, []

    def recall(self, request, opts):
        self.asked.append(("recall", request, opts))
        found = [entry for entry in self.kept.values() if request.covers(entry)]
        return RecallResult(request, found[: request.limit])

    def write(self, request, opts):
        self.asked.append(("write", request, opts))
        self.kept[request.entry.id] = request.entry
        return WriteResult(request, request.entry)

    def list_entries(self, opts):
        self.asked.append(("list_entries", opts))
        return self.kept.values()


@pytest.fixture
def shelf():
    class Own(Shelf):
        kept, asked = {}, []

    return Own


def test_any_object_with_the_three_operations_is_a_store(shelf):
    store: Store = shelf()

    opts = {"tenant": "t-1"}
    for given in (store, (store, opts)):
        shelf.asked.clear()
        passed = {} if given is store else opts
        assert write(given, WriteRequest(ENTRY)) == WriteResult(WriteRequest(ENTRY), ENTRY)  # B035, B046
        assert recall(given, REQUEST) == RecallResult(REQUEST, [ENTRY])
        assert list_entries(given) == [ENTRY]
        assert shelf.asked == [
            ("write", WriteRequest(ENTRY), passed), ("recall", REQUEST, passed), ("list_entries", passed)
        ]  # fmt: skip


@pytest.mark.parametrize("form", ["instance", "class"])
def test_a_store_may_be_an_instance_or_a_class_with_or_without_options(shelf, form):
    given = shelf() if form == "instance" else shelf
    opts = {"tenant": "t-1", "model": object()}

    for store in (given, (given, opts)):
        shelf.asked.clear()
        write(store, WriteRequest(ENTRY, {"trace": 1}))
        recall(store, REQUEST)
        list_entries(store)

        passed = opts if isinstance(store, tuple) else {}
        assert shelf.asked == [  # B036, B037, B038
            ("write", WriteRequest(ENTRY, {"trace": 1}), passed),
            ("recall", REQUEST, passed),
            ("list_entries", passed),
        ]
        assert all(asked[-1] is opts for asked in shelf.asked if passed)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "None is not a store, it has no recall, write, list_entries"),
        ("redis://", "'redis://' is not a store, it has no recall, write, list_entries"),
        ({}, "{} is not a store, it has no recall, write, list_entries"),
        ((), "() is not a store, it has no recall, write, list_entries"),
        ((Shelf,), "GIVEN is not a store, it has no recall, write, list_entries"),
        ((Shelf, {}, {}), "GIVEN is not a store, it has no recall, write, list_entries"),
        ((Shelf, None), "the options of a store are a mapping, not None"),
        ((Shelf, [("pid", 1)]), "the options of a store are a mapping, not [('pid', 1)]"),
        (type("Half", (), {"recall": print, "write": print}), "GIVEN is not a store, it has no list_entries"),
        (
            type("Half", (), {"recall": print, "write": 7, "list_entries": 8})(),
            "GIVEN is not a store, it has no write, list_entries",
        ),
    ],
)
def test_other_values_are_refused_as_stores(given, message):
    for call in (lambda: recall(given, REQUEST), lambda: write(given, ENTRY), lambda: list_entries(given)):
        with pytest.raises(TypeError) as refusal:
            call()  # B038
        correction = "; give a store, a class of stores, or a pair (store, options)"
        assert str(refusal.value) == message.replace("GIVEN", repr(given)) + correction


def test_a_store_class_may_select_the_store_by_its_options(shelf):
    one, other = shelf(), shelf()

    class Named(shelf):
        def __init__(self):
            raise AssertionError("no new store is wanted")

        @classmethod
        def for_options(cls, opts):
            return {"one": one, "other": other}[opts["name"]]

    one.kept, other.kept = {}, {}
    write((Named, {"name": "other"}), ENTRY)
    assert (one.kept, other.kept) == ({}, {"mem_1": ENTRY})


def test_requests_may_be_plain_values():
    store = InMemoryStore()

    write(store, ENTRY)
    write(store, {"id": "mem_2", "agent_id": "demo", "content": "hi"})

    request = {"agent_id": "demo", "query": "hello", "limit": 1}
    assert recall(store, request).entries == recall(store, **request).entries
    assert recall(store, REQUEST, limit=1).request == RecallRequest.from_input(REQUEST, limit=1)
    assert [entry.id for entry in list_entries(store)] == ["mem_1", "mem_2"]


def test_an_invalid_request_does_not_reach_the_store(shelf):
    with pytest.raises(ValueError, match=r"^invalid memory recall request: query is missing"):
        recall(shelf(), agent_id="demo")
    with pytest.raises(ValueError, match=r"^invalid memory entry: content is missing"):
        write(shelf(), {"agent_id": "demo"})
    assert shelf.asked == []


class Broken(InMemoryStore):
    """A store that raises, or answers with, what it is told to."""

    def __init__(self, fault):
        self.fault = fault

    def recall(self, request, opts):
        if isinstance(self.fault, Exception):
            raise self.fault
        return self.fault

    def write(self, request, opts):
        return self.recall(request, opts)

    def list_entries(self, opts):
        return self.recall(None, opts)


@pytest.mark.parametrize("verb", ["recall", "write", "list_entries"])
@pytest.mark.parametrize("fault", [OSError("disk gone"), KeyError("x"), ZeroDivisionError("by zero"), ValueError("v")])
def test_a_failing_store_raises_a_store_error_with_the_reason(verb, fault):
    store = Broken(fault)
    calls = {"recall": lambda: recall(store, REQUEST), "write": lambda: write(store, ENTRY)}

    with pytest.raises(StoreError) as refusal:
        calls.get(verb, lambda: list_entries(store))()

    assert refusal.value.reason is refusal.value.__cause__ is fault  # B047
    assert str(refusal.value) == f"Broken could not {verb}: {type(fault).__name__}: {fault}"
    assert refusal.value.code == "store_unavailable"


def test_a_jidomem_error_of_a_store_keeps_code_and_hint():
    with pytest.raises(StoreError) as refusal:
        recall(Broken(Busy("another writer", hint="try again")), REQUEST)
    assert (refusal.value.code, refusal.value.hint) == ("busy", "try again")  # B047
    assert str(refusal.value) == "Broken could not recall: another writer"
    assert isinstance(refusal.value.reason, Busy)


@pytest.mark.parametrize(
    "fault", [StoreError("down", reason=7), InvalidRequest("no such option"), TooLarge("too much")]
)
def test_a_store_error_and_a_refused_request_are_raised_unchanged(fault):
    with pytest.raises(type(fault)) as refusal:
        recall(Broken(fault), REQUEST)
    assert refusal.value is fault


@pytest.mark.parametrize("verb", ["recall", "write"])
def test_an_invalid_result_of_a_store_is_a_store_error(verb):
    with pytest.raises(StoreError, match=rf"(?m)^Broken answered {verb} with a list, not a \w+Result$") as refusal:
        recall(Broken([ENTRY]), REQUEST) if verb == "recall" else write(Broken([ENTRY]), ENTRY)
    assert refusal.value.reason == [ENTRY]
    assert refusal.value.hint == f"let {verb} return a {verb.capitalize()}Result"


def test_an_invalid_list_of_a_store_is_a_store_error():
    with pytest.raises(StoreError, match=r"^Broken could not list_entries: TypeError: "):
        list_entries(Broken(7))
