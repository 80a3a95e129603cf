"""How candidates are ranked: by open parts, whatever their order, and what was superseded behind its successor."""

import random
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem.recall.ranking import ASSISTANT, MEMORIES, PEOPLE, SIGNS, TASKS, chosen, ranked
from jidomem.records.interfaces import CorpusStats
from jidomem.records.recall import Candidate, Question, ScoredPassage

PROFILES = {profile["name"]: profile for profile in (PEOPLE, ASSISTANT, TASKS, MEMORIES)}
STEMS = ("boat", "sail", "harbour")


def passage(item, text="", words=(), speakers=(), cosine=None, said_at="2025-03-10T09:00:00.000000Z", length=10):
    return ScoredPassage(item, text, dict.fromkeys(words, 1.0), length, cosine, tuple(speakers), said_at)


def candidate(item, text="", words=(), speakers=(), **more):
    inside = {name: more.pop(name) for name in ("cosine", "said_at", "length") if name in more}
    recorded = "2025-03-10T09:00:00.000000Z"
    return Candidate(passage(item, text, words, speakers, **inside), "entry", (), recorded, **more)


def question(text="", stems=STEMS, speakers=(), has_vectors=False):
    counts = CorpusStats(100, 1_000, dict.fromkeys(stems, 3), "2025-03-10T09:00:00.000000Z")
    return Question(text, {stem: stem for stem in stems}, counts, speakers, "2026-01-01T00:00:00.000000Z", has_vectors)


def best(candidates, asked, profile=PEOPLE):
    return ranked(candidates, asked, profile)[0].candidate.passage.item


def test_of_two_turns_with_the_same_words_that_of_who_was_named_comes_first():
    turns = [candidate("a", words=["boat"], speakers=["Ana"]), candidate("b", words=["boat"], speakers=["Ben"])]

    assert best(turns, question("What did Ana sail?", speakers=("Ana",))) == "a"
    assert best(turns, question("What did Ben sail?", speakers=("Ben",))) == "b"
    both = ranked(turns, question("Did Ana and Ben sail?", speakers=("Ana", "Ben")), PEOPLE)
    assert [one.parts["speaker"] for one in both] == [0.0, 0.0]


def test_the_name_of_who_was_named_is_no_word_to_look_for_unless_there_is_no_other():
    called = candidate("called", words=["ana"], speakers=["Ben"])
    asked = question("Where did Ana sail?", ("ana", "sail"), ("Ana",))

    (found,) = ranked([called, candidate("x")], replace(asked, stems={"ana": "ana"}), PEOPLE)
    assert found.parts["coverage"] > 0
    assert ranked([called], asked, PEOPLE) == []


def test_what_answers_a_question_is_found_by_the_words_of_the_question():
    asked_before = passage("q", "Which boat do you sail?", ["boat", "sail"], ["Ana"])
    stated_before = passage("s", "There is a boat to sail.", ["boat", "sail"], ["Ana"])
    turns = [candidate("after", "The red one.", speakers=["Ben"], before=(stated_before,)),
             candidate("reply", "The red one.", speakers=["Ben"], before=(asked_before,))]  # fmt: skip

    assert best(turns, question("which boat does he sail")) == "reply"


def test_what_was_said_on_or_soon_after_the_day_asked_for_comes_first_and_so_does_what_tells_of_it():
    def said(item, day, text=""):
        return candidate(item, text, ["boat"], ["Ana"], said_at=f"2025-{day}T09:00:00.000000Z")

    turns = [said("month before", "02-09"), said("day before", "03-08"), said("day after", "03-10")]
    assert best(turns, question("which boat was it on 9 March 2025?")) == "day after"

    told = said("told", "03-10", "It was yesterday.")
    assert best([*turns, told], question("which boat was it on 9 March 2025?")) == "told"


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_what_somebody_said_on_the_day_that_is_asked_for_comes_first_but_of_memories_those_with_the_subject(profile):
    asked = question("what of boat, sail and harbour on 12 January?", has_vectors=True)
    for speakers, first in ((["Ana"], "then"), ([], "other")):
        other = candidate("other", words=["boat"], speakers=speakers, cosine=0.3, said_at="2026-05-02T09:00:00.000000Z")
        then = candidate("then", speakers=speakers, cosine=0.1, said_at="2026-01-12T09:00:00.000000Z")
        near = candidate("near", words=["boat"], speakers=speakers, cosine=0.3, said_at="2026-01-12T09:00:00.000000Z")

        assert best([other, then], asked, profile) == first
        assert best([other, then, near], asked, profile) == "near"
        assert best([other, then], replace(asked, text="what happened on 12 January?", stems={}), profile) == "then"


