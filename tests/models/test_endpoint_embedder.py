"""Vectors from an endpoint: in the order of the texts, of one dimension, and never any that could mislead."""

import json
from itertools import count

import pytest
from http_endpoint import reply, served

from jidomem.errors import InvalidRequest, ModelUnavailable
from jidomem.models.embeddings import LONGEST, EndpointEmbedder
from jidomem.models.endpoint import ApiKey, ModelEndpoint, Outside, Patience
from jidomem.records.interfaces import Embedder


def vector(text, size=4):
    """A vector that tells its text: the letters it begins with."""
    return [float(ord(letter)) for letter in f"{text:<{size}}"[:size]]


def honest(body):
    """What a sound endpoint answers, with the vectors in another order than they were asked for."""
    data = [{"object": "embedding", "index": n, "embedding": vector(text)} for n, text in enumerate(body["input"])]
    return reply({"object": "list", "data": data[::-1], "model": body["model"], "usage": {"total_tokens": 1}})


def embedder(told, size=4, **more):
    return EndpointEmbedder(ModelEndpoint(told.url, None, **more), "m", size)


def test_the_example_is_a_model_of_3072_dimensions_that_is_asked_with_the_key():
    given = reply({"data": [{"index": 0, "embedding": [0.5] * 3072}]})
    with served(given) as told:
        made = EndpointEmbedder(ModelEndpoint(told.url, ApiKey("OPEN_AI_API_KEY", "sk-1")))
        (found,) = made.generate(["the build needs Rust"])

    assert (made.dimensions(), len(found)) == (3072, 3072)  # D089 D088
    assert told.heads[0].startswith("POST /v1/embeddings HTTP/1.1\r\n")
    assert "Authorization: Bearer sk-1\r\n" in told.heads[0]
    assert told.bodies == [{"model": "text-embedding-3-large", "input": ["the build needs Rust"]}]


def test_an_answer_that_is_not_200_is_an_error_with_its_body():
    with served(reply({"error": {"message": "no such model"}}, "404 None")) as told:
        refused = pytest.raises(ModelUnavailable, match=r"answered 404: .*no such model")  # D089
        with refused as refusal:
            embedder(told).generate(["a"])

    assert "check that the base URL has its version" in refusal.value.hint


def test_an_embedder_of_an_endpoint_is_one_of_the_contract():
    made = EndpointEmbedder(ModelEndpoint("https://api.openai.com/v1", ApiKey("K", "sk-1")))

    assert isinstance(made, Embedder)  # D088
    assert made.name == "text-embedding-3-large at https://api.openai.com/v1 (3072)"
    assert "sk-1" not in repr(made)


def test_vectors_come_in_the_order_of_the_texts_however_they_were_answered():
    texts = [f"t{number:03}" for number in range(300)]

    with served(honest) as told:
        found = embedder(told).generate(texts)

    assert found == [vector(text) for text in texts]  # D090
    assert [len(body["input"]) for body in told.bodies] == [128, 128, 44]  # D090


def test_large_texts_go_in_more_requests():
    with served(honest) as told:
        found = embedder(told).generate([f"{number:02}" + "x" * 15_000 for number in range(40)])

    assert [len(body["input"]) for body in told.bodies] == [17, 17, 6]
    assert [each[1] for each in found] == [float(ord(str(number % 10))) for number in range(40)]


def test_a_text_is_sent_once_and_a_blank_one_not_at_all():
    with served(honest) as told:
        found = embedder(told).generate(["one", "", "two", " \n", "one"])

    assert told.bodies[0]["input"] == ["one", "two"]
    assert found == [vector("one"), [0.0] * 4, vector("two"), [0.0] * 4, vector("one")]


def test_where_there_is_nothing_to_embed_nobody_is_asked():
    with served(honest) as told:
        assert embedder(told).generate([]) == []
        assert embedder(told).generate([" "]) == [[0.0] * 4]

    assert told.bodies == []


