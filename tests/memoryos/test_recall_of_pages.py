"""Recall of pages of MemoryOS: by words and by similarity, only the current pages of the asking agent."""

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
    ) as open_root:
        open_root.embeds_for = 60.0
        open_root.writer.submit_intent("p", intent(summary="the zebra is fast", evidence=[]))
        yield open_root


def add_pages(memory, agent, *queries, **more):
    tiers = memory.os(agent, policy=TierPolicy(MemoryOSConfig(stm_capacity=2)), **more)
    tiers.configure(share_users=True)
    return tiers, [tiers.add(query, "Noted.", about=("user", "cleo")) for query in queries]


def recalled(memory, query, **more):
    return [hit.content.split("\n")[0] for hit in memory.recall(query, kinds=["page"], **more).entries]


def test_pages_of_every_tier_are_recalled_by_kind_beside_memories(memory):
    queries = ["a zebra in a field", "what is for lunch?", "the zebra again", "where is my hat?"]
    _, pages = add_pages(memory, "ana", *queries)

    assert {*recalled(memory, "zebra", limit=2)} == {queries[0], queries[2]}
    assert [hit.content for hit in memory.recall("zebra", limit=1).entries] == ["the zebra is fast"]
    hits = memory.recall("zebra", kinds=["page", "fact"], limit=3, explain=True).entries
    assert {hit.metadata["kind"] for hit in hits} == {"page", "fact"}
    (hit,) = memory.recall("lunch", kinds=["page"], limit=1).entries
    assert (hit.id, hit.agent_id, hit.content) == (pages[1].id, "ana", "what is for lunch?\n\nNoted.")
    assert hit.metadata["speakers"] == ["cleo", "assistant"]


def test_pages_of_another_agent_are_not_recalled(memory):  # D003
    add_pages(memory, "ana", "a zebra of mine")
    add_pages(memory, "ben", "a zebra of ben")

    assert recalled(memory, "zebra") == ["a zebra of mine"]
    assert recalled(memory, "zebra", agent_id="ben") == recalled(memory, "zebra", agent="ben") == ["a zebra of ben"]
    assert recalled(memory, "zebra", agent_id="cleo") == []
    assert memory.recall("ben", kinds=["page"]).metadata["unknown_words"] == ["ben"]


def test_a_page_is_recalled_once_added_and_not_after_its_agent_is_forgotten(memory, tmp_path):
    tiers, _ = add_pages(memory, "ana", "a zebra")
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as other:
        assert recalled(other, "zebra") == ["a zebra"]
        tiers.add("another zebra", "Noted.")
        assert {*recalled(memory, "zebra")} == {*recalled(other, "zebra")} == {"a zebra", "another zebra"}
        tiers.forget()
        assert recalled(memory, "zebra") == recalled(other, "zebra") == []


def test_private_pages_of_a_user_are_not_recalled(memory):
    tiers, _ = add_pages(memory, "ana", "Keep this private: I own a zebra.", "Which zebra?")
    tiers.add("Keep this private: my zebra is old.", "Noted.")

    assert {*recalled(memory, "zebra")} == {"Which zebra?", "Keep this private: my zebra is old."}
    asked = [str(tiers.retrieve("zebra", about=about).to_dict()) for about in (None, ("user", "cleo"))]
    assert ["I own a zebra" in each for each in asked] == [False, True]
    assert ["my zebra is old" in each for each in asked] == [True, False]


def test_pages_of_users_are_recalled_only_where_users_share(memory):
    tiers, _ = add_pages(memory, "ana", "a zebra of cleo")
    tiers.add("a zebra of nobody", "Noted.")

    assert {*recalled(memory, "zebra")} == {"a zebra of cleo", "a zebra of nobody"}
    tiers.configure(share_users=False)
    assert recalled(memory, "zebra") == ["a zebra of nobody"]


def test_recalled_pages_are_filtered_by_time_and_past_states_refused(memory):
    add_pages(memory, "ana", "a zebra", "a second zebra")
    later = memory.os("ana").tiers.stm[1].timestamp

    assert recalled(memory, "zebra", since=later) == ["a second zebra"]
    assert recalled(memory, "zebra", until=later) == ["a zebra"]
    assert recalled(memory, "zebra", scope="session", session_id="s") == []
    with pytest.raises(InvalidRequest, match="pages have no past states"):
        recalled(memory, "zebra", as_of=later)


def test_vectors_of_another_embedder_do_not_count_in_recall(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="ana", embedder=ToyEmbedder("other", 96)) as memory:
        memory.writer.submit_intent("p", intent())
        add_pages(memory, "ana", "a zebra in a field", "x", "y", "z")
    with jidomem.open(tmp_path / "root", project="p", agent="ana", embedder=ToyEmbedder()) as memory:
        hits = memory.recall("zebra", kinds=["page"], explain=True).entries
        assert hits[0].content == "a zebra in a field\n\nNoted."
        assert {hit.parts["likeness"] for hit in hits} == {0.0}