def test_a_day_without_a_year_is_one_of_the_years_that_texts_name_and_the_nearest_date_comes_first():
    def record(item, text):
        return candidate(item, text, ["boat"], said_at="2026-11-20T09:00:00.000000Z")

    days = {"next year": "2026-01-12", "month after": "2025-02-12", "days after": "2025-01-20", "then": "2025-01-12"}
    records = [record(name, f"{day} bought the boat") for name, day in days.items()]
    others = [record(f"other {day}", f"2025-06-{day} a boat") for day in range(10, 20)]

    found = ranked([*records[1:], *others], question("Which boat did I buy on 12 January?"), MEMORIES)
    assert [one.candidate.passage.item for one in found][:3] == ["then", "days after", "month after"]
    parts = {one.candidate.passage.item: one.parts for one in ranked(records, question("boat on 12 January"), MEMORIES)}
    assert parts["then"]["event"] == parts["next year"]["event"] == MEMORIES["event"]  # both years are named often


def test_of_short_conversations_each_gives_its_best_turn_first_and_a_recent_one_counts_more():
    def turn(item, talk, words, day):
        said_at = f"2025-03-{day}T09:00:00.000000Z"
        return candidate(item, item, words, ["user"], said_at=said_at)._replace(talk=talk)

    turns = [turn("best", "one", STEMS, 11), turn("second", "one", STEMS[:2], 11), turn("other", "two", STEMS[:2], 11)]
    found = ranked(turns, question("boat, sail, harbour?"), TASKS)
    assert [one.candidate.passage.item for one in found] == ["best", "other", "second"]
    assert found[2].parts["repeated"] == pytest.approx((TASKS["repeated"] - 1) * (found[1].score))

    old, new = turn("old", "one", STEMS, 10), turn("new", "two", STEMS, 12)
    assert best([old, new], question("boat, sail, harbour?"), TASKS) == "new"


def test_a_question_for_a_time_or_a_number_prefers_what_has_one():
    texts = ("the boat came", "the boat came last week", "the boat has seven sails")
    turns = [candidate(text, text, ["boat"], ["Ana"]) for text in texts]

    assert best(turns, question("When did the boat come?")) == "the boat came last week"
    assert best(turns, question("How many sails has the boat?")) == "the boat has seven sails"


def test_what_a_machine_said_comes_after_what_was_said_to_it_unless_its_answer_is_asked_for():
    turns = [candidate("machine", words=["boat"], speakers=["assistant"]),
             candidate("person", words=["boat"], speakers=["user"])]  # fmt: skip

    assert best(turns, question("Which boat do I have?"), ASSISTANT) == "person"
    assert best(turns, question("Which boat did you recommend?"), ASSISTANT) == "person"
    richer = candidate("machine", words=STEMS, speakers=["assistant"])
    assert best([richer, turns[1]], question("Which boat did you recommend?"), ASSISTANT) == "machine"
    parts = {one.candidate.passage.item: one.parts for one in ranked(turns, question("you said?"), ASSISTANT)}
    assert parts["machine"]["answered"] > 0 == parts["machine"]["told"]


def test_a_standing_instruction_of_a_person_comes_first_if_help_is_asked_for():
    texts = {"rule": "Always name the harbour.", "talk": "We name the harbour.", "said": "Always name the harbour."}
    turns = [candidate(item, text, ["harbour"], ["assistant" if item == "said" else "user"])
             for item, text in texts.items()]  # fmt: skip

    parts = {one.candidate.passage.item: one.parts for one in ranked(turns, question("How do I sail?"), ASSISTANT)}
    assert parts["rule"]["instruction"] == ASSISTANT["instruction"] > 0 == parts["talk"]["instruction"]
    assert parts["said"]["instruction"] == 0
    assert best(turns, question("How do I sail?"), ASSISTANT) == "rule"
    (one, *_) = ranked(turns, question("Did I sail?"), ASSISTANT)
    assert one.parts["instruction"] == 0


def test_a_turn_that_asks_comes_after_one_that_tells_of_the_past_even_alone():
    texts = ("Do you sail?", "They sail.", "They sailed.")
    turns = [candidate(text, text, ["sail"], ["Ana"]) for text in texts]
    assert [one.candidate.passage.item for one in ranked(turns, question("sail?"), PEOPLE)] == [*reversed(texts)]

    (only,) = ranked([candidate("q", "Why?", (), ["Ana"], cosine=0.001)], question("sail?", has_vectors=True), PEOPLE)
    assert only.score == pytest.approx(sum(only.parts.values())) == 0
    assert only.parts["asks"] < 0


def test_a_role_is_no_name_of_who_spoke():
    turns = [candidate("a", words=["user"], speakers=["user"]), candidate("b", words=["user"], speakers=["Ana"])]

    for one in ranked(turns, question("user?", ("user",), ("user",)), PEOPLE):
        assert one.parts["speaker"] == 0.0
        assert one.parts["coverage"] > 0


def test_what_has_no_vector_yet_is_taken_to_be_as_alike_as_most():
    asked = question("boat?", has_vectors=True)
    turns = [candidate("far", words=["boat"], cosine=0.05), candidate("new", words=["boat"]),
             candidate("near", words=["boat"], cosine=0.6)]  # fmt: skip

    assert [one.candidate.passage.item for one in ranked(turns, asked, MEMORIES)] == ["near", "new", "far"]
    assert ranked([candidate("new", words=["boat"])], question("boat?"), MEMORIES)[0].parts["likeness"] == 0.0


