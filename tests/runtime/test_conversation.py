"""Conversations: turns are recorded, read in order, queried in SPARQL, and named as evidence."""

import shutil
import threading

import pytest
from conftest import files, fixed_sources, intent

import jidomem
from jidomem.errors import IntentRefused, InvalidRequest, NotFound
from jidomem.journal.journal import Stream
from jidomem.records.entry import ToolUse
from jidomem.write.conversation import TurnTexts

HISTORY = Stream("p", "history")
CONV = "PREFIX conv: <https://jido.ai/ontology/conversation-history#> PREFIX jido: <https://jido.ai/ontology#> "


def open_root(root, **more):
    return jidomem.open(root, project="p", agent="architect", **more)


@pytest.fixture
def memory(root):
    with open_root(root, sources=fixed_sources()) as memory:
        yield memory


def texts_of(turns):
    return [(turn.index, turn.prompt, turn.answer) for turn in turns]


def test_turns_are_read_back_in_order_after_reopening_the_root(root):  # E096 E097
    search = ToolUse("grep", {"pattern": "theme", "depth": [1, None]}, ["theme.css", "ünï.css\x1b[0m"])
    with open_root(root) as memory:
        talk = memory.conversation("s-42")
        first = talk.record(
            "Can we have a dark mode?", "I would use CSS variables.", asked_by="Ana", tools=[search] * 11
        )
        talk.record(answer="It is done.", timestamp="2026-11-20T10:00:00+02:00")
        memory.conversation("s-43").record("something else")

    with open_root(root) as reopened:
        one, two = reopened.conversation("s-42").turns()
    assert one == first
    assert texts_of([one, two]) == [
        (0, "Can we have a dark mode?", "I would use CSS variables."),
        (1, None, "It is done."),
    ]
    assert (one.asked_by, one.answered_by) == ("https://jido.ai/agents/ana", "https://jido.ai/agents/architect")
    assert one.tools == (search,) * 11
    assert two.timestamp == "2026-11-20T08:00:00.000000Z"


def test_the_graph_links_a_conversation_to_its_session_and_its_turns_to_their_texts(memory):  # E096 E097
    memory.conversation("s-42").record("Which index?", "Oxigraph.", asked_by="ana", tools=[ToolUse("grep", {}, [])])

    rows = memory.reader.select(
        "p",
        CONV
        + """SELECT ?asked ?replied ?index ?tool ?data WHERE {
        ?session a jido:WorkSession . ?talk a conv:Conversation ; conv:associatedWithSession ?session ;
            conv:hasTurn ?t .
        ?t a conv:ConversationTurn ; conv:partOfConversation ?talk ; conv:turnIndex ?index ;
           conv:hasPrompt/conv:promptText ?asked ; conv:hasAnswer/conv:answerText ?replied ;
           conv:involvesToolInvocation ?call . ?call conv:toolName ?tool ; conv:hasResult/conv:resultData ?data }""",
    )
    assert rows == [{"asked": "Which index?", "replied": "Oxigraph.", "index": 0, "tool": "grep", "data": "[]"}]
    assert [row["session"] for row in memory.reader.list_active_sessions("p")] == ["https://jido.ai/sessions/s-42"]
    assert memory.check("p").problems == []


def test_a_memory_names_a_turn_as_evidence(memory):  # E097
    turn = memory.conversation("s-1").record("Which index?", "Oxigraph, as it embeds.")
    fact = memory.writer.submit_intent("p", intent(summary="the index is Oxigraph", evidence=[turn.iri]))

    rows = memory.reader.select("p", CONV + "SELECT ?fact ?words { ?fact jido:derivedFrom ?turn ."
                                            " ?turn conv:hasAnswer/conv:answerText ?words }")  # fmt: skip
    assert rows == [{"fact": fact.iri, "words": "Oxigraph, as it embeds."}]
    assert memory.reader.why("p", fact.iri)["evidence"] == [
        {"iri": turn.iri, "text": "Which index?\nOxigraph, as it embeds."}
    ]
    assert memory.check("p").problems == []


def test_the_last_turns_and_the_turns_as_of_a_moment_are_read(memory):
    talk = memory.conversation("s-1")
    turns = [talk.record(f"number {n}") for n in range(4)]

    assert (talk.turns(2), talk.turns(9), talk.turns(0)) == (turns[2:], turns, [])
    assert talk.turns(as_of=turns[1].recorded_at) == turns[:2]
    assert memory.conversation("nobody-spoke").turns() == []


