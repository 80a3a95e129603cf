"""LangGraph's store over entries compared with its SqliteStore: equal answers to equal operations."""

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from itertools import count

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.sqlite import SqliteStore

import jidomem
from jidomem.adapters.langgraph import JidomemStore

AGENTS = map("agent-{}".format, count())
EPOCH = datetime(2000, 1, 1)


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with jidomem.open(tmp_path_factory.mktemp("items") / "root", project="p", agent="graph") as opened:
        yield opened


class Reference:
    """The SqliteStore, with a clock that advances at each put: its own has whole seconds, with ties in any order."""

    def __init__(self, connection):
        self.store, self.connection, self.ticks = SqliteStore(connection), connection, count()
        self.store.setup()

    def batch(self, ops):
        answers = self.store.batch(ops)
        for op in ops:
            if isinstance(op, PutOp):
                moment = (EPOCH + timedelta(seconds=next(self.ticks))).isoformat()
                parameters = (moment, ".".join(op.namespace), op.key)
                self.connection.execute("UPDATE store SET updated_at = ? WHERE prefix = ? AND key = ?", parameters)
        return answers


def answers_of(store, ops):
    """The answer of a store to each operation, as plain values; a refusal is an answer."""
    try:
        return [plain(answer) for answer in store.batch(ops)]
    except (ValueError, TypeError, sqlite3.Error):
        return "refused"


def plain(answer):
    if isinstance(answer, list):
        return [plain(each) for each in answer]
    return (answer.namespace, answer.key, answer.value) if hasattr(answer, "key") else answer


LABELS = st.sampled_from(["a", "b", "ab", "a-b", "A", "é*", "x y"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
KEYS = st.sampled_from(["k", "k2", "", ".", "..x", "a.b", "ä/ö"])
SCALARS = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        -3,
        2**53 + 1,
        2**63,
        2.5,
        1e300,
        "",
        "a",
        "12",
        "12abc",
        " 7",
        "-.5e1x",
        "é",
        "true",
        "[1]",
    ]
)
ANY = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["n", "s"]), inner, max_size=2),
    max_leaves=4,
)
VALUES = st.dictionaries(st.sampled_from(["n", "s", "a-b", "a.b", "d"]), ANY, max_size=4)
FIELDS = st.sampled_from(["n", "s", "d.n", "n.s", "a-b", "a.b", "missing", "bad key", "n'", ""])
OPERATORS = st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in"])
OPERANDS = ANY | st.sampled_from([float("inf"), float("nan")])
FILTERS = st.none() | st.dictionaries(FIELDS, ANY | st.dictionaries(OPERATORS, OPERANDS, max_size=2), max_size=2)
PAGE = st.integers(-1, 4), st.integers(-1, 3)  # limit and offset
PATHS = st.lists(LABELS | st.just("*"), max_size=3).map(tuple)
MATCHES = st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), PATHS)
PUTS = st.tuples(NAMESPACES, KEYS, VALUES).map(lambda given: PutOp(*given))
OPS = st.one_of(
    PUTS,
    PUTS,
    st.tuples(NAMESPACES, KEYS).map(lambda given: PutOp(*given, None)),
    st.tuples(NAMESPACES, KEYS).map(lambda given: GetOp(*given)),
    st.tuples(st.lists(LABELS, max_size=2).map(tuple), FILTERS, *PAGE).map(lambda given: SearchOp(*given)),
    st.tuples(st.none() | st.lists(MATCHES, max_size=2).map(tuple), st.none() | st.integers(1, 3), *PAGE).map(
        lambda given: ListNamespacesOp(*given)
    ),
)
#: All content, by a search and a list of namespaces.
ALL = [SearchOp((), None, -1, 0), ListNamespacesOp(None, None, -1, 0)]
#: Namespaces with equal beginnings and ends, written in turn, two of them a small part of all.
SPREAD = [
    PutOp(space, str(number), {"n": number})
    for number in range(9)
    for space in [
        ("b", "x"),
        ("b", "y", "x"),
        *([("a", "b", "x"), ("a", "A", "x"), ("ab",)] if number % 4 == 0 else []),
    ]
]
PATTERNS = [("prefix", ("a", "*", "x")), ("prefix", ("*",)), ("suffix", ("*", "x")), ("suffix", ("y", "*")),
         ("prefix", ("a",)), ("suffix", ("x",)), ("prefix", ()), ("suffix", ("b", "y", "x", "*"))]  # fmt: skip


@settings(max_examples=25)
@given(batches=st.lists(st.lists(OPS, min_size=1, max_size=6), max_size=5))
@example([[PutOp(("a",), "k", {"n": 1})], [PutOp(("a",), "k", None), PutOp(("a",), "k", {"n": 2})]])
@example([[PutOp(("a", "b"), "k", {}), PutOp(("a-b",), "k", {})], [ListNamespacesOp(None, 1)]])
@example([SPREAD, [SearchOp(("a",), None, -1), SearchOp(("b",), None, 3, 1), ListNamespacesOp(None, 1)]])
@example([SPREAD, [ListNamespacesOp((MatchCondition(kind, path),)) for kind, path in PATTERNS]])
def test_the_store_answers_as_the_sqlite_store(memory, batches):
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        reference, tested = Reference(connection), JidomemStore(memory, agent=next(AGENTS))
        for ops in [*batches, ALL]:
            assert answers_of(tested, ops) == answers_of(reference, ops), ops
        assert answers_of(JidomemStore(memory, agent=tested.agent), ALL) == answers_of(reference, ALL)


@settings(max_examples=25)
@given(values=st.lists(VALUES, min_size=1, max_size=8), filters=st.lists(FILTERS, min_size=1, max_size=12))
@example(
    [{"n": each} for each in (None, True, 0, 1, "1", "12abc", [1], {"n": 1}, 2**63 + 1)],
    [
        {"n": {operator: operand}}
        for operator in ("$eq", "$ne", "$gt", "$lte")
        for operand in (None, 1, "1", [1], 2**63)
    ],
)
def test_a_filter_selects_as_in_the_sqlite_store(memory, values, filters):  # fmt: skip
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        reference, tested = Reference(connection), JidomemStore(memory, agent=next(AGENTS))
        puts = [PutOp(("a",), str(number), value) for number, value in enumerate(values)]
        assert answers_of(tested, puts) == answers_of(reference, puts)
        for each in filters:
            search = [SearchOp(("a",), each, 100)]
            assert answers_of(tested, search) == answers_of(reference, search), each
