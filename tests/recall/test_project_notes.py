"""The labelled notes of real projects are well formed."""

import json
from collections import Counter
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "project_notes"
FILES = sorted(FOLDER.glob("*.json"))
COUNTS = {
    "memories": range(25, 31),
    "questions": range(10, 13),
    "unanswered": range(5, 7),
    "repeats": range(8, 11),
    "contradicts": range(8, 11),
    "near": range(8, 11),
    "unrelated": range(6, 9),
}
DIFFERENCES = {"number", "version", "name", "negation", "antonym", "date", "choice", "other"}
TYPES = {"fact", "decision", "convention", "lesson", "error", "task"}
MEMORY_FIELDS = {"id", "type", "summary", "topic", "about", "rationale", "source"}


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def notes(request):
    return json.loads(request.param.read_text(encoding="utf-8"))


def test_note_files_have_sorted_keys_and_one_space_of_indent():
    assert FILES
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert text == json.dumps(json.loads(text), ensure_ascii=False, indent=1, sort_keys=True) + "\n", path.name


def test_each_list_of_notes_has_the_specified_number_of_entries(notes):
    assert set(notes) == {"repository", "license", "part", *COUNTS}
    assert notes["part"] in ("fit", "held out")
    assert {name: len(notes[name]) for name in COUNTS if len(notes[name]) not in COUNTS[name]} == {}


def test_each_note_has_all_fields_and_a_unique_id(notes):
    assert all(set(memory) == MEMORY_FIELDS for memory in notes["memories"])
    assert all(memory["type"] in TYPES and memory["source"] for memory in notes["memories"])
    assert len({memory["id"] for memory in notes["memories"]}) == len(notes["memories"])


def test_each_label_names_a_memory_of_its_file(notes):
    ids = {memory["id"] for memory in notes["memories"]}
    labels = [label["memory"] for name in ("repeats", "contradicts", "near") for label in notes[name]]
    answers = [question["answers"] for question in notes["questions"]]

    assert set(labels) <= ids
    assert all(1 <= len(each) <= 2 and set(each) <= ids for each in answers)


def test_the_values_of_a_contradiction_are_parts_of_both_texts(notes):
    summaries = {memory["id"]: memory["summary"] for memory in notes["memories"]}
    for label in notes["contradicts"]:
        assert label["differs"] in DIFFERENCES
        if label["values"]:
            before, after = label["values"]
            assert before in summaries[label["memory"]], label
            assert after in label["text"], label


def test_no_text_occurs_twice(notes):
    texts = [memory["summary"] for memory in notes["memories"]]
    texts += [question["question"] for question in notes["questions"]]
    texts += [label["text"] for name in ("repeats", "contradicts", "near") for label in notes[name]]
    texts += notes["unanswered"] + notes["unrelated"]

    assert [
        text for text, count in Counter(" ".join(text.lower().split()) for text in texts).items() if count > 1
    ] == []
