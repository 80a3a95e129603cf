"""A run of an agent: recall before the prompt, capture after the turn, and writing by hand."""

import copy

import pytest

from jidomem.entries import (
    Entry,
    InMemoryStore,
    InvalidEntry,
    MemoryOff,
    MissingContext,
    MissingSession,
    MissingStore,
    Prompt,
    RecallRequest,
    RecallResult,
    Run,
    Spec,
    StoreError,
    WriteRequest,
    list_entries,
    write,
)
from jidomem.errors import InvalidRequest

MESSAGES = ({"role": "system", "content": "Be kind."}, {"role": "user", "content": "Which zone?"})


@pytest.fixture
def store():
    return InMemoryStore()


def spec(**policy):
    return Spec("demo", policy)


def write_entries(store, *contents, **more):
    for content in contents:
        write(store, Entry(agent_id="demo", content=content, **more))


def test_the_recall_request_of_a_run_follows_its_policy():
    run = Run(spec(scope="session", namespace="team", max_entries=3, metadata={"model": "m"}), session_id="s")

    assert run.recall_request("zone") == RecallRequest(  # B059, B060, B061
        agent_id="demo",
        query="zone",
        session_id="s",
        scope="session",
        limit=3,
        metadata={"model": "m", "namespace": "team"},
    )
    assert Run(spec(), session_id="s").recall_request("zone") == RecallRequest("demo", "zone", "s")


def test_the_write_request_of_a_run_follows_its_policy():
    run = Run(spec(scope="session", namespace="team", metadata={"model": "m"}), session_id="s")

    made = run.write_request("hello", {"mood": ["good"]})

    assert made == WriteRequest(  # B059, B061
        Entry(
            id=made.entry.id,
            agent_id="demo",
            session_id="s",
            content="hello",
            metadata={"mood": ["good"], "namespace": "team"},
        ),
        {"model": "m", "namespace": "team"},
    )
    assert made.entry.id.startswith("mem_")


def test_an_entry_with_the_scope_agent_is_shared_by_sessions(store):
    Run(spec(), store, "s").remember("hello")

    assert list_entries(store)[0].session_id is None
    assert [one.content for one in Run(spec(), store, "t").recall("x").entries] == ["hello"]


def test_an_entry_with_the_scope_session_is_recalled_in_its_session_alone(store):
    Run(spec(scope="session"), store, "s").remember("hello")

    assert [one.content for one in Run(spec(scope="session"), store, "s").recall("x").entries] == ["hello"]
    assert Run(spec(scope="session"), store, "t").recall("x").entries == []


def test_a_run_does_not_change_its_spec(store):
    definition = spec(capture="conversation", metadata={"a": [1]})
    before = copy.deepcopy(definition)

    for given in (store, (InMemoryStore, {"pid": store}), InMemoryStore()):
        run = Run(definition, given)
        run.remember("hello")
        run.before(MESSAGES)
        run.after("hi", "hello", request_id="r")

    assert definition == before  # B058
    assert len(list_entries(store)) == 4


@pytest.mark.parametrize(
    "run",
    [
        Run(Spec("demo"), InMemoryStore()),
        Run(Spec("demo", False), InMemoryStore()),
        Run(Spec("demo", {"enabled": False, "scope": "session"}), InMemoryStore()),
        Run(Spec("demo", {"scope": "session", "namespace": {"context": "tenant"}})),
    ],
)
def test_a_run_without_a_policy_or_a_store_or_with_memory_off_does_nothing(run):
    assert run.recall("zone") is None  # B064
    assert run.before(MESSAGES, {"a": 1}) == Prompt(MESSAGES, {"a": 1})
    assert run.after("hi", "hello", request_id="r") is None


def test_a_manual_write_without_a_store_is_refused():
    with pytest.raises(MissingStore, match=r"(?m)^the memory of 'demo' has no store to write to$") as refusal:
        Run(spec()).remember("hello")  # B065
    assert refusal.value.hint == "give the run a store: Run(spec, store)"
    assert isinstance(refusal.value, InvalidRequest)
    assert isinstance(refusal.value, ValueError)


def test_the_scope_session_without_a_session_is_refused(store):
    run = Run(spec(scope="session", capture="conversation"), store)

    for call in (
        lambda: run.recall("zone"),
        lambda: run.remember("hello"),
        lambda: run.before(MESSAGES),
        lambda: run.after("hi", "hello", request_id="r"),
    ):
        with pytest.raises(
            MissingSession, match=r"(?m)^the memory of 'demo' has the scope session, and the run has none$"
        ) as refusal:
            call()  # B023, B065
        assert refusal.value.hint == "give the run a session_id, or define the memory with scope agent"
        assert isinstance(refusal.value, ValueError)
    assert list_entries(store) == []


