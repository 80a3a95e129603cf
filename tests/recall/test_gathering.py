"""Recall of memories, entries and turns: by words and similarity, filtered, with superseded ones last."""

import pytest
from conftest import ToyEmbedder, decision, fixed_sources, intent

import jidomem
from jidomem.errors import InvalidRequest
from jidomem.recall.ranking import calibration
from jidomem.records.entry import Entry, WriteRequest
from jidomem.records.recall import RecallRequest

SAME = {"automobile": "car", "vehicle": "car", "doctor": "physician"}


class Meanings(ToyEmbedder):
    """An embedder with synonyms."""

    def _vector(self, text):
        words = text.lower().replace("?", "").split()
        return super()._vector(" ".join(SAME.get(word, word) for word in words))


@pytest.fixture
def memory(tmp_path):
    sources = fixed_sources()
    with jidomem.open(tmp_path / "root", project="p", agent="me", sources=sources, embedder=Meanings()) as memory:
        memory.embeds_for = 60.0
        yield memory


@pytest.fixture
def plain(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="me", sources=fixed_sources()) as memory:
        yield memory


def record(memory, *summaries, **more):
    return [memory.writer.submit_intent("p", intent(summary=text, evidence=[], **more)).iri for text in summaries]


def entry(memory, text, **fields):
    new_entry = Entry(**{"agent_id": "a", "content": text, **fields})
    return memory.entries.write(WriteRequest(new_entry)).metadata["iri"]


def contents(answer):
    return [hit.content for hit in answer.entries]


def test_a_memory_is_recalled_by_meaning_without_a_common_word(memory):
    record(memory, "the car is red", "lunch is at noon", "the sea is deep")

    assert contents(memory.recall("automobile", limit=1)) == ["the car is red"]
    assert contents(memory.recall("deep", limit=1)) == ["the sea is deep"]


def test_a_superseded_memory_is_omitted_or_ranked_behind_its_successor(memory):
    old = record(memory, "the car vehicle automobile is red")[0]
    memory.writer.revise("p", old, changes={"summary": "it is blue now, the paint of the car"}, reason="painted")

    assert contents(memory.recall("car vehicle automobile")) == ["it is blue now, the paint of the car"]
    answer = memory.recall("car vehicle automobile", include_inactive=True, explain=True)
    assert contents(answer) == ["it is blue now, the paint of the car", "the car vehicle automobile is red"]
    assert answer.entries[1].parts["superseded"] < 0


def test_a_score_is_the_calibrated_sum_of_its_parts(memory):
    record(memory, "the car is red", "a car and a vehicle", "the sea is deep", about=["src/car.py"])
    answer = memory.recall("red car?", explain=True, about=["src/car.py"])

    assert answer.metadata["ranking"] == "memories-4"
    for hit in answer.entries:
        line = calibration("memories-4", has_vectors=True, memories=3)
        assert line.probability(sum(hit.parts.values())) == pytest.approx(hit.score)
        assert hit.parts["about"] > 0


def test_an_explanation_names_matching_and_absent_words_as_typed(memory, plain):
    record(memory, "the red car is in the garage", "lunch is at noon")
    question = "Does the automobile drive, or the red car?"

    (hit,) = memory.recall(question, explain=True).entries
    words, meaning, score = hit.reasons
    assert words == "words: 2 of 4 words of the question: red, car; in no text: automobile, drive"
    assert meaning.startswith("meaning: cosine 0.")
    assert score.startswith(f"score {hit.score:.2g}: about ")
    assert memory.recall(question).entries[0].reasons is None
    by_words = plain.recall(question, explain=True, min_score=0)
    assert by_words.entries[0].reasons[0] == words
    assert by_words.metadata["unknown_words"] == ["automobile", "drive"]
    assert plain.recall(question, explain=True, min_score=1).to_dict()["nearest"]["reasons"][0] == words


def test_a_memory_of_another_day_or_kind_than_requested_has_a_lower_score(memory):
    fact, decision_ = "the red car is washed", "the car is painted red"
    for day in (13, 14, 15):
        moment = f"2026-11-{day}T12:00:00Z"
        memory.writer.submit_intent("p", intent(summary=f"{fact} {day}", evidence=[], timestamp=moment))
    memory.writer.submit_intent("p", decision(summary=decision_, topic="t", evidence=[], timestamp=moment))

    def scores(question):
        hits = memory.recall(question, min_score=0, limit=9).entries
        return {hit.content: hit.score / (1 - hit.score) for hit in hits}

    whenever, then = scores("when was the red car washed?"), scores("was the red car washed on 2026-11-14?")
    assert then[f"{fact} 14"] > whenever[f"{fact} 14"]
    assert all(then[f"{fact} {day}"] < whenever[f"{fact} {day}"] / 2 for day in (13, 15))
    assert then[f"{fact} 15"] < scores("was the red car washed in November 2026?")[f"{fact} 15"]
    decided = memory.recall("what did we decide on the red car?", min_score=0, limit=9, explain=True).entries
    assert {hit.metadata["kind"]: hit.parts["other_kind"] < 0 for hit in decided} == {
        "fact": True,
        "architectural_decision": False,
    }


