"""Entries and turns as triples: verbatim texts, and refusals of values that cannot be stored."""

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

NODE, PROJECT, LIMIT = iri("urn:x:node"), iri(BASE + "projects/p"), 100
CONVERSATION, SESSION, MOMENT = iri(BASE + "conversations/s"), iri(BASE + "sessions/s"), "2026-11-20T10:00:00.000000Z"


def entry(**fields):
    return Entry(**{"id": "plan", "agent_id": "Time Agent", "content": " as it is \n", **fields})


def rows_of(**fields):
    return conversation.describe_entry(NODE, entry(**fields), PROJECT, LIMIT)


ENTRY_TRIPLES = [
    (NODE, TYPE, jido("Entry")), (NODE, jido("partOfProject"), PROJECT), (NODE, jido("entryId"), '"plan"'),
    (NODE, jido("agentId"), '"Time Agent"'), (NODE, jido("entryText"), literal(" as it is \n")),
    (NODE, jido("entryOf"), iri(BASE + "agents/time-agent")),
]  # fmt: skip


def test_an_entry_is_described_with_all_its_fields():
    assert rows_of() == ENTRY_TRIPLES
    metadata = {"speaker": "Ana", "timestamp": "2026-11-20T11:00:00+01:00", "n": 1}
    assert set(rows_of(session_id="s 7", metadata=metadata)) == {
        *ENTRY_TRIPLES, (NODE, jido("sessionId"), '"s 7"'), (NODE, jido("speaker"), '"Ana"'),
        (NODE, jido("entryMetadata"), literal('{"speaker":"Ana","timestamp":"2026-11-20T11:00:00+01:00","n":1}')),
        (NODE, conv("timestamp"), date_time(MOMENT)),
    }  # fmt: skip


@pytest.mark.parametrize("metadata", [{"speaker": "", "timestamp": "soon"}, {"speaker": 7, "timestamp": 7}])
def test_metadata_with_invalid_speaker_or_timestamp_is_stored_only_as_json(metadata):
    assert rows_of(metadata=metadata) == [
        *ENTRY_TRIPLES, (NODE, jido("entryMetadata"), literal(as_json(metadata, "metadata"))),
    ]  # fmt: skip


def test_an_agent_without_letters_in_its_name_is_described_by_text_only():
    assert conversation.agent_of(entry(agent_id="???")) is None
    assert {value for _, predicate, value in rows_of(agent_id="???") if "gent" in predicate} == {'"???"'}


@pytest.mark.parametrize(
    ("field", "oversized", "name"),
    [
        ("id", "x" * 101, "id"), ("agent_id", "x" * 101, "agent_id"), ("content", "x" * 101, "content"),
        ("session_id", "x" * 101, "session_id"), ("metadata", {"k": "x" * 93}, "metadata"),
    ],
)  # fmt: skip
def test_an_oversized_text_of_an_entry_is_refused_with_its_field(field, oversized, name):
    error = refusal(rows_of, **{field: oversized})
    assert (error.code, error.detail) == ("payload_too_large", f"{name} has 101 bytes; a text holds at most 100")
    assert error.hint.startswith("split it, or store a summary and the place of the full text")


def test_metadata_that_is_no_json_is_refused_with_its_path():
    assert refusal(rows_of, metadata={"a": {1}}).detail.startswith("metadata['a'] is a set")


def test_the_active_entries_of_an_id_are_those_not_replaced():
    snapshot = WriteSnapshot(lambda *pattern: [])
    nodes = [iri(f"urn:x:{n}") for n in range(4)]
    snapshot.add([(node, jido("entryId"), '"a \\"b\\""') for node in nodes[:3]])
    snapshot.add([(nodes[1], jido("replaces"), nodes[0]), (nodes[3], jido("entryId"), '"other"')])
    assert conversation.active_entries(snapshot, 'a "b"') == nodes[1:3]


def test_a_text_is_stored_verbatim_and_a_lone_surrogate_refused():
    assert text("note", ' "x"\n', 10) == '" \\"x\\"\\n"'
    error = refusal(text, "note", "\ud800", 10)
    assert isinstance(error, InvalidRequest)
    assert (error.detail, error.hint) == (
        "note contains half of a surrogate pair, which is not a character",
        "leave it out",
    )
    assert as_json({"ä": [1, None]}, "note") == '{"ä":[1,null]}'


TOOLS = (ToolUse("grep", {"at": [1]}, ["a"]), ToolUse("note"))


def turn_texts(**fields):
    return TurnTexts(
        **dict.fromkeys(("prompt", "answer", "asked_by", "answered_by")) | {"tools": (), "timestamp": MOMENT} | fields
    )


