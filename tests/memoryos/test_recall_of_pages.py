"""Recall of pages of MemoryOS: by words and by similarity, only the pages of the asking agent, as they come and go."""

import pytest
from conftest import ToyEmbedder, fixed_sources, intent

import jidomem
from jidomem.errors import InvalidRequest
from jidomem.extras.memoryos.config import MemoryOSConfig
from jidomem.extras.memoryos.segments import TierPolicy


@pytest.fixture(params=["words", "likeness"])
def memory(tmp_path, request):
    embedder = ToyEmbedder() if request.param == "likeness" else None
    with jidomem.open(
        tmp_path / "root", project="p", agent="ana", sources=fixed_sources(), embedder=embedder
    ) as opened:
        opened.embeds_for = 60.0
        opened.writer.submit_intent("p", intent(summary="the zebra is fast", evidence=[]))
        yield opened


def talked(memory, agent, *said, **more):
    tiers = memory.os(agent, policy=TierPolicy(MemoryOSConfig(stm_capacity=2)), **more)
    return tiers, [tiers.add(query, "Noted.", about=("user", "cleo")) for query in said]


def found(memory, query, **more):
    return [hit.content.split("\n")[0] for hit in memory.recall(query, kinds=["page"], **more).entries]


def test_pages_of_every_tier_are_found_where_they_are_asked_for_beside_memories(memory):
    said = ["a zebra in a field", "what is for lunch?", "the zebra again", "where is my hat?"]
    _, pages = talked(memory, "ana", *said)

    assert {*found(memory, "zebra", limit=2)} == {said[0], said[2]}
    assert [hit.content for hit in memory.recall("zebra", limit=1).entries] == ["the zebra is fast"]
    told = memory.recall("zebra", kinds=["page", "fact"], limit=3, explain=True).entries
    assert {hit.metadata["kind"] for hit in told} == {"page", "fact"}
    (hit,) = memory.recall("lunch", kinds=["page"], limit=1).entries
    assert (hit.id, hit.agent_id, hit.content) == (pages[1].id, "ana", "what is for lunch?\n\nNoted.")
    assert hit.metadata["speakers"] == ["cleo", "assistant"]


def test_no_agent_recalls_a_page_of_another(memory):  # D003
    talked(memory, "ana", "a zebra of mine")
    talked(memory, "ben", "a zebra of ben")

    assert found(memory, "zebra") == ["a zebra of mine"]
    assert found(memory, "zebra", agent_id="ben") == found(memory, "zebra", agent="ben") == ["a zebra of ben"]
    assert found(memory, "zebra", agent_id="cleo") == []
    assert memory.recall("ben", kinds=["page"]).metadata["unknown_words"] == ["ben"]


def test_a_page_is_found_as_soon_as_it_was_said_and_no_more_once_it_is_forgotten(memory, tmp_path):
    tiers, _ = talked(memory, "ana", "a zebra")
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as other:
        assert found(other, "zebra") == ["a zebra"]
        tiers.add("another zebra", "Noted.")
        assert {*found(memory, "zebra")} == {*found(other, "zebra")} == {"a zebra", "another zebra"}
        tiers.forget()
        assert found(memory, "zebra") == found(other, "zebra") == []


def test_pages_are_narrowed_by_time_and_refused_as_of_a_moment(memory):
    talked(memory, "ana", "a zebra", "a second zebra")
    later = memory.os("ana").tiers.stm[1].timestamp

    assert found(memory, "zebra", since=later) == ["a second zebra"]
    assert found(memory, "zebra", until=later) == ["a zebra"]
    assert found(memory, "zebra", scope="session", session_id="s") == []
    with pytest.raises(InvalidRequest, match="pages have no past states"):
        found(memory, "zebra", as_of=later)


def test_vectors_of_another_embedder_say_nothing(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="ana", embedder=ToyEmbedder("other", 96)) as memory:
        memory.writer.submit_intent("p", intent())
        talked(memory, "ana", "a zebra in a field", "x", "y", "z")
    with jidomem.open(tmp_path / "root", project="p", agent="ana", embedder=ToyEmbedder()) as memory:
        hits = memory.recall("zebra", kinds=["page"], explain=True).entries
        assert hits[0].content == "a zebra in a field\n\nNoted."
        assert {hit.parts["likeness"] for hit in hits} == {0.0}
