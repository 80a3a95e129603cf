"""A text without a vector is recalled by its words beside others compared by vectors."""

import json
from threading import Event

import pytest
from conftest import ToyEmbedder, intent, wait_until

import jidomem
from jidomem.recall.briefing import markdown
from jidomem.records.entry import Entry, WriteRequest
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSession
from jidomem.serve.mcp.server import resource_text

QUERY = "payout time"


class HeldEmbedder(ToyEmbedder):
    """An embedder that waits for its release before it embeds a text with one of the words *held*."""

    def __init__(self, *held):
        super().__init__()
        self.released, self.held = Event(), held

    def generate(self, texts):
        if any(word in text for text in texts for word in self.held):
            self.released.wait(60)
        return super().generate(texts)


@pytest.mark.parametrize("way", ["confirm", "supersede"])
def test_a_new_version_without_a_vector_is_recalled_by_its_words(tmp_path, way):
    embedder = HeldEmbedder("measured")
    with jidomem.open(tmp_path / "root", project="p", agent="ana", embedder=embedder) as memory:
        old = memory.remember("Payouts run every day at 04:00 UTC.", topic="payout schedule").iri
        memory.remember("Payout time: 05:00.")
        memory.embedding.embed("p")
        ways = {"confirm": {"confirm": True}, "supersede": {"supersede": "Payouts begin at 06:00 UTC."}}
        new = memory.writer.correct("p", old, reason="measured", **ways[way]).iri

        answer = memory.recall(QUERY)

        assert new in [hit.id for hit in answer.entries]
        assert old not in [hit.id for hit in answer.entries]
        assert answer.metadata["not_compared"] == [new]
        assert "1 text may not be compared by meaning yet.\n" in markdown(answer)

        embedder.released.set()
        wait_until(lambda: not memory.embedding.embed("p"))
        answer = memory.recall(QUERY)
        assert "not_compared" not in answer.metadata
        assert "not be compared" not in markdown(answer)


#: More memories of one form than the candidates that are ranked.
OTHERS = [f"Customer Baxter of shop {number} wants invoices by e-mail" for number in range(101, 181)]
NEW = [f"Customer Baxter of shop {number} wants invoices by e-mail" for number in (607, 608, 609)]
QUESTIONS = [f"How does Baxter of shop {number} want invoices?" for number in (607, 608, 609)]


@pytest.fixture
def held_memory(tmp_path):
    """A memory whose embedder makes no vector of the texts on the shops 607 to 609."""
    embedder = HeldEmbedder("607 wants", "608 wants", "609 wants")
    with jidomem.open(tmp_path / "root", project="p", agent="ana", embedder=embedder) as memory:
        yield memory
        embedder.released.set()


@pytest.mark.parametrize("ways", [1, 3], ids=["one by one", "as an array"])
def test_a_memory_just_written_is_found_first_among_many_of_its_form(held_memory, ways):
    [*held_memory.writer.submit_many("p", [intent(summary=text) for text in OTHERS])]
    held_memory.embedding.embed("p")
    held_memory.recall("warm?")  # the thread that embeds runs

    for first in range(0, len(NEW), ways):
        written = [*held_memory.writer.submit_many("p", [intent(summary=text) for text in NEW[first : first + ways]])]
        for receipt, question in zip(written, QUESTIONS[first:], strict=False):
            best = held_memory.recall(question, explain=True).entries[0]

            assert best.id == receipt.iri
            assert any("has no vector yet; its words count as a cosine of" in line for line in best.reasons)


def test_an_entry_just_written_is_found_first_among_many_of_its_form(held_memory):
    for text in OTHERS:
        held_memory.entries.write(WriteRequest(entry=Entry(agent_id="ana", content=text)))
    held_memory.embedding.embed("p")

    for text, question in zip(NEW, QUESTIONS, strict=True):
        held_memory.entries.write(WriteRequest(entry=Entry(agent_id="ana", content=text)))
        assert held_memory.recall(question, kinds=["entry"], agent_id="ana").entries[0].content == text


def test_the_review_says_how_many_texts_are_not_compared_yet(held_memory):
    client, sentence = create_app(held_memory).test_client(), "2 texts may not be compared by meaning yet"
    for text in NEW[:2]:
        held_memory.remember(text)

    assert client.get("/projects/p/conflicts").json["vectors"]["pending"] == 2
    _, over_mcp = resource_text(ClientSession(held_memory, "ana"), "memory://conflicts")
    assert json.loads(over_mcp) == [{"hint": f"{sentence}: near pairs may be missing"}]
    assert sentence in client.get("/ui/p/review").text


def test_few_words_of_the_question_do_not_stand_for_its_meaning(held_memory):
    held_memory.remember("Baxter of shop 102 wants invoices by letter, and no others")
    held_memory.embedding.embed("p")
    held_memory.remember("The door of shop 607 wants oil")

    best, *_ = held_memory.recall("How does Baxter of shop 102 want invoices?").entries

    assert best.content == "Baxter of shop 102 wants invoices by letter, and no others"


@pytest.mark.parametrize("has_vectors", [True, False], ids=["vectors", "words"])
def test_a_correction_stands_before_an_older_copy_of_what_it_corrects(tmp_path, has_vectors):
    embedder = ToyEmbedder() if has_vectors else None
    with jidomem.open(tmp_path / "root", project="p", agent="ana", embedder=embedder) as memory:
        old = memory.remember("The staging database is reset every night at 03:00 UTC", topic="staging").iri
        memory.remember("The staging database is reset every night at 05:00 UTC")
        for text in ("Logs go to Loki", "The logo is blue", "Answers have ten lines", "Deploys are on Tuesday"):
            memory.remember(text)
        new = "The staging database is reset every night at 06:00 UTC"
        reason = "the cron job was moved by the platform team after the backup collided"
        memory.writer.correct("p", old, supersede=new, reason=reason)
        for _ in range(2):  # the second time with its vector
            first, second = memory.recall("when is the staging database reset", explain=True).entries[:2]
            assert first.content == new
            assert first.score == second.score
            assert first.reasons[-1].startswith(f"newest: it differs from {second.id[-8:]} only in a value")
            if has_vectors:
                memory.embedding.embed("p")


def test_a_newer_memory_with_other_words_of_the_question_stays_behind(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as memory:
        memory.remember("Shop 101 pays within 30 days")
        memory.remember("Shop 102 pays within 14 days")

        assert memory.recall("when does shop 101 pay").entries[0].content == "Shop 101 pays within 30 days"
