"""Search of turns and entries, with their speakers, times and neighbours."""

import pytest
from conftest import fixed_sources

import jidomem
from jidomem.index.search_tables import SearchFilter
from jidomem.journal.journal import Stream
from jidomem.records.entry import Entry, ToolUse, WriteRequest

HISTORY = Stream("p", "history")
SECRET = "swordfish"


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="coder", sources=fixed_sources()) as memory:
        yield memory


def record_entries(memory, *contents, **metadata):
    entries = [Entry(agent_id="a", content=text, metadata=metadata) for text in contents]
    return [result.metadata["iri"] for result in memory.entries.write_many(map(WriteRequest, entries))]


def read(memory, use):
    return memory.texts.read(HISTORY, use)


def passage(memory, item):
    def use(file):
        match = file.match(item, None)
        return None if match is None else file.passages.get([match.number])[match.number]

    return read(memory, use)


def around(memory, item, before=2, after=1, moment=None):
    def use(file):
        number = file.match(item, None).number
        sides = file.passages.around([number], max(before, after), moment).get(number, ([], []))
        texts = file.passages.get([number for side in sides for number in side])
        return tuple(
            [texts[number].text for number in side[:most]] for side, most in zip(sides, (before, after), strict=True)
        )

    return read(memory, use)


def items_with(memory, word, **within):
    def use(file):
        (_, stem), *_ = memory.texts.stemmer.stems(word)
        return {file.match(match.number, None).item for match in file.best([stem], SearchFilter(**within))}

    return read(memory, use)


def test_a_turn_is_found_by_prompt_answer_tool_use_and_speaker(memory):
    talk = memory.conversation("s-1")
    tools_used = [ToolUse("lynx_finder", {"near": "tapir"}, "one quagga")]
    turn = talk.record("Which zebra?", "The okapi.", asked_by="ana", answered_by="coder", tools=tools_used,
                       timestamp="2026-01-02T03:04:05Z")  # fmt: skip

    for word in ("zebra", "okapi", "lynx_finder", "tapir", "quagga", "ana"):
        assert items_with(memory, word) == {turn.iri}, word
    stored = passage(memory, turn.iri)
    assert (stored.text, stored.speakers) == ("Which zebra?\n\nThe okapi.", ("ana", "coder"))
    assert (stored.said_at, stored.talk) == ("2026-01-02T03:04:05.000000Z", talk.iri)
    assert items_with(memory, "zebra", sessions=frozenset([talk.session])) == {turn.iri}
    assert items_with(memory, "zebra", sessions=frozenset(["https://jido.ai/sessions/s-2"])) == set()


def test_the_neighbours_of_a_turn_are_those_of_its_conversation_in_order(memory):
    talk, other = memory.conversation("s-1"), memory.conversation("s-2")
    turns = []
    for number in range(12):
        other.record(f"elsewhere {number}")
        turns.append(talk.record(f"turn {number}").iri)

    assert around(memory, turns[10]) == (["turn 9", "turn 8"], ["turn 11"])
    assert around(memory, turns[0]) == ([], ["turn 1"])
    assert around(memory, turns[11], before=1) == (["turn 10"], [])


def test_entries_are_ordered_by_position_or_by_recording(memory):
    by_place = [record_entries(memory, f"at {place}", session="7", position=place)[0] for place in (3, 10, 2, 1)]
    as_kept = record_entries(memory, "one", "two", "three", session="8")
    record_entries(memory, "of no session")

    assert around(memory, by_place[0]) == (["at 2", "at 1"], ["at 10"])
    assert around(memory, as_kept[2]) == (["two", "one"], [])


@pytest.mark.parametrize("position", [True, -1, 1.5, "3", None, 10**15])
def test_an_invalid_position_is_ignored(memory, position):
    first, second = (record_entries(memory, text, session="7", position=position)[0] for text in ("first", "second"))

    assert around(memory, second) == (["first"], [])
    assert around(memory, first) == ([], ["second"])


def test_the_neighbours_of_an_entry_have_the_same_agent_and_namespace(memory):
    mine = record_entries(memory, "mine", session="7", namespace="n")[0]
    record_entries(memory, "of another namespace", session="7", namespace="m")
    memory.entries.write(WriteRequest(Entry(agent_id="b", content="b's", metadata={"session": "7", "namespace": "n"})))

    assert around(memory, mine) == ([], [])


def test_a_replaced_entry_is_a_neighbour_only_in_the_past(memory):
    def write(text, key):
        memory.entries.write(WriteRequest(Entry(id=key, agent_id="a", content=text, session_id="7")))

    write("first", "1")
    write("second", "2")
    then = memory.journal.head(HISTORY).recorded_at
    write("first, again", "1")
    second = next(iter(items_with(memory, "second")))

    assert around(memory, second) == ([], ["first, again"])
    assert around(memory, second, moment=then) == (["first"], [])


def test_a_redacted_turn_is_removed_from_the_search_file_with_its_words(memory):
    talk = memory.conversation("s-1")
    turn = talk.record(f"the password is {SECRET}", "I see.")
    assert items_with(memory, SECRET) == {turn.iri}
    plan = memory.maintenance.plan("p", None, texts=[f"the password is {SECRET}"])
    memory.maintenance.redact(plan, agent="me", reason="a password")

    assert items_with(memory, SECRET) == set()
    assert passage(memory, turn.iri).text == "I see."
    cached = b"".join(path.read_bytes() for path in (memory.settings.root / "cache").rglob("*") if path.is_file())
    assert SECRET.encode() not in cached


def test_a_cleared_history_is_removed_from_the_search_file(memory):
    memory.conversation("s-1").record("a zebra")
    record_entries(memory, "a zebra, too")
    assert len(items_with(memory, "zebra")) == 2
    assert memory.long_term().clear_graph("history")

    assert items_with(memory, "zebra") == set()


def test_recall_of_entries_returns_no_turns(memory):
    memory.conversation("s-1").record("a zebra", asked_by="a")
    record_entries(memory, "a zebra of mine")

    result = memory.entries.recall(jidomem.RecallRequest(agent_id="a", query="zebra"))
    assert [entry.content for entry in result.entries] == ["a zebra of mine"]
    result = memory.entries.recall(jidomem.RecallRequest(agent_id="https://jido.ai/agents/a", query="zebra"))
    assert result.entries == []
