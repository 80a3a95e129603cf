"""Vectors from an endpoint: in the order of their texts, of one dimension, and validated."""

import json
from itertools import count

import pytest
from http_endpoint import reply, served

from jidomem.errors import InvalidRequest, ModelUnavailable
from jidomem.models.embeddings import LONGEST, EndpointEmbedder
from jidomem.models.endpoint import ApiKey, EndpointEnvironment, ModelEndpoint, RequestTimeouts
from jidomem.records.interfaces import Embedder


def vector(text, size=4):
    """Return a vector that identifies its text: the codes of its first letters."""
    return [float(ord(letter)) for letter in f"{text:<{size}}"[:size]]


def valid_reply(body):
    """Return a valid reply, with the vectors in the reverse order of their texts."""
    data = [{"object": "embedding", "index": n, "embedding": vector(text)} for n, text in enumerate(body["input"])]
    return reply({"object": "list", "data": data[::-1], "model": body["model"], "usage": {"total_tokens": 1}})


def embedder(peer, size=4, **more):
    return EndpointEmbedder(ModelEndpoint(peer.url, None, **more), "m", size)


def test_the_default_model_has_3072_dimensions_and_is_requested_with_the_key():
    answer = reply({"data": [{"index": 0, "embedding": [0.5] * 3072}]})
    with served(answer) as peer:
        endpoint_embedder = EndpointEmbedder(ModelEndpoint(peer.url, ApiKey("OPEN_AI_API_KEY", "sk-1")))
        (vectors,) = endpoint_embedder.generate(["the build needs Rust"])

    assert (endpoint_embedder.dimensions(), len(vectors)) == (3072, 3072)  # D089 D088
    assert peer.heads[0].startswith("POST /v1/embeddings HTTP/1.1\r\n")
    assert "Authorization: Bearer sk-1\r\n" in peer.heads[0]
    assert peer.bodies == [{"model": "text-embedding-3-large", "input": ["the build needs Rust"]}]


def test_an_error_status_is_reported_with_its_body():
    with served(reply({"error": {"message": "no such model"}}, "404 None")) as peer:
        refused = pytest.raises(ModelUnavailable, match=r"answered 404: .*no such model")  # D089
        with refused as refusal:
            embedder(peer).generate(["a"])

    assert "check that the base URL has its version" in refusal.value.hint


def test_an_endpoint_embedder_implements_the_embedder_protocol_and_hides_its_key():
    endpoint_embedder = EndpointEmbedder(ModelEndpoint("https://api.openai.com/v1", ApiKey("K", "sk-1")))

    assert isinstance(endpoint_embedder, Embedder)  # D088
    assert endpoint_embedder.name == "text-embedding-3-large at https://api.openai.com/v1 (3072)"
    assert "sk-1" not in repr(endpoint_embedder)


def test_vectors_have_the_order_of_their_texts_whatever_the_order_of_the_reply():
    texts = [f"t{number:03}" for number in range(300)]

    with served(valid_reply) as peer:
        vectors = embedder(peer).generate(texts)

    assert vectors == [vector(text) for text in texts]  # D090
    assert [len(body["input"]) for body in peer.bodies] == [128, 128, 44]  # D090


def test_large_texts_are_split_over_several_requests():
    with served(valid_reply) as peer:
        vectors = embedder(peer).generate([f"{number:02}" + "x" * 15_000 for number in range(40)])

    assert [len(body["input"]) for body in peer.bodies] == [17, 17, 6]
    assert [each[1] for each in vectors] == [float(ord(str(number % 10))) for number in range(40)]


def test_a_repeated_text_is_sent_once_and_a_blank_text_never():
    with served(valid_reply) as peer:
        vectors = embedder(peer).generate(["one", "", "two", " \n", "one"])

    assert peer.bodies[0]["input"] == ["one", "two"]
    assert vectors == [vector("one"), [0.0] * 4, vector("two"), [0.0] * 4, vector("one")]


def test_no_texts_and_blank_texts_send_no_request():
    with served(valid_reply) as peer:
        assert embedder(peer).generate([]) == []
        assert embedder(peer).generate([" "]) == [[0.0] * 4]

    assert peer.bodies == []


def test_a_long_text_is_cut_between_two_characters():
    with served(valid_reply) as peer:
        embedder(peer).generate(["é" * LONGEST, "a" + "é" * LONGEST])

    assert [text.encode() for text in peer.bodies[0]["input"]] == [
        "é".encode() * (LONGEST // 2),
        b"a" + "é".encode() * (LONGEST // 2 - 1),
    ]


def test_a_vector_of_another_dimension_is_refused():
    with (
        served(valid_reply) as peer,
        pytest.raises(ModelUnavailable, match="returned a vector of 4 numbers, not 3") as refusal,
    ):
        embedder(peer, size=3).generate(["a", "b"])

    assert "one store has vectors of one dimension" in refusal.value.hint  # D091


@pytest.mark.parametrize(
    ("data", "message"),
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
def test_a_reply_without_one_valid_vector_for_each_text_is_refused(data, message):
    with served(reply({"data": data})) as peer, pytest.raises(ModelUnavailable, match=message):
        embedder(peer).generate(["a", "b"])

    assert len(peer.bodies) == 1


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400, "-1e39"])
def test_a_number_beyond_32_bit_floats_is_refused(number):
    body = json.dumps({"data": [{"index": 0, "embedding": [1.0, "?", 1.0, 1.0]}]}).replace('"?"', number)

    with (
        served(reply(body)) as peer,
        pytest.raises(ModelUnavailable, match=r"no JSON object|zero or infinite length"),
    ):
        embedder(peer).generate(["a"])


def test_one_failed_request_of_several_raises_model_unavailable():
    with served(valid_reply, reply("{}", "400 Bad")) as peer, pytest.raises(ModelUnavailable):
        embedder(peer).generate([f"t{number}" for number in range(200)])


def test_a_single_text_has_fewer_retries_than_several_texts():
    def requests(texts):
        ticks = count(step=1)  # a clock that advances at every reading
        outside = EndpointEnvironment(monotonic=lambda: next(ticks), sleep=lambda seconds: None)
        with served(reply("{}", "503 Busy")) as peer, pytest.raises(ModelUnavailable):
            embedder(peer, patience=RequestTimeouts(tries=5), outside=outside).generate(texts)
        return len(peer.bodies)

    assert requests(["why?"]) < requests(["a", "b"])


@pytest.mark.parametrize("texts", ["one text", [b"bytes"], [None], ["a", "\ud800"]])
def test_an_invalid_list_of_texts_is_refused_before_a_request(texts):
    with served(valid_reply) as peer, pytest.raises(InvalidRequest, match="text"):
        embedder(peer).generate(texts)

    assert peer.bodies == []


@pytest.mark.parametrize(("model", "size"), [("", 4), (" ", 4), (None, 4), ("m", 0), ("m", True), ("m", 4.0)])
def test_an_embedder_without_a_model_name_or_a_dimension_is_refused(model, size):
    with pytest.raises(InvalidRequest):
        EndpointEmbedder(ModelEndpoint("http://localhost/v1", None), model, size)