def test_turns_recorded_by_concurrent_threads_get_distinct_indexes(memory):
    talk = memory.conversation("s-1")
    threads = [threading.Thread(target=talk.record, args=(f"thread {n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [turn.index for turn in talk.turns()] == [*range(8)]
    assert sorted(turn.prompt for turn in talk.turns()) == [f"thread {n}" for n in range(8)]


def test_turns_recorded_on_two_branches_are_all_present_after_a_merge(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    with open_root(one) as memory:
        memory.conversation("s-1").record("shall we?")
    shutil.copytree(one, two)
    for root, words in ((one, "yes"), (two, "no")):
        with open_root(root) as memory:
            memory.conversation("s-1").record(words)

    shutil.copytree(two / "projects", one / "projects", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.lock"))

    with open_root(one) as merged:
        talk = merged.conversation("s-1")
        talk.record("well?")
        assert texts_of(talk.turns()) == [(0, "shall we?", None), (1, "yes", None), (1, "no", None), (3, "well?", None)]


def test_a_page_of_a_query_includes_turns_recorded_after_the_last_memory(memory):
    talk, module = memory.conversation("s-1"), "https://example.org/code/parser"
    for n in range(3):
        talk.record(f"number {n}")
    memory.long_term("p").insert(
        [
            (module, "rdf:type", "jido:ElixirModule"),
            (module, "jido:moduleName", "Parser"),
            (module, "jido:partOfProject", "https://jido.ai/projects/p"),
        ],
        graph="codebase",
    )

    page = memory.reader.ask_page("last-turns", project="p", session=talk.session, limit=2)
    talk.record("later")
    rest = memory.reader.ask_page("last-turns", project="p", session=talk.session, limit=2, cursor=page.cursor)

    assert [row["prompt"] for row in (*page.rows, *rest.rows)] == ["number 2", "number 1", "number 0"]
    assert len(memory.reader.ask("elixir-modules", project="p", limit=5)) == 1


@pytest.mark.parametrize(
    ("fields", "kind", "detail"),
    [
        ({}, InvalidRequest, "the turn is empty"),
        ({"prompt": ""}, InvalidRequest, "prompt='' is not a text"),
        ({"prompt": "x", "answered_by": "me"}, InvalidRequest, "answered_by='me' without a text"),
        ({"prompt": "x", "timestamp": "soon"}, InvalidRequest, "timestamp='soon' is not a date or time"),
        ({"tools": [ToolUse("grep", {"at": {1}})]}, InvalidRequest, r"parameters of the tool grep\['at'\] is a set"),
        ({"tools": ["grep"]}, InvalidRequest, "'grep' is not a call of a tool"),
        ({"prompt": "half \ud800"}, InvalidRequest, "prompt contains half of a surrogate pair"),
        ({"prompt": "x", "asked_by": "???"}, IntentRefused, "agent needs a name"),
        ({"answer": "the key is AKIAIOSFODNN7EXAMPLF"}, IntentRefused, "secret|key"),
    ],
)
def test_an_invalid_turn_is_refused_with_the_field_and_nothing_is_recorded(memory, fields, kind, detail):
    with pytest.raises(kind, match=detail):
        memory.conversation("s-1").record(**fields)

    assert not memory.journal.head(HISTORY).heads


def test_a_turn_of_a_session_nobody_opened_is_refused_by_the_writer(memory):
    with pytest.raises(NotFound, match=r"(?m)^no session https://jido.ai/sessions/s-9$") as refusal:
        memory.writer.keep_turn("p", "s-9", TurnTexts("x", None, None, None, (), "2026-11-20T10:00:00.000000Z"))
    assert refusal.value.hint == "open it with: jidomem agent session start NAME"


def test_a_redacted_turn_keeps_its_index_and_loses_its_texts(root, memory):
    talk = memory.conversation("s-1")
    redacted = talk.record(
        "call me at 555-0199-22", "noted: 555-0199-22", tools=[ToolUse("note", {"n": "555-0199-22"}, 1)]
    )
    talk.record("and the weather?")

    memory.maintenance.redact(memory.maintenance.plan("p", redacted.iri), agent="architect", reason="it was private")

    assert texts_of(talk.turns()) == [(0, None, None), (1, "and the weather?", None)]
    assert not [name for name, data in files(root).items() if b"0199" in data]