def test_a_long_text_is_cut_between_two_signs():
    with served(honest) as told:
        embedder(told).generate(["é" * LONGEST, "a" + "é" * LONGEST])

    assert [text.encode() for text in told.bodies[0]["input"]] == [
        "é".encode() * (LONGEST // 2),
        b"a" + "é".encode() * (LONGEST // 2 - 1),
    ]


def test_a_vector_of_another_dimension_is_refused():
    with (
        served(honest) as told,
        pytest.raises(ModelUnavailable, match="returned a vector of 4 numbers, not 3") as refusal,
    ):
        embedder(told, size=3).generate(["a", "b"])

    assert "one store has vectors of one dimension" in refusal.value.hint  # D091


@pytest.mark.parametrize(
    ("data", "told_as"),
    [
        ([{"index": 0, "embedding": [1.0] * 4}], "should return 2 vectors, and returned 1 of them"),
        ([{"index": n, "embedding": [1.0] * 4} for n in range(3)], "should return 2 vectors, and returned 3 of them"),
        (None, "and returned none"),
        ({"0": 1, "1": 2}, "and returned none"),
        (["a", "b"], "and returned 2 of them"),
        ([{"index": 0, "embedding": [1.0] * 4}] * 2, "did not assign the vectors to the texts"),
        ([{"index": n + 1, "embedding": [1.0] * 4} for n in range(2)], "did not assign"),
        ([{"index": n, "embedding": [1.0] * 4} for n in (False, True)], "did not assign"),
        ([{"embedding": [1.0] * 4}] * 2, "did not assign"),
        (
            [{"index": n, "embedding": [1.0, 2.0, None, 1.0]} for n in range(2)],
            "returned a vector that is not a list of numbers",
        ),
        (
            [{"index": n, "embedding": [1.0, 2.0, "NaN", 1.0]} for n in range(2)],
            "returned a vector that is not a list of numbers",
        ),
        (
            [{"index": n, "embedding": [1.0, 2.0, True, 1.0]} for n in range(2)],
            "returned a vector that is not a list of numbers",
        ),
        ([{"index": n, "embedding": "AACAPwAA"} for n in range(2)], "returned a vector that is not a list of numbers"),
        ([{"index": n} for n in range(2)], "returned a vector that is not a list of numbers"),
        ([{"index": n, "embedding": []} for n in range(2)], "returned a vector of 0 numbers"),
        (
            [{"index": n, "embedding": [0, 0.0, 0, -0.0]} for n in range(2)],
            "returned a vector of zero or infinite length",
        ),
    ],
)
def test_what_is_no_vector_of_each_text_is_refused(data, told_as):
    with served(reply({"data": data})) as told, pytest.raises(ModelUnavailable, match=told_as):
        embedder(told).generate(["a", "b"])

    assert len(told.bodies) == 1


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400, "-1e39"])
def test_a_number_that_is_not_finite_in_32_bits_is_refused(number):
    body = json.dumps({"data": [{"index": 0, "embedding": [1.0, "?", 1.0, 1.0]}]}).replace('"?"', number)

    with served(reply(body)) as told, pytest.raises(ModelUnavailable, match=r"no JSON object|zero or infinite length"):
        embedder(told).generate(["a"])


def test_of_several_requests_one_that_fails_leaves_no_vector():
    with served(honest, reply("{}", "400 Bad")) as told, pytest.raises(ModelUnavailable):
        embedder(told).generate([f"t{number}" for number in range(200)])


def test_a_question_is_given_less_time_than_many_texts():
    def asked(texts):
        ticks = count(step=1)  # a clock that moves by itself
        outside = Outside(monotonic=lambda: next(ticks), sleep=lambda seconds: None)
        with served(reply("{}", "503 Busy")) as told, pytest.raises(ModelUnavailable):
            embedder(told, patience=Patience(tries=5), outside=outside).generate(texts)
        return len(told.bodies)

    assert asked(["why?"]) < asked(["a", "b"])


@pytest.mark.parametrize("texts", ["one text", [b"bytes"], [None], ["a", "\ud800"]])
def test_what_is_no_list_of_texts_is_refused_before_anybody_is_asked(texts):
    with served(honest) as told, pytest.raises(InvalidRequest, match="text"):
        embedder(told).generate(texts)

    assert told.bodies == []


@pytest.mark.parametrize(("model", "size"), [("", 4), (" ", 4), (None, 4), ("m", 0), ("m", True), ("m", 4.0)])
def test_an_embedder_needs_a_model_and_a_dimension(model, size):
    with pytest.raises(InvalidRequest):
        EndpointEmbedder(ModelEndpoint("http://localhost/v1", None), model, size)
