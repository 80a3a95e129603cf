"""The dispatch: a directive is performed by the provider it names, and a signal reports the outcome."""

import ast
from pathlib import Path
from threading import Barrier, Thread

import pytest

import jidomem
from jidomem.errors import InvalidRequest, PolicyDenied
from jidomem.providers import InlineProvider, Providers, execute_directive
from jidomem.providers.conformance import ProviderContract
from jidomem.records.directive import (
    Answer,
    Done,
    MemoryDelete,
    MemoryQuery,
    MemoryUpsert,
    Missing,
    Provider,
    Scored,
    Searchable,
    StoredValue,
    forget,
    lookup,
    recall,
    remember,
)


class Counting:
    """A provider of somebody else: its state says how often it was asked, and each call moves it on."""

    def __init__(self):
        self.seen = []

    def init(self, opts):
        if "refuse" in opts:
            raise InvalidRequest("it cannot be opened like that")
        if opts:
            raise InvalidRequest(f"unknown: {', '.join(opts)}")
        return (0, {})

    def _next(self, state, opts, call):
        self.seen.append((call, state[0], dict(opts)))
        if "no_such_option" in opts:
            raise InvalidRequest("there is no no_such_option", hint="leave it out")
        return state[0] + 1, dict(state[1])

    def get(self, state, key, opts):
        calls, kept = self._next(state, opts, "get")
        return StoredValue((calls, kept), kept[key]) if key in kept else Missing((calls, kept))

    def put(self, state, key, value, opts):
        calls, kept = self._next(state, opts, "put")
        if value == "poison":
            raise ZeroDivisionError("it went wrong half way")
        kept[key] = dict(value) if isinstance(value, dict) else value
        return Done((calls, kept), {"call": calls})

    def delete(self, state, key, opts):
        calls, kept = self._next(state, opts, "delete")
        if key == "poison":
            raise ZeroDivisionError("it went wrong half way")
        return Done((calls, kept)) if kept.pop(key, self) is not self else Missing((calls, kept))


class Searching(Counting):
    """It gives rows in an order of its own, and more than were asked for."""

    def query(self, state, query, opts):
        calls, kept = self._next(state, opts, "query")
        if query["text"] == "fail":
            raise PolicyDenied("you may not look", hint="ask a curator")
        return Answer((calls, kept), [Scored("low", 0.1, 1), Scored("high", 0.9, 2), Scored("high too", 0.9, 3)])


class TestTheProviderOfSomebodyElse(ProviderContract):
    def opened(self):
        return Counting(), {}

    def test_a_stored_value_is_a_copy(self):
        """It hands out what it holds."""


def having(provider, **opts):
    providers = Providers()
    providers.register("mine", provider, opts)
    return providers


def clock_of(*moments):
    ticks = iter(moments)
    return lambda: next(ticks)


def test_a_provider_needs_four_calls_and_may_answer_queries():  # A104 A112
    assert isinstance(Counting(), Provider)
    assert not isinstance(Counting(), Searchable)
    assert isinstance(Searching(), Searchable)

    providers = having(Searching())

    assert providers.names == ("inline", "mine")
    assert execute_directive(recall("anything", provider="mine", opts={"x": 1}), providers).ok
    with providers.locked("mine") as held:
        assert held.provider.seen == [("query", 0, {"x": 1})]


class Telling:
    """A provider that tells what each call was given."""

    def __init__(self):
        self.given = []

    def init(self, opts):
        self.given.append(("init", dict(opts)))
        return "opened"

    def get(self, state, key, opts):
        self.given.append(("get", state, key, dict(opts)))
        return StoredValue(state, 1)

    def put(self, state, key, value, opts):
        self.given.append(("put", state, key, value, dict(opts)))
        return Done(state, {})

    def delete(self, state, key, opts):
        self.given.append(("delete", state, key, dict(opts)))
        return Done(state)

    def query(self, state, query, opts):
        self.given.append(("query", state, query["text"], dict(opts)))
        return Answer(state, [])


