"""The rule-based language model: its results, and its robustness against any text."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pytest
from conftest import START
from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem.errors import InvalidRequest, ModelUnavailable
from jidomem.extras.memoryos.values import DialoguePage, DialogueSegment
from jidomem.models.embeddings import HashedStems
from jidomem.models.keywords import sentences
from jidomem.models.offline import OfflineModel
from jidomem.records.interfaces import AGENT, OBJECT, LanguageModel, ModelPrompt, OutputLimits

MODEL = OfflineModel()
BOUNDS = OutputLimits(keywords=5, chain=40, summary=60, facts=3, traits=2, statement=30)
NARROW = [OfflineModel(HashedStems(16), bounds=BOUNDS) for _ in range(2)]
ANY = st.one_of(st.text(max_size=300), st.lists(st.sampled_from(
    ["I", "my", "love", "don't", "am", "dog", "?", ".", "and", "日本語", "Ärger", "if", "never", "x" * 99, "\n", "🙂"]
), max_size=60).map(" ".join))  # fmt: skip


def page(query, response="", minutes=0, chain=None, **more):
    moment = START + timedelta(minutes=minutes)
    return DialoguePage("p", "a", query, response, moment, meta_chain=chain, **more)


def segment(*pages):
    segment_pages = tuple(replace(each, segment_id="s") for each in pages)
    return DialogueSegment("s", "a", "", START, START, pages=segment_pages)


def facts(text):
    return [fact.text for fact in MODEL.extract_traits(segment(page(text))).facts]


def test_the_offline_model_is_a_language_model():  # D079
    assert isinstance(MODEL, LanguageModel)
    assert MODEL.name == "offline-1"


# Keywords


def test_keywords_are_singular_words_with_one_for_each_stem():  # D082
    words = MODEL.extract_keywords("The indexes are rebuilt. Indexing is done by Oxigraph; which index do you use?")

    assert words[0] == "index"
    assert {"index", "rebuilt", "oxigraph"} <= {*words}
    assert not {"the", "indexes", "indexing", "which"} & {*words}


def test_keywords_are_limited_to_the_most_frequent():
    text = "alpha beta gamma delta; gamma delta; delta"

    assert OfflineModel(bounds=OutputLimits(keywords=2)).extract_keywords(text) == ("delta", "gamma")


@pytest.mark.parametrize(("text", "word"), [
    ("Welche Datenbank verwenden wir? Die Datenbank heißt Oxigraph.", "datenbank"),
    ("東京で寿司を食べました", "東京"),
    ("Мы выбрали базу данных", "выбрали"),
    ("日", "日"),
])  # fmt: skip
def test_keywords_are_extracted_from_texts_of_other_languages(text, word):
    assert word in MODEL.extract_keywords(text)


@pytest.mark.parametrize("text", ["", "  \n", "?!", "what is it", "2026 42"])
def test_a_text_without_content_words_has_no_keywords(text):
    assert MODEL.extract_keywords(text) == ()


# Summaries and chains


def test_a_summary_has_the_sentences_most_central_to_the_topic():  # D083
    pages = [
        page("Hi! How are you?", "Fine, thanks."),
        page("Which index keeps the journal's triples?", "Oxigraph keeps the triples of the journal in an index."),
        page(
            "Can the index be rebuilt?", "Yes, the index is rebuilt from the journal at any time. Nice weather today!"
        ),
    ]
    text = OfflineModel(bounds=OutputLimits(summary=120)).generate_segment_summary(pages)

    assert "index" in text
    assert "journal" in text
    assert "weather" not in text
    assert len(text) <= 120


def test_a_repeated_sentence_appears_once_in_a_summary():
    text = "The journal is the truth of the project."

    assert MODEL.generate_segment_summary([page(text, text), page(text)]) == text


def test_long_pages_are_read_at_their_beginning_and_short_pages_whole():
    filler = "Weather stays pleasant around harbours. " * 2_000
    beginning = "The journal keeps every triple."
    pages = [page(f"{beginning} {filler}", f"{filler} The lighthouse is green."), page("The journal is kept on disk.")]

    text = OfflineModel(bounds=OutputLimits(summary=4_000)).generate_segment_summary(pages)

    assert beginning in text
    assert "The journal is kept on disk." in text
    assert "lighthouse" not in text
    many = [" ".join(f"crate{number}x{place}x" for place in range(40)) + " end." for number in range(80)]
    last = OfflineModel(bounds=OutputLimits(summary=30_000)).generate_segment_summary([page(" ".join(many))])
    assert last.endswith(" end.")  # no sentence is read in half
    alone = OfflineModel().generate_segment_summary([page("no sentence ends here " * 5_000)])
    assert "sentence ends here" in alone


def test_every_page_has_its_share_of_a_summary_of_many_pages():
    claims = [f"Lake{sign}k lies by hill{sign}k and wood{sign}k." for sign in "abcdefghijklmnopqrstuvwxyz"]
    pages = [page("We talk on.", claim + " So it goes." * 500) for claim in claims]

    text = OfflineModel(bounds=OutputLimits(summary=10_000)).generate_segment_summary(pages * 2)

    assert [claim for claim in claims if claim not in text] == []


def test_fenced_code_is_summarised_only_where_there_is_no_other_text():
    code = "```python\nexpense_category = ExpenseCategory(expense_category_name)\n```"
    model = OfflineModel(bounds=OutputLimits(summary=120))

    assert "ExpenseCategory" not in model.generate_segment_summary([page(f"How do I keep it?\n{code}", "In a table.")])
    assert "ExpenseCategory" in model.generate_segment_summary([page(code)])
    assert "ExpenseCategory" in model.generate_segment_summary([page(code[:-3])])


def test_a_dialogue_chain_has_the_previous_chain_and_the_new_page():  # D080 D013
    first = page("We plan a trip to Lisbon in May.", chain="A trip to Lisbon in May is planned.")
    text = MODEL.generate_meta_chain([first, page("Which hotel is near the river?", "The Alfama hotel is near it.")])

    assert "Lisbon" in text
    assert "Alfama hotel" in text
    assert len(text) <= OutputLimits().chain


def test_the_first_dialogue_chain_is_the_text_of_its_page():
    assert MODEL.generate_meta_chain([page("We use Oxigraph as the index.")]) == "We use Oxigraph as the index."


def test_a_dialogue_chain_at_its_limit_has_the_newest_page():
    bounds = OutputLimits(chain=100)
    old = page("x", chain="The old talk was about ships and harbours. " * 20)
    text = OfflineModel(bounds=bounds).generate_meta_chain([old, page("Tell me of volcanoes in Iceland.")])

    assert "volcanoes" in text
    assert "ships" in text
    assert len(text) <= 100


def test_chains_and_summaries_of_no_pages_are_refused():
    for read in (MODEL.generate_meta_chain, MODEL.generate_segment_summary):
        with pytest.raises(InvalidRequest, match="there is no page to read"):
            read([])


# Continuity


TALK = page("Which index keeps our triples?", "Oxigraph, an index that embeds.")


@pytest.mark.parametrize(("next_page", "continues"), [
    (page("Is Oxigraph fast?", "Yes, its index answers in microseconds.", minutes=5), True),
    (page("Why?", minutes=5), True),
    (page("My daughter starts school tomorrow", "Congratulations to her and the teachers!", minutes=5), False),
    (page("Is Oxigraph fast?", "Yes, its index answers in microseconds.", minutes=60), True),
    (page("Is Oxigraph fast?", "Yes, its index answers in microseconds.", minutes=61), False),
])  # fmt: skip
def test_a_page_continues_a_dialogue_within_the_time_gap_and_with_shared_words(next_page, continues):  # D013
    assert MODEL.continues(TALK, next_page) is continues


def test_the_time_gap_and_the_share_of_common_words_are_settings():
    late = page("Is Oxigraph fast?", "Yes, its index answers in microseconds.", minutes=90)
    other = page("My daughter starts school tomorrow", "Congratulations to her and the teachers!")

    assert OfflineModel(gap=timedelta(hours=2)).continues(TALK, late)
    assert OfflineModel(shared=0.0).continues(TALK, other)


@pytest.mark.parametrize("invalid", [{"gap": 60}, {"gap": timedelta(-1)}, {"shared": 2}, {"shared": True}])
def test_a_setting_out_of_range_is_refused(invalid):
    with pytest.raises(InvalidRequest, match=f"{next(iter(invalid))}="):
        OfflineModel(**invalid)


# Facts and traits


@pytest.mark.parametrize(("text", "fact", "trait"), [
    ("I love hiking in the Alps.", "likes hiking in the Alps", ("likes", "hiking in the Alps")),
    ("I really don’t like cold coffee!", "does not like cold coffee", ("dislikes", "cold coffee")),
    ("I can't stand long meetings", "dislikes long meetings", ("dislikes", "long meetings")),
    ("I prefer short answers, you know.", "prefers short answers", ("prefers", "short answers")),
    ("I work as a nurse in Lyon.", "works as a nurse in Lyon", ("works", "a nurse in Lyon")),
    ("I'm a software engineer", "is a software engineer", ("is", "a software engineer")),
    ("I live in Berlin, near the river.", "lives in Berlin", ("lives in", "Berlin")),
    ("My name is Ana.", "is called Ana", ("name", "Ana")),
    ("My favourite colour is dark green.", "favourite colour is dark green", ("favourite", "dark green")),
    ("I have a cat called Max", "has a cat called Max", ("has", "a cat called Max")),
    ("I'm allergic to peanuts.", "is allergic to peanuts", ("allergic to", "peanuts")),
    ("I am planning to visit my sister in Rome.", "plans to visit their sister in Rome", None),
    ("I want to learn Rust", "wants to learn Rust", None),
    ("Last week I went to a concert with my wife.", "went to a concert with their wife", None),
    ("My sister lives in Paris.", "sister lives in Paris", None),
    ("Remember that deploys are on Monday.", "deploys are on Monday", None),
    ("I moved to v2.1 of example.org, which is new.", "moved to v2.1 of example.org", None),
    ("I spent 1,000.50 euros.", "spent 1,000.50 euros", None),
    ("Please keep it short.", "asks for short answers", ("asks for answers", "short")),
    ("I am no longer vegetarian.", "is no longer vegetarian", None),
    ("I'm not vegetarian anymore.", "is no longer vegetarian", None),
    ("I am not married.", "is not married", None),
    ("I no longer live in Malmo.", "does not live in Malmo", None),
    ("I was born in 1984.", "was born in 1984", None),
    ("I have an interview at Kestrel AG on 23 March at 10:30.", "has an interview at Kestrel AG on 23 March at 10:30",
     ("has", "an interview at Kestrel AG on 23 March at 10:30")),
    ("I work for Dr. Nadja Weiss.", "works for Dr. Nadja Weiss", ("works", "Dr. Nadja Weiss")),
    ("I gave the key to Mr. Dahl in flat 3.", "gave the key to Mr. Dahl in flat 3", None),
    ("My interview is at 14:45", "interview is at 14:45", None),
    ("I met J. R. R. Tolkien", "met J. R. R. Tolkien", None),
    ("I use https://example.org/a?b=c:8080/x.", "uses https://example.org/a?b=c:8080/x", None),
    ("I use main.py, mostly.", "uses main.py", None),
    ("I moved to St. Gallen!", "moved to St. Gallen", None),
    ("I bought No. 7 for 71.5 euros.", "bought No. 7 for 71.5 euros", None),
    ("I work at Acme Inc. in Lyon", "works at Acme Inc. in Lyon", ("works", "Acme Inc. in Lyon")),
    ("I left at 10 a.m. on Monday", "left at 10 a.m. on Monday", None),
    ("I take warfarin 5 mg every day.", "takes warfarin 5 mg every day", None),
    ("I'm on apixaban twice a day.", "takes apixaban twice a day", None),
    ("I'm not on warfarin any longer.", "does not take warfarin any longer", None),
    ("I no longer take metformin.", "does not take metformin", None),
    ("I smoke ten cigarettes a day.", "smokes ten cigarettes a day", None),
    ("I don't smoke.", "does not smoke", None),
    ("I had a stroke in July.", "had a stroke in July", None),
    ("I have high blood pressure.", "has high blood pressure", None),
    ("I was diagnosed with epilepsy in 2019.", "was diagnosed with epilepsy in 2019", None),
    ("I owe the bank 40000 kronor.", "owes the bank 40000 kronor", None),
    ("I'm not allergic to nuts, someone wrote that wrongly.", "is not allergic to nuts", None),
    ("I am 69 now.", "is 69 years old", ("age", "69")),
    ("I am right-handed, that was a typo.", "is right-handed", ("is", "right-handed")),
    ("I have one cat now.", "has one cat now", ("has", "one cat")),
    ("My phone number changed to 031-222 22 22.", "phone number changed to 031-222 22 22", None),
    ("My appointment has been moved to 9 October.", "appointment has been moved to 9 October", None),
    ("My visit to Dr. Berg is on 2 October.", "visit to Dr. Berg is on 2 October", None),
    ("My sister's number changed to 070-999 88 77.", "sister's number changed to 070-999 88 77", None),
    ("My name is not Maria, it is Marie.", "is not called Maria", None),
    ("I live in Lund now.", "lives in Lund now", ("lives in", "Lund")),
    ("I don't like swimming anymore.", "does not like swimming anymore", ("dislikes", "swimming")),
    ("As my doctor told me, I live in Lund.", "lives in Lund", ("lives in", "Lund")),
    ("I told Anna: I live in Lund.", "lives in Lund", ("lives in", "Lund")),
    ("I met this woman", "met this woman", None),
])  # fmt: skip
def test_a_first_person_statement_is_a_fact_and_if_lasting_a_trait(text, fact, trait):  # D084
    learned = MODEL.extract_traits(segment(page(text)))

    assert [item.text for item in learned.facts] == [fact]
    assert [(item.name, item.value) for item in learned.traits] == ([trait] if trait else [])


@pytest.mark.parametrize("text", [
    "Do I like tea?", "If I live in Rome, I would know.", "I love it!", "I like your idea.", "I wish I had a dog.",
    "I want to make sure it works.",
    "The parade I went to was loud.", "She loves hiking.", "Hello there.", "I like to.", "Ich liebe Tee.", "",
    "I wrote it down.", "I made it to the top.", "I got this.", "I moved.", "I have a question about Rust.",
    "I take it with food.", "I take care of it.", "I am on vacation.", "Don't call me Bob.",
    "Call my sister Anna in an emergency: 070-123 45 67.", "The code of my door is 4711.",
    "Leaving my job was hard.",
])  # fmt: skip
def test_questions_suppositions_and_vague_references_are_no_facts(text):
    assert facts(text) == []


@pytest.mark.parametrize("text", [
    'My son told me, "I am an alcoholic".', 'My son told me: "I am an alcoholic. I hate this place."',
    "Anna told me: I am pregnant.", "Anna said to me yesterday: I am pregnant.", "Eva said, I like tea.",
    "My friend Jose said 'I hate this clinic'.", "“I don’t smoke. I like tea,” he said.", "Er sagte: „I am married“",
    "I am a doctor, said my brother.", "I am a doctor, Eva said.", 'He wrote: "I am a doctor',
])  # fmt: skip
def test_words_of_others_are_no_facts_about_the_speaker(text):
    assert facts(f"{text}\nI live in Lund.") == ["lives in Lund"]


def test_a_quotation_leaves_the_words_around_it():
    said = """I like the film "I, Robot", and I play 'Chess'. I like rock 'n' roll. The disk is 5" wide and I use it."""

    assert facts(said) == ["likes the film", "plays 'Chess'", "likes rock 'n' roll"]


