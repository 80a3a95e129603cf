"""The scripted language model returns the answers of its script only."""

from threading import Thread

import pytest

from jidomem.errors import InvalidRequest, ModelUnavailable
from jidomem.models.embeddings import HashedStems
from jidomem.models.scripted import NotScripted, RecordedCall, ScriptedModel
from jidomem.records.interfaces import Fact, LanguageModel, Learned, ModelPrompt


def test_a_scripted_model_is_a_language_model():  # D086 D110
    assert isinstance(ScriptedModel(), LanguageModel)


def test_scripted_answers_are_returned_in_order_and_every_call_is_recorded():  # D086 D110
    learned = Learned((Fact("likes tea"),))
    model = ScriptedModel(extract_keywords=[("one",), ("two",)], extract_traits=[learned], answer=["42"])

    assert model.extract_keywords("a") == ("one",)
    assert model.extract_traits("a segment") is learned
    assert model.extract_keywords("b") == ("two",)
    assert model.answer(ModelPrompt("s", "u")) == "42"
    assert [(call.function, call.arguments[0]) for call in model.calls[:3]] == [
        ("extract_keywords", "a"), ("extract_traits", "a segment"), ("extract_keywords", "b"),
    ]  # fmt: skip


def test_a_scripted_function_computes_every_answer():
    model = ScriptedModel(continues=lambda previous, page: previous == page, rate_importance=lambda facts: (1.0,))

    assert [model.continues(1, 1), model.continues(1, 2), model.rate_importance(["x"])] == [True, False, (1.0,)]


def test_an_unscripted_call_is_refused_and_recorded():  # D110
    model = ScriptedModel()

    with pytest.raises(NotScripted, match="generate_segment_summary was called, and is not in the script") as refusal:
        model.generate_segment_summary([])

    assert isinstance(refusal.value, AssertionError)
    assert refusal.value.hint == "ScriptedModel(generate_segment_summary=[...])"
    assert model.calls == [RecordedCall("generate_segment_summary", ([],))]


def test_a_call_beyond_the_end_of_the_script_is_refused():
    model = ScriptedModel(generate_meta_chain=["a chain"], calculate_embedding=[[1.0]])
    model.generate_meta_chain([])
    model.calculate_embedding("x")

    with pytest.raises(NotScripted, match="generate_meta_chain was called, and all its answers are used"):
        model.generate_meta_chain([])
    with pytest.raises(NotScripted, match="calculate_embedding"):
        model.calculate_embedding("x")


def test_a_scripted_error_is_raised_in_its_turn():
    model = ScriptedModel(extract_keywords=[ModelUnavailable("down"), ("up",)])

    with pytest.raises(ModelUnavailable, match="down"):
        model.extract_keywords("a")
    assert model.extract_keywords("a") == ("up",)


def test_embeddings_and_the_final_prompt_need_no_script():
    embedder = HashedStems(16)
    model = ScriptedModel(embedder)

    assert model.calculate_embedding("index") == embedder.generate(["index"])[0]
    assert model.calculate_embeddings(["index"]) == embedder.generate(["index"])
    assert "Which index?" in str(model.generate_final_prompt("Which index?", [], [], [], []))
    assert model.embedder is embedder


def test_an_unknown_function_is_refused_with_the_nearest_name():
    with pytest.raises(InvalidRequest, match="no function 'extract_keyword'") as refusal:
        ScriptedModel(extract_keyword=[()])

    assert refusal.value.hint == "did you mean 'extract_keywords'?"


@pytest.mark.parametrize("invalid", ["text", ("a",), None, 3])
def test_a_script_that_is_no_list_or_function_is_refused(invalid):
    with pytest.raises(InvalidRequest, match="is not a script"):
        ScriptedModel(answer=invalid)


def test_concurrent_threads_get_each_scripted_answer_once():
    model, answers = ScriptedModel(answer=list(range(200))), []
    threads = [Thread(target=lambda: answers.extend(model.answer(None) for _ in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == list(range(200))
