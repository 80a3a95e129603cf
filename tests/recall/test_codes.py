"""A code in a memory is strong evidence, and a score does not depend on the other kinds recalled."""

import json
from pathlib import Path

import pytest
from conftest import fixed_sources, intent

import jidomem
from jidomem.models.local_embedder import LocalEmbedder
from jidomem.recall.question import identifiers
from jidomem.records.entry import Entry, WriteRequest

NOTES = json.loads((Path(__file__).parent / "code_notes/service.json").read_text("utf-8"))


@pytest.fixture(scope="module", params=["vectors", "words"])
def memory(request, tmp_path_factory):
    embedder = LocalEmbedder() if request.param == "vectors" else None
    folder = tmp_path_factory.mktemp("codes")
    with jidomem.open(folder / "root", project="p", agent="me", sources=fixed_sources(), embedder=embedder) as memory:
        memory.embeds_for = 60.0
        for note in NOTES["memories"]:
            memory.writer.submit_intent("p", intent(summary=note["summary"], evidence=[]))
        talk = memory.conversation("s")
        for number in range(30):
            talk.record(f"what about worker {number}?", "restarted", asked_by="Ana")
        memory.entries.write(WriteRequest(Entry(agent_id="me", content="Workers of Ana need a review")))
        yield memory


def test_a_memory_with_the_code_of_the_question_comes_first_with_a_high_score(memory):
    summaries = {note["id"]: note["summary"] for note in NOTES["memories"]}
    scores = []
    for question in NOTES["questions"]:
        hit = memory.recall(question["question"]).entries[0]
        assert hit.content == summaries[question["answers"][0]]
        if identifiers(question["question"]):
            scores.append(hit.score)

    assert len(scores) == 15
    assert min(scores) > 0.4
    assert sum(score > 0.6 for score in scores) >= 12


def test_a_memory_without_the_code_of_the_question_has_a_low_score(memory):
    for question in ("what does v2.9.9 fix?", "JIRA-777", "are we affected by CVE-2019-0001?"):
        assert all(hit.score < 0.1 for hit in memory.recall(question, min_score=0).entries), question


def test_an_explanation_names_a_matching_or_absent_code(memory):
    has, lacks = "code: it has the one that you name", "code: lowered, as it lacks the one that you name"
    first, *others = memory.recall("JIRA-881, webhooks, search page", min_score=0, explain=True).entries
    assert has in first.reasons
    assert others
    assert all(lacks in hit.reasons for hit in others)


@pytest.mark.parametrize("question", ["what does v2.3.1 fix?", "when are workers restarted?", "what was Ana told?"])
def test_the_score_of_a_text_does_not_depend_on_the_other_kinds_recalled(memory, question):
    scores = {}
    for kinds in ([], ["fact"], ["entry"], ["turn"], ["fact", "entry"], ["fact", "turn"], ["fact", "entry", "turn"]):
        for hit in memory.recall(question, kinds=kinds, min_score=0, limit=40).entries:
            scores.setdefault(hit.content, set()).add(hit.score)

    assert len(scores) > 1
    assert {text: values for text, values in scores.items() if len(values) > 1} == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("INV-2291 or E4012", ["inv_2291", "e_4012"]),
        ("v2.3.1 on db-7.example.com, 10.0.3.17", ["v_2_3_1", "db_7_example_com", "10_0_3_17"]),
        ("src/text_file.py and MAX_SIZE", ["srctextfilepy", "maxsize"]),
        ("order 88213 since 2026", ["88213"]),
        ("at 10:30 on 2026-03-18, the 5th, 10.3.2026: 20ms, 3 of 64GB", []),
        ("a two-year e-mail and/or a 90-line file", []),
    ],
)
def test_codes_versions_hosts_paths_and_long_numbers_are_identifiers(text, words):
    assert identifiers(text) == words