def test_several_statements_of_a_sentence_are_separate_facts():
    statements = facts("I work at a bakery, and I live in Lyon but I don't eat bread because my stomach is weak.")

    assert statements == ["works at a bakery", "lives in Lyon", "does not eat bread", "stomach is weak"]


def test_facts_of_user_and_agent_are_distinguished_with_their_page():
    learned = MODEL.extract_traits(segment(page("Hello."), page("I love tea.", "I enjoy chess.")))

    assert [(fact.subject, fact.text, fact.page) for fact in learned.facts] == [
        (OBJECT, "likes tea", 1),
        (AGENT, "likes chess", 1),
    ]


def test_advice_by_an_agent_is_no_fact_about_the_agent():
    advice = "Always use tabs. Be concise. Remember that tests matter."
    learned = MODEL.extract_traits(segment(page(advice, advice)))

    assert {fact.subject for fact in learned.facts} == {OBJECT}
    assert len(learned.facts) == 3


def test_a_hedged_fact_has_less_confidence_and_a_repeated_fact_more():
    plain = MODEL.extract_traits(segment(page("I like tea."))).facts[0].confidence
    hedged = MODEL.extract_traits(segment(page("I think I like tea."))).facts[0].confidence
    [repeated] = MODEL.extract_traits(segment(page("I like tea."), page("I like tea!"))).facts

    assert hedged < plain < repeated.confidence < 1
    assert repeated.page == 0


