"""The ranking of memories is never below plain fusion of words and similarity, on notes that were labelled by hand."""

import json
from pathlib import Path

import pytest

import jidomem
from jidomem.models.local_embedder import LocalEmbedder

NOTES = [
    *map(
        json.loads,
        (each.read_text("utf-8") for each in sorted((Path(__file__).parent / "project_notes").glob("*.json"))),
    )
]
FIELDS = ("type", "summary", "topic", "about", "rationale")
#: The constant of reciprocal rank fusion: https://doi.org/10.1145/1571941.1572114 has 60, for longer lists.
FUSION = 10


@pytest.fixture(scope="module")
def rankings(tmp_path_factory):
    """The ranks of each wanted memory, by recall and by fusion, for all questions of all projects."""
    ranks, embedder = [], LocalEmbedder()
    for number, notes in enumerate(NOTES):
        with jidomem.open(
            tmp_path_factory.mktemp("notes") / ".jidomem", project="p", agent="a", embedder=embedder
        ) as memory:
            intents = [{name: note[name] for name in FIELDS if note[name]} for note in notes["memories"]]
            defaults = {"applies_to_project": "p", "asserted_by": "a", "asserted_in": "s", "confidence": "high"}
            memory.read_log = None
            receipts = memory.writer.submit_many("p", [{"rationale": "as noted", **defaults, **one} for one in intents])
            ids = {receipt.iri: note["id"] for receipt, note in zip(receipts, notes["memories"], strict=True)}
            memory.embedding.embed("p")
            for question in notes["questions"]:
                hits = memory.recall(question["question"], limit=len(ids), explain=True, min_score=0).entries
                ours = [ids[hit.id] for hit in hits]
                fused = dict.fromkeys(ours, 0.0)
                for sign in ("lexical", "likeness"):
                    order = sorted((hit for hit in hits if hit.parts[sign] > 0), key=lambda hit: -hit.parts[sign])
                    for rank, hit in enumerate(order):
                        fused[ids[hit.id]] += 1 / (FUSION + rank)
                by_fusion = sorted(fused, key=lambda name: -fused[name])
                for answer in question["answers"]:
                    ranks.append(
                        (number, *(each.index(answer) if answer in each else 99 for each in (ours, by_fusion)))
                    )
    return ranks


@pytest.mark.parametrize("first", [1, 3, 5])
def test_recall_ranks_as_many_answers_first_as_rank_fusion(rankings, first):
    ours, fused = (sum(ranks[side] < first for ranks in rankings) for side in (1, 2))

    assert ours >= fused > len(rankings) / 4
