"""The vector provider: values found by how alike their vectors are."""

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
    """A vector of how often each of four words stands in a text, and a little of nothing."""
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
    """A backend of somebody else."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def nearest(self, vector, top_k):
        self.calls.append(top_k)
        return super().nearest(vector, top_k)


@pytest.fixture
def providers():
    found = Providers()
    found.register("vector", VectorProvider(), {"embed": embed})
    return found


def keep(providers, **texts):
    return execute_directive(
        MemoryUpsert(items=[{"key": key, "value": text} for key, text in texts.items()], provider="vector"), providers
    )


def test_a_text_finds_what_is_most_like_it_scored_and_at_most_top_k(providers):  # A111 A123
    keep(providers, a="the index", b="rust rust build", c="lunch", d="build the index in rust")

    found = execute_directive(recall("rust build", top_k=2, provider="vector"), providers).data["result"]

    assert [(row["key"], row["value"]) for row in found] == [("b", "rust rust build"), ("d", "build the index in rust")]
    assert found[0]["score"] > found[1]["score"]


def test_a_text_is_answered_by_words_and_by_likeness_and_what_is_neither_is_left(providers):  # A111
    items = {"named": ("the quokka sleeps", [0, 0, 0, 1]), "alike": ("a marsupial", [1, 0, 0, 0])}
    items |= {"both": ("rust for the quokka", [1, 0, 0, 0]), "neither": ("lunch", [0, 0, 0, 1])}
    for key, (text, vector) in items.items():
        execute_directive(remember(key, {"text": text}, embedding=vector, provider="vector"), providers)

    found = execute_directive(recall("rust quokka", top_k=9, provider="vector"), providers).data["result"]

    assert found[0]["key"] == "both"
    assert {row["key"] for row in found[1:]} == {"named", "alike"}


def test_an_embedding_that_comes_along_is_used_in_the_place_of_the_text_s(providers):  # A111 A117
    execute_directive(remember("a", "lunch", embedding=[1, 0, 0, 0], provider="vector"), providers)
    keep(providers, b="lunch")

    found = execute_directive(
        MemoryQuery(query={"vector": [1, 0, 0, 0], "top_k": 1}, provider="vector"), providers
    ).data["result"]

    assert found == [{"key": "a", "score": pytest.approx(1.0), "value": "lunch"}]


def test_another_backend_is_asked_in_the_place_of_the_scan():  # A111
    providers, backend = Providers(), Recorded()
    providers.register("vector", VectorProvider(), {"backend": lambda: backend})
    execute_directive(remember("a", "x", embedding=[1, 0], provider="vector"), providers)

    found = execute_directive(MemoryQuery(query={"vector": [1, 0], "top_k": 7}, provider="vector"), providers)

    assert [row["key"] for row in found.data["result"]] == ["a"]
    assert backend.calls == [7]


def test_what_is_alike_comes_in_the_order_it_was_first_kept(providers):
    keep(providers, c="rust", a="rust", b="rust")
    keep(providers, c="rust")

    found = execute_directive(recall("rust", provider="vector"), providers).data["result"]

    assert [row["key"] for row in found] == ["c", "a", "b"]


def test_the_scan_finds_what_comparing_all_of_them_finds():
    chance, scan = random.Random(7), Scan()
    vectors = {f"k{n}": [chance.gauss(0, 1) for _ in range(16)] for n in range(200)}
    vectors = {key: [number / math.hypot(*vector) for number in vector] for key, vector in vectors.items()}
    for key, vector in vectors.items():
        scan.add(key, vector)
    asked = vectors["k42"]

    found = scan.nearest(asked, 20)

    cosines = {key: sum(a * b for a, b in zip(asked, vector, strict=True)) for key, vector in vectors.items()}
    assert [key for key, _ in found] == sorted(cosines, key=cosines.get, reverse=True)[:20]
    assert [score for _, score in found] == pytest.approx([cosines[key] for key, _ in found], abs=1e-6)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1, 1e30, 1e300])
def test_the_length_of_a_vector_says_nothing(scale):
    provider = VectorProvider()
    state = provider.init({})
    provider.put(state, "a", "x", {"embedding": [3 * scale, 4 * scale]})
    provider.put(state, "b", "y", {"embedding": [4 * scale, -3 * scale]})

    (first, second) = provider.query(state, {"vector": [6, 8]}, {}).rows

    assert (first.key, first.score) == ("a", pytest.approx(1))
    assert (second.key, second.score) == ("b", pytest.approx(0, abs=1e-6))


def test_an_empty_store_finds_nothing(providers):
    assert execute_directive(recall("rust", provider="vector"), providers).data["result"] == []


def test_what_was_deleted_is_not_found_and_what_was_replaced_is_found_as_it_is(providers):
    keep(providers, a="rust", b="rust")
    provider = VectorProvider()
    with providers.locked("vector") as held:
        provider.delete(held.state, "a", {})
    keep(providers, b="lunch")

    found = execute_directive(recall("rust", provider="vector"), providers).data["result"]

    assert found == []
    asked = MemoryQuery(query={"vector": embed("rust")}, provider="vector")
    (row,) = execute_directive(asked, providers).data["result"]
    assert (row["key"], row["value"], row["score"] < 0.1) == ("b", "lunch", True)
    (row,) = execute_directive(recall("lunch", provider="vector"), providers).data["result"]
    assert row["key"] == "b"


@pytest.mark.parametrize(
    ("call", "says"),
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
def test_what_cannot_be_honoured_is_refused_and_changes_nothing(call, says):
    provider = VectorProvider()
    state = provider.init({"dimension": 2})
    provider.put(state, "kept", "x", {"embedding": [1, 0]})

    with pytest.raises(InvalidRequest) as refusal:
        call(provider, state)

    assert says in refusal.value.detail
    assert refusal.value.hint
    assert [row.key for row in provider.query(state, {"vector": [0, 1]}, {}).rows] == ["kept"]


def test_a_value_without_text_needs_an_embedding(providers):
    reason = execute_directive(remember("a", {"n": 1}, provider="vector"), providers).data["reason"]

    assert reason["detail"] == "'a' has no embedding, and its value has no text"


def test_a_model_that_fails_or_gives_no_vector_is_an_error_signal():  # A125
    providers = Providers()
    providers.register("down", VectorProvider(), {"embed": lambda text: 1 / 0})
    providers.register("odd", VectorProvider(), {"embed": lambda text: "vector"})

    down = execute_directive(remember("a", "x", provider="down"), providers).data["reason"]
    odd = execute_directive(remember("a", "x", provider="odd"), providers).data["reason"]

    assert (down["code"], odd["code"]) == ("provider_failed", "invalid_argument")
    assert odd["detail"] == "the result of embed is not a list of finite numbers"
