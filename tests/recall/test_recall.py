"""Recall: active memories with words of the query, the best first."""

import gc
import sys
from datetime import timedelta
from math import fsum, isclose

import pytest
from conftest import START, decision, fixed_sources, intent

import jidomem
from jidomem.base.words import tokens
from jidomem.errors import InvalidRequest, JidomemError, TooLarge
from jidomem.recall import bm25
from jidomem.recall.briefing import markdown
from jidomem.recall.ranking import WORDS, calibration
from jidomem.records.interfaces import CorpusStats
from jidomem.records.recall import RecallFilters, RecallRequest


@pytest.fixture
def memory(tmp_path, by):
    with jidomem.open(tmp_path / "root", project="p", agent="me", sources=fixed_sources()) as opened:
        opened.embeds_for = 60.0
        yield opened


def record(memory, *intents):
    return [memory.writer.submit_intent("p", each).iri for each in intents]


def recalled(memory, query, **more):
    return [hit.id for hit in memory.recall(query, **more).entries]


def test_a_memory_with_the_content_words_of_a_question_precedes_those_with_its_stop_words(memory, by):
    index, friday, book = record(
        memory,
        decision(summary="Use Oxigraph as the index", topic="store"),
        intent(summary="We ship on Friday, which is when we did it before"),
        intent(summary="The index of the book is long, and we read what we like of it"),
    )

    hits = recalled(memory, "which index did we choose?")
    assert friday not in hits[:2]
    assert hits[0] == index if by == "words" else {*hits[:2]} == {index, book}


def test_a_question_in_another_script_matches_inflected_words(memory):
    questions = {
        "Резервные копии хранятся тридцать дней.": "сколько хранится резервная копия?",
        "Пароли лежат в хранилище секретов.": "где лежит пароль?",
        "Новый сервер настраивает Анна.": "кто настроил новые серверы?",
        "Τα αντίγραφα ασφαλείας αποθηκεύονται στον διακομιστή.": "πού είναι το αντίγραφο;",
        "تُحفظ النسخ الاحتياطية ثلاثين يوما": "أين نسخة احتياطية؟",
    }
    notes = record(memory, *(intent(summary=note) for note in questions))

    assert {note: recalled(memory, question)[:1] for note, question in zip(notes, questions.values(), strict=True)} == {
        note: [note] for note in notes
    }


def test_a_question_in_another_language_matches_a_form_that_its_memories_have(memory):
    questions = {
        "Sicherungen laufen jede Nacht um zwei Uhr": "Wann läuft die Sicherung?",
        "Rechnungen werden zehn Jahre aufbewahrt": "Wie lange heben wir die Rechnung auf?",
        "Säkerhetskopiorna sparas i trettio dagar": "hur länge sparar vi en säkerhetskopia?",
        "Los servidores viejos se apagan en enero": "¿cuándo se apaga el servidor viejo?",
    }
    notes = record(memory, *(intent(summary=note) for note in questions))
    answers = {note: memory.recall(question) for note, question in zip(notes, questions.values(), strict=True)}

    assert {note: [hit.id for hit in answer.entries[:1]] for note, answer in answers.items()} == {
        note: [note] for note in notes
    }
    unknown = [word for answer in answers.values() for word in answer.metadata["unknown_words"]]
    assert {"sicherung", "rechnung", "sakerhetskopia", "servidor"}.isdisjoint(unknown)


def test_a_past_question_matches_a_form_though_its_own_word_came_later(memory):
    (note,) = record(memory, intent(summary="Sicherungen laufen nachts"))
    before = memory.now()
    record(memory, intent(summary="Anna prüft die Sicherung"))

    assert recalled(memory, "Wie läuft die Sicherung?", as_of=before) == [note]


def test_words_of_every_field_match_a_memory(memory):
    (stored,) = record(
        memory,
        decision(
            summary="Use Oxigraph",
            topic="triple-store",
            rationale="it embeds",
            detailed_explanation="Compared under load.",
            about=["src/store_index.py"],
            evidence=["measured at Café Müller"],
            alternatives=["GraphDB"],
        ),
    )

    queries = ("oxigraphs", "TripleStore", "embed", "comparing", "store_index", "src/store_index.py", "cafe",
               "MULLER", "graphdb")  # fmt: skip
    assert {query: recalled(memory, query) for query in queries} == {query: [stored] for query in queries}


def test_a_written_memory_is_recalled_at_once_in_every_process(memory, tmp_path):
    record(memory, intent(summary="zebra one"))
    with jidomem.open(tmp_path / "root", project="p", agent="other") as other:
        assert len(recalled(other, "zebra")) == 1
        (second,) = record(memory, intent(summary="zebra two"))
        assert second in recalled(memory, "zebra")
        assert second in recalled(other, "zebra")