@pytest.mark.parametrize("policy", [None, False, {"enabled": False}, {"capture": "off"}])
def test_a_manual_write_with_memory_off_is_refused(store, policy):
    with pytest.raises(MemoryOff, match=r"(?m)^the memory of 'demo' is off$") as refusal:
        Run(Spec("demo", policy), store).remember("hello")
    assert refusal.value.hint == 'define it with {"capture": "manual"}'
    assert isinstance(refusal.value, ValueError)
    assert list_entries(store) == []


def test_each_completed_turn_is_stored_as_one_entry(store):
    run = Run(spec(capture="conversation", namespace="team"), store, "s")

    first = run.after("Which zone?", "Chicago.", request_id="r-1", source="chat")
    run.after("Sure?", "Yes.", request_id="r-2")

    assert [one.content for one in list_entries(store)] == [  # B066
        "User: Which zone?\nAssistant: Chicago.",
        "User: Sure?\nAssistant: Yes.",
    ]
    common = {"class": "episodic", "kind": "conversation", "namespace": "team"}
    assert [one.metadata for one in list_entries(store)] == [
        {**common, "source": "chat", "request_id": "r-1"},
        {**common, "source": "agent", "request_id": "r-2"},
    ]
    assert first.entry == list_entries(store)[0]
    assert first.entry.agent_id == "demo"  # B061


@pytest.mark.parametrize("answer", [None, "", " \n"])
def test_an_incomplete_turn_is_not_stored(store, answer):
    assert Run(spec(capture="conversation"), store).after("hi", answer, request_id="r") is None  # B066
    assert list_entries(store) == []


@pytest.mark.parametrize(
    ("user", "assistant", "speaker"), [(None, "x", "user"), ("x", 7, "assistant"), ("x", [], "assistant")]
)
def test_a_turn_of_other_values_than_texts_is_refused(store, user, assistant, speaker):
    kind = type(user if speaker == "user" else assistant).__name__
    with pytest.raises(
        InvalidEntry, match=f"(?m)^invalid memory entry: the text of {speaker} is a {kind}, not a text$"
    ) as refusal:
        Run(spec(capture="conversation"), store).after(user, assistant, request_id="r")
    assert refusal.value.hint == f"give {speaker} as text"
    assert list_entries(store) == []


@pytest.mark.parametrize("capture", ["manual", "off"])
def test_no_turn_is_stored_without_the_capture_conversation(store, capture):
    assert Run(spec(capture=capture), store).after("hi", "hello", request_id="r") is None  # B062
    assert list_entries(store) == []


def test_recalled_entries_are_one_system_message_in_the_prompt(store):
    write_entries(store, "User prefers Chicago time", "Two\nlines\u2028and three")

    prompt = Run(spec(), store).before(MESSAGES, {"a": 1})

    text = "Relevant memory:\n- Two\n  lines\n  and three\n- User prefers Chicago time"
    assert prompt == Prompt((MESSAGES[0], {"role": "system", "content": text}, MESSAGES[1]), {"a": 1})  # B067


@pytest.mark.parametrize(
    ("roles", "place"), [(["user"], 0), (["system", "system", "user", "system"], 2), (["assistant", "user"], 0)]
)
def test_the_memory_message_follows_the_first_system_messages(store, roles, place):
    write_entries(store, "hello")

    prompt = Run(spec(), store).before([{"role": role, "content": "x"} for role in roles])

    assert prompt.messages[place] == {"role": "system", "content": "Relevant memory:\n- hello"}  # B067
    assert [message["role"] for message in prompt.messages] == [*roles[:place], "system", *roles[place:]]


def test_recalled_entries_are_context_data_with_inject_context(store):
    write_entries(store, "a", "b")

    prompt = Run(spec(inject="context", max_entries=1), store).before(MESSAGES, {"a": 1})

    assert prompt.messages == MESSAGES
    entries = [list_entries(store)[1].to_dict()]
    assert prompt.context == {"a": 1, "memory": {"entries": entries, "count": 1}}  # B067


@pytest.mark.parametrize("inject", ["instructions", "context"])
def test_a_prompt_without_recalled_entries_is_unchanged(store, inject):
    assert Run(spec(inject=inject), store).before(MESSAGES, {"a": 1}) == Prompt(MESSAGES, {"a": 1})  # B067