@pytest.mark.parametrize("text", [
    "Don't tell anyone: I quit my job.", "Between us, I have two cats.", "I have a new medication.",
    "I work at ana@example.org", "My phone number is +49 170 1234567.",
])  # fmt: skip
def test_private_facts_are_marked_as_private(text):  # D078
    learned = MODEL.extract_traits(segment(page(text)))

    assert learned.facts
    assert all(fact.private for fact in learned.facts)


def test_a_date_is_not_taken_for_a_private_telephone_number():
    [fact] = MODEL.extract_traits(segment(page("I moved to Rome on 2023-05-07 10:30."))).facts

    assert not fact.private


def test_extracted_facts_and_traits_are_limited():
    model = OfflineModel(bounds=OutputLimits(facts=2, traits=1, statement=20))
    learned = model.extract_traits(
        segment(page("I like tea. I like chess. I like snow. I like " + "very " * 9 + "old tea."))
    )

    assert [fact.text for fact in learned.facts] == ["likes tea", "likes chess"]
    assert [trait.value for trait in learned.traits] == ["tea"]


def test_a_segment_without_pages_has_no_facts():
    assert MODEL.extract_traits(segment()).facts == ()


PARTS = st.sampled_from([
    "10:30", "at 7:05 p.m. on", "Dr. Weiss", "Mr. Dahl", "Prof. Dr. Ana Roth", "No. 5", "1.5", "84,000", "v2.1.3",
    "main.py", "https://example.org/a?b=c&d=e", "C:\\temp\\a.txt", "J. R. R. Tolkien", "ana.b@example.org", "3:1",
    "St. Gallen", "Acme Inc. in", "the U.S. Navy", "vs. Bayern", "approx. 5 km", "on 23 March", "in Lyon",
])  # fmt: skip


