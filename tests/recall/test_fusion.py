"""The ranking of candidates: a sum of parts, independent of their order, with superseded ones last."""

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


def best(candidates, query, profile=PEOPLE):
    return ranked(candidates, query, profile)[0].candidate.passage.item


def test_a_turn_of_the_named_speaker_comes_first():
    turns = [candidate("a", words=["boat"], speakers=["Ana"]), candidate("b", words=["boat"], speakers=["Ben"])]

    assert best(turns, question("What did Ana sail?", speakers=("Ana",))) == "a"
    assert best(turns, question("What did Ben sail?", speakers=("Ben",))) == "b"
    both = ranked(turns, question("Did Ana and Ben sail?", speakers=("Ana", "Ben")), PEOPLE)
    assert [one.parts["speaker"] for one in both] == [0.0, 0.0]


def test_a_speaker_name_counts_as_a_word_only_without_other_words():
    called = candidate("called", words=["ana"], speakers=["Ben"])
    query = question("Where did Ana sail?", ("ana", "sail"), ("Ana",))

    (result,) = ranked([called, candidate("x")], replace(query, stems={"ana": "ana"}), PEOPLE)
    assert result.parts["coverage"] > 0
    assert ranked([called], query, PEOPLE) == []


def test_an_answer_matches_by_the_words_of_the_preceding_question():
    asked_before = passage("q", "Which boat do you sail?", ["boat", "sail"], ["Ana"])
    stated_before = passage("s", "There is a boat to sail.", ["boat", "sail"], ["Ana"])
    turns = [candidate("after", "The red one.", speakers=["Ben"], before=(stated_before,)),
             candidate("reply", "The red one.", speakers=["Ben"], before=(asked_before,))]  # fmt: skip

    assert best(turns, question("which boat does he sail")) == "reply"


def test_turns_on_or_after_the_named_day_and_those_that_refer_to_it_come_first():
    def turn(item, day, text=""):
        return candidate(item, text, ["boat"], ["Ana"], said_at=f"2025-{day}T09:00:00.000000Z")

    turns = [turn("month before", "02-09"), turn("day before", "03-08"), turn("day after", "03-10")]
    assert best(turns, question("which boat was it on 9 March 2025?")) == "day after"

    reference = turn("told", "03-10", "It was yesterday.")
    assert best([*turns, reference], question("which boat was it on 9 March 2025?")) == "told"


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_the_named_day_outweighs_the_subject_for_turns_and_not_for_memories(profile):
    query = question("what of boat, sail and harbour on 12 January?", has_vectors=True)
    for speakers, first in ((["Ana"], "then"), ([], "other")):
        other = candidate("other", words=["boat"], speakers=speakers, cosine=0.3, said_at="2026-05-02T09:00:00.000000Z")
        then = candidate("then", speakers=speakers, cosine=0.1, said_at="2026-01-12T09:00:00.000000Z")
        near = candidate("near", words=["boat"], speakers=speakers, cosine=0.3, said_at="2026-01-12T09:00:00.000000Z")

        assert best([other, then], query, profile) == first
        assert best([other, then, near], query, profile) == "near"
        assert best([other, then], replace(query, text="what happened on 12 January?", stems={}), profile) == "then"


def test_a_day_without_a_year_matches_every_named_year_and_the_nearest_date_comes_first():
    def record(item, text):
        return candidate(item, text, ["boat"], said_at="2026-11-20T09:00:00.000000Z")

    days = {"next year": "2026-01-12", "month after": "2025-02-12", "days after": "2025-01-20", "then": "2025-01-12"}
    records = [record(name, f"{day} bought the boat") for name, day in days.items()]
    others = [record(f"other {day}", f"2025-06-{day} a boat") for day in range(10, 20)]

    results = ranked([*records[1:], *others], question("Which boat did I buy on 12 January?"), MEMORIES)
    assert [one.candidate.passage.item for one in results][:3] == ["then", "days after", "month after"]
    parts = {one.candidate.passage.item: one.parts for one in ranked(records, question("boat on 12 January"), MEMORIES)}
    assert parts["then"]["event"] == parts["next year"]["event"] == MEMORIES["event"]  # both years occur often


