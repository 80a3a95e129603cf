"""Recall of turns by who asked or answered them."""

import pytest

import jidomem
from jidomem.recall.briefing import markdown
from jidomem.records.entry import Entry, WriteRequest


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    with jidomem.open(tmp_path_factory.mktemp("turns") / "root", project="p", agent="triage") as opened:
        for session, asker, prompt, answer in (
            ("s1", "Maria", "Why does my export fail?", "Files over 65536 rows fail; split the file."),
            ("s1", "Maria", "And how do I change my password?", "In Settings > Security."),
            ("s2", "Peter", "Can I use SSO?", "Only on the Enterprise plan."),
        ):
            opened.conversation(session).record(prompt=prompt, answer=answer, asked_by=asker)
        yield opened


def prompts(recalled):
    return {hit.content.partition("\n")[0] for hit in recalled.entries}


@pytest.mark.parametrize("agent", ["Maria", "maria", "triage", "https://jido.ai/agents/triage"])
def test_the_agent_filter_of_turns_matches_asker_and_answerer(memory, agent):
    recalled = memory.recall("password", kinds=["turn"], agent=agent)
    assert prompts(recalled) == {"And how do I change my password?"}
    assert recalled.agent_notice == ""


def test_the_agent_filter_of_turns_excludes_turns_of_others(memory):
    recalled = memory.recall("password", kinds=["turn"], agent="peter")
    assert (prompts(recalled), recalled.agent_notice) == (set(), "")


def test_entries_of_an_agent_are_recalled_by_each_spelling_of_its_name(memory):
    for agent in ("Letter Writer", "letter-writer", "reader"):
        memory.entries.write(WriteRequest(Entry(id=agent, agent_id=agent, content=f"hail, says {agent}")))
    names = ("Letter Writer", "letter writer", "letter-writer", "https://jido.ai/agents/letter-writer")

    for name in names:
        answers = (
            memory.recall("hail", kinds=["entry"], agent=name),
            memory.recall("hail", kinds=["entry"], agent_id=name),
        )
        assert [{hit.agent_id for hit in answer.entries} for answer in answers] == [
            {"Letter Writer", "letter-writer"}
        ] * 2
    unknown = memory.recall("hail", kinds=["entry"], agent="letter writter")
    assert unknown.metadata["unknown_agent"]["nearest"][0] == "letter-writer"
    assert "unknown_agent" not in memory.recall("xyzzy", kinds=["entry"], agent="Letter Writer").metadata


def test_an_agent_that_writes_after_a_recall_is_recalled_by_another_spelling(memory):
    assert memory.recall("cargo", kinds=["entry"], agent="Port Master").entries == []
    memory.entries.write(WriteRequest(Entry(agent_id="port-master", content="the cargo is here")))
    recalled = memory.recall("cargo", kinds=["entry"], agent="Port Master")
    assert [hit.agent_id for hit in recalled.entries] == ["port-master"]


def test_an_unknown_agent_is_reported_for_turns_with_the_nearest_name(memory):
    recalled = memory.recall("password", kinds=["turn"], agent="maira")
    assert recalled.entries == []
    assert "did you mean 'maria'" in recalled.agent_notice


def test_a_question_about_a_speaker_alone_returns_the_turns_of_that_speaker(memory):
    expected = {"Why does my export fail?", "And how do I change my password?"}
    assert prompts(memory.recall("What did Maria ask?", kinds=["turn"])) == expected
    assert prompts(memory.recall("What did Maria say about invoices?", kinds=["turn"])) == set()


def test_unknown_words_exclude_stop_words(memory):
    recalled = memory.recall("What was the quagga, which is it?", kinds=["turn"])
    assert recalled.metadata["unknown_words"] == ["quagga"]


def test_a_recall_without_memories_names_the_other_kind_that_matches(memory):
    recalled = memory.recall("password")
    assert (recalled.entries, recalled.metadata["other_kinds"]) == ([], {"turn": 1})
    assert recalled.kinds_notice() == '1 turn matches: add kinds=["turn"]'
    assert recalled.kinds_notice() in markdown(recalled)
    assert "other_kinds" not in memory.recall("quagga").metadata