@given(parts=st.lists(PARTS, min_size=1, max_size=6), end=st.sampled_from([".", "!", ". I like tea.", "\n"]))
def test_times_names_numbers_and_addresses_are_not_cut(parts, end):
    said = " ".join(parts)

    assert facts(f"I saw {said} twice{end}")[0] == f"saw {said} twice"


@given(
    st.lists(
        st.sampled_from(["I like tea.", "He left!", "I study art.", "Is it red?", "It is no. I go.", "I am 3."]),
        min_size=1,
    )
)
def test_sentences_end_at_their_ends(said):
    assert len([*sentences(" ".join(said))]) == len(said) + said.count("It is no. I go.")


# Importance


def test_rules_and_dangers_are_rated_above_preferences():  # D074
    rule, danger, help_, taste = MODEL.rate_importance([
        "Never deploy to production on a Friday", "A critical outage of the production database", "uses port 8080",
        "likes green tea",
    ])  # fmt: skip

    assert rule > 0.8
    assert danger > help_ > taste
    assert MODEL.rate_importance([]) == ()


def test_a_fact_about_a_password_is_rated_zero():  # D078
    assert MODEL.rate_importance(["The production password is never to be changed"]) == (0.0,)


# Vectors


def test_embeddings_come_from_the_embedder_in_the_order_of_the_texts():  # D081 D090
    model = OfflineModel(HashedStems(64))
    vectors = model.calculate_embeddings(["journal", "index", "journal"])

    assert [len(vector) for vector in vectors] == [64, 64, 64]
    assert vectors[0] == vectors[2] != vectors[1]
    assert model.calculate_embedding("index") == vectors[1]
    assert list(model.calculate_embeddings([])) == []