def test_an_explanation_names_speaker_neighbouring_turns_and_time(plain):
    talk = plain.conversation("s")
    talk.record("is the boat gone?", asked_by="Ben", timestamp="2026-11-14T12:00:00Z")
    talk.record("it is sold", asked_by="Ana", timestamp="2026-11-14T12:01:00Z")

    answer = plain.recall("which boat was sold by Ana on 15 November?", kinds=["turn"], explain=True, min_score=0)
    reasons = {hit.content: hit.reasons for hit in answer.entries}["it is sold"]
    assert reasons[:5] == (
        "words: 1 of 4 words of the question: sold; not in this text: boat; in no text: 15, november",
        "meaning: not compared, as there are no vectors",
        "neighbours in the session: words: boat",
        "speaker: ana, named in the question",
        "time: of 2026-11-14, 1 day before the time in the question (2026-11-15)",
    )


@pytest.mark.parametrize("by", ["memory", "plain"])
def test_memories_of_the_named_time_come_first_among_those_with_the_subject(request, by):
    memory = request.getfixturevalue(by)
    for summary, day in (
        ("Renewal for Acme: a discount", "2026-02-10"),
        ("Renewal for Acme: no discount", "2026-03-18"),
        ("Renewal for Globex: two years, from March on", "2026-08-01"),
        ("Refunds need two approvals", "2026-03-02"),
        ("Support answers on Saturday", "2026-03-20"),
        ("Prices rise in January", "2026-10-12"),
    ):
        memory.writer.remember("p", summary, timestamp=day)
    if memory.embedding is not None:
        memory.embedding.embed("p")

    def recalled(query):
        return contents(memory.recall(query, project="p", min_score=0))

    assert recalled("what of the Acme renewal in March?")[:2] == [
        "Renewal for Acme: no discount",
        "Renewal for Acme: a discount",
    ]
    assert recalled("what of the Acme renewal in February 2026?")[0] == "Renewal for Acme: a discount"
    assert {*recalled("which renewal in March?")[:2]} == {
        "Renewal for Acme: no discount",
        "Renewal for Globex: two years, from March on",
    }
    assert recalled("refunds in August?")[0] == "Refunds need two approvals"
    assert recalled("which prices in January?")[0] == "Prices rise in January"


def test_an_explanation_says_that_a_memory_of_the_time_lacks_the_subject(plain):
    for summary, day in (
        ("Refunds of Acme", "2026-03-02"),
        ("Renewal for Acme", "2026-02-10"),
        ("Acme, in March", "2026-07-01"),
    ):
        plain.writer.remember("p", summary, timestamp=day)
    hits = plain.recall("the renewal for Acme in March 2026", min_score=0, explain=True).entries
    lines = {hit.content: next(line for line in hit.reasons if line.startswith("time")) for hit in hits}

    march = "the question (2026-03-01 to 2026-03-31)"
    assert lines["Renewal for Acme"] == f"time: of 2026-02-10, 19 days before the time in {march}: lowered"
    assert (
        lines["Refunds of Acme"] == f"time: of 2026-03-02, in the time of {march}, but not all of its subject: lowered"
    )
    assert lines["Acme, in March"] == (
        "time: its text names 2026-03-01 to 2026-03-31, as the question does, but not all of its subject: lowered"
    )


def test_a_question_with_only_a_time_returns_the_memories_of_that_time(memory):
    for summary, day in (("Adopt ruff", "2026-03-02"), ("Postpone the app", "2026-04-21")):
        memory.writer.remember("p", summary, timestamp=day)
    memory.embedding.embed("p")

    assert contents(memory.recall("What was it in March 2026?", project="p"))[0] == "Adopt ruff"
    assert contents(memory.recall("What was decided in April?", project="p"))[0] == "Postpone the app"


SAID = {
    2: "The plumber comes at noon",
    3: "My nephew is allergic to peanuts",
    4: "I gave the keys away",
    14: "Buy soap",
}


QUESTIONS = [
    ("what did I say on 3 November?", [3]),
    ("What did I tell you on 2026-11-03?", [3]),
    ("what did Ana say on November 3rd?", [3]),
    ("what did ben say on November 3rd?", []),
    ("what happened on Saturday?", [14]),
    ("what did I mention between 3 and 10 November?", [3, 4]),
    ("what was said in November?", [2, 3, 4, 14]),
    ("what did I say on 5 November?", []),
]


