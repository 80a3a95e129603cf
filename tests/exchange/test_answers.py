"""The excerpts of recalled decision records of real projects answer questions about them."""

import json
import re
from pathlib import Path

import pytest

import jidomem
from jidomem.base.words import EXCERPT
from jidomem.exchange.importer import SourceFile
from jidomem.exchange.synchroniser import SourceScan, Synchronisation
from jidomem.recall.briefing import markdown
from jidomem.repository.other_tools import ADR

FOLDER = Path(__file__).parent / "cases" / "answers"
QUESTIONS = json.loads((FOLDER / "expected.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def shop_memory(tmp_path_factory):
    with jidomem.open(tmp_path_factory.mktemp("shop") / ".jidomem", project="shop") as memory:
        files = [SourceFile(ADR, path.name, path.read_bytes()) for path in sorted(FOLDER.glob("*.md"))]
        Synchronisation.of(memory.writer, memory.reader, "shop", files, SourceScan()).submit()
        memory.writer.remember(
            "shop",
            "Keep baskets in Redis",
            type="architectural_decision",
            topic="baskets",
            rationale="a basket is lost without harm",
            detailed_explanation="A basket expires after 30 days. The key is the session.",
        )
        yield memory


@pytest.mark.parametrize(("question", "record", "words"), QUESTIONS, ids=[question for question, *_ in QUESTIONS])
def test_the_excerpt_of_the_expected_record_contains_the_words_of_the_answer(shop_memory, question, record, words):
    hit = next(hit for hit in shop_memory.recall(question).entries if hit.metadata["about"][:1] > [record])

    assert hit.metadata["about"][0].startswith(record)
    assert [word for word in words if word not in hit.excerpt] == []


def test_an_imported_record_has_decision_consequences_and_context_in_that_order(shop_memory):
    (hit,) = shop_memory.recall("letters by a queue", limit=1).entries
    text = "\n".join([hit.metadata["rationale"], hit.metadata["detailed_explanation"]])

    order = ["Chosen option", "if and only if", "03:00", "kills the worker", "less than a second", "paid twice",
             "A hosted service", "it is made for this", "decision-makers"]  # fmt: skip
    assert [*map(text.index, order)] == sorted(map(text.index, order))
    assert hit.excerpt.startswith('Chosen option: "Postgres as a queue", because a letter')


def test_an_excerpt_has_the_decision_and_the_sentences_that_match_the_query(shop_memory):
    (hit,) = shop_memory.recall("What did the customer in Bergen get after pressing the button again?", limit=1).entries
    (other,) = shop_memory.recall("letters by a queue", limit=1).entries

    assert hit.excerpt.startswith('Chosen option: "Postgres as a queue", because a letter')
    assert re.search(r" … [^…]*The first report came from a customer in Bergen, [^…]*got two parcels\.", hit.excerpt)
    assert len(hit.excerpt) <= EXCERPT
    assert "Bergen" not in other.excerpt
    assert " [cut; jidomem show " in markdown(
        shop_memory.recall("What did the customer in Bergen get after pressing the button again?", limit=1)
    )


def test_a_word_of_the_context_finds_its_record(shop_memory):
    (hit,) = shop_memory.recall("latency from Lisbon", limit=1).entries

    assert hit.content == "Run the shop in one region"


def test_the_excerpt_of_a_decision_has_rationale_and_explanation(shop_memory):
    result = shop_memory.recall("where are baskets kept?", limit=1)

    assert result.entries[0].excerpt == (
        "a basket is lost without harm A basket expires after 30 days. The key is the session."
    )
    assert 'Keep baskets in Redis"; text: "a basket is lost without harm A basket expires' in markdown(result)


def test_why_and_recall_give_the_same_excerpt(shop_memory):
    (hit,) = shop_memory.recall("identifiers", limit=1).entries

    why = shop_memory.reader.why("shop", hit.id)

    assert why["excerpt"] == hit.excerpt
    assert why["explanation"] == hit.metadata["detailed_explanation"]