def test_each_call_of_a_provider_is_given_the_options_of_its_directive_and_its_own_are_those_of_init():  # A104
    provider, vector = Telling(), [1.0, 0.5]
    providers = having(provider, tenant="t-1")
    directives = [
        lookup("a", provider="mine", opts={"depth": 1}),
        remember("a", 2, provider="mine", opts={"ttl": 3}),
        remember("a", 2, embedding=vector, provider="mine", opts={"ttl": 3}),
        forget("a", "b", provider="mine", opts={"reason": "old"}),
        recall("what?", provider="mine", opts={"depth": 4}),
        lookup("a", provider="mine"),
    ]

    assert all(execute_directive(each, providers).ok for each in directives)

    assert provider.given == [
        ("init", {"tenant": "t-1"}),
        ("get", "opened", "a", {"depth": 1}),
        ("put", "opened", "a", 2, {"ttl": 3}),
        ("put", "opened", "a", 2, {"ttl": 3, "embedding": tuple(vector)}),
        ("delete", "opened", "a", {"reason": "old"}),
        ("delete", "opened", "b", {"reason": "old"}),
        ("query", "opened", "what?", {"depth": 4}),
        ("get", "opened", "a", {}),
    ]


def test_a_provider_that_cannot_be_opened_is_not_registered():  # A105
    providers = Providers()

    with pytest.raises(InvalidRequest, match="it cannot be opened like that"):
        providers.register("mine", Counting(), {"refuse": True})

    assert providers.names == ("inline",)
    providers.register("mine", Counting())
    assert providers.names == ("inline", "mine")


def test_what_lacks_a_call_is_no_provider():  # A104
    class Half:
        def init(self, opts): ...

        def get(self, state, key, opts): ...

    with pytest.raises(InvalidRequest, match="the provider 'half' lacks put, delete"):
        Providers().register("half", Half())
    with pytest.raises(InvalidRequest, match="is a class"):
        Providers().register("class", InlineProvider)
    with pytest.raises(InvalidRequest, match="'' is not a name"):
        Providers().register("", InlineProvider())


def test_each_call_gets_the_state_that_the_last_one_gave():  # A106
    provider = Counting()
    providers = having(provider)

    execute_directive(MemoryUpsert(items=[{"key": k, "value": k} for k in "abc"], provider="mine"), providers)
    execute_directive(lookup("absent", provider="mine"), providers)
    execute_directive(forget("a", "absent", provider="mine"), providers)

    assert [at for _, at, _ in provider.seen] == [0, 1, 2, 3, 4, 5]


def test_a_call_that_fails_leaves_the_state_as_it_was():  # A106 A125
    provider = Counting()
    providers = having(provider)
    items = [{"key": "a", "value": 1}, {"key": "b", "value": "poison"}, {"key": "c", "value": 3}]

    failed = execute_directive(MemoryUpsert(items=items, provider="mine"), providers)
    kept = execute_directive(lookup("a", provider="mine"), providers)
    missing = execute_directive(lookup("c", provider="mine"), providers)

    assert failed.data["status"] == "error"
    assert failed.data["result"] == {"count": 1, "items": [{"key": "a", "call": 1}]}
    assert failed.data["reason"]["code"] == "provider_failed"
    assert failed.data["reason"]["detail"] == "the provider 'mine' failed: ZeroDivisionError: it went wrong half way"
    assert [row["value"] for row in kept.data["result"]] == [1]
    assert missing.data["result"] == []
    assert [at for _, at, _ in provider.seen] == [0, 1, 1, 2]


def test_a_delete_that_fails_half_way_tells_what_is_gone_and_what_was_missing():  # A125
    providers = having(Counting())
    execute_directive(MemoryUpsert(items=[{"key": k, "value": k} for k in "ab"], provider="mine"), providers)

    failed = execute_directive(forget("a", "absent", "poison", "b", provider="mine"), providers)

    assert failed.data["result"] == {"count": 1, "items": [{"key": "a"}], "missing": ["absent"]}
    assert failed.data["reason"]["code"] == "provider_failed"
    assert execute_directive(lookup("b", provider="mine"), providers).data["result"][0]["value"] == "b"