def test_superseded_withdrawn_and_proposed_memories_are_omitted_unless_requested(memory):
    old, withdrawn = record(
        memory, decision(summary="Store in quagga files", topic="a"), intent(summary="quagga is fast")
    )
    new, _, proposed = record(
        memory,
        decision(summary="Store in quagga tables", topic="a", supersedes=[old]),
        intent(type="deleted_marker", summary="quagga is not fast", invalidates=[withdrawn], reason="measured"),
        intent(summary="quagga is what a page says", source_type="ExternalDocumentSource", evidence=["http://e/"]),
    )

    assert recalled(memory, "quagga") == [new]
    everything = recalled(memory, "quagga", include_inactive=True, limit=10)
    assert {old, new, withdrawn, proposed} <= {*everything}
    assert everything.index(new) < everything.index(old)


def test_better_inactive_matches_are_counted_with_the_option_that_shows_them(memory):
    record(
        memory,
        decision(summary="quagga quagga address plan", topic="plan", status="proposed"),
        decision(summary="quagga address plan of old", topic="plan", status="deprecated"),
        intent(summary="another page mentions an address, in passing, among many other words that say little"),
    )

    answer = memory.recall("quagga address plan")
    assert [hit.content[:7] for hit in answer.entries] == ["another"]
    assert answer.inactive.statuses == {"proposed": 1, "deprecated": 1}
    notice = "2 inactive records match better than the first hit (1 deprecated, 1 proposed): add include_inactive=true"
    assert answer.inactive.notice() == answer.to_dict()["inactive"]["notice"] == notice
    assert f"{notice}.\n" in markdown(answer)
    shown = memory.recall("quagga address plan", include_inactive=True)
    assert shown.inactive.count == 0
    assert [hit.metadata["status"] for hit in shown.entries] == ["proposed", "deprecated", "active"]


def test_inactive_matches_are_counted_without_hits_and_within_the_filters(memory):
    record(memory, *(decision(summary=f"quagga plan {n}", topic=f"plan {n}", status="rejected") for n in range(3)))

    assert memory.recall("quagga").inactive.notice() == (
        "3 inactive records match (3 rejected): add include_inactive=true"
    )
    assert memory.recall("quagga", limit=2).inactive.count == 3
    assert memory.recall("quagga", kinds=["fact"]).inactive.count == 0
    assert memory.recall("zebra", kinds=["decision"], since="2999-01-01").inactive.notice() == ""


def test_inactive_matches_are_compared_with_the_first_hit_whatever_the_limit(memory):
    record(
        memory,
        intent(summary="quagga address plan"),
        decision(summary="quagga address plan with a few more words", topic="plan", status="proposed"),
        *(intent(summary=f"an address among many other words that say little, number {n}") for n in range(9)),
    )

    notice = "1 inactive record matches, ranked below the first hit (1 proposed): add include_inactive=true"
    for limit in (1, 2, 5, 10):
        answer = memory.recall("quagga address plan", limit=limit)
        assert answer.entries[0].content == "quagga address plan"
        assert answer.inactive.notice() == notice, limit


def test_inactive_matches_better_than_the_first_hit_are_counted_beyond_the_limit(memory):
    record(
        memory,
        *(decision(summary=f"quagga plan {n}", topic=f"plan {n}", status="rejected") for n in range(7)),
        intent(summary="a plan that is mentioned in passing, among many other words that say little"),
        decision(summary="many other words that say as little, before a plan is mentioned at their end",
                 topic="words", status="proposed"),
    )  # fmt: skip

    for limit in (1, 3):
        answer = memory.recall("quagga plan", limit=limit)
        assert [hit.metadata["status"] for hit in answer.entries] == ["active"]
        assert (answer.inactive.better, answer.inactive.statuses["rejected"]) == (7, 7), limit
    assert memory.recall("quagga plan", limit=9).inactive.notice("--all") == (
        "8 inactive records match, 7 of them better than the first hit (1 proposed, 7 rejected): add --all"
    )


def test_a_superseded_memory_is_counted_only_without_its_successor(memory):
    first, elsewhere = record(memory, decision(summary="quagga one", topic="a"), decision(summary="quagga", topic="b"))
    record(memory, decision(summary="quagga two", topic="a", supersedes=[first]))
    record(memory, decision(summary="an answer in other words", topic="b", supersedes=[elsewhere]))

    answer = memory.recall("quagga", limit=4)
    successor_is_entry = any(hit.content.startswith("an answer") for hit in answer.entries)
    assert answer.inactive.statuses == ({} if successor_is_entry else {"superseded": 1})