def test_hashed_vectors_have_length_1_and_are_similar_for_shared_stems():  # D087
    one, like, other = HashedStems().generate(["the index was rebuilt", "rebuilding indexes", "a walk in the park"])
    cosine = lambda a, b: math.fsum(x * y for x, y in zip(a, b, strict=True))  # noqa: E731

    assert cosine(one, one) == pytest.approx(1.0)
    assert cosine(one, like) > 0.4 > 0.2 > cosine(one, other)


def test_a_text_without_content_words_has_the_zero_vector():
    assert {*HashedStems(8).generate(["what is it?"])[0]} == {0.0}


def test_the_embedder_name_depends_on_its_dimension():
    assert HashedStems(8).name != HashedStems(16).name
    assert HashedStems(8).dimensions() == 8


@pytest.mark.parametrize("dimensions", [0, -1, 1.5, True, None])
def test_an_invalid_dimension_is_refused(dimensions):
    with pytest.raises(InvalidRequest, match=r"dimensions=.* is not a whole number"):
        HashedStems(dimensions)


# Final answers and robustness


def test_the_offline_model_refuses_to_answer_and_names_the_chat_model():
    with pytest.raises(ModelUnavailable, match="no chat model") as refusal:
        MODEL.answer(ModelPrompt("", "Which index?"))

    assert "ChatModel" in refusal.value.hint