def test_what_is_no_directive_has_no_request_and_no_provider():
    signal = execute_directive("remember this", Providers())

    assert (signal.data["request_id"], signal.data["result"]) == (None, None)
    assert (signal.data["meta"]["provider"], signal.data["meta"]["directive"]) == (None, "str")


@pytest.mark.parametrize("outcome", [StoredValue(1, 2), Missing(1), Done(1), Scored("a", 1.0, 2), Answer(1, ())])
def test_an_outcome_is_a_value(outcome):
    with pytest.raises(AttributeError):
        setattr(outcome, type(outcome).__slots__[0], 7)


def test_a_key_may_be_asked_for_with_a_limit():
    providers = Providers()
    execute_directive(remember("a", 1), providers)

    found = execute_directive(MemoryQuery(query={"key": "a", "top_k": 3}), providers)

    assert found.data["result"] == [{"key": "a", "score": 1.0, "value": 1}]


def test_a_provider_without_queries_reports_them_as_unsupported():  # A107
    asked = execute_directive(recall("anything"), Providers())

    assert asked.data["status"] == "error"
    assert asked.data["reason"]["code"] == "unsupported"
    assert "'inline' answers no queries" in asked.data["reason"]["detail"]


def test_a_stored_none_is_found_and_an_absent_key_is_not():  # A108
    providers = Providers()
    execute_directive(remember("nothing", None), providers)

    assert execute_directive(lookup("nothing"), providers).data["result"] == [
        {"key": "nothing", "score": 1.0, "value": None}
    ]
    assert execute_directive(lookup("absent"), providers).data["result"] == []


def test_inline_performs_what_names_no_provider():  # A109
    providers = Providers()

    kept = execute_directive(remember("a", {1, 2}), providers)

    assert kept.data["meta"]["provider"] == "inline"
    with providers.locked("inline") as held:
        assert held.state == {"a": {1, 2}}


@pytest.mark.parametrize("top", [1, 2, 3])
def test_results_are_key_score_and_value_the_best_first_and_at_most_top_k(top):  # A123
    found = execute_directive(recall("anything", top_k=top, provider="mine"), having(Searching()))

    assert (
        found.data["result"]
        == [
            {"key": "high", "score": 0.9, "value": 2},
            {"key": "high too", "score": 0.9, "value": 3},
            {"key": "low", "score": 0.1, "value": 1},
        ][:top]
    )


def test_a_signal_answers_with_the_request_its_status_the_result_and_who_took_how_long():  # A121 A122 A124
    signal = execute_directive(
        recall("anything", request_id="req_7", provider="mine"), having(Searching()), monotonic=clock_of(5.0, 5.0125)
    )

    assert signal.type == "jido.memory.result"
    assert signal.data.keys() == {"request_id", "status", "result", "meta"}
    assert (signal.data["request_id"], signal.data["status"]) == ("req_7", "ok")
    assert signal.data["meta"] == {"provider": "mine", "latency_ms": 12.5, "directive": "MemoryQuery"}


def test_a_query_may_ask_for_an_answer_of_another_type():  # A116
    providers = Providers()
    asked = MemoryQuery(query={"key": "a"}, reply_signal_type="planner.recalled")
    failing = MemoryQuery(query={"text": "a"}, reply_signal_type="planner.recalled")

    assert [execute_directive(each, providers).type for each in (asked, failing)] == ["planner.recalled"] * 2


def test_an_upsert_and_a_delete_answer_with_the_count_of_their_items():  # A126 A119
    providers = Providers()
    items = [{"key": "a", "value": 1}, {"key": "b", "value": 2}]

    kept = execute_directive(MemoryUpsert(request_id="req_1", items=items), providers)
    gone = execute_directive(MemoryDelete(request_id="req_2", keys=["a", "absent", "b"]), providers)

    assert (kept.type, kept.data["request_id"], kept.data["result"]) == (
        "jido.memory.result",
        "req_1",
        {"count": 2, "items": [{"key": "a"}, {"key": "b"}]},
    )
    assert (gone.type, gone.data["request_id"], gone.data["result"]) == (
        "jido.memory.result",
        "req_2",
        {"count": 2, "items": [{"key": "a"}, {"key": "b"}], "missing": ["absent"]},
    )