def test_a_superseded_memory_ranks_behind_its_successors_whatever_its_score(memory):
    (first,) = record(memory, decision(summary="quagga quagga quagga", topic="quagga"))
    (second,) = record(memory, decision(summary="quagga quagga and much else", topic="quagga", supersedes=[first]))
    (third,) = record(memory, decision(summary="a long one that names a quagga once", topic="x", supersedes=[second]))

    assert recalled(memory, "quagga", include_inactive=True) == [third, second, first]


def test_a_kind_includes_its_subkinds_by_type_or_class(memory):
    fact, decided = record(memory, intent(summary="quagga fact"), decision(summary="quagga decision"))

    assert recalled(memory, "quagga", kinds=["decision"]) == [decided]
    assert recalled(memory, "quagga", kinds=["Decision", "fact"]) == recalled(memory, "quagga")
    assert recalled(memory, "quagga", kinds=["architectural_decision"]) == [decided]
    assert recalled(memory, "quagga", kinds=["task"]) == []
    assert fact in recalled(memory, "quagga")
    with pytest.raises(InvalidRequest) as refusal:
        memory.recall("quagga", kinds=["decison"])
    assert refusal.value.hint == "did you mean 'decision'?"


def test_a_memory_that_governs_the_requested_file_gets_a_higher_score(memory):
    plain, file, folder, module, pattern = record(
        memory,
        intent(summary="quagga quagga"),
        intent(summary="quagga in a file of some sort", about=["src/a/b.py"]),
        intent(summary="quagga in a folder of some sort", about=["src/a/"]),
        intent(summary="quagga in a module of some sort", about=["a.b"]),
        intent(summary="quagga in a pattern of some sort", about=["src/**/*.py"]),
    )

    hits = memory.recall("quagga", about=["./src/a/b.py"], explain=True).entries
    assert {hit.id for hit in hits if hit.parts["about"]} == {file, folder, module, pattern}
    assert next(hit for hit in hits if hit.id == plain).parts["about"] == 0
    assert recalled(memory, "quagga", about=["src/other.rb"])[0] == plain


def test_filters_of_agent_session_validity_and_time_limit_the_hits(memory):
    mine, other = record(
        memory,
        intent(summary="quagga one", asserted_by="ana", asserted_in="s-7", valid_until="2026-12-01"),
        intent(summary="quagga two", asserted_by="ben", asserted_in="s-8", valid_from="2026-12-01"),
    )
    later = (START + timedelta(seconds=1)).isoformat()
    both = {"include_inactive": True}

    assert recalled(memory, "quagga") == [mine]
    assert recalled(memory, "quagga", agent="ana", **both) == [mine]
    assert recalled(memory, "quagga", session="s-8", **both) == [other]
    assert recalled(memory, "quagga", scope="session", session_id="s-7") == [mine]
    assert recalled(memory, "quagga", valid_at="2026-11-30") == [mine]
    assert recalled(memory, "quagga", valid_at="2026-12-01") == [other]
    assert set(recalled(memory, "quagga", since=START, **both)) == {mine, other}
    assert recalled(memory, "quagga", since="2027-01-01") == []
    assert {*recalled(memory, "quagga", until=later, **both), *recalled(memory, "quagga", since=later, **both)} == {
        mine,
        other,
    }
    assert recalled(memory, "quagga", until=START, **both) == []


@pytest.mark.parametrize(
    ("query", "more", "message"),
    [
        ("x", {"limit": 0}, "limit=0 is not from 1"),
        ("x", {"limit": True}, "limit=True is not a whole number"),
        ("x", {"limit": "5"}, "limit='5' is not a whole number"),
        (" ", {}, "query is missing or empty"),
        ("x", {"agent_id": ""}, "agent_id is missing or empty"),
        ("x", {"scope": "world"}, "scope='world' is not a scope"),
        ("x", {"scope": "session"}, "needs a session"),
        ("x", {"kinds": "fact"}, "kinds='fact' is not a list"),
        ("x", {"about": [1]}, "about=[1] is not a list"),
        ("x", {"since": "yesterday"}, "since='yesterday' is not"),
        ("x", {"as_of": "soon"}, "as_of='soon' is not"),
        ("x", {"explain": "yes"}, "explain='yes' is not true or false"),
        ("x", {"budget_tokens": 0}, "budget_tokens=0 is not a positive"),
        ("x", {"budget_tokens": 3}, "budget_tokens=3 is too few"),
        ("x", {"kind": ["fact"]}, "there is no 'kind'"),
    ],
)
def test_an_invalid_argument_is_refused_by_name(memory, query, more, message):
    record(memory, intent())
    with pytest.raises(InvalidRequest) as refusal:
        memory.recall(query, **more)
    assert message in refusal.value.detail
    assert refusal.value.hint