@settings(max_examples=60)
@given(query=ANY, response=ANY, chain=st.none() | ANY)
def test_reading_any_dialogue_is_deterministic_and_within_limits(query, response, chain):  # D087
    pages = [page("I like old maps."), page(query, response, chain=chain)]

    def read(model):
        return (
            model.extract_keywords(query),
            model.generate_meta_chain(pages),
            model.generate_segment_summary(pages),
            model.extract_traits(segment(*pages)),
            model.rate_importance([query, response]),
            model.calculate_embedding(query),
            model.continues(pages[0], pages[1]),
        )

    words, chain_text, summary_text, learned, rates, vector, _ = read(NARROW[0])
    assert read(NARROW[1]) == (words, chain_text, summary_text, learned, rates, vector, _)
    assert len(words) <= 5
    assert len(chain_text) <= 40
    assert len(summary_text) <= 60
    assert len(learned.facts) <= 3
    assert len(learned.traits) <= 2
    assert all(len(fact.text) <= 30 for fact in learned.facts)
    assert all(0 <= rate <= 1 for rate in rates)
    assert all(map(math.isfinite, vector))


READER = """
import json, sys
from datetime import UTC, datetime
from jidomem.extras.memoryos.values import DialoguePage, DialogueSegment
from jidomem.models.offline import OfflineModel

moment, model = datetime(2026, 11, 21, 8, tzinfo=UTC), OfflineModel()
texts = json.loads(sys.argv[1])
pages = tuple(DialoguePage(f"p{n}", "ada", t, "Noted.", moment, segment_id="s1") for n, t in enumerate(texts))
print(json.dumps({
    "keywords": [list(model.extract_keywords(text)) for text in texts],
    "vectors": [list(vector) for vector in model.calculate_embeddings(texts)],
    "chain": model.generate_meta_chain(pages),
    "summary": model.generate_segment_summary(pages),
    "traits": repr(model.extract_traits(DialogueSegment("s1", "ada", "it", moment, moment, pages=pages))),
    "importance": list(model.rate_importance(texts)),
}))
"""


def test_reading_a_dialogue_is_the_same_in_processes_with_other_hash_seeds():  # D087
    texts = ["I live in Lisbon and like old maps, green tea and sailing.", "My name is Ana, I am 41.", "Ünïcode ☃",
             "Never deploy on Fridays; the build needs Rust 1.80 and the index lies on disk."]  # fmt: skip
    outputs = [
        subprocess.run(
            [sys.executable, "-c", READER, json.dumps(texts)],
            env={**os.environ, "PYTHONHASHSEED": seed, "JIDOMEM_EMBEDDER": "none"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4711", "random")
    ]

    assert len(set(outputs)) == 1
    reading = json.loads(outputs[0])
    assert all(reading.values())
    assert len({len(vector) for vector in reading["vectors"]}) == 1


def test_a_very_long_text_without_sentences_is_read_within_limits():
    text = "I love my dog if I never " * 4_000

    assert len(OfflineModel().generate_segment_summary([page(text)])) <= OutputLimits().summary
    assert len(OfflineModel().extract_traits(segment(page(text))).facts) <= OutputLimits().facts