class Broken(InlineProvider):
    def get(self, state, key, opts):
        return state[key]

    def put(self, state, key, value, opts):
        return None


@pytest.mark.parametrize(
    ("directive", "code", "says"),
    [
        (recall("a", provider="nowhere"), "not_found", "no provider 'nowhere'"),
        (recall("fail", provider="searching"), "policy_denied", "you may not look"),
        (recall("a", provider="searching", opts={"no_such_option": 1}), "invalid_argument", "no_such_option"),
        (remember("a", 1, provider="broken"), "provider_failed", "answered put with NoneType, not Done"),
        (lookup("a", provider="broken"), "provider_failed", "KeyError: 'a'"),
        (MemoryQuery(query={"key": "a", "text": "b"}), "invalid_argument", "a query for a key has no 'text'"),
        (remember("a", 1, embedding=[1.0]), "invalid_argument", "inline put has no 'embedding'"),
        ("remember this", "invalid_argument", "str is not a directive"),
        (None, "invalid_argument", "NoneType is not a directive"),
    ],
)
def test_a_failure_is_an_error_signal_with_its_reason_and_never_raised(directive, code, says):  # A125
    providers = Providers()
    providers.register("searching", Searching())
    providers.register("broken", Broken())

    signal = execute_directive(directive, providers)

    assert (signal.type, signal.data["status"]) == ("jido.memory.result", "error")
    assert signal.data["reason"]["code"] == code
    assert says in signal.data["reason"]["detail"]
    assert signal.data["reason"]["hint"]


def test_the_nearest_name_is_told_where_a_provider_is_unknown():
    reason = execute_directive(lookup("a", provider="inlin"), Providers()).data["reason"]

    assert reason["hint"] == "did you mean 'inline'?"


def test_registering_a_name_again_puts_another_in_its_place():
    providers = having(Counting())
    execute_directive(remember("a", 1, provider="mine"), providers)

    providers.register("mine", InlineProvider(), {"data": {"a": 2}})

    assert execute_directive(lookup("a", provider="mine"), providers).data["result"][0]["value"] == 2


def test_directives_of_several_threads_lose_nothing():
    providers, start = Providers(), Barrier(4)

    def keep(name):
        start.wait()
        for n in range(100):
            execute_directive(remember(f"{name}-{n}", n), providers)

    threads = [Thread(target=keep, args=(name,)) for name in "abcd"]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    with providers.locked("inline") as held:
        assert len(held.state) == 400


def imported(*paths):
    """Every module of ours that modules import, and they in turn."""
    package, found, waiting = Path(jidomem.__file__).parent, set(), [*paths]
    while waiting:
        for node in ast.walk(ast.parse(waiting.pop().read_text("utf-8"))):
            names = [alias.name for alias in getattr(node, "names", ())] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for name in names:
                below = package.joinpath(*name.split(".")[1:])
                file = below.with_suffix(".py") if below.with_suffix(".py").is_file() else below / "__init__.py"
                if name.startswith("jidomem.") and file.is_file() and name not in found:
                    found.add(name)
                    waiting.append(file)
    return found


@pytest.mark.parametrize("folder", ["working"])
def test_nothing_an_agent_holds_or_does_can_reach_a_provider(folder):  # A113
    modules = sorted((Path(jidomem.__file__).parent / folder).glob("*.py"))

    reached = imported(*modules)

    assert f"jidomem.{folder}" in {f"jidomem.{path.parent.name}" for path in modules}
    assert "jidomem.records.directive" in reached
    assert {name for name in reached if name.startswith("jidomem.providers")} == set()


def test_directives_themselves_cannot_reach_a_provider():  # A113 A114
    package = Path(jidomem.__file__).parent

    reached = imported(package / "records" / "directive.py")
    assert not any(name.startswith("jidomem.providers") for name in reached)
    assert "jidomem.providers.dispatch" in imported(package / "providers" / "conformance.py")
