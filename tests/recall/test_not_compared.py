"""A memory without a vector is recalled by its words beside others compared by vectors."""

from threading import Event

import pytest
from conftest import ToyEmbedder

import jidomem
from jidomem.recall.briefing import markdown

QUERY = "payout time"


class HeldEmbedder(ToyEmbedder):
    """An embedder that waits for its release before it embeds the confirmed text."""

    def __init__(self):
        super().__init__()
        self.released = Event()

    def generate(self, texts):
        if any("measured" in text for text in texts):
            self.released.wait(60)
        return super().generate(texts)


@pytest.mark.parametrize("way", ["confirm", "supersede"])
def test_a_new_version_without_a_vector_is_recalled_by_its_words(tmp_path, way):
    embedder = HeldEmbedder()
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
        memory.embedding.embed("p")
        answer = memory.recall(QUERY)
        assert "not_compared" not in answer.metadata
        assert "not be compared" not in markdown(answer)
