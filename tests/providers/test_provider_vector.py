"""The vector provider: values found by the similarity of their vectors."""

import math
import random

import pytest

from jidomem.errors import InvalidRequest
from jidomem.providers import Providers, VectorProvider, execute_directive
from jidomem.providers.conformance import ProviderContract
from jidomem.providers.stores import Scan
from jidomem.records.directive import MemoryQuery, MemoryUpsert, recall, remember

EMBEDDED, BY_VECTOR, BY_TEXT = {"embedding": (1.0, 0.5)}, {"vector": [1, 0]}, {"text": "the first"}
WORDS = ("rust", "build", "index", "lunch")


def embed(text):
    """A vector of the counts of four words in a text, each plus 0.01."""
    return [text.lower().split().count(word) + 0.01 for word in WORDS]


class TestVectorsGiven(ProviderContract):
    put_opts = EMBEDDED
    search = BY_VECTOR

    def opened(self):
        return VectorProvider(), {}


class TestVectorsOfTexts(ProviderContract):
    search = BY_TEXT

    def opened(self):
        return VectorProvider(), {"embed": embed}


class TestAnotherBackend(ProviderContract):
    put_opts = EMBEDDED
    search = BY_VECTOR

    def opened(self):
        return VectorProvider(), {"backend": Recorded, "dimension": 2}