def test_the_best_turn_of_each_short_conversation_comes_first_and_recent_turns_count_more():
    def turn(item, talk, words, day):
        said_at = f"2025-03-{day}T09:00:00.000000Z"
        return candidate(item, item, words, ["user"], said_at=said_at)._replace(talk=talk)

    turns = [turn("best", "one", STEMS, 11), turn("second", "one", STEMS[:2], 11), turn("other", "two", STEMS[:2], 11)]
    results = ranked(turns, question("boat, sail, harbour?"), TASKS)
    assert [one.candidate.passage.item for one in results] == ["best", "other", "second"]
    assert results[2].parts["repeated"] == pytest.approx((TASKS["repeated"] - 1) * (results[1].score))

    old, new = turn("old", "one", STEMS, 10), turn("new", "two", STEMS, 12)
    assert best([old, new], question("boat, sail, harbour?"), TASKS) == "new"


def test_a_question_for_a_time_or_number_prefers_texts_with_one():
    texts = ("the boat came", "the boat came last week", "the boat has seven sails")
    turns = [candidate(text, text, ["boat"], ["Ana"]) for text in texts]

    assert best(turns, question("When did the boat come?")) == "the boat came last week"
    assert best(turns, question("How many sails has the boat?")) == "the boat has seven sails"


def test_an_assistant_turn_follows_user_turns_unless_its_answer_is_requested():
    turns = [candidate("machine", words=["boat"], speakers=["assistant"]),
             candidate("person", words=["boat"], speakers=["user"])]  # fmt: skip

    assert best(turns, question("Which boat do I have?"), ASSISTANT) == "person"
    assert best(turns, question("Which boat did you recommend?"), ASSISTANT) == "person"
    richer = candidate("machine", words=STEMS, speakers=["assistant"])
    assert best([richer, turns[1]], question("Which boat did you recommend?"), ASSISTANT) == "machine"
    parts = {one.candidate.passage.item: one.parts for one in ranked(turns, question("you said?"), ASSISTANT)}
    assert parts["machine"]["answered"] > 0 == parts["machine"]["told"]


def test_a_standing_instruction_of_a_user_comes_first_for_a_help_request():
    texts = {"rule": "Always name the harbour.", "talk": "We name the harbour.", "said": "Always name the harbour."}
    turns = [candidate(item, text, ["harbour"], ["assistant" if item == "said" else "user"])
             for item, text in texts.items()]  # fmt: skip

    parts = {one.candidate.passage.item: one.parts for one in ranked(turns, question("How do I sail?"), ASSISTANT)}
    assert parts["rule"]["instruction"] == ASSISTANT["instruction"] > 0 == parts["talk"]["instruction"]
    assert parts["said"]["instruction"] == 0
    assert best(turns, question("How do I sail?"), ASSISTANT) == "rule"
    (one, *_) = ranked(turns, question("Did I sail?"), ASSISTANT)
    assert one.parts["instruction"] == 0


def test_a_turn_with_a_question_follows_statements_and_past_statements_come_first():
    texts = ("Do you sail?", "They sail.", "They sailed.")
    turns = [candidate(text, text, ["sail"], ["Ana"]) for text in texts]
    assert [one.candidate.passage.item for one in ranked(turns, question("sail?"), PEOPLE)] == [*reversed(texts)]

    (only,) = ranked([candidate("q", "Why?", (), ["Ana"], cosine=0.001)], question("sail?", has_vectors=True), PEOPLE)
    assert only.score == pytest.approx(sum(only.parts.values())) == 0
    assert only.parts["asks"] < 0


def test_a_role_is_no_speaker_name():
    turns = [candidate("a", words=["user"], speakers=["user"]), candidate("b", words=["user"], speakers=["Ana"])]

    for one in ranked(turns, question("user?", ("user",), ("user",)), PEOPLE):
        assert one.parts["speaker"] == 0.0
        assert one.parts["coverage"] > 0