class RecordingStore(InMemoryStore):
    """A store that records its recall requests."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def recall(self, request, opts):
        self.asked.append(request)
        return super().recall(request, opts)


@pytest.mark.parametrize(
    ("messages", "queries"),
    [
        ([("user", "old"), ("assistant", "x"), ("user", "new"), ("tool", "y")], ["new"]),
        ([("user", "old"), ("user", " "), ("user", None), ("user", [{"type": "image"}])], ["old"]),
        ([("system", "x"), ("assistant", "y")], []),
        ([], []),
        ([("user", "half \ud800 sign")], ["half  sign"]),
        ([("user", "old"), ("user", "\ud800")], ["old"]),
        ([("user", " " * 70_000 + "late ")], ["late"]),
        ([("user", "ä" * 40_000)], ["ä" * 32_768]),
        ([("user", "x" + "ä" * 40_000)], ["x" + "ä" * 32_767]),
    ],
)
def test_the_recall_query_is_the_newest_text_of_the_user(messages, queries):
    store = RecordingStore()

    Run(spec(), store).before([{"role": role, "content": content} for role, content in messages])

    assert [request.query for request in store.asked] == queries  # B059


def test_messages_and_context_are_not_changed(store):
    write_entries(store, "hello")
    messages, context = [dict(message) for message in MESSAGES], {"a": 1}

    prompt = Run(spec(inject="context"), store).before(messages, context)
    Run(spec(), store).before(messages, context)

    assert (tuple(messages), context) == (MESSAGES, {"a": 1})
    assert "memory" in prompt.context


def test_namespaces_separate_the_entries_of_one_agent(store):
    Run(spec(namespace="red"), store).remember("red")
    Run(spec(namespace={"context": "tenant"}), store, context={"tenant": "blue"}).remember("blue")
    Run(spec(), store).remember("none")

    def contents(run):
        return [one.content for one in run.recall("x").entries]

    assert contents(Run(spec(namespace="red"), store)) == ["red"]  # B068
    assert contents(Run(spec(namespace={"context": "t"}), store, context={"t": "blue"})) == ["blue"]
    assert contents(Run(spec(namespace="green"), store)) == []
    assert contents(Run(spec(), store)) == ["none", "blue", "red"]


@pytest.mark.parametrize(
    ("context", "cause"),
    [({}, "is missing"), ({"tenant": None}, "is missing"), ({"tenant": ""}, "is missing or empty"),
     ({"tenant": 7}, "is a int, not a text"), ({"tenants": "t"}, "is missing")],
)  # fmt: skip
def test_a_namespace_missing_from_the_context_is_refused_and_nothing_is_written(store, context, cause):
    run = Run(spec(namespace={"context": "tenant"}, capture="conversation"), store, context=context)

    for call in (
        lambda: run.recall("zone"),
        lambda: run.remember("hello"),
        lambda: run.after("hi", "hello", request_id="r"),
    ):
        with pytest.raises(MissingContext) as refusal:
            call()
        assert str(refusal.value) == f"the namespace of 'demo' is context['tenant'], which {cause}"  # B068
        assert refusal.value.hint == "give the run context={'tenant': ...}"
        assert isinstance(refusal.value, ValueError)
    assert list_entries(store) == []


def test_an_entry_with_another_namespace_than_its_run_is_refused(store):
    run = Run(spec(namespace="red"), store)

    with pytest.raises(
        InvalidEntry, match=r"(?m)^invalid memory entry: namespace='blue' is not that of this run, 'red'$"
    ):
        run.remember("hello", {"namespace": "blue"})
    assert list_entries(store) == []
    assert run.remember("hello", {"namespace": "red"}).entry.metadata == {"namespace": "red"}
    with pytest.raises(InvalidEntry, match=r"(?m)^invalid memory entry: metadata is a list, not a mapping$"):
        run.remember("hello", [])


class Mixing(InMemoryStore):
    """A store that ignores namespaces."""

    def recall(self, request, opts):
        return RecallResult(request, self.list_entries(opts)[: request.limit])


def test_entries_of_another_namespace_returned_by_a_store_are_refused():
    store = Mixing()
    Run(spec(namespace="red"), store).remember("red")
    assert [one.content for one in Run(spec(namespace="red"), store).recall("x").entries] == ["red"]

    with pytest.raises(
        StoreError, match=r"(?m)^the store returned 'mem_.*', which is not in the namespace 'blue'$"
    ) as refusal:
        Run(spec(namespace="blue"), store).before(MESSAGES)
    assert refusal.value.reason.entries == store.list_entries()
    assert refusal.value.hint == "filter in the store by request.covers(entry)"


def test_results_of_a_store_above_the_limit_are_not_cut():
    class Generous(InMemoryStore):
        def recall(self, request, opts):
            return RecallResult(request, self.list_entries(opts))

    store = Generous()
    write_entries(store, *"abc")

    assert len(Run(spec(max_entries=1), store).recall("x").entries) == 3  # B043


def test_a_failing_store_raises_an_error_before_the_prompt():
    class Down(InMemoryStore):
        def recall(self, request, opts):
            raise OSError("no connection")

    with pytest.raises(StoreError, match=r"(?m)^Down could not recall: OSError: no connection$"):
        Run(spec(), Down()).before(MESSAGES)