class Recorded(Scan):
    """A foreign backend, which records its calls."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def nearest(self, vector, top_k):
        self.calls.append(top_k)
        return super().nearest(vector, top_k)


@pytest.fixture
def providers():
    registered = Providers()
    registered.register("vector", VectorProvider(), {"embed": embed})
    return registered


def upsert(providers, **texts):
    return execute_directive(
        MemoryUpsert(items=[{"key": key, "value": text} for key, text in texts.items()], provider="vector"), providers
    )


def test_a_query_for_a_text_returns_the_most_similar_values_up_to_top_k(providers):  # A111 A123
    upsert(providers, a="the index", b="rust rust build", c="lunch", d="build the index in rust")

    rows = execute_directive(recall("rust build", top_k=2, provider="vector"), providers).data["result"]

    assert [(row["key"], row["value"]) for row in rows] == [("b", "rust rust build"), ("d", "build the index in rust")]
    assert rows[0]["score"] > rows[1]["score"]


def test_a_query_for_a_text_matches_words_or_vectors(providers):  # A111
    items = {"named": ("the quokka sleeps", [0, 0, 0, 1]), "alike": ("a marsupial", [1, 0, 0, 0])}
    items |= {"both": ("rust for the quokka", [1, 0, 0, 0]), "neither": ("lunch", [0, 0, 0, 1])}
    for key, (text, vector) in items.items():
        execute_directive(remember(key, {"text": text}, embedding=vector, provider="vector"), providers)

    rows = execute_directive(recall("rust quokka", top_k=9, provider="vector"), providers).data["result"]

    assert rows[0]["key"] == "both"
    assert {row["key"] for row in rows[1:]} == {"named", "alike"}


def test_a_given_embedding_replaces_that_of_the_text(providers):  # A111 A117
    execute_directive(remember("a", "lunch", embedding=[1, 0, 0, 0], provider="vector"), providers)
    upsert(providers, b="lunch")

    rows = execute_directive(
        MemoryQuery(query={"vector": [1, 0, 0, 0], "top_k": 1}, provider="vector"), providers
    ).data["result"]

    assert rows == [{"key": "a", "score": pytest.approx(1.0), "value": "lunch"}]


def test_an_own_backend_replaces_the_scan():  # A111
    providers, backend = Providers(), Recorded()
    providers.register("vector", VectorProvider(), {"backend": lambda: backend})
    execute_directive(remember("a", "x", embedding=[1, 0], provider="vector"), providers)

    signal = execute_directive(MemoryQuery(query={"vector": [1, 0], "top_k": 7}, provider="vector"), providers)

    assert [row["key"] for row in signal.data["result"]] == ["a"]
    assert backend.calls == [7]


def test_equally_similar_values_keep_the_order_of_their_first_upsert(providers):
    upsert(providers, c="rust", a="rust", b="rust")
    upsert(providers, c="rust")

    rows = execute_directive(recall("rust", provider="vector"), providers).data["result"]

    assert [row["key"] for row in rows] == ["c", "a", "b"]


def test_the_scan_has_the_results_of_a_full_comparison():
    chance, scan = random.Random(7), Scan()
    vectors = {f"k{n}": [chance.gauss(0, 1) for _ in range(16)] for n in range(200)}
    vectors = {key: [number / math.hypot(*vector) for number in vector] for key, vector in vectors.items()}
    for key, vector in vectors.items():
        scan.add(key, vector)
    request = vectors["k42"]

    nearest = scan.nearest(request, 20)

    cosines = {key: sum(a * b for a, b in zip(request, vector, strict=True)) for key, vector in vectors.items()}
    assert [key for key, _ in nearest] == sorted(cosines, key=cosines.get, reverse=True)[:20]
    assert [score for _, score in nearest] == pytest.approx([cosines[key] for key, _ in nearest], abs=1e-6)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1, 1e30, 1e300])
def test_the_length_of_a_vector_does_not_change_its_score(scale):
    provider = VectorProvider()
    state = provider.init({})
    provider.put(state, "a", "x", {"embedding": [3 * scale, 4 * scale]})
    provider.put(state, "b", "y", {"embedding": [4 * scale, -3 * scale]})

    (first, second) = provider.query(state, {"vector": [6, 8]}, {}).rows

    assert (first.key, first.score) == ("a", pytest.approx(1))
    assert (second.key, second.score) == ("b", pytest.approx(0, abs=1e-6))


def test_an_empty_vector_store_has_no_results(providers):
    assert execute_directive(recall("rust", provider="vector"), providers).data["result"] == []


def test_deleted_values_are_not_found_and_replaced_values_are_current(providers):
    upsert(providers, a="rust", b="rust")
    provider = VectorProvider()
    with providers.locked("vector") as held:
        provider.delete(held.state, "a", {})
    upsert(providers, b="lunch")

    rows = execute_directive(recall("rust", provider="vector"), providers).data["result"]

    assert rows == []
    request = MemoryQuery(query={"vector": embed("rust")}, provider="vector")
    (row,) = execute_directive(request, providers).data["result"]
    assert (row["key"], row["value"], row["score"] < 0.1) == ("b", "lunch", True)
    (row,) = execute_directive(recall("lunch", provider="vector"), providers).data["result"]
    assert row["key"] == "b"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, s: p.put(s, "a", "x", {"embedding": [1, 2, 3]}), "a vector of 3 numbers among vectors of 2"),
        (lambda p, s: p.query(s, {"vector": [1]}, {}), "a vector of 1 numbers among vectors of 2"),
        (lambda p, s: p.put(s, "a", "x", {"embedding": [0, 0]}), "a vector of zeros has no direction"),
        (lambda p, s: p.put(s, "a", "x", {"embedding": [math.inf, 1]}), "embedding is not a list of finite numbers"),
        (lambda p, s: p.put(s, "a", "x", {}), "'a' has no embedding, and there is no embedder"),
        (lambda p, s: p.query(s, {"text": "x"}, {}), "there is no embedder"),
        (lambda p, s: p.query(s, {"text": " "}, {}), "text=' ' is not a text"),
        (lambda p, s: p.query(s, {"text": "x", "vector": [1, 1]}, {}), "a query has either a text or a vector"),
        (lambda p, s: p.query(s, {"top_k": 2}, {}), "a query has either a text or a vector"),
        (lambda p, s: p.query(s, {"texts": "x"}, {}), "a query for vectors has no 'texts'"),
        (lambda p, s: p.init({"embed": 7}), "embed=7 is not callable"),
        (lambda p, s: p.init({"dimension": 0}), "dimension=0 is not a dimension"),
        (lambda p, s: p.init({"dimension": True}), "dimension=True is not a dimension"),
    ],
)
def test_invalid_calls_of_the_vector_provider_are_refused_and_change_nothing(call, message):
    provider = VectorProvider()
    state = provider.init({"dimension": 2})
    provider.put(state, "kept", "x", {"embedding": [1, 0]})

    with pytest.raises(InvalidRequest) as refusal:
        call(provider, state)

    assert message in refusal.value.detail
    assert refusal.value.hint
    assert [row.key for row in provider.query(state, {"vector": [0, 1]}, {}).rows] == ["kept"]


def test_a_value_without_text_or_embedding_is_refused(providers):
    reason = execute_directive(remember("a", {"n": 1}, provider="vector"), providers).data["reason"]

    assert reason["detail"] == "'a' has no embedding, and its value has no text"


def test_a_failing_or_invalid_embedder_is_an_error_signal():  # A125
    providers = Providers()
    providers.register("down", VectorProvider(), {"embed": lambda text: 1 / 0})
    providers.register("odd", VectorProvider(), {"embed": lambda text: "vector"})

    down = execute_directive(remember("a", "x", provider="down"), providers).data["reason"]
    odd = execute_directive(remember("a", "x", provider="odd"), providers).data["reason"]

    assert (down["code"], odd["code"]) == ("provider_failed", "invalid_argument")
    assert odd["detail"] == "the result of embed is not a list of finite numbers"