def test_a_memory_without_a_word_of_the_question_answers_it_only_where_it_is_alike():
    asked = question("boat?", has_vectors=True)
    memories = [candidate("far", cosine=0.25), candidate("near", cosine=0.26), candidate("unknown"),
                candidate("word", words=["boat"], cosine=-0.1)]  # fmt: skip

    assert {one.candidate.passage.item for one in ranked(memories, asked, MEMORIES)} == {"near", "word"}
    said = [candidate("far", speakers=["Ana"], cosine=0.01), candidate("apart", speakers=["Ana"], cosine=0.0)]
    assert [one.candidate.passage.item for one in ranked(said, asked, PEOPLE)] == ["far"]


def test_where_nothing_is_known_of_likeness_words_are_worth_more():
    turn = candidate("a", "I sail it", words=["boat"], speakers=["Ana"])

    (alone,), (beside,) = (ranked([turn], question("boat?", has_vectors=known), PEOPLE) for known in (False, True))

    assert alone.parts["coverage"] == pytest.approx(2 * beside.parts["coverage"])
    assert alone.parts["itself"] == beside.parts["itself"] == PEOPLE["itself"]


def test_the_profile_is_that_of_who_speaks_in_what_was_found():
    people = [candidate(str(number), speakers=["Ana"]) for number in range(8)]
    machine = [candidate(f"m{number}", speakers=["Assistant"]) for number in range(2)]
    nobody = [candidate(f"n{number}") for number in range(9)]

    assert chosen(people) is PEOPLE
    assert chosen([*people, *machine]) is ASSISTANT
    short = [one._replace(talk=str(number // 2)) for number, one in enumerate([*people, *machine])]
    assert chosen(short) is TASKS
    assert chosen([one._replace(talk="one") for one in [*people, *machine] * 2]) is ASSISTANT
    assert chosen([*people, *nobody]) is MEMORIES
    assert chosen([]) is MEMORIES


def test_every_profile_says_what_each_of_its_signs_is_worth_and_is_told_by_name_and_version():
    for name, profile in PROFILES.items():
        assert profile["name"] == name
        assert name.rsplit("-", 1)[1].isdigit()
        assert set(profile) - {"name", "repeated"} <= set(SIGNS)


TEXTS = st.sampled_from(
    ["", "When?", "I went there yesterday", "in May 2025, to Lisbon", "seven boats", "You said so?"]
)
MANY = st.lists(
    st.tuples(
        st.sets(st.sampled_from(STEMS)),
        TEXTS,
        st.sampled_from([(), ("Ana",), ("user",), ("assistant",)]),
        st.none() | st.floats(-1, 1),
        st.integers(0, 30),
        st.none() | st.integers(0, 9),
    ),
    max_size=10,
)


@settings(max_examples=60)
@given(MANY, TEXTS, st.sampled_from([*PROFILES.values()]), st.randoms(use_true_random=False))
def test_parts_add_up_and_the_order_is_that_of_the_scores_whatever_the_order_of_the_candidates(
    rows, text, profile, chance
):
    said = [
        passage(str(n), text, words, by, cosine, length=length)
        for n, (words, text, by, cosine, length, _) in enumerate(rows)
    ]
    given_ = [
        Candidate(one, "entry", (), f"2025-03-{number + 1:02}T09:00:00.000000Z", "High",
                  before=tuple(said[:number][::-1]), after=tuple(said[number + 1 :]), is_about=bool(number % 2),
                  successors=() if row[5] is None or row[5] == number else (str(row[5]),))
        for number, (one, row) in enumerate(zip(said, rows, strict=True))
    ]  # fmt: skip
    asked = question(text, speakers=("Ana",), has_vectors=True)
    found = ranked(given_, asked, profile)

    assert all(sum(one.parts.values()) == pytest.approx(one.score) and one.score >= 0 for one in found)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert ranked(random_order(given_, chance), asked, profile) == found
    alone = {one.candidate.passage.item: one for one in found if not one.candidate.successors and profile is not TASKS}
    for item, one in alone.items():
        assert ranked([given_[int(item)]], asked, profile) == [one]


def test_what_supersedes_each_other_in_a_circle_has_one_order():
    circle = [candidate(str(one), words=["boat"], cosine=one / 9, successors=(str((one + 1) % 3),)) for one in range(3)]
    asked = question("boat?", has_vectors=True)

    orders = {
        tuple(one.candidate.passage.item for one in ranked(turns, asked, MEMORIES)) for turns in permutations(circle)
    }

    assert len(orders) == 1


def random_order(values: list, chance: random.Random) -> list:
    return chance.sample(values, len(values))


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_what_was_superseded_never_stands_above_its_successor(profile):
    old = candidate("old", "I have a boat to sail", STEMS, ["user"], cosine=0.9, successors=("new",))
    new = candidate("new", "no more", ["boat"], ["user"], cosine=0.1)

    found = ranked([old, new], question("boat?", has_vectors=True), profile)

    assert [one.candidate.passage.item for one in found] == ["new", "old"]
    assert found[1].parts["superseded"] < 0