def test_a_turn_is_described_with_its_speakers_and_tools_in_order():
    ana, bot = iri(BASE + "agents/ana"), iri(BASE + "agents/bot")
    turn = turn_texts(prompt="Which?", answer=" That.", asked_by=ana, answered_by=bot, tools=TOOLS)

    rows = conversation.describe_turn(NODE, 3, CONVERSATION, turn, LIMIT)

    prompt, answer, grep, note = (iri(f"urn:x:node/{name}") for name in ("prompt", "answer", "tools/1", "tools/2"))
    result = iri("urn:x:node/tools/1/result")
    assert sorted(rows) == sorted([
        (CONVERSATION, conv("hasTurn"), NODE), (NODE, TYPE, conv("ConversationTurn")),
        (NODE, conv("partOfConversation"), CONVERSATION),
        (NODE, conv("turnIndex"), integer(3)), (NODE, conv("timestamp"), date_time(MOMENT)),
        (NODE, conv("hasPrompt"), prompt), (prompt, TYPE, conv("Prompt")), (prompt, conv("promptText"), '"Which?"'),
        (prompt, jido("saidBy"), ana), (NODE, conv("hasAnswer"), answer), (answer, TYPE, conv("Answer")),
        (answer, conv("answerText"), '" That."'), (answer, jido("saidBy"), bot),
        (NODE, conv("involvesToolInvocation"), grep), (grep, TYPE, conv("ToolInvocation")),
        (grep, conv("toolName"), '"grep"'), (grep, conv("invocationParameters"), literal('{"at":[1]}')),
        (grep, conv("hasResult"), result), (result, TYPE, conv("ToolResult")),
        (result, conv("resultData"), literal('["a"]')), (NODE, conv("involvesToolInvocation"), note),
        (note, TYPE, conv("ToolInvocation")), (note, conv("toolName"), '"note"'),
    ])  # fmt: skip
    assert (turn.agents, turn_texts(prompt="x", answered_by=bot).agents) == ([ana, bot], [bot])


def test_an_answer_without_an_agent_has_no_speaker():
    rows = conversation.describe_turn(NODE, 0, CONVERSATION, turn_texts(answer="x"), LIMIT)
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
def test_an_oversized_text_of_a_turn_is_refused_with_its_field(turn, name):
    error = refusal(conversation.describe_turn, NODE, 0, CONVERSATION, turn_texts(**turn), LIMIT)
    assert error.detail == f"{name} has 101 bytes; a text holds at most 100"


@pytest.mark.parametrize(
    ("tool_use", "name"), [(ToolUse("grep", {1}), "parameters"), (ToolUse("grep", 1, {1}), "result")]
)
def test_tool_data_that_is_no_json_is_refused_with_its_field(tool_use, name):
    error = refusal(conversation.describe_turn, NODE, 0, CONVERSATION, turn_texts(tools=[tool_use]), LIMIT)
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
def test_an_invalid_turn_is_refused_with_the_expected_content(turn, detail, hint):
    error = refusal(turn_texts, **turn)
    assert (error.detail, error.hint) == (detail, hint)


def test_a_turn_with_a_prompt_an_answer_or_a_tool_is_accepted():
    assert [turn_texts(**turn).timestamp for turn in ({"prompt": "x"}, {"answer": "x"}, {"tools": TOOLS})] == [
        MOMENT
    ] * 3


def test_a_conversation_is_named_after_its_session_or_by_a_digest_of_a_foreign_one():
    assert conversation.conversation_of(SESSION) == CONVERSATION
    foreign = [conversation.conversation_of(iri(f"urn:x:{n}")) for n in range(2)]
    assert len({*foreign, *(conversation.conversation_of(iri(f"urn:x:{n}")) for n in range(2))}) == 2
    assert {len(name) for name in foreign} == {len(CONVERSATION) - 1 + 32}
    assert conversation.describe_conversation(CONVERSATION, SESSION, PROJECT) == [
        (CONVERSATION, TYPE, conv("Conversation")), (CONVERSATION, conv("associatedWithSession"), SESSION),
        (CONVERSATION, jido("partOfProject"), PROJECT),
    ]  # fmt: skip


def test_the_next_turn_index_is_the_number_of_turns():
    snapshot = WriteSnapshot(lambda *pattern: [])
    assert conversation.next_index(CONVERSATION, snapshot) == 0
    snapshot.add([(iri(f"urn:x:{n}"), conv("partOfConversation"), CONVERSATION) for n in range(2)])
    assert conversation.next_index(CONVERSATION, snapshot) == 2
