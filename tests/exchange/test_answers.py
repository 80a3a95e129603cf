"""Decision records of real projects answer questions by the text shown of them."""

import json
import re
from pathlib import Path

import pytest

import jidomem
from jidomem.base.words import EXCERPT
from jidomem.exchange.synchroniser import SourceFile, SourceScan, Synchronisation
from jidomem.recall.briefing import markdown
from jidomem.repository.other_tools import ADR

FOLDER = Path(__file__).parent / "cases" / "answers"
QUESTIONS = json.loads((FOLDER / "expected.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
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
def test_the_text_shown_of_the_right_record_answers_the_question(shop, question, record, words):
    hit = next(hit for hit in shop.recall(question).entries if hit.metadata["about"][:1] > [record])

    assert hit.metadata["about"][0].startswith(record)
    assert [word for word in words if word not in hit.excerpt] == []


def test_a_record_says_its_decision_then_what_follows_and_its_context_last(shop):
    (hit,) = shop.recall("letters by a queue", limit=1).entries
    whole = "\n".join([hit.metadata["rationale"], hit.metadata["detailed_explanation"]])

    order = ["Chosen option", "if and only if", "03:00", "kills the worker", "less than a second", "paid twice",
             "A hosted service", "it is made for this", "decision-makers"]  # fmt: skip
    assert [*map(whole.index, order)] == sorted(map(whole.index, order))
    assert hit.excerpt.startswith('Chosen option: "Postgres as a queue", because a letter')


def test_the_words_of_a_question_choose_what_is_shown_of_a_record_after_its_decision(shop):
    (asked,) = shop.recall("What did the customer in Bergen get after pressing the button again?", limit=1).entries
    (plain,) = shop.recall("letters by a queue", limit=1).entries

    assert asked.excerpt.startswith('Chosen option: "Postgres as a queue", because a letter')
    assert re.search(r" … [^…]*The first report came from a customer in Bergen, [^…]*got two parcels\.", asked.excerpt)
    assert len(asked.excerpt) <= EXCERPT
    assert "Bergen" not in plain.excerpt
    assert " [cut; jidomem show " in markdown(
        shop.recall("What did the customer in Bergen get after pressing the button again?", limit=1)
    )


def test_what_stands_in_the_context_is_found_though_it_is_shown_last(shop):
    (hit,) = shop.recall("latency from Lisbon", limit=1).entries

    assert hit.content == "Run the shop in one region"


def test_a_decision_written_by_hand_shows_its_reason_and_its_explanation(shop):
    found = shop.recall("where are baskets kept?", limit=1)

    assert found.entries[0].excerpt == (
        "a basket is lost without harm A basket expires after 30 days. The key is the session."
    )
    assert 'Keep baskets in Redis"; text: "a basket is lost without harm A basket expires' in markdown(found)


def test_why_gives_the_text_that_recall_gives_where_the_question_points_nowhere_else(shop):
    (hit,) = shop.recall("identifiers", limit=1).entries

    why = shop.reader.why("shop", hit.id)

    assert why["excerpt"] == hit.excerpt
    assert why["explanation"] == hit.metadata["detailed_explanation"]