QUERIES = ['"', "a OR", "NEAR(a b)", "summary:x", "x*", "' ; DROP TABLE memory", "-x", "^x", "(", "\x00", "\ud800",
           "AND OR NOT", "{a b}:c", "x" * 60_000, " ".join(f"w{n}" for n in range(9_000)), "日本語", "%", "ا ب", "🙂",
           "'\"'"]  # fmt: skip


def test_any_query_text_is_accepted(memory):
    (stored,) = record(memory, intent(summary="quagga"))

    for query in QUERIES:
        assert recalled(memory, f"{query} quagga", min_score=0) == [stored]
        assert isinstance(recalled(memory, query), list)


def test_an_oversized_query_is_refused(memory):
    with pytest.raises(TooLarge, match="more than 65,536 bytes"):
        memory.recall("x" * 65_537)


def test_a_score_is_the_calibrated_sum_of_its_parts(memory, by):
    record(memory, decision(summary="quagga zebra", about=["a.py"]), intent(summary="zebra"))
    (old,) = record(memory, intent(summary="quagga quagga"))
    record(memory, intent(summary="a quagga of another sort, and long", supersedes=[old]))

    whole = fsum(bm25.weights(["quagga", "zebra"], CorpusStats(4, 0, {"quagga": 3, "zebra": 2})).values())
    for hit in memory.recall("quagga zebra", about=["a.py"], explain=True, include_inactive=True).entries:
        parts = {**hit.parts}
        assert by == "likeness" or isclose(fsum(parts.pop("words").values()), parts["lexical"])
        line = calibration("memories-4" if by == "likeness" else WORDS, has_vectors=by == "likeness", memories=4)
        assert isclose(line.probability(fsum(parts.values()) / (whole if by == "words" else 1)), hit.score)


def test_an_answer_fits_its_budget_and_counts_the_omitted_hits(memory):
    record(memory, *(intent(summary=f"quagga number {n} " + "and more " * n) for n in range(8)))

    whole = memory.recall("quagga", limit=8)
    assert tokens(markdown(whole)) == whole.metadata["tokens"]
    for budget in range(60, 500, 20):
        answer = memory.recall("quagga", limit=8, budget_tokens=budget)
        assert answer.metadata["tokens"] <= budget
        assert answer.entries == whole.entries[: len(answer.entries)]
        assert len(answer.entries) + answer.metadata["left_out"] == 8


def test_an_answer_with_a_notice_of_inactive_matches_fits_its_budget(memory):
    record(memory, *(intent(summary=f"quagga number {n} " + "and more " * n) for n in range(4)))
    record(memory, *(decision(summary="quagga " * n, topic=str(n), status="proposed") for n in (4, 5)))

    for budget in range(120, 400, 20):
        answer = memory.recall("quagga", limit=8, budget_tokens=budget)
        assert tokens(markdown(answer)) == answer.metadata["tokens"] <= budget
        assert answer.inactive.notice() in markdown(answer)
        assert answer.inactive.statuses == {"proposed": 2}


def test_a_recalled_memory_is_recorded_as_shown(memory):
    (stored,) = record(memory, intent(summary="quagga"))
    memory.recall(RecallRequest("ana", "quagga"))

    shown = memory.reader.why("p", stored)["shown"]
    assert [(entry["in"], entry["agent"]) for entry in shown] == [("recall", "ana")]


def test_an_unknown_project_is_refused_and_creates_no_file(memory, tmp_path):
    record(memory, intent())
    before = {*tmp_path.rglob("*.sqlite")}
    with pytest.raises(JidomemError) as refusal:
        memory.recall("x", "q")
    assert refusal.value.code == "unknown_project"
    with pytest.raises(JidomemError) as refusal:
        memory.recall("x", "../q")
    assert refusal.value.code == "invalid_project"
    assert {*tmp_path.rglob("*.sqlite")} == before


def test_a_recall_request_is_a_value_with_defaults():
    request = RecallRequest("ana", "quagga", metadata={"trace": 1})

    assert request == RecallRequest(agent_id="ana", query="quagga", metadata={"trace": 1})
    assert (request.limit, request.scope, request.session_id) == (5, "agent", None)
    assert RecallFilters(kinds=["fact"]).kinds == ("fact",)


def test_ranking_runs_without_garbage_collection(memory):
    record(memory, *(intent(summary=f"The queue has {number} letters") for number in range(20)))
    collected, before = set(), gc.get_threshold()

    def note(phase, info):
        frame = sys._getframe()
        while frame := frame.f_back:
            collected.add(frame.f_code.co_name)

    gc.callbacks.append(note)
    gc.set_threshold(1)
    try:
        recalled(memory, "how many letters has the queue?")
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(note)

    assert "recall" in collected
    assert "_hits" not in collected
    assert gc.isenabled()