@pytest.mark.parametrize("store", ["plain", "memory"])
def test_a_question_with_only_a_time_returns_what_was_said_then_in_order(request, store):
    memory = request.getfixturevalue(store)
    talk = memory.conversation("s")
    for day in sorted(SAID, reverse=True):
        talk.record(SAID[day], "Noted.", asked_by="ana", timestamp=f"2026-11-{day:02}T09:00:00Z")
    talk.record(answer="Hello.", answered_by="ben", timestamp="2026-10-01T09:00:00Z")
    for name in list(SAID):
        entry(
            memory, SAID[name], agent_id="me", metadata={"speaker": "ana", "timestamp": f"2026-11-{name:02}T10:00:00Z"}
        )

    for question, days in QUESTIONS:
        for kind in ("turn", "entry"):
            answer = memory.recall(question, kinds=[kind], explain=True)
            assert [hit.content.partition("\n")[0] for hit in answer.entries] == [SAID[day] for day in days], question
            assert all("in the time of the question" in " ".join(hit.reasons) for hit in answer.entries)
    assert len(memory.recall("what was said in November?", kinds=["turn"], limit=2).entries) == 2


def test_a_question_with_a_time_and_a_subject_returns_texts_of_the_subject(plain):
    talk = plain.conversation("s")
    for day, text in SAID.items():
        talk.record(text, asked_by="ana", timestamp=f"2026-11-{day:02}T09:00:00Z")

    assert contents(plain.recall("what did I say about the keys in November?", kinds=["turn"], limit=1)) == [SAID[4]]


def test_a_question_with_only_a_time_returns_memories_recorded_then(plain):
    for summary, day in (("Adopt ruff", "2026-11-02"), ("Postpone the app", "2026-11-14")):
        plain.writer.remember("p", summary, timestamp=day)

    assert contents(plain.recall("what did we record on Saturday?")) == ["Postpone the app"]
    assert contents(plain.recall("what happened since 1 November?"))[:2] == ["Adopt ruff", "Postpone the app"]


def test_turns_and_entries_are_recalled_only_by_kind(plain):
    record(plain, "zebra as a memory")
    turn = plain.conversation("s").record("which zebra?", "the zebra here", asked_by="ana", answered_by="coder")
    stored = entry(plain, "a zebra of mine", agent_id="me", metadata={"speaker": "Ben"}, session_id="7")

    assert contents(plain.recall("zebra")) == ["zebra as a memory"]
    (found,) = plain.recall("zebra", kinds=["turn"]).entries
    assert (found.id, found.agent_id, found.session_id) == (turn.iri, "coder", "s")
    assert found.content == "which zebra?\n\nthe zebra here"
    assert (found.metadata["kind"], found.metadata["speakers"]) == ("turn", ["ana", "coder"])
    (found,) = plain.recall("zebra", kinds=["entry"], session_id="7").entries
    assert (found.id, found.agent_id, found.session_id, found.metadata["kind"]) == (stored, "me", "7", "entry")
    everything = plain.recall("zebra", kinds=["turn", "entry", "fact"], session_id="7").entries
    assert {hit.metadata["kind"] for hit in everything} == {"turn", "entry", "fact"}


def test_every_filter_applies_to_turns_and_entries(plain):
    for agent, session in (("a", "7"), ("b", "8")):
        entry(plain, f"zebra of {agent}", agent_id=agent, session_id=session)
    then = str(plain.journal.head(jidomem.journal.journal.Stream("p", "history")).recorded_at)
    turn = plain.conversation("s").record("zebra of a turn", asked_by="ana")
    two_kinds = ["entry", "turn"]

    assert contents(plain.recall("zebra", kinds=two_kinds, agent="a", session="7")) == ["zebra of a"]
    assert contents(plain.recall("zebra", kinds=two_kinds, agent="ana")) == ["zebra of a turn"]
    assert contents(plain.recall("zebra", kinds=two_kinds, agent_id="b", session="8")) == ["zebra of b"]
    assert contents(plain.recall("zebra", kinds=two_kinds, scope="session", session_id="s")) == ["zebra of a turn"]
    assert contents(plain.recall("zebra", kinds=two_kinds, agent_id="b", session_id="8", as_of=then)) == ["zebra of b"]
    assert contents(plain.recall("zebra", kinds=two_kinds, since=turn.recorded_at)) == ["zebra of a turn"]
    with pytest.raises(InvalidRequest, match="'turns' is not a kind of memory") as refusal:
        plain.recall("zebra", kinds=["turns"])
    assert refusal.value.hint == "did you mean 'turn'?"


