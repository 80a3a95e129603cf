"""The three verbs over whatever stands for a store, and what becomes of a store that fails."""

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


def test_a_store_is_whatever_has_the_three_operations(shelf):
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
def test_a_store_may_come_with_options_or_without_and_as_its_class(shelf, form):
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
    ("given", "told"),
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
def test_anything_else_is_no_store(given, told):
    for ask in (lambda: recall(given, REQUEST), lambda: write(given, ENTRY), lambda: list_entries(given)):
        with pytest.raises(TypeError) as no:
            ask()  # B038
        way_out = "; give a store, a class of stores, or a pair (store, options)"
        assert str(no.value) == told.replace("GIVEN", repr(given)) + way_out


def test_a_class_may_say_itself_which_store_its_options_mean(shelf):
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


def test_requests_may_be_given_as_plain_values():
    store = InMemoryStore()

    write(store, ENTRY)
    write(store, {"id": "mem_2", "agent_id": "demo", "content": "hi"})

    asked = {"agent_id": "demo", "query": "hello", "limit": 1}
    assert recall(store, asked).entries == recall(store, **asked).entries
    assert recall(store, REQUEST, limit=1).request == RecallRequest.from_input(REQUEST, limit=1)
    assert [entry.id for entry in list_entries(store)] == ["mem_1", "mem_2"]


def test_what_is_no_request_does_not_reach_the_store(shelf):
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
def test_a_store_that_fails_is_one_error_that_carries_the_reason(verb, fault):
    store = Broken(fault)
    ask = {"recall": lambda: recall(store, REQUEST), "write": lambda: write(store, ENTRY)}

    with pytest.raises(StoreError) as no:
        ask.get(verb, lambda: list_entries(store))()

    assert no.value.reason is no.value.__cause__ is fault  # B047
    assert str(no.value) == f"Broken could not {verb}: {type(fault).__name__}: {fault}"
    assert no.value.code == "store_unavailable"


def test_a_store_that_says_why_in_our_own_words_keeps_code_and_hint():
    with pytest.raises(StoreError) as no:
        recall(Broken(Busy("another writer", hint="try again")), REQUEST)
    assert (no.value.code, no.value.hint) == ("busy", "try again")  # B047
    assert str(no.value) == "Broken could not recall: another writer"
    assert isinstance(no.value.reason, Busy)


@pytest.mark.parametrize(
    "fault", [StoreError("down", reason=7), InvalidRequest("no such option"), TooLarge("too much")]
)
def test_an_error_of_the_store_and_a_refusal_of_what_was_asked_come_through_as_they_are(fault):
    with pytest.raises(type(fault)) as no:
        recall(Broken(fault), REQUEST)
    assert no.value is fault


@pytest.mark.parametrize("verb", ["recall", "write"])
def test_an_answer_that_is_no_result_is_an_error_of_the_store(verb):
    with pytest.raises(StoreError, match=rf"(?m)^Broken answered {verb} with a list, not a \w+Result$") as no:
        recall(Broken([ENTRY]), REQUEST) if verb == "recall" else write(Broken([ENTRY]), ENTRY)
    assert no.value.reason == [ENTRY]
    assert no.value.hint == f"let {verb} return a {verb.capitalize()}Result"


def test_a_list_that_is_none_is_an_error_of_the_store():
    with pytest.raises(StoreError, match=r"^Broken could not list_entries: TypeError: "):
        list_entries(Broken(7))
