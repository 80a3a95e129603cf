"""Entries and turns as triples: verbatim texts, and refusals that name a value that cannot be stored."""

import pytest
from writing import refusal

from jidomem.entries import Entry
from jidomem.errors import InvalidRequest
from jidomem.rdf.terms import date_time, integer, iri, literal
from jidomem.rdf.vocab import BASE, TYPE, conv, jido
from jidomem.records.entry import ToolUse
from jidomem.write import conversation
from jidomem.write.conversation import TurnTexts, as_json, text
from jidomem.write.snapshot import WriteSnapshot

NODE, PROJECT, MOST = iri("urn:x:node"), iri(BASE + "projects/p"), 100
TALK, SESSION, WHEN = iri(BASE + "conversations/s"), iri(BASE + "sessions/s"), "2026-11-20T10:00:00.000000Z"


def entry(**fields):
    return Entry(**{"id": "plan", "agent_id": "Time Agent", "content": " as it is \n", **fields})


def rows_of(**fields):
    return conversation.describe_entry(NODE, entry(**fields), PROJECT, MOST)


SAID_OF_EVERY_ENTRY = [
    (NODE, TYPE, jido("Entry")), (NODE, jido("partOfProject"), PROJECT), (NODE, jido("entryId"), '"plan"'),
    (NODE, jido("agentId"), '"Time Agent"'), (NODE, jido("entryText"), literal(" as it is \n")),
    (NODE, jido("entryOf"), iri(BASE + "agents/time-agent")),
]  # fmt: skip


def test_an_entry_is_kept_with_all_it_says():
    assert rows_of() == SAID_OF_EVERY_ENTRY
    metadata = {"speaker": "Ana", "timestamp": "2026-11-20T11:00:00+01:00", "n": 1}
    assert set(rows_of(session_id="s 7", metadata=metadata)) == {
        *SAID_OF_EVERY_ENTRY, (NODE, jido("sessionId"), '"s 7"'), (NODE, jido("speaker"), '"Ana"'),
        (NODE, jido("entryMetadata"), literal('{"speaker":"Ana","timestamp":"2026-11-20T11:00:00+01:00","n":1}')),
        (NODE, conv("timestamp"), date_time(WHEN)),
    }  # fmt: skip


@pytest.mark.parametrize("metadata", [{"speaker": "", "timestamp": "soon"}, {"speaker": 7, "timestamp": 7}])
def test_metadata_that_are_not_what_their_names_say_are_kept_whole_alone(metadata):
    assert rows_of(metadata=metadata) == [
        *SAID_OF_EVERY_ENTRY, (NODE, jido("entryMetadata"), literal(as_json(metadata, "metadata"))),
    ]  # fmt: skip


def test_an_agent_whose_name_has_no_letter_is_named_by_its_text_alone():
    assert conversation.agent_of(entry(agent_id="???")) is None
    assert {value for _, predicate, value in rows_of(agent_id="???") if "gent" in predicate} == {'"???"'}


@pytest.mark.parametrize(
    ("field", "given", "name"),
    [
        ("id", "x" * 101, "id"), ("agent_id", "x" * 101, "agent_id"), ("content", "x" * 101, "content"),
        ("session_id", "x" * 101, "session_id"), ("metadata", {"k": "x" * 93}, "metadata"),
    ],
)  # fmt: skip
def test_a_text_of_an_entry_that_is_too_long_is_named(field, given, name):
    error = refusal(rows_of, **{field: given})
    assert (error.code, error.detail) == ("payload_too_large", f"{name} has 101 bytes; a text holds at most 100")
    assert error.hint.startswith("split it, or store a summary and the place of the full text")


def test_metadata_that_json_does_not_hold_are_named():
    assert refusal(rows_of, metadata={"a": {1}}).detail.startswith("metadata['a'] is a set")


def test_of_what_was_kept_under_an_id_counts_what_nothing_replaced():
    view = WriteSnapshot(lambda *pattern: [])
    nodes = [iri(f"urn:x:{n}") for n in range(4)]
    view.add([(node, jido("entryId"), '"a \\"b\\""') for node in nodes[:3]])
    view.add([(nodes[1], jido("replaces"), nodes[0]), (nodes[3], jido("entryId"), '"other"')])
    assert conversation.active_entries(view, 'a "b"') == nodes[1:3]


def test_a_text_is_kept_as_it_is_and_half_a_sign_is_refused():
    assert text("note", ' "x"\n', 10) == '" \\"x\\"\\n"'
    error = refusal(text, "note", "\ud800", 10)
    assert isinstance(error, InvalidRequest)
    assert (error.detail, error.hint) == (
        "note contains half of a surrogate pair, which is not a character",
        "leave it out",
    )
    assert as_json({"ä": [1, None]}, "note") == '{"ä":[1,null]}'


TOOLS = (ToolUse("grep", {"at": [1]}, ["a"]), ToolUse("note"))


def said(**fields):
    return TurnTexts(
        **dict.fromkeys(("prompt", "answer", "asked_by", "answered_by")) | {"tools": (), "timestamp": WHEN} | fields
    )