def test_entries_are_limited_to_the_asking_agent_and_the_named_session(memory):  # B040 B041 B055
    entries = {"of none": ("me", None), "of seven": ("me", "7"), "of eight": ("me", "8"), "of another": ("a", None)}
    entries |= {"of another's seven": ("a", "7")}
    for text, (agent, session) in entries.items():
        entry(memory, f"zebra {text}", agent_id=agent, session_id=session, metadata={"session": "all"})
    entry(memory, "zebra of a tenant", agent_id="me", metadata={"namespace": "acme"})

    def recalled(**more):
        whole = memory.recall("zebra", kinds=["entry", "fact"], limit=20, **more)
        request = RecallRequest(**{"agent_id": "me", "query": "zebra", "limit": 20, **more})
        stored = memory.entries.recall(request)
        assert {hit.content for hit in whole.entries} == {each.content for each in stored.entries}
        return {hit.content.removeprefix("zebra ") for hit in whole.entries}

    assert recalled() == {"of none", "of a tenant"}
    assert recalled(session_id="7") == {"of none", "of seven", "of a tenant"}
    assert recalled(session_id="7", scope="session") == {"of seven"}
    assert recalled(agent_id="a") == {"of another"}
    assert recalled(agent_id="b", session_id="7") == set()
    assert recalled(metadata={"namespace": "acme"}) == {"of a tenant"}


def test_a_replaced_entry_is_omitted_or_ranked_behind_its_replacements(memory):
    for text in ("zebra zebra", "no word of it", "a car, and perhaps a zebra"):
        entry(memory, text, id="one", agent_id="me")
    entry(memory, "zebra of another matter", agent_id="me")

    for more in ({}, {"explain": True}):
        assert "zebra zebra" not in contents(memory.recall("zebra", kinds=["entry"], **more))
    recalled = contents(memory.recall("zebra", kinds=["entry"], include_inactive=True))
    assert recalled.index("a car, and perhaps a zebra") < recalled.index("zebra zebra")


@pytest.mark.parametrize("by", ["memory", "plain"])
def test_a_superseded_memory_ranks_behind_the_successor_of_its_successor(by, request):
    memory = request.getfixturevalue(by)
    (first,) = record(memory, "zebra zebra")
    (second,) = record(memory, "no word of it", supersedes=[first])
    record(memory, "a long one that has but one zebra among so many other words", supersedes=[second])

    recalled = contents(memory.recall("zebra", include_inactive=True))
    assert recalled[0] == "a long one that has but one zebra among so many other words"
    assert recalled[-1] == "zebra zebra"


def test_filtered_similar_memories_displace_no_hit(memory, monkeypatch):
    monkeypatch.setattr("jidomem.recall.candidates.BY_LIKENESS", 3)
    record(memory, *(f"the car number {number} is a vehicle" for number in range(20)))
    memory.writer.submit_intent("p", intent(summary="one automobile of theirs", asserted_by="rita", evidence=[]))

    assert contents(memory.recall("vehicle", agent="rita")) == ["one automobile of theirs"]


def test_a_turn_is_recalled_by_the_words_of_the_preceding_turn(plain):
    talk = plain.conversation("s")
    for number in range(30):
        talk.record(f"nothing of interest {number}")
    talk.record("which restaurant is it?", asked_by="ana")
    talk.record("the blue one", asked_by="ben")
    for number in range(30):
        talk.record(f"something else {number}")

    assert set(contents(plain.recall("restaurant", kinds=["turn"], limit=2))) == {
        "which restaurant is it?", "the blue one"}  # fmt: skip


def test_a_relative_day_is_resolved_from_as_of_or_now(plain):
    talk = plain.conversation("s")
    for day in (15, 20, 10):
        talk.record(f"lunch was soup {day}", asked_by="ana", timestamp=f"2026-11-{day}T12:00:00Z")

    assert contents(plain.recall("lunch yesterday", kinds=["turn"], limit=1)) == ["lunch was soup 20"]
    then = plain.recall(
        "lunch yesterday", kinds=["turn"], limit=1, as_of="2026-11-23T00:00:00Z", explain=True, min_score=0
    )
    assert then.entries[0].parts["date"] < 5.0


def test_a_recall_returns_its_limit_and_reports_further_hits(memory, monkeypatch):
    for name in ("BY_WORDS", "BY_LIKENESS", "CLOSELY"):
        monkeypatch.setattr(f"jidomem.recall.candidates.{name}", 2)
    record(memory, *(f"zebra {number}" for number in range(6)))

    some, every = memory.recall("zebra", limit=5), memory.recall("zebra", limit=6)
    assert (len(some.entries), some.metadata["more"]) == (5, True)
    assert (len(every.entries), every.metadata["more"]) == (6, False)


def test_recall_without_an_embedder_ranks_by_words(plain):
    record(plain, "the car is red")
    answer = plain.recall("automobile car", explain=True)

    assert set(answer.entries[0].parts) == {"lexical", "about", "recency", "confidence", "words"}
    assert "ranking" not in answer.metadata
    assert "vectors" not in answer.metadata