def test_a_candidate_without_a_vector_gets_a_typical_similarity():
    query = question("boat?", has_vectors=True)
    turns = [candidate("far", words=["boat"], cosine=0.05), candidate("new", words=["boat"]),
             candidate("near", words=["boat"], cosine=0.6)]  # fmt: skip

    assert [one.candidate.passage.item for one in ranked(turns, query, MEMORIES)] == ["near", "new", "far"]
    assert ranked([candidate("new", words=["boat"])], question("boat?"), MEMORIES)[0].parts["likeness"] == 0.0


def test_a_memory_without_a_common_word_is_a_hit_only_above_the_similarity_limit():
    query = question("boat?", has_vectors=True)
    memories = [candidate("far", cosine=0.25), candidate("near", cosine=0.26), candidate("unknown"),
                candidate("word", words=["boat"], cosine=-0.1)]  # fmt: skip

    assert {one.candidate.passage.item for one in ranked(memories, query, MEMORIES)} == {"near", "word"}
    turns = [candidate("far", speakers=["Ana"], cosine=0.01), candidate("apart", speakers=["Ana"], cosine=0.0)]
    assert [one.candidate.passage.item for one in ranked(turns, query, PEOPLE)] == ["far"]


def test_words_count_double_without_vectors():
    turn = candidate("a", "I sail it", words=["boat"], speakers=["Ana"])

    (alone,), (with_vectors,) = (
        ranked([turn], question("boat?", has_vectors=known), PEOPLE) for known in (False, True)
    )

    assert alone.parts["coverage"] == pytest.approx(2 * with_vectors.parts["coverage"])
    assert alone.parts["itself"] == with_vectors.parts["itself"] == PEOPLE["itself"]


def test_the_ranking_profile_follows_from_the_speakers_of_the_candidates():
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


def test_every_profile_has_a_versioned_name_and_only_known_signs():
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
def test_a_score_is_the_sum_of_its_parts_and_ranking_ignores_candidate_order(rows, text, profile, chance):
    passages = [
        passage(str(n), text, words, by, cosine, length=length)
        for n, (words, text, by, cosine, length, _) in enumerate(rows)
    ]
    candidates = [
        Candidate(one, "entry", (), f"2025-03-{number + 1:02}T09:00:00.000000Z", "High",
                  before=tuple(passages[:number][::-1]), after=tuple(passages[number + 1 :]), is_about=bool(number % 2),
                  successors=() if row[5] is None or row[5] == number else (str(row[5]),))
        for number, (one, row) in enumerate(zip(passages, rows, strict=True))
    ]  # fmt: skip
    query = question(text, speakers=("Ana",), has_vectors=True)
    results = ranked(candidates, query, profile)

    assert all(sum(one.parts.values()) == pytest.approx(one.score) and one.score >= 0 for one in results)
    assert [one.score for one in results] == sorted((one.score for one in results), reverse=True)
    assert ranked(random_order(candidates, chance), query, profile) == results
    alone = {
        one.candidate.passage.item: one for one in results if not one.candidate.successors and profile is not TASKS
    }
    for item, one in alone.items():
        assert ranked([candidates[int(item)]], query, profile) == [one]


def test_a_supersession_cycle_has_one_order():
    circle = [candidate(str(one), words=["boat"], cosine=one / 9, successors=(str((one + 1) % 3),)) for one in range(3)]
    query = question("boat?", has_vectors=True)

    orders = {
        tuple(one.candidate.passage.item for one in ranked(turns, query, MEMORIES)) for turns in permutations(circle)
    }

    assert len(orders) == 1


def random_order(values: list, chance: random.Random) -> list:
    return chance.sample(values, len(values))


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_a_superseded_candidate_follows_its_successor(profile):
    old = candidate("old", "I have a boat to sail", STEMS, ["user"], cosine=0.9, successors=("new",))
    new = candidate("new", "no more", ["boat"], ["user"], cosine=0.1)

    results = ranked([old, new], question("boat?", has_vectors=True), profile)

    assert [one.candidate.passage.item for one in results] == ["new", "old"]
    assert results[1].parts["superseded"] < 0