def test_a_turn_is_kept_with_who_said_what_and_the_tools_in_order():
    ana, bot = iri(BASE + "agents/ana"), iri(BASE + "agents/bot")
    turn = said(prompt="Which?", answer=" That.", asked_by=ana, answered_by=bot, tools=TOOLS)

    rows = conversation.describe_turn(NODE, 3, TALK, turn, MOST)

    prompt, answer, grep, note = (iri(f"urn:x:node/{name}") for name in ("prompt", "answer", "tools/1", "tools/2"))
    result = iri("urn:x:node/tools/1/result")
    assert sorted(rows) == sorted([
        (TALK, conv("hasTurn"), NODE), (NODE, TYPE, conv("ConversationTurn")), (NODE, conv("partOfConversation"), TALK),
        (NODE, conv("turnIndex"), integer(3)), (NODE, conv("timestamp"), date_time(WHEN)),
        (NODE, conv("hasPrompt"), prompt), (prompt, TYPE, conv("Prompt")), (prompt, conv("promptText"), '"Which?"'),
        (prompt, jido("saidBy"), ana), (NODE, conv("hasAnswer"), answer), (answer, TYPE, conv("Answer")),
        (answer, conv("answerText"), '" That."'), (answer, jido("saidBy"), bot),
        (NODE, conv("involvesToolInvocation"), grep), (grep, TYPE, conv("ToolInvocation")),
        (grep, conv("toolName"), '"grep"'), (grep, conv("invocationParameters"), literal('{"at":[1]}')),
        (grep, conv("hasResult"), result), (result, TYPE, conv("ToolResult")),
        (result, conv("resultData"), literal('["a"]')), (NODE, conv("involvesToolInvocation"), note),
        (note, TYPE, conv("ToolInvocation")), (note, conv("toolName"), '"note"'),
    ])  # fmt: skip
    assert (turn.agents, said(prompt="x", answered_by=bot).agents) == ([ana, bot], [bot])


def test_what_nobody_is_named_for_is_said_by_nobody():
    rows = conversation.describe_turn(NODE, 0, TALK, said(answer="x"), MOST)
    assert {predicate for subject, predicate, _ in rows if subject == iri("urn:x:node/answer")} == {
        TYPE, conv("answerText"),
    }  # fmt: skip
    assert not [row for row in rows if "rompt" in row[1]]


@pytest.mark.parametrize(
    ("turn", "name"),
    [
        ({"prompt": "x" * 101}, "prompt"), ({"answer": "x" * 101}, "answer"),
        ({"tools": [ToolUse("x" * 101)]}, "the name of a tool"),
        ({"tools": [ToolUse("grep", "x" * 99)]}, "parameters of the tool grep"),
        ({"tools": [ToolUse("grep", 1, "x" * 99)]}, "result of the tool grep"),
    ],
)  # fmt: skip
def test_a_text_of_a_turn_that_is_too_long_is_named(turn, name):
    error = refusal(conversation.describe_turn, NODE, 0, TALK, said(**turn), MOST)
    assert error.detail == f"{name} has 101 bytes; a text holds at most 100"


@pytest.mark.parametrize(("use", "name"), [(ToolUse("grep", {1}), "parameters"), (ToolUse("grep", 1, {1}), "result")])
def test_what_a_tool_was_given_or_gave_is_named_where_json_does_not_hold_it(use, name):
    error = refusal(conversation.describe_turn, NODE, 0, TALK, said(tools=[use]), MOST)
    assert error.detail.startswith(f"{name} of the tool grep is a set")


@pytest.mark.parametrize(
    ("turn", "detail", "hint"),
    [
        ({}, "the turn is empty", "give a prompt, an answer or the tools used"),
        ({"prompt": ""}, "prompt='' is not a text", "give prompt as text, or leave it out"),
        ({"answer": 5, "prompt": "x"}, "answer=5 is not a text", "give answer as text, or leave it out"),
        ({"prompt": "x", "answer": [0] * 99}, f"answer={[0] * 99!s:.80} is not a text",
         "give answer as text, or leave it out"),
        ({"tools": ["grep"]}, "'grep' is not a call of a tool", 'give ToolUse("grep", {...}, result)'),
        ({"tools": [ToolUse(" ")]}, f"{ToolUse(' ')!r} is not a call of a tool", 'give ToolUse("grep", {...}, result)'),
        ({"tools": [ToolUse(5)]}, f"{ToolUse(5)!r} is not a call of a tool", 'give ToolUse("grep", {...}, result)'),
    ],
)  # fmt: skip
def test_what_is_no_turn_is_told_what_one_has(turn, detail, hint):
    error = refusal(said, **turn)
    assert (error.detail, error.hint) == (detail, hint)


def test_a_turn_is_said_where_a_prompt_or_an_answer_or_a_tool_is():
    assert [said(**one).timestamp for one in ({"prompt": "x"}, {"answer": "x"}, {"tools": TOOLS})] == [WHEN] * 3


def test_a_conversation_has_the_name_of_its_session_and_a_name_of_its_own_for_a_session_elsewhere():
    assert conversation.conversation_of(SESSION) == TALK
    elsewhere = [conversation.conversation_of(iri(f"urn:x:{n}")) for n in range(2)]
    assert len({*elsewhere, *(conversation.conversation_of(iri(f"urn:x:{n}")) for n in range(2))}) == 2
    assert {len(name) for name in elsewhere} == {len(TALK) - 1 + 32}
    assert conversation.describe_conversation(TALK, SESSION, PROJECT) == [
        (TALK, TYPE, conv("Conversation")), (TALK, conv("associatedWithSession"), SESSION),
        (TALK, jido("partOfProject"), PROJECT),
    ]  # fmt: skip


def test_the_next_turn_comes_after_as_many_as_there_are():
    view = WriteSnapshot(lambda *pattern: [])
    assert conversation.next_index(TALK, view) == 0
    view.add([(iri(f"urn:x:{n}"), conv("partOfConversation"), TALK) for n in range(2)])
    assert conversation.next_index(TALK, view) == 2
